"""Snapshots of a judge's health, the points of its history, and how they are made of the results that measure it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, NoReturn, Self, TypeVar, get_args

from pydantic import Field, model_validator

from anima.checks import require_instant, require_number, show
from anima.errors import DataError, DegenerateDataWarning, InputError, RecordError
from anima.metaeval.records import MISSING, Record, build, is_finite, js
from anima.metaeval.tables import read_table, refuse_repeats, require_same_ids
from anima.stats.agreement import share_estimate
from anima.stats.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

SentinelMetric = Literal["irr", "calibrationKappa", "sentinelPassRate"]
SENTINEL_METRICS: Final[tuple[SentinelMetric, ...]] = get_args(SentinelMetric)
_FIELDS: Final = dict(zip(SENTINEL_METRICS, ("irr", "calibration_kappa", "sentinel_pass_rate"), strict=True))
_FLOOR: Final = {"irr": -1.0, "calibrationKappa": -1.0, "sentinelPassRate": 0.0}
_ROUNDING: Final = 1e-9  # 1.0000000000000002 is a coefficient of 1
Interval = Annotated[tuple[float, float], Field(strict=False)]
V = TypeVar("V")


class _PerMetric(Record, Generic[V]):
    """Something for each sentinel metric, absent where not measured."""

    irr: V | None = None
    calibration_kappa: V | None = None
    sentinel_pass_rate: V | None = None

    def get(self, metric: SentinelMetric) -> V | None:
        """Return the entry of a metric by its name in JSON, e.g. ``"calibrationKappa"``."""
        entry: V | None = getattr(self, _FIELDS[metric])
        return entry


class SentinelMetrics(_PerMetric[float]):
    """Inter-rater reliability, kappa against human labels, and the share of a fixed set still judged as before."""


class SentinelSizes(_PerMetric[int]):
    """Number of items behind each metric."""


class SentinelIntervals(_PerMetric[Interval]):
    """Interval of each metric, (low, high)."""


class SentinelSnapshot(Record):
    """The health of a judge at one time.

    Parameters
    ----------
    at
        ISO-8601 time with a zone, as given; :attr:`time` is the instant.
    judge_id, judge_model
        The judge, and the exact model behind it.
    metrics
        What was measured; empty for a mere mark that the model changed.
    n, interval
        Ours, optional: items and interval behind each metric. The reference package keeps and ignores them.
    """

    at: str
    judge_id: str
    judge_model: str
    metrics: SentinelMetrics
    n: SentinelSizes | None = None
    interval: SentinelIntervals | None = None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check_sentinel_snapshot(self.to_dict())
        return self

    @property
    def time(self) -> datetime:
        """The instant in UTC."""
        return require_instant(self.at, "at")

    def measured(self, metric: SentinelMetric) -> tuple[float | None, int | None, float | None, float | None]:
        """Return value, n, and both ends of the interval of a metric; None where absent."""
        low, high = (self.interval.get(metric) if self.interval else None) or (None, None)
        return self.metrics.get(metric), self.n.get(metric) if self.n else None, low, high


def validate_sentinel_snapshot(snapshot: Any, source: str = "snapshot") -> SentinelSnapshot:
    """Return a snapshot, or raise :class:`~anima.errors.DataError` naming ``source``, field and value.

    Stricter than the reference package: times need a zone, metrics lie in their range, ``n`` and ``interval`` make
    sense, and whatever is no object is an error of the same kind.
    """
    if isinstance(snapshot, SentinelSnapshot):
        return snapshot
    check_sentinel_snapshot(snapshot, source)
    try:
        return build(SentinelSnapshot, snapshot, source)
    except InputError as problem:
        raise DataError(str(problem)) from None


def check_sentinel_snapshot(snapshot: Any, source: str = "snapshot") -> None:
    """Raise :class:`~anima.errors.RecordError` at the first rule that a snapshot, as in JSON, breaks."""

    def fail(path: str, problem: str) -> NoReturn:
        raise RecordError(f"judge-sentinel: {source}{'.' if path else ''}{path} {problem}")

    if not isinstance(snapshot, Mapping):
        fail("", f"is not an object: {js(snapshot)}")
    at = snapshot.get("at", MISSING)
    try:
        require_instant(at, "at")
    except InputError:
        shown = json.dumps(at) if isinstance(at, str) else js(at)
        fail("at", f"is not a parseable ISO timestamp: {shown}; give date, time and zone, as in 2026-01-05T10:00:00Z")
    for key in ("judgeId", "judgeModel"):
        if not isinstance(snapshot.get(key), str) or not snapshot[key]:
            fail(key, "must be a non-empty string")
    for key in ("metrics", "n", "interval"):
        values = snapshot.get(key) if key == "metrics" else snapshot.get(key, {})
        if not isinstance(values, Mapping):
            fail(key, f"must be an object, got {js(snapshot.get(key, MISSING))}")
        for name, value in values.items():
            if name not in SENTINEL_METRICS:
                fail(key, f'carries unknown key "{name}" — known: {", ".join(SENTINEL_METRICS)}')
            if key == "metrics":
                if not is_finite(value):
                    fail(f"{key}.{name}", f"is not a finite number: {js(value)}")
                if not _FLOOR[name] - _ROUNDING <= value <= 1 + _ROUNDING:
                    fail(f"{key}.{name}", f"must lie in [{_FLOOR[name]:g}, 1], got {js(value)}")
            elif key == "n" and not (isinstance(value, Integral) and is_finite(value) and int(value) > 0):
                fail(f"{key}.{name}", f"must be a positive whole number, got {js(value)}")
            elif key == "interval" and not (
                isinstance(value, list | tuple)
                and len(value) == 2
                and all(map(is_finite, value))
                and value[0] <= value[1]
            ):
                fail(f"{key}.{name}", f"must be two finite numbers [low, high], got {js(value)}")


_SLACK = 1e-9  # 0.4 lies within 0.1 of 0.3, although 0.4 - 0.3 > 0.1 in binary


def snapshot_from_calibration(report: Any, *, at: str | datetime, judge_id: str, judge_model: str) -> SentinelSnapshot:
    """Return a snapshot of kappa against human labels, with its n and interval.

    Parameters
    ----------
    report
        Result of a judge calibration (ours, or the reference package's as a mapping), or an
        :class:`~anima.stats.Estimate` of kappa; the continuous weighted kappa where there is one. It must be defined,
        its interval a 95 % one.
    at, judge_id, judge_model
        When (ISO-8601 with a zone, or an aware datetime), which judge, and the exact model behind it.
    """
    found = _find(report, ("weighted_kappa_continuous", "kappa"), ("weightedKappa", "weighted_kappa"))
    need = "calibrate against at least 2 joined golden items of at least 2 categories first"
    return _snapshot("calibrationKappa", found, at, judge_id, judge_model, f"kappa is undefined (n = %s): {need}")


def snapshot_from_agreement(report: Any, *, at: str | datetime, judge_id: str, judge_model: str) -> SentinelSnapshot:
    """Return a snapshot of the agreement among raters: the overall intraclass correlation where there is one.

    As :func:`snapshot_from_calibration`, from the result of an agreement study.
    """
    found = _find(report, ("overall_icc", "icc"), ("icc",))
    need = "the intraclass correlation is undefined (n = %s): at least 2 raters and 2 complete items that differ are needed"
    return _snapshot("irr", found, at, judge_id, judge_model, need)


def snapshot_from_sentinel_set(
    scores: Mapping[str, float] | Iterable[Mapping[str, Any]] | pd.DataFrame,
    golden: Mapping[str, float] | Iterable[Mapping[str, Any]] | pd.DataFrame,
    *,
    at: str | datetime,
    judge_id: str,
    judge_model: str,
    tolerance: float = 0.1,
) -> SentinelSnapshot:
    """Return a snapshot of the share of a fixed set that the judge still scores as people did, with Wilson's interval.

    Parameters
    ----------
    scores, golden
        Item to score; or records (or a DataFrame) of ``item_id`` with ``score`` or ``human_score`` (camelCase will do).
        Scores of unknown items do not count; several scores of one item all count, as one item in ``n``; golden items
        without a score are left out with a warning, because a judge that fails on the hard ones must not look better.
    tolerance
        Largest distance that passes, on the scale of the scores.
    """
    require_number(tolerance, "tolerance", low=0)
    people = read_table(golden, ["item_id", "human_score"], "golden").astype({"item_id": object})
    given = read_table(scores, ["item_id", "score"], "scores").astype({"item_id": object})
    refuse_repeats(people, ["item_id"], "golden")
    require_same_ids(given["item_id"], people["item_id"], ("scores", "golden"))
    joined = given.merge(people[["item_id", "human_score"]], on="item_id")
    for table, column, name in ((people, "human_score", "golden"), (joined, "score", "scores")):
        for item, value in zip(table["item_id"], table[column], strict=True):
            if not is_finite(value):
                raise InputError(f"{name}: the score of item {item!r} must be a finite number, got {show(value)}")
    if joined.empty:
        raise InputError(
            "scores and golden have no item in common: check the item ids, or whether the judge ran at all"
        )
    n = int(joined["item_id"].nunique())
    if left := len(people) - n:
        warnings.warn(
            f"snapshot of judge {judge_id!r}: {left} of {len(people)} golden items have no score and do not count",
            DegenerateDataWarning, stacklevel=2,
        )  # fmt: skip
    passed = (joined["score"] - joined["human_score"]).abs() <= tolerance + _SLACK
    share = share_estimate(float(passed.mean()) * n, n, "share that passes")
    found = float(passed.mean()), n, (share.low, share.high), ""
    return _snapshot("sentinelPassRate", found, at, judge_id, judge_model)


def _find(report: Any, names: tuple[str, ...], ci_names: tuple[str, ...]) -> tuple[Any, Any, Any, str]:
    """Return value, n, interval and the reason of an undefined value from a result of either package."""
    if isinstance(report, Estimate):
        return _of_estimate(report)
    for name in names:
        head, *rest = name.split("_")
        spellings = (name, head + "".join(part.title() for part in rest))
        value = next((item for item in (_get(report, key) for key in spellings) if item is not None), None)
        if isinstance(value, Estimate):
            return _of_estimate(value)
        if value is not None:
            intervals = _get(report, "ci") or {}
            # The reference package gives intervals of its continuous results only.
            wanted = ci_names if name != "kappa" else ()
            return value, _get(report, "n"), next((intervals[key] for key in wanted if key in intervals), None), ""
    raise InputError(f"report must have {' or '.join(names)}, or be an Estimate; got {show(report)}")


def _get(report: Any, key: str) -> Any:
    return report.get(key) if isinstance(report, Mapping) else getattr(report, key, None)


def _of_estimate(value: Estimate) -> tuple[Any, Any, Any, str]:
    if value.has_interval and abs(value.level - 0.95) > 1e-9:
        raise InputError(f"{value.name} has a {value.level:.0%} interval: snapshots carry 95 % ones, pass level=0.95")
    return value.value, value.n or None, (value.low, value.high), value.reason if not value.defined else ""


def _snapshot(
    metric: SentinelMetric, found: tuple[Any, Any, Any, str], at: str | datetime, judge_id: str, judge_model: str,
    undefined: str = "",
) -> SentinelSnapshot:  # fmt: skip
    value, n, interval, reason = found
    if not is_finite(value):
        text = undefined % ("unknown" if n is None else n)
        raise InputError(f"{text.split(': ')[0]}: {reason}" if reason else text)
    wire: dict[str, Any] = {
        "at": at.isoformat() if isinstance(at, datetime) else at, "judgeId": judge_id, "judgeModel": judge_model,
        "metrics": {metric: float(value)},
    }  # fmt: skip
    if is_finite(n) and n >= 1:
        wire["n"] = {metric: int(n)}
    if interval is not None and all(map(is_finite, interval)):
        wire["interval"] = {metric: [float(end) for end in interval]}
    return validate_sentinel_snapshot(wire)
