"""Studies: joins that account for every run, verdicts from intervals, and what broke comparable tools."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anima.errors import InputError
from anima.metaeval import (
    Accounting,
    MemoryOutcomeStore,
    MemoryTraceStore,
    RunRecord,
    calibration_curve,
    calibration_from_pairs,
    correlation_study,
    eval_health_stamp,
    judge_sentinel_report,
    rubric_predictive_validity,
)
from anima.metaeval.join import join
from anima.stats import adjust_p

DAY = 86_400_000


def frames(n=40, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    runs = pd.DataFrame({"run_id": [f"r{i}" for i in range(n)], "started_at": 0.0, "score": score})
    outcomes = pd.DataFrame({"run_id": runs["run_id"], "captured_at": 5.0, "csat": slope * score + rng.normal(size=n)})
    return runs, outcomes


def trace(n, **fields):
    return MemoryTraceStore(
        {"runId": f"r{i}", "scenarioId": f"s{i}", "startedAt": 1000, "status": "completed",
         "outcome": {"score": i / 10}, **fields} for i in range(n)
    )  # fmt: skip


class Stamp:
    def summary(self):
        return "judge J drifts."

    def to_dict(self):
        return {"healthy": False}


# --- public reports ---------------------------------------------------------------------------------------------------


def test_one_scenario_is_no_cluster_and_is_said():
    """One cluster would leave nothing to estimate an interval from."""
    runs, outcomes = frames()
    study = correlation_study(runs.assign(scenario_id="s"), outcomes, ["score"], ["csat"])
    alone = correlation_study(runs, outcomes, ["score"], ["csat"])
    assert study.pairs[0].estimate.n_clusters is None
    assert study.pairs[0].estimate.low == alone.pairs[0].estimate.low
    assert any("all runs are of one scenario" in note for note in study.notes)


def test_latest_reads_the_metric_asked_for():
    # tangle-network/agent-eval 0.170.0, src/meta-eval/correlation-study.ts reduce('latest'): returned the csat value 4.
    outcomes = pd.DataFrame({"run_id": "a", "captured_at": [1, 2], "csat": [3, 4], "revenue": [10, 50]})
    joined = join(pd.DataFrame({"run_id": ["a"], "started_at": 0, "score": 1}), outcomes, ["score"], ["revenue"])
    assert joined.y.tolist() == [[50.0]]


@pytest.mark.parametrize(("metric", "outcome"), [([1] * 12, [0] * 12), ([1] * 12, list(range(12)))])
def test_constant_series_are_undefined(metric, outcome):
    # tangle-network/agent-eval 0.170.0, src/statistics/descriptive.ts pearsonR: r = 1 'strong', and r = 0 'weak'.
    runs = pd.DataFrame({"run_id": range(12), "m": metric})
    outcomes = pd.DataFrame({"run_id": range(12), "y": outcome})
    pair = correlation_study(runs, outcomes, ["m"], ["y"], method="pearson")["m", "y"]
    assert pair.estimate.status == "undefined"
    assert "m is 1 in all 12 runs" in pair.estimate.reason
    assert pair.verdict == "undefined"
    assert math.isnan(pair.pearson)


def test_undefined_resamples_are_dropped_counted_and_flagged():
    # tangle-network/agent-eval 0.170.0, correlation-study.ts bootstrapPearsonCi: counted as r = 0, interval [0, .889].
    runs = pd.DataFrame({"run_id": range(8), "m": [0] * 7 + [1]})
    outcomes = pd.DataFrame({"run_id": range(8), "y": range(8)})
    estimate = correlation_study(
        runs, outcomes, ["m"], ["y"], method="pearson", interval="percentile", n_resamples=4000
    )["m", "y"].estimate  # fmt: skip
    assert estimate.value == pytest.approx(0.577, abs=1e-3)
    assert estimate.n_undefined / 4000 == pytest.approx((7 / 8) ** 8, abs=0.03)
    assert estimate.low > 0.3
    assert estimate.status == "unreliable"


def test_a_rubric_with_the_wrong_sign_is_misleading():
    # tangle-network/agent-eval 0.170.0, rubric-predictive-validity.ts: rho = -0.9 was 'load_bearing'.
    runs, outcomes = frames(slope=-4)
    study = rubric_predictive_validity(runs, outcomes, ["csat"])
    assert study.ranked[0].estimate.value < -0.7
    assert study.ranked[0].verdict == "misleading"
    assert study.ranked[0].direction == "contrary"
    wished = rubric_predictive_validity(runs, outcomes, ["csat"], polarity={"csat": "lower"})
    assert wished.ranked[0].verdict == "load_bearing"
    assert wished.ranked[0].direction == "as wished"


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_interval_and_estimate_are_of_one_statistic(method):
    # tangle-network/agent-eval 0.170.0, rubric-predictive-validity.ts: verdict on Spearman, interval of Pearson.
    runs, outcomes = frames()
    outcomes["csat"] = np.exp(3 * outcomes["csat"])  # order kept, line lost
    pair = rubric_predictive_validity(runs, outcomes, ["csat"], method=method).pairs[0]
    assert pair.estimate.value == {"spearman": pair.spearman, "pearson": pair.pearson}[method]
    assert pair.estimate.low < pair.estimate.value < pair.estimate.high
    assert pair.spearman == pytest.approx(stats.spearmanr(runs["score"], outcomes["csat"]).statistic)
    assert pair.pearson == pytest.approx(stats.pearsonr(runs["score"], outcomes["csat"]).statistic)


@pytest.mark.parametrize("control", ["holm", "max_t"])
def test_best_of_many_noise_pairs_is_corrected(control):
    # tangle-network/agent-eval 0.170.0, rubric-predictive-validity.ts ranked/bestOutcome: best of 5 without correction.
    false = 0
    for seed in range(30 if control == "holm" else 10):
        rng = np.random.default_rng(seed)
        runs = pd.DataFrame(rng.normal(size=(12, 6)), columns=list("abcdef")).assign(run_id=range(12))
        outcomes = pd.DataFrame(rng.normal(size=(12, 5)), columns=list("vwxyz")).assign(run_id=range(12))
        study = rubric_predictive_validity(runs, outcomes, list("vwxyz"), control=control)
        assert study.family_size == 30
        assert "over 30" in study.summary()
        false += any(pair.verdict in {"load_bearing", "informative", "misleading"} for pair in study.pairs)
        assert study.ranked[0].p_adjusted >= study.ranked[0].estimate.p_value
    assert false <= 4  # the reference finds an 'informative' rubric nearly every time


def test_outcomes_from_before_the_run_are_excluded_and_counted():
    # tangle-network/agent-eval 0.170.0, correlation-study.ts maxCaptureLagMs: negative lags passed.
    runs, outcomes = frames(20)
    outcomes.loc[:2, "captured_at"] = -1.0
    study = correlation_study(runs, outcomes, ["score"], ["csat"])
    assert study.runs.losses["outside_window"] == 3
    assert study.outcomes.losses["too_early"] == 3
    assert study.pairs[0].n == 17
    assert correlation_study(runs, outcomes, ["score"], ["csat"], min_lag_ms=-math.inf).pairs[0].n == 20


@pytest.mark.parametrize(("n", "bins"), [(19, 10), (25, 10)])
def test_equal_frequency_never_makes_more_bins_than_asked_for(n, bins):
    # tangle-network/agent-eval 0.170.0, meta-eval/calibration.ts: 19 and 13 bins; equal scores were split.
    study = calibration_from_pairs([(i / n, i % 2) for i in range(n)], bins=bins, binning="equal-frequency")
    assert len(study.curve.bins) == bins
    tied = calibration_from_pairs([(0.5, 1), (0.5, 0)] * 10, bins=5, binning="equal-frequency")
    assert len(tied.curve.bins) == 1
    assert "1 bins in effect of 5" in tied.summary()


def test_scores_out_of_range_are_refused_or_clipped_and_counted():
    # tangle-network/agent-eval 0.170.0, meta-eval/calibration.ts range: dropped from the bins, counted in n.
    pairs = [(0.1, 0), (0.9, 1), (1.4, 1)]
    with pytest.raises(InputError, match=r"first 1\.4"):
        calibration_from_pairs(pairs, span=(0, 1))
    study = calibration_from_pairs(pairs, span=(0, 1), out_of_range="clip")
    assert study.n == 3 == study.curve.bins["n"].sum()
    assert study.curve.n_clipped == 1


# --- joins ------------------------------------------------------------------------------------------------------------


def test_stores_and_frames_give_one_answer():
    runs, outcomes = frames(30)
    store = MemoryTraceStore(
        {
            "runId": r.run_id,
            "scenarioId": r.run_id,
            "startedAt": 0,
            "status": "completed",
            "outcome": {"score": r.score},
        }
        for r in runs.itertuples()
    )
    told = MemoryOutcomeStore(
        {"runId": r.run_id, "capturedAt": 5, "metrics": {"csat": r.csat}} for r in outcomes.itertuples()
    )
    by_store = correlation_study(store, told, ["score"], ["csat"])
    assert by_store.to_dict() == correlation_study(runs, outcomes, ["score"], ["csat"]).to_dict()
    assert by_store.to_dict() == correlation_study(store, told.outcomes(), ["score"], ["csat"]).to_dict()
    assert (
        by_store["score", "csat"].n
        == correlation_study(store.to_frame(), told.to_frame(), ["score"], ["csat"]).pairs[0].n
    )


def test_every_run_is_accounted_for():
    store = trace(12)
    store.update_run("r0", {"outcome": None})
    store.update_run("r1", {"realness": {"score": 0.1, "gated": True}})
    metrics = [{"csat": float(i)} if i != 2 else {"other": 1.0} for i in range(12)]
    outcomes = [{"runId": f"r{i}", "capturedAt": 2000, "metrics": m} for i, m in enumerate(metrics)]
    outcomes[3]["capturedAt"] = 999
    outcomes[4]["capturedAt"] = 9000
    del outcomes[5]
    outcomes.append({"runId": "nobody", "capturedAt": 2000, "metrics": {"csat": 1.0}})
    study = correlation_study(store, MemoryOutcomeStore(outcomes), ["score", "pass"], ["csat"], max_lag_ms=5000)
    assert study["score", "csat"].accounting == Accounting(
        12, 6, {"no_outcome": 1, "outside_window": 2, "gated": 1, "no_eval_value": 1, "no_outcome_value": 1}
    )
    assert study["pass", "csat"].estimate.status == "undefined"
    assert study.outcomes == Accounting(12, 9, {"unknown_run": 1, "too_early": 1, "too_late": 1}, "outcomes")
    assert "1 gated" in study.summary()
    with pytest.raises(InputError, match="does not add up"):
        Accounting(3, 1, {"lost": 1})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.floats(-5, 5)), st.booleans()), min_size=1, max_size=12),
    st.lists(
        st.tuples(st.integers(0, 14), st.integers(-3, 9), st.one_of(st.none(), st.floats(-5, 5))), max_size=25
    ),
    st.sampled_from(["latest", "mean", "max"]),
)  # fmt: skip
def test_joins_agree_with_a_plain_loop(runs, outcomes, reduction):
    frame = pd.DataFrame(
        {"run_id": range(len(runs)), "started_at": 0, "gated": [g for _, g in runs],
         "m": np.array([np.nan if v is None else v for v, _ in runs])}
    )  # fmt: skip
    told = pd.DataFrame(outcomes, columns=["run_id", "captured_at", "y"]).astype({"y": float})
    joined = join(frame, told, ["m"], ["y"], reduction=reduction, max_lag_ms=6)
    for row, (value, gated) in enumerate(runs):
        fit = [(t, y) for run, t, y in outcomes if run == row and 0 <= t <= 6 and y is not None]
        if not fit:
            assert np.isnan(joined.y[row, 0])
        elif reduction == "latest":
            assert joined.y[row, 0] == [y for t, y in fit if t == max(t for t, _ in fit)][-1]
        else:
            expected = np.mean([y for _, y in fit]) if reduction == "mean" else max(y for _, y in fit)
            assert joined.y[row, 0] == pytest.approx(expected)
        assert np.isnan(joined.x[row, 0]) == (value is None or gated)
    assert joined.pair(0, 0).n_used == joined.rows(0, 0).sum()  # and it adds up, or the constructor raises


def test_gated_runs_are_never_successes():
    store = trace(3, outcome={"score": 0.9, "pass": True})
    store.update_run("r0", {"realness": {"score": 0.9, "gated": True}})
    store.update_run("r1", {"outcome": {"score": 0.9, "pass": True, "realness": {"gated": True, "score": 1}}})
    joined = join(store, MemoryOutcomeStore(), ["pass", "failure_class", "score"], [])
    assert joined.x[:, 0].tolist() == [0, 0, 1]
    assert joined.x[:, 1].tolist() == [0, 0, 1]
    assert np.isnan(joined.x[:, 2]).tolist() == [True, True, False]
    assert joined.gated[:, 2].tolist() == [True, True, False]
    frame = pd.DataFrame({"run_id": [1, 2], "gated": [True, False], "outcome.passed": True, "outcome.score": 0.9})
    joined = join(frame, pd.DataFrame({"run_id": []}), ["outcome.passed", "score"], [])
    assert joined.x[:, 0].tolist() == [0, 1]
    assert np.isnan(joined.x[:, 1]).tolist() == [True, False]


def record(i, **outcome):
    return RunRecord.model_validate({
        "runId": f"r{i}", "experimentId": "e", "candidateId": "c", "seed": 1, "model": "m@2025-01-01", "promptHash": "p",
        "configHash": "c", "commitSha": "s", "wallMs": 1, "costUsd": 0.1 + i, "tokenUsage": {"input": 1, "output": 1},
        "outcome": {"searchScore": 0.5, "raw": {"help": float(i), "tone": float(i % 3)}, **outcome}, "splitTag": "dev",
    })  # fmt: skip


def test_records_give_their_rubrics():
    records = [record(i, **({"realness": {"score": 0.2, "gated": True}} if i == 3 else {})) for i in range(12)]
    outcomes = pd.DataFrame({"run_id": [f"r{i}" for i in range(12)], "csat": range(12)})
    study = rubric_predictive_validity(records, outcomes, ["csat"])
    assert [pair.eval_metric for pair in study.pairs] == ["help", "tone"]
    assert study["help", "csat"].accounting.losses["gated"] == 1
    assert any("no times" in note for note in study.notes)
    assert correlation_study(records, outcomes, ["costUsd"], ["csat"]).pairs[0].n == 11
    with pytest.raises(InputError, match="twice"):
        rubric_predictive_validity([records[0], records[0]], outcomes, ["csat"])
    with pytest.raises(InputError, match="no run has 'hlep'; known are 'help', 'tone', 'searchScore'"):
        correlation_study(records, outcomes, ["hlep"], ["csat"])
    assert rubric_predictive_validity(records, outcomes, ["csat"], rubrics=["help", "planned"]).no_data == ("planned",)
    with pytest.raises(InputError, match="started_at"):
        rubric_predictive_validity(records, outcomes, ["csat"], max_lag_ms=5)


def test_unstated_numbers_are_missing_and_stated_ones_summed():
    store = trace(3)
    store.extend("spans", [
        {"spanId": "a", "runId": "r0", "kind": "llm", "name": "x", "startedAt": 0, "inputTokens": 3, "outputTokens": 2},
        {"spanId": "b", "runId": "r0", "kind": "llm", "name": "x", "startedAt": 0, "inputTokens": 4, "costUsd": 0.5},
        {"spanId": "c", "runId": "r1", "kind": "tool", "name": "x", "startedAt": 0},
    ])  # fmt: skip
    joined = join(store, MemoryOutcomeStore(), ["tokens", "costUsd", "input_tokens", "durationMs", "pass"], [])
    assert joined.x[0, :3].tolist() == [9, 0.5, 7]
    assert np.isnan(joined.x[1:, :3]).all()
    assert np.isnan(joined.x[:, 3:]).all()


def test_known_extractors_agree_with_the_reference_once_unknown_ids_are_left_out(oracle_cases, mulberry32):
    case = next(case for case in oracle_cases("correlation_study") if "all-default-extractors" in case["tags"])
    store = MemoryTraceStore(case["input"]["runs"])
    store.extend("spans", [{"name": "s", "startedAt": 0, **span} for span in case["input"]["spans"]])
    study = correlation_study(
        store, MemoryOutcomeStore(case["input"]["outcomes"]), [p["evalMetric"] for p in case["output"]["pairs"]],
        ["ret"], method="pearson", interval="percentile", quantiles="floor", resamples="per pair", clusters=None,
        n_resamples=case["input"]["options"]["bootstrapIterations"], rng=mulberry32(case["mathRandomSeed"]),
    )  # fmt: skip
    for ours, theirs in zip(study.pairs, case["output"]["pairs"], strict=True):
        assert (ours.pearson, ours.spearman) == pytest.approx((theirs["pearson"], theirs["spearman"]), abs=1e-9)
        if not ours.estimate.n_undefined:
            ends = theirs["pearsonCi95"]
            assert (ours.estimate.low, ours.estimate.high) == pytest.approx((ends["lower"], ends["upper"]), abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eval_metrics": ["nonsense"]}, "'nonsense' is no metric of a run; known are 'score'"),
        ({"eval_metrics": ["score", "score"]}, "names 'score' twice"),
        ({"outcome_metrics": "csat"}, r"write \['csat'\]"),
        ({"clusters": "team"}, "have no 'team'"),
        ({"polarity": {"sales": "lower"}}, "'sales', which is no outcome metric"),
        ({"polarity": {"csat": "down"}}, "polarity"),
        ({"outcome_filter": {"colour": 1}}, "known are run_ids"),
        ({"reduction": "first"}, "reduction"),
        ({"min_lag_ms": 5, "max_lag_ms": 1}, "max_lag_ms"),
        ({"clusters": "scenario_id", "control": "max_t"}, "max_t"),
        ({"clusters": "scenario_id", "interval": "analytic"}, "analytic"),
    ],
)
def test_bad_arguments_are_refused_by_name(change, message):
    arguments = {"eval_metrics": ["score"], "outcome_metrics": ["csat"]} | change
    with pytest.raises(InputError, match=message):
        correlation_study(trace(4), MemoryOutcomeStore(), **arguments)


def test_bad_frames_are_refused_by_name():
    runs, outcomes = frames(4)
    with pytest.raises(InputError, match="'r0' stands twice"):
        correlation_study(pd.concat([runs, runs]), outcomes, ["score"], ["csat"])
    with pytest.raises(InputError, match="lacks the column 'speed'"):
        correlation_study(runs, outcomes, ["speed"], ["csat"])
    with pytest.raises(InputError, match="several outcomes"):
        correlation_study(runs, pd.concat([outcomes, outcomes]).drop(columns="captured_at"), ["score"], ["csat"])
    with pytest.raises(InputError, match="outcomes: row 1 has no run_id"):
        correlation_study(runs, outcomes.assign(run_id=["r0", None, "r1", "r2"]), ["score"], ["csat"])
    for bad in (None, "y", [{"runId": "r0"}]):
        with pytest.raises(InputError, match="outcomes"):
            correlation_study(runs, bad, ["score"], ["csat"])
    with pytest.raises(InputError, match="item 0 must be a RunRecord"):
        correlation_study([{"run_id": "a"}], outcomes, ["score"], ["csat"])


def test_datetimes_and_numbers_mean_the_same_times():
    runs, outcomes = frames(12)
    outcomes["captured_at"] = np.arange(12.0) * DAY
    dated = outcomes.assign(captured_at=pd.to_datetime(outcomes["captured_at"], unit="ms", utc=True))
    begun = runs.assign(started_at=pd.to_datetime(runs["started_at"], unit="ms"))
    for a, b in ((runs, dated), (begun, outcomes), (begun, dated)):
        assert correlation_study(a, b, ["score"], ["csat"], max_lag_ms=5 * DAY).pairs[0].n == 6


def test_mixed_maturities_and_uneven_captures_are_noted():
    runs, outcomes = frames(20)
    outcomes["captured_at"] = np.where(np.arange(20) % 2, DAY, 30 * DAY)
    assert any("maturities" in note for note in correlation_study(runs, outcomes, ["score"], ["csat"]).notes)
    more = pd.concat([outcomes, outcomes.head(5)])
    assert any("rises" in n for n in correlation_study(runs, more, ["score"], ["csat"], reduction="max").notes)


# --- statistics -------------------------------------------------------------------------------------------------------


def test_clusters_widen_the_interval_and_are_found():
    claims = {"auto": 0, None: 0}
    for seed in range(20):  # 30 scenarios of ten runs, no association between their levels
        rng = np.random.default_rng(seed)
        scenario = np.repeat(np.arange(30), 10)
        level = rng.normal(size=(30, 2))[scenario] + rng.normal(size=(300, 2)) / 5
        runs = pd.DataFrame({"run_id": range(300), "scenario_id": scenario, "score": level[:, 0]})
        outcomes = pd.DataFrame({"run_id": range(300), "y": level[:, 1]})
        found = {
            how: correlation_study(runs, outcomes, ["score"], ["y"], clusters=how, n_resamples=200).pairs[0].estimate
            for how in claims
        }
        assert found["auto"].n_clusters == 30
        assert found["auto"].high - found["auto"].low > 2 * (found[None].high - found[None].low)
        for how, estimate in found.items():
            claims[how] += estimate.p_value <= 0.05
    assert claims["auto"] <= 3 < 8 <= claims[None]


def test_verdicts_come_from_the_interval():
    runs, outcomes = frames(400, slope=3)
    strong = correlation_study(runs, outcomes, ["score"], ["csat"]).pairs[0]
    assert strong.verdict == "strong"
    few = correlation_study(runs.head(12), outcomes, ["score"], ["csat"]).pairs[0]
    assert few.estimate.value > 0.7 > few.estimate.low
    assert few.verdict != "strong"
    runs, outcomes = frames(400, slope=0)
    weak = correlation_study(runs, outcomes, ["score"], ["csat"]).pairs[0]
    assert weak.verdict == "weak"
    assert weak.direction == "unclear"
    nine = pd.DataFrame({"run_id": range(9), "score": range(9)})
    perfect = correlation_study(nine, nine.rename(columns={"score": "y"}), ["score"], ["y"]).pairs[0]
    assert perfect.verdict == "uncertain"  # nine runs prove nothing


def test_a_correlation_below_the_threshold_is_rarely_called_moderate():
    rng = np.random.default_rng(8)
    rho, claims = 0.38, 0
    for _ in range(300):
        x = rng.normal(size=60)
        runs = pd.DataFrame({"run_id": range(60), "x": x, "y": rho * x + math.sqrt(1 - rho**2) * rng.normal(size=60)})
        pair = correlation_study(runs[["run_id", "x"]], runs[["run_id", "y"]], ["x"], ["y"], method="pearson").pairs[0]
        claims += pair.verdict in {"moderate", "strong"}
        assert abs(pair.estimate.value) < 0.4 or pair.verdict != "weak"
    assert claims / 300 <= 0.05  # the point estimate alone would claim it in nearly half of them


def test_corrections_are_those_of_the_family():
    rng = np.random.default_rng(5)
    runs = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(run_id=range(60))
    outcomes = pd.DataFrame({"run_id": range(60), "y": runs["a"] + rng.normal(size=60), "z": rng.normal(size=60)})
    for control in ("holm", "bh", "bonferroni"):
        study = correlation_study(runs, outcomes, list("abc"), list("yz"), control=control)
        raw = [pair.estimate.p_value for pair in study.pairs]
        assert [p.p_adjusted for p in study.pairs] == pytest.approx(adjust_p(raw, method=control))
        assert study.pairs[0].estimate.level == pytest.approx(1 - 0.05 / 6 if control == "bonferroni" else 0.95)
    none = correlation_study(runs, outcomes, list("abc"), list("yz"), control="none")
    assert [pair.p_adjusted for pair in none.pairs] == [pair.estimate.p_value for pair in none.pairs]


def test_percentile_and_analytic_roads_agree_on_values_and_nearly_on_p():
    runs, outcomes = frames(80, slope=0.3)
    outcomes.loc[3, "csat"] = np.nan
    for method in ("spearman", "pearson"):
        a, b = (
            correlation_study(runs, outcomes, ["score"], ["csat"], method=method, interval=interval).pairs[0].estimate
            for interval in ("analytic", "percentile")
        )
        assert a.value == b.value
        assert a.p_value == pytest.approx(b.p_value)
        assert (b.low, b.high) == pytest.approx((a.low, a.high), abs=0.08)
        assert a.n == 79
        assert a.n_dropped == 1
    reference = stats.spearmanr(runs["score"].drop(3), outcomes["csat"].drop(3))
    assert correlation_study(runs, outcomes, ["score"], ["csat"]).pairs[0].estimate.p_value == pytest.approx(
        reference.pvalue
    )


def test_shared_resamples_change_nothing_for_a_single_pair():
    runs, outcomes = frames(30)
    one, two = (
        correlation_study(runs, outcomes, ["score"], ["csat"], interval="percentile", resamples=how, rng=7).to_dict()
        for how in ("shared", "per pair")
    )
    assert one == two


def test_binary_outcomes_come_with_an_auc():
    runs, outcomes = frames(60)
    outcomes["kept"] = (outcomes["csat"] > 0).astype(int)
    study = correlation_study(runs, outcomes, ["score"], ["csat", "kept"])
    assert study["score", "csat"].auc is None
    u = stats.mannwhitneyu(runs["score"][outcomes["kept"] == 1], runs["score"][outcomes["kept"] == 0])
    n = outcomes["kept"].sum() * (60 - outcomes["kept"].sum())
    assert study["score", "kept"].auc.value == pytest.approx(u.statistic / n)


def test_rubrics_without_data_and_with_too_little_are_told_apart():
    runs, outcomes = frames(12)
    runs["thin"] = [1.0, 2.0, 3.0] + [np.nan] * 9
    runs["empty"] = np.nan
    study = rubric_predictive_validity(runs, outcomes, ["csat"], rubrics=["score", "thin", "empty"])
    assert study.insufficient == {"thin": 3}
    assert study.no_data == ("empty",)
    assert study["thin", "csat"].estimate.reason == "3 runs with both values, at least 8 are needed"
    same = correlation_study(runs, outcomes, ["score", "thin", "empty"], ["csat"], min_samples=8, verdicts="validity")
    assert [pair.to_dict() for pair in same.pairs] == [pair.to_dict() for pair in study.pairs]
    assert [pair.eval_metric for pair in study.ranked] == ["score"]
    assert study.family_size == 1


def test_results_show_themselves_and_their_health():
    runs, outcomes = frames(20)
    study = correlation_study(runs, outcomes, ["score"], ["csat"], health=Stamp())
    curve = calibration_curve(runs, outcomes, "score", "csat", bins=3).with_health(Stamp())
    rubrics = rubric_predictive_validity(runs, outcomes, ["csat"]).with_health(Stamp())
    for result in (study, curve, rubrics):
        assert "judge J drifts" in result.summary()
        assert "judge J drifts" in result._repr_html_()
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["health"] == {"healthy": False}
        assert len(result.to_frame())
        result.plot().to_dict()
    assert "judge J" not in study.with_health(None).summary()
    stamp = eval_health_stamp(judge_sentinel_report([], as_of="2026-01-01T00:00:00Z"))
    assert f"Health of the judges: {stamp.summary()}" in study.with_health(stamp).summary()
    assert study.with_health(stamp).to_dict()["health"]["healthy"] is False  # nothing known is not healthy
    assert study.to_frame().loc[0, "n"] == study["score", "csat"].n
    assert "Verdict" in study.pairs[0].summary()
    with pytest.raises(KeyError):
        study["score", "nothing"]


def test_calibration_of_runs_uses_the_same_join():
    runs, outcomes = frames(30)
    runs["score"] = stats.norm.cdf(runs["score"])
    outcomes["kept"] = np.r_[np.nan, (np.arange(29) % 2).astype(float)]
    study = calibration_curve(runs, outcomes, "score", "kept", span=(0, 1), bins=5)
    assert study.n == study.accounting.n_used == 29
    assert study.accounting.losses["no_outcome_value"] == 1
    assert study.curve.null_high > 0
    pairs = pd.DataFrame({"p": runs["score"], "kept": outcomes["kept"]})
    assert calibration_from_pairs(pairs, "p", "kept", span=(0, 1), bins=5).curve.ece == study.curve.ece
    with pytest.raises(InputError, match="item 1"):
        calibration_from_pairs([(1, 2), (1, 2, 3)])
    with pytest.raises(InputError, match="item 0 must be"):
        calibration_from_pairs([1, 2])
