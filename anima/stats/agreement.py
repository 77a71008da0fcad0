"""Agreement of two raters: kappa, weighted kappa, percent agreement.

Which statistic: named classes, ``cohen_kappa``; an ordered scale with few steps, ``weighted_kappa``; a continuous
scale, ``lin_ccc`` or ``icc``; more than two raters, :mod:`anima.stats.raters`. Quadratic kappa *is* Lin's concordance
and nearly equals ICC(2,1): one piece of evidence, not three. Read every kappa beside the numbers in its ``extra``:
percent agreement, base rates, what always saying the commonest class would score, and AC1, which does not collapse when
one class rules. Pinned to scikit-learn and statsmodels in ``tests/stats/test_agreement.py``; coverage in
``test_coverage.py``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_array, require_choice, require_floats, require_fraction, show, to_array
from anima.errors import InputError
from anima.stats.bootstrap import FEW_ITEMS, IntervalMethod, bootstrap_sums, confusion_terms
from anima.stats.estimate import Estimate
from anima.stats.resampling import RngLike, cluster_codes
from anima.stats.weighted import Floats, normal_quantile, without_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


Weights = Literal["nominal", "linear", "quadratic"]

RULING_SHARE = 0.85  # beyond this share of one class the coverage simulations of kappa's interval fail
MOST_CATEGORIES = 500
_MOST_CELLS = 50_000_000


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    categories: Sequence[Any] | None = None,
    weights: Weights = "nominal",
    interval: IntervalMethod = "auto",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str | None = None,
) -> Estimate:
    """Return Cohen's kappa of two raters with its interval and the numbers it must not be read without.

    Parameters
    ----------
    a, b
        Labels of the same items in the same order: numbers, text or booleans. Items that either rater left out (None,
        NaN) are dropped and counted.
    categories
        The declared scale, in order; steps that nobody used stay in it. Text with weights needs it: alphabetical order
        puts '10' before '2'.
    weights
        ``"nominal"``: any disagreement counts alike; ``"linear"`` or ``"quadratic"``: by distance, in the values of a
        numeric scale, in steps of a textual one.
    interval
        ``"analytic"``: two categories, the score interval of Donner and Eliasziw (1992, Statistics in Medicine 11,
        1511–1519) with a t quantile; otherwise Fisher's z with the delta-method error of Fleiss, Cohen and Everitt
        (1969) after one pseudo-observation spread over all cells, and a t quantile. ``"percentile"`` and ``"bca"``
        resample items and, like plain Wald intervals, cover too little at small n. ``"auto"``: analytic, with
        ``clusters`` percentile by cluster.

    Returns
    -------
    Estimate
        ``"undefined"`` when both raters used one and the same category only; ``"unreliable"`` when one class takes more
        than 85 % of all labels, below 10 items, or as :func:`bootstrap`. ``extra``: percent_agreement,
        majority_baseline (agreement of always saying the first rater's commonest class), ac1, base_rates_a,
        base_rates_b, unused.

    Examples
    --------
    >>> e = cohen_kappa(list("yyynnnynyn"), list("yynnnnynyy"))
    >>> round(e.value, 2), e.extra["percent_agreement"]
    (0.6, 0.8)
    """
    require_choice(weights, "weights", ("nominal", "linear", "quadratic"))
    require_choice(interval, "interval", ("auto", "analytic", "percentile", "bca"))
    require_fraction(level)
    title = name or ("Cohen's kappa" if weights == "nominal" else f"{weights} weighted kappa")
    first, second, labels, kept = code_pairs(a, b, categories, ordered=weights != "nominal")
    n, k = len(first), len(labels)
    common: dict[str, Any] = {"level": level, "n": n, "n_dropped": int((~kept).sum())}
    if not n:
        return Estimate.undefined(title, "no item was labelled by both raters", **common)
    if k > MOST_CATEGORIES:
        raise InputError(f"{k} distinct labels make no scale of steps: use lin_ccc or icc for continuous scores")
    table = np.bincount(first * k + second, minlength=k * k).reshape(k, k).astype(float)
    common["extra"] = _beside(table, labels)
    weight = agreement_weights(labels, weights)
    value = float(kappa_of_tables(table[None], weight)[0])
    if math.isnan(value):
        only = labels[int(np.argmax(table.sum(axis=0)))]
        reason = f"both raters used only {show(only)}: agreement beyond chance cannot be seen"
        return Estimate.undefined(title, reason, **common)
    weak = _weaknesses(table, n)
    if interval in ("percentile", "bca") or clusters is not None:
        if interval == "analytic":
            raise InputError("interval='analytic' supposes independent items: pass 'percentile' with clusters")
        if n * k * k > _MOST_CELLS:
            raise InputError(f"resampling {n} items on {k} categories takes too much memory: merge rare categories")
        if reason := without_interval(np.column_stack([first, second]).astype(np.float64)):
            if clusters is not None:
                common["n_clusters"] = int(cluster_codes(clusters, len(kept))[kept].max()) + 1
            return Estimate(title, 0.0, status="unreliable", reason="; ".join([*weak, reason]), **common)
        return bootstrap_sums(
            lambda sums: kappa_of_tables(sums.reshape(-1, k, k), weight),
            confusion_terms(first, second, k),
            clusters=None if clusters is None else cluster_codes(clusters, len(kept))[kept],
            n_resamples=n_resamples, method="bca" if interval == "bca" else "percentile", rng=rng, name=title, notes=weak,
            **common,
        )  # fmt: skip
    low, high = (float(end[0]) for end in kappa_intervals(table[None], weight, level))
    method = "Donner–Eliasziw score, t" if k == 2 else "Fisher z of kappa, one pseudo-observation, t"
    return Estimate.noted(title, value, low, high, weak, method=method, **common)


def weighted_kappa(a: ArrayLike, b: ArrayLike, *, weights: Weights = "quadratic", **options: Any) -> Estimate:
    """Return weighted kappa; see :func:`cohen_kappa` for the options, the scale and the interval."""
    return cohen_kappa(a, b, weights=weights, **options)


def percent_agreement(
    a: ArrayLike, b: ArrayLike, *, categories: Sequence[Any] | None = None, level: float = 0.95
) -> Estimate:
    """Return the share of items two raters agree on, with Wilson's interval; never read it alone."""
    first, second, labels, kept = code_pairs(a, b, categories)
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, (first, second), 1)
    result = share_estimate(np.trace(table), len(first), "percent agreement", level)
    return replace(result, n_dropped=int((~kept).sum()), extra=_beside(table, labels) if len(first) else {})


