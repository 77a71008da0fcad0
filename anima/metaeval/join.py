"""Runs joined with what the world said about them later; every run that does not count is counted by its reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np

from anima.checks import require_choice, require_number, show
from anima.errors import InputError
from anima.metaeval.sources import Extractor, Outcomes, Runs, RunTable, outcome_columns, run_table
from anima.stats.estimate import Presentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anima.stats.weighted import Floats

Reduction = Literal["latest", "mean", "max"]
LOSSES: Final = ("no_outcome", "outside_window", "gated", "no_eval_value", "no_outcome_value")
# 1 for a success: a gated run scores 0 there, elsewhere its value is left out.
SUCCESS_METRICS: Final = frozenset({"pass", "passed", "failureClass", "failure_class"})
_MATURITY_RATIO: Final = 5.0


class Stamped(Presentable):
    """A result that can carry the health of the judges behind it, see :func:`anima.metaeval.eval_health_stamp`."""

    health: Presentable | None

    def with_health(self, stamp: Presentable | None) -> Self:
        """Return the same result with a health stamp, which its summary and page then show."""
        return replace(self, health=stamp)  # type: ignore[type-var]

    def stamp_text(self) -> str:
        """Return what the stamp adds to the summary."""
        return f" Health of the judges: {self.health.summary()}" if self.health is not None else ""


@dataclass(frozen=True)
class Accounting(Presentable):
    """What went in, what was used, and each named loss; it always adds up: ``n_in == n_used + sum of losses``."""

    n_in: int
    n_used: int
    losses: Mapping[str, int] = field(default_factory=dict)
    unit: str = "runs"

    def __post_init__(self) -> None:
        if self.n_in != self.n_used + sum(self.losses.values()):
            raise InputError(f"accounting of {self.unit} does not add up: {self.n_in} in, {self.n_used}, {self.losses}")

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, losses by their names."""
        return {"n_in": self.n_in, "n_used": self.n_used, **self.losses}

    def summary(self) -> str:
        """Return one sentence."""
        lost = "".join(f", {n} {name.replace('_', ' ')}" for name, n in self.losses.items() if n)
        return f"{self.n_in} {self.unit} in, {self.n_used} used{lost}."


class Accounted(Presentable):
    """A result that says what became of each unit."""

    accounting: Accounting

    @property
    def n(self) -> int:
        """Units used."""
        return self.accounting.n_used


@dataclass(frozen=True)
class Joined:
    """One row per run, NaN where it has no value; made by :func:`join`.

    ``x`` and ``y`` are ``(runs, eval metrics)`` and ``(runs, outcome metrics)``; ``no_outcome`` and ``outside_window``
    mark runs without any outcome, and those all of whose outcomes lie outside the lag window; ``gated`` marks values of
    ``x`` left out because the run was gated; ``clusters`` is the code of each run's cluster, None for independent runs.
    """

    x: Floats
    y: Floats
    eval_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    no_outcome: NDArray[np.bool_]
    outside_window: NDArray[np.bool_]
    gated: NDArray[np.bool_]
    clusters: NDArray[np.intp] | None
    outcomes: Accounting
    notes: tuple[str, ...]

    def rows(self, i: int, j: int) -> NDArray[np.bool_]:
        """Return the runs that have both values of a pair."""
        return ~(np.isnan(self.x[:, i]) | np.isnan(self.y[:, j]))

    def pair(self, i: int, j: int) -> Accounting:
        """Return what became of each run for one pair."""
        return self._account(self.gated[:, i], ~np.isnan(self.x[:, i]), ~np.isnan(self.y[:, j]))

    def runs(self) -> Accounting:
        """Return what became of each run: used if it gave at least one pair."""
        any_x, any_y = (np.asarray((~np.isnan(values)).any(axis=1)) for values in (self.x, self.y))
        return self._account(np.asarray(self.gated.any(axis=1) & ~any_x), any_x, any_y)

    def _account(self, gated: NDArray[np.bool_], has_x: NDArray[np.bool_], has_y: NDArray[np.bool_]) -> Accounting:
        reasons = (self.no_outcome, self.outside_window, gated, ~has_x, ~has_y)
        left = np.ones(len(self.x), dtype=bool)
        losses = {}
        for name, reason in zip(LOSSES, reasons, strict=True):  # the first reason counts
            losses[name] = int((left & reason).sum())
            left &= ~reason
        return Accounting(len(self.x), int(left.sum()), losses)


