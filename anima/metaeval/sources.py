"""Where runs and outcomes come from: stores, DataFrames or records, made one kind of table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from pydantic.alias_generators import to_camel

from anima.checks import require_columns, require_floats
from anima.errors import InputError
from anima.metaeval.records import DeploymentOutcome, Run, build
from anima.metaeval.stores import OutcomeStore, TraceStore

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from anima.metaeval.run_record import RunRecord
    from anima.stats.weighted import Floats

Extractor: TypeAlias = "Callable[[Run], float | None]"
Runs: TypeAlias = "TraceStore | pd.DataFrame | Iterable[RunRecord] | RunTable"
Outcomes: TypeAlias = "OutcomeStore | pd.DataFrame | Iterable[DeploymentOutcome]"

_SPAN_METRICS: Final = {
    "costUsd": ("cost_usd",),
    "inputTokens": ("input_tokens",),
    "outputTokens": ("output_tokens",),
    "tokens": ("input_tokens", "output_tokens"),
}
_RUN_METRICS: Final[dict[str, Extractor]] = {
    "score": lambda run: run.outcome.score if run.outcome else None,
    "overallScore": lambda run: run.outcome.score if run.outcome else None,
    "pass": lambda run: run.outcome.passed if run.outcome else None,
    "durationMs": lambda run: None if run.ended_at is None else run.ended_at - run.started_at,
    "failureClass": lambda run: float(run.failure_class == "success"),
}
_GATE_COLUMNS: Final = ("gated", "realness.gated", "outcome.realness.gated")
NOT_RUBRICS: Final = {"run_id", "scenario_id", "started_at", "ended_at", "seed", "split_tag", *_GATE_COLUMNS}


@dataclass(frozen=True)
class RunTable:
    """Runs of any source: ids, start (None: unknown), gate, and how to get a column by its name.

    ``column`` refuses names that ``knows`` does not know: a typing slip must not look like missing data.
    """

    ids: list[str]
    started: Floats | None
    gated: NDArray[np.bool_]
    column: Callable[[str], Floats]
    labels: Callable[[str], Sequence[Any] | None]
    knows: Callable[[str], bool]
    rubrics: tuple[str, ...] = ()


def run_table(runs: Runs, extractors: Mapping[str, Extractor] | None = None) -> RunTable:
    """Return the runs of a store, of a DataFrame or of run records as one kind of table."""
    extra = dict(extractors or {})
    if isinstance(runs, RunTable):
        return runs
    if isinstance(runs, TraceStore):
        return _store_table(runs, extra)
    if extra:
        raise InputError(f"eval_metrics: extractors need a TraceStore, got {type(runs).__name__}: add a column instead")
    if hasattr(runs, "columns"):
        return _frame_table(cast("pd.DataFrame", runs))
    if isinstance(runs, str | bytes | Mapping) or not isinstance(runs, Iterable):
        raise InputError(f"runs must be a TraceStore, a DataFrame or RunRecords, got {type(runs).__name__}")
    return _record_table(list(runs))


def is_gated(result: Any) -> bool:
    """Return whether the realness verdict of a run's outcome is that the run faked it."""
    if result is None:
        return False
    # Not a field of every record; pydantic's own look-up of absent ones is slow.
    realness = (
        result.realness if "realness" in type(result).model_fields else (result.model_extra or {}).get("realness")
    )
    return bool(realness.get("gated") if isinstance(realness, Mapping) else getattr(realness, "gated", False))


def _floats(values: list[Any], name: str) -> Floats:
    if set(map(type, values)) <= {float, int, bool, np.float64, type(None)}:  # the quick road
        array = np.array(values, dtype=np.float64)
        array[~np.isfinite(array)] = math.nan
        return array
    return require_floats(np.array(values, dtype=object), f"eval metric {name!r}")


def _refuse_repeats(ids: list[str], place: str) -> None:
    if len(set(ids)) < len(ids):
        first = next(name for k, name in enumerate(ids) if name in ids[:k])
        raise InputError(f"{place}: run id {first!r} stands twice; a run counts once, merge or rename its rows")


def _store_table(store: TraceStore, extractors: Mapping[str, Extractor]) -> RunTable:
    runs = store.runs()
    sums: dict[str, Floats] = {}

    def spans(names: tuple[str, ...]) -> Floats:
        if not sums:
            place = {run.run_id: k for k, run in enumerate(runs)}
            sums.update({name: np.full(len(runs), math.nan) for name in ("cost_usd", "input_tokens", "output_tokens")})
            for span in store.spans(kind="llm"):
                k = place.get(span.run_id)
                for name, total in sums.items() if k is not None else ():
                    value = getattr(span, name)
                    if value is not None:
                        total[k] = value + (0.0 if math.isnan(total[k]) else total[k])
        return np.asarray(np.sum([sums[name] for name in names], axis=0))

    def column(name: str) -> Floats:
        metric = name if name in extractors else to_camel(name)
        if metric in _SPAN_METRICS and metric not in extractors:
            return spans(_SPAN_METRICS[metric])
        extract = extractors.get(metric) or _RUN_METRICS.get(metric)
        if extract is None:
            known = ", ".join(map(repr, [*_RUN_METRICS, *_SPAN_METRICS]))
            raise InputError(
                f"eval_metrics: {name!r} is no metric of a run; known are {known}; others need an extractor: "
                f"eval_metrics={{{name!r}: function of a run}}"
            )
        return _floats([extract(run) for run in runs], name)

    def labels(name: str) -> list[Any] | None:
        if runs and not hasattr(runs[0], name):
            return None
        return [getattr(run, name) for run in runs]

    started = np.array([run.started_at for run in runs], dtype=np.float64)
    gated = np.array([is_gated(run) or is_gated(run.outcome) for run in runs], dtype=bool)
    known = {*extractors, *_RUN_METRICS, *_SPAN_METRICS}
    return RunTable(
        [run.run_id for run in runs], started, gated, column, labels, lambda name: bool({name, to_camel(name)} & known)
    )


