"""Studies against the outputs of the reference package; where we differ on purpose, a table says how and why."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from anima.errors import AnimaError
from anima.metaeval import (
    MemoryOutcomeStore,
    MemoryTraceStore,
    calibration_curve,
    calibration_from_pairs,
    correlation_study,
    rubric_predictive_validity,
)

pytestmark = pytest.mark.oracle
_PART = ("calibration", "calibration_curve", "correlation_study", "rubric_validity")
TABLE = {
    case: entry
    for case, entry in tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8")).items()
    if case.rsplit("-", 1)[0] in _PART
}
FILES = ("correlation_study", "rubric_validity", "calibration", "calibration_curve")
UNSEEDED = 20240607  # what the oracle seeded the unseeded generator with


def defined(value):
    """Leave out what is undefined, as JSON does."""
    if isinstance(value, dict):
        return {key: defined(item) for key, item in value.items() if item != {"$undefined": True}}
    return [defined(item) for item in value] if isinstance(value, list) else value


def number(value):
    """Return a number as the table writes it: rounded, NaN and None alike."""
    return "nan" if value is None or math.isnan(value) else round(float(value), 9) + 0.0


def same(ours, theirs):
    """Compare to 1e-9, the tolerance of the claim."""
    if isinstance(ours, dict):
        return isinstance(theirs, dict) and set(ours) == set(theirs) and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float | int):
        return abs(ours - theirs) <= 1e-9
    return ours == theirs


# --- what the reference says, and what we say, in one form ------------------------------------------------------------


def reference_pairs(out, names, interval):
    """One entry per reported pair."""
    return {
        f"{pair[names[0]]} {pair[names[1]]}": {
            "n": pair["n"], "pearson": number(pair["pearson"]), "spearman": number(pair["spearman"]),
            "interval": [number(end) for end in pair[interval].values()], "verdict": pair["verdict"],
        }
        for pair in out["pairs"]
    }  # fmt: skip


def our_pairs(study, least):
    return {
        f"{pair.eval_metric} {pair.outcome_metric}": {
            "n": pair.n, "pearson": number(pair.pearson), "spearman": number(pair.spearman),
            "interval": [number(pair.estimate.low), number(pair.estimate.high)], "verdict": pair.verdict,
        }
        for pair in study.pairs if pair.n >= least
    }  # fmt: skip


def stores(case):
    runs, spans, outcomes = (defined(case["input"].get(key, [])) for key in ("runs", "spans", "outcomes"))
    trace = MemoryTraceStore(runs)
    trace.extend("spans", [{"name": "s", "startedAt": 0, **span} for span in spans])
    return trace, MemoryOutcomeStore(outcomes)


def run_correlation(case, generator):
    given, options = case["input"], case["input"].get("options", {})
    trace, outcomes = stores(case)

    def boom(run):
        raise RuntimeError("boom")

    own = {"throws Error(boom)": boom, "number of spans of the run": lambda run: len(trace.spans(run_id=run.run_id))}
    metrics = [metric["id"] for metric in given["evalMetrics"]]
    functions = {m["id"]: own[m["extract"]["$fn"]] for m in given["evalMetrics"] if "extract" in m}
    chosen = dict(options.get("outcomeFilter", {}))
    if label := chosen.pop("label", None):
        chosen["labels"] = {label["key"]: label["value"]}
    study = correlation_study(
        trace, outcomes, {name: functions.get(name) for name in metrics} if functions else metrics,
        given["outcomeMetrics"], method="pearson", interval="percentile", quantiles="floor", resamples="per pair",
        clusters=None, rng=generator(case["mathRandomSeed"]), n_resamples=options.get("bootstrapIterations", 500),
        reduction=options.get("reduction", "latest"), outcome_filter=chosen or None, min_lag_ms=-math.inf,
        max_lag_ms=options.get("maxCaptureLagMs", math.inf),
    )  # fmt: skip
    losses = study.runs.losses
    skipped = losses["no_outcome"] + losses["outside_window"]
    return {"joined": study.runs.n_in - skipped, "skipped": skipped, "pairs": our_pairs(study, 3)}


def run_rubrics(case, generator):
    given = case["input"]
    frame = pd.DataFrame([{"run_id": run["runId"], **run["outcome"]["raw"]} for run in defined(given["runs"])]).reindex(
        columns=dict.fromkeys(["run_id", *(k for run in given["runs"] for k in run["outcome"]["raw"])])
    )
    least = given.get("minSamples", 8)
    study = rubric_predictive_validity(
        frame, MemoryOutcomeStore(defined(given["outcomes"])), given["outcomeMetrics"], rubrics=given.get("rubrics"),
        min_samples=least, method="pearson", interval="percentile", quantiles="floor", resamples="per pair",
        clusters=None, rng=generator(given.get("seed", UNSEEDED)), n_resamples=given.get("bootstrapResamples", 500),
        reduction=given.get("reduction", "latest"),
    )  # fmt: skip
    by_rank = rubric_predictive_validity(
        frame, MemoryOutcomeStore(defined(given["outcomes"])), given["outcomeMetrics"], rubrics=given.get("rubrics"),
        min_samples=least, clusters=None, reduction=given.get("reduction", "latest"),
    )  # fmt: skip
    return {
        "joined": study.runs.n_used, "skipped": study.runs.losses["no_outcome"], "pairs": our_pairs(study, least),
        "ranked": [f"{pair.eval_metric} {pair.outcome_metric}" for pair in by_rank.ranked],
        "without": [*study.no_data, *study.insufficient],
    }  # fmt: skip


def our_curve(study):
    bins = study.curve.bins
    return {
        "n": study.n, "ece": number(study.curve.ece), "max_gap": number(study.curve.max_gap),
        "bins": [[number(v) for v in row] for row in bins[["lower", "upper", "n", "score_mean", "outcome_mean"]].values],
    }  # fmt: skip


def reference_curve(out, options):
    if out is None or "bins" not in out:
        return "none"
    bins = [[b["lower"], b["upper"], b["n"], b["evalMean"], b["outcomeMean"]] for b in out["bins"]]
    if options.get("binning") != "equal-frequency" and bins:
        bins[-1][1] -= 1e-9  # the reference reports the last edge with its tolerance
    return {
        "n": out["n"], "ece": number(out["ece"]), "max_gap": number(out["maxGap"]),
        "bins": [[number(v) for v in row] for row in bins],
    }  # fmt: skip


def curve_options(options):
    span = options.get("range")
    return {
        "bins": options.get("bins", 10), "binning": options.get("binning", "equal-width"),
        "span": None if span is None else (span["lo"], span["hi"]),
    }  # fmt: skip


def compare(name, case, generator):
    """Return the fields in which we differ, with our values: ``{}`` for parity."""
    options, out = case["input"].get("options") or {}, case.get("output")
    try:
        if name == "correlation_study":
            ours = run_correlation(case, generator)
        elif name == "rubric_validity":
            ours = run_rubrics(case, generator)
        elif name == "calibration":
            pairs = [(pair["evalScore"], pair["outcome"]) for pair in case["input"]["pairs"]]
            ours = our_curve(calibration_from_pairs(pairs, **curve_options(options)))
        else:
            metric = case["input"]["evalMetric"]["id"]
            ours = our_curve(
                calibration_curve(
                    *stores(case), metric, case["input"]["outcomeMetric"], clusters=None, min_lag_ms=-math.inf,
                    **curve_options(options),
                )
            )  # fmt: skip
    except (AnimaError, RuntimeError) as error:
        ours = "error"
        if not isinstance(error, AnimaError):
            ours = "boom"
    if "error" in case:
        theirs = case["error"]["message"]
    elif name == "correlation_study":
        theirs = {
            "joined": out["joinedSamples"], "skipped": out["skippedRuns"],
            "pairs": reference_pairs(out, ("evalMetric", "outcomeMetric"), "pearsonCi95"),
        }  # fmt: skip
    elif name == "rubric_validity":
        theirs = {
            "joined": out["joinedSamples"], "skipped": out["skippedRuns"],
            "pairs": reference_pairs(out, ("rubric", "outcome"), "ci95"),
            "ranked": [f"{row['rubric']} {row['bestOutcome']}" for row in out["ranked"]],
            "without": out["rubricsWithoutData"],
        }  # fmt: skip
    else:
        theirs = reference_curve(out, options)
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return {} if ours == theirs else {"result": ours}
    found = {key: ours[key] for key in ours if key != "pairs" and not same(ours[key], theirs[key])}
    for pair, values in ours.get("pairs", {}).items():
        held = theirs["pairs"].get(pair, {})
        found |= {f"{pair} {key}": value for key, value in values.items() if not same(value, held.get(key))}
    lost = set(theirs.get("pairs", {})) - set(ours.get("pairs", {}))
    return found | ({"not reported": sorted(lost)} if lost else {})


@pytest.mark.parametrize("name", FILES)
def test_reference_outputs_but_for_the_table(name, oracle_cases, mulberry32):
    cases = oracle_cases(name)
    found = {}
    for case in cases:
        if differences := compare(name, case, mulberry32):
            found[case["id"]] = differences
    listed = {key: {k: v for k, v in entry.items() if k != "reason"} for key, entry in TABLE.items()}
    listed = {key: entry for key, entry in listed.items() if key.rsplit("-", 1)[0] == name}
    assert {key: sorted(value) for key, value in found.items()} == {key: sorted(v) for key, v in listed.items()}
    for key, entry in listed.items():
        assert same(found[key], entry), key
    assert all(len(entry["reason"]) > 20 for entry in TABLE.values())
