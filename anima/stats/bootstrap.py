"""Bootstrap intervals: plain or by cluster, percentile, BCa or studentised, with degenerate resamples counted.

Two roads. :func:`bootstrap` takes any statistic of rows. :func:`bootstrap_sums` takes a statistic that depends on the
data only through sums over units (means, moments, confusion matrices): a resample is then a vector of multiplicities
and 2,000 of them are one matrix product. Both draw the same resamples from the same ``rng``, row after row, so an own
index stream can be plugged in.

Which interval: for correlations, kappas and intraclass correlations use the analytic default of their functions; at
fewer than about 20 units percentile intervals are too narrow and are marked so. BCa helps with skew, not with small n.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anima.checks import require_choice, require_int, require_number
from anima.errors import InputError
from anima.stats.estimate import Estimate, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Method = Literal["percentile", "bca", "studentized"]
QuantileRule = Literal["linear", "floor"]

DEFAULT_SEED = 20240607
MIN_UNITS = 20  # below this, simulated coverage of nominal 95 % percentile intervals of a correlation is 86 to 92 %
MAX_UNDEFINED_SHARE = 0.05
_CHUNK_CELLS = 1 << 17  # 1 MB of doubles: bounds the memory, stays in cache and is reused by the allocator


class IndexSource(Protocol):
    """Anything that draws integers like :meth:`numpy.random.Generator.integers`, e.g. a counter-based generator."""

    def integers(self, low: int, high: int, *, size: tuple[int, int]) -> NDArray[Any]:
        """Return integers in ``[low, high)``, filled row by row."""
        ...


RngLike: TypeAlias = "int | np.random.Generator | IndexSource | None"


def resolve_rng(rng: RngLike = None) -> tuple[IndexSource, int | None]:
    """Return a source of indices and the seed to report: None means the fixed default seed, an int is a seed."""
    if rng is None:
        rng = DEFAULT_SEED
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        seed = require_int(int(rng), "rng", low=0)
        return np.random.default_rng(seed), seed
    if hasattr(rng, "integers"):
        return rng, None
    raise InputError(f"rng must be None, a seed, a numpy Generator or an object with integers(), got {rng!r}")


def numpy_rng(rng: RngLike = None) -> tuple[np.random.Generator, int | None]:
    """Return a numpy generator and the seed to report, for procedures that draw more than indices."""
    source, seed = resolve_rng(rng)
    if not isinstance(source, np.random.Generator):
        raise InputError("rng must be None, a seed or a numpy Generator here: more than indices is drawn")
    return source, seed


def resample_indices(
    n: int, n_resamples: int, rng: RngLike = None, *, chunk: int | None = None, strata: Indices | None = None
) -> Iterator[Indices]:
    """Yield blocks of resampled row numbers, shape ``(m, n)``, that add up to ``n_resamples`` rows.

    Draws run row after row, so the result does not depend on ``chunk``. With ``strata`` (codes of the rows) each
    stratum keeps its size; only numpy generators can do that.
    """
    source, _ = resolve_rng(rng)
    step = chunk or max(1, _CHUNK_CELLS // max(n, 1))
    for start in range(0, n_resamples, step):
        size = (min(step, n_resamples - start), n)
        if strata is None:
            yield np.asarray(source.integers(0, n, size=size), dtype=np.intp)
        else:
            order = np.argsort(strata, kind="stable")
            sizes = np.bincount(strata)
            per_row, begin = np.repeat(sizes, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
            generator, _ = numpy_rng(source)
            yield order[begin + generator.integers(0, per_row, size=size)]


def resample_counts(
    n: int, n_resamples: int, rng: RngLike = None, *, chunk: int | None = None, strata: Indices | None = None
) -> Iterator[Floats]:
    """Yield blocks ``(m, n)`` of multiplicities: how often each unit stands in each resample."""
    for block in resample_indices(n, n_resamples, rng, chunk=chunk, strata=strata):
        yield counts_of(block, n)


def leave_one_out(n: int) -> Iterator[Floats]:
    """Yield blocks of the multiplicities ``(m, n)`` of the jackknife: each unit is left out once."""
    step = max(1, _CHUNK_CELLS // max(n, 1))
    for start in range(0, n, step):
        stop = min(start + step, n)
        yield 1.0 - np.eye(stop - start, n, start)


def counts_of(block: Indices, n: int) -> Floats:
    """Return the multiplicities ``(m, n)`` of a block of row numbers ``(m, draws)``."""
    m = len(block)
    shifted = block + (np.arange(m, dtype=np.intp) * n)[:, None]
    return np.bincount(shifted.ravel(), minlength=m * n).reshape(m, n).astype(np.float64)


def percentile_interval(
    distribution: Floats, level: float = 0.95, *, rule: QuantileRule = "linear"
) -> tuple[float, float]:
    """Return the percentile interval of the finite values; ``(nan, nan)`` if there is none.

    Parameters
    ----------
    distribution
        Values of the statistic in the resamples; non-finite ones are ignored.
    level
        Coverage aimed at.
    rule
        ``"linear"`` interpolates (type 7 of Hyndman and Fan, as numpy does); ``"floor"`` takes the order statistics
        number floor(q m), as several evaluation packages do.
    """
    values = distribution[np.isfinite(distribution)]
    if not len(values):
        return np.nan, np.nan
    tails = np.array([(1 - level) / 2, 1 - (1 - level) / 2])
    if rule == "linear":
        low, high = np.quantile(values, tails)
    else:
        # Rounded first: 1 - 0.025 times 40 must be 39, not 38.99….
        places = np.minimum(np.floor(np.round(tails * len(values), 9)).astype(int), len(values) - 1)
        low, high = np.sort(values)[places]
    return float(low), float(high)


def estimate_from_distribution(
    name: str,
    value: float,
    distribution: Floats,
    *,
    level: float = 0.95,
    method: Literal["percentile", "bca"] = "percentile",
    jackknife: Floats | None = None,
    rule: QuantileRule = "linear",
    n_units: int,
    clustered: bool = False,
    **details: Any,
) -> Estimate:
    """Return the estimate for a value and its bootstrap distribution, with every weakness of the latter stated.

    Parameters
    ----------
    name, value
        Name and point estimate; NaN gives an undefined estimate (``reason`` may be among ``details``).
    distribution
        Statistic per resample; NaN where undefined.
    method, jackknife
        ``"bca"`` needs the leave-one-out values.
    n_units
        Independent units: clusters if ``clustered``, else rows.
    details
        Further fields of :class:`Estimate`, e.g. ``n`` and ``seed``.
    """
    finite = distribution[np.isfinite(distribution)]
    details = {"n_resamples": len(distribution), "n_undefined": len(distribution) - len(finite), **details}
    details.setdefault("n", n_units)
    if clustered:
        details["n_clusters"] = n_units
    if not np.isfinite(value):
        reason = details.pop("reason", "") or "the statistic is undefined on these data"
        return Estimate.undefined(name, reason, level=level, **details)
    notes = [details.pop("reason", "")]
    status: Status = "ok"
    label = "percentile"
    low, high = percentile_interval(finite, level, rule=rule)
    if method == "bca":
        adjusted = _bca_levels(value, finite, jackknife, level)
        if adjusted is None:
            status = "unreliable"
            notes.append("BCa correction not estimable, percentile interval given")
        else:
            low, high = (float(end) for end in np.quantile(finite, adjusted))
            label = "BCa"
    units = "clusters" if clustered else "units"
    if len(finite) < 2:
        low = high = np.nan
        notes.append("the statistic is undefined in nearly every resample, no interval can be given")
    elif details["n_undefined"] > MAX_UNDEFINED_SHARE * len(distribution):
        notes.append(f"undefined in {details['n_undefined']} of {len(distribution)} resamples")
    elif low == high:
        notes.append("all resamples agree, the interval has no width")
    elif n_units < MIN_UNITS:
        notes.append(f"{n_units} {units}: below {MIN_UNITS} a bootstrap interval is too narrow")
    elif status == "ok":
        return Estimate(
            name, value, low, high, level, reason=notes[0], method=_label(label, clustered=clustered), **details
        )
    reason = "; ".join(note for note in notes if note)
    method_text = _label(label, clustered=clustered)
    return Estimate(name, value, low, high, level, status="unreliable", reason=reason, method=method_text, **details)


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
        ``statistic(*arrays) -> float``; with ``vectorized=True`` it gets arrays with a leading axis of resamples,
        ``(m, n, ...)``, and returns ``(m,)``. NaN, ``ValueError`` or ``ZeroDivisionError`` on a resample count it
        as undefined.
    data
        Arrays of equal length; missing values are the caller's business.
    clusters
        Cluster of each row (dialogue, scenario, run): whole clusters are drawn. Give it whenever there is one; rows
        of one cluster taken as independent give intervals that are too narrow.
    strata
        Stratum of each row, e.g. a rare outcome: every resample keeps the size of each, so that none is degenerate for
        want of one. The interval is then conditional on those sizes. Not together with ``clusters``.
    method
        ``"percentile"``, ``"bca"`` (second-order, Efron 1987) or ``"studentized"`` (needs ``std_error``, same
        arguments as ``statistic``; best for means and differences, poor near the edge of a bounded statistic).
    rng
        Seed, numpy Generator or index stream; None means the fixed default seed. The seed is in the result.

    Returns
    -------
    Estimate
        ``"unreliable"`` when more than 5 % of the resamples are undefined, when there are fewer than 20 independent
        units, or when the interval has no width.

    Notes
    -----
    Pinned to ``scipy.stats.bootstrap`` in ``tests/stats/test_bootstrap.py``.

    Examples
    --------
    >>> import numpy as np
    >>> e = bootstrap(lambda x: x.mean(axis=1), np.arange(40.0), vectorized=True, name="mean")
    >>> e.value, e.low < 19.5 < e.high
    (19.5, True)
    """
    arrays = [np.asarray(array) for array in data]
    n = _common_length(arrays)
    _check(n_resamples, level, method)
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
        step = max(1, _CHUNK_CELLS // n)
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
            jackknife = np.concatenate(
                [
                    evaluate(statistic, rest + (rest >= np.arange(i, min(i + step, units))[:, None]))
                    for i in range(0, units, step)
                ]
            )
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
) -> Estimate:
    """Return a statistic of column sums with its bootstrap interval, at the price of a matrix product.

    Parameters
    ----------
    statistic
        Maps sums ``(m, k)`` to values ``(m,)``; NaN where undefined.
    terms
        ``(n, k)``: what each row adds to the sums. Examples: for accuracy ``[hit, 1]``; for macro-F1 or kappa the
        row's one-hot cell of the confusion matrix (see :func:`confusion_terms`). Centre moments first.
    clusters
        Cluster of each row; terms are summed within clusters and clusters are drawn.
    strata
        As in :func:`bootstrap`.
    method
        As in :func:`bootstrap`; ``"studentized"`` takes the weighted jackknife as standard error of each resample.

    Notes
    -----
    Equal to :func:`bootstrap` on the same ``rng``, see ``tests/stats/test_bootstrap.py``.
    """
    table = np.asarray(terms, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"terms must have two axes (rows, sums), got shape {table.shape}")
    _check(n_resamples, level, method)
    n = len(table)
    layers = _strata_codes(strata, clusters, n)
    if clusters is not None:
        codes = cluster_codes(clusters, n)
        summed = np.zeros((codes.max(initial=-1) + 1, table.shape[1]))
        np.add.at(summed, codes, table)
        table = summed
    if not len(table):
        return Estimate.undefined(name, "there are no data")
    source, seed = resolve_rng(rng)
    common: dict[str, Any] = {
        "level": level, "n": n, "n_units": len(table), "clustered": clusters is not None, "seed": seed,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        total = table.sum(axis=0)
        value = float(statistic(total[None])[0])
        if method == "studentized":
            return _studentized_sums(name, value, statistic, table, n_resamples, source, layers, common)
        distribution = np.concatenate(
            [statistic(counts @ table) for counts in resample_counts(len(table), n_resamples, source, strata=layers)]
        )
        jackknife = statistic(total - table) if method == "bca" and len(table) > 2 else None
    return estimate_from_distribution(name, value, distribution, method=method, jackknife=jackknife, **common)


def confusion_terms(truth: ArrayLike, predicted: ArrayLike, n_classes: int) -> Floats:
    """Return ``(n, n_classes**2)`` one-hot cells (truth-major) of integer codes, as terms of :func:`bootstrap_sums`."""
    a, b = np.asarray(truth), np.asarray(predicted)
    for label, codes in (("truth", a), ("predicted", b)):
        if codes.size and (codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= n_classes):
            raise InputError(f"{label} must hold integer codes in 0..{n_classes - 1}")
    out = np.zeros((_common_length([a, b]), n_classes * n_classes))
    out[np.arange(len(a)), a * n_classes + b] = 1
    return out


def cluster_codes(clusters: ArrayLike, n: int, name: str = "clusters") -> Indices:
    """Return cluster labels as codes 0, 1, … in order of first appearance; missing labels are refused."""
    import pandas as pd

    codes, _ = pd.factorize(np.asarray(clusters), use_na_sentinel=True)
    if len(codes) != n:
        raise InputError(f"{name} has {len(codes)} labels for {n} rows: give one per row")
    if n and codes.min() < 0:
        raise InputError(f"{name} is missing at row {int(np.argmin(codes))}: every row needs a cluster")
    return codes.astype(np.intp)


def _strata_codes(strata: ArrayLike | None, clusters: ArrayLike | None, n: int) -> Indices | None:
    if strata is None:
        return None
    if clusters is not None:
        raise InputError("strata and clusters cannot be combined: a cluster may lie in several strata")
    return cluster_codes(strata, n, "strata")


def _check(n_resamples: int, level: float, method: str) -> None:
    require_int(n_resamples, "n_resamples", low=1)
    require_number(level, "level", low=0, high=1, open_low=True, open_high=True)
    require_choice(method, "method", ("percentile", "bca", "studentized"))


def _common_length(arrays: list[NDArray[Any]]) -> int:
    lengths = {array.shape[0] if array.ndim else 0 for array in arrays}
    if len(lengths) != 1:
        raise InputError(f"data must be arrays of one length, got lengths {sorted(lengths) or 'none'}")
    return lengths.pop()


def _label(kind: str, *, clustered: bool) -> str:
    return f"{kind} bootstrap" + (" by cluster" if clustered else "")


def _bca_levels(value: float, finite: Floats, jackknife: Floats | None, level: float) -> Floats | None:
    """Return the corrected quantile levels, or None where bias or acceleration is not estimable (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    if jackknife is None or not len(finite) or not np.isfinite(jackknife).all():
        return None
    share = ((finite < value).sum() + 0.5 * (finite == value).sum()) / len(finite)
    pull = jackknife.mean() - jackknife
    spread = (pull**2).sum()
    if not 0 < share < 1 or spread == 0:
        return None
    bias, acceleration = ndtri(share), (pull**3).sum() / (6 * spread**1.5)
    z = bias + ndtri(np.array([(1 - level) / 2, 1 - (1 - level) / 2]))
    return np.asarray(ndtr(bias + z / (1 - acceleration * z)))


def _studentized_sums(
    name: str, value: float, statistic: Callable[[Floats], Floats], table: Floats, n_resamples: int,
    source: IndexSource, layers: Indices | None, common: dict[str, Any],
) -> Estimate:  # fmt: skip
    units, width = table.shape

    def spread(sums: Floats, counts: Floats) -> Floats:
        left_out = statistic((sums[:, None] - table).reshape(-1, width)).reshape(len(sums), units)
        left_out = np.where(counts > 0, left_out, 0)
        centre = (counts * left_out).sum(axis=1) / units
        squares = (counts * (left_out - centre[:, None]) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(squares * (units - 1) / units))

    values, errors = [], []
    step = max(1, _CHUNK_CELLS // (units * width))
    for counts in resample_counts(units, n_resamples, source, chunk=step, strata=layers):
        sums = counts @ table
        values.append(statistic(sums))
        errors.append(spread(sums, counts))
    own = float(spread(table.sum(axis=0)[None], np.ones((1, units)))[0])
    return _studentized(name, value, own, np.concatenate(values), np.concatenate(errors), **common)


def _studentized(
    name: str, value: float, error: float, distribution: Floats, errors: Floats, *, n_units: int, clustered: bool,
    level: float, **details: Any,
) -> Estimate:  # fmt: skip
    ratios = (distribution - value) / np.where(errors > 0, errors, np.nan)
    # The pivot is turned round: its upper quantile gives the lower end.
    shifted = value - ratios * error
    result = estimate_from_distribution(
        name, value, shifted, n_units=n_units, clustered=clustered, level=level, **details
    )
    return Estimate(**{**result.__dict__, "method": result.method.replace("percentile", "studentized")})
