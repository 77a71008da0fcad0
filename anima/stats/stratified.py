"""Odds ratio of an event for an outcome, compared only within strata.

Pinned to ``statsmodels.stats.contingency_tables.StratifiedTable`` in ``tests/stats/test_stratified.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.checks import require_floats, require_fraction
from anima.errors import InputError
from anima.stats.bootstrap import bootstrap_sums
from anima.stats.correlation import paired
from anima.stats.estimate import Estimate
from anima.stats.resampling import RngLike, cluster_codes
from anima.stats.weighted import Floats, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def mantel_haenszel(
    event: ArrayLike,
    outcome: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: RngLike = None,
    name: str = "Mantel–Haenszel odds ratio",
) -> Estimate:
    """Return the pooled odds ratio of a binary event for a binary outcome (Mantel and Haenszel 1959).

    Parameters
    ----------
    event, outcome
        0 and 1, one row per unit; rows with a missing value are dropped and counted.
    strata
        Label of each row, e.g. the number of messages written, which gives the event its chance to occur: rows are
        compared within their stratum only. None: one stratum, the plain odds ratio.
    clusters
        Dialogue of each row. Given, whole clusters are resampled and the p-value is that of the logarithm against its
        bootstrap error, as read off the interval's width. Otherwise the interval is that of Robins, Breslow and
        Greenland (1986, Biometrics 42, 311–323) and the p-value the Cochran–Mantel–Haenszel test without correction.

    Returns
    -------
    Estimate
        ``"undefined"`` where no stratum holds both an event with and a non-event without the outcome, or the reverse.
        ``extra``: share of events with and without the outcome, number of strata that tell anything.

    Examples
    --------
    >>> e = mantel_haenszel([1, 1, 1, 0, 0, 0, 0, 1], [1, 1, 0, 1, 0, 0, 0, 1])
    >>> round(e.value, 2)
    9.0
    """
    require_fraction(level)
    x, y, groups, dropped = paired(event, outcome, clusters, names=("event", "outcome"))
    for title, values in (("event", x), ("outcome", y)):
        if odd := set(np.unique(values)) - {0.0, 1.0}:
            raise InputError(f"{title} must hold 0 and 1 only, got {min(odd)}: turn it into yes or no first")
    keep = ~(np.isnan(require_floats(event, "event")) | np.isnan(require_floats(outcome, "outcome")))
    layer = (
        np.zeros(len(x), dtype=np.intp) if strata is None else cluster_codes(np.asarray(strata)[keep], len(x), "strata")
    )
    k = int(layer.max(initial=0)) + 1
    # Cells of each stratum: event and outcome, event alone, outcome alone, neither.
    cells = np.zeros((len(x), 4 * k))
    cells[np.arange(len(x)), 4 * layer + np.where(x == 1, np.where(y == 1, 0, 1), np.where(y == 1, 2, 3))] = 1
    tables = cells.sum(axis=0).reshape(k, 4)
    a, b, c, d = tables.T
    telling = int(((a + b > 0) & (c + d > 0) & (a + c > 0) & (b + d > 0)).sum())
    with np.errstate(all="ignore"):
        shares = {"with_outcome": a.sum() / (a + c).sum(), "without_outcome": b.sum() / (b + d).sum()}
        value = float(np.exp(_log_ratio(tables.reshape(1, -1))[0]))
    extra = {key: float(share) for key, share in shares.items()} | {"telling_strata": float(telling)}
    common: dict[str, Any] = {"level": level, "n": len(x), "n_dropped": dropped, "extra": extra}
    if not math.isfinite(value) or value == 0:
        reason = "one diagonal of every table is empty: the odds ratio is 0 or infinite"
        return Estimate.undefined(name, reason, **common)
    z = normal_quantile(level)
    if groups is None:
        error = math.sqrt(_rbg_variance(tables))
        low, high = (value * math.exp(sign * z * error) for sign in (-1, 1))
        p = _cmh_p(tables)
        return Estimate(name, value, low, high, p_value=p, method="Robins–Breslow–Greenland", **common)
    log = bootstrap_sums(_log_ratio, cells, clusters=groups, n_resamples=n_resamples, rng=rng, name=name, **common)
    error = (log.high - log.low) / (2 * z)
    p = _normal_p(math.log(value) / error) if error > 0 else math.nan
    return replace(log, value=value, low=math.exp(log.low), high=math.exp(log.high), p_value=p)


def _log_ratio(sums: Floats) -> Floats:
    """Return the log odds ratio of each row of cells ``(m, 4 k)``; NaN where it is infinite."""
    a, b, c, d = np.moveaxis(sums.reshape(len(sums), -1, 4), 2, 0)
    with np.errstate(all="ignore"):
        n = np.maximum(a + b + c + d, 1)
        log = np.log((a * d / n).sum(axis=1) / (b * c / n).sum(axis=1))
    return np.where(np.isfinite(log), log, np.nan)


def _rbg_variance(tables: Floats) -> float:
    a, b, c, d = tables[tables.sum(axis=1) > 0].T
    n = a + b + c + d
    r, s, p, q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
    up, down = r.sum(), s.sum()
    return float((p * r).sum() / up**2 + (p * s + q * r).sum() / (up * down) + (q * s).sum() / down**2) / 2


def _cmh_p(tables: Floats) -> float:
    a, b, c, d = tables[tables.sum(axis=1) > 1].T
    n = a + b + c + d
    expected = (a + b) * (a + c) / n
    variance = ((a + b) * (c + d) * (a + c) * (b + d) / (n**2 * (n - 1))).sum()
    return _normal_p(float((a - expected).sum()) / math.sqrt(variance)) if variance > 0 else math.nan


def _normal_p(z: float) -> float:
    return math.erfc(abs(z) / math.sqrt(2))
