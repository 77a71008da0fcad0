"""Bootstrap intervals: plain or by cluster, percentile, BCa or studentised, with degenerate resamples counted.

:func:`bootstrap` takes any statistic of rows; :func:`bootstrap_sums` one that depends on the data only through sums
over units (means, moments, confusion matrices): a resample is then a vector of multiplicities and 2,000 of them are one
matrix product. Both draw the same resamples from the same ``rng``, row after row, so an own index stream can be plugged
in.

Which interval: for correlations, kappas and intraclass correlations the analytic default of their functions; with fewer
than about 20 units percentile intervals are too narrow and are marked so. BCa helps with skew, not with small n.
Pinned to ``scipy.stats.bootstrap`` in ``tests/stats/test_bootstrap.py``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_array, require_choice, require_fraction, require_int, to_array
from anima.errors import InputError
from anima.stats.estimate import Estimate
from anima.stats.resampling import (
    CHUNK_CELLS,
    Indices,
    RngLike,
    cluster_codes,
    estimate_from_distribution,
    leave_one_out,
    resample_counts,
    resample_indices,
    resolve_rng,
    sum_by_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from anima.stats.weighted import Floats

Method = Literal["percentile", "bca", "studentized"]
IntervalMethod = Literal["auto", "analytic", "percentile", "bca"]

FEW_ITEMS = 10  # below this an interval is not backed by simulation


def estimate_from_counts(
    name: str,
    value: float,
    statistic: Callable[[Floats], Floats],
    n_units: int,
    *,
    n_resamples: int,
    method: str,
    rng: RngLike,
    strata: Indices | None = None,
    **details: Any,
) -> Estimate:
    """Return a bootstrap estimate of a statistic of multiplicities ``(m, units)``; details as in :func:`estimate_from_distribution`."""
    source, seed = resolve_rng(rng)
    blocks = resample_counts(n_units, n_resamples, source, strata=strata)
    distribution = np.concatenate([statistic(counts) for counts in blocks])
    jackknife = None
    if method == "bca" and n_units > 2:
        jackknife = np.concatenate([statistic(counts) for counts in leave_one_out(n_units)])
    return estimate_from_distribution(
        name, value, distribution, method="bca" if method == "bca" else "percentile", jackknife=jackknife,
        n_units=n_units, seed=seed, **details,
    )  # fmt: skip


def bootstrap(
    statistic: Callable[..., Any],
    *data: ArrayLike,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    n_resamples: int = 2000,
    level: float = 0.95,
    method: Method = "percentile",
    rng: RngLike = None,
    vectorized: bool = False,
    std_error: Callable[..., Any] | None = None,
    name: str = "statistic",
) -> Estimate:
    """Return a statistic with its bootstrap interval; rows of all ``data`` are resampled together.

    Parameters
    ----------
    statistic
        ``statistic(*arrays) -> float``; with ``vectorized=True`` it gets arrays with a leading axis of resamples, ``(m,
        n, ...)``, and returns ``(m,)``. NaN, ``ValueError`` or ``ZeroDivisionError`` count a resample as undefined.
    data
        Arrays of equal length; missing values are the caller's business.
    clusters
        Cluster of each row (dialogue, scenario, run): whole clusters are drawn. Rows of one cluster taken as
        independent give intervals that are too narrow.
    strata
        Stratum of each row, e.g. a rare outcome, whose size every resample keeps. Not together with ``clusters``.
    method
        ``"percentile"``, ``"bca"`` (second-order, Efron 1987) or ``"studentized"`` (needs ``std_error``, same arguments
        as ``statistic``; best for means and differences, poor near the edge of a bounded statistic).
    rng
        Seed, numpy Generator or index stream; None means the fixed default seed. The seed is in the result.

    Returns
    -------
    Estimate
        ``"unreliable"`` when more than 5 % of the resamples are undefined, when there are fewer than 20 independent
        units, or when the interval has no width.

    Examples
    --------
    >>> import numpy as np
    >>> e = bootstrap(lambda x: x.mean(axis=1), np.arange(40.0), vectorized=True, name="mean")
    >>> e.value, e.low < 19.5 < e.high
    (19.5, True)
    """
    arrays = [to_array(array, "data") for array in data]
    n = _common_length(arrays)
    _check(n_resamples, level, method, ("percentile", "bca", "studentized"))
    groups = None if clusters is None else cluster_codes(clusters, n)
    layers = _strata_codes(strata, clusters, n)
    rows = None if groups is None else [np.flatnonzero(groups == g) for g in range(groups.max(initial=-1) + 1)]
    units = n if rows is None else len(rows)
    if units == 0:
        return Estimate.undefined(name, "there are no data")
    source, seed = resolve_rng(rng)

    def evaluate(function: Callable[..., Any], block: Indices) -> Floats:
        """Return the function of each resample of the block of units ``(m, drawn)``."""
        even = rows is None or len({len(row) for row in rows}) == 1
        if rows is not None and even:
            block = np.stack(rows)[block].reshape(len(block), -1)
        if vectorized and even:
            return np.asarray(function(*(array[block] for array in arrays)), dtype=np.float64)
        out = np.empty(len(block))
        for i, units_drawn in enumerate(block):
            chosen = units_drawn if even or rows is None else np.concatenate([rows[u] for u in units_drawn])
            try:
                result = function(*(array[chosen[None] if vectorized else chosen] for array in arrays))
                out[i] = np.asarray(result, dtype=np.float64).reshape(())
            except (ValueError, ZeroDivisionError):
                out[i] = np.nan
        return out

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # undefined resamples are counted in the result instead
        whole = np.arange(units)[None]
        value = float(evaluate(statistic, whole)[0])
        step = max(1, CHUNK_CELLS // n)
        parts, errors = [], []
        for block in resample_indices(units, n_resamples, source, chunk=step, strata=layers):
            parts.append(evaluate(statistic, block))
            if method == "studentized" and std_error is not None:
                errors.append(evaluate(std_error, block))
        distribution = np.concatenate(parts)
        common: dict[str, Any] = {
            "level": level, "n": n, "n_units": units, "clustered": groups is not None, "seed": seed,
        }  # fmt: skip
        if method == "studentized":
            if std_error is None:
                raise InputError("method='studentized' needs std_error, a function of the same arguments as statistic")
            own = float(evaluate(std_error, whole)[0])
            return _studentized(name, value, own, distribution, np.concatenate(errors), **common)
        jackknife = None
        if method == "bca" and units > 2:
            rest = np.arange(units - 1)
            starts = range(0, units, step)
            left_out = (rest + (rest >= np.arange(i, min(i + step, units))[:, None]) for i in starts)
            jackknife = np.concatenate([evaluate(statistic, block) for block in left_out])
    return estimate_from_distribution(name, value, distribution, method=method, jackknife=jackknife, **common)


def bootstrap_sums(
    statistic: Callable[[Floats], Floats],
    terms: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    n_resamples: int = 2000,
    level: float = 0.95,
    method: Method = "percentile",
    rng: RngLike = None,
    name: str = "statistic",
    **details: Any,
) -> Estimate:
    """Return a statistic of column sums with its bootstrap interval; equal to :func:`bootstrap` on the same ``rng``.

    Parameters
    ----------
    statistic
        Maps sums ``(m, k)`` to values ``(m,)``; NaN where undefined.
    terms
        ``(n, k)``: what each row adds to the sums: for accuracy ``[hit, 1]``, for macro-F1 or kappa the row's one-hot
        cell of the confusion matrix (:func:`confusion_terms`). Centre moments first.
    clusters, strata, method
        As in :func:`bootstrap`, without ``"studentized"``.
    details
        Further fields of :class:`Estimate`; ``notes``: what else makes the interval unreliable.
    """
    table = require_array(terms, "terms")
    if table.ndim != 2:
        raise InputError(f"terms must have two axes (rows, sums), got shape {table.shape}")
    _check(n_resamples, level, method, ("percentile", "bca"))
    n = len(table)
    layers = _strata_codes(strata, clusters, n)
    if clusters is not None:
        table = sum_by_cluster(table, cluster_codes(clusters, n))
    if not len(table):
        return Estimate.undefined(name, "there are no data")
    details = {"level": level, "n": n, "clustered": clusters is not None} | details
    with np.errstate(all="ignore"):
        value = float(statistic(table.sum(axis=0)[None])[0])
        return estimate_from_counts(
            name, value, lambda counts: statistic(counts @ table), len(table), n_resamples=n_resamples, method=method,
            rng=rng, strata=layers, **details,
        )  # fmt: skip


def bootstrap_mean(values: ArrayLike, **options: Any) -> Estimate:
    """Return the mean of values with its bootstrap interval; options as in :func:`bootstrap_sums`."""
    column = require_array(values, "values")
    return bootstrap_sums(
        lambda sums: sums[:, 0] / sums[:, 1], np.stack([column, np.ones_like(column)], axis=-1), **options
    )


def sums_estimate(
    name: str, statistic: Callable[[Floats], Floats], terms: Floats, groups: NDArray[np.intp] | None, method: str, *,
    n_resamples: int, rng: RngLike, transform: bool = True, **common: Any,
) -> Estimate:  # fmt: skip
    """Return a coefficient of sums with a bootstrap or jackknife interval (Fisher z if ``transform``, t quantile)."""
    from scipy.special import stdtrit

    require_fraction(common["level"])
    if method in ("percentile", "bca"):
        return bootstrap_sums(
            statistic, terms, clusters=groups, n_resamples=n_resamples, method="bca" if method == "bca" else "percentile",
            rng=rng, name=name, **common,
        )  # fmt: skip
    table = terms
    if groups is not None:
        table = sum_by_cluster(terms, groups)
        common["n_clusters"] = len(table)
    units, total = len(table), table.sum(axis=0)
    with np.errstate(all="ignore"):
        value = float(statistic(total[None])[0])
        left_out = statistic(total - table)
        if not math.isfinite(value):
            return Estimate.undefined(name, "no spread in the ratings", **common)
        edge = transform and 1 - abs(value) < 1e-12
        pseudo = np.arctanh(np.clip(left_out, -1 + 1e-12, 1 - 1e-12)) if transform and not edge else left_out
        error = math.sqrt((units - 1) / units * float(((pseudo - pseudo.mean()) ** 2).sum())) if units > 1 else math.nan
    half = float(stdtrit(max(units - 1, 1), 1 - (1 - common["level"]) / 2)) * error
    notes = []
    if edge or not math.isfinite(half) or half == 0 or abs(value) > 1:
        low = high = math.nan
        notes.append("perfect agreement: no spread to estimate an interval from" if edge else "interval not estimable")
    elif transform:
        low, high = (math.tanh(math.atanh(value) + sign * half) for sign in (-1, 1))
    else:
        low, high = value - half, value + half
    if units < FEW_ITEMS:
        notes.append(f"{units} {'clusters' if groups is not None else 'items'}: below {FEW_ITEMS}, lean on nothing")
    label = "jackknife" + (" by cluster" if groups is not None else "") + (", Fisher z, t" if transform else ", t")
    return Estimate.noted(name, value, low, high, notes, method=label, **common)


def confusion_terms(truth: ArrayLike, predicted: ArrayLike, n_classes: int) -> Floats:
    """Return ``(n, n_classes**2)`` one-hot cells (truth-major) of integer codes, as terms of :func:`bootstrap_sums`."""
    a, b = to_array(truth, "truth"), to_array(predicted, "predicted")
    for label, codes in (("truth", a), ("predicted", b)):
        if codes.ndim != 1:
            raise InputError(f"{label} must have one axis, got shape {codes.shape}")
        if codes.size and (codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= n_classes):
            raise InputError(f"{label} must hold integer codes in 0..{n_classes - 1}")
    out = np.zeros((_common_length([a, b]), n_classes * n_classes))
    if len(a):
        out[np.arange(len(a)), a * n_classes + b] = 1
    return out


def _strata_codes(strata: ArrayLike | None, clusters: ArrayLike | None, n: int) -> Indices | None:
    if strata is None:
        return None
    if clusters is not None:
        raise InputError("strata and clusters cannot be combined: a cluster may lie in several strata")
    return cluster_codes(strata, n, "strata")


def _check(n_resamples: int, level: float, method: str, known: tuple[str, ...]) -> None:
    require_int(n_resamples, "n_resamples", low=1)
    require_fraction(level)
    require_choice(method, "method", known)


def _common_length(arrays: list[NDArray[Any]]) -> int:
    lengths = {array.shape[0] if array.ndim else 0 for array in arrays}
    if len(lengths) != 1:
        raise InputError(f"data must be arrays of one length, got lengths {sorted(lengths) or 'none'}")
    return lengths.pop()


def _studentized(
    name: str, value: float, error: float, distribution: Floats, errors: Floats, **details: Any
) -> Estimate:
    ratios = (distribution - value) / np.where(errors > 0, errors, np.nan)
    # The pivot is turned round: its upper quantile gives the lower end.
    result = estimate_from_distribution(name, value, value - ratios * error, **details)
    return replace(result, method=result.method.replace("percentile", "studentized"))
