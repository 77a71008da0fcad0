import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from anima.errors import InputError
from anima.stats import cohen_kappa, lin_ccc, percent_agreement, weighted_kappa
from anima.stats.agreement import kappa_of_tables, wilson_interval
from anima.stats.intraclass import quadratic_kappa_value

RNG = np.random.default_rng(5)
A = RNG.integers(1, 6, 80)
B = np.clip(A + RNG.integers(-1, 2, 80), 1, 5)
WEIGHTS = {"nominal": None, "linear": "linear", "quadratic": "quadratic"}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_value_agrees_with_scikit_learn(weights):
    ours = cohen_kappa(A, B, weights=weights)
    assert ours.value == pytest.approx(cohen_kappa_score(A, B, weights=WEIGHTS[weights]))
    assert ours.low < ours.value < ours.high
    assert ours.extra["percent_agreement"] == pytest.approx((A == B).mean())


def test_interval_approaches_statsmodels_on_large_tables():
    table = np.array([[400, 90, 10], [60, 500, 80], [20, 70, 600]])
    a, b = (np.repeat(axis.ravel(), table.ravel()) for axis in np.indices((3, 3)))
    ours, theirs = cohen_kappa(a, b), cohens_kappa(table)
    assert ours.value == pytest.approx(theirs.kappa)
    assert (ours.low, ours.high) == pytest.approx((theirs.kappa_low, theirs.kappa_upp), abs=0.003)


def test_binary_score_interval_satisfies_its_equation():
    both, split, neither = 20, 7, 13
    a = np.repeat([1, 1, 0, 0], [both, 4, 3, neither])
    b = np.repeat([1, 0, 1, 0], [both, 4, 3, neither])
    ours = cohen_kappa(a, b)
    p = (2 * both + split) / 80
    for kappa in (ours.low, ours.high):
        expected = 40 * np.array(
            [p * p + kappa * p * (1 - p), 2 * p * (1 - p) * (1 - kappa), (1 - p) ** 2 + kappa * p * (1 - p)]
        )
        chi2 = ((np.array([both, split, neither]) - expected) ** 2 / expected).sum()
        assert chi2 == pytest.approx(stats.t.ppf(0.975, 39) ** 2, rel=1e-6)
    assert ours.method.startswith("Donner")


def test_one_category_is_undefined_declared_or_not():
    """scikit-learn PR #29210: declaring the labels must not change the verdict."""
    for options in ({}, {"categories": [1, 2, 3]}, {"weights": "quadratic", "categories": [1, 2, 3]}):
        result = cohen_kappa([1] * 6, [1] * 6, **options)
        assert (result.status, result.n) == ("undefined", 6)
        assert "used only 1" in result.reason
        assert result.extra["percent_agreement"] == 1


def test_numeric_strings_need_an_order():
    """'10' sorts before '2' (scikit-learn's string labels)."""
    with pytest.raises(InputError, match="text has none"):
        weighted_kappa(["1", "2", "10"], ["1", "10", "2"])
    a, b = ["1", "2", "10", "2"], ["1", "10", "10", "2"]
    ordered = weighted_kappa(a, b, categories=["1", "2", "10"])
    assert ordered.value == pytest.approx(cohen_kappa_score([0, 1, 2, 1], [0, 2, 2, 1], weights="quadratic"))
    assert cohen_kappa(a, b).defined


def test_half_points_are_steps_of_a_scale():
    """scikit-learn's target check: 'continuous is not supported'."""
    a, b = [1.0, 2.5, 3.0, 2.5], [1.0, 2.5, 2.5, 3.0]
    assert weighted_kappa(a, b).value == pytest.approx(quadratic_kappa_value(a, b))
    assert weighted_kappa(a, b, categories=[1, 1.5, 2, 2.5, 3]).value == pytest.approx(quadratic_kappa_value(a, b))