def agreement_weights(labels: Sequence[Any], weights: Weights) -> Floats:
    """Return the ``(k, k)`` agreement weights of a scale: 1 on the diagonal, 0 at the farthest pair."""
    k = len(labels)
    if weights == "nominal" or k < 2:
        return np.eye(k)
    numeric = all(isinstance(label, int | float | np.number) and not isinstance(label, bool) for label in labels)
    places = require_array(labels, "the scale of a and b") if numeric else np.arange(k, dtype=float)
    distance = np.abs(places[:, None] - places)
    distance = distance**2 if weights == "quadratic" else distance
    return np.asarray(1 - distance / distance.max())


def kappa_of_tables(tables: Floats, weights: Floats) -> Floats:
    """Return kappa of stacked tables of counts ``(m, k, k)`` under agreement weights; NaN where chance explains all."""
    with np.errstate(all="ignore"):
        p = tables / tables.sum(axis=(1, 2), keepdims=True)
        seen = np.einsum("mij,ij->m", p, weights)
        chance = np.einsum("mi,ij,mj->m", p.sum(axis=2), weights, p.sum(axis=1))
        return np.where(chance < 1 - 1e-12, (seen - chance) / (1 - chance), np.nan)


def kappa_intervals(tables: Floats, weights: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the ends of the default intervals of kappa for stacked tables ``(m, k, k)``, stretched to hold the estimate."""
    from scipy.special import stdtrit

    value = kappa_of_tables(tables, weights)
    n = tables.sum(axis=(1, 2))
    quantile = stdtrit(np.maximum(n - 1, 1), 1 - (1 - level) / 2)
    if tables.shape[1] == 2:
        low, high = _score_interval(tables, quantile**2)
    else:
        low, high = _delta_interval(tables, weights, quantile)
    with np.errstate(all="ignore"):
        return np.minimum(low, value), np.maximum(high, value)


def wilson_interval(hits: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return Wilson's score interval of a proportion; NaN where n is 0."""
    x, total = require_array(hits, "hits"), require_array(n, "n")
    if any(p != q and 1 not in (p, q) for p, q in zip(x.shape[::-1], total.shape[::-1], strict=False)):
        raise InputError(f"hits has shape {x.shape} and n {total.shape}: give one n for all hits, or one each")
    z2 = normal_quantile(level) ** 2
    with np.errstate(all="ignore"):
        p = x / total
        centre = (p + z2 / (2 * total)) / (1 + z2 / total)
        half = np.sqrt(z2 * (p * (1 - p) / total + z2 / (4 * total**2))) / (1 + z2 / total)
        return np.where(x > 0, centre - half, 0.0 * p), np.where(x < total, centre + half, 1.0 + 0.0 * p)


def share_estimate(hits: float, n: int, name: str, level: float = 0.95) -> Estimate:
    """Return a share with Wilson's interval; undefined without data."""
    if not n:
        return Estimate.undefined(name, "there are no data", level=level)
    low, high = wilson_interval(hits, n, level)
    return Estimate(name, hits / n, float(low), float(high), level, method="Wilson", n=n)


def code_pairs(
    a: ArrayLike, b: ArrayLike, categories: Sequence[Any] | None = None, *, ordered: bool = False
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[Any], NDArray[np.bool_]]:
    """Return both raters' labels as codes on one scale, the scale, and which items were kept."""
    import pandas as pd

    columns = [_labels(values, label) for values, label in ((a, "a"), (b, "b"))]
    if len(columns[0]) != len(columns[1]):
        raise InputError(f"a has {len(columns[0])} labels and b has {len(columns[1])}: rate the same items")
    kept = ~(pd.isna(columns[0]) | pd.isna(columns[1]))
    both = [column[kept] for column in columns]
    joined = np.concatenate(both)
    kinds = {("text" if isinstance(item, str) else "number") for item in joined} if joined.dtype == object else set()
    if len(kinds) > 1:
        raise InputError("a and b mix text and numbers: give both raters labels of one kind")
    if categories is None:
        if ordered and kinds == {"text"}:
            raise InputError("weights need an order and text has none: pass categories=[...] in order, or numbers")
        try:
            found, codes = np.unique(joined, return_inverse=True)
        except TypeError:  # mappings and the like
            kinds = {type(item).__name__ for item in joined}
            raise InputError(f"a and b must hold numbers or text, got {', '.join(sorted(kinds))}") from None
        labels = found.tolist()
    else:
        labels = list(categories)
        codes = scale_positions(joined.tolist(), labels)
    n = len(both[0])
    return codes[:n].astype(np.intp), codes[n:].astype(np.intp), labels, kept


def scale_positions(values: list[Any], labels: list[Any]) -> NDArray[np.intp]:
    """Return the position of each value on a declared scale of distinct steps."""
    import pandas as pd

    if odd := [label for label in labels if not isinstance(label, Hashable)]:
        raise InputError(f"categories must be numbers or text, got {type(odd[0]).__name__} {show(odd[0])}")
    if len(set(labels)) != len(labels):
        raise InputError(f"categories must be distinct, got {show(labels)}")
    places = pd.Index(labels).get_indexer(pd.Index(values)) if values else np.empty(0, dtype=np.intp)
    if (places < 0).any():
        outside = values[int(np.argmax(places < 0))]
        raise InputError(f"{show(outside)} is not among the declared categories {show(labels)}")
    return places.astype(np.intp)


def _labels(values: ArrayLike, name: str) -> NDArray[Any]:
    raw = to_array(values, name)
    if raw.ndim != 1:
        raise InputError(f"{name} must have one axis, got shape {raw.shape}")
    if raw.dtype.kind in "iub":
        return raw
    if raw.dtype.kind == "f":
        return require_floats(raw, name)
    return np.asarray(values, dtype=object)


def _beside(table: Floats, labels: Sequence[Any]) -> dict[str, Any]:
    """Return the numbers that stand beside a kappa."""
    n = table.sum()
    first, second = table.sum(axis=1) / n, table.sum(axis=0) / n
    seen, mean_rates = float(np.trace(table) / n), (first + second) / 2
    chance = float((mean_rates * (1 - mean_rates)).sum() / (len(labels) - 1)) if len(labels) > 1 else math.nan
    return {
        "percent_agreement": seen,
        "majority_baseline": float(first.max()),
        "ac1": (seen - chance) / (1 - chance),
        "base_rates_a": dict(zip(map(str, labels), first.tolist(), strict=True)),
        "base_rates_b": dict(zip(map(str, labels), second.tolist(), strict=True)),
        "unused": [label for label, rate in zip(labels, mean_rates, strict=True) if not rate],
    }


def _weaknesses(table: Floats, n: int) -> list[str]:
    share = float(((table.sum(axis=0) + table.sum(axis=1)) / (2 * n)).max())
    notes = []
    if share > RULING_SHARE:
        notes.append(
            f"one class takes {share:.0%} of the labels (kappa paradox): read percent agreement, base rates and AC1"
        )
    if n < FEW_ITEMS:
        notes.append(f"{n} items: below {FEW_ITEMS} the interval is not backed by simulation")
    return notes


def _score_interval(tables: Floats, critical: Floats) -> tuple[Floats, Floats]:
    """Solve chi²(kappa) = critical on both sides of the estimate by bisection, the base rate held at its estimate."""
    n, both, neither = tables.sum(axis=(1, 2)), tables[:, 0, 0], tables[:, 1, 1]
    split = n - both - neither
    with np.errstate(all="ignore"):
        p = (2 * both + split) / (2 * n)
        q = 1 - p
        centre = 1 - split / (2 * n * p * q)

        def accepted(kappa: Floats) -> NDArray[np.bool_]:
            shares = (p * p + kappa * p * q, 2 * p * q * (1 - kappa), q * q + kappa * p * q)
            chi2 = np.zeros(len(n))
            for seen, share in zip((both, split, neither), shares, strict=True):
                expected = n * np.maximum(share, 0)
                chi2 += np.where((seen == 0) & (expected < 1e-9), 0, (seen - expected) ** 2 / expected)
            return chi2 <= critical

        ends = []
        for limit in (np.maximum(-p / q, -q / p), np.ones(len(n))):
            outer, inner = limit.copy(), centre.copy()
            at_limit = accepted(limit)
            for _ in range(60):
                middle = (outer + inner) / 2
                fine = accepted(middle)
                inner, outer = np.where(fine, middle, inner), np.where(fine, outer, middle)
            ends.append(np.where(at_limit, limit, inner))
    return ends[0], ends[1]


def _delta_interval(tables: Floats, weights: Floats, quantile: Floats) -> tuple[Floats, Floats]:
    n = tables.sum(axis=(1, 2))
    k = tables.shape[1]
    p = (tables + 1 / k**2) / (n + 1)[:, None, None]
    rows, columns = p.sum(axis=2), p.sum(axis=1)
    seen = np.einsum("mij,ij->m", p, weights)
    chance = np.einsum("mi,ij,mj->m", rows, weights, columns)
    kappa = (seen - chance) / (1 - chance)
    mean_weight = (columns @ weights.T)[:, :, None] + (rows @ weights)[:, None, :]
    square = (p * (weights - mean_weight * (1 - kappa)[:, None, None]) ** 2).sum(axis=(1, 2))
    variance = np.maximum(square - (kappa - chance * (1 - kappa)) ** 2, 0) / np.maximum(n - 1, 1) / (1 - chance) ** 2
    z, half = np.arctanh(kappa), quantile * np.sqrt(variance) / (1 - kappa**2)
    return np.tanh(z - half), np.tanh(z + half)
