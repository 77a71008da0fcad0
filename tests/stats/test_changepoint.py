"""The change-point statistic against a plain version of itself, and its limit against simulation."""

import math

import numpy as np
import pytest

from anima.errors import InputError
from anima.stats.changepoint import change_limit, change_statistic, successive_spread


def plain(y, w, level=math.nan, level_weight=0.0):
    """Largest t-value of a step or slope from any moment on, by weighted least squares with a prior on the level."""
    best, t = -math.inf, len(y)
    for start in range(0 if level_weight > 0 else 1, t):
        late = np.arange(t) >= start
        for shape in (late.astype(float), np.where(late, np.arange(t) - start + 1.0, 0.0)):
            design = np.column_stack([np.ones(t), shape])
            information = design.T @ (w[:, None] * design)
            right = design.T @ (w * y)
            if math.isinf(level_weight):
                variance = 1 / information[1, 1]
                best = max(best, variance * (right[1] - level * information[0, 1]) / math.sqrt(variance))
                continue
            information[0, 0] += level_weight
            right[0] += level_weight * level if level_weight else 0.0
            covariance = np.linalg.inv(information)
            best = max(best, (covariance @ right)[1] / math.sqrt(covariance[1, 1]))
    return best


@pytest.mark.parametrize("known", [{}, {"level": 0.3, "level_weight": math.inf}, {"level": 0.3, "level_weight": 2.5}])
def test_is_the_largest_of_all_contrasts(known):
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=(5, 12)), rng.uniform(0.5, 2, size=(5, 12))
    expected = [plain(y, w, **known) for y, w in zip(values, weights, strict=True)]
    assert change_statistic(values, weights, **known) == pytest.approx(expected)


def test_nothing_to_compare_with():
    assert change_statistic(np.ones((2, 1)), np.ones(1)).tolist() == [-math.inf] * 2
    assert change_statistic(np.ones((1, 1)), np.ones(1), level=0.0, level_weight=math.inf) == 1
    plainly, short = (change_statistic(np.array([0.0, 0, 3]), np.ones(3), grain=grain) for grain in (0.0, 0.5))
    assert short < plainly


@pytest.mark.parametrize("level_weight", [0.0, math.inf])
def test_limit_keeps_its_rate(level_weight):
    z = np.random.default_rng(2).normal(size=(2000, 60))
    known = {"level": 0.0, "level_weight": level_weight}
    looks = np.stack([change_statistic(z[:, :t], np.ones(1), **known) for t in range(1, 61)], axis=1)
    for alpha in (0.05, 0.2):
        limit, error = change_limit(alpha, 30), math.sqrt(alpha * (1 - alpha) / 2000)
        early = (looks[:, :30] > limit).any(axis=1)
        late = (looks[~early, 30:] > limit).any(axis=1)
        assert alpha * 0.75 - 3 * error < early.mean() < alpha + 3 * error
        assert alpha * 0.85 - 3 * error < late.mean() < alpha + 3 * error


def test_limits_are_ordered():
    assert change_limit() == pytest.approx(3.336, abs=1e-3)
    assert change_limit(0.01) > change_limit() > change_limit(0.2) > 1
    assert change_limit(0.05, 60) > change_limit()
    assert change_limit(df=8) > change_limit(df=30) > change_limit()
    with pytest.raises(InputError, match="alpha"):
        change_limit(0.0)
    with pytest.raises(InputError, match="horizon"):
        change_limit(0.05, 0)


def test_spread_is_one_for_honest_weights():
    rng = np.random.default_rng(3)
    weights = rng.uniform(1, 4, size=400)
    values = rng.normal(size=400) / np.sqrt(weights) + np.linspace(0, 3, 400)
    spread, df = successive_spread(values, weights)
    assert spread == pytest.approx(1, abs=0.2)
    assert df == pytest.approx(2 / 3 * 400, rel=0.01)
    values[200:] += 20
    assert successive_spread(values, weights)[0] > 1.3
    assert successive_spread(values, weights, trim=1)[0] == pytest.approx(spread, rel=0.05)
    assert math.isnan(successive_spread(np.ones(2), np.ones(2), trim=1)[0])
