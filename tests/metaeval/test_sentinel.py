"""The judge sentinel: parity of the reference rule, what ours adds, and its error rates."""

import json
import math
import sys
import tomllib
import warnings
from datetime import UTC, datetime
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from anima.errors import AnimaError, DataError, DegenerateDataWarning, InputError
from anima.metaeval import (
    EvalHealthStamp,
    JsonlSentinelStore,
    MemorySentinelStore,
    SentinelThresholds,
    eval_health_stamp,
    judge_sentinel_report,
    snapshot_from_agreement,
    snapshot_from_calibration,
    snapshot_from_sentinel_set,
)
from anima.metaeval.sentinel_drift import count_scale, drift_score
from anima.stats import Estimate, cohen_kappa, lin_ccc

_PART = ("sentinel_report",)
DIFFERENCES = {
    case: entry
    for case, entry in tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8")).items()
    if case.rsplit("-", 1)[0] in _PART
}
META = {"at": "2026-01-01T00:00:00Z", "judge_id": "J", "judge_model": "m@1"}
KAPPA, PASS = "calibrationKappa", "sentinelPassRate"
PHRASES = {
    "stale": "stale", "silent-upgrade trap": "silent-upgrade", "convergence state drifting-down": "drifting",
    "below floor": "below-floor", "dropped": "drop",
}  # fmt: skip


@pytest.fixture(scope="module")
def table():
    spec = util.spec_from_file_location("sentinel_table", Path(__file__).with_name("sentinel_table.py"))
    module = util.module_from_spec(spec)
    sys.modules["sentinel_table"] = module
    spec.loader.exec_module(module)
    return module


def point(day, value=None, metric=KAPPA, *, n=None, model="m@1", judge="J", interval=None):
    made = {"at": f"2026-01-{day:02}T00:00:00Z", "judgeId": judge, "judgeModel": model, "metrics": {}}
    if value is not None:
        made["metrics"] = {metric: value}
    if n is not None:
        made["n"] = {metric: n}
    if interval is not None:
        made["interval"] = {metric: interval}
    return made


def series(values, **options):
    return [point(day, value, **options) for day, value in enumerate(values, start=1)]


def kinds(report):
    return [alarm.kind for alarm in report.alarms]


# --- the reference rule ----------------------------------------------------------------------------------------------
def kinds_of_text(alarm):
    """Return the kinds that an alarm of the reference package names, in its order."""
    return [kind for part in alarm.split("; ") for phrase, kind in PHRASES.items() if phrase in part]


@pytest.mark.oracle
def test_reference_rule_agrees_with_the_reference_package(oracle_cases):
    compared = 0
    for case in oracle_cases("sentinel_report"):
        if case["function"] != "judgeSentinelReport":
            continue
        options, out, name = case["input"]["opts"], case.get("output"), case["id"]
        as_of = options["asOf"] if isinstance(options["asOf"], str) else None
        convergence = {"driftRun": 3, **options.get("convergence", {})}
        try:
            ours = judge_sentinel_report(
                case["input"]["history"],
                as_of=as_of,
                thresholds=options.get("thresholds", {}) | convergence | {"future": "ignore"},
                rule="reference",
            )
        except AnimaError:
            if name in DIFFERENCES:
                assert (DIFFERENCES[name]["result"], out is None) == ("error", False), name
            else:
                assert "error" in case, name
            continue
        if name in DIFFERENCES:
            assert (DIFFERENCES[name]["result"], "error" in case) == (ours.health, True), name
            continue
        assert ours.healthy == out["healthy"], name
        assert list(ours.insufficient_history) == out["insufficientHistory"], name
        assert kinds(ours) == [kind for alarm in out["alarms"] for kind in kinds_of_text(alarm)], name
        assert len(ours.rows) == len(out["perJudge"]), name
        for row, theirs in zip(ours.rows, out["perJudge"], strict=True):
            assert (row.judge_id, row.metric, row.state) == (theirs["judgeId"], theirs["metric"], theirs["state"]), name
            for key in ("current", "baseline", "drift"):
                assert getattr(row, key) == pytest.approx(theirs[key], abs=1e-9), name
            assert row.alarmed == theirs["alarmed"], name
            assert bool(row.reason) == ("reason" in theirs), name
        compared += 1
    assert compared >= 28


