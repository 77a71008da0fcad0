"""Whether a series of measurements has moved: state by rule, tests with a set rate of false alarms, slope.

Which: :func:`change_statistic`, behind the judge sentinel, when every point has a standard error: for every earlier
moment it asks how much better a change there (a step, and a steady slope from there on) explains the measurements than
one level does, and keeps the largest standardised answer. It is the generalised likelihood-ratio form of CUSUM
(Siegmund and Venkatraman 1995, Annals of Statistics 23, 255–271), with the level before unknown as in the change-point
model of Hawkins, Qiu and Kang (2003, Journal of Quality Technology 35, 355–366), and needs no guess of the size of the
shift. :func:`cusum`, Page's own, with a known baseline and one size of shift in mind; :func:`e_process` for single
bounded observations that may be looked at after each one, with no model of the noise; :func:`trend` for a plain slope.
:func:`series_state` is the rule of the reference package, kept for comparison: on pure noise it cries drift in most
years and it calls a slow decline stable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction, require_int, require_number
from anima.errors import InputError
from anima.stats.estimate import Estimate, Presentable
from anima.stats.resampling import DEFAULT_SEED

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from anima.stats.weighted import Floats

State = Literal["insufficient-data", "stabilized", "drifting-up", "drifting-down", "noisy"]
Direction = Literal["down", "up", "both"]


@dataclass(frozen=True)
class SeriesState(Presentable):
    """State of a series by :func:`series_state`; mean and variation are NaN with too few values."""

    state: State
    window_mean: float
    window_cv: float
    tail_run: int
    stable: bool
    n: int
    n_dropped: int = 0

    def summary(self) -> str:
        """Return one sentence."""
        if self.state == "insufficient-data":
            return f"Too few values to tell (n = {self.n})."
        return (
            f"The series is {self.state} (n = {self.n}): window mean {self.window_mean:.3f}, "
            f"variation {self.window_cv:.1%}, last run {self.tail_run:+d}."
        )


def series_state(values: ArrayLike, *, window: int = 5, stable_cv: float = 0.05, drift_run: int = 3) -> SeriesState:
    """Return the state of a series, in order of time, by the rule of the reference package; missing values are dropped.

    Stable when the last ``window`` values vary by at most ``stable_cv`` (population SD over the absolute mean; the SD
    itself when the mean is within 1e-9 of 0); otherwise drifting when the last ``drift_run`` steps or more run one way;
    otherwise noisy; with fewer than max(2, min(window, 3)) values ``"insufficient-data"``.

    Do not alarm on it: three falling steps come up by chance in about 1 of 24 looks, so a judge that does not change
    has a 61 to 82 % chance of an alarm a year. Use :func:`cusum`.
    """
    require_int(window, "window", low=1)
    require_number(stable_cv, "stable_cv", low=0)
    require_int(drift_run, "drift_run", low=1)
    series = require_floats(values, "values")
    dropped = int(np.isnan(series).sum())
    series = series[~np.isnan(series)]
    n = len(series)
    if n < max(2, min(window, 3)):
        return SeriesState("insufficient-data", math.nan, math.nan, 0, stable=False, n=n, n_dropped=dropped)
    tail = series[-window:]
    # Left-to-right sums: a variation exactly at the limit must not hang on the order of addition.
    mean = math.fsum(tail) / len(tail) if len(tail) > 8 else sum(tail.tolist()) / len(tail)
    spread = math.sqrt(sum((v - mean) * (v - mean) for v in tail.tolist()) / len(tail))
    variation = spread / (abs(mean) if abs(mean) > 1e-9 else 1.0)
    steps = np.sign(np.diff(series))
    run = 0
    if steps[-1]:
        changes = np.flatnonzero(steps != steps[-1])
        run = int(steps[-1]) * (len(steps) - 1 - int(changes[-1]) if len(changes) else len(steps))
    stable = len(tail) >= window and variation <= stable_cv
    state: State = "noisy"
    if stable:
        state = "stabilized"
    elif abs(run) >= drift_run:
        state = "drifting-up" if run > 0 else "drifting-down"
    return SeriesState(state, mean, variation, run, stable=stable, n=n, n_dropped=dropped)


@dataclass(frozen=True)
class DriftTest(Presentable):
    """A sequential test of drift: its statistic after each value, the limit, and where it first alarmed (None: nowhere)."""

    path: tuple[float, ...]
    limit: float
    alarm_at: int | None
    method: str
    also = ("alarmed", "reason")

    @property
    def alarmed(self) -> bool | None:
        """Whether there was an alarm; None without values, because nothing was tested."""
        return self.alarm_at is not None if self.path else None

    @property
    def reason(self) -> str:
        """Why ``alarmed`` is None, else empty."""
        return "" if self.path else "there are no values"

    def summary(self) -> str:
        """Return one sentence."""
        if self.reason:
            return f"Drift is unknown: {self.reason} ({self.method})."
        if self.alarm_at is None:
            peak = max(self.path)
            return f"No drift in {len(self.path)} values (peak {peak:.2f}, limit {self.limit:.2f}; {self.method})."
        return f"Drift at value {self.alarm_at + 1} of {len(self.path)} (limit {self.limit:.2f}; {self.method})."


def cusum(
    values: ArrayLike,
    std_errors: ArrayLike,
    *,
    baseline: float,
    baseline_error: float = 0.0,
    direction: Direction = "down",
    reference: float = 0.5,
    horizon: int = 30,
    alpha: float = 0.05,
) -> DriftTest:
    """Return a CUSUM test of drift away from a baseline, with a set chance of a false alarm within a horizon.

    Parameters
    ----------
    values, std_errors
        Measurements in order of time and their standard errors, > 0.
    baseline, baseline_error
        Level before, and its own standard error (0 when known): an estimated baseline needs a higher limit.
    direction
        Which way matters.
    reference
        Half the shift, in standard errors, that the test is tuned to catch.
    horizon, alpha
        Chance of a false alarm within ``horizon`` values (Page 1954, Biometrika 41, 100–115; the limit is simulated for
        normal values).
    """
    x, errors = require_floats(values, "values"), require_floats(std_errors, "std_errors")
    if len(x) != len(errors):
        raise InputError(f"values has {len(x)} entries and std_errors {len(errors)}: give one each")
    if np.isnan(x).any() or not (errors > 0).all():
        raise InputError("values must be finite and std_errors above 0: leave out points that could not be measured")
    require_choice(direction, "direction", ("down", "up", "both"))
    require_number(baseline, "baseline")
    ratio = require_number(baseline_error, "baseline_error", low=0) / float(np.median(errors)) if len(x) else 0.0
    limit = cusum_limit(horizon, alpha=alpha, reference=reference, baseline_ratio=round(ratio, 2), direction=direction)
    z = (x - baseline) / errors
    path = np.maximum.reduce([_cusum_path(sign * z[None], reference)[0] for sign in _SIGNS[direction]])
    over = np.flatnonzero(path > limit)
    return DriftTest(
        tuple(path.tolist()), limit, int(over[0]) if len(over) else None,
        f"CUSUM {direction}, {alpha:g} false alarms in {horizon}",
    )  # fmt: skip


@lru_cache(maxsize=256)
def cusum_limit(
    horizon: int,
    *,
    alpha: float = 0.05,
    reference: float = 0.5,
    baseline_ratio: float = 0.0,
    direction: Direction = "down",
    n_simulations: int = 20_000,
) -> float:
    """Return the limit that a CUSUM of standard normal values exceeds within the horizon with chance ``alpha``.

    ``baseline_ratio``: standard error of the baseline over that of one value.
    """
    require_int(horizon, "horizon", low=1)
    require_fraction(alpha, "alpha")
    require_number(reference, "reference", low=0)
    rng = np.random.default_rng(DEFAULT_SEED)
    z = rng.standard_normal((n_simulations, horizon)) - baseline_ratio * rng.standard_normal((n_simulations, 1))
    peaks = np.maximum.reduce([_cusum_path(sign * z, reference).max(axis=1) for sign in _SIGNS[direction]])
    return float(np.quantile(peaks, 1 - alpha))


def e_process(
    values: ArrayLike,
    *,
    null: float,
    direction: Literal["down", "up"] = "down",
    alpha: float = 0.05,
    max_bet: float = 0.5,
) -> DriftTest:
    """Return a betting test that the mean of values in [0, 1], in order, has left ``null``, valid at every look.

    Wealth multiplies by 1 + λ (x − null), the stake λ (at most ``max_bet``) set from earlier values only; while the
    mean is at least ``null`` (``"down"``) it exceeds 1/alpha at any time with chance at most ``alpha`` (Ville;
    Waudby-Smith and Ramdas 2024, JRSS B 86, 1–27), whatever the distribution.
    """
    require_number(null, "null", low=0, high=1)
    require_fraction(alpha, "alpha")
    require_number(max_bet, "max_bet", low=0, high=1, open_low=True)
    require_choice(direction, "direction", ("down", "up"))
    x = require_floats(values, "values")
    if np.isnan(x).any() or (len(x) and (x.min() < 0 or x.max() > 1)):
        raise InputError("values must lie in [0, 1] without gaps: rescale them, leave out what was not measured")
    if direction == "down":
        x, null = 1 - x, 1 - null
    total, squares, log_wealth, path = 0.5, 0.25, 0.0, []
    for t, value in enumerate(x.tolist(), start=1):
        mean, variance = total / t, squares / t
        edge = mean - null
        stake = min(max(edge / (variance + edge * edge), 0.0), max_bet) if edge else 0.0
        log_wealth += math.log1p(stake * (value - null))
        path.append(math.exp(min(log_wealth, 700.0)))
        total += value
        squares += (value - total / (t + 1)) ** 2
    over = [i for i, wealth in enumerate(path) if wealth >= 1 / alpha]
    return DriftTest(tuple(path), 1 / alpha, over[0] if over else None, f"e-process {direction}, level {alpha:g}")


def trend(values: ArrayLike, times: ArrayLike | None = None, *, level: float = 0.95) -> Estimate:
    """Return the Theil–Sen slope with its interval and the Mann–Kendall p-value: robust to single odd points.

    ``times`` default to 0, 1, 2, …; missing pairs are dropped.
    """
    from scipy import stats

    require_fraction(level)
    y = require_floats(values, "values")
    x = np.arange(len(y), dtype=np.float64) if times is None else require_floats(times, "times")
    if len(x) != len(y):
        raise InputError(f"values has {len(y)} entries and times {len(x)}: give one each")
    keep = ~(np.isnan(x) | np.isnan(y))
    x, y = x[keep], y[keep]
    common: dict[str, Any] = {"level": level, "n": len(y), "n_dropped": int((~keep).sum())}
    if len(y) < 3 or len(np.unique(x)) < 2:
        return Estimate.undefined("trend", f"{len(y)} values at {len(np.unique(x))} times, at least 3 needed", **common)
    fit = stats.theilslopes(y, x, level)
    p = float(stats.kendalltau(x, y).pvalue) if len(np.unique(y)) > 1 else 1.0
    few = len(y) < 10
    return Estimate(
        "trend", fit.slope, fit.low_slope, fit.high_slope, method="Theil–Sen, Mann–Kendall", p_value=p,
        status="unreliable" if few else "ok", reason="fewer than 10 values" if few else "", **common,
    )  # fmt: skip


_SIGNS: dict[str, tuple[int, ...]] = {"down": (-1,), "up": (1,), "both": (-1, 1)}


def _cusum_path(z: Floats, reference: float) -> Floats:
    """Return Page's sum of upward excess for each row."""
    moves = np.cumsum(z - reference, axis=1)
    lowest = np.minimum(np.minimum.accumulate(moves, axis=1), 0.0)
    return np.asarray(moves - lowest)


#: False alarms per look over h·φ(h), by simulation: 20,000 histories of 90 normal values, h from 2.75 to 3.5, level known
#: or not, gave 0.29 to 0.31 in looks 1 to 30 and 0.31 to 0.34 later; see ``tests/stats/test_drift.py``.
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
