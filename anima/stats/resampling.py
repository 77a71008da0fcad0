"""Draws of units with replacement, and the interval that the statistics of the resamples give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from anima.checks import require_int, to_array
from anima.errors import InputError
from anima.stats.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from anima.stats.weighted import Floats

Indices: TypeAlias = "NDArray[np.intp]"
QuantileRule = Literal["linear", "floor"]

DEFAULT_SEED = 20240607
CHUNK_CELLS = 1 << 17  # 1 MB of doubles: bounds the memory, stays in cache and is reused by the allocator
MIN_UNITS = 20  # below this, simulated coverage of nominal 95 % percentile intervals of a correlation is 86 to 92 %
MAX_UNDEFINED_SHARE = 0.05


class IndexSource(Protocol):
    """Anything that draws integers like a numpy Generator, e.g. a counter-based generator."""

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


def numpy_or_default(rng: RngLike) -> int | np.random.Generator | None:
    """Return ``rng``, or None (the default seed) for an index stream, where more than indices is drawn."""
    return rng if isinstance(rng, int | np.random.Generator) else None


def resample_indices(
    n: int, n_resamples: int, rng: RngLike = None, *, chunk: int | None = None, strata: Indices | None = None
) -> Iterator[Indices]:
    """Yield blocks of resampled row numbers, ``(m, n)``, that add up to ``n_resamples`` rows.

    Draws run row after row, so the result does not depend on ``chunk``. With ``strata`` each stratum keeps its size.
    """
    source, _ = resolve_rng(rng)
    step = chunk or max(1, CHUNK_CELLS // max(n, 1))
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
    step = max(1, CHUNK_CELLS // max(n, 1))
    for start in range(0, n, step):
        stop = min(start + step, n)
        yield 1.0 - np.eye(stop - start, n, start)


def counts_of(block: Indices, n: int) -> Floats:
    """Return the multiplicities ``(m, n)`` of a block of row numbers ``(m, draws)``."""
    m = len(block)
    shifted = block + (np.arange(m, dtype=np.intp) * n)[:, None]
    return np.bincount(shifted.ravel(), minlength=m * n).reshape(m, n).astype(np.float64)


def cluster_codes(clusters: ArrayLike, n: int, name: str = "clusters") -> Indices:
    """Return cluster labels as codes 0, 1, … in order of first appearance; missing labels are refused."""
    import pandas as pd

    codes, _ = pd.factorize(to_array(clusters, name), use_na_sentinel=True)
    if len(codes) != n:
        raise InputError(f"{name} has {len(codes)} labels for {n} rows: give one per row")
    if n and codes.min() < 0:
        raise InputError(f"{name} is missing at row {int(np.argmin(codes))}: every row needs a cluster")
    return codes.astype(np.intp)


def sum_by_cluster(terms: Floats, codes: Indices) -> Floats:
    """Return the sums of the rows of each cluster."""
    out = np.zeros((codes.max(initial=-1) + 1, terms.shape[1]))
    np.add.at(out, codes, terms)
    return out


def percentile_interval(
    distribution: Floats, level: float = 0.95, *, rule: QuantileRule = "linear"
) -> tuple[float, float]:
    """Return the percentile interval of the finite values; ``(nan, nan)`` if there is none.

    ``rule="linear"`` interpolates (type 7 of Hyndman and Fan, as numpy does); ``"floor"`` takes the order statistics
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
    reason: str = "",
    notes: Iterable[str] = (),
    **details: Any,
) -> Estimate:
    """Return the estimate for a value and its bootstrap distribution (NaN where undefined), with every weakness stated.

    ``method="bca"`` needs the leave-one-out values ``jackknife``; ``n_units`` counts clusters if ``clustered``, else
    rows; ``reason`` says why the value is undefined, or is a remark; ``notes`` make the interval unreliable;
    ``details`` are further fields of :class:`Estimate`.
    """
    finite = distribution[np.isfinite(distribution)]
    details = {"n_resamples": len(distribution), "n_undefined": len(distribution) - len(finite), "n": n_units} | details
    if clustered:
        details["n_clusters"] = n_units
    if not np.isfinite(value):
        return Estimate.undefined(name, reason or "the statistic is undefined on these data", level=level, **details)
    weak, label = [], "percentile"
    low, high = percentile_interval(finite, level, rule=rule)
    if method == "bca":
        adjusted = _bca_levels(value, finite, jackknife, level)
        if adjusted is None:
            weak.append("BCa correction not estimable, percentile interval given")
        else:
            low, high = np.quantile(finite, adjusted)
            label = "BCa"
    if len(finite) < 2:
        low = high = np.nan
        weak.append("the statistic is undefined in nearly every resample, no interval can be given")
    elif details["n_undefined"] > MAX_UNDEFINED_SHARE * len(distribution):
        weak.append(f"undefined in {details['n_undefined']} of {len(distribution)} resamples")
    elif low == high:
        weak.append("all resamples agree, the interval has no width")
    elif n_units < MIN_UNITS:
        units = "clusters" if clustered else "units"
        weak.append(f"{n_units} {units}: below {MIN_UNITS} a bootstrap interval is too narrow")
    weak += filter(None, notes)
    return Estimate(
        name, value, low, high, level, status="unreliable" if weak else "ok", reason="; ".join(filter(None, [reason, *weak])),
        method=f"{label} bootstrap{' by cluster' if clustered else ''}", **details,
    )  # fmt: skip


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