def test_reference_rule_takes_no_baselines():
    with pytest.raises(InputError, match="reference"):
        judge_sentinel_report([], baselines={KAPPA: 0.9}, rule="reference")
    assert judge_sentinel_report([], rule="reference").healthy


# --- health is one of three ------------------------------------------------------------------------------------------
def test_nothing_known_is_not_healthy():
    empty = judge_sentinel_report([])
    assert (empty.health, empty.healthy, empty.as_of) == ("unknown", False, None)
    assert empty.unknown == ("There is no snapshot of any judge.",)
    assert list(empty.to_frame()["metric"]) == []
    one = judge_sentinel_report(series([0.9], n=200))
    assert (one.health, one.insufficient_history) == ("unknown", ("J:calibrationKappa",))
    assert "at least 3 are needed" in one.unknown[0]
    assert judge_sentinel_report([point(1)]).unknown == ('Judge "J": no metric was ever measured.',)
    assert judge_sentinel_report(series([0.9], n=200), baselines={KAPPA: 0.9}).health == "healthy"
    assert judge_sentinel_report(series([0.9, 0.91, 0.89], n=200)).health == "healthy"


def test_unknown_precision_is_unknown_health_until_the_scatter_tells():
    few = judge_sentinel_report(series([0.9, 0.91, 0.7]))
    assert (few.health, kinds(few)) == ("unknown", [])
    assert "give n or an interval" in few.unknown[0]
    assert "0.205 below the baseline 0.905 (limit 0.15), which could still be chance" in few.unknown[1]
    many = judge_sentinel_report(series([0.9, 0.91, 0.89, 0.9, 0.92, 0.9, 0.89, 0.91, 0.9]))
    assert many.health == "healthy"
    assert "scatter" in many.rows[0].note
    assert judge_sentinel_report(series([0.9] * 9)).health == "healthy"


def test_worst_judge_decides():
    history = [*series([0.9, 0.9, 0.9], n=200), *series([0.9], n=200, judge="K")]
    report = judge_sentinel_report(history)
    assert report.judges == {"J": "healthy", "K": "unknown"}
    assert report.health == "unknown"
    report = judge_sentinel_report([*history, *series([0.3, 0.3, 0.3], n=200, judge="B")])
    assert (report.health, list(report.judges)) == ("alarmed", ["B", "J", "K"])


# --- alarms ----------------------------------------------------------------------------------------------------------
def test_every_metric_has_a_floor():
    """A kappa of .05 forever is healthy to the reference rule, sentinel.ts."""
    for metric, low in ((KAPPA, 0.05), (PASS, 0.5), ("irr", 0.5)):
        report = judge_sentinel_report(series([low] * 4, metric=metric, n=200))
        assert kinds(report) == ["below-floor"]
    assert judge_sentinel_report(series([0.05] * 4, n=200), rule="reference").healthy
    off = judge_sentinel_report(series([0.05] * 4, n=200), thresholds={"minKappa": None})
    assert off.health == "healthy"


@pytest.mark.parametrize(("n", "found"), [(300, ["drifting", "drop"]), (20, [])])
def test_a_drop_must_be_more_than_noise(n, found):
    report = judge_sentinel_report(series([0.9, 0.89, 0.91, 0.72], n=n))
    assert kinds(report) == found
    assert report.health == ("alarmed" if found else "unknown")
    assert kinds(judge_sentinel_report(series([0.9, 0.89, 0.91, 0.72], n=n), rule="reference")) == ["drop"]


def test_slow_decline_is_found_and_a_rise_is_no_alarm():
    """The reference rule calls a decline of .90 to .83 within 5 % 'stabilized', series-convergence.ts."""
    values = np.linspace(0.9, 0.83, 12).round(3).tolist()
    history = [point(day, v, n=1000, interval=[v - 0.02, min(v + 0.02, 1.0)]) for day, v in enumerate(values, start=1)]
    assert kinds(judge_sentinel_report(history)) == ["drifting"]
    assert judge_sentinel_report(history, rule="reference").rows[0].state == "stabilized"
    up = judge_sentinel_report([item | {"at": f"2026-01-{20 - i:02}T00:00:00Z"} for i, item in enumerate(history)])
    assert (up.health, up.rows[0].state) == ("healthy", "drifting-up")


