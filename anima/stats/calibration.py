"""Calibration of scores against outcomes: whether a score of 0.7 comes true seven times in ten.

Which number: the Brier score with its parts needs no bins and is the one to compare systems with; the curve shows where
a score is off; ECE summarises the curve and is biased upwards, so what a perfectly calibrated score would have shown
stands beside it. With scores and outcomes on different scales gaps mean nothing: fit a line or the isotonic curve
instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_choice, require_fraction, require_int, require_number
from anima.errors import InputError
from anima.stats.agreement import wilson_interval
from anima.stats.bootstrap import bootstrap_mean
from anima.stats.correlation import paired
from anima.stats.estimate import Estimate, Presentable
from anima.stats.resampling import RngLike, numpy_rng
from anima.stats.weighted import Floats, is_constant, normal_quantile

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray


Binning = Literal["equal-width", "equal-frequency"]
OutOfRange = Literal["error", "clip"]

_EXACT_NULL_DRAWS = 20_000_000


@dataclass(frozen=True)
class CalibrationCurve(Presentable):
    """A binned calibration curve; made by :func:`calibration_curve`.

    Parameters
    ----------
    bins
        One row per non-empty bin: lower, upper, n, score_mean, outcome_mean, gap (absolute), low, high (Wilson, NaN for
        outcomes that are not 0 or 1).
    ece, max_gap, debiased
        Expected calibration error (mean gap, weighted by n; biased upwards); largest gap; ECE less the part that noise
        alone explains, with a conservative interval.
    null_mean, null_high
        Mean and upper end (at ``level``) of the ECE of a perfectly calibrated score on these data; NaN when outcomes
        are not 0 or 1 or scores are no probabilities.
    n_dropped, n_clipped
        Pairs with a missing member; scores moved to the nearest end.
    requested_bins
        Bins asked for; ``len(bins)`` is the number in effect.
    notes
        What a reader must know: scales that differ, bins that merged.
    """

    bins: pd.DataFrame
    ece: float
    max_gap: float
    debiased: Estimate
    null_mean: float
    null_high: float
    n: int
    n_dropped: int
    n_clipped: int
    requested_bins: int
    binning: Binning
    notes: tuple[str, ...] = ()
    tables = ("bins",)

    def to_frame(self) -> pd.DataFrame:
        """Return the bins."""
        return self.bins.copy()

    def summary(self) -> str:
        """Return one sentence."""
        if not self.n:
            return f"No calibration curve: {self.debiased.reason}."
        text = f"ECE {self.ece:.3f} over {len(self.bins)} bins (n = {self.n})"
        if not math.isnan(self.null_high):
            side = "within" if self.ece <= self.null_high else "beyond"
            text += (
                f", {side} what perfect calibration would show (mean {self.null_mean:.3f}, up to {self.null_high:.3f})"
            )
        notes = "; ".join(self.notes)
        return f"{text}; largest gap {self.max_gap:.3f}{'; ' + notes if notes else ''}."

    def plot(self) -> Any:  # type: ignore[override]
        """Draw the curve with Wilson intervals over the diagonal (an Altair chart)."""
        import altair as alt
        import pandas as pd

        from anima.plots import MUTED

        ends = [self.bins["lower"].min(), self.bins["upper"].max()]
        span = pd.DataFrame({"score_mean": ends, "outcome_mean": ends})
        base = alt.Chart(self.bins).encode(x=alt.X("score_mean:Q", title="mean score"))
        return alt.layer(
            alt.Chart(span).mark_line(strokeDash=[4, 3], color=MUTED).encode(x="score_mean:Q", y="outcome_mean:Q"),
            base.mark_rule().encode(y=alt.Y("low:Q", title="mean outcome"), y2="high:Q"),
            base.mark_point(filled=True).encode(y="outcome_mean:Q", size=alt.Size("n:Q", legend=None)),
        )


def calibration_curve(
    scores: ArrayLike,
    outcomes: ArrayLike,
    *,
    bins: int = 10,
    binning: Binning = "equal-width",
    span: tuple[float, float] | None = (0.0, 1.0),
    out_of_range: OutOfRange = "error",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_null: int = 1000,
    rng: RngLike = None,
) -> CalibrationCurve:
    """Return the calibration curve of scores, its ECE, and what noise alone would have made of it.

    Parameters
    ----------
    scores, outcomes
        Numbers of equal length; pairs with a missing member are dropped and counted. Outcomes are usually 0 and 1.
    bins, binning
        ``"equal-width"``: bin k holds lower <= score < upper, the last one also its upper end; the inner edges are the
        floats nearest to the decimal fractions. ``"equal-frequency"``: at most ``bins`` bins of nearly equal n; equal
        scores are never split. Empty bins are left out.
    span
        Ends of the equal-width bins; None takes the smallest and largest score.
    out_of_range
        What to do with scores outside ``span``: refuse them, or ``"clip"`` them to the nearest end (counted).
    clusters
        Cluster of each pair; the noise of the bins is then inflated by the design effect of the residuals.
    level, n_null, rng
        Level of intervals and null band; draws of the null band and their seed.

    Returns
    -------
    CalibrationCurve
        Its ``debiased`` estimate is undefined without pairs. Its ``p_value`` tests perfect calibration.

    Notes
    -----
    No honest two-sided interval of ECE is known at usual n: it is a sum of absolute values, biased by an amount that
    depends on the unknown gaps (a perfectly calibrated score shows 0.21 at n = 20 and 0.10 at n = 100 with ten bins).
    The interval is conservative: the plug-in plus z s above, the plug-in minus z s minus the largest possible bias
    sqrt(2/pi) sum(w sigma) below, where s² = sum(w² sigma²); it holds at least ``level``
    (``tests/stats/test_coverage.py``). The debiased value scales all gaps down together until the ECE they would show
    under the noise of the bins equals the one seen.

    Wilson: JASA 22 (1927) 209–212. Pinned to scikit-learn in ``tests/stats/test_calibration.py``.
    """
    require_int(bins, "bins", low=1)
    require_choice(binning, "binning", ("equal-width", "equal-frequency"))
    require_choice(out_of_range, "out_of_range", ("error", "clip"))
    require_fraction(level)
    x, y, groups, dropped = paired(scores, outcomes, clusters, names=("scores", "outcomes"))
    notes: list[str] = []
    clipped = 0
    if len(x) and binning == "equal-width":
        low, high = (float(x.min()), float(x.max())) if span is None else span
        require_number(low, "span[0]")
        require_number(high, "span[1]")
        if not high > low and span is not None:
            raise InputError(f"span must run upwards, got {span}")
        outside = (x < low) | (x > high)
        clipped = int(outside.sum())
        if clipped and out_of_range == "error":
            place = int(np.argmax(outside))
            raise InputError(
                f"{clipped} scores lie outside {low:g} to {high:g}, first {x[place]:g} (pair {place}): "
                "pass span=(low, high) of the scale, or out_of_range='clip'"
            )
        edges = bin_edges(low, high, bins)
        place_of = bin_index(np.clip(x, low, high) if clipped else x, edges)
    else:
        edges, place_of = _equal_frequency(x, bins)
    table = _bin_table(x, y, place_of, edges, level)
    n = len(x)
    if not n:
        empty = Estimate.undefined("debiased ECE", "there are no complete pairs", level=level, n_dropped=dropped)
        return CalibrationCurve(table, math.nan, math.nan, empty, math.nan, math.nan, 0, dropped, 0, bins, binning)
    if binning == "equal-frequency" and len(table) < bins:
        notes.append(f"{len(table)} bins in effect of {bins} asked for: equal scores are kept together")
    if is_constant(x):
        notes.append("all scores are equal: one bin, no curve")
    notes.extend(_scale_notes(x, y))
    ece, max_gap = float((table["n"] * table["gap"]).sum() / n), float(table["gap"].max())
    design = _design_effect(y - x, groups)
    debiased = _debiased(table, ece, x, y, level, design)
    debiased = replace(debiased, n_dropped=dropped, n_clusters=None if groups is None else int(groups.max()) + 1)
    null_mean = null_high = math.nan
    if _binary(y) and x.min() >= 0 and x.max() <= 1 and n_null:
        generator, seed = numpy_rng(rng)
        null = null_ece(x, place_of, n_null, generator) * math.sqrt(design)
        null_mean, null_high = float(null.mean()), float(np.quantile(null, level))
        p = (int((null >= ece - 1e-12).sum()) + 1) / (n_null + 1)
        debiased = replace(debiased, p_value=p, seed=seed, n_resamples=n_null)
    return CalibrationCurve(
        table, ece, max_gap, debiased, null_mean, null_high, n, dropped, clipped, bins, binning, tuple(notes)
    )


def bin_edges(low: float, high: float, bins: int) -> Floats:
    """Return ``bins + 1`` edges, each the float nearest to the exact decimal fraction between two typed numbers."""
    start, stop = Fraction(repr(float(low))), Fraction(repr(float(high)))
    return np.array([float(start + (stop - start) * k / bins) for k in range(bins + 1)])


def bin_index(scores: Floats, edges: Floats) -> NDArray[np.intp]:
    """Return the bin of each score within the edges: closed below, the last bin closed above too."""
    bins = len(edges) - 1
    width = edges[-1] - edges[0]
    if width == 0:
        return np.zeros(len(scores), dtype=np.intp)
    place = ((scores - edges[0]) * (bins / width)).astype(np.intp)
    np.clip(place, 0, bins - 1, out=place)
    # The product is off by at most one near an edge: compare with the edges themselves.
    place -= (scores < edges[place]) & (place > 0)
    place += (scores >= edges[place + 1]) & (place < bins - 1)
    return np.asarray(place, dtype=np.intp)


def expected_calibration_error(scores: Floats, outcomes: Floats, edges: Floats) -> float:
    """Return the plug-in ECE of complete arrays within the edges: the quick road, without any interval."""
    place = bin_index(scores, edges)
    sums = np.bincount(place, weights=scores - outcomes, minlength=len(edges) - 1)
    return float(np.abs(sums).sum() / len(scores))


def null_ece(scores: Floats, place_of: NDArray[np.intp], n_draws: int, rng: np.random.Generator) -> Floats:
    """Return ECEs of a perfectly calibrated score: outcomes drawn as Bernoulli(score), bins held."""
    n = len(scores)
    order = np.argsort(place_of, kind="stable")
    p = scores[order]
    starts = np.flatnonzero(np.diff(place_of[order], prepend=-1))
    if n * n_draws > _EXACT_NULL_DRAWS:  # many pairs per bin: their sum is normal for all purposes
        spread = np.sqrt(np.add.reduceat(p * (1 - p), starts))
        return np.asarray(np.abs(rng.standard_normal((n_draws, len(starts))) * spread).sum(axis=1) / n)
    step = max(1, (1 << 19) // n)
    out = []
    for first in range(0, n_draws, step):
        drawn = (rng.random((min(step, n_draws - first), n)) < p) - p
        out.append(np.abs(np.add.reduceat(drawn, starts, axis=1)).sum(axis=1) / n)
    return np.concatenate(out)


def isotonic_curve(scores: ArrayLike, outcomes: ArrayLike) -> pd.DataFrame:
    """Return the calibration curve without bins, the best non-decreasing fit (CORP): score, n, fitted per distinct
    score.

    Pool-adjacent-violators, equal scores first averaged (Dimitriadis, Gneiting and Jordan 2021, PNAS 118).
    """
    import pandas as pd

    x, y, _, _ = paired(scores, outcomes, names=("scores", "outcomes"))
    distinct, codes = np.unique(x, return_inverse=True)
    n = np.bincount(codes, minlength=len(distinct))
    means = np.bincount(codes, weights=y, minlength=len(distinct)) / np.maximum(n, 1)
    fitted = means
    if len(distinct):
        from scipy.optimize import isotonic_regression

        fitted = isotonic_regression(means, weights=n).x
    return pd.DataFrame({"score": distinct, "n": n, "fitted": fitted})


def brier_score(
    scores: ArrayLike,
    outcomes: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
) -> Estimate:
    """Return the Brier score with its CORP parts: score = miscalibration − discrimination + uncertainty.

    Parameters
    ----------
    scores, outcomes
        Probabilities in [0, 1]; 0 and 1. Missing pairs are dropped and counted.
    clusters
        Cluster of each pair: whole clusters are drawn for the percentile interval.

    Returns
    -------
    Estimate
        ``extra``: miscalibration (0 is perfect), discrimination (higher is better; 0 for a constant score) and
        uncertainty (the score of always saying the base rate, the trivial baseline).
    """
    x, y, groups, dropped = paired(scores, outcomes, clusters, names=("scores", "outcomes"))
    if len(x) and (x.min() < 0 or x.max() > 1):
        raise InputError(f"scores must be probabilities in [0, 1], got {x.min():g} to {x.max():g}")
    if not _binary(y):
        raise InputError(f"outcomes must hold 0 and 1 only, got {y[(y != 0) & (y != 1)][0]:g}")
    if not len(x):
        return Estimate.undefined("Brier score", "there are no complete pairs", level=level, n_dropped=dropped)
    curve = isotonic_curve(x, y)
    fitted = curve["fitted"].to_numpy()[np.searchsorted(curve["score"].to_numpy(), x)]
    losses = (x - y) ** 2
    score, best, reference = (float(part.mean()) for part in (losses, (fitted - y) ** 2, (y.mean() - y) ** 2))
    parts = {"miscalibration": score - best, "discrimination": reference - best, "uncertainty": reference}
    return bootstrap_mean(
        losses, clusters=groups, n_resamples=n_resamples, level=level, rng=rng, name="Brier score", n_dropped=dropped,
        extra=parts,
    )  # fmt: skip


def _binary(y: Floats) -> bool:
    return bool(((y == 0) | (y == 1)).all())


def _equal_frequency(x: Floats, bins: int) -> tuple[Floats, NDArray[np.intp]]:
    """Cut the sorted scores where equal scores are not split, as near as possible to equal numbers."""
    distinct, codes, counts = np.unique(x, return_inverse=True, return_counts=True)
    cuts = np.cumsum(counts)[:-1]
    wanted = len(x) * np.arange(1, bins) / bins
    chosen = np.empty(0, dtype=np.intp)
    if len(cuts):
        right = np.searchsorted(cuts, wanted).clip(0, len(cuts) - 1)
        left = np.maximum(right - 1, 0)
        nearer = np.where(np.abs(cuts[left] - wanted) <= np.abs(cuts[right] - wanted), left, right)
        chosen = np.unique(nearer) + 1
    bin_of = np.searchsorted(chosen, np.arange(len(distinct)), side="right")
    return np.empty(0), bin_of[codes].astype(np.intp)


def _bin_table(x: Floats, y: Floats, place_of: NDArray[np.intp], edges: Floats, level: float) -> pd.DataFrame:
    import pandas as pd

    counts = np.bincount(place_of)
    used = np.flatnonzero(counts)
    n = counts[used]
    score_mean, outcome_mean = (np.bincount(place_of, weights=v)[used] / n for v in (x, y))
    if len(edges):
        lower, upper = edges[used], edges[used + 1]
    else:
        order = np.argsort(place_of, kind="stable")
        starts = np.cumsum(n) - n
        lower, upper = (f.reduceat(x[order], starts) if len(x) else x for f in (np.minimum, np.maximum))
    low = high = np.full(len(n), math.nan)
    if _binary(y):
        low, high = wilson_interval(outcome_mean * n, n, level)
    return pd.DataFrame({
        "lower": lower, "upper": upper, "n": n, "score_mean": score_mean, "outcome_mean": outcome_mean,
        "gap": np.abs(outcome_mean - score_mean), "low": low, "high": high,
    })  # fmt: skip


def _scale_notes(x: Floats, y: Floats) -> list[str]:
    x_span, y_span = (x.min(), x.max()), (y.min(), y.max())
    same = x_span[0] <= y_span[1] and y_span[0] <= x_span[1]
    wide, narrow = sorted((x_span[1] - x_span[0], y_span[1] - y_span[0]), reverse=True)
    if same and (wide <= 5 * max(narrow, 1.0) or narrow == 0):
        return []
    slope = "" if is_constant(x) else f" (least squares: outcome = {np.polyfit(x, y, 1)[1]:.3g} + "
    slope += f"{np.polyfit(x, y, 1)[0]:.3g} score)" if slope else ""
    return [
        f"scores run {x_span[0]:g} to {x_span[1]:g} and outcomes {y_span[0]:g} to {y_span[1]:g}: "
        f"on different scales gaps and ECE mean nothing{slope}"
    ]


def _design_effect(residuals: Floats, groups: NDArray[np.intp] | None) -> float:
    if groups is None:
        return 1.0
    centred = residuals - residuals.mean()
    alone = float((centred**2).sum())
    together = float((np.bincount(groups, weights=centred) ** 2).sum())
    return max(1.0, together / alone) if alone else 1.0


def _debiased(table: pd.DataFrame, ece: float, x: Floats, y: Floats, level: float, design: float) -> Estimate:
    from scipy.special import ndtr

    n, gaps = table["n"].to_numpy(), table["gap"].to_numpy()
    weights = n / n.sum()
    if y.min() >= 0 and y.max() <= 1:
        shrunk = (table["outcome_mean"].to_numpy() * n + 1) / (n + 2)  # a bin of one pair is not free of noise
        variance = shrunk * (1 - shrunk)
    else:
        variance = np.full(len(n), float(np.var(y - x)))
    sigma = np.sqrt(variance / n * design)

    def shown(scale: float) -> float:
        """Return the ECE that gaps scaled down would show under the noise: the mean of folded normals."""
        centre = scale * gaps
        with np.errstate(all="ignore"):
            ratio = centre / sigma
            folded = sigma * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + centre * (1 - 2 * ndtr(-ratio))
        return float((weights * np.where(sigma > 0, folded, centre)).sum())

    low_scale, high_scale = 0.0, 1.0
    if shown(0.0) >= ece:
        high_scale = 0.0
    for _ in range(40):
        middle = (low_scale + high_scale) / 2
        if shown(middle) > ece:
            high_scale = middle
        else:
            low_scale = middle
    z = normal_quantile(level)
    reach = z * math.sqrt(float((weights**2 * sigma**2).sum()))
    bias = math.sqrt(2 / math.pi) * float((weights * sigma).sum())
    return Estimate(
        "debiased ECE", low_scale * ece, max(0.0, ece - bias - reach), ece + reach, level, n=int(n.sum()),
        method="conservative, bins held", extra={"plug_in": ece, "largest_bias": bias},
    )  # fmt: skip
