"""Correlations of many resamples at once, each given as multiplicities of the units; and the numbers they rest on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anima.checks import require_fraction
from anima.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
CorrelationMethod = Literal["pearson", "spearman", "kendall"]

_MAX_KENDALL = 3000  # tau holds three n by n tables


def weighted_correlation(
    counts: Floats, x: Floats, y: Floats, method: CorrelationMethod = "spearman", groups: NDArray[np.intp] | None = None
) -> Floats:
    """Return the correlation of each resample ``(m,)`` of complete pairs, NaN where x or y is constant within it.

    ``counts``: ``(m, units)`` multiplicities (:func:`anima.stats.resampling.resample_counts`); ``groups``: the unit of
    each pair, None when the pairs are the units.
    """
    if method == "pearson":
        return _weighted_pearson(counts, x, y, groups)
    weights = counts if groups is None else counts[:, groups]
    if method == "kendall":
        return _weighted_kendall(weights, x, y)
    return _weighted_spearman(weights, x, y)


def pearson_table(blocks: Iterable[Floats], x: Floats, y: Floats) -> Floats:
    """Return Pearson's r of all pairs of columns for each resample of rows, ``(all m, p, q)``; NaN where a column is
    constant.

    ``blocks`` are multiplicities ``(m, rows)``; ``x`` and ``y`` are ``(rows, p)`` and ``(rows, q)``, complete; pass
    ranks for an approximate Spearman (ranked once).
    """
    n, p = x.shape
    joined = np.column_stack([x, y])
    flat = np.array([is_constant(column) for column in joined.T])
    with np.errstate(all="ignore"):
        joined = (joined - joined.mean(axis=0)) / np.where(flat, 1.0, joined.std(axis=0))
    u, v = joined[:, :p], joined[:, p:]
    terms = np.concatenate([joined, joined**2, (u[:, :, None] * v[:, None, :]).reshape(n, -1)], axis=1)
    k = joined.shape[1]
    tables = []
    for counts in blocks:
        sums, total = counts @ terms, counts.sum(axis=1, keepdims=True)
        first, second, cross = sums[:, :k], sums[:, k : 2 * k], sums[:, 2 * k :].reshape(-1, p, k - p)
        spread = second - first**2 / total
        # Where centring leaves next to nothing of the squares, the rows decide whether the column is constant.
        for i, j in zip(*np.nonzero(~(spread > 1e-8 * second)), strict=True):
            if flat[j] or is_constant(joined[counts[i] > 0, j]):
                spread[i, j] = np.nan
        shift = first[:, :p, None] * first[:, None, p:] / total[:, :, None]
        with np.errstate(all="ignore"):
            tables.append((cross - shift) / np.sqrt(spread[:, :p, None] * spread[:, None, p:]))
    return np.asarray(np.clip(np.concatenate(tables), -1, 1))


def is_constant(values: Floats) -> bool:
    """Return whether values differ by no more than rounding noise (a few units in the last place)."""
    low, high = values.min(), values.max()
    return bool(high - low <= 8 * np.finfo(float).eps * max(abs(low), abs(high)))


def without_interval(scores: Floats) -> str:
    """Return why agreement on scores ``(items, raters)`` has no interval, "" if it may have one.

    A constant rater agrees by exactly 0, in every resample too: the spread of the sums is rounding noise.
    """
    flat = [float(column[0]) for column in scores.T if is_constant(column)]
    if not flat or scores.shape[1] - len(flat) > 1:
        return ""
    return f"a rater gave one score ({flat[0]:g}) throughout: interval not estimable"


def midranks(values: Floats) -> Floats:
    """Return 1-based ranks, ties sharing their mean rank; NaN is not allowed."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes], dtype=np.float64)


def pearson_value(x: Floats, y: Floats) -> float:
    """Return Pearson's r of finite, non-constant arrays, safe against over- and underflow, within [-1, 1]."""
    return float(np.clip(standardised(x) @ standardised(y), -1, 1))