def test_stale_and_by_default_judged_at_the_newest():
    history = series([0.9, 0.9, 0.9], n=200)
    assert judge_sentinel_report(history).as_of == "2026-01-03T00:00:00Z"
    late = judge_sentinel_report(history, as_of=datetime(2026, 2, 3, tzinfo=UTC))
    assert kinds(late) == ["stale"]
    assert "31.0 days old (limit 30)" in late.alarms[0].message
    assert judge_sentinel_report(history, as_of="2026-02-02T00:00:00Z").health == "healthy"
    with pytest.raises(InputError, match="as_of must be an ISO-8601 time with a zone"):
        judge_sentinel_report(history, as_of="2026-02-02")
    with pytest.raises(InputError, match="as_of"):
        judge_sentinel_report(history, as_of=datetime(2026, 2, 3))


def test_a_metric_that_is_no_longer_measured_is_unknown():
    history = series([0.9, 0.9, 0.9], n=200)
    history += [point(day, 0.8, metric="irr", n=200) for day in (26, 27, 28)]
    report = judge_sentinel_report(history, thresholds={"stale_after_days": 20})
    assert report.health == "unknown"
    assert "calibrationKappa: last measured at 2026-01-03T00:00:00Z, 25.0 days old" in report.unknown[0]


def test_future_snapshots_are_named_and_not_used():
    """A snapshot dated in the future has a negative age and is never stale to the reference rule, sentinel.ts."""
    history = [*series([0.9, 0.9, 0.9], n=200), point(30, 0.2, n=200)]
    report = judge_sentinel_report(history, as_of="2026-01-05T00:00:00Z")
    assert (kinds(report), report.n_future, report.rows[0].current) == (["future"], 1, 0.9)
    back = judge_sentinel_report(history, as_of="2026-01-05T00:00:00Z", thresholds={"future": "ignore"})
    assert back.health == "healthy"


def test_baseline_starts_anew_when_a_new_model_is_calibrated():
    """The reference rule measures every drop against the oldest snapshot, whatever the model, sentinel.ts."""
    history = series([0.9, 0.91, 0.89], n=300)
    history += [point(day, value, n=300, model="m@2") for day, value in ((10, 0.70), (11, 0.71), (12, 0.69))]
    report = judge_sentinel_report(history)
    row = report.rows[0]
    assert (report.health, row.since, row.n_snapshots) == ("healthy", "2026-01-10T00:00:00Z", 3)
    assert (row.baseline, row.previous_baseline) == (pytest.approx(0.705), pytest.approx(0.9))
    assert kinds(judge_sentinel_report(history, rule="reference")) == ["drop"]


def test_silent_upgrade():
    history = [*series([0.9, 0.91, 0.89], n=300), point(10, 0.8, "irr", n=300, model="m@2")]
    assert kinds(judge_sentinel_report(history)) == ["silent-upgrade"]  # agreement among raters does not clear it
    assert judge_sentinel_report(history).rows[1].since is None
    healed = judge_sentinel_report([*history, point(11, 0.9, n=300, model="m@2")])
    assert healed.health == "unknown"
    assert healed.rows[1].previous_baseline == pytest.approx(0.9)
    gone = judge_sentinel_report([*history, point(11, 0.9, PASS, n=300, model="m@2")])
    assert "calibrationKappa: not measured since the model changed" in gone.unknown[1]
    assert math.isnan(gone.rows[1].current)


def test_instants_and_not_their_spelling_give_the_order():
    """As text the second sorts before the first."""
    first = point(1, 0.9, n=300) | {"at": "2026-03-01T23:30:00-05:00"}
    history = [first | {"at": "2026-03-02T05:00:00Z", "metrics": {KAPPA: 0.6}}, first]
    assert judge_sentinel_report(history).rows[0].current == 0.6


