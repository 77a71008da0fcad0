"""Bias probes, repeats, fall-back streaks, and means corrected for the judge."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anima.errors import InputError
from anima.metaeval import (
    corrected_mean,
    fallback_signal,
    intra_judge_reliability,
    order_flips,
    parse_run_record,
    positional_bias,
    run_records_frame,
    self_preference,
    verbosity_bias,
)

# --- bias -------------------------------------------------------------------------------------------------------------


def test_flipped_verdicts_become_ties_and_the_flip_rate_is_reported():
    # openvang#87, truescore's MT-Bench study: the same pair shown A-B and B-A, and the verdict flips with the order.
    shown = {
        "p1": ("A", "B"),
        "p2": ("A", "B"),
        "p3": ("A", "A"),
        "p4": ("B", "A"),
        "p5": ("tie", "A"),
        "p6": ("B", None),
    }
    verdicts = [
        {"itemId": item, "order": order, "winner": winner}
        for item, pair in shown.items() for order, winner in zip(("AB", "BA"), pair, strict=True)
    ]  # fmt: skip
    probe = order_flips(verdicts)
    assert probe.settled == {"p1": "tie", "p2": "tie", "p3": "A", "p4": "tie", "p5": "tie"}
    assert probe.details[0].value == 4 / 5
    assert probe.details[0].low < 0.8 < probe.details[0].high
    assert probe.estimate.value == pytest.approx((2 - 1) / 3)  # twice the first shown, once the second
    assert probe.estimate.p_value == pytest.approx(stats.binomtest(2, 3).pvalue)
    assert probe.accounting.losses == {"one_order_only": 1}
    with pytest.raises(InputError, match="winner must be one of A, B, tie"):
        order_flips([{"item_id": "a", "order": "AB", "winner": "first"}])
    with pytest.raises(InputError, match="repeats item_id 'a', order 'AB'"):
        order_flips([{"item_id": "a", "order": "AB", "winner": "A"}] * 2)


def positions(first, second):
    rows = [(f"i{k}", s, "first") for k, s in enumerate(first)] + [(f"i{k}", s, "second") for k, s in enumerate(second)]
    return pd.DataFrame(rows, columns=["itemId", "score", "positionOfAInput"])


def test_positional_bias_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    base = rng.normal(size=40)
    first, second = base + 0.5 + 0.3 * rng.normal(size=40), base + 0.3 * rng.normal(size=40)
    probe = positional_bias(pd.concat([positions(first, second), positions([], [])]))
    test = stats.ttest_rel(first, second)
    assert probe.estimate.p_value == pytest.approx(test.pvalue)
    assert (probe.estimate.low, probe.estimate.high) == pytest.approx(tuple(test.confidence_interval()))
    assert probe.biased is True
    assert probe.details[0].value == pytest.approx((first > second).mean())
    lone = positional_bias(positions([1.0, 2.0, 5.0], [1.5, math.nan]))
    assert lone.accounting.to_dict() == {"n_in": 3, "n_used": 1, "one_position_only": 2}
    assert lone.biased is None
    assert "Unknown." in lone.summary()


@pytest.mark.parametrize(
    "probe",
    [
        lambda: positional_bias([]),
        lambda: order_flips([]),
        lambda: verbosity_bias([]),
        lambda: self_preference([]),
        lambda: self_preference([{"score": 1, "in_family": True}] * 3),
    ],
)
def test_no_data_is_undefined_never_zero(probe):
    found = probe()
    assert found.estimate.status == "undefined"
    assert math.isnan(found.estimate.value)
    assert found.biased is None
    assert found.to_dict()["estimate"]["value"] is None
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_length_counts_as_bias_only_beyond_quality():
    rng = np.random.default_rng(1)
    quality = rng.normal(size=200)
    samples = pd.DataFrame(
        {"outputLen": np.exp(quality + rng.normal(size=200)), "score": quality + rng.normal(size=200)}
    )
    assert verbosity_bias(samples).biased is True  # longer answers are better here
    fair = verbosity_bias(samples.assign(quality=quality))
    assert fair.biased is False
    assert fair.details[0].value == pytest.approx(stats.spearmanr(samples["outputLen"], samples["score"]).statistic)
    unfair = samples.assign(quality=quality, score=samples["score"] + 0.8 * np.log(samples["outputLen"]))
    assert verbosity_bias(unfair).biased is True
    # Partial Pearson correlation: that of the residuals of two regressions.
    pearson = verbosity_bias(samples.assign(quality=quality), method="pearson").estimate
    design = sm.add_constant(quality)
    rest = [sm.OLS(samples[name].to_numpy(), design).fit().resid for name in ("outputLen", "score")]
    assert pearson.value == pytest.approx(stats.pearsonr(*rest).statistic)
    model = sm.OLS(samples["score"].to_numpy(), np.column_stack([design, samples["outputLen"]])).fit()
    assert pearson.p_value == pytest.approx(model.pvalues[2])


def test_self_preference_is_welch_and_beyond_quality_if_known():
    rng = np.random.default_rng(2)
    family = np.arange(60) % 3 == 0
    quality = rng.normal(size=60) + 2 * family  # the family is better
    samples = pd.DataFrame({"score": quality + 0.2 * rng.normal(size=60), "inFamily": family})
    raw = self_preference(samples)
    test = stats.ttest_ind(samples["score"][family], samples["score"][~family], equal_var=False)
    assert (raw.estimate.low, raw.estimate.high) == pytest.approx(tuple(test.confidence_interval()))
    assert raw.estimate.p_value == pytest.approx(test.pvalue)
    assert raw.biased is True
    assert self_preference(samples.assign(quality=quality)).biased is False
    assert self_preference(samples.assign(quality=quality - 2 * family)).biased is True
    with pytest.raises(InputError, match="in_family must be true or false"):
        self_preference([{"score": 1, "in_family": 2}])


# --- repeats ----------------------------------------------------------------------------------------------------------


def test_repeats_show_noise_and_unstable_items():
    rng = np.random.default_rng(3)
    level = rng.normal(0, 2, 50)
    frame = pd.DataFrame({"item_id": np.tile(np.arange(50), 4), "score": np.tile(level, 4) + rng.normal(0, 0.5, 200)})
    result = intra_judge_reliability(frame)
    assert result.noise == pytest.approx(0.5, rel=0.15)
    assert result.reliability.low < 4 / 4.25 < result.reliability.high
    assert result.unstable.value == 1
    assert result.items["sd"].is_monotonic_decreasing
    labels = intra_judge_reliability(
        [{"itemId": "a", "score": "yes"}] * 3 + [{"itemId": "b", "score": s} for s in ("no", "yes", "no")] + [{"itemId": "c", "score": "no"}]
    )  # fmt: skip
    assert labels.unstable.value == 1 / 2
    assert labels.items["item"].tolist() == ["b", "a"]
    assert labels.accounting.losses == {"fewer_than_two_scores": 1}
    constant = intra_judge_reliability(pd.DataFrame({"item_id": [1, 1, 2, 2], "score": 3.0}))
    assert constant.reliability.status == "undefined"
    assert constant.unstable.value == 0
    for each in (result, labels, constant, intra_judge_reliability([])):
        json.dumps(each.to_dict(), allow_nan=False)
        assert each.summary()
    result.plot().to_dict()


# --- fall-back --------------------------------------------------------------------------------------------------------


def signal(confidence=None, fallback=None, **options):
    columns = {"confidence": confidence, "fallback": fallback}
    return fallback_signal(pd.DataFrame({key: value for key, value in columns.items() if value is not None}), **options)


def test_streaks_of_the_fallback_raise_one_alarm_each():
    varied = np.linspace(0.5, 0.9, 20)
    assert signal(varied).state == "healthy"
    flags = [False] * 5 + [True] * 4 + [False] * 3 + [True] * 2
    flagged = signal(fallback=flags)
    assert flagged.state == "alarm"
    assert flagged.streaks[["start", "end", "n"]].values.tolist() == [[5, 8, 4]]
    assert flagged.share.value == 6 / 14
    stuck = np.r_[varied[:10], [0.3] * 6, varied[10:]]
    assert signal(stuck).streaks[["start", "n", "value"]].values.tolist() == [[10, 6, 0.3]]
    known = np.r_[varied[:10], [0.3] * 3, varied[10:]]
    assert signal(known).state == "healthy"
    assert signal(known, fallback_confidence=0.3).state == "alarm"
    assert signal([0.8] * 10).state == "alarm"  # a confidence that never varies measures nothing


def test_run_records_are_read_as_they_are():
    record = {
        "runId": "r", "experimentId": "e", "candidateId": "c", "seed": 1, "model": "m@1", "promptHash": "p",
        "configHash": "c", "commitSha": "s", "wallMs": 1, "costUsd": 0, "tokenUsage": {"input": 1, "output": 1},
        "outcome": {"searchScore": 0.5, "raw": {}}, "splitTag": "dev",
        "judgeMetadata": {"model": "m", "promptVersion": "1", "confidence": 0.3, "fallback": True},
    }  # fmt: skip
    frame = run_records_frame([parse_run_record(record | {"runId": f"r{k}"}).value for k in range(4)])
    assert fallback_signal(frame).streaks["kind"].tolist() == ["fallback flag"]


def test_a_habit_of_the_judge_is_no_streak():
    rng = np.random.default_rng(0)
    alarms = sum(signal(rng.choice([0.9, 0.8, 0.95], 200, p=[0.7, 0.2, 0.1])).state == "alarm" for _ in range(40))
    assert alarms <= 5
    assert signal(np.r_[rng.choice([0.9, 0.8], 100), [0.9] * 25]).state == "alarm"


def test_nothing_recorded_is_unknown_not_healthy():
    assert signal(confidence=[None] * 9).state == "unknown"
    assert fallback_signal([]).state == "unknown"
    assert fallback_signal([{"score": 1}] * 9).state == "unknown"
    assert "unknown" in fallback_signal([]).summary()
    varied = np.linspace(0.5, 0.9, 100)
    assert signal(varied, [False] * 2 + [None] * 98).state == "healthy"
    both = signal(confidence=[0.5, None, None], fallback=[False, False, None], min_streak=3)
    assert both.reason.startswith("2 judgements with a flag or a confidence")
    with pytest.raises(InputError, match="fallback must be true or false"):
        signal(fallback=[0, 3])


@given(st.lists(st.sampled_from([0.3, 0.5, 0.7, None]), max_size=30))
def test_streaks_lie_within_the_series_and_are_as_long_as_they_say(confidence):
    found = fallback_signal([{"confidence": value} for value in confidence], min_constant=3)
    for row in found.streaks.to_dict("records"):
        inside = confidence[row["start"] : row["end"] + 1]
        assert len(inside) == row["n"] >= 3
        assert set(inside) == {row["value"]}
    json.dumps(found.to_dict(), allow_nan=False)


# --- correction -------------------------------------------------------------------------------------------------------


def test_values_of_both_corrections_are_the_published_formulas():
    judge_labelled, human = [1, 1, 1, 0, 0, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 0, 0, 0, 0, 1]
    scores = [1] * 60 + [0] * 40
    rg = corrected_mean(scores, judge_labelled, human, method="rogan-gladen")
    se, sp = 4 / 5, 4 / 5
    assert rg.value == pytest.approx((0.6 + sp - 1) / (se + sp - 1))
    assert rg.extra["sensitivity"] == se
    assert rg.low < rg.value < rg.high
    ppi = corrected_mean(scores, judge_labelled, human)
    weight = np.cov(judge_labelled, human)[0, 1] / (1.1 * np.var([*scores, *judge_labelled]))
    assert ppi.extra["weight"] == pytest.approx(weight)
    assert ppi.value == pytest.approx(np.mean(human) + weight * (0.6 - np.mean(judge_labelled)))
    assert ppi.extra["uncorrected"] == pytest.approx(np.mean([*scores, *judge_labelled]))


def test_a_useless_judge_is_undefined_for_rogan_gladen_and_ignored_by_prediction_power():
    human, judge = [1, 1, 0, 0] * 5, [0, 1, 0, 1] * 5
    bad = corrected_mean([1, 0] * 30, judge, human, method="rogan-gladen")
    assert bad.status == "undefined"
    assert "no better than chance" in bad.reason
    fine = corrected_mean([1, 0] * 30, judge, human)
    assert fine.extra["weight"] == 0
    assert fine.value == 0.5
    one_class = corrected_mean([1, 0], [1, 1], [1, 1], method="rogan-gladen")
    assert one_class.status == "undefined"
    assert corrected_mean([], [1, 0], [1, 0]).status == "undefined"
    with pytest.raises(InputError, match=r"judge_scores has 0\.5"):
        corrected_mean([0.5], [1, 0], [1, 0], method="rogan-gladen")
    dropped = corrected_mean([1, None, 0], [1, 0, None], [1, 0, 1])
    assert dropped.n_dropped == 2


@pytest.mark.parametrize("method", ["prediction-powered", "rogan-gladen"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_coverage_of_the_corrected_mean(method, share):
    rng = np.random.default_rng(5)
    trials, hits, naive, widths, alone = 400, 0, 0, 0.0, 0.0
    for _ in range(trials):
        truth = rng.random(460) < share
        judge = np.where(truth, rng.random(460) < 0.9, rng.random(460) < 0.3)
        estimate = corrected_mean(judge[60:], judge[:60], truth[:60], method=method)
        hits += estimate.low <= share <= estimate.high
        naive += abs(judge[60:].mean() - share) < 1.96 * math.sqrt(0.24 / 400)
        widths += estimate.high - estimate.low
        alone += 2 * stats.t.ppf(0.975, 59) * truth[:60].std(ddof=1) / math.sqrt(60)
    assert hits / trials >= 0.925  # 95 % less two Monte-Carlo errors and a little
    assert naive / trials < 0.5
    if method == "prediction-powered":
        assert widths < alone


@pytest.mark.parametrize("level", [95, "a"])
@pytest.mark.parametrize(
    "probe",
    [
        lambda level: positional_bias(
            [{"item_id": k, "score": k * n, "position": p} for k in range(9) for n, p in ((1, "first"), (2, "second"))],
            level=level,
        ),
        lambda level: order_flips([{"item_id": 1, "order": o, "winner": "A"} for o in ("AB", "BA")], level=level),
        lambda level: verbosity_bias([{"output_len": k, "score": k**2} for k in range(9)], level=level),
        lambda level: self_preference([{"score": k**2, "in_family": k % 2} for k in range(9)], level=level),
        lambda level: corrected_mean([1, 2, 3], [1, 2, 3], [1, 3, 2], level=level),
        lambda level: fallback_signal([{"fallback": True}] * 9, level=level),
        lambda level: intra_judge_reliability([{"item_id": k // 2, "score": k} for k in range(9)], level=level),
    ],
)
def test_a_level_that_is_no_share_is_refused(probe, level):
    with pytest.raises(InputError, match="level must"):
        probe(level)
