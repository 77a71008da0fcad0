"""Agreement of any number of raters from a long table: Fleiss' kappa, Krippendorff's alpha, Gwet's AC1 and AC2.

The input is always long (one row per item and rater), so that items and raters cannot be swapped by mistake.

Which statistic: ``krippendorff_alpha`` when ratings are missing or the scale is not nominal; ``gwet_ac`` when one class
rules and kappa-like coefficients collapse; ``fleiss_kappa`` to compare with published ones; ``reliability`` for all of
them side by side. For continuous scores also :func:`anima.stats.intraclass.icc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from anima.checks import require_array, require_choice, require_columns, require_fraction, show
from anima.errors import InputError
from anima.stats.agreement import Weights, agreement_weights, scale_positions
from anima.stats.bootstrap import IntervalMethod, sums_estimate
from anima.stats.estimate import Estimate, Presentable
from anima.stats.resampling import RngLike, cluster_codes
from anima.stats.weighted import Floats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from numpy.typing import NDArray


_MAX_CELLS = 20_000_000
_MANY_STEPS = 50  # a scale with more steps is continuous for all purposes
Scale = Literal["nominal", "ordinal", "interval", "ratio"]


@dataclass(frozen=True)
class Ratings:
    """A long table of ratings as a matrix: scale, rows and columns in order of appearance, and what was lost on the
    way.

    ``codes`` holds ``(items, raters)`` positions on the scale ``labels`` (−1: no rating), ``n_missing`` counts rows
    without a value, ``clusters`` the cluster of each item, ``declared`` says whether the scale was declared.
    """

    codes: NDArray[np.intp]
    labels: list[Any]
    items: list[Any]
    raters: list[Any]
    n_missing: int
    clusters: NDArray[np.intp] | None = None
    declared: bool = False

    def require_order(self) -> None:
        """Raise :class:`InputError` when distances on the scale are asked for and only the alphabet orders it."""
        if not self.declared and any(isinstance(label, str) for label in self.labels):
            raise InputError("distances need an order and text has none: pass categories=[...] in order, or numbers")

    @property
    def counts(self) -> Floats:
        """How many raters chose each step of the scale for each item, ``(items, steps)``."""
        if len(self.items) * len(self.labels) > _MAX_CELLS:
            raise InputError(
                f"{len(self.labels)} distinct values make no scale of steps: use icc or "
                "krippendorff_alpha(scale='interval') for continuous scores"
            )
        out = np.zeros((len(self.items), len(self.labels)))
        rows, columns = np.nonzero(self.codes >= 0)
        np.add.at(out, (rows, self.codes[rows, columns]), 1)
        return out

    @property
    def totals(self) -> Floats:
        """How often each step of the scale was chosen."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels)).astype(np.float64)

    @property
    def scores(self) -> Floats:
        """The numeric ratings, ``(items, raters)``, NaN where there is none."""
        try:
            values = np.array([float(label) for label in self.labels] + [math.nan])
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"the scale {show(self.labels)} is not numeric: scores need numbers") from None
        return np.asarray(values[self.codes])


def ratings(
    frame: pd.DataFrame,
    *,
    item: str = "item",
    rater: str = "rater",
    value: str = "value",
    categories: Sequence[Any] | None = None,
    cluster: str | None = None,
) -> Ratings:
    """Return a long table of ratings as :class:`Ratings`.

    Refused: missing columns, two ratings of one item by one rater (merging them silently would hide repeats), values
    outside the declared categories, and items that lie in two clusters.
    """
    import pandas as pd

    require_columns(frame, [item, rater, value, *([cluster] if cluster else [])])
    if frame[[item, rater]].isna().any(axis=None):
        raise InputError(f"columns {item!r} and {rater!r} must not have missing values")
    twice = frame.duplicated([item, rater])
    if twice.any():
        row = frame[twice].iloc[0]
        raise InputError(
            f"rater {show(row[rater])} rated item {show(row[item])} more than once ({int(twice.sum())} repeats): "
            "keep one rating each, or give repeats their own rater name to measure consistency"
        )
    present = frame[value].notna()
    values = frame.loc[present, value]
    if categories is None:
        kinds = {isinstance(entry, str) for entry in values.unique()}
        if len(kinds) > 1:
            raise InputError(f"column {value!r} mixes text and numbers: give one kind")
        labels = sorted(values.unique().tolist())
        if kinds == {False} and not np.isfinite(require_array(labels, f"column {value!r}")).all():
            raise InputError(f"column {value!r} holds infinite values: drop them first")
    else:
        labels = list(categories)
    item_codes, items = pd.factorize(frame[item])
    rater_codes, raters = pd.factorize(frame[rater])
    codes = np.full((len(items), len(raters)), -1, dtype=np.intp)
    codes[item_codes[present], rater_codes[present]] = scale_positions(values.tolist(), labels)
    groups = None
    if cluster:
        pairs = frame[[item, cluster]].drop_duplicates()
        if pairs[item].duplicated().any():
            raise InputError(f"item {show(pairs[item][pairs[item].duplicated()].iloc[0])} lies in two clusters")
        groups = cluster_codes(pairs[cluster].to_numpy(), len(pairs), name=cluster)
    return Ratings(codes, labels, list(items), list(raters), int((~present).sum()), groups, categories is not None)