def test_order_of_alarms():
    history = [
        *[point(day, 0.9, n=500) for day in range(1, 5)],
        point(6, 0.3, n=500),
        point(7, model="m@2"),
        point(31, 0.9, n=500),
    ]
    report = judge_sentinel_report(history, as_of="2026-01-20T00:00:00Z", thresholds={"staleAfterDays": 5})
    assert kinds(report) == ["stale", "future", "silent-upgrade", "drifting", "below-floor", "drop"]


# --- input and presentation ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: judge_sentinel_report({"at": 1}), "history must be a sentinel store or a list of snapshots"),
        (lambda: judge_sentinel_report([], rule="ours"), "rule must be one of"),
        (lambda: judge_sentinel_report([], thresholds={"minKapa": 1}), "thresholds has no 'min_kapa'"),
        (lambda: judge_sentinel_report([], thresholds={"min_kappa": math.nan}), "None switches it off"),
        (lambda: judge_sentinel_report([], thresholds={"alpha": 0}), "thresholds.alpha"),
        (lambda: judge_sentinel_report([], baselines={"kappa": 1}), "key of baselines must be one of"),
        (lambda: judge_sentinel_report([], baselines={KAPPA: Estimate("kappa", 0.9)}), "has no interval"),
        (lambda: eval_health_stamp({"healthy": True}), "must be a SentinelReport"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, problem):
    with pytest.raises(InputError, match=problem):
        call()


def test_bad_snapshots_are_named_by_place():
    with pytest.raises(DataError, match=r"history\[1\]\.metrics\.irr"):
        judge_sentinel_report([point(1), point(2) | {"metrics": {"irr": math.nan}}])


def test_known_baseline_with_an_interval_counts_less():
    history = series([0.82, 0.82, 0.82, 0.82], n=200)
    exact = judge_sentinel_report(history, baselines={KAPPA: 0.92}).rows[0]
    vague = judge_sentinel_report(history, baselines={KAPPA: Estimate("kappa", 0.92, 0.86, 0.98)}).rows[0]
    assert exact.statistic > vague.statistic > 0
    assert exact.state == "drifting-down"


def test_result_is_presentable(tmp_path):
    store = JsonlSentinelStore(tmp_path / "s.jsonl")
    store.extend(series([0.9, 0.9, 0.9, 0.3], n=300, interval=[0.2, 0.95]))
    report = judge_sentinel_report(store)
    assert report.to_dict() == judge_sentinel_report(MemorySentinelStore(store.history())).to_dict()
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["rows"][0]["alarmed"] is True
    assert "snapshots" not in report.to_dict()
    assert "alarmed" in report.summary()
    assert "alarmed" in report.rows[0].summary()
    assert "<table" in report._repr_html_()
    chart = report.plot().to_dict()
    assert {item["health"] for item in next(iter(chart["datasets"].values()))} == {"earlier", "alarmed"}
    assert judge_sentinel_report([]).plot() is not None
    nasty = judge_sentinel_report(series([0.1], judge="<script>"))
    assert "<script>" not in nasty._repr_html_()
    assert hash(SentinelThresholds()) == hash(SentinelThresholds.of({"minIrr": 0.6}))


def test_stamp_says_what_is_wrong():
    report = judge_sentinel_report(series([0.3, 0.3, 0.3], n=300))
    stamp = eval_health_stamp(report)
    assert stamp == EvalHealthStamp(
        "alarmed", ('Judge "J" calibrationKappa: 0.300 is below the floor 0.4',), (), report.as_of
    )
    assert stamp.to_dict()["healthy"] is False
    assert stamp.summary().startswith("alarmed, 1 alarm: Judge")
    assert eval_health_stamp(judge_sentinel_report([])).summary().startswith("unknown, 0 alarms: There is no")
    assert EvalHealthStamp("healthy").summary() == "healthy."


# --- precision and drift ---------------------------------------------------------------------------------------------
def test_scale_from_intervals_is_the_variance_of_kappa(table):
    """k·error must vary like a Poisson count: compare with the variance of simulated kappas."""
    for prevalence in (0.5, 0.8):
        setting = table.Setting("", (0.9,) * 30, prevalence)
        values, *rest = table.draw(setting, np.random.default_rng(1), 300)
        true = 0.1 / values.var()
        assert np.median(count_scale(KAPPA, values, *rest)) == pytest.approx(true, rel=0.06)


