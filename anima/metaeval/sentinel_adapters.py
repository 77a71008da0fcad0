"""Snapshots of a judge's health from the results that measure it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from anima.checks import require_number, show
from anima.errors import DegenerateDataWarning, InputError
from anima.metaeval.records import is_finite
from anima.metaeval.snapshot import SentinelMetric, SentinelSnapshot, validate_sentinel_snapshot
from anima.metaeval.tables import read_table, refuse_repeats
from anima.stats.agreement import share_estimate
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
