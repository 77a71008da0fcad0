"""How precise each snapshot of a judge is, and whether its metric has fallen more than that explains.

What is watched is the *error* of the metric, 1 − value (of kappa, of an intraclass correlation, of a pass rate). Near a
value of 1 errors are few and behave like counts, skewed to the bad side, so that plain z-scores of kappa take the
normal scatter of a bad day for drift. The power 2/3 takes the skew out of a count (Anscombe 1953, Journal of the Royal
Statistical Society B 15, 229–230; Wilson and Hilferty 1931), so each snapshot is read as ``k·(1 − value)`` errors,
``k`` being the count scale that its interval, or its ``n``, implies. ``k`` is pooled over the snapshots, because the
interval of a single lucky one is too short; the change-point test of :mod:`anima.stats.drift` then runs on the
powers. Calibration and power: ``tests/metaeval/sentinel_table.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.stats.drift import change_limit, change_statistic, successive_spread

if TYPE_CHECKING:
    from anima.metaeval.snapshot import SentinelMetric
    from anima.stats.weighted import Floats


_Z: Final = 1.959963984540054  # the intervals of snapshots are 95 % ones
_PAIR: Final = 2 * 0.8 * 0.2  # two rates of 80:20, supposed where only n is known
FEWEST_WITHOUT_PRECISION: Final = 8
_OVERDISPERSION: Final = 0.01
_GRAIN: Final = 0.5  # half a count, for continuity
# Intervals that hold the base rates at their estimates are too short where these are uneven: at 80:20 they imply a scale
# 4 to 9 % too large, none at 50:50 (same simulation). The scale falls short of the balanced one by about a third there.
_UNEVEN: Final = 0.25


@dataclass(frozen=True)
class DriftScore:
    """Test of one metric at its newest snapshot: fall and rise in standard errors, and the limit of both."""

    fall: float
    rise: float
    limit: float
    note: str = ""

    @property
    def tested(self) -> bool:
        """Whether there was something to compare and a precision to compare with."""
        return math.isfinite(self.fall) and math.isfinite(self.limit)


def count_scale(metric: SentinelMetric, values: Floats, sizes: Floats, lows: Floats, highs: Floats) -> Floats:
    """Return the count scale ``k`` of each snapshot: its errors ``k·(1 − value)`` vary like a Poisson count.

    Parameters
    ----------
    metric, values, sizes, lows, highs
        Histories ``(..., t)``; sizes and interval ends are NaN where not recorded. Give the snapshots known at the
        time.

    Returns
    -------
    array ``(..., t)``
        For pass rates from ``n`` (binomial); otherwise from the intervals, pooled per item, by solving the half-width
        ``h`` of a score interval of a count, ``(k h)² = z² (k e + z²/4)``, for ``k``; with ``n`` alone, from the
        variance of kappa of two raters who use two classes 80:20 (wider than balanced: the careful choice). A snapshot
        with neither gets the median of the others; NaN throughout when none has any.
    """
    error = np.clip(1 - values, 0.0, 2.0)
    half = (highs - lows) / 2
    # An interval without width comes from a degenerate bootstrap and says nothing.
    given = half > 1e-6
    sized = ~np.isnan(sizes)
    by_size = (sized | ~given).all(axis=-1, keepdims=True) & sized.any(axis=-1, keepdims=True)
    unit = np.where(by_size, np.where(sized, sizes, np.nan), 1.0)
    with np.errstate(all="ignore"):
        a = np.where(given, (unit * half) ** 2, 0.0).sum(axis=-1, keepdims=True)
        b = np.where(given, unit * error, 0.0).sum(axis=-1, keepdims=True)
        m = given.sum(axis=-1, keepdims=True)
        pooled = _Z**2 * (b + np.sqrt(b * b + a * m)) / (2 * a)
        mean = values.mean(axis=-1, keepdims=True)
        if metric == "sentinelPassRate":
            from_size = sizes / np.clip(mean, 0.05, 1.0)
            scale = np.where(sized, from_size, np.where(given, pooled, np.nan))
        else:
            kappa = np.clip(mean, 0.0, 1.0)
            from_size = sizes / ((1 - kappa) * (1 - 2 * kappa) + kappa * (2 - kappa) / _PAIR)
            even = sizes / (1 + kappa)
            uneven = np.where(by_size, np.clip(1 - pooled * unit / even, 0.0, 1.0), 0.0)
            pooled = pooled * unit * (1 - _UNEVEN * uneven)
            scale = np.where(m > 0, np.where(given | by_size, pooled, np.nan), from_size)
        known = ~np.isnan(scale)
        if known.all() or not known.any():
            return scale
        middle = np.nanmedian(np.where(known.any(axis=-1, keepdims=True), scale, 1.0), axis=-1, keepdims=True)
    return np.where(known, scale, np.where(known.any(axis=-1, keepdims=True), middle, np.nan))


def straightened(
    values: Floats, scale: Floats, *, level: float = math.nan, reference: int = 10
) -> tuple[Floats, Floats, float, Floats]:
    """Return the powers of histories ``(..., t)``, their inverse variances, the power of a known ``level``, and the
    grain.

    The first ``reference`` snapshots say how large the variance is, so that a decline does not widen its own yardstick.
    """
    error = np.clip(1 - values, 0.0, 2.0)
    start = np.full((*error.shape[:-1], 1), 1 - level)
    if math.isnan(level):
        early, counts = error[..., :reference], scale[..., :reference]
        # One error more than seen: few snapshots without errors must not promise that there will be none.
        start = ((early * counts).sum(axis=-1, keepdims=True) + 1) / counts.sum(axis=-1, keepdims=True)
    # Below one expected error per snapshot the power is no longer near normal: its variance is held at that of one.
    start = np.maximum(start, 1 / np.median(scale, axis=-1, keepdims=True))
    # The mean of the power of a count of mean m is m^(2/3) − m^(−1/3)/9.
    powers = error ** (2 / 3) + start ** (-1 / 3) / (9 * scale)
    return powers, 2.25 * scale / start ** (1 / 3), max(1 - level, 0.0) ** (2 / 3), 1.5 * _GRAIN * start ** (-2 / 3)


def drift_test(
    values: Floats,
    scale: Floats,
    *,
    level: float = math.nan,
    level_scale: float = 0.0,
    alpha: float = 0.05,
    horizon: int = 30,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return fall, rise, limit and overdispersion of histories ``(..., t)`` at their newest snapshot.

    Where the snapshots scatter clearly more from one to the next than their precision explains (1 % test), and where no
    precision is known (``scale`` NaN), the scatter itself is the yardstick and the limit comes from Student's t. The
    limit is NaN without precision and fewer than eight snapshots, the overdispersion without precision. ``level_scale``
    is the count scale of a known ``level``: ``inf`` for an exact one, 0 for none.
    """
    from scipy.stats import chi2

    t, blank = values.shape[-1], np.full(values.shape[:-1], np.nan)
    plain = np.full_like(blank, change_limit(alpha, horizon))
    precise = not np.isnan(scale).any()
    if not precise and t < FEWEST_WITHOUT_PRECISION:
        return blank, blank, blank, blank
    if precise:
        powers, weights, start, grain = straightened(values, scale, level=level)
        # A level of finite precision is a count like the others.
        floor = 1 / level_scale if level_scale > 0 else 0.0
        weight = 2.25 * level_scale / max(1 - level, floor) ** (1 / 3) if level_scale > 0 else 0.0
    else:
        powers, weights, start, grain, weight = -values, np.ones_like(values), -level, np.zeros(1), level_scale
    fall, rise = (
        change_statistic(sign * powers, weights, level=sign * start, level_weight=weight, grain=grain)
        for sign in (1, -1)
    )
    if t < FEWEST_WITHOUT_PRECISION:
        return fall, rise, plain, np.ones_like(blank)
    spread, df = successive_spread(powers, weights)
    wide = np.ones(blank.shape, dtype=bool)
    if precise:
        # The test leaves out the largest step, so that one true drop does not pass for noise.
        wide = successive_spread(powers, weights, trim=1)[0] > chi2.isf(_OVERDISPERSION, df) / df
    spread = np.where(wide, spread, 1.0)
    with np.errstate(all="ignore"):
        # No scatter at all: nothing has moved.
        fall, rise = (np.where(spread > 0, score / np.sqrt(spread), 0.0) for score in (fall, rise))
    limit = np.where(wide, change_limit(alpha, horizon, df=df), plain)
    return fall, rise, limit, spread if precise else blank