def test_scale_of_pass_rates_is_binomial():
    values, blank = np.full(4, 0.9), np.full(4, np.nan)
    k = count_scale(PASS, values, np.full(4, 200.0), blank, blank)
    assert k * 0.1 / k**2 == pytest.approx(0.9 * 0.1 / 200)  # variance of a count of mean 0.1 k, over k squared
    mixed = count_scale(PASS, values, np.array([100.0, 200.0, 400.0, np.nan]), blank, blank)
    assert mixed.tolist() == pytest.approx([100 / 0.9, 200 / 0.9, 400 / 0.9, 200 / 0.9])
    assert np.isnan(count_scale(PASS, values, blank, blank, blank)).all()
    # an interval without width, as from a bootstrap of perfect agreement, says nothing
    assert np.isnan(count_scale(KAPPA, np.ones(4), blank, np.ones(4), np.ones(4))).all()


def test_scale_without_errors_is_finite():
    k = count_scale(KAPPA, np.ones(3), np.full(3, 200.0), np.full(3, 0.96), np.ones(3))
    assert np.isfinite(k).all()
    assert (k > 0).all()
    score = drift_score(KAPPA, np.ones(3), np.full(3, 200.0), np.full(3, 0.96), np.ones(3))
    assert score.tested
    assert score.fall < 1


def test_more_scatter_than_promised_raises_the_bar():
    rng = np.random.default_rng(3)
    values = np.clip(rng.normal(0.8, 0.08, 30), -1, 1)
    sizes, blank = np.full(30, 2000.0), np.full(30, np.nan)
    score = drift_score(KAPPA, values, sizes, blank, blank)
    assert "times as much as their precision explains" in score.note
    assert score.fall < score.limit


def test_table_runs_the_code_of_the_report(table):
    """The simulation and the report must agree, look by look."""
    setting = table.SETTINGS[6]
    data = table.draw(setting, np.random.default_rng(4), 3)
    ours, theirs = table.alarms(setting, data), table.reference_alarms(setting, data[0])
    assert ours.any()
    for i in range(3):
        values, sizes, lows, highs = (item[i] for item in data)
        history = [point(t + 1, values[t], n=int(sizes[t]), interval=[lows[t], highs[t]]) for t in range(len(values))]
        for t in range(1, len(values) + 1):
            assert ("drifting" in kinds(judge_sentinel_report(history[:t]))) == ours[i, t - 1]
            assert bool(kinds(judge_sentinel_report(history[:t], rule="reference"))) == theirs[i, t - 1]


@pytest.mark.slow
def test_promised_error_rates_are_kept(table):
    frame = table.sentinel_frame(promised_only=True)
    assert len(frame) == 7
    assert frame["kept"].all(), frame.to_string()
    steady = frame[frame["wanted"] == "few"]
    assert (steady["anima"] < steady["reference"]).all()


@pytest.mark.slow
def test_a_year_of_noise(table):
    """tangle-network/agent-eval, sentinel.ts: 52 weekly kappas of pure noise alarm in 82 % of the years."""
    year = next(setting for setting in table.SETTINGS if len(setting.truth) == 52)
    data = table.draw(year, np.random.default_rng(5), 500)
    assert table.alarms(year, data).any(axis=1).mean() <= 0.05
    assert table.reference_alarms(year, data[0]).any(axis=1).mean() > 0.8


# --- adapters --------------------------------------------------------------------------------------------------------
@pytest.mark.oracle
def test_adapters_agree_with_the_reference_package(oracle_cases):
    calls = {"snapshotFromCalibration": snapshot_from_calibration, "snapshotFromAgreement": snapshot_from_agreement}
    for case in oracle_cases("sentinel_adapters"):
        given = case["input"]
        meta = {"at": given["meta"]["at"], "judge_id": "J", "judge_model": "m@1"}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegenerateDataWarning)
                if case["function"] == "snapshotFromSentinelSet":
                    made = snapshot_from_sentinel_set(given["scores"], given["golden"], **meta, **given["options"])
                else:
                    made = calls[case["function"]](given["report"], **meta)
        except InputError:
            assert "error" in case, case["id"]
            continue
        wire = made.to_dict()
        assert {key: wire[key] for key in case["output"]} == case["output"], case["id"]


