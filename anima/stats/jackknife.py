"""Intervals of coefficients that are functions of sums over items: jackknife on Fisher's scale, or the bootstrap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anima.stats.bootstrap import RngLike, bootstrap_sums
from anima.stats.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable

Floats: TypeAlias = NDArray[np.float64]

FEW_ITEMS = 10


def sums_estimate(
    name: str, statistic: Callable[[Floats], Floats], terms: Floats, groups: NDArray[np.intp] | None, method: str, *,
    n_resamples: int, rng: RngLike, transform: bool = True, **common: Any,
) -> Estimate:  # fmt: skip
    """Return a coefficient of sums with a bootstrap or jackknife interval (Fisher z if ``transform``, t quantile)."""
    from scipy.special import stdtrit

    if method in ("percentile", "bca"):
        result = bootstrap_sums(
            statistic, terms, clusters=groups, n_resamples=n_resamples, level=common["level"],
            method="bca" if method == "bca" else "percentile", rng=rng, name=name,
        )  # fmt: skip
        return Estimate(**{**result.__dict__, **common})
    table = terms
    if groups is not None:
        table = np.zeros((groups.max(initial=-1) + 1, terms.shape[1]))
        np.add.at(table, groups, terms)
        common["n_clusters"] = len(table)
    units, total = len(table), table.sum(axis=0)
    with np.errstate(all="ignore"):
        value = float(statistic(total[None])[0])
        left_out = statistic(total - table)
        if not math.isfinite(value):
            return Estimate.undefined(name, common.pop("reason", "") or "no spread in the ratings", **common)
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
    return Estimate(
        name, value, low, high, method=label, status="unreliable" if notes else "ok", reason="; ".join(notes), **common
    )
