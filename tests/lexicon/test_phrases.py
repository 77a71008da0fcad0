"""Phrases learnt from labelled dialogues: honest, reproducible, editable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, precision_score, recall_score

from anima.errors import DataError, InputError
from anima.lexicon import PhraseLexicon, learn
from anima.lexicon.phrases import Phrase

if TYPE_CHECKING:
    from pathlib import Path

ASKING = ["What do you need?", "Do you need {}?", "So, which {} do you prefer?", "Tell me what you need"]
OTHER = [
    "I need {}.",
    "We took the {} and left",
    "Hello there!",
    "You can have the {}",
    "The {} is what I prefer",
    "No {} for me?",
]
THINGS = ["water", "food", "firewood", "ropes"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = []
    for dialogue in range(40):
        for _ in range(8):
            asks = rng.random() < 0.3
            text = rng.choice(ASKING if asks else OTHER).format(rng.choice(THINGS))
            rows.append(
                {"dialogue_id": str(dialogue), "text": text, "asks": bool(asks), "noise": bool(rng.random() < 0.3)}
            )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def learnt(frame: pd.DataFrame) -> PhraseLexicon:
    return learn(frame, "asks", n_resamples=200)


def test_finds_the_phrases(learnt: PhraseLexicon) -> None:
    phrases = [item.phrase for item in learnt.phrases]
    assert len(phrases) < 8
    assert learnt.predict(["Do you need a tent?", "WHAT DO YOU NEED", "I need a tent."]).tolist() == [True, True, False]
    assert learnt.held_out is not None
    assert learnt.held_out.kappa.value > 0.9
    assert learnt.held_out.kappa.n_clusters == 40


def test_counts_are_those_of_the_utterances(frame: pd.DataFrame, learnt: PhraseLexicon) -> None:
    for item in learnt.phrases:
        there = PhraseLexicon("asks", (item,), {}).predict(frame["text"])
        assert (item.n, item.hits) == (there.sum(), (there & frame["asks"]).sum())


def test_scores_agree_with_scikit_learn(frame: pd.DataFrame, learnt: PhraseLexicon) -> None:
    few = PhraseLexicon("asks", learnt.phrases[:1], {})
    truth, predicted = frame["asks"], few.predict(frame["text"])
    scores = few.score(frame, n_resamples=100)
    oracle = {"precision": precision_score, "recall": recall_score, "f1": f1_score, "kappa": cohen_kappa_score}
    for name, function in oracle.items():
        assert getattr(scores, name).value == pytest.approx(function(truth, predicted))
    assert scores.precision.n_clusters == 40
    assert not scores.held_out


def test_a_label_that_is_noise_scores_nothing_held_out(frame: pd.DataFrame) -> None:
    """The estimate is nested: bars chosen on kappa do not leak into it, however many are tried."""
    result = learn(
        frame, "noise", min_precision=(0.2, 0.3, 0.4, 0.5), prior=(0.0, 1.0, 4.0), min_support=2, n_resamples=200
    )
    assert result.held_out is not None
    assert result.held_out.kappa.low < 0.05
    assert result.held_out.kappa.value < 0.15


def test_no_dialogue_is_trained_and_tested_at_once() -> None:
    """Each dialogue has a wording of its own that always bears the label: learnable only from itself."""
    letters = "abcdefghij"
    rows = [
        {"dialogue_id": letter, "text": f"{letter * 3} {word}", "own": word == "yes"}
        for letter in letters for word in ("yes", "yes", "yes", "no", "no") for letter in [letter]
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame["text"] = [
        text.replace("yes", "").replace("no", "other") + ("" if own else " thing")
        for text, own in zip(frame["text"], frame["own"], strict=True)
    ]
    frame.loc[frame["own"], "text"] = (
        frame.loc[frame["own"], "text"].str.strip() + " " + frame.loc[frame["own"], "dialogue_id"] + "q"
    )
    result = learn(frame, "own", n_resamples=50)
    assert len(result) > 0
    assert result.predict(frame["text"]).sum() == frame["own"].sum()
    assert result.held_out is not None
    assert result.held_out.recall.value == 0


def test_the_seed_decides(frame: pd.DataFrame, learnt: PhraseLexicon) -> None:
    again = learn(frame.sample(frac=1, random_state=1).sort_index(), "asks", n_resamples=200)
    assert again.to_dict() == learnt.to_dict()


def test_fixed_bars_are_the_plain_rule(frame: pd.DataFrame) -> None:
    result = learn(frame, "asks", min_precision=0.6, prior=0, min_support=5, folds=0)
    assert result.held_out is None
    assert "not measured" in result.summary()
    for item in result.phrases:
        assert item.n >= 5


def test_toml_round_trip_and_hand_editing(learnt: PhraseLexicon, tmp_path: Path) -> None:
    path = tmp_path / "asks.toml"
    text = learnt.to_toml(path)
    back = PhraseLexicon.from_toml(path)
    assert (back.label, back.phrases, back.settings) == (learnt.label, learnt.phrases, learnt.settings)
    assert back.held_out is None
    edited = PhraseLexicon.from_toml(text + '# mine\n"(could|would) you [please] spare" = { note = "by hand" }\n')
    assert edited.phrases[-1] == Phrase("(could|would) you [please] spare", note="by hand")
    assert edited.predict(["Would you spare one?", "I would spare you"]).tolist() == [True, False]
    assert PhraseLexicon.from_toml(edited.to_toml()).phrases == edited.phrases


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[phrases]\n", "needs a field 'label'"),
        ('label = "x"\n', "table \\[phrases\\]"),
        ('label = "x"\n[phrases]\n"a" = 3\n', 'phrases."a" must be'),
        ('label = "x"\n[phrases]\n"a" = { m = 3 }\n', 'phrases."a" must be'),
        ('label = "x"\n[phrases]\n"(a" = { n = 3 }\n', "not closed"),
        ('label = "x"\n[phrases]\n"a" = { hits = "3", n = 4 }\n', 'phrases."a": hits and n must be whole'),
        ('label = "x"\n[phrases]\n"a" = { hits = 5, n = 4 }\n', "0 ≤ hits ≤ n"),
        ('label = "x"\n[phrases]\n"a" = { note = 3 }\n', "note a text"),
        ('label = "x"\nsettings = 3\n[phrases]\n', "'settings' must be a table"),
        ('label = "x"\nphrase = 1\n[phrases]\n', "unknown field 'phrase'"),
        ('label = "x\n[phrases]\n', "not TOML"),
    ],
)
def test_a_bad_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        PhraseLexicon.from_toml(text)


def test_what_cannot_be_learnt_from_is_named() -> None:
    frame = pd.DataFrame({"text": ["a b"] * 8, "y": [True, False] * 4, "dialogue_id": [1.0, np.nan, 2, 3, 4, 5, 6, 7]})
    with pytest.raises(InputError, match="column 'dialogue_id' is missing in row 1"):
        learn(frame, "y")
    with pytest.raises(InputError, match="utterances has no row"):
        learn(frame.iloc[:0], "y")
    with pytest.raises(InputError, match="must hold one value each"):
        learn(frame, "y", min_precision=[])


def test_hits_point_into_the_original(learnt: PhraseLexicon) -> None:
    text = "Well… what do you need, then?"
    for hit in learnt.scan([text])[0]:
        assert text[slice(*hit.span)] == hit.text
        assert (hit.category, hit.register, hit.evidence) == ("asks", "learnt", "measured held-out")


def test_shown(learnt: PhraseLexicon) -> None:
    assert "phrases for asks" in str(learnt)
    assert "<table>" in learnt._repr_html_()
    assert list(learnt.to_frame().columns) == ["phrase", "n", "hits", "note"]
    json.dumps(learnt.to_dict())
    assert "<b>" not in PhraseLexicon("<b>", (Phrase("<b>"),), {})._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "missing"}, "lacks the column 'missing'"),
        ({"label": "text"}, "must hold True and False"),
        ({"label": "all"}, "is True everywhere"),
        ({"folds": 90}, "40 groups in 'dialogue_id', 90 folds need at least 90: lower folds"),
        ({"folds": 1}, "folds must be 0 .* or at least 2, got 1"),
        ({"min_support": 0}, "min_support"),
        ({"min_precision": 1.5}, "min_precision"),
    ],
)
def test_bad_arguments(frame: pd.DataFrame, change: dict, message: str) -> None:
    options = {"label": "asks"} | change
    with pytest.raises(InputError, match=message):
        learn(frame.assign(all=True), **options)


@pytest.mark.parametrize(
    ("folds", "groups", "bars"),
    [(0, 2, 2), (2, 4, 2), (3, 3, 2), (4, 4, 2), (5, 5, 2), (0, 1, 1), (2, 2, 1), (3, 3, 1)],
)
def test_fewest_groups(folds: int, groups: int, bars: int) -> None:
    frame = pd.DataFrame({
        "dialogue_id": [k % groups for k in range(60)],
        "text": ["what do you need" if k // groups % 2 else "it rains here" for k in range(60)],
    })  # fmt: skip
    frame["y"] = frame["text"].str.startswith("what")
    options = {"folds": folds, "prior": [2.0, 4.0][:bars], "min_precision": 0.5, "n_resamples": 20}
    learnt = learn(frame, "y", **options)
    assert learnt.phrases
    assert (learnt.held_out is None) == (folds == 0)
    if groups > 1:
        with pytest.raises(InputError, match="lower folds" if folds > 2 else "give more groups"):
            learn(frame[frame["dialogue_id"] < groups - 1], "y", **options)


@pytest.mark.corpora
def test_preference_questions_of_real_dialogues_held_out(corpora_dir: Path) -> None:
    rows = []
    for part in ("train", "valid", "test"):
        for dialogue in json.loads((corpora_dir / "casino" / f"casino_{part}.json").read_text(encoding="utf-8")):
            rows += [
                (str(dialogue["dialogue_id"]), text, "elicit-pref" in labels.split(","))
                for text, labels in dialogue["annotations"]
            ]
    frame = pd.DataFrame(rows, columns=["dialogue_id", "text", "elicit-pref"])
    result = learn(frame, "elicit-pref")
    assert result.held_out is not None
    assert result.held_out.kappa.n == 4615
    assert result.held_out.kappa.value >= 0.55
    assert len(result) < 60


def test_a_label_is_named_not_given(frame: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="label must be the name of a column of utterances, got Series; put it into"):
        learn(frame, frame.iloc[:, 0])
    with pytest.raises(InputError, match="groups must be the name of a column of utterances, got NoneType"):
        learn(frame, "x", groups=None)
