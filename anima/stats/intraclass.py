"""Agreement of continuous scores: intraclass correlation, Lin's concordance and its linear kin, each also for many resamples at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_choice, require_fraction, require_int
from anima.errors import InputError
from anima.stats.bootstrap import IntervalMethod, bootstrap_sums, sums_estimate
from anima.stats.correlation import paired
from anima.stats.estimate import Estimate
from anima.stats.raters import Ratings, ratings
from anima.stats.resampling import RngLike, numpy_rng
from anima.stats.weighted import Floats, is_constant, without_interval

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


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
    if reason := without_interval(np.column_stack([x, y])):
        if groups is not None:
            common["n_clusters"] = int(groups.max()) + 1
        return Estimate(name, 0.0, status="unreliable", reason=reason, **common)
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


Kind = Literal["1,1", "2,1", "3,1", "1,k", "2,k", "3,k"]
IccInterval = Literal["auto", "generalized", "mcgraw-wong", "percentile", "bca"]


def icc(
    frame: pd.DataFrame | Ratings,
    *,
    kind: Kind = "2,1",
    interval: IccInterval = "auto",
    level: float = 0.95,
    n_draws: int = 20_000,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str | None = None,
    **columns: Any,
) -> Estimate:
    """Return an intraclass correlation (Shrout and Fleiss 1979; McGraw and Wong 1996) with its interval.

    Pinned to pingouin in ``tests/stats/test_intraclass.py``; coverage in ``test_coverage.py``.

    Parameters
    ----------
    frame
        Long table, one row per item and rater (columns ``item``, ``rater``, ``value``, or names given as options), or
        :class:`~anima.stats.raters.Ratings`. Two ratings of one item by one rater are refused.
    kind
        ``"1,1"``: raters differ from item to item; ``"2,1"``: the same raters, a sample of all raters, whose level
        matters (absolute agreement: the usual choice); ``"3,1"``: just these raters, only the order matters
        (consistency). ``",k"``: reliability of the mean over all raters, not of one.
    interval
        For ``2,*`` the default is ``"generalized"``: mean squares over chi-square draws (``n_draws``), which keeps 95 %
        coverage with few raters; ``"mcgraw-wong"``: the F interval with Satterthwaite's degrees of freedom, for parity
        with other packages (covers 81 to 91 % when raters differ much). For ``1,*`` and ``3,*`` both are the exact F
        interval. ``"percentile"`` and ``"bca"`` resample items (clusters, if ``cluster`` is named) and leave the raters
        fixed.

    Returns
    -------
    Estimate
        ``n`` items that all raters scored (kinds 2, 3) or that have two scores or more (kind 1); the others are
        ``n_dropped``. A negative value is reported and flagged; without residual variance the interval is not
        estimable. ``extra``: mean squares, raters, and the mean score of each rater.
    """
    require_choice(kind, "kind", ("1,1", "2,1", "3,1", "1,k", "2,k", "3,k"))
    require_choice(interval, "interval", ("auto", "generalized", "mcgraw-wong", "percentile", "bca"))
    require_fraction(level)
    require_int(n_draws, "n_draws", low=100)
    data = frame if isinstance(frame, Ratings) else ratings(frame, **columns)
    scores, title = data.scores, name or f"ICC({kind})"
    common: dict[str, Any] = {"level": level}
    if kind[0] == "1":
        return _one_way(title, scores, kind, interval, common)
    complete = ~np.isnan(scores).any(axis=1)
    scores = scores[complete]
    n, k = scores.shape
    common |= {"n": n, "n_dropped": int((~complete).sum())}
    if k < 2 or n < 2:
        reason = f"{n} items scored by all of {k} raters: ICC({kind}) needs a crossed design of at least 2 by 2"
        return Estimate.undefined(title, f"{reason}; use kind='1,1' or krippendorff_alpha for ragged data", **common)
    msr, msc, mse = (float(square) for square in mean_squares(scores))
    means = {str(r): float(m) for r, m in zip(data.raters, scores.mean(axis=0), strict=True)}
    common["extra"] = {"msr": msr, "msc": msc, "mse": mse, "n_raters": k, "rater_means": means}
    value = float(_formula(kind, msr, msc, mse, n, k))
    if not math.isfinite(value):
        return Estimate.undefined(title, "the scores have no variance", **common)
    if reason := without_interval(scores):
        return Estimate(title, 0.0, status="unreliable", reason=reason, **common)
    notes = _remarks(value, kind)
    if interval in ("percentile", "bca"):
        result = bootstrap_sums(
            lambda sums: icc_of_sums(sums, k, kind), concordance_terms(scores - scores.mean()),
            clusters=None if data.clusters is None else data.clusters[complete], n_resamples=n_resamples,
            method="bca" if interval == "bca" else "percentile", rng=rng, name=title, notes=notes, **common,
        )  # fmt: skip
        return replace(result, value=value)
    if mse <= 1e-14 * (msr + msc):
        notes.append("interval not estimable, zero residual variance")
        return Estimate(title, value, status="unreliable", reason="; ".join(notes), **common)
    if kind[0] == "3":
        low, high = _exact_f(msr / mse, n - 1, (n - 1) * (k - 1), k, level, average=kind[-1] == "k")
        method = "exact F"
    elif interval == "mcgraw-wong":
        low, high = _mcgraw_wong(kind, msr, msc, mse, n, k, level)
        method = "McGraw–Wong F"
    else:
        generator, common["seed"] = numpy_rng(rng)
        low, high = _generalized(kind, msr, msc, mse, n, k, level, n_draws, generator)
        method = f"generalized, {n_draws} chi-square draws"
    return _finish(title, value, low, high, method, notes, common)


def mean_squares(scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean squares of items, raters and residual of complete scores ``(..., items, raters)``."""
    n, k = scores.shape[-2:]
    grand = scores.mean(axis=(-1, -2), keepdims=True)
    rows, columns = scores.mean(axis=-1, keepdims=True), scores.mean(axis=-2, keepdims=True)
    rest = scores - rows - columns + grand
    return (
        k * ((rows - grand) ** 2).sum(axis=(-1, -2)) / (n - 1),
        n * ((columns - grand) ** 2).sum(axis=(-1, -2)) / (k - 1),
        (rest**2).sum(axis=(-1, -2)) / ((n - 1) * (k - 1)),
    )


