import math

import numpy as np
import pytest
from scipy import stats

from anima.errors import InputError
from anima.stats import cusum, e_process, entropy, series_state, trend
from anima.stats.drift import change_limit, change_statistic, cusum_limit, successive_spread


@pytest.mark.oracle
def test_reference_states(oracle_cases):
    compared = 0
    for case in oracle_cases("series"):
        values, options = case["input"]["values"], case["input"].get("options") or {}
        names = {"window": "window", "stableCv": "stable_cv", "driftRun": "drift_run"}
        kwargs = {names[key]: value for key, value in options.items()}
        out, finite = case["output"], all(math.isfinite(v) for v in values)
        try:
            ours = series_state(values, **kwargs)
        except InputError:
            # Fractional, zero and negative windows and runs are accepted there.
            bad = [v < 1 or v != int(v) for k, v in kwargs.items() if k != "stable_cv"]
            assert any(bad) or kwargs["stable_cv"] < 0, case["id"]
            continue
        if not finite:  # there a NaN step counts as a fall; here it is dropped and counted
            assert ours.n_dropped
            continue
        assert (ours.state, ours.tail_run, ours.stable) == (out["state"], out["tailRun"], out["stable"]), case["id"]
        if ours.state == "insufficient-data":  # zeros there
            assert math.isnan(ours.window_mean)
        else:
            assert ours.window_mean == pytest.approx(out["windowMean"], abs=1e-12)
            assert ours.window_cv == pytest.approx(out["windowCv"], abs=1e-12)
        compared += 1
    assert compared >= 25


def test_state_is_presentable():
    assert "drifting-down" in series_state([0.9, 0.8, 0.7, 0.6]).summary()
    assert series_state([1]).to_dict()["window_mean"] is None
    assert series_state([1]).summary() == "Too few values to tell (n = 1)."
    assert len(series_state([1, 2, 3, 4]).to_frame()) == 1
    assert series_state([1])._repr_html_() == "<p>Too few values to tell (n = 1).</p>"
    with pytest.raises(InputError, match="window"):
        series_state([1, 2], window=0)


def test_reference_rule_cries_wolf_and_cusum_does_not():
    """tangle-network/agent-eval, series-convergence.ts: 52 weekly kappas of pure noise alarm in 82 % of the years."""
    rng = np.random.default_rng(1)
    wolf = cried = 0
    for _ in range(200):
        year = 0.70 + 0.08 * rng.normal(size=52)
        wolf += any(series_state(year[:k]).state == "drifting-down" for k in range(5, 53))
        cried += cusum(year, [0.08] * 52, baseline=0.70, horizon=52).alarmed
    assert wolf / 200 > 0.7
    assert cried / 200 <= 0.09  # 5 % and three standard errors


def test_estimated_baseline_keeps_its_rate():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(2000, 40))
    alarms = 0
    for row in z:
        alarms += cusum(row[10:], [1.0] * 30, baseline=row[:10].mean(), baseline_error=10**-0.5).alarmed
    assert alarms / 2000 == pytest.approx(0.05, abs=0.015)


def test_slow_decline_is_caught():
    rng = np.random.default_rng(3)
    truth = np.linspace(0.90, 0.80, 10)
    caught = sum(cusum(rng.normal(truth, 0.03), [0.03] * 10, baseline=0.90).alarmed for _ in range(200))
    assert caught / 200 > 0.9
    hidden = [series_state(truth[:k], window=5).state for k in range(5, 11)]
    assert set(hidden) == {"stabilized"}


def test_limits_grow_with_everything_uncertain():
    base = cusum_limit(30)
    assert cusum_limit(60) > base
    assert cusum_limit(30, alpha=0.01) > base
    assert cusum_limit(30, baseline_ratio=0.3) > base
    assert cusum_limit(30, direction="both") > base
    result = cusum([0.0, -5.0, -5.0], [1, 1, 1], baseline=0)
    assert result.alarm_at == 2 or result.alarm_at == 1
    assert result.path[1] == 4.5
    assert "Drift at value" in result.summary()
    assert cusum([0.0, 5.0], [1, 1], baseline=0).summary().startswith("No drift")
    assert cusum([0.0, 9.0], [1, 1], baseline=0, direction="both").alarmed
    assert cusum([], [], baseline=0).to_dict()["path"] == []
    with pytest.raises(InputError, match="above 0"):
        cusum([1.0], [0.0], baseline=0)
    with pytest.raises(InputError, match="one each"):
        cusum([1.0], [1.0, 2.0], baseline=0)


def test_e_process_is_valid_at_every_look():
    rng = np.random.default_rng(4)
    false = sum(e_process(rng.random(300) < 0.8, null=0.8).alarmed for _ in range(400))
    assert false / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    caught = sum(e_process(rng.random(300) < 0.65, null=0.8).alarmed for _ in range(100))
    assert caught > 90
    assert e_process([1.0] * 60, null=0.5, direction="up").alarmed
    assert not e_process([1.0] * 60, null=0.5).alarmed
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        e_process([1.2], null=0.5)


def test_trend_agrees_with_scipy():
    y = np.random.default_rng(5).normal(size=20) - 0.2 * np.arange(20)
    ours = trend(y)
    theirs = stats.theilslopes(y)
    assert (ours.value, ours.low, ours.high) == (theirs.slope, theirs.low_slope, theirs.high_slope)
    assert ours.p_value == pytest.approx(stats.kendalltau(np.arange(20), y).pvalue)
    assert trend([1, 2]).status == "undefined"
    assert trend([1, 1, 1, math.nan]).p_value == 1


def test_entropy():
    """Plain numpy gives NaN for 0 log 0."""
    assert entropy([1, 0]) == 0
    assert math.copysign(1, entropy([1, 0])) == 1
    assert math.isnan(entropy([]))
    assert math.isnan(entropy([0, 0]))
    assert entropy([3, 5, 2]) == pytest.approx(stats.entropy([3, 5, 2], base=2))
    assert entropy([2, 2, 2], normalized=True) == pytest.approx(1)
    with pytest.raises(InputError, match="none below 0"):
        entropy([-1, 2])


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


@pytest.mark.parametrize("found", [cusum([], [], baseline=0), e_process([], null=0.5)])
def test_an_empty_series_is_unknown(found):
    assert found.alarmed is None
    assert found.reason == "there are no values"
    assert found.summary().startswith("Drift is unknown: there are no values")
    assert found.to_dict()["alarmed"] is None
    quiet = e_process([0.5], null=0.5)
    assert (quiet.alarmed, quiet.reason) == (False, "")
