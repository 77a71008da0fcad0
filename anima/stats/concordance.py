"""Agreement of continuous scores: Lin's concordance, its linear kin, and their values for many resamples at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.checks import require_choice
from anima.stats.bootstrap import sums_estimate
from anima.stats.correlation import paired
from anima.stats.estimate import Estimate
from anima.stats.weighted import is_constant

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from anima.stats.bootstrap import IntervalMethod
    from anima.stats.resampling import RngLike
    from anima.stats.weighted import Floats


def lin_ccc(
    a: ArrayLike,
    b: ArrayLike,
    *,
    interval: IntervalMethod = "auto",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str = "Lin's concordance",
) -> Estimate:
    """Return Lin's concordance correlation of two continuous raters: correlation, less bias and scale difference.

    Population moments (Lin 1989, Biometrics 45, 255–268), so that it equals quadratic kappa of the raw values. The
    analytic interval is Fisher's z with a jackknife error over items (clusters) and a t quantile, free of normality.
    ``extra`` holds the mean difference b − a and the ratio of standard deviations. Options as in :func:`cohen_kappa`.
    """
    require_choice(interval, "interval", ("auto", "analytic", "percentile", "bca"))
    x, y, groups, dropped = paired(a, b, clusters, names=("a", "b"))
    common: dict[str, Any] = {"level": level, "n": len(x), "n_dropped": dropped}
    if len(x) < 3:
        return Estimate.undefined(name, f"{len(x)} complete pairs, at least 3 are needed", **common)
    if is_constant(x) and is_constant(y):
        return Estimate.undefined(name, "both raters gave one score throughout", **common)
    spread = float(x.std())
    common["extra"] = {
        "mean_difference": float((y - x).mean()), "sd_ratio": float(y.std()) / spread if spread else math.nan,
    }  # fmt: skip
    # Shifted together, because only differences count, so that squares keep their digits.
    centre = (x.mean() + y.mean()) / 2
    terms = concordance_terms(np.column_stack([x - centre, y - centre]))
    method = "jackknife" if interval in ("auto", "analytic") else interval
    return sums_estimate(
        name, lambda sums: mean_concordance(sums, 2), terms, groups, method, n_resamples=n_resamples, rng=rng, **common
    )


def concordance_terms(scores: Floats) -> Floats:
    """Return what each row of ``(n, raters)`` adds to count, sums and the cross products, ``(n, 1+k+k²)``."""
    n, k = scores.shape
    products = (scores[:, :, None] * scores[:, None, :]).reshape(n, k * k)
    return np.column_stack([np.ones(n), scores, products])


def mean_concordance(sums: Floats, k: int) -> Floats:
    """Return Lin's concordance, mean over all pairs of raters, from sums ``(m, 1+k+k²)`` of :func:`concordance_terms`.

    NaN where a pair has no spread at all. For two raters it is the quadratic weighted kappa of the raw values.
    """
    n, means, products = sums[:, :1], sums[:, 1 : k + 1] / sums[:, :1], sums[:, k + 1 :].reshape(-1, k, k)
    covariance = products / n[:, :, None] - means[:, :, None] * means[:, None, :]
    variance = np.einsum("mii->mi", covariance)
    first, second = np.triu_indices(k, 1)
    with np.errstate(all="ignore"):
        apart = variance[:, first] + variance[:, second] + (means[:, first] - means[:, second]) ** 2
        # Less than rounding noise of the squares is no spread.
        scale = np.einsum("mii->mi", products)[:, first] / n + np.einsum("mii->mi", products)[:, second] / n
        pair = np.where(apart > 1e-13 * scale, 2 * covariance[:, first, second] / apart, np.nan)
    return np.asarray(pair.mean(axis=1))


def quadratic_kappa_value(a: ArrayLike, b: ArrayLike) -> float:
    """Return quadratic weighted kappa of two complete numeric arrays by its moments, in O(n); NaN if undefined."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    mean_x, mean_y = x.mean(), y.mean()
    u, v = x - mean_x, y - mean_y
    apart = u @ u + v @ v + len(x) * (mean_x - mean_y) ** 2
    return float(2 * (u @ v) / apart) if apart > 0 else math.nan


def mean_linear_agreement(counts: Floats, scores: Floats) -> Floats:
    """Return linear weighted kappa of raw values ``(items, raters)``, mean over all pairs of raters, for resamples of
    items.

    One minus the mean absolute difference on the same item over that on any two items; the latter comes from the two
    distribution functions, so that a resample (``counts``: ``(m, items)`` multiplicities) costs O(n).
    """
    weights = counts / counts.sum(axis=1, keepdims=True)
    values = []
    for i, j in zip(*np.triu_indices(scores.shape[1], 1), strict=True):
        a, b = scores[:, i], scores[:, j]
        joined = np.concatenate([a, b])
        order = np.argsort(joined, kind="stable")
        gaps = np.diff(joined[order])
        first = np.cumsum(np.where(order < len(a), weights[:, order % len(a)], 0), axis=1)[:, :-1]
        second = np.cumsum(np.where(order >= len(a), weights[:, order % len(a)], 0), axis=1)[:, :-1]
        expected = (first * (1 - second) + second * (1 - first)) @ gaps
        with np.errstate(all="ignore"):
            values.append(
                np.where(expected > 1e-13 * np.abs(joined).max(), 1 - weights @ np.abs(a - b) / expected, np.nan)
            )
    return np.asarray(np.mean(values, axis=0))