def fleiss_kappa(frame: pd.DataFrame | Ratings, **options: Any) -> Estimate:
    """Return Fleiss' kappa: chance agreement from the pooled shares of the classes (Fleiss 1971).

    Items with fewer than two ratings add to the shares only, as in Gwet (2014, ch. 2). Options as in
    :func:`krippendorff_alpha` without ``scale``.
    """
    return _coefficient("Fleiss' kappa", frame, _fleiss_terms, **options)


def gwet_ac(frame: pd.DataFrame | Ratings, *, weights: Weights = "nominal", **options: Any) -> Estimate:
    """Return Gwet's AC1 (nominal) or AC2 (weighted), stable when one class rules (Gwet 2008; 2014, ch. 4–5).

    Chance agreement depends on the number of steps of the scale: declare ``categories``. Options as in
    :func:`krippendorff_alpha` without ``scale``.
    """
    require_choice(weights, "weights", ("nominal", "linear", "quadratic"))
    title = "Gwet's AC1" if weights == "nominal" else f"Gwet's AC2 ({weights})"
    return _coefficient(title, frame, lambda data: _gwet_terms(data, weights), **options)


def percent_agreement_many(frame: pd.DataFrame | Ratings, **options: Any) -> Estimate:
    """Return the mean share of agreeing pairs of raters per item. Options as in :func:`krippendorff_alpha`."""
    return _coefficient("percent agreement", frame, _percent_terms, transform=False, **options)


def krippendorff_alpha(frame: pd.DataFrame | Ratings, *, scale: Scale = "nominal", **options: Any) -> Estimate:
    """Return Krippendorff's alpha, which takes missing ratings, any number of raters and four kinds of scale.

    Krippendorff (2011), *Computing Krippendorff's alpha-reliability*; pinned to ``krippendorff`` in
    ``tests/stats/test_raters.py``.

    Parameters
    ----------
    frame
        Long table (or :class:`Ratings`): one row per item and rater.
    scale
        Kind of difference: ``"nominal"``, ``"ordinal"`` (ranks), ``"interval"`` or ``"ratio"`` (needs values >= 0).
        Chosen by the scale, never by which alpha is larger.
    item, rater, value, cluster
        Names of the columns (default ``"item"``, ``"rater"``, ``"value"``, none).
    categories
        The declared scale in order; needed for ordinal text.
    interval
        ``"auto"``/``"analytic"``: Fisher's z with a jackknife error over items (clusters) and a t quantile;
        ``"percentile"``, ``"bca"``: bootstrap over items (clusters).

    Returns
    -------
    Estimate
        ``n`` counts pairable items (two ratings or more), ``n_dropped`` the other items; ``extra`` has n_raters,
        n_missing and unused steps. Undefined when all pairable ratings are equal or fewer than 2 items are pairable.
    """
    require_choice(scale, "scale", ("nominal", "ordinal", "interval", "ratio"))
    return _coefficient(
        f"Krippendorff's alpha ({scale})", frame, lambda data: _alpha_terms(data, scale), pairable_only=True, **options
    )


