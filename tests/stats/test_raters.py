import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from anima.errors import InputError
from anima.stats import cohen_kappa, fleiss_kappa, gwet_ac, krippendorff_alpha, reliability
from anima.stats.raters import percent_agreement_many, ratings

RNG = np.random.default_rng(9)
TRUE = RNG.integers(1, 6, 40)
FULL = np.clip(TRUE[:, None] + RNG.integers(-1, 2, (40, 4)), 1, 5).astype(float)
HOLES = np.where(RNG.random((40, 4)) < 0.3, np.nan, FULL)


def long(matrix, **columns):
    rows = [
        {"item": i, "rater": f"r{j}", "value": value, **{key: column[i] for key, column in columns.items()}}
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
    ]
    return pd.DataFrame(rows)


def test_fleiss_agrees_with_statsmodels():
    table, _ = aggregate_raters(FULL.astype(int))
    assert fleiss_kappa(long(FULL)).value == pytest.approx(statsmodels_fleiss(table))


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval", "ratio"])
@pytest.mark.parametrize("matrix", [FULL, HOLES])
def test_alpha_agrees_with_the_krippendorff_package(scale, matrix):
    krippendorff = pytest.importorskip("krippendorff")
    ours = krippendorff_alpha(long(matrix), scale=scale)
    theirs = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement=scale)
    assert ours.value == pytest.approx(theirs, abs=1e-12)
    assert ours.low < ours.value < ours.high


def test_ac_agrees_with_published_examples():
    # Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, table 1: 118 + 5 + 2 + 0.
    a, b = np.repeat([1, 1, 2, 2], [118, 5, 2, 0]), np.repeat([1, 2, 1, 2], [118, 5, 2, 0])
    ours = gwet_ac(long(np.column_stack([a, b])))
    assert ours.value == pytest.approx(0.9408, abs=1e-4)
    assert cohen_kappa(a, b).value == pytest.approx(-0.0234, abs=1e-4)
    assert cohen_kappa(a, b).extra["ac1"] == pytest.approx(ours.value)


def test_weighted_ac_agrees_with_the_definition():
    ours = gwet_ac(long(FULL[:, :2]), weights="quadratic", categories=[1, 2, 3, 4, 5])
    a, b = FULL[:, 0], FULL[:, 1]
    weights = 1 - (np.subtract.outer(range(5), range(5)) / 4) ** 2
    pooled = np.array([np.r_[a == k, b == k].mean() for k in range(1, 6)])
    seen = (1 - ((a - b) / 4) ** 2).mean()
    chance = weights.sum() / 20 * (pooled * (1 - pooled)).sum()
    assert ours.value == pytest.approx((seen - chance) / (1 - chance))


def test_long_input_cannot_be_turned_round():
    """krippendorff's raters-by-units matrix: items in rows gave -0.167 instead of 1."""
    result = krippendorff_alpha(long([[1, 1], [2, 2], [3, 3], [4, 4]]))
    assert result.value == 1
    assert (result.n, result.extra["n_raters"]) == (4, 2)
    assert "perfect agreement" in result.reason


def test_one_pairable_item_is_not_enough():
    """fast-krippendorff#9: NaN and a RuntimeWarning."""
    result = krippendorff_alpha(long([[1, 1], [2, math.nan], [3, math.nan], [1, math.nan]]))
    assert (result.status, result.n, result.n_dropped) == ("undefined", 1, 3)
    assert result.reason == "1 item has two ratings or more, at least 2 are needed"
    assert result.extra["n_missing"] == 3


def test_one_category_is_undefined():
    """statsmodels/statsmodels#4387: seven raters all choose category 0."""
    frame = long(np.zeros((2, 7)))
    for coefficient in (fleiss_kappa, krippendorff_alpha, gwet_ac):
        assert coefficient(frame).status == "undefined"
        assert coefficient(frame, categories=[0, 1]).status == "undefined"
    assert percent_agreement_many(frame).value == 1


def test_unused_steps_of_the_declared_scale_count_for_ac():
    """AndriSignorell/DescTools#76: coefficients computed on the categories seen."""
    matrix = np.where(FULL == 4, 5, FULL)
    declared = gwet_ac(long(matrix), categories=[1, 2, 3, 4, 5])
    assert declared.extra["unused"] == [4]
    assert declared.value != pytest.approx(gwet_ac(long(matrix)).value, abs=1e-4)


def test_judges_are_not_read_as_items():
    """tangle-network/agent-eval, statistics-decisions.md: scores grouped judge by judge turned +1 into -0.5."""
    scores = np.array([[0, 0], [50, 50], [100, 100]])
    assert krippendorff_alpha(long(scores), scale="interval").value == 1
    opposed = np.array([[0, 100], [50, 50], [100, 0]])
    assert krippendorff_alpha(long(opposed), scale="interval").value < -0.4