def _record_table(records: list[RunRecord]) -> RunTable:
    for k, record in enumerate(records):
        if not hasattr(record, "run_id") or not hasattr(record, "outcome"):
            raise InputError(f"runs item {k} must be a RunRecord, got {type(record).__name__}: use parse_run_record")
    ids = [record.run_id for record in records]
    _refuse_repeats(ids, "runs")
    rubrics = tuple(dict.fromkeys(name for record in records for name in record.outcome.raw))
    fields: dict[str, Callable[[RunRecord], Any]] = {
        "searchScore": lambda record: record.outcome.search_score,
        "holdoutScore": lambda record: record.outcome.holdout_score,
        "costUsd": lambda record: record.cost_usd,
        "wallMs": lambda record: record.wall_ms,
    }

    def knows(name: str) -> bool:
        return name in rubrics or to_camel(name) in fields

    def column(name: str) -> Floats:
        if records and not knows(name):
            known = ", ".join(map(repr, [*rubrics, *fields]))
            raise InputError(f"eval_metrics: no run has {name!r}; known are {known}: check the name")
        extract = fields.get(to_camel(name)) if name not in rubrics else None
        values = [extract(record) if extract else record.outcome.raw.get(name) for record in records]
        return _floats(values, name)

    gated = np.array([is_gated(record.outcome) for record in records], dtype=bool)
    return RunTable(
        ids, None, gated, column, lambda name: [getattr(record, name, None) for record in records], knows, rubrics
    )


def _ids(frame: pd.DataFrame, argument: str) -> list[str]:
    require_columns(frame, ["run_id"], argument)
    missing = frame["run_id"].isna().to_numpy()
    if missing.any():
        raise InputError(f"{argument}: row {int(np.argmax(missing))} has no run_id: drop it, or give it one")
    return [str(name) for name in frame["run_id"]]


def _frame_table(frame: pd.DataFrame) -> RunTable:
    ids = _ids(frame, "runs")
    _refuse_repeats(ids, "runs")
    prefixes = ("", "outcome.raw.", "outcome.")

    def column(name: str) -> Floats:
        return require_floats(frame[_find(frame, name, prefixes, "runs")], f"runs[{name!r}]")

    gate = next((name for name in _GATE_COLUMNS if name in frame.columns), None)
    gated = np.zeros(len(ids), dtype=bool) if gate is None else require_floats(frame[gate], f"runs[{gate!r}]") == 1
    raw = [str(c)[12:] for c in frame.columns if str(c).startswith("outcome.raw.")]
    numeric = [str(c) for c in frame.columns if c not in NOT_RUBRICS and frame[c].dtype.kind in "biuf"]
    return RunTable(
        ids, _milliseconds(frame, "started_at", "runs"), gated, column,
        lambda name: list(frame[name]) if name in frame.columns else None,
        lambda name: any(prefix + name in frame.columns for prefix in prefixes), tuple(raw or numeric),
    )  # fmt: skip


def outcome_columns(
    outcomes: Outcomes, names: tuple[str, ...], chosen: Mapping[str, Any] | None
) -> tuple[list[str], Floats | None, Floats]:
    """Return run ids, times (None: unknown) and values ``(outcomes, names)`` with NaN where there is none."""
    if hasattr(outcomes, "columns"):
        frame = cast("pd.DataFrame", outcomes)
        ids = _ids(frame, "outcomes")
        if chosen:
            raise InputError("outcome_filter is for stores: filter the DataFrame before it is handed in")
        columns = [
            require_floats(frame[_find(frame, name, ("", "metrics."), "outcomes")], f"outcomes[{name!r}]")
            for name in names
        ]
        values = np.column_stack(columns) if columns else np.empty((len(frame), 0))
        return ids, _milliseconds(frame, "captured_at", "outcomes"), values
    if isinstance(outcomes, OutcomeStore):
        try:
            records = outcomes.outcomes(**(chosen or {}))
        except TypeError as error:
            raise InputError(f"outcome_filter: {error}; known are run_ids, labels, source, since, until") from None
    elif chosen:
        raise InputError("outcome_filter is for stores: filter the outcomes before they are handed in")
    elif isinstance(outcomes, str | bytes | Mapping) or not isinstance(outcomes, Iterable):
        raise InputError(f"outcomes must be an OutcomeStore, a DataFrame or outcomes, got {type(outcomes).__name__}")
    else:
        records = [build(DeploymentOutcome, outcome, f"outcomes item {k}") for k, outcome in enumerate(outcomes)]
    values = np.array([[record.metrics.get(name) for name in names] for record in records], dtype=np.float64)
    values[~np.isfinite(values)] = math.nan
    captured = np.array([record.captured_at for record in records], dtype=np.float64)
    return [record.run_id for record in records], captured, values.reshape(len(records), len(names))


def _find(frame: pd.DataFrame, name: str, prefixes: tuple[str, ...], argument: str) -> str:
    found = next((prefix + name for prefix in prefixes if prefix + name in frame.columns), name)
    require_columns(frame, [found], argument)
    return found


def _milliseconds(frame: pd.DataFrame, name: str, argument: str) -> Floats | None:
    """Return a column of times in milliseconds since 1970; datetimes are converted, numbers are taken as they are."""
    if name not in frame.columns:
        return None
    column = frame[name]
    if column.dtype.kind == "M":
        import pandas as pd

        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return np.asarray((column - pd.Timestamp(0)) / pd.Timedelta(milliseconds=1), dtype=np.float64)
    return require_floats(column, f"{argument}[{name!r}]")
