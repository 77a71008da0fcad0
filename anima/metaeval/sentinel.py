"""The judge sentinel: whether a judge is still the judge that was calibrated.

A history of snapshots (agreement among raters, kappa against human labels, pass rate on a fixed set) is judged for one
moment that the caller names; nothing here reads a clock. The default rule sets the chance of a false drift alarm and
uses the precision of each snapshot; ``rule="reference"`` is the rule of the reference package. On 2,000 simulated
histories each (``tests/metaeval/sentinel_table.py``, kappa, 200 items per snapshot) a judge that does not change is
accused within 30 snapshots in 3 to 5 % by ours and in 9 to 76 % by theirs at kappa .9 or .7; a decline from .90 to .80
over ten snapshots after ten steady ones is caught in 91 % by ours and 47 % by theirs (classes 50:50).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from anima.checks import require_choice, require_instant, require_number, show
from anima.errors import InputError
from anima.metaeval.health_report import (
    AlarmKind,
    Health,
    Rule,
    SentinelAlarm,
    SentinelReport,
    SentinelRow,
    SentinelThresholds,
)
from anima.metaeval.sentinel_drift import DriftScore, drift_score
from anima.metaeval.snapshot import SENTINEL_METRICS, SentinelMetric, SentinelSnapshot, validate_sentinel_snapshot
from anima.metaeval.stores import SentinelStore
from anima.stats.drift import series_state
from anima.stats.estimate import Estimate

if TYPE_CHECKING:
    from anima.stats.weighted import Floats

Dated: TypeAlias = tuple[datetime, SentinelSnapshot]
History: TypeAlias = SentinelStore | Iterable[SentinelSnapshot | Mapping[str, Any]]
_SLACK = 1e-9  # a drop of exactly the limit is not more than the limit, whatever its last binary digit


def judge_sentinel_report(
    history: History,
    *,
    as_of: str | datetime | None = None,
    thresholds: SentinelThresholds | Mapping[str, Any] | None = None,
    baselines: Mapping[SentinelMetric, float | Estimate] | None = None,
    rule: Rule = "anima",
) -> SentinelReport:
    """Return the health of every judge in a history, for one moment.

    Parameters
    ----------
    history
        A sentinel store, or snapshots (records or mappings as in JSON) in any order.
    as_of
        The moment: ISO-8601 with a zone, or an aware datetime; by default the time of the newest snapshot, so that the
        same history always gives the same report.
    thresholds
        See :class:`SentinelThresholds`; a mapping of some of them will do.
    baselines
        Levels known beforehand, by metric, for the models now in use: a number is taken as exact, an
        :class:`~anima.stats.Estimate` with its interval. By default the history itself is the baseline.
    rule
        ``"anima"``: see Notes. ``"reference"``: drift is three falling steps with a variation above 5 %, the baseline
        is the oldest snapshot ever, only ``irr`` has a floor, there is no unknown health and no history is healthy.

    Notes
    -----
    Alarms of the default rule: *stale*, the newest snapshot is too old; *future*, snapshots are dated after ``as_of``
    (they are left out); *silent-upgrade*, the model changed and neither kappa nor pass rate was measured since;
    *drifting*, the metric has fallen, at once or slowly, more than chance would have it
    (:mod:`anima.metaeval.sentinel_drift`; the rate of false alarms is shared out among the judge's metrics); *drop*,
    the same and the fall is beyond its limit; *below-floor*, the newest value is below its floor.

    After a change of model that was followed by a calibration, the baseline starts anew; the row keeps the level
    before.

    A metric's health is unknown when it has too few snapshots, no precision (neither ``n`` nor interval) and fewer than
    eight, when it was not measured since the model changed or for too long, or when a fall beyond the limit could still
    be chance.

    Examples
    --------
    >>> meta = {"judgeId": "J", "judgeModel": "m@1", "n": {"calibrationKappa": 300}}
    >>> history = [
    ...     meta | {"at": f"2026-01-{day:02}T00:00:00Z", "metrics": {"calibrationKappa": kappa}}
    ...     for day, kappa in enumerate([0.90, 0.88, 0.91, 0.89, 0.62], start=1)
    ... ]
    >>> report = judge_sentinel_report(history)
    >>> report.health, [alarm.kind for alarm in report.alarms]
    ('alarmed', ['drifting', 'drop'])
    >>> judge_sentinel_report(history[:1]).health, judge_sentinel_report([]).health
    ('unknown', 'unknown')
    """
    require_choice(rule, "rule", ("anima", "reference"))
    limits = SentinelThresholds.of(thresholds)
    known = _baselines(baselines)
    if known and rule == "reference":
        raise InputError("baselines has no meaning with rule='reference': leave it out")
    snapshots = _snapshots(history)
    moment, said = _moment(as_of, snapshots)
    judges = sorted({snapshot.judge_id for _, snapshot in snapshots})
    by_judge: dict[str, list[Dated]] = {judge: [] for judge in judges}
    for pair in snapshots:
        by_judge[pair[1].judge_id].append(pair)
    parts = [_Judge(judge, pairs, moment, limits, known, rule) for judge, pairs in by_judge.items()]
    for part in parts:
        part.judge()
    verdicts: dict[str, Health] = {part.name: part.health for part in parts}
    unknown = [text for part in parts for text in part.unknown]
    if not judges and rule == "anima":
        unknown.append("There is no snapshot of any judge.")
    worst: Health = "alarmed" if "alarmed" in verdicts.values() else "unknown" if unknown else "healthy"
    return SentinelReport(
        health=worst,
        rows=tuple(row for part in parts for row in part.rows),
        alarms=tuple(alarm for part in parts for alarm in part.alarms),
        unknown=tuple(unknown),
        insufficient_history=tuple(
            f"{row.judge_id}:{row.metric}" for part in parts for row in part.rows if row.state == "insufficient-data"
        ),
        as_of=said, rule=rule, thresholds=limits, judges=verdicts, n_future=sum(part.n_future for part in parts),
        snapshots=tuple(snapshot for part in parts for _, snapshot in part.snapshots),
    )  # fmt: skip


class _Judge:
    """One judge under judgement: fills ``rows``, ``alarms`` and ``unknown``."""

    def __init__(
        self, name: str, snapshots: list[Dated], moment: datetime, limits: SentinelThresholds,
        known: Mapping[SentinelMetric, tuple[float, float]], rule: Rule,
    ) -> None:  # fmt: skip
        self.name, self.moment, self.limits, self.known, self.rule = name, moment, limits, known, rule
        self.snapshots = sorted(snapshots, key=lambda pair: pair[0])  # stable: equal times keep their order
        self.rows: list[SentinelRow] = []
        self.alarms: list[SentinelAlarm] = []
        self.unknown: list[str] = []
        self.n_future = 0

    @property
    def health(self) -> Health:
        return "alarmed" if self.alarms else "unknown" if self.unknown else "healthy"

    def judge(self) -> None:
        ours = self.rule == "anima"
        used = [pair for pair in self.snapshots if pair[0] <= self.moment] if ours else self.snapshots
        self.n_future = len(self.snapshots) - len(used)
        if used and (age := self._age(used[-1][0])):
            self._alarm("stale", f"the newest snapshot, {used[-1][1].at}, is {age}")
        if self.n_future and self.limits.future == "alarm":
            first = self.snapshots[len(used)][1].at
            said = f"{self.n_future} snapshots, from {first}, are dated after the moment judged: not used"
            self._alarm("future", said)
        changes, start = _changes([snapshot for _, snapshot in used])
        if changes and start != changes[-1]:
            before, after = used[changes[-1] - 1][1], used[changes[-1]][1]
            self._alarm(
                "silent-upgrade",
                f'the model changed from "{before.judge_model}" to "{after.judge_model}" at {after.at} and was not '
                "calibrated since: run the calibration or the sentinel set again",
            )
        for metric in SENTINEL_METRICS:
            if any(snapshot.metrics.get(metric) is not None for _, snapshot in used):
                self.rows.append(self._ours(metric, used, start) if ours else self._reference(metric, used))
        if ours and not self.rows:
            self.unknown.append(f'Judge "{self.name}": no metric was ever measured.')

    def _age(self, newest: datetime) -> str:
        """Return the age of a snapshot in words if it is over the limit."""
        days = (self.moment - newest).total_seconds() / 86_400
        limit = self.limits.stale_after_days
        return f"{days:.1f} days old (limit {limit:g})" if limit is not None and days > limit else ""

    def _alarm(self, kind: AlarmKind, message: str, metric: SentinelMetric | None = None) -> None:
        self.alarms.append(SentinelAlarm(kind, self.name, message, metric))

    def _finish(self, row: SentinelRow, problems: list[tuple[AlarmKind, str]], doubts: list[str]) -> SentinelRow:
        for kind, message in problems:
            self._alarm(kind, message, row.metric)
        reason = "; ".join([message for _, message in problems] + doubts)
        if not problems:
            self.unknown.extend(f'Judge "{self.name}" {row.metric}: {doubt}.' for doubt in doubts)
        health: Health = "alarmed" if problems else "unknown" if doubts else "healthy"
        return replace(row, health=health, alarmed=bool(problems), reason=reason)

    def _ours(self, metric: SentinelMetric, used: list[Dated], start: int) -> SentinelRow:
        limits = self.limits
        before, series = (_series(metric, part) for part in (used[:start], used[start:]))
        since = used[start][1].at if start else None
        t = series.shape[1]
        head: dict[str, Any] = {
            "judge_id": self.name, "metric": metric, "health": "unknown", "n_snapshots": t, "since": since,
            "previous_baseline": _mean(before),
        }  # fmt: skip
        if not t:
            row = SentinelRow(**head, state="insufficient-data", current=math.nan, baseline=math.nan, drift=math.nan)
            return self._finish(row, [], [f"not measured since the model changed at {since}"])
        level, half_width = self.known.get(metric, (math.nan, math.nan))
        watched = sum(
            any(snapshot.metrics.get(name) is not None for _, snapshot in used[start:]) for name in SENTINEL_METRICS
        )
        score = drift_score(
            metric,
            *series,
            level=level,
            level_half_width=half_width,
            alpha=limits.alpha / watched,
            horizon=limits.horizon,
        )
        current = float(series[0, -1])
        first = min(limits.baseline_snapshots, max(t - 1, 1))
        baseline = level if not math.isnan(level) else _mean(series[:, :first])
        thin = t < limits.min_snapshots and math.isnan(level)
        falling, rising = score.tested and score.fall > score.limit, score.tested and score.rise > score.limit
        row = SentinelRow(
            **head, current=current, baseline=baseline, drift=current - baseline, limit=score.limit,
            statistic=score.fall if math.isfinite(score.fall) else math.nan, note=score.note if score.tested else "",
            state="drifting-down" if falling else "drifting-up" if rising else "steady" if score.tested and not thin
            else "insufficient-data",
        )  # fmt: skip
        problems, doubts = self._problems(row, score, falling=falling), []
        if thin:
            doubts.append(f"{t} snapshots, at least {limits.min_snapshots} are needed, or a known baseline")
        elif not score.tested:
            doubts.append(score.note)
        largest = limits.largest_drop(metric)
        if largest is not None and not falling and -row.drift > largest + _SLACK:
            doubts.append(
                f"{-row.drift:.3f} below the baseline {baseline:.3f} (limit {largest:g}), which could still be chance"
            )
        when, newest = next(pair for pair in reversed(used) if pair[1].metrics.get(metric) is not None)
        if when != used[-1][0] and (age := self._age(when)):
            doubts.append(f"last measured at {newest.at}, {age}")
        return self._finish(row, problems, doubts)

    def _problems(self, row: SentinelRow, score: DriftScore, *, falling: bool) -> list[tuple[AlarmKind, str]]:
        found: list[tuple[AlarmKind, str]] = []
        if falling:
            errors = f"{score.fall:.1f} standard errors (limit {score.limit:.1f})"
            found.append(("drifting", f"has fallen to {row.current:.3f}, {errors}"))
        floor, largest = self.limits.floor(row.metric), self.limits.largest_drop(row.metric)
        if floor is not None and row.current < floor:
            found.append(("below-floor", f"{row.current:.3f} is below the floor {floor:g}"))
        if falling and largest is not None and -row.drift > largest + _SLACK:
            found.append(("drop", f"{-row.drift:.3f} below the baseline {row.baseline:.3f} (limit {largest:g})"))
        return found

    def _reference(self, metric: SentinelMetric, used: list[Dated]) -> SentinelRow:
        limits = self.limits
        values = _series(metric, used)[0].tolist()
        state = series_state(values, window=limits.window, stable_cv=limits.stable_cv, drift_run=limits.drift_run)
        current, baseline = values[-1], values[0]
        problems: list[tuple[AlarmKind, str]] = []
        if state.state == "drifting-down":
            steps = f"{-state.tail_run} falling steps in a row, mean of the window {state.window_mean:.3f}"
            problems.append(("drifting", steps))
        if metric == "irr" and limits.min_irr is not None and current < limits.min_irr:
            problems.append(("below-floor", f"{current:.3f} is below the floor {limits.min_irr:g}"))
        largest = limits.largest_drop(metric)
        if largest is not None and baseline - current > largest:
            problems.append(("drop", f"{baseline - current:.3f} below the oldest {baseline:.3f} (limit {largest:g})"))
        row = SentinelRow(
            self.name, metric, "healthy", state.state, current, baseline, current - baseline, n_snapshots=len(values)
        )
        return self._finish(row, problems, [])


def _series(metric: SentinelMetric, pairs: list[Dated]) -> Floats:
    """Return values, sizes, and ends of the intervals of a metric where it was measured, ``(4, t)``; NaN if unknown."""
    rows = [snapshot.measured(metric) for _, snapshot in pairs if snapshot.metrics.get(metric) is not None]
    return np.array(rows, dtype=np.float64).reshape(-1, 4).T


def _mean(series: Floats) -> float:
    """Return the mean of the values, weighted by n where all have one; NaN without any."""
    values, sizes = series[:2]
    return float(np.average(values, weights=None if np.isnan(sizes).any() else sizes)) if len(values) else math.nan


def _snapshots(history: History) -> list[Dated]:
    if isinstance(history, SentinelStore):
        history = history.history()
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
        raise InputError(f"history must be a sentinel store or a list of snapshots, got {show(history)}")
    checked = [validate_sentinel_snapshot(snapshot, f"history[{i}]") for i, snapshot in enumerate(history)]
    return [(snapshot.time, snapshot) for snapshot in checked]


def _moment(as_of: str | datetime | None, snapshots: list[Dated]) -> tuple[datetime, str | None]:
    if as_of is None:
        if not snapshots:
            return datetime.min, None
        moment, newest = max(snapshots, key=lambda pair: pair[0])
        return moment, newest.at
    text = as_of.isoformat() if isinstance(as_of, datetime) else as_of
    return require_instant(text, "as_of"), text


def _baselines(
    baselines: Mapping[SentinelMetric, float | Estimate] | None,
) -> dict[SentinelMetric, tuple[float, float]]:
    """Return level and half-width of its interval (NaN: exact) by metric."""
    known: dict[SentinelMetric, tuple[float, float]] = {}
    for name, value in (baselines or {}).items():
        metric = require_choice(name, "key of baselines", SENTINEL_METRICS)
        level, half = value, math.nan
        if isinstance(value, Estimate):
            if not value.has_interval:
                raise InputError(f"baselines[{metric!r}] has no interval: give its value as a number if it is exact")
            level, half = value.value, (value.high - value.low) / 2
        known[metric] = (require_number(level, f"baselines[{metric!r}]", low=-1, high=1), half)
    return known


def _changes(snapshots: list[SentinelSnapshot]) -> tuple[list[int], int]:
    """Return where the model changed, and the last of these that was followed by a calibration (0 if none was)."""
    changes = [i for i, (a, b) in enumerate(pairwise(snapshots), start=1) if a.judge_model != b.judge_model]
    start = 0
    for change, end in pairwise([*changes, len(snapshots)]):
        # Agreement among raters does not tell of the model: only a comparison with people counts.
        if any(s.metrics.get(name) is not None for s in snapshots[change:end] for name in SENTINEL_METRICS[1:]):
            start = change
    return changes, start