def test_duplicates_are_refused():
    frame = long(FULL)
    with pytest.raises(InputError, match="rated item 0 more than once"):
        fleiss_kappa(pd.concat([frame, frame.iloc[:1]]))
    with pytest.raises(InputError, match="lacks the column 'rater'"):
        fleiss_kappa(frame.drop(columns="rater"))
    with pytest.raises(InputError, match="not among the declared"):
        fleiss_kappa(frame, categories=[1, 2, 3])
    with pytest.raises(InputError, match="mixes text and numbers"):
        fleiss_kappa(pd.DataFrame({"item": [1, 1], "rater": ["a", "b"], "value": ["x", 2]}))
    with pytest.raises(InputError, match="must not have missing"):
        fleiss_kappa(frame.assign(item=None))


def test_ordinal_text_needs_its_order():
    names = {1.0: "poor", 2.0: "fair", 3.0: "good", 4.0: "fine", 5.0: "best"}
    frame = long(HOLES)
    text = frame.assign(value=frame["value"].map(names))
    with pytest.raises(InputError, match="text has none"):
        krippendorff_alpha(text, scale="ordinal")
    with pytest.raises(InputError, match="text has none"):
        gwet_ac(text, weights="linear")
    ours = krippendorff_alpha(text, scale="ordinal", categories=list(names.values()))
    assert ours.value == pytest.approx(krippendorff_alpha(frame, scale="ordinal").value)


def test_intervals_by_item_and_by_cluster():
    frame = long(HOLES, dialogue=np.arange(40) // 2)
    plain, grouped = krippendorff_alpha(frame), krippendorff_alpha(frame, cluster="dialogue")
    assert plain.method == "jackknife, Fisher z, t"
    assert grouped.method == "jackknife by cluster, Fisher z, t"
    assert grouped.n_clusters == 20
    resampled = krippendorff_alpha(frame, cluster="dialogue", interval="percentile")
    assert (resampled.low, resampled.high) == pytest.approx((grouped.low, grouped.high), abs=0.08)
    with pytest.raises(InputError, match="two clusters"):
        krippendorff_alpha(frame.assign(dialogue=range(len(frame))), cluster="dialogue")


def test_reliability_puts_everything_side_by_side():
    result = reliability(long(FULL), scale="interval")
    names = [estimate.name for estimate in result.estimates]
    assert names == [
        "percent agreement", "Fleiss' kappa", "Gwet's AC2 (quadratic)", "Krippendorff's alpha (interval)", "ICC(2,1)",
    ]  # fmt: skip
    assert len(result.to_frame()) == 5
    assert sum(result.base_rates.values()) == pytest.approx(1)
    assert result.majority_baseline == max(result.base_rates.values())
    assert "commonest class alone" in result.summary()
    assert result._repr_html_().count("<tr>") == 6
    assert result.to_dict()["estimates"][0]["n"] == 40
    assert result.plot().to_dict()["layer"]
    assert len(reliability(long(HOLES), level=0.9).estimates) == 4


def test_every_coefficient_of_reliability_takes_the_options():
    frame = long(FULL, dialogue=np.arange(40) // 2)
    options = {"interval": "percentile", "rng": 77, "n_resamples": 50}
    found = reliability(frame, scale="interval", cluster="dialogue", **options).estimates
    assert {(one.seed, one.n_resamples, one.n_clusters) for one in found} == {(77, 50, 20)}
    assert {one.method for one in found} == {"percentile bootstrap by cluster"}
    assert reliability(long(FULL), scale="interval", interval="analytic").estimates == (
        reliability(long(FULL), scale="interval").estimates
    )


def test_scores_of_text_are_refused():
    with pytest.raises(InputError, match="not numeric"):
        _ = ratings(pd.DataFrame({"item": [1, 1], "rater": ["a", "b"], "value": ["x", "y"]})).scores
    with pytest.raises(InputError, match="below 0"):
        krippendorff_alpha(long(FULL - 3), scale="ratio")


def test_continuous_scores_need_no_table_of_steps():
    scores = RNG.normal(size=(6000, 1)) + 0.5 * RNG.normal(size=(6000, 3))
    result = reliability(long(scores), scale="interval")
    assert [estimate.name for estimate in result.estimates] == ["Krippendorff's alpha (interval)", "ICC(2,1)"]
    assert result.estimates[0].value == pytest.approx(result.estimates[1].value, abs=1e-3)
    with pytest.raises(InputError, match="make no scale of steps"):
        fleiss_kappa(long(scores))


@given(
    st.lists(st.lists(st.sampled_from([1.0, 2.0, 3.0, math.nan]), min_size=3, max_size=3), min_size=1, max_size=12),
    st.sampled_from(["nominal", "ordinal", "interval", "ratio"]),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=60)
def test_order_of_rows_and_names_of_raters_do_not_matter(rows, scale, random):
    frame = long(rows)
    result = krippendorff_alpha(frame, scale=scale, categories=[1, 2, 3])
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = frame.iloc[order].assign(rater=lambda f: "x" + f["rater"].astype(str))
    again = krippendorff_alpha(shuffled, scale=scale, categories=[1, 2, 3])
    assert result.n + result.n_dropped == len(rows)
    assert result.value == pytest.approx(again.value, nan_ok=True, abs=1e-9)
    assert result.defined or result.reason
    assert not result.defined or result.value <= 1 + 1e-12
