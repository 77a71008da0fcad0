"""Snapshots of a judge's health, the points of its history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, Self, get_args

from pydantic import Field, model_validator

from anima.checks import require_instant
from anima.errors import DataError, InputError, RecordError
from anima.metaeval.records import MISSING, Record, build, is_finite, js

if TYPE_CHECKING:
    from datetime import datetime

SentinelMetric = Literal["irr", "calibrationKappa", "sentinelPassRate"]
SENTINEL_METRICS: Final[tuple[SentinelMetric, ...]] = get_args(SentinelMetric)
_FIELDS: Final = dict(zip(SENTINEL_METRICS, ("irr", "calibration_kappa", "sentinel_pass_rate"), strict=True))
_FLOOR: Final = {"irr": -1.0, "calibrationKappa": -1.0, "sentinelPassRate": 0.0}
_ROUNDING: Final = 1e-9  # 1.0000000000000002 is a coefficient of 1


class _PerMetric(Record):
    """Something for each sentinel metric, absent where not measured."""

    def get(self, metric: SentinelMetric) -> Any:
        """Return the entry of a metric by its name in JSON, e.g. ``"calibrationKappa"``; None if absent."""
        return getattr(self, _FIELDS[metric])


class SentinelMetrics(_PerMetric):
    """Inter-rater reliability, kappa against human labels, and the share of a fixed set still judged as before."""

    irr: float | None = None
    calibration_kappa: float | None = None
    sentinel_pass_rate: float | None = None


class SentinelSizes(_PerMetric):
    """Number of items behind each metric."""

    irr: int | None = None
    calibration_kappa: int | None = None
    sentinel_pass_rate: int | None = None


Interval = Annotated[tuple[float, float], Field(strict=False)]


class SentinelIntervals(_PerMetric):
    """Interval of each metric, (low, high)."""

    irr: Interval | None = None
    calibration_kappa: Interval | None = None
    sentinel_pass_rate: Interval | None = None


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
