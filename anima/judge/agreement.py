"""How far scores agree with the ranges of a golden set, beside what one constant score attains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from anima.authenticity.golden import load_golden
from anima.errors import InputError
from anima.judge.rules import rules_verdict
from anima.stats import Estimate, Presentable, bootstrap, correlation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from anima.authenticity.golden import GoldenReply
    from anima.authenticity.instrument import Instrument


@dataclass(frozen=True)
class RangeAgreement(Presentable):
    """Agreement of one judge with golden ranges; intervals by reply.

    Attributes
    ----------
    name
        The judge and the set.
    inside, distance
        Share of scores inside their range (ends included), and mean distance to the nearest end (0 inside).
    correlation
        Spearman's correlation of scores and midpoints of ranges.
    constant, constant_inside, constant_distance
        The trivial judge: one score for every reply. It must come from another set than the one scored, or from a rule.
    gain
        Share inside, minus that of the constant, over the same replies.
    """

    name: str
    inside: Estimate
    distance: Estimate
    correlation: Estimate
    constant: float
    constant_inside: Estimate
    constant_distance: Estimate
    gain: Estimate

    def summary(self) -> str:
        """Return one sentence."""
        losses = f", {self.inside.n_dropped} unscored" if self.inside.n_dropped else ""
        return (
            f"{self.name}: {self.inside.value:.0%} of {self.inside.n} scores inside their range "
            f"({self.inside.low:.0%} to {self.inside.high:.0%}){losses}, {self.constant_inside.value:.0%} for a constant "
            f"{self.constant:g}; mean distance {self.distance.value:.1f} points against "
            f"{self.constant_distance.value:.1f}; correlation with midpoints {self.correlation.value:.2f}."
        )


def range_agreement(
    scores: Sequence[float],
    replies: Sequence[GoldenReply],
    *,
    constant: float,
    name: str = "judge",
    n_resamples: int = 2000,
    rng: int = 0,
) -> RangeAgreement:
    """Compare scores with the ranges of golden replies.

    Parameters
    ----------
    scores
        One per reply, 0 to 100; NaN for a reply without a score, which is dropped and counted.
    replies
        Golden replies with a ``score_range``.
    constant
        Score of the trivial judge, e.g. :func:`best_constant` of the dev set when the test set is scored.
    name, n_resamples, rng
        What is compared, and the bootstrap.

    Raises
    ------
    InputError
        If lengths differ or a reply has no range.
    """
    if len(scores) != len(replies):
        raise InputError(f"scores and replies must be of equal length, got {len(scores)} and {len(replies)}")
    if missing := [reply.id for reply in replies if reply.score_range is None]:
        raise InputError(f"replies without a score_range: {', '.join(missing[:5])}; leave them out")
    values = np.asarray(scores, dtype=np.float64)
    ranges = np.array([reply.score_range for reply in replies], dtype=np.float64).reshape(-1, 2)
    kept = np.isfinite(values)
    dropped = int((~kept).sum())
    if not kept.any():
        raise InputError("scores holds no number: nothing can be compared")
    values, ranges = values[kept], ranges[kept]
    distance, flat = _distance(values, ranges), _distance(np.full(len(values), float(constant)), ranges)

    def mean(what: NDArray[np.float64], label: str) -> Estimate:
        found = bootstrap(lambda x: x.mean(axis=1), what, vectorized=True, n_resamples=n_resamples, rng=rng, name=label)
        return replace(found, n_dropped=dropped)

    inside, flat_inside = (distance == 0).astype(float), (flat == 0).astype(float)
    return RangeAgreement(
        name=name,
        inside=mean(inside, "share inside the range"),
        distance=mean(distance, "mean distance to the range"),
        correlation=replace(
            correlation(values, ranges.mean(axis=1), name="correlation with midpoints"), n_dropped=dropped
        ),
        constant=float(constant),
        constant_inside=mean(flat_inside, f"share inside, constant {constant:g}"),
        constant_distance=mean(flat, f"mean distance, constant {constant:g}"),
        gain=mean(inside - flat_inside, "share inside minus the constant's"),
    )


def rules_agreement(instrument: Instrument, name: str = "dev") -> RangeAgreement:
    """Return how far ``judge="rules"`` agrees with a shipped golden set, beside the best constant of the dev set.

    The table was fitted on the dev set; only the test set tells how good it is. The published figures are in
    ``corpora/judge/rules_agreement.json``.
    """
    replies = [reply for reply in load_golden(name) if reply.score_range]
    analyses = instrument.analyze_many([r.response for r in replies], [r.question for r in replies])
    scores = [verdict.score for verdict in map(rules_verdict, analyses)]
    return range_agreement(scores, replies, constant=best_constant(load_golden("dev")), name=f"rules on golden {name}")


def best_constant(replies: Sequence[GoldenReply]) -> int:
    """Return the score that lies in most of the ranges, nearest to the others among equals: the strongest trivial judge."""
    ranges = np.array([reply.score_range for reply in replies if reply.score_range], dtype=np.float64)
    misses = [_distance(np.full(len(ranges), float(score)), ranges) for score in range(101)]
    return min(range(101), key=lambda score: (int((misses[score] > 0).sum()), float(misses[score].sum())))


def _distance(scores: NDArray[np.float64], ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.maximum(0, np.maximum(ranges[:, 0] - scores, scores - ranges[:, 1]))
    return result