def icc_of_sums(sums: Floats, k: int, kind: Kind = "2,1") -> Floats:
    """Return ICCs of resamples of ``k`` raters, NaN if undefined, from sums ``(m, 1+k+k²)`` of centred scores.

    The sums are those of :func:`anima.stats.intraclass.concordance_terms`.
    """
    n, columns, products = sums[:, 0], sums[:, 1 : k + 1], sums[:, k + 1 :].reshape(-1, k, k)
    grand = columns.sum(axis=1) ** 2 / (n * k)
    rows = products.sum(axis=(1, 2)) / k - grand
    raters = (columns**2).sum(axis=1) / n - grand
    squares = np.einsum("mii->m", products)
    rest = squares - grand - rows - raters
    noise = 1e-13 * squares
    rows, raters, rest = (np.where(np.abs(part) <= noise, 0.0, part) for part in (rows, raters, rest))
    with np.errstate(all="ignore"):
        return _formula(kind, rows / (n - 1), raters / (k - 1), rest / ((n - 1) * (k - 1)), n, k)


def _formula(kind: Kind, msr: Any, msc: Any, mse: Any, n: Any, k: int) -> Floats:
    """Return the ICC of mean squares; for kind 1 ``mse`` is the mean square within items."""
    over = np.asarray(msr - mse, dtype=np.float64)
    below = {
        "1,1": msr + (k - 1) * mse, "1,k": msr, "3,1": msr + (k - 1) * mse, "3,k": msr,
        "2,1": msr + (k - 1) * mse + k * (msc - mse) / n, "2,k": msr + (msc - mse) / n,
    }[kind]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.where(np.asarray(below) != 0, over / below, np.nan)


