"""Correlation of two variables, with an honest interval.

Which statistic: ``spearman`` for anything monotone (the default of the studies); ``pearson`` when the line itself is of
interest; ``kendall`` when ranks are few and tied; AUC or rank-biserial correlation (:mod:`anima.stats.separation`) when
the outcome is yes or no. Pinned to scipy in ``tests/stats/test_correlation.py``; coverage in ``test_coverage.py``.
"""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction, require_int
from anima.errors import InputError
from anima.stats.bootstrap import IntervalMethod, estimate_from_counts
from anima.stats.estimate import Estimate
from anima.stats.resampling import QuantileRule, RngLike, cluster_codes, numpy_rng
from anima.stats.weighted import (
    CorrelationMethod,
    Floats,
    is_constant,
    midranks,
    normal_quantile,
    pearson_value,
    standardised,
    weighted_correlation,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

PValue = Literal["analytic", "permutation", "none"]

MIN_PAIRS = 3
FEW_PAIRS = 10  # the coverage simulations of the tests stop here
HEAVY_KURTOSIS = 2.0  # exceeded by 2 % of normal samples of 30
_TITLES = {"pearson": "Pearson's r", "spearman": "Spearman's rho", "kendall": "Kendall's tau-b"}
EXACT_PERMUTATIONS = 7  # 7! = 5,040 orders are enumerated, more are sampled


def correlation(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: CorrelationMethod = "spearman",
    interval: IntervalMethod = "auto",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    p_value: PValue = "analytic",
    n_permutations: int = 9999,
    quantiles: QuantileRule = "linear",
    rng: RngLike = None,
    name: str | None = None,
) -> Estimate:
    """Return a correlation with its interval and two-sided p-value of no association.

    Parameters
    ----------
    x, y
        Numbers of equal length. Pairs with a missing or infinite member are dropped, before ranking, and counted.
    method
        See the head of this module.
    interval
        ``"analytic"``: Fisher z for Pearson; when both variables take few values, with the mean of the normal-theory
        variance and the distribution-free one after one pseudo-observation (plain Fisher z covers only about 83 % for
        two strongly associated binary variables), with heavy tails with the larger of the two. Spearman: variance (1 +
        rho²/2)/(n − 3), Kendall: .437/(n − 4) (Bonett and Wright 2000, Psychometrika 65, 23–28). ``"percentile"`` and
        ``"bca"`` resample pairs and rank every resample anew. ``"auto"``: analytic, with ``clusters`` percentile by
        cluster.
    clusters
        Cluster of each pair (dialogue, scenario). The analytic p-value, which supposes independence, is then left out.
    p_value
        ``"analytic"``: t or scipy's tau, exact for up to 7 ranks; ``"permutation"``: see :func:`permutation_p`.
    quantiles
        See :func:`anima.stats.resampling.percentile_interval`.

    Returns
    -------
    Estimate
        ``"undefined"`` with fewer than 3 pairs or a constant variable; ``"unreliable"`` with fewer than 10 pairs, with
        heavy tails (Pearson), or for the reasons of :func:`anima.stats.bootstrap`.

    Examples
    --------
    >>> e = correlation([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5], method="spearman")
    >>> round(e.value, 3), e.status
    (0.829, 'unreliable')
    """
    require_choice(method, "method", ("pearson", "spearman", "kendall"))
    require_choice(interval, "interval", ("auto", "analytic", "percentile", "bca"))
    require_choice(p_value, "p_value", ("analytic", "permutation", "none"))
    require_fraction(level)
    require_int(n_resamples, "n_resamples", low=1)
    title = name or _TITLES[method]
    a, b, groups, dropped = paired(x, y, clusters)
    common: dict[str, Any] = {"level": level, "n": len(a), "n_dropped": dropped}
    if groups is not None:
        common["n_clusters"] = int(groups.max(initial=-1)) + 1
    if reason := _why_undefined(a, b):
        return Estimate.undefined(title, reason, **common)
    value = _value(method, a, b)
    probability = math.nan
    if p_value == "permutation":
        if groups is not None:
            raise InputError("p_value='permutation' supposes exchangeable pairs: leave out clusters or pass 'none'")
        probability = permutation_p(a, b, method=method, n_permutations=n_permutations, rng=rng)
    elif p_value == "analytic" and groups is None:
        probability = _analytic_p(method, a, b)
    if interval == "analytic" or (interval == "auto" and groups is None):
        if groups is not None:
            raise InputError("interval='analytic' supposes independent pairs: pass 'percentile' with clusters")
        return analytic_estimate(title, method, value, a, b, probability, common)
    n_units = common.pop("n_clusters", len(a))
    return estimate_from_counts(
        title, value, lambda counts: weighted_correlation(counts, a, b, method, groups), n_units, n_resamples=n_resamples,
        method=interval, rng=rng, rule=quantiles, clustered=groups is not None, p_value=probability, **common,
    )  # fmt: skip


def permutation_p(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: CorrelationMethod = "spearman",
    n_permutations: int = 9999,
    rng: RngLike = None,
) -> float:
    """Return the two-sided permutation p-value of no association; NaN where the correlation is undefined.

    All orders are enumerated up to 7 pairs; beyond, the observed order counts as one of the draws (Phipson and Smyth
    2010), so that p is never 0.
    """
    require_int(n_permutations, "n_permutations", low=1)
    a, b, _, _ = paired(x, y)
    if _why_undefined(a, b):
        return math.nan
    n = len(a)
    if method == "kendall":
        signs_a, signs_b = (np.sign(v[:, None] - v) for v in (a, b))

        def strength(orders: NDArray[np.intp]) -> Floats:
            return np.array([abs((signs_a * signs_b[np.ix_(order, order)]).sum()) for order in orders])
    else:
        u, v = (standardised(midranks(w) if method == "spearman" else w) for w in (a, b))

        def strength(orders: NDArray[np.intp]) -> Floats:
            return np.abs(v[orders] @ u)

    observed = strength(np.arange(n)[None])[0]
    threshold = observed - 1e-9 * max(1.0, float(observed))
    if n <= EXACT_PERMUTATIONS:
        return float((strength(np.array(list(permutations(range(n))))) >= threshold).mean())
    generator, _ = numpy_rng(rng)
    step = max(1, (1 << 19) // n)
    extreme = 0
    for start in range(0, n_permutations, step):
        orders = np.tile(np.arange(n), (min(step, n_permutations - start), 1))
        extreme += int((strength(generator.permuted(orders, axis=1)) >= threshold).sum())
    return (extreme + 1) / (n_permutations + 1)


def paired(
    x: ArrayLike, y: ArrayLike, clusters: ArrayLike | None = None, *, names: tuple[str, str] = ("x", "y")
) -> tuple[Floats, Floats, NDArray[np.intp] | None, int]:
    """Return the complete pairs as floats, their cluster codes (or None) and the number of pairs dropped."""
    a, b = require_floats(x, names[0]), require_floats(y, names[1])
    if len(a) != len(b):
        raise InputError(f"{names[0]} has {len(a)} values and {names[1]} has {len(b)}: pairs need both")
    keep = ~(np.isnan(a) | np.isnan(b))
    groups = None
    if clusters is not None:
        groups = cluster_codes(clusters, len(a))[keep]
        groups = np.unique(groups, return_inverse=True)[1].astype(np.intp)
    return a[keep], b[keep], groups, int((~keep).sum())


def _why_undefined(a: Floats, b: Floats) -> str:
    if len(a) < MIN_PAIRS:
        return f"{len(a)} complete pairs, at least {MIN_PAIRS} are needed"
    flat = [label for label, values in (("x", a), ("y", b)) if is_constant(values)]
    return f"{' and '.join(flat)} constant" if flat else ""


def _value(method: CorrelationMethod, a: Floats, b: Floats) -> float:
    if method == "pearson":
        return pearson_value(a, b)
    if method == "spearman":
        return pearson_value(midranks(a), midranks(b))
    from scipy import stats

    return float(np.clip(stats.kendalltau(a, b).statistic, -1, 1))


def _analytic_p(method: CorrelationMethod, a: Floats, b: Floats) -> float:
    if method == "kendall":
        from scipy import stats

        return float(stats.kendalltau(a, b).pvalue)
    if method == "spearman" and len(a) <= EXACT_PERMUTATIONS:
        return permutation_p(a, b)
    r = _value(method, a, b)
    return t_p_value(r, len(a) - 2) if abs(r) < 1 or len(a) > 3 else math.nan


def t_p_value(r: float, df: float) -> float:
    """Return the two-sided p-value of a (partial) correlation by Student's t."""
    from scipy.special import stdtr

    return 0.0 if abs(r) == 1 else float(2 * stdtr(df, -abs(r) * math.sqrt(df / ((1 - r) * (1 + r)))))


def analytic_estimate(
    title: str, method: CorrelationMethod, value: float, a: Floats, b: Floats, p: float, common: dict[str, Any]
) -> Estimate:
    """Return a known correlation of complete pairs with its analytic interval; see :func:`correlation`."""
    n, z = len(a), normal_quantile(common["level"])
    notes = [f"{n} pairs: below {FEW_PAIRS} the interval is not backed by simulation"] if n < FEW_PAIRS else []
    centre, label = value, "Bonett–Wright"
    error = math.inf
    if method == "kendall":
        error = math.sqrt(0.437 / (n - 4)) if n > 4 else math.inf
    elif n > 3:
        error = math.sqrt((1 + value**2 / 2 if method == "spearman" else 1) / (n - 3))
    if method == "pearson":
        label = "Fisher z"
        few = max(2, min(10, n // 2))
        distinct = [len(np.unique(values)) for values in (a, b)]
        if max(distinct) <= few and n > 3:
            label = "Fisher z, mixed variance"
            centre, spread = _distribution_free(a, b)
            error = math.sqrt((error**2 + spread) / 2)
        elif heavy := [
            f"{tag} (excess kurtosis {k:.1f})"
            for tag, v, d in (("x", a, distinct[0]), ("y", b, distinct[1]))
            if d > 2 and (k := float(np.mean(standardised(v) ** 4)) * n**2 - 3) > HEAVY_KURTOSIS
        ]:
            label = "Fisher z, larger variance"
            error = math.sqrt(max(error**2, _distribution_free(a, b)[1])) if n > 3 else error
            notes.append(f"heavy tails of {' and '.join(heavy)}: the interval is too narrow, prefer Spearman")
    if abs(centre) > 1 - 1e-12:
        # Fisher's z is infinite. For ranks: go to the nearest value below 1, one swap of neighbours away.
        swap = 12 / (n * (n * n - 1)) if method == "spearman" else 4 / (n * (n - 1)) if method == "kendall" else 0.0
        notes.append("perfect correlation: the far end of the interval is conventional")
        inner = math.tanh(math.atanh(1 - swap) - z * error) if swap else 1.0
        low, high = (inner, 1.0) if centre > 0 else (-1.0, -inner)
    else:
        low, high = (math.tanh(math.atanh(centre) + sign * z * error) for sign in (-1, 1))
    low, high = min(low, value), max(high, value)
    return Estimate.noted(title, value, low, high, notes, method=label, p_value=p, **common)


def _distribution_free(a: Floats, b: Floats) -> tuple[float, float]:
    """Return r and the variance of its z after one pseudo-observation spread like the product of the margins."""
    n = len(a)
    u, v = (standardised(values) * math.sqrt(n) for values in (a, b))

    def moment(p: int, q: int) -> float:
        return float(((u**p * v**q).sum() + (u**p).mean() * (v**q).mean()) / (n + 1))

    r = moment(1, 1)
    spread = (
        moment(2, 2) - r * (moment(3, 1) + moment(1, 3)) + r**2 / 4 * (moment(4, 0) + 2 * moment(2, 2) + moment(0, 4))
    )
    return r, max(spread, 0.0) / (n - 2) / (1 - r**2) ** 2