@dataclass(frozen=True)
class Reliability(Presentable):
    """Every coefficient of one table side by side; made by :func:`reliability`."""

    estimates: tuple[Estimate, ...]
    base_rates: dict[str, float]
    majority_baseline: float

    def _rows(self) -> list[Estimate]:
        return list(self.estimates)

    def summary(self) -> str:
        """Return one sentence."""
        values = ", ".join(f"{e.name} {e.value:.3f}" if e.defined else f"{e.name} undefined" for e in self.estimates)
        return f"{values}; the commonest class alone would agree with {self.majority_baseline:.1%} of the ratings."


def reliability(frame: pd.DataFrame, *, scale: Scale = "nominal", **options: Any) -> Reliability:
    """Return percent agreement, Fleiss' kappa, AC1/AC2 and alpha (and ICC(2,1) for interval scales) of one table.

    Disagreement among them is information: percent agreement far above kappa with AC1 high means that one class rules.
    With more than 50 distinct values only alpha and ICC. Options as in :func:`krippendorff_alpha`.
    """
    names = ("item", "rater", "value", "categories", "cluster")
    data = ratings(frame, **{key: options.pop(key) for key in names if key in options})
    kinds: dict[str, Weights] = {
        "nominal": "nominal",
        "ordinal": "linear",
        "interval": "quadratic",
        "ratio": "quadratic",
    }
    estimates = []
    if len(data.labels) <= _MANY_STEPS:
        estimates = [
            percent_agreement_many(data, **options),
            fleiss_kappa(data, **options),
            gwet_ac(data, weights=kinds[scale], **options),
        ]
    estimates.append(krippendorff_alpha(data, scale=scale, **options))
    if scale in ("interval", "ratio"):
        from anima.stats.intraclass import icc

        shared = {key: options[key] for key in ("interval", "level", "n_resamples", "rng") if key in options}
        if shared.get("interval") == "analytic":
            shared["interval"] = "auto"
        estimates.append(icc(data, **shared))
    shares = data.totals
    shares = shares / shares.sum() if shares.sum() else shares
    rates = {str(label): float(share) for label, share in zip(data.labels, shares, strict=True)}
    return Reliability(tuple(estimates), rates, float(shares.max()) if shares.any() else math.nan)


Terms: TypeAlias = tuple[Floats, "Callable[[Floats], Floats]"]


def _coefficient(
    title: str,
    frame: pd.DataFrame | Ratings,
    terms_of: Callable[[Ratings], Terms],
    *,
    interval: IntervalMethod = "auto",
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str | None = None,
    transform: bool = True,
    pairable_only: bool = False,
    **columns: Any,
) -> Estimate:
    require_choice(interval, "interval", ("auto", "analytic", "percentile", "bca"))
    require_fraction(level)
    data = frame if isinstance(frame, Ratings) else ratings(frame, **columns)
    rated = (data.codes >= 0).sum(axis=1)
    pairable = int((rated >= 2).sum())
    unused = [label for label, total in zip(data.labels, data.totals, strict=True) if not total]
    common: dict[str, Any] = {
        "level": level, "n": pairable, "n_dropped": len(data.items) - pairable,
        "extra": {"n_raters": len(data.raters), "n_missing": data.n_missing, "unused": unused},
    }  # fmt: skip
    title = name or title
    if pairable < 2:
        units = "item has" if pairable == 1 else "items have"
        return Estimate.undefined(title, f"{pairable} {units} two ratings or more, at least 2 are needed", **common)
    keep = rated >= 2 if pairable_only else rated >= 1
    used = Ratings(
        data.codes[keep], data.labels, [i for i, k in zip(data.items, keep, strict=True) if k], data.raters,
        data.n_missing, declared=data.declared,
    )  # fmt: skip
    if transform and (used.totals > 0).sum() < 2:
        return Estimate.undefined(title, "all ratings are the same: agreement beyond chance cannot be seen", **common)
    terms, statistic = terms_of(used)
    groups = None
    if data.clusters is not None:
        groups = np.unique(data.clusters[keep], return_inverse=True)[1].astype(np.intp)
    return sums_estimate(
        title, statistic, terms, groups, interval, n_resamples=n_resamples, rng=rng, transform=transform, **common
    )