def test_missing_ratings_and_negative_steps():
    """EducationalTestingService/skll#35 and scikit-learn's NaN check."""
    result = cohen_kappa([1, math.nan, 2, None, 2], [1, 1, 2, 1, 1])
    assert (result.n, result.n_dropped) == (3, 2)
    scale = list(range(-2, 3))
    a, b = [-2, -1, 0, 1, 2, -2], [-2, 0, 0, 1, 1, -1]
    assert weighted_kappa(a, b, categories=scale).value == pytest.approx(cohen_kappa_score(a, b, weights="quadratic"))


def test_kappa_paradox_is_named():
    """OpenTranscribe#530, truescore's documentation: 95 % agreement and kappa 0."""
    result = cohen_kappa([1] * 95 + [0] * 5, [1] * 100)
    assert result.value == 0
    assert result.status == "unreliable"
    assert "kappa paradox" in result.reason
    assert result.extra["percent_agreement"] == 0.95
    assert result.extra["ac1"] == pytest.approx(0.947, abs=5e-4)
    assert result.extra["base_rates_a"] == {"0": 0.05, "1": 0.95}


def test_majority_baseline_stands_beside_kappa():
    """openai-cookbook PR #2940: 86.7 % agreement looks good until the constant answer scores 68.9 %."""
    human = np.repeat([1, 0], [62, 28])
    judge = human.copy()
    judge[[0, 1, 2, 3, 4, 5, 62, 63, 64, 65, 66, 67]] ^= 1
    result = cohen_kappa(human, judge)
    assert result.extra["percent_agreement"] == pytest.approx(0.867, abs=1e-3)
    assert result.extra["majority_baseline"] == pytest.approx(0.689, abs=1e-3)


def test_unused_steps_are_listed():
    """AndriSignorell/DescTools#76: category 4 never used."""
    result = cohen_kappa([1, 2, 3, 5, 5], [1, 2, 2, 5, 3], categories=[1, 2, 3, 4, 5], weights="linear")
    assert result.extra["unused"] == [4]
    assert result.extra["base_rates_a"]["4"] == 0


