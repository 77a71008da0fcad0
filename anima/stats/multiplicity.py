"""Many comparisons at once: adjusted p-values, and a test for the best of several correlations.

Which: ``holm`` when a single false claim is one too many (verdicts); ``bh`` when a list is screened and some false
entries are tolerable; ``max_t`` when the comparisons are correlated or the best of several is picked, because it uses
the dependence instead of supposing the worst.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from anima.checks import require_array, require_choice, require_int
from anima.errors import InputError
from anima.stats.resampling import RngLike, numpy_rng
from anima.stats.weighted import Floats, midranks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def adjust_p(p_values: ArrayLike, *, method: Literal["holm", "bh", "bonferroni"] = "holm") -> Floats:
    """Return adjusted p-values in the given order; reject where they are <= the level.

    ``"holm"`` and ``"bonferroni"`` control the chance of any false claim; ``"bh"`` (Benjamini and Hochberg 1995) the
    expected share of false ones among the claims, for independent or positively dependent tests. NaN (undefined tests)
    stay NaN and do not count towards the family. Pinned to statsmodels in ``tests/stats/test_multiplicity.py``.

    Examples
    --------
    >>> adjust_p([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    require_choice(method, "method", ("holm", "bh", "bonferroni"))
    p = require_array(p_values, "p_values")
    if p.ndim != 1:
        raise InputError(f"p_values must have one axis, got shape {p.shape}")
    known = ~np.isnan(p)
    if ((p[known] < 0) | (p[known] > 1)).any():
        raise InputError("p_values must lie in [0, 1]")
    out = np.full(len(p), math.nan)
    order = np.flatnonzero(known)[np.argsort(p[known], kind="stable")]
    m = len(order)
    sorted_p, rank = p[order], np.arange(1, m + 1)
    if method == "holm":
        adjusted = np.maximum.accumulate(sorted_p * (m - rank + 1))
    elif method == "bh":
        # Largest first. Written p / (rank / m), so that p equal to its boundary gives the level exactly.
        adjusted = np.minimum.accumulate((sorted_p / (rank / m))[::-1])[::-1]
    else:
        adjusted = sorted_p * m
    out[order] = np.minimum(adjusted, 1)
    return out


def max_t(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Literal["pearson", "spearman"] = "spearman",
    n_permutations: int = 2000,
    rng: RngLike = None,
) -> Floats:
    """Return family-wise adjusted p-values of all correlations between two sets of columns (Westfall and Young 1993).

    Rows of ``y`` are permuted together, which keeps the dependence within x and within y and breaks that between them;
    each pair is compared with the largest strength of its permutation (step-down).

    Parameters
    ----------
    x, y
        ``(n, p)`` and ``(n, q)``, rows matched; NaN where a value is missing: a pair uses the rows it has, and strength
        is Fisher's z times the square root of its n less 3. Ranks are taken once, over the rows of each column.
    n_permutations
        Random orders; the observed one counts as one more.

    Returns
    -------
    ndarray
        ``(p, q)``, NaN for pairs that are constant or have fewer than 4 rows. The best of several outcomes for one
        rubric: pass that rubric's column alone as ``x`` and take the smallest entry.
    """
    require_choice(method, "method", ("pearson", "spearman"))
    require_int(n_permutations, "n_permutations", low=1)
    # One axis is one column, as everywhere else.
    left, right = (
        table[:, None] if table.ndim == 1 else table
        for table in (require_array(values, name) for values, name in ((x, "x"), (y, "y")))
    )
    if left.ndim != 2 or right.ndim != 2 or len(left) != len(right):
        raise InputError(f"x and y must have matched rows, got shapes {left.shape} and {right.shape}")
    generator, _ = numpy_rng(rng)
    for table in (left, right):
        table[~np.isfinite(table)] = math.nan
        for column in table.T:
            known = ~np.isnan(column)
            if known.any():
                values = midranks(column[known]) if method == "spearman" else column[known]
                column[known] = values - values.mean()
                scale = np.abs(column[known]).max()
                column[known] /= scale if scale > 0 else 1.0
    observed = _strength(left, right)
    defined = ~np.isnan(observed)
    order = np.argsort(-observed[defined], kind="stable")
    sorted_observed = observed[defined][order]
    exceed = np.ones(len(order))
    for _ in range(n_permutations):
        drawn = np.nan_to_num(_strength(left, right[generator.permutation(len(right))]), nan=0.0)[defined][order]
        # Step-down: the k-th strongest competes with itself and all weaker ones.
        exceed += np.maximum.accumulate(drawn[::-1])[::-1] >= sorted_observed - 1e-12
    p = np.maximum.accumulate(exceed / (n_permutations + 1))
    out = np.full(observed.shape, math.nan)
    flat = np.full(int(defined.sum()), math.nan)
    flat[order] = p
    out[defined] = flat
    return out


def _strength(x: Floats, y: Floats) -> Floats:
    """Return |atanh r| sqrt(n - 3) for all pairs of columns, over the rows that a pair has."""
    mask_x, mask_y = (~np.isnan(v) for v in (x, y))
    a, b = np.where(mask_x, x, 0.0), np.where(mask_y, y, 0.0)
    if mask_x.all() and mask_y.all():
        n: Floats | float = float(len(x))
        sx, sy = a.sum(axis=0)[:, None], b.sum(axis=0)[None]
        sxx, syy = (a * a).sum(axis=0)[:, None], (b * b).sum(axis=0)[None]
    else:
        have_x, have_y = mask_x.astype(float), mask_y.astype(float)
        n = have_x.T @ have_y
        sx, sy, sxx, syy = a.T @ have_y, have_x.T @ b, (a * a).T @ have_y, have_x.T @ (b * b)
    with np.errstate(all="ignore"):
        vx, vy = sxx - sx * sx / n, syy - sy * sy / n
        r = np.clip((a.T @ b - sx * sy / n) / np.sqrt(vx * vy), -1 + 1e-12, 1 - 1e-12)
        strength = np.abs(np.arctanh(r)) * np.sqrt(np.maximum(n - 3, 0))
        return np.where((vx > 1e-12) & (vy > 1e-12) & (n > 3), strength, math.nan)