def standardised(values: Floats) -> Floats:
    """Return values centred, with sum of squares 1; scaled first so that squares neither over- nor underflow."""
    _, exponent = np.frexp(np.abs(values).max())
    scaled = np.ldexp(values, -exponent)  # by a power of two, hence exact: a large offset must not cost digits
    centred = scaled - scaled.mean()
    centred = centred / np.abs(centred).max()
    return np.asarray(centred / np.sqrt(centred @ centred))


def _weighted_pearson(counts: Floats, x: Floats, y: Floats, groups: NDArray[np.intp] | None) -> Floats:
    # Scaled to unit spread, so that the check below for lost digits means the same for all data.
    u, v = (standardised(values) * math.sqrt(len(values)) for values in (x, y))
    terms = np.column_stack([u, v, u * u, v * v, u * v, np.ones(len(u))])
    if groups is not None:
        summed = np.zeros((counts.shape[1], 6))
        np.add.at(summed, groups, terms)
        terms = summed
    sx, sy, sxx, syy, sxy, n = (counts @ terms).T
    with np.errstate(all="ignore"):
        vx, vy = sxx - sx * sx / n, syy - sy * sy / n
        r = np.clip((sxy - sx * sy / n) / np.sqrt(vx * vy), -1, 1)
        # Too little of the sum of squares is left after centring: constant, or nearly. Decide on the data themselves.
        doubtful = np.flatnonzero(~((vx > 1e-8 * sxx) & (vy > 1e-8 * syy)))
    for i in doubtful:
        inside = counts[i] > 0 if groups is None else counts[i][groups] > 0
        times = (counts[i] if groups is None else counts[i][groups])[inside].astype(int)
        a, b = np.repeat(x[inside], times), np.repeat(y[inside], times)
        r[i] = np.nan if not len(a) or is_constant(a) or is_constant(b) else pearson_value(a, b)
    return np.asarray(r, dtype=np.float64)


def _weighted_spearman(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Return Spearman's rho of each resample, ranked anew: ranks are counts, so a cumulative sum ranks all at once."""
    order = np.argsort(x, kind="stable")
    weights, x, y = weights[:, order], x[order], y[order]
    n = weights.sum(axis=1, keepdims=True)
    ranks, squares = [], []
    for values in (x, y):
        _, codes = np.unique(values, return_inverse=True)
        held = weights
        if values is not x:
            held = weights[:, np.argsort(codes, kind="stable")]
        starts = np.flatnonzero(np.diff(np.sort(codes), prepend=-1))
        tied = len(starts) < len(values)
        if tied:
            held = np.add.reduceat(held, starts, axis=1)
        rank = np.cumsum(held, axis=1) - (held - 1) / 2 - (n + 1) / 2
        squares.append(np.einsum("ij,ij,ij->i", held, rank, rank))
        ranks.append(rank[:, codes] if tied or values is not x else rank)
    with np.errstate(all="ignore"):
        product = np.einsum("ij,ij,ij->i", weights, ranks[0], ranks[1])
        rho = product / np.sqrt(squares[0] * squares[1])
    return np.clip(np.where((squares[0] > 0) & (squares[1] > 0), rho, np.nan), -1, 1)


def _weighted_kendall(weights: Floats, x: Floats, y: Floats) -> Floats:
    if len(x) > _MAX_KENDALL:
        raise InputError(f"the bootstrap of Kendall's tau takes at most {_MAX_KENDALL} pairs: use interval='analytic'")
    sx, sy = (np.sign(values[:, None] - values) for values in (x, y))
    both, own_x, own_y = (((weights @ table) * weights).sum(axis=1) for table in (sx * sy, sx * sx, sy * sy))
    with np.errstate(all="ignore"):
        tau = both / np.sqrt(own_x * own_y)
    return np.clip(np.where((own_x > 0) & (own_y > 0), tau, np.nan), -1, 1)


def normal_quantile(level: float) -> float:
    """Return the two-sided normal quantile of a coverage level: 1.96 for .95."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - (1 - require_fraction(level)) / 2)