def test_adapters_carry_n_and_interval():
    kappa = cohen_kappa(list("yyynnnynyn"), list("yynnnnynyy"))
    made = snapshot_from_calibration(kappa, **META)
    assert made.n.calibration_kappa == 10
    assert made.interval.calibration_kappa == (kappa.low, kappa.high)
    theirs = {"n": 5, "kappa": 0.7, "weightedKappaContinuous": 0.4, "ci": {"weightedKappa": [0.1, 0.6], "icc": [0, 1]}}
    made = snapshot_from_calibration(theirs, **META)
    assert (made.metrics.calibration_kappa, made.n.calibration_kappa) == (0.4, 5)
    assert made.interval.calibration_kappa == (0.1, 0.6)
    ours = type("Report", (), {"kappa": kappa, "weighted_kappa_continuous": None})()
    assert snapshot_from_calibration(ours, **META).metrics.calibration_kappa == kappa.value
    made = snapshot_from_agreement({"overallIcc": 0.9, "ci": {"icc": [math.nan, math.nan]}}, **META)
    assert (made.metrics.irr, made.n, made.interval) == (0.9, None, None)


def test_sentinel_set_of_every_shape():
    golden = {"a": 0.5, "b": 0.3, "c": 0.2}
    made = snapshot_from_sentinel_set({"a": 0.5, "b": 0.4, "c": 0.9}, golden, **META)
    assert made.metrics.sentinel_pass_rate == pytest.approx(2 / 3)  # 0.4 - 0.3 > 0.1 in binary
    assert made.n.sentinel_pass_rate == 3
    assert made.interval.sentinel_pass_rate == pytest.approx((0.2077, 0.9385), abs=1e-4)  # Wilson
    import pandas as pd

    frames = [
        pd.DataFrame({"item_id": list("abc"), column: values})
        for column, values in (("score", [0.5, 0.4, 0.9]), ("human_score", [0.5, 0.3, 0.2]))
    ]
    assert snapshot_from_sentinel_set(*frames, **META) == made
    with pytest.warns(DegenerateDataWarning, match="2 of 3 golden items have no score"):
        twice = snapshot_from_sentinel_set([{"itemId": "a", "score": s} for s in (0.5, 0.9)], golden, **META)
    assert (twice.metrics.sentinel_pass_rate, twice.n.sentinel_pass_rate) == (0.5, 1)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: snapshot_from_calibration(cohen_kappa(list("yy"), list("yy")), **META), "agreement beyond chance"),
        (lambda: snapshot_from_calibration({"n": 1, "kappa": math.nan}, **META), r"undefined \(n = 1\): calibrate"),
        (lambda: snapshot_from_calibration({"pearson": 1}, **META), "weighted_kappa_continuous or kappa"),
        (lambda: snapshot_from_agreement(lin_ccc([1, 2, 3], [1, 2, 4], level=0.9), **META), "pass level=0.95"),
        (lambda: snapshot_from_sentinel_set({"q": 1}, {"a": 1}, **META), "no item in common"),
        (lambda: snapshot_from_sentinel_set({"a": math.nan}, {"a": 1}, **META), "scores: the score of item 'a'"),
        (lambda: snapshot_from_sentinel_set({}, [{"itemId": "a", "humanScore": 1}] * 2, **META), "golden row 1 repeats item_id 'a'"),
        (lambda: snapshot_from_sentinel_set("a", {"a": 1}, **META), "scores must be a DataFrame"),
        (lambda: snapshot_from_sentinel_set([{"score": 1}], {"a": 1}, **META), "scores lacks the column 'item_id'"),
        (lambda: snapshot_from_sentinel_set({}, {"a": 1}, **META, tolerance=-1), "tolerance"),
        (lambda: snapshot_from_calibration({"kappa": 0.5}, **META | {"at": "today"}), "parseable ISO"),
    ],
)  # fmt: skip
def test_bad_results_make_no_snapshot(call, problem):
    with pytest.raises((InputError, DataError), match=problem):
        call()
