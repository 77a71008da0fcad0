import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from anima.errors import InputError
from anima.stats import adjust_p, correlation, entropy, max_t, minimum_p, n_for_correlation, n_for_kappa
from anima.stats.agreement import kappa_of_tables, wilson_interval
from anima.stats.power import n_for_correlation_width, n_for_kappa_width, n_for_proportion_width

RNG = np.random.default_rng(6)


@pytest.mark.parametrize(("ours", "theirs"), [("holm", "holm"), ("bh", "fdr_bh"), ("bonferroni", "bonferroni")])
def test_adjusted_p_agree_with_statsmodels(ours, theirs):
    for _ in range(20):
        p = np.round(RNG.random(9) ** 2, 2)
        assert adjust_p(p, method=ours) == pytest.approx(multipletests(p, method=theirs)[1])


def test_undefined_tests_are_no_part_of_the_family():
    out = adjust_p([0.02, math.nan, 0.03])
    assert out[0] == pytest.approx(0.04)
    assert math.isnan(out[1])
    assert adjust_p([]).size == 0
    # p * n / rank loses the boundary to rounding.
    assert (adjust_p([0.01, 0.02, 0.03, 0.04, 0.05], method="bh") <= 0.05).all()
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        adjust_p([1.2])


def test_best_of_several_noise_outcomes():
    """tangle-network/agent-eval, rubric-predictive-validity.ts: the best of 5 outcomes picked without correction."""
    plain = corrected = 0
    for trial in range(120):
        x, y = RNG.normal(size=(10, 1)), RNG.normal(size=(10, 5))
        plain += min(correlation(x[:, 0], column).p_value for column in y.T) <= 0.05
        corrected += max_t(x, y, n_permutations=199, rng=trial).min() <= 0.05
    assert plain / 120 > 0.13
    assert corrected / 120 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 120)


def test_max_t_keeps_power_and_handles_gaps():
    x = RNG.normal(size=(40, 3))
    y = np.column_stack([x[:, 0] + 0.7 * RNG.normal(size=40), RNG.normal(size=40)])
    p = max_t(x, y, n_permutations=500)
    assert p.shape == (3, 2)
    assert p[0, 0] < 0.01
    assert p[0, 0] == p.min()
    x[3, 0] = y[5, 1] = math.nan
    x[:, 2] = 1.0
    gaps = max_t(x, y, n_permutations=500, method="pearson")
    assert gaps[0, 0] < 0.01
    assert np.isnan(gaps[2]).all()
    with pytest.raises(InputError, match="matched rows"):
        max_t(x, y[:10])


def test_single_pair_equals_a_permutation_test():
    x, y = RNG.normal(size=12), RNG.normal(size=12)
    assert max_t(x, y, n_permutations=50, rng=0).shape == (1, 1)  # one axis is one column, not one row
    ours = max_t(x[:, None], y[:, None], method="pearson", n_permutations=4000)[0, 0]
    theirs = stats.permutation_test(
        (x,), lambda a: abs(stats.pearsonr(a, y).statistic), permutation_type="pairings", alternative="greater",
        n_resamples=4000, rng=1,
    ).pvalue  # fmt: skip
    assert ours == pytest.approx(theirs, abs=0.04)


def test_pairs_needed_deliver_the_power():
    assert n_for_correlation(0.4, method="pearson") == 47  # Cohen's tables: 46 to 47
    n = n_for_correlation(0.5)
    z = RNG.normal(size=(600, n, 2))
    x, y = z[..., 0], 0.518 * z[..., 0] + math.sqrt(1 - 0.518**2) * z[..., 1]  # rho 0.5 of normals
    found = np.mean([correlation(a, b).p_value <= 0.05 for a, b in zip(x, y, strict=True)])
    assert found == pytest.approx(0.8, abs=0.05)
    with pytest.raises(InputError, match="equals null"):
        n_for_correlation(0.3, null=0.3)


def test_widths_are_met_and_not_by_far():
    n = n_for_correlation_width(0.6, 0.1, method="pearson")
    for size, fits in ((n, True), (n - 1, False)):
        half = 1.959964 / math.sqrt(size - 3)
        width = math.tanh(math.atanh(0.6) + half) - math.tanh(math.atanh(0.6) - half)
        assert (width <= 0.2) is fits
    assert n_for_proportion_width(0.5, 0.05) in range(375, 390)
    with pytest.raises(InputError, match="wider"):
        n_for_correlation_width(0.0, 1e-7)


def test_items_for_kappa_deliver_what_they_promise():
    n = n_for_kappa_width(0.6, 0.15, prevalence=0.3)
    p = np.array([[0.3**2, 0.21], [0.21, 0.49]]) + 0.6 * 0.21 * np.array([[1, -1], [-1, 1]])
    draws = RNG.multinomial(n, p.ravel(), size=3000).reshape(-1, 2, 2).astype(float)
    assert 1.96 * np.nanstd(kappa_of_tables(draws, np.eye(2))) == pytest.approx(0.15, abs=0.015)
    assert n_for_kappa(0.6, null=0.4) == pytest.approx(165, abs=1)
    assert n_for_kappa(0.6, null=0.4, prevalence=0.1) > n_for_kappa(0.6, null=0.4)
    with pytest.raises(InputError, match="equals null"):
        n_for_kappa(0.4, null=0.4)
    with pytest.raises(InputError, match="kappa"):
        n_for_kappa(-0.9, prevalence=0.1)


def test_smallest_p():
    assert minimum_p("groups", 3, 3) == pytest.approx(stats.mannwhitneyu([1, 2, 3], [4, 5, 6]).pvalue)
    assert minimum_p("pairing", 5) == pytest.approx(2 / 120)
    assert minimum_p("signs", 5) == pytest.approx(stats.wilcoxon([1, 2, 3, 4, 5]).pvalue)
    assert minimum_p("permutations", 999) == 0.001
    assert minimum_p("pairing", 500) == 0
    with pytest.raises(InputError, match="second group"):
        minimum_p("groups", 3)


@pytest.mark.parametrize("function", [adjust_p, entropy, lambda hits: wilson_interval(hits, 10)])
def test_text_is_refused_by_name(function):
    with pytest.raises(InputError, match="must hold numbers, got"):
        function(["0.1", "0.2"])


@pytest.mark.parametrize(
    "values", [[["a"], ["b"]], ["1", "10"], [[1], [1, 2]], [1j, 2], np.array(["2020", "2021"], "M8[Y]"), [10**400, 1]]
)
def test_what_is_no_number_is_refused_by_name(values):
    with pytest.raises(InputError, match=r"^y hold|^y must hold numbers"):
        max_t([1, 2], values)
    with pytest.raises(InputError, match=r"^p_values hold|^p_values must hold numbers"):
        adjust_p(values)
