"""Whether a level has left its baseline at an unknown time, suddenly or slowly: the test behind the judge sentinel.

For every earlier moment the test asks how much better a change there (a step, and a steady slope from there on)
explains the measurements than one level does, and keeps the largest standardised answer: the generalised
likelihood-ratio form of CUSUM (Siegmund and Venkatraman 1995, Annals of Statistics 23, 255–271), with the level before
unknown as in the change-point model of Hawkins, Qiu and Kang (2003, Journal of Quality Technology 35, 355–366). Against
Page's CUSUM (:func:`anima.stats.cusum`) it needs no guess of the size of the shift, and no separate run to learn the
baseline from.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from anima.checks import require_number
from anima.errors import InputError

if TYPE_CHECKING:
    from anima.stats.weighted import Floats


#: False alarms per look over h·φ(h), by simulation: 20,000 histories of 90 normal values, h from 2.75 to 3.5, level known
#: or not, gave 0.29 to 0.31 in looks 1 to 30 and 0.31 to 0.34 later; see ``tests/stats/test_changepoint.py``.
_RATE: Final = 0.335


def change_statistic(
    values: Floats, weights: Floats, *, level: float = math.nan, level_weight: float = 0.0, grain: Floats | float = 0.0
) -> Floats:
    """Return how far each history has risen above its earlier level by its newest value, in standard errors.

    Parameters
    ----------
    values, weights
        Histories ``(..., t)`` in order of time, and the inverse variances of their values, > 0. Steps count, not the
        calendar. Pass negated values to look for a fall.
    level, level_weight
        What is known of the level before the first value: its inverse variance, ``inf`` when known exactly, 0 when
        unknown.
    grain
        Continuity correction of values that come in steps: the part of a step, times the weight of its value, that each
        contrast is short of; broadcast to ``(..., 1)``.

    Returns
    -------
    array ``(...)``
        The largest standardised contrast over all moments of change, both forms; ``-inf`` where there is nothing to
        compare with. Standard normal values exceed :func:`change_limit` with a set rate.
    """
    y, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    w = np.broadcast_to(w, y.shape)
    first = 0 if level_weight > 0 else 1
    if y.shape[-1] <= first:
        return np.full(y.shape[:-1], -np.inf)
    if math.isinf(level_weight):
        residual, shrink = y - level, np.zeros((*y.shape[:-1], 1))
    else:
        known = level * level_weight if level_weight > 0 else 0.0
        shrink = 1 / (w.sum(axis=-1, keepdims=True) + level_weight)
        residual = y - shrink * ((w * y).sum(axis=-1, keepdims=True) + known)
    step, mass = _from_the_end(w * residual), _from_the_end(w)
    slope, lever = _from_the_end(step), _from_the_end(mass)
    # The sum of w·s² for slopes s = 1, 2, 3, … is a running sum of w·(2s − 1).
    moment = _from_the_end(2 * lever - mass)
    parts = [(step - grain, mass - shrink * mass**2), (slope - grain * lever / mass, moment - shrink * lever**2)]
    scores = [(top[..., first:] / np.sqrt(variance[..., first:])).max(axis=-1) for top, variance in parts]
    return np.asarray(np.maximum(*scores))


@lru_cache(maxsize=256)
def change_limit(alpha: float = 0.05, horizon: int = 30, *, df: float = math.inf) -> float:
    """Return the limit that a steady history, looked at after every value, exceeds within ``horizon`` looks with chance
    ``alpha``.

    The rate per look is ``K·h·φ(h)`` (the large-limit form of Siegmund and Venkatraman, K by simulation); the first
    looks, which compare little, have less. ``df``: degrees of freedom of a standard error estimated from the history
    itself; the limit is moved to the same tail of Student's t.
    """
    from scipy import optimize, stats

    require_number(alpha, "alpha", low=0, high=0.5, open_low=True)
    if horizon < 1:
        raise InputError(f"horizon must be at least 1 look, got {horizon}")
    rate = -math.log1p(-alpha) / horizon
    peak = _RATE * stats.norm.pdf(1.0)
    limit = 1.0 if rate >= peak else float(optimize.brentq(lambda h: _RATE * h * stats.norm.pdf(h) - rate, 1.0, 40.0))
    return limit if math.isinf(df) else float(stats.t.isf(stats.norm.sf(limit), df))


def successive_spread(values: Floats, weights: Floats, *, trim: int = 0) -> tuple[Floats, float]:
    """Return the variance of standardised values seen in their successive differences, and its degrees of freedom.

    About 1 when the weights (inverse variances) tell the truth, whatever slow drift there is (von Neumann's mean square
    successive difference). ``trim`` largest differences are left out, so that one step does not pass for noise.
    """
    t = values.shape[-1]
    if t < 2 + trim:
        return np.full(values.shape[:-1], np.nan), math.nan
    squares = np.sort(np.diff(values) ** 2 / (1 / weights[..., 1:] + 1 / weights[..., :-1]))
    return np.asarray(squares[..., : t - 1 - trim].mean(axis=-1)), 2 * (t - 1) ** 2 / (3 * t - 4)


def _from_the_end(values: Floats) -> Floats:
    return np.asarray(np.cumsum(values[..., ::-1], axis=-1)[..., ::-1])
