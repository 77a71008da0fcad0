import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anima.errors import InputError
from anima.stats import auc, bootstrap, correlation, permutation_p, rank_biserial
from anima.stats.resampling import resample_counts, resample_indices
from anima.stats.separation import auc_difference
from anima.stats.weighted import is_constant, midranks, pearson_table, weighted_correlation

RNG = np.random.default_rng(11)
X = RNG.normal(size=60)
Y = 0.5 * X + RNG.normal(size=60)
TIED_X, TIED_Y = np.round(X), np.round(Y)
SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
METHODS = sorted(SCIPY)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("x", "y"), [(X, Y), (TIED_X, TIED_Y), (X, TIED_Y)])
def test_value_and_p_agree_with_scipy(method, x, y):
    ours, theirs = correlation(x, y, method=method), SCIPY[method](x, y)
    assert ours.value == pytest.approx(theirs.statistic, abs=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)


def test_fisher_interval_agrees_with_scipy():
    ours = correlation(X, Y, method="pearson")
    theirs = stats.pearsonr(X, Y).confidence_interval()
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=1e-12)
    assert ours.method == "Fisher z"


def test_spearman_interval_agrees_with_the_formula():
    ours = correlation(X, Y)
    half = stats.norm.ppf(0.975) * math.sqrt((1 + ours.value**2 / 2) / 57)
    assert (ours.low, ours.high) == pytest.approx(np.tanh(np.arctanh(ours.value) + half * np.array([-1, 1])))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("x", "y"), [(X, Y), (TIED_X, TIED_Y), (X, TIED_Y), (TIED_X, Y)])
def test_every_resample_is_ranked_anew(method, x, y):
    rows = np.concatenate(list(resample_indices(60, 40, 3)))
    counts = np.concatenate(list(resample_counts(60, 40, 3)))
    expected = [SCIPY[method](x[row], y[row]).statistic for row in rows]
    assert weighted_correlation(counts, x, y, method) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("interval", ["percentile", "bca"])
@pytest.mark.parametrize("clusters", [None, np.arange(60) // 3, np.arange(60) ** 2 % 25])
def test_bootstrap_agrees_with_the_general_engine(interval, clusters):
    for method in METHODS:
        fast = correlation(X, TIED_Y, method=method, interval=interval, clusters=clusters, n_resamples=100)
        slow = bootstrap(
            lambda a, b, f=SCIPY[method]: f(a, b).statistic, X, TIED_Y, method=interval, clusters=clusters,
            n_resamples=100,
        )  # fmt: skip
        assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high), abs=1e-10)
        assert fast.n_clusters == slow.n_clusters


