"""How well a score separates two outcomes: AUC and rank-biserial correlation, each with an honest interval."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction
from anima.errors import InputError
from anima.stats.bootstrap import IntervalMethod, bootstrap, estimate_from_counts
from anima.stats.correlation import paired
from anima.stats.estimate import Estimate
from anima.stats.resampling import cluster_codes
from anima.stats.weighted import Floats, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from anima.stats.resampling import RngLike


def rank_biserial(scores: ArrayLike, outcome: ArrayLike, **options: Any) -> Estimate:
    """Return the rank-biserial correlation of a score with a binary outcome, 2 AUC − 1 (Cureton); options as in :func:`auc`."""
    area = auc(scores, outcome, **options)
    title = options.get("name") or "rank-biserial correlation"
    return replace(area, name=title, value=2 * area.value - 1, low=2 * area.low - 1, high=2 * area.high - 1)


def auc(
    scores: ArrayLike,
    outcome: ArrayLike,
    *,
    interval: IntervalMethod = "auto",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str | None = None,
) -> Estimate:
    """Return the area under the ROC curve of a score for a binary outcome (0 and 1), ties counting one half.

    ``interval="analytic"``: DeLong's variance on the logit scale (DeLong et al. 1988, Biometrics 44, 837–845); with
    perfect separation, where that variance is 0, method 5 of Newcombe (2006, Statistics in Medicine 25, 559–573).
    ``"percentile"`` and ``"bca"`` resample, by cluster when ``clusters`` is given. The value is pinned to
    ``sklearn.metrics.roc_auc_score``; the p-value is scipy's Mann–Whitney test (exact without ties up to 8 per group).
    """
    require_choice(interval, "interval", ("auto", "analytic", "percentile", "bca"))
    require_fraction(level)
    title = name or "AUC"
    s, y, groups, dropped = paired(scores, outcome, clusters, names=("scores", "outcome"))
    if odd := set(np.unique(y)) - {0.0, 1.0}:
        raise InputError(f"outcome must hold 0 and 1 only, got {min(odd)}: turn it into yes or no first")
    positives = int(y.sum())
    negatives = len(y) - positives
    common: dict[str, Any] = {
        "level": level, "n": len(y), "n_dropped": dropped,
        "extra": {"n_positive": positives, "n_negative": negatives},
    }  # fmt: skip
    if not positives or not negatives:
        only = "no pairs" if not len(y) else f"every outcome is {int(y[0])}"
        return Estimate.undefined(title, f"{only}: two outcomes are needed", **common)
    _, codes = np.unique(s, return_inverse=True)
    value = float(_weighted_auc(np.ones((1, len(s))), codes, y)[0])
    if groups is None:
        common["p_value"] = _mann_whitney_p(s[y == 1], s[y == 0])
    if interval in ("percentile", "bca") or groups is not None:
        if interval == "analytic":
            raise InputError("interval='analytic' supposes independent pairs: pass 'percentile' with clusters")
        n_units = len(s) if groups is None else int(groups.max()) + 1

        def values(counts: Floats) -> Floats:
            return _weighted_auc(counts if groups is None else counts[:, groups], codes, y)

        return estimate_from_counts(
            title, value, values, n_units, n_resamples=n_resamples, method=interval, rng=rng, clustered=groups is not None,
            **common,
        )  # fmt: skip
    z = normal_quantile(level)
    variance = _delong_variance(s[y == 1], s[y == 0])
    if 0 < value < 1 and variance > 0:
        half = z * math.sqrt(variance) / (value * (1 - value))
        logit = math.log(value / (1 - value))
        low, high = (1 / (1 + math.exp(-(logit + sign * half))) for sign in (-1, 1))
        method = "DeLong, logit"
    else:
        low, high = _newcombe_interval(value, positives, negatives, z)
        method = "Newcombe, method 5"
    few = min(positives, negatives)
    notes = [f"only {few} of the rarer outcome"] if few < 5 else []
    return Estimate.noted(title, value, low, high, notes, method=method, **common)


def auc_difference(scores: ArrayLike, rival: ArrayLike, outcome: ArrayLike, **options: Any) -> Estimate:
    """Return how much larger the AUC of one score is than that of a rival on the same items, with a paired interval.

    Items, or their clusters, are resampled for both together; options as in :func:`anima.stats.bootstrap`. Items that lack
    either score or the outcome are dropped and counted.
    """
    names = ("scores", "rival", "outcome")
    columns = [require_floats(values, name) for values, name in zip((scores, rival, outcome), names, strict=True)]
    if len(lengths := {len(column) for column in columns}) > 1:
        raise InputError(
            f"scores, rival and outcome must have one length, got {sorted(lengths)}: give one value per item"
        )
    if odd := set(np.unique(columns[2][~np.isnan(columns[2])])) - {0.0, 1.0}:
        raise InputError(f"outcome must hold 0 and 1 only, got {min(odd)}: turn it into yes or no first")
    keep = np.asarray(~np.isnan(columns).any(axis=0))
    for key in ("clusters", "strata"):
        if options.get(key) is not None:
            options[key] = cluster_codes(options[key], len(keep), key)[keep]

    def area(values: Floats, flags: Floats) -> float:
        return float(_weighted_auc(np.ones((1, len(flags))), np.unique(values, return_inverse=True)[1], flags)[0])

    complete = [column[keep] for column in columns]
    found = bootstrap(lambda a, b, y: area(a, y) - area(b, y), *complete, **options)
    return replace(found, n_dropped=int((~keep).sum()))


def pair_auc(
    scores: ArrayLike,
    outcome: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    rival: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str | None = None,
) -> Estimate:
    """Return the AUC of a score of *pairs*, or how much larger it is than that of ``rival``, with an interval.

    Two pairs with a common member are not independent, whichever of the two members is common. So members are resampled, and a
    pair counts as often as the product of the times that each was drawn (the vertex bootstrap of Snijders and Borgatti
    1999, Connections 22, 161-170). Clusters by one member alone give intervals that are too narrow:
    ``tests/stats/test_pair_auc.py`` counts how often either holds the true value.

    Parameters
    ----------
    scores, outcome, rival
        One value per pair; ``outcome`` 0 or 1.
    first, second
        Members of each pair, by number, 0, 1, ...; no pair stands twice.

    Returns
    -------
    Estimate
        ``n`` counts pairs, ``n_clusters`` members.
    """
    y, members = np.asarray(outcome, dtype=np.float64), np.array([first, second], dtype=np.intp)
    kinds = [np.unique(np.asarray(one), return_inverse=True)[1] for one in (scores, rival) if one is not None]
    if {len(one) for one in kinds} != {len(y)} or members.shape != (2, len(y)):
        raise InputError("scores, outcome, first, second and rival must have one value per pair")
    if any(np.isnan(np.asarray(one, dtype=np.float64)).any() for one in (scores, outcome, rival) if one is not None):
        raise InputError("scores, outcome and rival must have no missing values: leave those pairs out")

    def values(counts: Floats) -> Floats:
        areas = [_weighted_auc(counts[:, members[0]] * counts[:, members[1]], codes, y) for codes in kinds]
        return areas[0] - areas[1] if len(areas) > 1 else areas[0]

    title = name or ("AUC" if rival is None else "gain in AUC")
    if not 0 < y.sum() < len(y):
        return Estimate.undefined(title, "all pairs have one outcome: two are needed", level=level, n=len(y))
    n_members = int(members.max()) + 1
    value = float(values(np.ones((1, n_members)))[0])
    found = estimate_from_counts(
        title, value, values, n_members, n_resamples=n_resamples, method="percentile", rng=rng, level=level, n=len(y),
        clustered=True,
    )  # fmt: skip
    return replace(found, method="percentile bootstrap by both members")


def _weighted_auc(weights: Floats, codes: NDArray[np.intp], y: Floats) -> Floats:
    order = np.argsort(codes, kind="stable")
    weights, codes, y = weights[:, order], codes[order], y[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    positive = np.add.reduceat(weights * y, starts, axis=1)
    negative = np.add.reduceat(weights * (1 - y), starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    with np.errstate(all="ignore"):
        return np.asarray((positive * below).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1)))


def _delong_variance(positive: Floats, negative: Floats) -> float:
    """Return DeLong's variance from placement values, in O(n log n) (Sun and Xu 2014)."""
    if len(positive) < 2 or len(negative) < 2:
        return 0.0

    def placements(values: Floats, others: Floats) -> Floats:
        ordered = np.sort(others)
        return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (
            2 * len(others)
        )

    over, under = placements(positive, negative), placements(negative, positive)
    return float(over.var(ddof=1) / len(positive) + under.var(ddof=1) / len(negative))