def test_bootstrap_and_clusters():
    plain = weighted_kappa(A, B, interval="percentile", n_resamples=300)
    grouped = weighted_kappa(A, B, clusters=np.arange(80) // 2, n_resamples=300)
    assert plain.method == "percentile bootstrap"
    assert grouped.n_clusters == 40
    assert grouped.value == plain.value
    assert grouped.extra["ac1"] == plain.extra["ac1"]
    with pytest.raises(InputError, match="independent items"):
        cohen_kappa(A, B, clusters=np.arange(80), interval="analytic")
    with pytest.raises(InputError, match="79 labels for 80 rows"):
        cohen_kappa(A, B, clusters=np.arange(79))


def test_quadratic_kappa_is_lins_concordance():
    expected = 2 * np.cov(A, B, bias=True)[0, 1] / (A.var() + B.var() + (A.mean() - B.mean()) ** 2)
    for value in (weighted_kappa(A, B).value, lin_ccc(A, B).value, quadratic_kappa_value(A, B)):
        assert value == pytest.approx(expected, abs=1e-12)


def test_concordance_is_blind_to_a_common_shift():
    result, shifted = lin_ccc(A, B + 0.5), lin_ccc(A + 1e6, B + 0.5 + 1e6)
    assert shifted.value == pytest.approx(result.value, abs=1e-9)
    assert (shifted.low, shifted.high) == pytest.approx((result.low, result.high), abs=1e-8)
    assert result.extra["mean_difference"] == pytest.approx((B + 0.5 - A).mean())
    resampled = lin_ccc(A, B, interval="bca")
    assert (resampled.low, resampled.high) == pytest.approx((lin_ccc(A, B).low, lin_ccc(A, B).high), abs=0.03)


def test_degenerate_concordance():
    assert lin_ccc([1, 1, 1], [2, 2, 2]).status == "undefined"
    assert lin_ccc([1, 2], [1, 2]).status == "undefined"
    same = lin_ccc(range(12), range(12))
    assert (same.value, same.status) == (1, "unreliable")
    assert "perfect agreement" in same.reason
    assert lin_ccc(range(12), [3] * 12).value == 0
    assert math.isnan(quadratic_kappa_value([1, 1], [1, 1]))


def test_percent_agreement_and_wilson():
    result = percent_agreement(A, B)
    hits = int((A == B).sum())
    assert (result.low, result.high) == pytest.approx(proportion_confint(hits, 80, method="wilson"))
    low, high = wilson_interval([0, 5, 0], [5, 5, 0])
    assert (low[0], high[1]) == (0, 1)
    assert math.isnan(low[2])
    assert math.isnan(high[2])
    assert percent_agreement([None], [1]).status == "undefined"


def test_bad_labels_are_named():
    with pytest.raises(InputError, match="2 labels and b has 3"):
        cohen_kappa([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="not among the declared"):
        cohen_kappa([1, 9], [1, 2], categories=[1, 2])
    with pytest.raises(InputError, match="mix text and numbers"):
        cohen_kappa(["1", 1], ["1", 2])
    with pytest.raises(InputError, match="distinct"):
        cohen_kappa([1], [1], categories=[1, 1])


def test_stacked_tables():
    tables = np.array([[[3, 1], [2, 4]], [[5, 0], [0, 0]]], dtype=float)
    values = kappa_of_tables(tables, np.eye(2))
    assert values[0] == pytest.approx(cohens_kappa(tables[0]).kappa)
    assert math.isnan(values[1])


def test_continuous_scores_are_sent_elsewhere():
    x = RNG.random(600)
    with pytest.raises(InputError, match="use lin_ccc"):
        weighted_kappa(x, x)
    with pytest.raises(InputError, match="merge rare"):
        cohen_kappa(np.arange(6000) % 100, np.arange(6000) % 99, interval="bca")


LABELS = st.one_of(st.integers(-2, 3), st.none(), st.just(math.nan))


@given(st.lists(st.tuples(LABELS, LABELS), max_size=30), st.sampled_from(sorted(WEIGHTS)))
@settings(deadline=None)
def test_any_labels_give_a_value_or_a_reason(pairs, weights):
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    result, turned = cohen_kappa(a, b, weights=weights), cohen_kappa(b, a, weights=weights)
    assert result.n + result.n_dropped == len(pairs)
    if not result.defined:
        assert result.reason
        return
    assert -1 <= result.low <= result.value <= result.high <= 1
    assert result.value == pytest.approx(turned.value, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson_interval([1, 2], [3, 4, 5]), r"hits has shape \(2,\) and n \(3,\): give one n"),
        (lambda: wilson_interval(10**400, 3), "hits holds an integer that no float can"),
        (lambda: weighted_kappa([1, 2, 10**400], [1, 2, 3]), "the scale of a and b holds an integer"),
        (lambda: cohen_kappa([[1], [1, 2]], [1, 2]), "a must have one axis.*rows of several lengths"),
        (lambda: cohen_kappa([{}, {}], [{}, {}]), "a and b must hold numbers or text, got dict"),
        (lambda: cohen_kappa([1, 2], [1, 2], categories=[[1], 2]), r"categories must be numbers or text, got list \[1"),
        (lambda: cohen_kappa([1, 2], [1, 2], clusters=[[1], [1, 2]]), "clusters must have one axis"),
    ],
)
def test_input_that_numpy_would_choke_on_is_refused_by_name(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_constant_rater_has_no_resampled_interval():
    found = cohen_kappa([1, 2, 3, 2, 1, 3] * 5, [2] * 30, weights="quadratic", interval="percentile")
    assert (found.value, found.has_interval) == (0, False)
    assert "gave one score" in found.reason
