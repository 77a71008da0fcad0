"""The pairs of a study: correlation, interval, correction for their number, and the verdict that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from anima.checks import require_choice, require_fraction, require_int
from anima.errors import InputError
from anima.metaeval.join import Accounted, Accounting, Joined
from anima.stats.correlation import (
    EXACT_PERMUTATIONS,
    FEW_PAIRS,
    MIN_PAIRS,
    analytic_estimate,
    permutation_p,
    t_p_value,
)
from anima.stats.estimate import Estimate
from anima.stats.multiplicity import adjust_p, max_t
from anima.stats.resampling import (
    QuantileRule,
    RngLike,
    estimate_from_distribution,
    numpy_or_default,
    resample_counts,
    resolve_rng,
)
from anima.stats.separation import auc
from anima.stats.weighted import Floats, is_constant, midranks, pearson_table, standardised, weighted_correlation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray


Method = Literal["spearman", "pearson"]
Interval = Literal["auto", "analytic", "percentile"]
Control = Literal["holm", "bh", "bonferroni", "max_t", "none"]
Polarity = Literal["higher", "lower"]
Direction = Literal["as wished", "contrary", "unclear"]
Strength = Literal["strong", "moderate", "weak", "uncertain", "undefined"]
Validity = Literal["load_bearing", "informative", "decorative", "misleading", "uncertain", "undefined"]

HIGH, MIDDLE = 0.7, 0.4  # the thresholds of the reference package


@dataclass(frozen=True)
class PairResult(Accounted):
    """One eval metric against one outcome metric.

    Parameters
    ----------
    estimate
        Correlation with its interval; p-value before correction.
    pearson, spearman
        Both coefficients, NaN if undefined; the one that ``estimate`` is about among them.
    p_adjusted
        P-value corrected for the family; NaN if undefined.
    direction
        Whether the whole interval lies on the wished side of 0 (given the outcome's polarity), on the other, or
        neither.
    verdict
        See :func:`correlation_study` and :func:`rubric_predictive_validity`.
    auc
        For outcomes of 0 and 1: the chance that a run with 1 outscores one with 0, ties half.
    """

    eval_metric: str
    outcome_metric: str
    estimate: Estimate
    pearson: float
    spearman: float
    p_adjusted: float
    direction: Direction
    verdict: str
    accounting: Accounting
    auc: Estimate | None = None

    def summary(self) -> str:
        """Return one sentence."""
        note = "" if math.isnan(self.p_adjusted) else f" Adjusted p = {self.p_adjusted:.3g}."
        side = "" if self.direction == "unclear" else f", {self.direction}"
        return f"{self.estimate.summary()} Verdict: {self.verdict}{side}.{note}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row."""
        import pandas as pd

        e = self.estimate
        row = {
            "eval_metric": self.eval_metric, "outcome_metric": self.outcome_metric, "n": self.n, "value": e.value,
            "low": e.low, "high": e.high, "level": e.level, "p_value": e.p_value, "p_adjusted": self.p_adjusted,
            "direction": self.direction, "verdict": self.verdict, "pearson": self.pearson, "spearman": self.spearman,
            "auc": self.auc.value if self.auc else math.nan, "method": e.method, "status": e.status, "reason": e.reason,
            "n_in": self.accounting.n_in, **self.accounting.losses,
        }  # fmt: skip
        return pd.DataFrame([row])


def strength(low: float, high: float) -> Strength:
    """Return the verdict of a correlation study for an interval."""
    near = max(low, -high)  # the end nearer to 0, negative if the interval holds 0
    if near >= HIGH:
        return "strong"
    if near >= MIDDLE:
        return "moderate"
    return "weak" if max(-low, high) < MIDDLE else "uncertain"


def validity(low: float, high: float) -> Validity:
    """Return the verdict on a rubric for an interval turned to the wished side."""
    if high < 0:
        return "misleading"
    if low >= HIGH:
        return "load_bearing"
    if low >= MIDDLE:
        return "informative"
    return "decorative" if high < MIDDLE else "uncertain"


_CLAIMS: Final = {"strong", "moderate", "load_bearing", "informative", "misleading"}


def correlate(
    joined: Joined, *, judge: Any, min_samples: int, method: Method, interval: Interval, control: Control, level: float,
    n_resamples: int, resamples: str, quantiles: QuantileRule, polarity: Mapping[str, Polarity] | None, rng: RngLike,
) -> tuple[PairResult, ...]:  # fmt: skip
    """Return all pairs of a join, eval metric by eval metric; ``judge`` turns an interval into a verdict."""
    require_choice(method, "method", ("spearman", "pearson"))
    require_choice(interval, "interval", ("auto", "analytic", "percentile"))
    require_choice(control, "control", ("holm", "bh", "bonferroni", "max_t", "none"))
    require_choice(resamples, "resamples", ("shared", "per pair"))
    require_choice(quantiles, "quantiles", ("linear", "floor"))
    require_fraction(level)
    require_int(n_resamples, "n_resamples", low=1)
    signs = _signs(joined.outcome_names, polarity)
    if joined.clusters is not None and interval == "analytic":
        raise InputError("interval='analytic' supposes independent runs: pass 'percentile', or clusters=None")
    if joined.clusters is not None and control == "max_t":
        raise InputError("control='max_t' permutes runs as if they were independent: pass 'holm', or clusters=None")
    bootstrap = interval == "percentile" or joined.clusters is not None
    p, q = len(joined.eval_names), len(joined.outcome_names)
    groups: dict[Any, list[tuple[int, int]]] = {}
    masks = {(i, j): joined.rows(i, j) for i in range(p) for j in range(q)}
    for pair, mask in masks.items():
        groups.setdefault(mask.tobytes() if resamples == "shared" else pair, []).append(pair)
    source, seed = resolve_rng(rng)
    done: dict[tuple[int, int], tuple[Estimate, float, float]] = {}
    used_level = 1 - (1 - level) / max(1, p * q) if control == "bonferroni" else level
    for members in groups.values():
        rows = masks[members[0]]
        group = _Group(joined, members, rows, method, used_level)
        done.update(group.results(min_samples, n_resamples if bootstrap else None, source, seed, quantiles))
    adjusted = _adjust(joined, {pair: result[0] for pair, result in done.items()}, method, control, rng)
    out = []
    for (i, j), adjusted_p in zip(masks, adjusted, strict=True):
        estimate, pearson, spearman = done[i, j]
        low, high = sorted((signs[j] * estimate.low, signs[j] * estimate.high))
        units = estimate.n if estimate.n_clusters is None else estimate.n_clusters
        direction: Direction = "as wished" if low > 0 else "contrary" if high < 0 else "unclear"
        verdict = "undefined" if not estimate.defined else "uncertain"
        if estimate.has_interval and units >= FEW_PAIRS:
            verdict = judge(low, high)
            if verdict in _CLAIMS and control != "none" and not adjusted_p <= 1 - level:
                verdict = "uncertain"
        separation = _separation(joined, i, j, masks[i, j], level, n_resamples, rng) if estimate.defined else None
        out.append(PairResult(
            joined.eval_names[i], joined.outcome_names[j], estimate, pearson, spearman, adjusted_p, direction, verdict,
            joined.pair(i, j), separation,
        ))  # fmt: skip
    return tuple(out)


class _Group:
    """Pairs that use the same runs."""

    def __init__(
        self, joined: Joined, members: list[tuple[int, int]], rows: NDArray[np.bool_], method: Method, level: float
    ) -> None:
        self.members, self.method, self.level = members, method, level
        self.names = {"x": joined.eval_names, "y": joined.outcome_names}
        self.left = list(dict.fromkeys(i for i, _ in members))
        self.right = list(dict.fromkeys(j for _, j in members))
        self.x, self.y = joined.x[rows][:, self.left], joined.y[rows][:, self.right]
        self.n, self.dropped = len(self.x), len(rows) - len(self.x)
        self.codes, self.units = None, self.n
        if joined.clusters is not None:
            distinct, codes = np.unique(joined.clusters[rows], return_inverse=True)
            self.codes, self.units = codes, len(distinct)
        self.title = "Spearman's rho" if method == "spearman" else "Pearson's r"

    def results(
        self, least: int, n_resamples: int | None, source: Any, seed: int | None, quantiles: QuantileRule
    ) -> Iterator[tuple[tuple[int, int], tuple[Estimate, float, float]]]:
        """Yield each pair with its estimate (analytic if ``n_resamples`` is None), Pearson's r and Spearman's rho."""
        common: dict[str, Any] = {"level": self.level, "n": self.n, "n_dropped": self.dropped}
        if self.n < least:
            reason = f"{self.n} runs with both values, at least {least} are needed"
            few = Estimate.undefined(self.title, reason, **common), math.nan, math.nan
            yield from ((pair, few) for pair in self.members)
            return
        columns = list(self._columns())
        table = None if n_resamples is None else self._resampled(columns, n_resamples, source)
        for pair, a, b, pearson, spearman in columns:
            value = pearson if self.method == "pearson" else spearman
            x, y = self.x[:, a], self.y[:, b]
            flat = self._flat(pair, x, y) if math.isnan(value) else ""
            if table is not None:
                drawn = table[:, a, b]
                estimate = estimate_from_distribution(
                    self.title, value, drawn, rule=quantiles, n_units=self.units, clustered=self.codes is not None,
                    seed=seed, reason=flat, p_value=self._p(value, x, y, drawn), **common,
                )  # fmt: skip
            elif flat:
                estimate = Estimate.undefined(self.title, flat, **common)
            else:
                estimate = analytic_estimate(self.title, self.method, value, x, y, self._p(value, x, y), common)
            yield pair, (estimate, pearson, spearman)

    def _resampled(self, columns: list[tuple[Any, int, int, float, float]], n_resamples: int, source: Any) -> Floats:
        """Return the coefficients of all resamples, ``(n_resamples, x, y)``: all pairs share them."""
        blocks: Any = resample_counts(self.units, n_resamples, source)
        if self.codes is not None:
            blocks = (counts[:, self.codes] for counts in blocks)
        if self.method == "pearson":
            return pearson_table(blocks, self.x, self.y)
        table = np.full((n_resamples, len(self.left), len(self.right)), math.nan)
        start = 0
        for counts in blocks:  # block by block: memory stays small
            rows = slice(start, start := start + len(counts))
            for _, a, b, _, spearman in columns:
                if not math.isnan(spearman):
                    table[rows, a, b] = weighted_correlation(counts, self.x[:, a], self.y[:, b], self.method)
        return table

    def _columns(self) -> Iterator[tuple[tuple[int, int], int, int, float, float]]:
        tables = []
        for change in (np.asarray, midranks):
            u, v = (
                np.array([np.full(self.n, math.nan) if is_constant(c) else standardised(change(c)) for c in values.T])
                for values in (self.x, self.y)
            )
            tables.append(np.clip(u @ v.T, -1, 1))
        for i, j in self.members:
            a, b = self.left.index(i), self.right.index(j)
            yield (i, j), a, b, float(tables[0][a, b]), float(tables[1][a, b])

    def _flat(self, pair: tuple[int, int], x: Floats, y: Floats) -> str:
        both = ((self.names["x"][pair[0]], x), (self.names["y"][pair[1]], y))
        return " and ".join(f"{name} is {v[0]:g} in all {self.n} runs" for name, v in both if is_constant(v))

    def _p(self, value: float, x: Floats, y: Floats, distribution: Floats | None = None) -> float:
        """Return the p-value of no association: t; exact for few ranks; with clusters Wald on Fisher's z."""
        if math.isnan(value):
            return math.nan
        if self.codes is None or distribution is None:
            if self.method == "spearman" and self.n <= EXACT_PERMUTATIONS:
                return permutation_p(x, y)
            return t_p_value(value, self.n - 2)
        z = np.arctanh(np.clip(distribution[np.isfinite(distribution)], -1 + 1e-12, 1 - 1e-12))
        error = float(z.std(ddof=1)) if len(z) > 1 else 0.0
        if len(z) < 2 or self.units < MIN_PAIRS:
            return math.nan
        if error == 0:  # every resample says the same
            return 0.0 if value else 1.0
        from scipy.special import stdtr

        return float(2 * stdtr(self.units - 1, -math.atanh(min(abs(value), 1 - 1e-12)) / error))


def _adjust(
    joined: Joined, estimates: Mapping[tuple[int, int], Estimate], method: Method, control: Control, rng: RngLike
) -> list[float]:
    order = [(i, j) for i in range(len(joined.eval_names)) for j in range(len(joined.outcome_names))]
    p = [estimates[pair].p_value if estimates[pair].defined else math.nan for pair in order]
    if control == "none" or not order:
        return p
    if control == "max_t":
        # Pairs below the least number of runs are no part of the family.
        keep = [k for k, pair in enumerate(order) if estimates[pair].defined]
        left, right = ({order[k][side] for k in keep} for side in (0, 1))
        x = np.where([i in left for i in range(joined.x.shape[1])], joined.x, math.nan)
        y = np.where([j in right for j in range(joined.y.shape[1])], joined.y, math.nan)
        table = max_t(x, y, method=method, rng=numpy_or_default(rng))
        return [float(table[pair]) if k in keep else math.nan for k, pair in enumerate(order)]
    return [float(value) for value in adjust_p(p, method=control)]


def _signs(outcomes: tuple[str, ...], polarity: Mapping[str, Polarity] | None) -> list[int]:
    wished = dict(polarity or {})
    for name, value in wished.items():
        if name not in outcomes:
            raise InputError(
                f"polarity names {name!r}, which is no outcome metric of this study: {', '.join(outcomes)}"
            )
        require_choice(value, f"polarity[{name!r}]", ("higher", "lower"))
    return [-1 if wished.get(name) == "lower" else 1 for name in outcomes]


def _separation(
    joined: Joined, i: int, j: int, rows: NDArray[np.bool_], level: float, n_resamples: int, rng: RngLike
) -> Estimate | None:
    outcome = joined.y[rows, j]
    if not np.isin(outcome, (0.0, 1.0)).all():
        return None
    codes = None if joined.clusters is None else joined.clusters[rows]
    options: dict[str, Any] = {
        "clusters": codes,
        "level": level,
        "n_resamples": n_resamples,
        "rng": numpy_or_default(rng),
    }
    return auc(joined.x[rows, i], outcome, **options)
