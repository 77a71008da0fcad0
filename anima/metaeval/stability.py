"""Whether a judge gives the same answer twice, and whether it is still the judge who answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction, require_int
from anima.errors import InputError
from anima.metaeval.join import Accounting
from anima.metaeval.tables import Table, read_table
from anima.stats.agreement import share_estimate
from anima.stats.estimate import Estimate, Presentable
from anima.stats.intraclass import icc
from anima.stats.raters import krippendorff_alpha

if TYPE_CHECKING:
    import pandas as pd

    from anima.stats.resampling import RngLike

FallbackState = Literal["healthy", "alarm", "unknown"]
_SAME = 1e-9  # two confidences nearer than this are one


@dataclass(frozen=True)
class IntraJudgeReliability(Presentable):
    """How a judge agrees with itself; made by :func:`intra_judge_reliability`.

    Parameters
    ----------
    reliability, unstable
        ICC(1,1) of numeric scores, Krippendorff's alpha of labels; share of items whose repeats are not all the same.
    noise
        Standard deviation within an item, on the scale of the scores; NaN for labels.
    items
        One row per item, least stable first: item, n, and mean, sd, low, high or label and share.
    """

    reliability: Estimate
    unstable: Estimate
    noise: float
    items: pd.DataFrame
    accounting: Accounting

    def summary(self) -> str:
        """Return one sentence."""
        noise = "" if math.isnan(self.noise) else f" Standard deviation within an item {self.noise:.3g}."
        return f"{self.reliability.summary()} {self.unstable.summary()}{noise}"

    def to_frame(self) -> pd.DataFrame:
        """Return the items."""
        return self.items.copy()


@dataclass(frozen=True)
class FallbackSignal(Presentable):
    """Streaks in which a judge seems to have been replaced by a default; made by :func:`fallback_signal`.

    Parameters
    ----------
    state, reason
        ``"unknown"`` when nothing was recorded that could show it: that is not healthy.
    streaks
        One row per streak: start, end (positions, inclusive), n, kind, value.
    share
        Share of the judgements with a fallback flag; undefined without flags.
    """

    state: FallbackState
    streaks: pd.DataFrame
    share: Estimate
    n: int
    reason: str

    def summary(self) -> str:
        """Return one sentence."""
        return f"Judge fall-back: {self.state} ({self.n} judgements); {self.reason}."

    def to_frame(self) -> pd.DataFrame:
        """Return the streaks."""
        return self.streaks.copy()


def intra_judge_reliability(
    scores: Table, *, scale: Literal["auto", "interval", "nominal"] = "auto", level: float = 0.95, rng: RngLike = None
) -> IntraJudgeReliability:
    """Return how well a judge agrees with itself on repeated judgements of the same items.

    High agreement with itself is necessary, not sufficient: a constant judge is perfectly stable, and then
    ``reliability`` is undefined.

    Parameters
    ----------
    scores
        ``item_id`` and ``score``, one row per judgement, in any order; items with fewer than two scores are counted and
        left out.
    scale
        ``"auto"``: nominal for text and booleans.
    """
    import pandas as pd

    require_choice(scale, "scale", ("auto", "interval", "nominal"))
    frame = read_table(scores, ["item_id", "score"], "scores")
    items_in = int(frame["item_id"].nunique())
    kept = frame[frame["score"].notna()].copy()
    if scale == "auto":
        plain = all(not isinstance(value, str | bool | np.bool_) for value in kept["score"])
        scale = "interval" if plain else "nominal"
    if scale == "interval":
        kept["score"] = require_floats(kept["score"], "scores['score']")
        kept = kept[kept["score"].notna()]
    counts = kept.groupby("item_id")["score"].transform("size")
    kept = kept[counts >= 2]
    n = int(kept["item_id"].nunique())
    accounting = Accounting(items_in, n, {"fewer_than_two_scores": items_in - n}, "items")
    long = pd.DataFrame({
        "item": kept["item_id"], "rater": kept.groupby("item_id").cumcount(), "value": kept["score"],
    })  # fmt: skip
    groups = kept.groupby("item_id", sort=False)["score"]
    noise = math.nan

    def nothing(name: str) -> Estimate:
        return Estimate.undefined(name, "no item was judged twice", level=level)

    if scale == "interval":
        name = "ICC(1,1) of repeats"
        reliability = icc(long, kind="1,1", level=level, name=name) if n else nothing(name)
        items = groups.agg(["size", "mean", "std", "min", "max"]).reset_index()
        items.columns = ["item", "n", "mean", "sd", "low", "high"]
        if n:
            noise = math.sqrt(float((items["sd"] ** 2 * (items["n"] - 1)).sum() / (items["n"] - 1).sum()))
        items = items.sort_values("sd", ascending=False, kind="stable")
        moved = int((items["high"] > items["low"]).sum())
    else:
        name = "Krippendorff's alpha of repeats"
        reliability = krippendorff_alpha(long, level=level, rng=rng, name=name) if n else nothing(name)
        modes = ((item, part, part.mode().iloc[0]) for item, part in groups)
        rows = [(item, len(part), mode, float((part == mode).mean())) for item, part, mode in modes]
        items = pd.DataFrame(rows, columns=["item", "n", "label", "share"]).sort_values("share", kind="stable")
        moved = int((items["share"] < 1).sum())
    unstable = share_estimate(moved, n, "items with differing repeats", level)
    return IntraJudgeReliability(reliability, unstable, noise, items.reset_index(drop=True), accounting)


def fallback_signal(
    judgements: Table,
    *,
    min_streak: int = 3,
    min_constant: int = 5,
    fallback_confidence: float | None = None,
    level: float = 0.95,
) -> FallbackSignal:
    """Return whether a judge has silently been replaced by its fall-back for a while.

    Parameters
    ----------
    judgements
        In order of time: ``confidence`` and, or, ``fallback`` (boolean), or the frame of run records
        (:func:`~anima.metaeval.run_records_frame`). Without both the state is unknown.
    min_streak
        So many fallback flags in a row, or confidences equal to ``fallback_confidence``, raise the alarm.
    min_constant
        So many equal confidences in a row raise it, if such a streak has a chance below 1 − level among judgements
        drawn independently from the others. A confidence that never varies at all raises it too: it measures nothing.
    fallback_confidence
        Value that the fall-back is known to write.
    """
    import pandas as pd

    require_fraction(level)
    require_int(min_streak, "min_streak", low=1)
    require_int(min_constant, "min_constant", low=2)
    spread = {f"judge_metadata.{name}": name for name in ("confidence", "fallback")}
    frame = read_table(judgements, [], "judgements", aliases=spread)
    n = len(frame)
    empty = np.full(n, math.nan)
    confidence, flag = (
        require_floats(frame[name].to_numpy(), f"judgements[{name!r}]") if name in frame.columns else empty
        for name in ("confidence", "fallback")
    )
    if len(odd := flag[~np.isnan(flag) & ~np.isin(flag, (0, 1))]):
        raise InputError(f"judgements: fallback must be true or false, got {odd[0]:g}")
    rows = [(*run, "fallback flag", math.nan) for run in _streaks(flag == 1) if run[2] >= min_streak]
    if fallback_confidence is not None:
        at = np.abs(confidence - fallback_confidence) <= _SAME
        rows += [(*run, "fallback confidence", fallback_confidence) for run in _streaks(at) if run[2] >= min_streak]
    changed = ~(np.abs(np.diff(confidence)) <= _SAME)  # also before and after a missing one
    starts = np.flatnonzero(np.r_[True, changed]) if n else np.empty(0, dtype=int)
    for start, stop in zip(starts, [*starts[1:], n][: len(starts)], strict=True):
        value, length = confidence[start], int(stop - start)
        if length >= min_constant and not math.isnan(value):
            others = np.r_[confidence[:start], confidence[stop:]]
            others = others[~np.isnan(others)]
            share = float((np.abs(others - value) <= _SAME).mean()) if len(others) else 0.0
            # Any of n places may start such a streak.
            if n * share**length < 1 - level:
                rows.append((int(start), int(stop) - 1, length, "constant confidence", float(value)))
    streaks = pd.DataFrame(sorted(rows), columns=["start", "end", "n", "kind", "value"])
    flagged, told = int((flag == 1).sum()), int((~np.isnan(flag)).sum())
    share_flagged = share_estimate(flagged, told, "share with a fallback flag", level)
    known = int((~np.isnan(flag) | ~np.isnan(confidence)).sum())
    state: FallbackState = "healthy"
    reason = "no streak"
    if len(streaks):
        longest = streaks.iloc[int(streaks["n"].argmax())]
        state = "alarm"
        reason = f"{len(streaks)} streaks, the longest {longest['n']} of {longest['kind']} from {longest['start']}"
    elif known < min_streak:
        state, reason = "unknown", f"{known} judgements with a flag or a confidence: nothing could have shown"
    return FallbackSignal(state, streaks, share_flagged, n, reason)


def _streaks(hits: Any) -> list[tuple[int, int, int]]:
    """Return start, end (inclusive) and length of the runs of true values."""
    edges = np.flatnonzero(np.diff(np.r_[0, np.asarray(hits, dtype=np.int8), 0]))
    return [(int(a), int(b) - 1, int(b - a)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
