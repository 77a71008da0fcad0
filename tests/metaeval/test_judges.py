"""Validating a judge in one call, calibrating it against a golden set, and panels of judges."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from anima.errors import InputError
from anima.metaeval import (
    calibrate_judge,
    calibrate_judge_continuous,
    continuous_agreement,
    corpus_agreement,
    validate_judge,
)
from anima.metaeval.tables import mean_estimate
from anima.stats import icc, lin_ccc


def likert(n=60, seed=0):
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, n)
    return np.clip(human + rng.integers(-1, 2, n), 1, 5), human


def golden_set(human, judge):
    golden = [{"itemId": f"i{k}", "humanScore": value} for k, value in enumerate(human)]
    return golden, [{"itemId": f"i{k}", "score": value} for k, value in enumerate(judge)]


# --- validate_judge ---------------------------------------------------------------------------------------------------


def test_the_majority_baseline_stands_beside_agreement():
    # openai-cookbook PR #2940: a constant predictor scores 68.9 % agreement, the judge 86.7 %.
    human = ["good"] * 31 + ["bad"] * 14
    judge = ["good"] * 28 + ["bad"] * 3 + ["bad"] * 11 + ["good"] * 3
    result = validate_judge(judge, human)
    assert result.hits.value == pytest.approx(0.867, abs=1e-3)
    assert result.baseline.value == pytest.approx(0.689, abs=1e-3)
    assert result.agreement.value == pytest.approx(cohen_kappa_score(human, judge))
    rows = result.to_frame().set_index("name")["value"]
    assert rows["always the commonest label"] == result.baseline.value
    assert "0.867 against 0.689 of always the commonest label" in result.summary()
    assert result.beats_baseline is True
    constant = validate_judge(["good"] * 45, human)
    assert constant.hits.value == constant.baseline.value
    assert constant.agreement.value == 0
    assert constant.beats_baseline is False


def test_scales_are_recognised_and_can_be_named():
    judge, human = likert()
    ordinal = validate_judge(judge, human)
    assert ordinal.scale == "ordinal"
    assert ordinal.agreement.value == pytest.approx(cohen_kappa_score(human, judge, weights="quadratic"))
    nominal = validate_judge(judge, human, scale="nominal")
    assert nominal.agreement.value == pytest.approx(cohen_kappa_score(human, judge))
    assert nominal.bias.status == "undefined"
    assert nominal.error is None
    interval = validate_judge(judge / 10, human / 10)
    assert interval.scale == "interval"
    assert interval.agreement.value == pytest.approx(lin_ccc(human, judge).value)
    assert interval.icc.value == pytest.approx(
        icc(pd.DataFrame({"item": [*range(60)] * 2, "rater": ["h"] * 60 + ["j"] * 60, "value": [*human, *judge]})).value
    )
    assert interval.hits is None
    assert interval.baseline.value == pytest.approx(np.abs(human - np.median(human)).mean() / 10)
    assert interval.beats_baseline is True
    words = np.array(["awful", "bad", "fair", "good", "superb", "never used"])
    declared = validate_judge(words[judge - 1], words[human - 1], categories=list(words))
    assert declared.scale == "ordinal"
    assert declared.agreement.value == pytest.approx(ordinal.agreement.value)
    assert declared.bias.value == pytest.approx(ordinal.bias.value)
    assert "never used" in declared.agreement.extra["unused"]
    with pytest.raises(InputError, match="needs numbers"):
        validate_judge(["a"], ["b"], scale="interval")


def test_a_declared_scale_may_be_an_array():
    said, true = list("yynnyy"), list("yynnyn")
    declared = validate_judge(said, true, categories=np.array(["n", "y"]))
    assert declared.to_dict() == validate_judge(said, true, categories=["n", "y"]).to_dict()


def test_bias_is_the_paired_difference():
    judge, human = likert(seed=3)
    result = validate_judge(judge, human)
    test = stats.ttest_rel(judge, human)
    assert result.bias.value == pytest.approx((judge - human).mean())
    assert (result.bias.low, result.bias.high) == pytest.approx(tuple(test.confidence_interval()))
    assert result.bias.p_value == pytest.approx(test.pvalue)
    binary = validate_judge(judge > 2, human > 2)
    assert binary.bias.value == pytest.approx((judge > 2).mean() - (human > 2).mean())
    text = validate_judge(np.where(judge > 2, "yes", "no"), np.where(human > 2, "yes", "no"))
    assert text.bias.value == pytest.approx(binary.bias.value)
    assert text.bias.name == "share of 'yes', judge − human"


def test_missing_scores_are_unscored_and_counted():
    judge, human = [1, None, 3, 2, math.nan, 1.0], [1, 2, 3, 3, 1, None]
    result = validate_judge(judge, human)
    assert result.accounting.to_dict() == {"n_in": 6, "n_used": 3, "unlabelled": 1, "unscored": 2}
    assert result.unscored.value == 2 / 5
    assert result.agreement.n_dropped == 3
    by_item = validate_judge({"a": 1, "c": 3, "x": 9}, {"a": 1, "b": 2, "c": 3})
    assert by_item.accounting.to_dict() == {"n_in": 4, "n_used": 2, "unlabelled": 1, "unscored": 1}
    nothing = validate_judge([None, None], ["a", "b"])
    assert nothing.agreement.status == nothing.baseline.status == nothing.bias.status == "undefined"
    assert nothing.unscored.value == 1
    assert nothing.beats_baseline is None
    json.dumps(nothing.to_dict(), allow_nan=False)
    empty = validate_judge([], [])
    assert empty.unscored.status == "undefined"
    assert empty.summary()


def test_groups_are_audited_with_the_items_that_are_worst():
    judge, human = likert(80, seed=1)
    groups = np.where(np.arange(80) < 75, "ours", "theirs")
    judge[75:] = 6 - human[75:]
    result = validate_judge(judge, human, groups=groups, n_worst=4)
    table = result.groups.set_index("group")
    assert table["n"].to_dict() == {"ours": 75, "theirs": 5}
    assert table.loc["ours", "agreement"] == pytest.approx(
        cohen_kappa_score(human[:75], judge[:75], weights="quadratic")
    )
    assert "5 items are too few" in table.loc["theirs", "remark"]
    assert result.worst["delta"].is_monotonic_decreasing
    assert len(result.worst) == 4
    assert result.worst["delta"].max() == np.abs(judge - human).max()
    labels = validate_judge(["a", "b", "b"], ["a", "a", "b"], n_worst=9)
    assert labels.worst["item"].tolist() == [1]


def test_the_number_needed_gives_the_interval_asked_for():
    rng = np.random.default_rng(2)

    def draw(n):
        human = rng.random(n) < 0.5
        return np.where(rng.random(n) < 0.85, human, ~human), human

    needed = validate_judge(*draw(400), half_width=0.08).n_needed
    again = validate_judge(*draw(needed)).agreement
    assert (again.high - again.low) / 2 == pytest.approx(0.08, rel=0.12)
    judge, human = likert(100)
    one = validate_judge(judge, human, half_width=0.05)
    more = validate_judge(*likert(one.n_needed, seed=9)).agreement
    assert (more.high - more.low) / 2 == pytest.approx(0.05, rel=0.3)
    assert validate_judge([1, 2], [1, 2]).n_needed is None


def test_clusters_widen_the_interval():
    judge, human = (np.repeat(values, 8) for values in likert(40))
    clusters = np.repeat(np.arange(40), 8)
    for scale in ("ordinal", "interval"):
        alone = validate_judge(judge, human, scale=scale)
        together = validate_judge(judge, human, scale=scale, clusters=clusters)
        for which in ("agreement", "bias", "error"):
            a, b = getattr(alone, which), getattr(together, which)
            assert b.n_clusters == 40
            assert b.value == pytest.approx(a.value)
            assert b.high - b.low > 1.8 * (a.high - a.low)


@pytest.mark.parametrize(
    ("judge", "human", "options", "message"),
    [
        ([1, 2], [1], {}, "differ in length"),
        ({"a": 1}, [1], {}, "all be mappings, or none"),
        (pd.Series([1, 2]), pd.Series([1, 2], index=[1, 0]), {}, "different indexes"),
        ([1], [1], {"scale": "ratio"}, "scale"),
        ([1, 2], [1, 2], {"clusters": ["a", None]}, "item 1 has none"),
        ([1, 7], [1, 2], {"categories": [1, 2, 3]}, "7 is not among the declared"),
        ([[1]], [[1]], {}, r"must be a number or text, got list \[1\]"),
    ],
)
def test_bad_arguments_are_refused_by_name(judge, human, options, message):
    with pytest.raises(InputError, match=message):
        validate_judge(judge, human, **options)


def test_results_show_themselves():
    judge, human = likert()
    result = validate_judge(judge, human, groups=["a", "b"] * 30)
    golden, candidate = golden_set(human, judge)
    calibration = calibrate_judge(golden, candidate)
    continuous = calibrate_judge_continuous(golden, candidate)
    panel = continuous_agreement(np.column_stack([human, judge]))
    for each in (result, calibration, continuous, panel):
        assert json.dumps(each.to_dict(), allow_nan=False)
        assert "<table" in each._repr_html_()
        assert len(each.to_frame())
        assert each.summary().endswith(".")
        each.plot().to_dict()


# --- golden sets ------------------------------------------------------------------------------------------------------


def test_calibration_states_what_was_lost():
    golden = {"a": 1.0, "b": 2.0, "c": math.nan, "d": 3.0, "e": 5.0}
    result = calibrate_judge(golden, {"a": 1.0, "b": math.nan, "d": 4.0, "e": 5.0, "z": 9.0, "c": 1.0})
    assert result.accounting.to_dict() == {"n_in": 5, "n_used": 3, "unlabelled": 1, "unscored": 1}
    assert result.extra_items == 1
    assert result.worst["item"].tolist() == ["d", "a", "e"]
    assert result.bias.value == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="candidate row 1 repeats item_id 'a'"):
        calibrate_judge(golden, [{"item_id": "a", "score": 1}, {"item_id": "a", "score": 2}])
    with pytest.raises(InputError, match="golden lacks the column 'human_score'"):
        calibrate_judge([{"itemId": "a", "human": 1}], [{"itemId": "a", "score": 1}])


def test_kappa_of_unit_scores_is_not_made_perfect_by_rounding():
    golden, candidate = golden_set([0.6, 0.7, 0.8, 0.9], [0.9, 0.6, 0.7, 0.51])
    assert calibrate_judge(golden, candidate).kappa.value < -0.5
    steps = calibrate_judge(*golden_set([1, 2, 3, 2], [1, 2, 3, 3]), categories=[1, 2, 3, 4])
    assert steps.kappa.value == pytest.approx(cohen_kappa_score([1, 2, 3, 2], [1, 2, 3, 3], weights="quadratic"))
    assert steps.kappa.extra["unused"] == [4]


# --- panels -----------------------------------------------------------------------------------------------------------


def test_panels_account_for_missing_and_ragged_rows():
    result = continuous_agreement([[1, 2], [2, 2, 3], [3, 3], [None, 1], [4, 5]])
    assert result.accounting.to_dict() == {"n_in": 5, "n_used": 3, "not_scored_by_all": 1, "other_number_of_raters": 1}
    assert result.icc.n_dropped == 2
    assert continuous_agreement([]).icc.status == "undefined"
    with pytest.raises(InputError, match="row 1"):
        continuous_agreement([[1, 2], ["a", "b"]])


def test_default_intervals_are_those_of_the_statistics():
    rng = np.random.default_rng(0)
    level = rng.normal(size=(30, 1))
    scores = pd.DataFrame(level + 0.5 * rng.normal(size=(30, 2)), columns=["a", "b"])
    result = continuous_agreement(scores)
    ccc = lin_ccc(scores["a"], scores["b"])
    assert (result.weighted_kappa.low, result.weighted_kappa.high) == pytest.approx((ccc.low, ccc.high))
    long = scores.stack().rename_axis(["item", "rater"]).rename("value").reset_index()
    assert (result.icc.low, result.icc.high) == pytest.approx((icc(long).low, icc(long).high), abs=1e-9)
    assert result.pearson == pytest.approx(stats.pearsonr(scores["a"], scores["b"]).statistic)
    assert continuous_agreement(scores, weights="linear").weighted_kappa.method == "percentile bootstrap"


def records(n=12, judges="ABC", dimensions=("tone", "help"), seed=0):
    rng = np.random.default_rng(seed)
    level = rng.normal(size=(len(dimensions), n))
    return pd.DataFrame(
        [(f"i{k}", j, d, level[row, k] + 0.4 * rng.normal()) for row, d in enumerate(dimensions) for k in range(n) for j in judges],
        columns=["item_id", "judge_name", "dimension", "score"],
    )  # fmt: skip


def test_corpora_give_agreement_by_dimension_and_overall_with_an_interval():
    frame = records()
    frame = frame[~((frame["item_id"] == "i3") & (frame["judge_name"] == "A") & (frame["dimension"] == "tone"))]
    frame.loc[frame.index[-1], "score"] = np.nan
    result = corpus_agreement(frame, n_resamples=300)
    assert result.dimensions == ("help", "tone")
    assert {name: part.n for name, part in result.per_dimension.items()} == {"help": 11, "tone": 11}
    assert "i3" not in result.items["tone"]
    assert result.overall_icc.value == pytest.approx(np.mean([p.icc.value for p in result.per_dimension.values()]))
    assert result.overall_icc.low < result.overall_icc.value < result.overall_icc.high
    assert len(result.to_frame()) == 6
    json.dumps(result.to_dict(), allow_nan=False)
    thin = corpus_agreement(pd.concat([frame, records(1, dimensions=("rare",))]), n_resamples=50)
    assert thin.per_dimension["rare"].icc.status == "undefined"
    assert "1 dimensions are undefined" in thin.overall_icc.reason


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f.head(0), {}, "is empty"),
        (lambda f: pd.concat([f, f.head(1)]), {}, "repeats item_id 'i0', judge_name 'A', dimension 'tone'"),
        (lambda f: f[f["judge_name"] == "A"], {}, "at least 2 judges, got A"),
        (lambda f: f, {"judges": ["A", "Z"]}, "no judge_name 'Z'"),
        (lambda f: f, {"dimensions": ["mood"]}, "no dimension 'mood'"),
        (lambda f: f, {"dimensions": ["tone", "tone"]}, "names 'tone' twice"),
        (lambda f: [1], {}, "item 0 must be a mapping"),
    ],
)
def test_bad_records_are_refused_by_name(change, options, message):
    with pytest.raises(InputError, match=message):
        corpus_agreement(change(records()), **options)


def test_means_are_those_of_the_t_test_and_robust_to_clusters():
    rng = np.random.default_rng(1)
    values = rng.normal(1, 2, 25)
    estimate, test = mean_estimate(values, "mean"), stats.ttest_1samp(values, 0)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(test.confidence_interval()))
    assert estimate.p_value == pytest.approx(test.pvalue)
    one_each = mean_estimate(values, "mean", clusters=np.arange(25))
    assert (one_each.low, one_each.high) == pytest.approx((estimate.low, estimate.high))
    copied = mean_estimate(np.repeat(values, 4), "mean", clusters=np.repeat(np.arange(25), 4))
    assert (copied.low, copied.high) == pytest.approx((estimate.low, estimate.high))  # copies tell nothing new
    for few in ([3.0], [2.0, 2.0]):
        assert mean_estimate(np.array(few), "mean").status == "unreliable"


def test_a_constant_judge_gets_no_interval():
    x = np.random.default_rng(0).random(30)
    golden, flat = dict(enumerate(x)), dict.fromkeys(range(30), 1)
    panels = [
        continuous_agreement(np.column_stack([x, np.full(30, 0.3)]), weights=weights, interval=interval)
        for weights in ("quadratic", "linear")
        for interval in ("auto", "percentile")
    ]
    judged = calibrate_judge_continuous(golden, flat)
    rows = [
        {"item_id": i, "judge_name": j, "dimension": "d", "score": s}
        for i, v in golden.items()
        for j, s in (("a", v), ("b", 1))
    ]
    corpus = corpus_agreement(rows)
    found = [one for panel in (*panels, judged) for one in (panel.icc, getattr(panel, "weighted_kappa", panel.icc))]
    found += [judged.kappa, calibrate_judge(golden, flat).kappa, validate_judge(flat, golden).agreement]
    found += [validate_judge(flat, golden).icc, corpus.overall_icc, corpus.overall_weighted_kappa]
    for one in found:
        assert (one.value, one.has_interval, one.status) == (0, False, "unreliable")
        assert "interval" in one.reason
    same = continuous_agreement(np.column_stack([x, np.ones((30, 2))]))
    assert (same.weighted_kappa.status, same.icc.value) == ("undefined", 0)


NUMBERS, WRITTEN = {1: 1, 2: 2, 3: 3}, {"1": 1, "2": 2, "3": 3}


@pytest.mark.parametrize("join", [calibrate_judge, calibrate_judge_continuous, lambda a, b: validate_judge(b, a)])
def test_ids_of_two_types_are_named(join):
    with pytest.raises(
        InputError, match=r"ids of .* are int \(e.g. 1\) and those of .* str \(e.g. '1'\); give both one"
    ):
        join(NUMBERS, WRITTEN)
    with pytest.raises(InputError, match="have no item in common"):
        join(WRITTEN, NUMBERS)
    assert join(NUMBERS, {"1": 1, 2: 2, 3.0: 3}).accounting.n_used == 2


def test_groups_by_ids_of_another_type_are_refused():
    with pytest.raises(InputError, match="human_labels and groups have no item in common"):
        validate_judge(NUMBERS, NUMBERS, groups=WRITTEN)


@pytest.mark.parametrize("odd", [pd.Timestamp("2020"), pd.Timedelta("1h"), 1 + 2j, b"1", 10**400])
def test_scores_that_are_no_real_numbers_are_refused(odd):
    for judge in (calibrate_judge, calibrate_judge_continuous):
        for given in ({1: odd, 2: 2, 3: 3}, dict.fromkeys(NUMBERS, odd)):
            with pytest.raises(InputError, match=r"candidate\['score'\].*number|candidate.* no float can"):
                judge(NUMBERS, given)
            with pytest.raises(InputError, match=r"golden\['human_score'\].*number|golden.* no float can"):
                judge(given, NUMBERS)
    for scale in ("auto", "nominal", "interval"):
        with pytest.raises(
            InputError, match=r"judge_scores: item 1 must be a number or text|judge_scores holds an int"
        ):
            validate_judge({1: odd, 2: 2, 3: 3}, NUMBERS, scale=scale)
    with pytest.raises(InputError, match="categories must be numbers or text"):
        validate_judge([1, 2], [1, 2], categories=[[1], 2])
