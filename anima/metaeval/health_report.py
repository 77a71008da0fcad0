"""What the judge sentinel says: limits, alarms, one row per judge and metric, the report, and its stamp."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from anima.checks import require_choice, require_int, require_number
from anima.errors import InputError
from anima.stats.estimate import Presentable, json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from anima.metaeval.snapshot import SentinelMetric, SentinelSnapshot
    from anima.stats.drift import State

Health = Literal["healthy", "alarmed", "unknown"]
AlarmKind = Literal["stale", "future", "silent-upgrade", "drifting", "below-floor", "drop"]
Rule = Literal["anima", "reference"]


@dataclass(frozen=True)
class SentinelThresholds:
    """When the sentinel alarms. None switches a check off.

    Parameters
    ----------
    min_irr, min_kappa, min_sentinel
        Floors: a newest value below is an alarm, however steady (the reference rule knows the first only).
    max_kappa_drop, max_sentinel_drop
        Largest fall from the baseline that is tolerated.
    stale_after_days
        Age of the newest snapshot.
    alpha, horizon
        Chance that a judge which does not change is said to drift within so many snapshots, over all its metrics.
    baseline_snapshots
        The baseline is the mean of the first so many snapshots, the newest left out.
    min_snapshots
        With fewer, and no known baseline, a metric's health is unknown.
    future
        Snapshots dated after ``as_of`` are never used; ``"alarm"`` says so (a wrong clock), ``"ignore"`` looks back.
    window, stable_cv, drift_run
        Of the reference rule, see :func:`anima.stats.series_state`.
    """

    min_irr: float | None = 0.6
    min_kappa: float | None = 0.4
    min_sentinel: float | None = 0.6
    max_kappa_drop: float | None = 0.15
    max_sentinel_drop: float | None = 0.1
    stale_after_days: float | None = 30
    alpha: float = 0.05
    horizon: int = 30
    baseline_snapshots: int = 10
    min_snapshots: int = 3
    future: Literal["alarm", "ignore"] = "alarm"
    window: int = 5
    stable_cv: float = 0.05
    drift_run: int = 3

    def __post_init__(self) -> None:
        for item in fields(self)[:6]:
            if getattr(self, item.name) is not None:
                low = 0.0 if item.name.startswith(("max", "stale")) else -1.0
                require_number(getattr(self, item.name), f"thresholds.{item.name} (None switches it off)", low=low)
        require_number(self.alpha, "thresholds.alpha", low=0, high=0.5, open_low=True)
        for name, low_count in (("horizon", 1), ("baseline_snapshots", 1), ("min_snapshots", 2)):
            require_int(getattr(self, name), f"thresholds.{name}", low=low_count)
        require_choice(self.future, "thresholds.future", ("alarm", "ignore"))

    @classmethod
    def of(cls, value: SentinelThresholds | Mapping[str, Any] | None) -> SentinelThresholds:
        """Return thresholds from a mapping by either spelling (``min_irr`` or ``minIrr``)."""
        if value is None or isinstance(value, cls):
            return value or cls()
        from pydantic.alias_generators import to_snake

        names = [item.name for item in fields(cls)]
        given = {to_snake(str(key)): item for key, item in dict(value).items()}  # type: ignore[arg-type]
        for key in given:
            if key not in names:
                raise InputError(f"thresholds has no {key!r}; it knows {', '.join(names)}")
        return cls(**given)

    def floor(self, metric: SentinelMetric) -> float | None:
        """Return the floor of a metric."""
        return {"irr": self.min_irr, "calibrationKappa": self.min_kappa, "sentinelPassRate": self.min_sentinel}[metric]

    def largest_drop(self, metric: SentinelMetric) -> float | None:
        """Return the largest tolerated fall of a metric."""
        limits = {"calibrationKappa": self.max_kappa_drop, "sentinelPassRate": self.max_sentinel_drop}
        return limits.get(metric)


@dataclass(frozen=True)
class SentinelAlarm(Presentable):
    """One thing that is wrong; ``metric`` is None when it concerns the judge as a whole."""

    kind: AlarmKind
    judge_id: str
    message: str
    metric: SentinelMetric | None = None

    def summary(self) -> str:
        """Return one sentence."""
        return f'Judge "{self.judge_id}"{f" {self.metric}" if self.metric else ""}: {self.message}'


@dataclass(frozen=True)
class SentinelRow(Presentable):
    """One metric of one judge.

    ``current``, ``baseline`` and ``drift`` are the newest value, the level before and their difference, NaN if not
    measured; ``statistic`` and ``limit`` the fall in standard errors and the limit that makes it an alarm (NaN under
    the reference rule); ``n_snapshots`` counts from the last setting of the baseline. ``since`` says when the model
    last changed and was calibrated again, which set a new baseline (None if never), ``previous_baseline`` the level
    before that; ``reason`` what is wrong or unknown, ``note`` a remark on the test.
    """

    judge_id: str
    metric: SentinelMetric
    health: Health
    state: State | Literal["steady"]
    current: float
    baseline: float
    drift: float
    n_snapshots: int
    statistic: float = math.nan
    limit: float = math.nan
    since: str | None = None
    previous_baseline: float = math.nan
    alarmed: bool = False
    reason: str = ""
    note: str = ""

    def summary(self) -> str:
        """Return one sentence."""
        why = f": {self.reason}" if self.reason else ""
        return f'Judge "{self.judge_id}" {self.metric} is {self.health} at {self.current:.3f} ({self.state}){why}.'


@dataclass(frozen=True)
class SentinelReport(Presentable):
    """Health of every judge at one time, by :func:`anima.metaeval.judge_sentinel_report`.

    ``health`` is the worst of all judges (alarmed, then unknown, then healthy; no history is unknown), ``judges`` has
    each. Alarms come by judge (stale, future, silent upgrade), then by metric (drifting, below floor, drop);
    ``unknown`` says what cannot be told; ``insufficient_history`` names ``judge:metric`` with too few snapshots to
    judge a trend; ``as_of`` is None without a history; ``snapshots``, what was judged, is not part of ``to_dict``.
    """

    health: Health
    rows: tuple[SentinelRow, ...]
    alarms: tuple[SentinelAlarm, ...]
    unknown: tuple[str, ...]
    insufficient_history: tuple[str, ...]
    as_of: str | None
    rule: Rule
    thresholds: SentinelThresholds
    judges: Mapping[str, Health]
    n_future: int = 0
    snapshots: tuple[SentinelSnapshot, ...] = field(default=(), repr=False, compare=False)

    @property
    def healthy(self) -> bool:
        """Whether all is known to be well: False also when health is unknown."""
        return self.health == "healthy"

    def summary(self) -> str:
        """Return one sentence."""
        when = f" as of {self.as_of}" if self.as_of else ""
        return f"{len(self.judges)} judges{when}: {eval_health_stamp(self).summary()}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per judge and metric."""
        import pandas as pd

        return pd.DataFrame(map(vars, self.rows), columns=[item.name for item in fields(SentinelRow)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values, without the snapshots."""
        kept = {key: value for key, value in vars(self).items() if key != "snapshots"}
        return dict(json_ready(kept | {"healthy": self.healthy}))

    def _repr_html_(self) -> str:
        shown = ["judge_id", "metric", "health", "state", "current", "baseline", "n_snapshots", "reason"]
        table = self.to_frame()[shown].round(3).to_html(index=False) if self.rows else ""
        items = [alarm.summary() for alarm in self.alarms if alarm.metric is None] + list(self.unknown)
        notes = "".join(f"<li>{html.escape(item)}</li>" for item in items)
        return f"<p>{html.escape(self.summary())}</p>{table}{f'<ul>{notes}</ul>' if notes else ''}"

    def plot(self, *, title: str = "") -> Any:  # type: ignore[override]
        """Draw each metric over time with its intervals, baseline (dashed) and newest value coloured by health."""
        import altair as alt

        from anima.metaeval.stores import MemorySentinelStore
        from anima.plots import MUTED

        frame = MemorySentinelStore(self.snapshots).to_frame().dropna(subset=["metric", "value"])
        # As text: pandas has several units of time, altair reads them all alike only this way.
        frame["at"] = frame["at"].map(lambda moment: moment.isoformat())
        rows = self.to_frame()[["judge_id", "metric", "baseline", "health"]]
        frame = frame.merge(rows, on=["judge_id", "metric"], how="left").round(6)
        frame["series"] = frame["judge_id"] + " " + frame["metric"]
        newest = frame.groupby("series")["at"].transform("max") == frame["at"]
        frame["health"] = frame["health"].where(newest, "earlier")
        base = alt.Chart().encode(x=alt.X("at:T", title=None))
        value = alt.Y("value:Q", title="value", scale=alt.Scale(zero=False))
        palette = {"earlier": MUTED, "healthy": "#0780c9", "unknown": "#907904", "alarmed": "#dc4c15"}
        seen = [name for name in palette if name in set(frame["health"])]
        colors = alt.Scale(domain=seen, range=[palette[name] for name in seen])
        layers = alt.layer(
            base.mark_line(strokeDash=[4, 3], strokeWidth=1, color=MUTED).encode(y="baseline:Q"),
            base.mark_rule().encode(y="low:Q", y2="high:Q"),
            base.mark_line(color=MUTED).encode(y=value),
            base.mark_point(filled=True, size=60).encode(
                y=value, color=alt.Color("health:N", title=None, scale=colors)
            ),
            data=frame,
        )
        return layers.facet(row=alt.Row("series:N", title=None)).properties(title=title)


@dataclass(frozen=True)
class EvalHealthStamp(Presentable):
    """Health of the judges in sentences, small enough to stand on every result that rests on their scores."""

    health: Health
    alarms: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    as_of: str | None = None
    also = ("healthy",)

    @property
    def healthy(self) -> bool:
        """Whether all is known to be well."""
        return self.health == "healthy"

    def summary(self) -> str:
        """Return one sentence."""
        said = [*self.alarms, *self.unknown]
        if not said:
            return f"{self.health}."
        more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
        return f"{self.health}, {len(self.alarms)} alarm{'s' * (len(self.alarms) != 1)}: {said[0].rstrip('.')}{more}."


def eval_health_stamp(report: SentinelReport) -> EvalHealthStamp:
    """Return the stamp of a report, to be attached to the result of any study (``result.with_health(stamp)``)."""
    if not isinstance(report, SentinelReport):
        raise InputError(f"report must be a SentinelReport from judge_sentinel_report, got {type(report).__name__}")
    return EvalHealthStamp(
        report.health, tuple(alarm.summary() for alarm in report.alarms), report.unknown, report.as_of
    )