def _one_way(title: str, scores: Floats, kind: Kind, interval: IccInterval, common: dict[str, Any]) -> Estimate:
    if interval in ("percentile", "bca"):
        raise InputError("ICC(1,·) has the exact F interval only: leave interval at 'auto'")
    held = (~np.isnan(scores)).sum(axis=1)
    keep = held >= 2
    scores, held = scores[keep], held[keep]
    n = len(scores)
    common |= {"n": n, "n_dropped": int((~keep).sum())}
    if n < 2:
        return Estimate.undefined(title, f"{n} items with two scores or more, at least 2 are needed", **common)
    means, total = np.nanmean(scores, axis=1), int(held.sum())
    msr = float((held * (means - np.nansum(scores) / total) ** 2).sum() / (n - 1))
    msw = float(np.nansum((scores - means[:, None]) ** 2) / (total - n))
    # The usual average group size of the unbalanced one-way analysis; equals the number of raters when balanced.
    size = (total - float((held**2).sum()) / total) / (n - 1)
    common["extra"] = {"msr": msr, "msw": msw, "ratings_per_item": size}
    if msr + msw == 0:
        return Estimate.undefined(title, "the scores have no variance", **common)
    value = (msr - msw) / (msr + (size - 1) * msw) if kind == "1,1" else (msr - msw) / msr if msr else -math.inf
    if not math.isfinite(value):
        return Estimate.undefined(title, "the item means have no variance", **common)
    notes = _remarks(value, kind)
    if held.min() != held.max():
        notes.append("items have different numbers of ratings, the F interval is approximate")
    if msw <= 1e-14 * msr:
        notes.append("interval not estimable, zero variance within items")
        return Estimate(title, value, status="unreliable", reason="; ".join(notes), **common)
    low, high = _exact_f(msr / msw, n - 1, total - n, size, common["level"], average=kind == "1,k")
    return _finish(title, value, low, high, "exact F", notes, common)


def _remarks(value: float, kind: Kind) -> list[str]:
    if value >= 0:
        return []
    return [f"negative ICC({kind}): no reliability, the variance component of the items is estimated below 0"]


def _finish(
    title: str, value: float, low: float, high: float, method: str, notes: list[str], common: dict[str, Any]
) -> Estimate:
    if not low <= value <= high:
        notes.append("interval not estimable")
        low = high = math.nan
    return Estimate.noted(title, value, low, high, notes, method=method, **common)


def _exact_f(ratio: float, df1: int, df2: int, k: float, level: float, *, average: bool) -> tuple[float, float]:
    from scipy.special import fdtri

    upper = 1 - (1 - level) / 2
    low, high = ratio / fdtri(df1, df2, upper), ratio * fdtri(df2, df1, upper)
    if average:
        return float(1 - 1 / low), float(1 - 1 / high)
    return float((low - 1) / (low + k - 1)), float((high - 1) / (high + k - 1))


def _mcgraw_wong(kind: Kind, msr: float, msc: float, mse: float, n: int, k: int, level: float) -> tuple[float, float]:
    """Return the interval of McGraw and Wong (1996), table 7, for absolute agreement."""
    from scipy.special import fdtri

    single = float(_formula("2,1", msr, msc, mse, n, k))
    if single >= 1:
        return math.nan, math.nan
    a = k * single / (n * (1 - single))
    b = 1 + k * single * (n - 1) / (n * (1 - single))
    df = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    upper = 1 - (1 - level) / 2
    f_low, f_high = fdtri(n - 1, df, upper), fdtri(df, n - 1, upper)
    rest = k * msc + (k * n - k - n) * mse
    low = n * (msr - f_low * mse) / (f_low * rest + n * msr)
    high = n * (f_high * msr - mse) / (rest + n * f_high * msr)
    if kind == "2,k":
        low, high = (end * k / (1 + end * (k - 1)) for end in (low, high))
    return float(low), float(high)


def _generalized(
    kind: Kind, msr: float, msc: float, mse: float, n: int, k: int, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the generalized interval: each mean square over its chi-square draw, quantiles of the resulting ICCs."""
    rows, raters, rest = (
        square * df / rng.chisquare(df, n_draws)
        for square, df in ((msr, n - 1), (msc, k - 1), (mse, (n - 1) * (k - 1)))
    )
    draws = _formula(kind, rows, raters, rest, n, k)
    low, high = np.quantile(draws, [(1 - level) / 2, 1 - (1 - level) / 2])
    return float(low), float(high)