def join(
    runs: Runs,
    outcomes: Outcomes,
    eval_metrics: Sequence[str] | Mapping[str, Extractor | None],
    outcome_metrics: Sequence[str],
    *,
    reduction: Reduction = "latest",
    min_lag_ms: float = 0.0,
    max_lag_ms: float = math.inf,
    outcome_filter: Mapping[str, Any] | None = None,
    clusters: str | None = "auto",
) -> Joined:
    """Return one row per run with its eval values and the reduced values of its eligible outcomes.

    See :func:`anima.metaeval.correlation_study` for the parameters.
    """
    require_choice(reduction, "reduction", ("latest", "mean", "max"))
    names, outcome_names = unique_names(eval_metrics, "eval_metrics"), unique_names(outcome_metrics, "outcome_metrics")
    own = eval_metrics if isinstance(eval_metrics, Mapping) else {}
    table = run_table(runs, {key: value for key, value in own.items() if value})
    columns = [table.column(name) for name in names]  # first of all: unknown ids are refused before any work
    x = np.column_stack(columns) if columns else np.empty((len(table.ids), 0))
    scores = np.array([name.removeprefix("outcome.") not in SUCCESS_METRICS for name in names], dtype=bool)
    gated = table.gated[:, None] & scores & ~np.isnan(x)
    x = np.where(gated, math.nan, np.where(table.gated[:, None] & ~np.isnan(x), 0.0, x))
    ids, captured, values = outcome_columns(outcomes, outcome_names, outcome_filter)
    place = {run_id: row for row, run_id in enumerate(table.ids)}
    row = np.array([place.get(run_id, -1) for run_id in ids], dtype=np.intp)
    known = row >= 0
    early = late = np.zeros(len(row), dtype=bool)
    notes: list[str] = []
    lag: Floats | None = None
    low = -math.inf if min_lag_ms == -math.inf else require_number(min_lag_ms, "min_lag_ms")
    high = math.inf if max_lag_ms == math.inf else require_number(max_lag_ms, "max_lag_ms", low=low)
    if table.started is not None and captured is not None:
        lag = np.full(len(row), math.nan)
        lag[known] = captured[known] - table.started[row[known]]
        early = known & ~(lag >= low)  # an unknown time is not a time within the window
        late = known & ~early & (lag > high)
    elif high < math.inf or low not in (0.0, -math.inf):
        raise InputError("a lag window needs started_at of the runs and captured_at of the outcomes: add the columns")
    elif low != -math.inf:
        notes.append("no times: outcomes from before a run cannot be told apart")
    fit = known & ~early & ~late
    y = np.full((len(table.ids), len(outcome_names)), math.nan)
    for j in range(len(outcome_names)):
        use = fit & ~np.isnan(values[:, j])
        times = None if captured is None else captured[use]
        taken, counts = _reduce(row[use], times, values[use, j], y[:, j], reduction)
        notes += _reduction_notes(outcome_names[j], reduction, None if lag is None else lag[use][taken], counts)
    seen, kept = (np.bincount(row[mask], minlength=len(table.ids)) > 0 for mask in (known, fit))
    losses = {"unknown_run": int((~known).sum()), "too_early": int(early.sum()), "too_late": int(late.sum())}
    accounting = Accounting(len(row), int(fit.sum()), losses, "outcomes")
    codes = _cluster_codes(table, clusters, notes)
    return Joined(
        x, y, names, outcome_names, ~seen, seen & ~kept, gated, codes, accounting, tuple(dict.fromkeys(notes))
    )


def unique_names(names: Iterable[str], argument: str) -> tuple[str, ...]:
    """Return names as a tuple; a single string and repeated names are refused."""
    if isinstance(names, str):
        raise InputError(f"{argument} must be a list of names, got one str: write [{names!r}]")
    out = tuple(names)
    for k, name in enumerate(out):
        if not isinstance(name, str) or not name:
            raise InputError(f"{argument} item {k} must be a non-empty str, got {show(name)}")
        if name in out[:k]:
            raise InputError(f"{argument} names {name!r} twice: its runs would count double, leave one out")
    return out


def _reduce(
    row: NDArray[np.intp], captured: Floats | None, values: Floats, out: Floats, reduction: Reduction
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Write one value per run to ``out``; return which values were latest, and how many each run had."""
    if not len(row):
        return row, row
    # Stable: of equal times the last written counts.
    order = np.lexsort((np.zeros(len(row)) if captured is None else captured, row))
    ends = np.flatnonzero(np.diff(row[order], append=-1))
    counts = np.diff(ends, prepend=-1)
    if captured is None and reduction == "latest" and counts.max() > 1:
        raise InputError("outcomes: a run has several outcomes and there is no captured_at to find the latest by")
    runs = row[order][ends]
    ordered = values[order]
    if reduction == "latest":
        out[runs] = ordered[ends]
    elif reduction == "mean":
        out[runs] = np.bincount(row, weights=values, minlength=len(out))[runs] / counts
    else:
        out[runs] = np.maximum.reduceat(ordered, ends - counts + 1)
    return order[ends], counts


def _reduction_notes(name: str, reduction: Reduction, lags: Floats | None, counts: NDArray[np.intp]) -> list[str]:
    notes = []
    if reduction == "max" and len(counts) and counts.min() != counts.max():
        notes.append(
            f"{name}: runs have {counts.min()} to {counts.max()} captures: the maximum rises with their number"
        )
    if reduction == "latest" and lags is not None and len(lags):
        short, long = np.quantile(lags, [0.1, 0.9])
        if 0 < short * _MATURITY_RATIO < long:
            notes.append(
                f"{name}: captured {short:.3g} to {long:.3g} ms after the run (10 to 90 %), maturities are mixed: "
                "set min_lag_ms and max_lag_ms"
            )
    return notes


def _cluster_codes(table: RunTable, clusters: str | None, notes: list[str]) -> NDArray[np.intp] | None:
    if clusters is None or not table.ids:
        return None
    import pandas as pd

    name = "scenario_id" if clusters == "auto" else clusters
    labels = table.labels(name)
    if clusters == "auto":
        missing = labels is None or any(label is None or label != label for label in labels)
        distinct = 0 if missing or labels is None else len(set(labels))
        if not 1 < distinct < len(table.ids):
            if distinct == 1 and len(table.ids) > 1:
                notes.append("all runs are of one scenario: the results hold for it alone")
            return None
    if labels is None:
        raise InputError(f"clusters: the runs have no {name!r}: name a field or a column that they have")
    codes, _ = pd.factorize(np.array(labels, dtype=object), use_na_sentinel=True)
    if codes.min() < 0:
        raise InputError(f"clusters: run {table.ids[int(np.argmin(codes))]!r} has no {name!r}: give it one")
    return codes.astype(np.intp)