def drift_score(
    metric: SentinelMetric,
    values: Floats,
    sizes: Floats,
    lows: Floats,
    highs: Floats,
    *,
    level: float = math.nan,
    level_half_width: float = math.nan,
    alpha: float = 0.05,
    horizon: int = 30,
) -> DriftScore:
    """Return the test of drift of one history ``(t,)`` at its newest snapshot; see :func:`count_scale` and
    :func:`drift_test`.

    ``level_half_width``: half the width of the 95 % interval of a known baseline, NaN for one known exactly.
    """
    scale = count_scale(metric, values, sizes, lows, highs)
    level_scale = 0.0 if math.isnan(level) else math.inf
    if math.isfinite(level_half_width) and level_half_width > 0:
        ends = np.array([level - level_half_width]), np.array([level + level_half_width])
        level_scale = float(count_scale("irr", np.array([level]), np.array([np.nan]), *ends)[0])
    options: dict[str, Any] = {"level": level, "level_scale": level_scale, "alpha": alpha, "horizon": horizon}
    fall, rise, limit, spread = (float(item[0]) for item in drift_test(values[None], scale[None], **options))
    note = ""
    if np.isnan(scale).any():
        note = "precision judged by the scatter from snapshot to snapshot"
        if math.isnan(limit):
            need = f"give n or an interval, or at least {FEWEST_WITHOUT_PRECISION} snapshots"
            note = f"its precision is unknown: {need}"
    elif spread != 1:
        note = f"snapshots scatter {math.sqrt(spread):.1f} times as much as their precision explains"
    return DriftScore(fall, rise, limit, note)
