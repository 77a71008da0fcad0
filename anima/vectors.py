"""Unit vectors, centroids, cosines and nearest neighbours.

Everything is computed in float64, whatever the input, and every number depends on its own two rows only: the same pair
gives the same bits alone, in a batch and in any order (``tests/test_vectors.py``). A row of NaN is "no vector", as
:mod:`anima.embedding` returns for blank text; a row of zeros has no direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.checks import require_int
from anima.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SCORES: Final = 8_000_000  # coarse scores held at once by top_k: 32 MB
_ROWS: Final = 4096  # rows widened to float64 at once: 16 MB at 512 columns


def unit(rows: ArrayLike) -> NDArray[np.float64]:
    """Return the rows scaled to length one.

    Parameters
    ----------
    rows
        Shape (n, d), or (d,) for one vector. Zero rows stay zero, rows holding NaN become NaN throughout.

    Raises
    ------
    InputError
        If ``rows`` is not numeric, has another number of dimensions or holds an infinite value.
    """
    given = _numeric(rows, "rows")
    if given.ndim not in (1, 2):
        raise InputError(f"rows must have shape (n, d) or (d,), got {given.shape}")
    matrix = np.atleast_2d(given).astype(np.float64)
    lengths = _lengths(matrix, "rows")
    # Squares of numbers this large or small leave the range of float64; such rows are first brought near one.
    odd = (lengths > 1e150) | (lengths < 1e-150)
    if odd.any():
        largest = np.abs(matrix[odd]).max(axis=1, initial=0.0, keepdims=True)
        matrix[odd] /= np.where(largest > 0, largest, 1.0)
        lengths[odd] = _lengths(matrix[odd], "rows")
    matrix /= np.where(lengths == 0, 1.0, lengths)[:, None]
    return matrix.reshape(given.shape)


def centroid(rows: ArrayLike) -> NDArray[np.float64]:
    """Return the unit vector of the mean of the unit rows.

    Parameters
    ----------
    rows
        Shape (n, d). Rows of NaN are left out; a centroid of no rows is NaN, and zero if the rows cancel out.

    Returns
    -------
    ndarray
        Shape (d,).
    """
    matrix = unit(_matrix(rows, "rows"))
    matrix = matrix[~np.isnan(matrix).any(axis=1)]
    if not len(matrix):
        return np.full(matrix.shape[1], np.nan)
    return unit(matrix.mean(axis=0))


def cosine(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Return the cosine of each row of ``a`` with each row of ``b``.

    Rows are widened to float64 and brought to unit length first, and products are summed in float64. A pair's
    value does not depend on the other rows, which a plain matrix product does not promise (its last bit changes with
    the shape); that costs about three times the time of one. For large searches use :func:`top_k`.

    Parameters
    ----------
    a, b
        Shapes (n, d) and (m, d).

    Returns
    -------
    ndarray
        Shape (n, m). A zero row gives 0, a row of NaN gives NaN.

    Raises
    ------
    InputError
        If the shapes do not fit.
    """
    left, right = _pair(a, b, "a", "b")
    return _dots(unit(left)[:, None, :], unit(right)[None, :, :])


