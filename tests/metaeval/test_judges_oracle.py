"""Judge calibration, agreement and bias probes against the outputs of the reference package."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from anima.errors import InputError
from anima.metaeval import (
    calibrate_judge,
    calibrate_judge_continuous,
    continuous_agreement,
    corpus_agreement,
    positional_bias,
    self_preference,
    verbosity_bias,
)

pytestmark = pytest.mark.oracle
_PART = ("agreement", "bias", "judge_calibration")
TABLE = {
    case: entry
    for case, entry in tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8")).items()
    if case.rsplit("-", 1)[0] in _PART
}
FILES = ("judge_calibration", "agreement", "bias")


def number(value):
    """Return a number as the table writes it: rounded, NaN and None alike."""
    value = getattr(value, "value", value)
    return "nan" if value is None or math.isnan(value) else round(float(value), 9) + 0.0


def same(ours, theirs):
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float | int):
        return abs(ours - theirs) <= 1e-9
    return ours == theirs


class Restarting:
    """The generator of the reference package, which begins anew for each dimension (small data: one block each)."""

    def __init__(self, kind, seed):
        self.kind, self.seed = kind, seed

    def integers(self, low, high, *, size):
        return self.kind(self.seed).integers(low, high, size=size)


def panel_options(options, generator):
    given = {"interval": "percentile", "weights": options.get("weights", "quadratic")}
    given |= {"n_resamples": options.get("bootstrap", 1000), "level": options.get("ciLevel", 0.95)}
    return given | {"rng": Restarting(generator, options.get("seed", 0xC0FFEE))}


def ends(estimate):
    return [number(estimate.low), number(estimate.high)]


def our_panel(result):
    return {
        "n": result.n, "raters": result.raters, "weightedKappa": number(result.weighted_kappa), "icc": number(result.icc),
        "pearson": number(result.pearson), "spearman": number(result.spearman),
        "ci icc": ends(result.icc), "ci weightedKappa": ends(result.weighted_kappa),
    }  # fmt: skip


def reference_panel(out):
    numbers = {key: number(out[key]) for key in ("weightedKappa", "icc", "pearson", "spearman")}
    intervals = {f"ci {key}": [number(end) for end in out["ci"][key]] for key in ("icc", "weightedKappa")}
    return {"n": out["n"], "raters": out["raters"], **numbers, **intervals}


def worst(rows):
    return [[row["item"], number(row["judge"]), number(row["human"]), number(row["delta"])] for row in rows]


def run(case, generator):
    given, options = case["input"], case["input"].get("options") or {}
    function = case["function"]
    if function == "continuousAgreement":
        return our_panel(continuous_agreement(given["scores"], **panel_options(options, generator)))
    if function == "corpusInterRaterAgreement":
        result = corpus_agreement(
            given["records"], dimensions=options.get("dimensions"), judges=options.get("judges"),
            **panel_options(options, generator),
        )  # fmt: skip
        found = {
            f"{name} {key}": v for name, part in result.per_dimension.items() for key, v in our_panel(part).items()
        }
        items = {f"{name} items": list(items) for name, items in result.items.items()}
        overall = {"icc": number(result.overall_icc), "kappa": number(result.overall_weighted_kappa)}
        return found | items | overall | {"judges": list(result.judges)}
    if function.startswith("calibrateJudge"):
        if function.endswith("Continuous"):
            result = calibrate_judge_continuous(
                given["golden"], given["candidate"], **panel_options(options, generator)
            )
            more = {
                "weightedKappaContinuous": number(result.weighted_kappa_continuous), "icc": number(result.icc),
                "ci icc": ends(result.icc), "ci weightedKappa": ends(result.weighted_kappa_continuous),
                "spearman": number(result.agreement.spearman),
            }  # fmt: skip
        else:
            result, more = calibrate_judge(given["golden"], given["candidate"]), {}
        return {
            "n": result.n, "kappa": number(result.kappa), "pearson": number(result.pearson), "mae": number(result.mae),
            "worst": worst(result.worst.to_dict("records")), **more,
        }  # fmt: skip
    if function == "positionalBias":
        probe = positional_bias(given["scores"])
        return {"n": probe.accounting.n_used, "avgDelta": number(probe.estimate)}
    if function == "verbosityBias":
        probe = verbosity_bias(given["samples"], method="pearson")
        return {"n": probe.accounting.n_used, "pearson": number(probe.estimate)}
    probe = self_preference(given["samples"])
    inside, outside = (number(detail) for detail in probe.details)
    return {
        "n": probe.accounting.n_used, "inFamilyMean": inside, "outOfFamilyMean": outside,
        "deltaMean": number(probe.estimate),
    }  # fmt: skip


def reference(case):
    out, function = case["output"], case["function"]
    if function == "continuousAgreement":
        return reference_panel(out)
    if function == "corpusInterRaterAgreement":
        parts = out["perDimension"]
        found = {f"{part['dimension']} {key}": value for part in parts for key, value in reference_panel(part).items()}
        items = {f"{part['dimension']} items": part["itemIds"] for part in parts}
        overall = {"icc": number(out["overallIcc"]), "kappa": number(out["overallWeightedKappa"])}
        return found | items | overall | {"judges": out["judgeIds"]}
    if function.startswith("calibrateJudge"):
        rows = [{"item": w["itemId"], **w} for w in out["worstItems"]]
        found = {"n": out["n"], "worst": worst(rows), **{key: number(out[key]) for key in ("kappa", "pearson", "mae")}}
        if "ci" in out:
            found |= {key: number(out[key]) for key in ("weightedKappaContinuous", "icc", "spearman")}
            found |= {f"ci {key}": [number(end) for end in out["ci"][key]] for key in ("icc", "weightedKappa")}
        return found
    return {key: value if key == "n" else number(value) for key, value in out.items()}


def compare(name, case, generator):
    """Return the fields in which we differ, with our values: ``{}`` for parity."""
    try:
        ours = run(case, generator)
    except InputError:
        ours = "error"
    if ours == "error" or "error" in case:
        return {} if ours == "error" and "error" in case else {"result": ours}
    theirs = reference(case)
    return {key: ours[key] for key in ours if not same(ours[key], theirs[key])}


@pytest.mark.parametrize("name", FILES)
def test_reference_outputs_but_for_the_table(name, oracle_cases, mulberry32):
    found = {}
    for case in oracle_cases(name):
        if differences := compare(name, case, mulberry32):
            found[case["id"]] = differences
    listed = {key: {k: v for k, v in entry.items() if k != "reason"} for key, entry in TABLE.items()}
    listed = {key: entry for key, entry in listed.items() if key.rsplit("-", 1)[0] == name}
    assert {key: sorted(value) for key, value in found.items()} == {key: sorted(v) for key, v in listed.items()}
    for key, entry in listed.items():
        for field, value in entry.items():
            ours = found[key][field]
            assert ours == value if isinstance(value, dict) else same(ours, value), (key, field)
    assert all(len(entry["reason"]) > 20 for entry in TABLE.values())
