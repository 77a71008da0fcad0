"""Evaluation and calibration on a toy world whose right numbers are computed by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from anima.authenticity import UNCLASSIFIED, catalogue, chain_match, lcs_length, load_golden
from anima.authenticity.calibrate import calibrate, pole_background
from anima.authenticity.evaluate import (
    align,
    chain_ceiling,
    evaluate,
    evaluate_analyses,
    jaccard,
    macro_f1,
    marker_coverage,
    suggest_threshold,
)
from anima.errors import InputError
from anima.stats import confusion_terms

if TYPE_CHECKING:
    from pathlib import Path

CHAINS = st.lists(st.sampled_from("ABC"), max_size=8)


@given(CHAINS, CHAINS)
def test_lcs_against_brute_force(a: list[str], b: list[str]) -> None:
    @cache
    def brute(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return 0
        skip = max(brute(i + 1, j), brute(i, j + 1))
        return max(skip, 1 + brute(i + 1, j + 1)) if a[i] == b[j] else skip

    assert lcs_length(a, b) == lcs_length(b, a) == brute(0, 0)
    assert chain_match(a, b) <= chain_ceiling(a, b) <= 1
    assert chain_match(a, a) == bool(a)
    assert 0 <= jaccard(a, b) <= 1


def test_figures_by_hand() -> None:
    assert chain_match(["A", "B", "C"], ["A", "C"]) == pytest.approx(2 / 3)
    assert chain_ceiling(["A", "B", "C"], ["A", "C"]) == pytest.approx(2 / 3)
    assert jaccard(["A", "B", "B"], ["B", "A"]) == pytest.approx(2 / 3)
    assert chain_match([], []) == jaccard([], []) == 0
    assert marker_coverage(["M", "M", "X"], ["M", "Y"]) == 0.5
    assert marker_coverage(["M"], []) == 0
    for average, step in ((0.39, -0.10), (0.40, -0.05), (0.60, 0.0), (0.85, 0.0), (0.86, 0.05)):
        assert suggest_threshold(average, 0.5) == pytest.approx(0.5 + step)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_macro_f1_against_sklearn(pairs: list[tuple[int, int]]) -> None:
    """Over all labels but the last; labels that neither occur nor are predicted are left out."""
    truth, found = np.array(pairs).T
    present = sorted({*truth.tolist(), *found.tolist()} - {4})
    ours = macro_f1(confusion_terms(truth, found, 5).sum(axis=0)[None], 5)[0]
    if present:
        assert ours == pytest.approx(f1_score(truth, found, labels=present, average="macro", zero_division=0))
    else:
        assert math.isnan(ours)


# The toy embedder names intents; what the golden set says of each sentence is given beside it.
REPLIES = [
    # VALIDATE found, plain found, EXPAND missed (said PROBE), marker found, another invented
    ("Great question to validate! Nothing here to see. We probe this one.", ["VALIDATE", UNCLASSIFIED, "EXPAND"], ["SUPERLATIVE_VALIDATION"], "certainty"),
    # CLOSE found, plain wrongly given ALIGN, one sentence disputed
    ("We close this now. We align on that. Bread rises slowly.", ["CLOSE", UNCLASSIFIED, None], ["DUAL_ANGLE"], "none"),
    # certainty shown and labelled doubt; nothing to find
    ("It is certain and certain again.", [UNCLASSIFIED], [], "doubt"),
]  # fmt: skip


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "toy.jsonl"
    lines = []
    for i, (response, intents, markers, pole) in enumerate(REPLIES):
        cut = [piece + mark for piece, mark in _sentences(response)]
        sentences = [{"text": text, "intent": intent} for text, intent in zip(cut, intents, strict=True)]
        row = {
            "id": f"r{i}",
            "response": response,
            "sentences": sentences,
            "markers": markers,
            "suppressed": [],
            "pole": pole,
        }
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines))
    return path


def _sentences(text: str) -> list[tuple[str, str]]:
    import re

    return [(found[1].strip(), found[2]) for found in re.finditer(r"([^.!]+)([.!])", text)]


@pytest.mark.filterwarnings("ignore::anima.errors.DegenerateDataWarning")
def test_an_evaluation_by_hand(toy: Any, golden: Path) -> None:
    found = evaluate(toy(), golden, n_resamples=50)
    value = {name: estimate.value for name, estimate in found.estimates.items()}
    # six scored sentences; right: VALIDATE, plain, CLOSE, plain (the third reply)
    assert value["sentence accuracy"] == pytest.approx(4 / 6)
    # VALIDATE 1, CLOSE 1, EXPAND 0, PROBE 0, ALIGN 0; the plain label is no part of it
    assert value["macro-F1"] == pytest.approx(2 / 5)
    assert found.estimates["sentence accuracy"].extra["trivial_baseline"] == pytest.approx(3 / 6)
    # chains: V·U·P against V·U·E; C·A·U against C·U (the disputed one is left out); U against U
    assert found.rows["chain_match"].tolist() == pytest.approx([2 / 3, 2 / 3, 1])
    assert found.rows["chain_ceiling"].tolist() == pytest.approx([1, 2 / 3, 1])
    assert found.rows["jaccard"].tolist() == pytest.approx([2 / 4, 2 / 3, 1])
    assert value["chain match"] == pytest.approx(7 / 9)
    # none of the first two shows a pole, the third shows certainty: only the second is as labelled
    assert value["pole accuracy"] == pytest.approx(1 / 3)
    row = found.per_intent.set_index("intent").loc["VALIDATE"]
    assert (row["precision"], row["recall"], row["f1"], row["support"]) == (1, 1, 1, 1)
    assert found.per_intent["support"].sum() == found.confusion.sum() == 6
    assert found.suggested_threshold == 0.5
    assert found.estimates["macro-F1"].n == 6
    assert "macro-F1" in found.summary()
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.to_frame()) == len(found.estimates)


def test_markers_by_hand(toy: Any, golden: Path) -> None:
    found = evaluate(toy(), golden, n_resamples=50)
    rows = found.rows
    assert rows["marker_fn"].tolist() == [0, 1, 0]
    assert rows["marker_tp"].tolist() == [1, 0, 0]
    fp = int(rows["marker_fp"].sum())
    value = {name: estimate.value for name, estimate in found.estimates.items()}
    assert value["marker precision"] == pytest.approx(1 / (1 + fp))
    assert value["marker recall"] == pytest.approx(1 / 2)
    assert value["marker F1"] == pytest.approx(2 / (2 + fp + 1))
    assert found.estimates["marker suppression"].status == "undefined"
    assert found.to_dict()["overall_marker"] == pytest.approx(round(1 / 3, 3))


def test_disputed_and_suppressed_markers(toy: Any, tmp_path: Path) -> None:
    """Disputed ones count neither for nor against; suppressing means not reporting, whether the wording was seen or not."""
    text = "This is not a great question. Nothing here."
    rows = [
        {"id": "a", "response": text, "sentences": [], "suppressed": ["SUPERLATIVE_VALIDATION", "DUAL_ANGLE"]},
        {
            "id": "b",
            "response": "Great question! Nothing here.",
            "sentences": [],
            "suppressed": ["SUPERLATIVE_VALIDATION"],
        },
        {
            "id": "c",
            "response": "What a great question it is. Nothing here.",
            "sentences": [],
            "markers": ["DUAL_ANGLE"],
            "disputed_markers": ["SUPERLATIVE_VALIDATION", "DUAL_ANGLE"],
        },
    ]
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = evaluate(toy(), path, n_resamples=20).rows
    assert found["suppressed_gold"].tolist() == [2, 1, 0]
    assert found["suppressed_ok"].tolist() == [2, 0, 0]
    assert found["suppressed_seen"].tolist() == [1, 0, 0]
    assert "SUPERLATIVE_VALIDATION" in found["detected_markers"][1]
    assert found["detected_markers"][2] == ""
    assert found.loc[2, ["marker_tp", "marker_fp", "marker_fn"]].tolist() == [0, 0, 0]


def test_sentences_are_aligned_by_overlap(toy: Any, golden: Path) -> None:
    reply = load_golden(golden)[0]
    assert align(reply, toy().analyze(reply.response)) == ["VALIDATE", UNCLASSIFIED, "PROBE"]
    assert align(reply, toy().analyze("")) == [UNCLASSIFIED] * 3


@pytest.mark.filterwarnings("ignore::anima.errors.DegenerateDataWarning")
def test_an_intent_outside_the_catalogue_is_never_right(toy: Any, golden: Path) -> None:
    replies = load_golden(golden)
    analyses = toy().analyze_many([reply.response for reply in replies])
    known = evaluate_analyses(replies, analyses, n_resamples=50)
    # A folder's own intent in the place of every plain label: as many right answers less, as many false alarms more.
    renamed = [
        replace(a, steps=tuple(replace(s, intent="OWN") if s.intent == UNCLASSIFIED else s for s in a.steps))
        for a in analyses
    ]
    found = evaluate_analyses(replies, renamed, n_resamples=50)
    assert found.labels[-2:] == ("OWN", UNCLASSIFIED)
    plain = known.confusion[-1, -1]
    assert plain == 2
    lost = known.estimates["sentence accuracy"].value - found.estimates["sentence accuracy"].value
    assert lost == pytest.approx(plain / 6)
    own = found.per_intent.set_index("intent").loc["OWN"]
    assert (own["support"], own["f1"]) == (0, 0)


def test_a_set_without_labelled_sentences_is_measured_by_its_chains(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "golden_tests.json"
    path.write_text(
        json.dumps(
            {"tests": [{"response": "We validate it. We close it.", "expected_intent_chain": ["VALIDATE", "CLOSE"]}]}
        )
    )
    found = evaluate(toy(), path, n_resamples=20)
    assert found.estimates["chain match"].value == 1
    assert "macro-F1" not in found.estimates
    assert found.suggested_threshold == pytest.approx(0.55)
    assert found.summary().startswith("golden_tests (1 replies, centroid, anima rules, toy-1): chain match = 1.000")
    json.dumps(found.to_dict(), allow_nan=False)
    swept = calibrate(toy(), path, [0.3, 0.95, 0.999])
    assert swept.criterion == "chain match"


def test_nothing_to_measure(toy: Any) -> None:
    with pytest.raises(InputError, match="golden holds no reply"):
        evaluate(toy(), [])
    with pytest.raises(InputError, match="golden holds no reply"):
        calibrate(toy(), [])
    with pytest.raises(InputError, match="as many and at least one, got 0 and 0"):
        evaluate_analyses([], [])


def test_a_threshold_is_chosen_by_hand(toy: Any, tmp_path: Path) -> None:
    """A sentence that names its intent has cosine 1 to it; one that names four has 0.5. The cut must fall between, ties go up."""
    response = "We validate this. We probe, repair, calibrate, and close this."
    cut = ["We validate this.", "We probe, repair, calibrate, and close this."]
    row = {
        "id": "r",
        "response": response,
        "sentences": [{"text": cut[0], "intent": "VALIDATE"}, {"text": cut[1], "intent": UNCLASSIFIED}],
    }
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps(row))
    found = calibrate(toy(), path, [0.2, 0.45, 0.7, 0.9])
    assert found.best == (0.9,)
    assert found.previous == (0.5,)
    assert found.points["macro-F1"].tolist() == pytest.approx([0.5, 0.5, 1, 1])
    assert found.points["unclassified_pct"].tolist() == [0, 0, 0.5, 0.5]
    assert found.profile.intent_threshold == 0.9
    assert "macro-F1 1.000 on 1 golden replies" in found.profile.obtained
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_dict()["best_threshold"] == 0.9
    assert "0.900" in found.summary()


@pytest.mark.filterwarnings("ignore::anima.errors.DegenerateDataWarning")
def test_what_is_not_labelled_is_no_mismatch(toy: Any, tmp_path: Path) -> None:
    text = "Validate this now."
    rows = [
        {"id": "a", "response": text, "sentences": [{"text": text, "intent": "VALIDATE"}]},
        {"id": "b", "response": text, "sentences": []},
        {"id": "c", "response": text, "sentences": [{"text": text, "intent": None}]},
    ]
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = evaluate(toy(), path, n_resamples=50)
    assert (found.estimates["chain match"].value, found.estimates["chain match"].n) == (1, 1)
    assert found.rows["chain_match"].isna().tolist() == [False, True, True]
    json.dumps(found.to_dict(), allow_nan=False)
    assert calibrate(toy(), path, [0.2, 0.4]).points["overall_chain"].tolist() == [1, 1]
    for kept in rows[1:]:  # nothing to go by: no threshold can be better than another
        path.write_text(json.dumps(kept))
        alone = evaluate(toy(), path, n_resamples=50)
        assert alone.estimates["chain match"].status == "undefined"
        assert "undefined" in alone.summary()
        json.dumps(alone.to_dict(), allow_nan=False)
        with pytest.raises(InputError, match="golden labels no intent"):
            calibrate(toy(), path, [0.2, 0.4])


def test_pole_cuts_are_quantiles_of_the_reference(toy: Any, tmp_path: Path) -> None:
    texts = {
        "certainty": "It is certain, wholly certain.",
        "doubt": "It is doubtful, very doubtful.",
        "none": "Bread rises slowly.",
    }
    rows = [
        {"id": f"{pole}{i}", "response": text, "sentences": [], "pole": pole}
        for pole, text in texts.items()
        for i in range(3)
    ]
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    instrument = toy()
    found = calibrate(instrument, path, [0.1, 0.3], target="poles")
    low, high = found.best
    background = pole_background(instrument)
    assert low == pytest.approx(np.quantile(background, found.points["low_tail"][0]))
    assert low <= high
    assert found.score.value == 1
    assert found.profile.pole_low == low
    assert found.to_dict()["best_threshold"] == [low, high]
    json.dumps(found.to_dict(), allow_nan=False)
    # two sweeps into one profile, as `anima calibrate` does
    other = replace(
        found.profile, intent_threshold=0.77, pole_low=-1, pole_high=1, obtained="intent_threshold: by hand"
    )
    both = found.with_profile(other).profile
    assert (both.intent_threshold, both.pole_low, both.pole_high) == (0.77, low, high)
    assert [line.partition(":")[0] for line in both.obtained.splitlines()] == ["intent_threshold", "poles"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": [2]}, r"grid\[0\] must lie in \[-1, 1\], got 2"),
        ({"grid": 0.5}, "grid must be a list of numbers, got float 0.5"),
        ({"grid": "0.5"}, "grid must be a list of numbers, got str '0.5'"),
        ({"grid": ["a"]}, r"grid\[0\] must be a number"),
        ({"grid": [0.7], "target": "poles"}, r"grid must lie in \(0, 0.5\], got 0.7"),
        ({"target": "markers"}, "target must be one of 'intent', 'poles'"),
    ],
)
def test_bad_options(toy: Any, golden: Path, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(toy(), golden, **options)


def test_a_set_without_poles_cannot_calibrate_them(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps({"id": "r", "response": "x y z", "sentences": []}))
    with pytest.raises(InputError, match="golden labels no pole"):
        calibrate(toy(), path, target="poles")


def test_every_intent_has_its_row(toy: Any, golden: Path) -> None:
    found = evaluate(toy(), golden, n_resamples=20)
    assert found.labels == (*catalogue(), UNCLASSIFIED)
    assert found.per_intent["intent"].tolist() == list(found.labels)