def _pair_agreement(counts: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return per item the agreement of its pairs (0 if not pairable), whether it is pairable, and its class shares."""
    r = counts.sum(axis=1)
    pairs = np.where(r >= 2, r * (r - 1), np.inf)
    agreement = (counts * (counts @ weights.T - 1)).sum(axis=1) / pairs
    return agreement, (r >= 2).astype(float), counts / r[:, None]


def _percent_terms(data: Ratings) -> Terms:
    agreement, pairable, _ = _pair_agreement(data.counts, np.eye(len(data.labels)))
    return np.column_stack([agreement, pairable]), lambda sums: sums[:, 0] / sums[:, 1]


def _fleiss_terms(data: Ratings) -> Terms:
    agreement, pairable, shares = _pair_agreement(data.counts, np.eye(len(data.labels)))

    def statistic(sums: Floats) -> Floats:
        pooled = sums[:, 3:] / sums[:, 2:3]
        seen, chance = sums[:, 0] / sums[:, 1], (pooled**2).sum(axis=1)
        return np.where(chance < 1 - 1e-12, (seen - chance) / (1 - chance), np.nan)

    return np.column_stack([agreement, pairable, np.ones(len(shares)), shares]), statistic


def _gwet_terms(data: Ratings, kind: Weights) -> Terms:
    if kind != "nominal":
        data.require_order()
    weights = agreement_weights(data.labels, kind)
    agreement, pairable, shares = _pair_agreement(data.counts, weights)
    q = len(data.labels)
    factor = weights.sum() / (q * (q - 1)) if q > 1 else math.nan

    def statistic(sums: Floats) -> Floats:
        pooled = sums[:, 3:] / sums[:, 2:3]
        seen, chance = sums[:, 0] / sums[:, 1], factor * (pooled * (1 - pooled)).sum(axis=1)
        return np.asarray((seen - chance) / (1 - chance))

    return np.column_stack([agreement, pairable, np.ones(len(shares)), shares]), statistic


def _alpha_terms(data: Ratings, scale: Scale) -> Terms:
    r = (data.codes >= 0).sum(axis=1).astype(np.float64)
    q = len(data.labels)
    if scale == "interval":
        # Squared differences need only moments: any number of distinct values is fine.
        values = data.scores
        values = values - np.nanmean(values)
        one, two = np.nansum(values, axis=1), np.nansum(values**2, axis=1)
        terms = np.column_stack([2 * (r * two - one**2) / (r - 1), r, one, two])

        def from_moments(sums: Floats) -> Floats:
            seen, n, first, second = sums.T
            return _one_minus(seen / n, 2 * (n * second - first**2) / (n * (n - 1)))

        return terms, from_moments
    counts = data.counts
    if scale == "ordinal":
        # A rank difference depends on how many ratings lie between, hence on the resample: keep the coincidences.
        data.require_order()
        diagonal = np.zeros((len(counts), q, q))
        diagonal[:, np.arange(q), np.arange(q)] = counts
        table = (counts[:, :, None] * counts[:, None, :] - diagonal) / (r - 1)[:, None, None]

        def from_coincidences(sums: Floats) -> Floats:
            together = sums.reshape(-1, q, q)
            held = together.sum(axis=2)
            place = np.cumsum(held, axis=1) - held / 2
            distance = (place[:, :, None] - place[:, None, :]) ** 2
            n = held.sum(axis=1)
            seen = (together * distance).sum(axis=(1, 2)) / n
            return _one_minus(seen, np.einsum("mi,mij,mj->m", held, distance, held) / (n * (n - 1)))

        return table.reshape(len(counts), -1), from_coincidences
    if scale == "ratio":
        places = np.array([float(label) for label in data.labels])
        if places.min() < 0:
            raise InputError(f"a ratio scale has no values below 0, got {places.min()}")
        with np.errstate(all="ignore"):
            total = places[:, None] + places
            distance = np.where(total > 0, ((places[:, None] - places) / total) ** 2, 0)
    else:
        distance = 1 - np.eye(q)
    own = ((counts @ distance) * counts).sum(axis=1) / (r - 1)

    def statistic(sums: Floats) -> Floats:
        n, held = sums[:, 1], sums[:, 2:]
        return _one_minus(sums[:, 0] / n, ((held @ distance) * held).sum(axis=1) / (n * (n - 1)))

    return np.column_stack([own, r, counts]), statistic


def _one_minus(seen: Floats, expected: Floats) -> Floats:
    # Rounding noise of a constant resample is no disagreement.
    return np.where(expected > 1e-13, 1 - seen / expected, np.nan)