def top_k(queries: ArrayLike, items: ArrayLike, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the ``k`` items of highest cosine for each query.

    A float32 matrix product narrows the field to items that could still be among the best, given the bound on its
    rounding error; those are scored again in float64, so that result and order are those of :func:`cosine` fully
    sorted. Beside the inputs about 100 MB are used, more only where a great many items tie.

    Parameters
    ----------
    queries, items
        Shapes (n, d) and (m, d), of any length.
    k
        Number of items wanted, at least 1. Items without a direction (NaN or zero rows) are never returned; where
        fewer than ``k`` others exist, all of these are.

    Returns
    -------
    indices, scores
        Both of shape (n, min(k, usable items)), by falling score; equal scores by rising index. A query without a
        direction has indices -1 and scores NaN.

    Raises
    ------
    InputError
        If the shapes do not fit or ``k`` is not a positive integer.
    """
    k = require_int(k, "k", low=1)
    left, right = _pair(queries, items, "queries", "items")
    left = unit(left)
    lengths = np.empty(len(right))
    for start in range(0, len(right), _ROWS):
        lengths[start : start + _ROWS] = _lengths(right[start : start + _ROWS], "items")
    # Squares of tiny numbers vanish, so a length of zero alone does not say that a row is zero.
    usable = (lengths > 0) | ((lengths == 0) & right.any(axis=1))
    k = min(k, int(usable.sum()))
    indices = np.full((len(left), k), -1, dtype=np.int64)
    scores = np.full((len(left), k), np.nan)
    asked = np.flatnonzero(left.any(axis=1) & ~np.isnan(left).any(axis=1))
    step = max(1, _SCORES // max(1, len(right)))
    for start in range(0, len(asked) if k else 0, step):
        chunk = asked[start : start + step]
        indices[chunk], scores[chunk] = _best(left[chunk], right, lengths, usable, k)
    return indices, scores


def _best(
    queries: NDArray[np.float64], items: NDArray[Any], lengths: NDArray[np.float64], usable: NDArray[np.bool_], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    n, m = len(queries), len(items)
    coarse = np.empty((n, m), dtype=np.float32)
    narrow = queries.astype(np.float32)
    for start in range(0, m, _ROWS):
        block, size = items[start : start + _ROWS], lengths[start : start + _ROWS]
        if ((size > 1e-15) & (size < 1e15)).all():  # safe in float32: scale the products, not the rows
            scale = (1 / size).astype(np.float32)
        else:
            block, scale = unit(block), np.ones(1, dtype=np.float32)
        target = coarse[:, start : start + _ROWS]
        np.matmul(narrow, block.astype(np.float32, copy=False).T, out=target)
        target *= scale
    if not usable.all():
        coarse[:, ~usable] = -np.inf
    # A float32 dot product of unit vectors is off by at most (d + 4) units of rounding, whatever the order of its sum
    # (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Both sides of the comparison may be off.
    margin = 2 * (items.shape[1] + 4) * np.finfo(np.float32).eps
    floor = np.partition(coarse, m - k, axis=1)[:, m - k, None] - margin
    row, column = np.nonzero(coarse >= floor)
    if len(row) > coarse.size // 8:  # mostly ties: scoring block by block is cheaper than pair by pair
        dense = np.concatenate(
            [_dots(queries[:, None, :], unit(items[i : i + _ROWS])[None, :, :]) for i in range(0, m, _ROWS)], axis=1
        )
        exact = dense[row, column]
    else:
        exact = np.concatenate(
            [_dots(queries[row[i : i + _ROWS]], unit(items[column[i : i + _ROWS]])) for i in range(0, len(row), _ROWS)]
        )
    order = np.lexsort((column, -exact, row))
    # Sorted by row first, so that the best k of each row follow each row's first entry.
    first = np.searchsorted(row, np.arange(n))
    chosen = order[first[:, None] + np.arange(k)]
    return column[chosen].astype(np.int64), exact[chosen]


def _dots(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return dot products along the last axis, one at a time: no product of matrices, whose bits vary with shape."""
    return np.asarray(np.vecdot(a, b), dtype=np.float64)


def _lengths(rows: NDArray[Any], name: str) -> NDArray[np.float64]:
    wide = rows.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.vecdot(wide, wide))
    if not np.isfinite(lengths).all():
        infinite = np.isinf(wide).any(axis=1)
        if infinite.any():
            raise InputError(f"{name} holds an infinite value in row {int(infinite.argmax())}: remove or replace it")
    return np.asarray(lengths, dtype=np.float64)


def _numeric(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be an array of numbers with rows of one length: {error}") from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must hold real numbers, got an array of {array.dtype}")
    return array


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    array = _numeric(values, name)
    if array.ndim != 2:
        hint = f": for one vector write {name}[None, :]" if array.ndim == 1 else ""
        raise InputError(f"{name} must have shape (n, d), got {array.shape}{hint}")
    return array


def _pair(a: ArrayLike, b: ArrayLike, name_a: str, name_b: str) -> tuple[NDArray[Any], NDArray[Any]]:
    left, right = _matrix(a, name_a), _matrix(b, name_b)
    if left.shape[1] != right.shape[1]:
        raise InputError(
            f"{name_a} and {name_b} must have rows of one length, got shapes {left.shape} and {right.shape}: "
            f"were they made by different embedders?"
        )
    return left, right
