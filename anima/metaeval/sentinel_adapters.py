"""Snapshots of a judge's health from the results that measure it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from anima.checks import require_columns, require_number, show
from anima.errors import DegenerateDataWarning, InputError
from anima.metaeval.records import is_finite
from anima.metaeval.snapshot import SentinelMetric, SentinelSnapshot, validate_sentinel_snapshot
from anima.stats.agreement import wilson_interval
from anima.stats.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

_SLACK = 1e-9  # 0.4 lies within 0.1 of 0.3, although 0.4 - 0.3 > 0.1 in binary


def snapshot_from_calibration(report: Any, *, at: str | datetime, judge_id: str, judge_model: str) -> SentinelSnapshot:
    """Return a snapshot of kappa against human labels, with its n and interval.

    Parameters
    ----------
    report
        Result of a judge calibration (ours, or the reference package's as a mapping), or an
        :class:`~anima.stats.Estimate` of kappa. The continuous weighted kappa is taken where there is one.
    at, judge_id, judge_model
        When (ISO-8601 with a zone, or an aware datetime), which judge, and the exact model behind it.

    Raises
    ------
    InputError
        If kappa is undefined, or its interval is no 95 % one.
    """
    found = _find(report, ("weighted_kappa_continuous", "kappa"), ("weightedKappa", "weighted_kappa"))
    need = "calibrate against at least 2 joined golden items of at least 2 categories first"
    return _snapshot("calibrationKappa", "kappa", need, found, at, judge_id, judge_model)


def snapshot_from_agreement(report: Any, *, at: str | datetime, judge_id: str, judge_model: str) -> SentinelSnapshot:
    """Return a snapshot of the agreement among raters: the overall intraclass correlation where there is one.

    Parameters
    ----------
    report
        Result of an agreement study (ours or a mapping), or an :class:`~anima.stats.Estimate`.
    at, judge_id, judge_model
        As in :func:`snapshot_from_calibration`.
    """
    found = _find(report, ("overall_icc", "icc"), ("icc",))
    need = "agreement needs at least 2 raters and 2 complete items that differ"
    return _snapshot("irr", "the intraclass correlation", need, found, at, judge_id, judge_model)


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
    at, judge_id, judge_model
        As in :func:`snapshot_from_calibration`.
    """
    require_number(tolerance, "tolerance", low=0)
    people: dict[str, float] = {}
    for item, value in _scores(golden, "golden", ("human_score", "humanScore")):
        if item in people:
            raise InputError(f"golden has item {item!r} twice: keep one human score per item")
        people[item] = _finite(value, "golden", item)
    passed: dict[str, list[bool]] = {}
    for item, value in _scores(scores, "scores", ("score",)):
        if item in people:
            distance = abs(_finite(value, "scores", item) - people[item])
            passed.setdefault(item, []).append(distance <= tolerance + _SLACK)
    if not passed:
        raise InputError(
            "scores and golden have no item in common: check the item ids, or whether the judge ran at all"
        )
    if left := len(people) - len(passed):
        warnings.warn(
            f"snapshot of judge {judge_id!r}: {left} of {len(people)} golden items have no score and do not count",
            DegenerateDataWarning, stacklevel=2,
        )  # fmt: skip
    every = [hit for hits in passed.values() for hit in hits]
    share, n = sum(every) / len(every), len(passed)
    low, high = (float(end) for end in wilson_interval(share * n, n))
    return _build("sentinelPassRate", share, n, (low, high), at, judge_id, judge_model)


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
            interval = next((intervals[key] for key in wanted if key in intervals), None)
            return value, _get(report, "n"), interval, ""
    raise InputError(f"report must have {' or '.join(names)}, or be an Estimate; got {show(report)}")


def _get(report: Any, key: str) -> Any:
    return report.get(key) if isinstance(report, Mapping) else getattr(report, key, None)


def _of_estimate(value: Estimate) -> tuple[Any, Any, Any, str]:
    if value.has_interval and abs(value.level - 0.95) > 1e-9:
        raise InputError(f"{value.name} has a {value.level:.0%} interval: snapshots carry 95 % ones, pass level=0.95")
    interval = (value.low, value.high) if value.has_interval else None
    return value.value, value.n or None, interval, value.reason if not value.defined else ""


def _snapshot(
    metric: SentinelMetric,
    noun: str,
    need: str,
    found: tuple[Any, Any, Any, str],
    at: str | datetime,
    judge_id: str,
    judge_model: str,
) -> SentinelSnapshot:
    value, n, interval, reason = found
    if not is_finite(value):
        raise InputError(f"{noun} is undefined (n = {n if n is not None else 'unknown'}): {reason or need}")
    if not (is_finite(n) and n >= 1):
        n = None
    if interval is not None and not all(is_finite(end) for end in interval):
        interval = None
    return _build(metric, value, n, interval, at, judge_id, judge_model)


def _build(
    metric: SentinelMetric,
    value: float,
    n: Any,
    interval: Any,
    at: str | datetime,
    judge_id: str,
    judge_model: str,
) -> SentinelSnapshot:
    wire: dict[str, Any] = {
        "at": at.isoformat() if isinstance(at, datetime) else at, "judgeId": judge_id, "judgeModel": judge_model,
        "metrics": {metric: float(value)},
    }  # fmt: skip
    if n is not None:
        wire["n"] = {metric: int(n)}
    if interval is not None:
        wire["interval"] = {metric: [float(interval[0]), float(interval[1])]}
    return validate_sentinel_snapshot(wire)


def _scores(values: Any, name: str, keys: tuple[str, ...]) -> list[tuple[str, Any]]:
    if isinstance(values, Mapping):
        return list(values.items())
    if hasattr(values, "columns"):
        key = next((key for key in keys if key in values.columns), keys[0])
        item = "itemId" if "itemId" in values.columns else "item_id"
        require_columns(values, (item, key), name)
        return list(zip(values[item].tolist(), values[key].tolist(), strict=True))
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(
            f"{name} must map items to scores or list records with item_id and {keys[0]}, got {show(values)}"
        )
    out = []
    for i, record in enumerate(values):
        item = _get(record, "item_id") or _get(record, "itemId")
        value = next((found for found in (_get(record, key) for key in keys) if found is not None), None)
        if not item:
            raise InputError(f"{name}[{i}] has no item_id: {show(record)}")
        out.append((item, value))
    return out


def _finite(value: Any, name: str, item: str) -> float:
    if not is_finite(value):
        raise InputError(f"{name}: the score of item {item!r} must be a finite number, got {show(value)}")
    return float(value)