def test_tables_of_correlations_share_their_resamples():
    x = np.column_stack([X, TIED_X, np.full(60, 0.1), np.r_[1.0, np.zeros(59)]])
    y = np.column_stack([Y, 1e6 + TIED_Y])
    counts = np.concatenate(list(resample_counts(60, 50, 3)))
    table = pearson_table([counts[:20], counts[20:]], x, y)
    assert np.isnan(table[:, 2]).all()
    assert 5 < np.isnan(table[:, 3, 0]).sum() < 45
    for i in (0, 1, 3):
        for j in (0, 1):
            expected = weighted_correlation(counts, x[:, i], y[:, j], "pearson")
            assert table[:, i, j] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_clusters_switch_the_interval_and_drop_the_p_value():
    result = correlation(X, Y, clusters=np.arange(60) // 2, n_resamples=200)
    assert result.method == "percentile bootstrap by cluster"
    assert result.n_clusters == 30
    assert math.isnan(result.p_value)
    with pytest.raises(InputError, match="independent pairs"):
        correlation(X, Y, clusters=np.arange(60), interval="analytic")
    with pytest.raises(InputError, match="exchangeable"):
        correlation(X, Y, clusters=np.arange(60), p_value="permutation")


@pytest.mark.parametrize("method", METHODS)
def test_constant_metric_keeps_its_row(method):
    """scipy/scipy#11111, PR #11225: a NaN and a warning lost in a notebook."""
    result = correlation([1.0] * 8, range(8), method=method)
    assert (result.status, result.reason, result.n) == ("undefined", "x constant", 8)
    # tangle-network/agent-eval, statistics/descriptive.ts: both constant counted as r = 1.
    assert correlation([1] * 5, [0] * 5, method=method).reason == "x and y constant"


def test_rounding_noise_is_constant():
    """scipy, NearConstantInputWarning: r = 0.67 out of the last bits."""
    assert correlation([1, 1 + 1e-16, 1, 1 + 2e-16], [1, 2, 3, 4], method="pearson").status == "undefined"
    assert is_constant(np.array([0.1 * 3, 0.3, 0.3]))
    assert not is_constant(np.array([1e9, 1e9 + 0.1]))


def test_missing_pairs_go_before_ranking():
    """scipy/scipy#6654, PR #8196: ties together with NaN gave a wrong rho."""
    x, y = [1, 2, 2, math.nan, 5, 3, None, 4], [2, 1, 1, 9, math.inf, 3, 4, 4]
    result = correlation(x, y)
    assert (result.n, result.n_dropped) == (5, 3)
    assert result.value == pytest.approx(stats.spearmanr([1, 2, 2, 3, 4], [2, 1, 1, 3, 4]).statistic)


def test_a_missing_score_does_not_hang_a_rank_test():
    """tangle-network/agent-eval, statistics-decisions.md: the loop over ties never advanced on NaN."""
    result = auc([1, math.nan, 3, 3, 5], [0, 1, 1, 0, 1])
    assert (result.n, result.n_dropped) == (4, 1)
    assert result.p_value == pytest.approx(stats.mannwhitneyu([3, 5], [1, 3]).pvalue)


def test_too_few_pairs():
    """scipy: two pairs give r = 1."""
    assert correlation([1, 2], [1, 2]).reason == "2 complete pairs, at least 3 are needed"
    few = correlation([1, 2, 3], [1, 3, 2])
    assert few.status == "unreliable"
    assert (few.low, few.high) == (-1, 1)


def test_perfect_correlation_has_a_defined_interval():
    """raphaelvallat/pingouin#194: the interval of a perfect negative rank correlation was NaN."""
    result = correlation(range(1000), range(1000, 0, -1))
    assert result.value == pytest.approx(-1)
    assert result.low == -1
    assert -1 < result.high < -0.999
    assert "perfect correlation" in result.reason
    short = correlation(range(6), range(6), method="kendall")
    assert 0 < short.low < 0.9


def test_pairs_are_always_resampled_together():
    """raphaelvallat/pingouin#276: one index drawn per variable unless a flag was set."""
    result = correlation(X, X + 1e-3 * Y, method="pearson", interval="percentile", n_resamples=200)
    assert result.low > 0.99


def test_rare_outcome_counts_undefined_resamples():
    """tangle-network/agent-eval, correlation-study.ts: constant resamples counted as r = 0 gave [0, 0.889]."""
    result = correlation([0] * 7 + [1], range(8), method="pearson", interval="percentile", n_resamples=500)
    assert result.n_undefined > 130
    assert result.status == "unreliable"
    assert result.low > 0.3


def test_heavy_tails_are_announced():
    result = correlation(stats.t(2).rvs(60, random_state=1), X, method="pearson")
    assert result.status == "unreliable"
    assert "heavy tails of x" in result.reason


def test_coarse_scales_take_the_mixed_variance():
    result = correlation(X > 0, Y > 0, method="pearson")
    assert result.method == "Fisher z, mixed variance"
    assert result.low < result.value < result.high
    assert correlation([0, 1] * 10, [0, 1] * 10, method="pearson").has_interval


@pytest.mark.parametrize("method", METHODS)
def test_permutation_p(method):
    x, y = X[:6], Y[:6]
    exact = stats.permutation_test(
        (x,), lambda a: abs(SCIPY[method](a, y).statistic), permutation_type="pairings", alternative="greater"
    )
    assert permutation_p(x, y, method=method) == pytest.approx(exact.pvalue)
    assert permutation_p(X, Y, method=method, n_permutations=499) < 0.01
    assert permutation_p(X, Y, method=method, n_permutations=99) >= 0.01
    assert correlation(X, Y, p_value="permutation", n_permutations=99).p_value >= 0.01
    assert math.isnan(permutation_p([1, 1, 1], [1, 2, 3]))


@given(st.lists(st.tuples(*[st.floats(-1e300, 1e300)] * 2), min_size=0, max_size=25), st.sampled_from(METHODS))
@settings(max_examples=150, deadline=None)
def test_any_finite_numbers_give_a_clamped_value_or_a_reason(pairs, method):
    result = correlation([p[0] for p in pairs], [p[1] for p in pairs], method=method)
    if result.defined:
        assert -1 <= result.low <= result.value <= result.high <= 1
    else:
        assert result.reason


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_midranks_agree_with_scipy(values):
    assert midranks(np.array(values)) == pytest.approx(stats.rankdata(values))


def test_auc_agrees_with_scikit_learn_and_handles_ties():
    from sklearn.metrics import roc_auc_score

    outcome = (Y > 0.4).astype(int)
    for scores in (X, TIED_X):
        result = auc(scores, outcome)
        assert result.value == pytest.approx(roc_auc_score(outcome, scores))
        assert result.p_value == pytest.approx(
            stats.mannwhitneyu(scores[outcome == 1], scores[outcome == 0], alternative="two-sided").pvalue
        )
        assert rank_biserial(scores, outcome).value == pytest.approx(2 * result.value - 1)
        fast = auc(scores, outcome, interval="percentile", n_resamples=100)
        slow = bootstrap(lambda s, y: roc_auc_score(y, s), scores, outcome, n_resamples=100)
        assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high))
    grouped = auc(X, outcome, clusters=np.arange(60) // 2, n_resamples=100)
    assert grouped.n_clusters == 30
    assert "cluster" in grouped.method


def test_delong_variance_agrees_with_the_definition():
    from anima.stats.separation import _delong_variance

    a, b = TIED_X[:20], TIED_X[20:]
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    expected = wins.mean(axis=1).var(ddof=1) / 20 + wins.mean(axis=0).var(ddof=1) / 40
    assert _delong_variance(a, b) == pytest.approx(expected)


def test_auc_of_degenerate_outcomes():
    assert auc([1, 2, 3], [1, 1, 1]).reason == "every outcome is 1: two outcomes are needed"
    assert auc([], []).status == "undefined"
    perfect = auc(range(20), [0] * 10 + [1] * 10)
    assert (perfect.value, perfect.high) == (1, 1)
    assert 0.7 < perfect.low < 1
    mirrored = auc(range(20), [1] * 10 + [0] * 10)
    assert (mirrored.low, mirrored.high) == pytest.approx((0, 1 - perfect.low))
    assert auc([1] * 12, [0, 1] * 6).value == 0.5
    with pytest.raises(InputError, match="0 and 1 only"):
        auc([1, 2], [1, 2])


def test_text_and_ragged_input_are_refused():
    with pytest.raises(InputError, match="must hold numbers"):
        correlation(["1", "2", "10"], [1, 2, 3])
    with pytest.raises(InputError, match="x has 2 values and y has 3"):
        correlation([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="item 1 must be a number"):
        correlation([1, {}, 3], [1, 2, 3])
    with pytest.raises(InputError, match="method"):
        correlation(X, Y, method="tau")


def test_pandas_missing_values():
    import pandas as pd

    x = pd.array([1, 2, None, 4, 5], dtype="Int64")
    assert correlation(x, [1, 3, 2, 5, 4]).n_dropped == 1
    assert correlation(pd.Series([1, None, 3, 4], dtype=object), [1, 2, 3, 5]).n == 3


# What we do differently from the reference package, and why.
CHANGED = {
    "one-constant": "0 there, undefined here: a constant has no correlation",
    "const-first-second-varies": "0 there",
    "float-const-rounding-opposite": "1 there",
    "float-const-same": "1 there",
    "float-const-vs-varying": "0 there or rounding noise",
    "all-tied": "1 there",
    "underflow": "squares under- or overflow there",
    "nan": "NaN is ranked there, dropped and counted here",
    "n2": "two pairs always correlate perfectly, undefined here",
    "neg-zero": "two or constant values",
}


@pytest.mark.oracle
def test_reference_outputs(oracle_cases):
    compared = 0
    for case in oracle_cases("correlation"):
        if case["function"] not in ("pearsonR", "spearmanR"):
            continue
        a, b = case["input"]["a"], case["input"]["b"]
        tag = case["tags"][0]
        if tag == "len-mismatch":
            with pytest.raises(InputError):
                correlation(a, b)
            continue
        ours = correlation(a, b, method=case["function"][:-1].lower())
        expected = float("nan") if case["output"] is None else case["output"]
        if tag in CHANGED and ours.value != pytest.approx(expected, abs=1e-9):
            assert ours.status == "undefined" or tag == "underflow", case["id"]
        else:
            assert ours.value == pytest.approx(min(expected, 1), abs=1e-9, nan_ok=True), case["id"]
            compared += 1
    assert compared >= 18


@pytest.mark.oracle
def test_reference_ranks(oracle_cases):
    ranks = [case for case in oracle_cases("correlation") if "rank" in case["function"].lower()]
    for case in ranks:
        values = next(iter(case["input"].values())) if isinstance(case["input"], dict) else case["input"]
        if len(values):
            assert midranks(np.array(values, dtype=float)).tolist() == case["output"]
    assert ranks


def test_an_integer_beyond_every_float_is_named():
    with pytest.raises(InputError, match="x holds an integer that no float can"):
        correlation([10**400, 1, 2], [1, 2, 3])


def test_a_difference_of_auc_drops_items_that_lack_a_score():
    outcome, full = np.tile([0, 0, 0, 1, 1, 1], 10), np.tile([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], 10)
    holes = full.copy()
    holes[::6] = math.nan
    clusters = np.arange(60) // 6
    for scores, rival in ((holes, full), (full, holes)):
        for options in ({}, {"clusters": clusters}, {"strata": outcome}):
            found = auc_difference(scores, rival, outcome, n_resamples=50, **options)
            assert (found.value, found.low, found.high, found.n, found.n_dropped) == (0, 0, 0, 50, 10)
    noisy, gone = full[::-1], np.where(clusters == 3, math.nan, outcome)
    kept = clusters != 3
    with_gap = auc_difference(full, noisy, gone, clusters=clusters, n_resamples=50)
    without = auc_difference(full[kept], noisy[kept], outcome[kept], clusters=clusters[kept], n_resamples=50)
    assert (with_gap.low, with_gap.high, with_gap.n_clusters) == (without.low, without.high, 9)
    with pytest.raises(InputError, match="must have one length, got"):
        auc_difference(full, full[1:], outcome)
    with pytest.raises(InputError, match="outcome must hold 0 and 1 only, got 2"):
        auc_difference(full, full, outcome * 2)


def test_a_difference_of_auc_is_paired():
    outcome = (Y > 0).astype(float)
    found = auc_difference(X, TIED_X, outcome, n_resamples=200)
    assert found.value == pytest.approx(auc(X, outcome).value - auc(TIED_X, outcome).value)
    assert found.low <= found.value <= found.high
    same = auc_difference(X, 2 * X + 1, outcome, clusters=np.arange(60) // 2, n_resamples=50)
    assert (same.value, same.low, same.high, same.n_clusters) == (0, 0, 0, 30)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [1, 2]], r"must have one axis, got \[\[1\], \[1, 2\]\] with rows of several lengths"),
        (pd.Series(pd.date_range("2020", periods=3)), "must hold numbers, got datetime64.*times are no scores"),
        (pd.Series(pd.to_timedelta([1, 2, 3], "h")), "must hold numbers, got timedelta64.*divide by a unit"),
        (pd.Series(pd.date_range("2020", periods=3), dtype=object), "item 0 must be a number, got Timestamp"),
        (pd.Series(["1", "2", "3"], dtype="string"), "item 0 must be a number, got '1'"),
        (np.array([1, 2, 3]) + 1j, "must hold numbers, got complex128: take the real part"),
        ([1, 2 + 1j, None], r"item 1 must be a number, got \(2\+1j\)"),
        ([1, 2, 10**400], "holds an integer that no float can"),
    ],
)
def test_what_is_no_real_number_is_refused(values, message):
    with pytest.raises(InputError, match=f"x.* {message}"):
        correlation(values, [1, 2, 3])
    with pytest.raises(InputError, match=f"scores.* {message}"):
        auc(values, [0, 1, 1])


def test_missing_values_and_booleans_of_every_kind_are_taken():
    for values in (
        pd.Series([True, None, False, True], dtype="boolean"), [np.True_, None, np.False_, True],
        pd.Series([1, None, 0, 1], dtype="Int64"), pd.Series([1, pd.NA, 0, 1], dtype=object), [1, math.inf, 0, 1],
    ):  # fmt: skip
        assert correlation(values, [3, 9, 1, 3]).n_dropped == 1