def _newcombe_interval(value: float, m: int, n: int, z: float) -> tuple[float, float]:
    from scipy.optimize import brentq

    half = (m + n) / 2 - 1

    def distance(theta: float) -> float:
        spread = theta * (1 - theta) * (1 + half * (1 - theta) / (2 - theta) + half * theta / (1 + theta)) / (m * n)
        return (value - theta) ** 2 - z * z * spread

    low = 0.0 if distance(0.0) <= 0 else float(brentq(distance, 0.0, value)) if value < 1 else _root(distance, 0.0, 1.0)
    high = 1.0 if value == 1 or distance(1.0) <= 0 else _root(distance, 1.0, value)
    return (low if value > 0 else 0.0), high


def _root(function: Any, outside: float, inside: float) -> float:
    """Return the root between a point where the function is positive and, next to ``inside``, where it is negative."""
    from scipy.optimize import brentq

    near = inside + (outside - inside) * 1e-9
    return float(brentq(function, outside, near)) if function(near) < 0 else inside


def _mann_whitney_p(positive: Floats, negative: Floats) -> float:
    from scipy import stats

    if len(np.unique(np.concatenate([positive, negative]))) == 1:
        return 1.0
    return float(stats.mannwhitneyu(positive, negative, alternative="two-sided").pvalue)
