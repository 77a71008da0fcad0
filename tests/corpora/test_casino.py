"""CaSiNo: exact counts on the corpus, and what each row of a small dialogue becomes."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from anima.corpora import load_corpus

if TYPE_CHECKING:
    from pathlib import Path

    from anima.corpora import Corpus


@pytest.fixture(scope="module")
def casino(corpora_dir: Path) -> Corpus:
    return load_corpus("casino", sample=False)


@pytest.mark.corpora
def test_counts(casino: Corpus) -> None:
    buttons = casino.utterances[casino.utterances["kind"] == "button"]
    report = casino.report
    assert (report.dialogues, report.utterances, report.annotated) == (1030, 14297, 4615)
    assert (report.duplicate_texts, report.stray_commas, report.empty_texts) == (93, 1, 0)
    counts = {"Submit-Deal": 1181, "Accept-Deal": 1005, "Reject-Deal": 167, "Walk-Away": 25}
    assert buttons["text"].value_counts().to_dict() == counts
    annotated = casino.dialogues[casino.dialogues["annotated"]]
    assert annotated["split"].value_counts().to_dict() == {"train": 347, "test": 42, "valid": 7}
    frame = casino.labelled("strategy")
    assert frame["split"].value_counts().to_dict() == {"train": 4047, "test": 492, "valid": 76}
    several = frame[list(casino.label_names("strategy"))].sum(axis=1)
    assert several.min() == 1
    assert (several > 1).mean() == pytest.approx(0.210, abs=5e-4)
    assert casino.provenance.verified


@pytest.mark.corpora
@pytest.mark.oracle
def test_label_counts_equal_the_table(casino: Corpus, oracle: Path) -> None:
    with (oracle / "oracle" / "findings" / "casino_label_counts.csv").open(newline="", encoding="utf-8") as handle:
        expected = {row["label"]: int(row["n_utterances"]) for row in csv.DictReader(handle) if row["label"]}
    frame = casino.labelled("strategy")
    assert {name: int(frame[name].sum()) for name in casino.label_names("strategy")} == expected
    assert casino.labels["label"].value_counts().to_dict() == expected


@pytest.mark.corpora
def test_outcomes_are_complete(casino: Corpus) -> None:
    table = casino.outcomes.pivot_table(index=["dialogue_id", "speaker"], columns="name", values="value")
    assert len(table) == 2060
    assert not table.isna().any(axis=None)
    assert table["satisfaction"].value_counts().to_dict() == {5: 951, 4: 787, 2: 182, 3: 89, 1: 51}
    assert table["opponent_likeness"].value_counts().to_dict() == {5: 991, 4: 643, 3: 174, 2: 169, 1: 83}
    assert table["points"].between(0, 36).all()


def test_rows_of_a_dialogue(casino_folder: Path) -> None:
    corpus = load_corpus(casino_folder)
    first = corpus.utterances[corpus.utterances["dialogue_id"] == "0"]
    assert first["utterance_id"].tolist() == ["0:0", "0:1", "0:2", "0:3"]
    assert first["reply_to"].tolist() == ["", "0:0", "0:1", "0:2"]
    assert first["kind"].tolist() == ["message"] * 3 + ["button"]
    assert first["annotated"].tolist() == [True, True, False, False]
    labels = corpus.labels[corpus.labels["dialogue_id"] == "0"]
    found = list(zip(labels["utterance_id"], labels["label"], strict=True))
    assert found == [("0:0", "small-talk"), ("0:1", "self-need"), ("0:1", "elicit-pref")]
    assert corpus.report.stray_commas == 3
    assert "3 messages of annotated dialogues" in corpus.provenance.dropped[0]
    assert not corpus.provenance.verified
    own = corpus.speakers.loc[0, ["high", "reason_low", "age", "svo", "emotional_stability"]].tolist()
    assert own == ["Water", "a stove", 30, "proself", 4.0]


def test_splits_are_selected(casino_folder: Path) -> None:
    corpus = load_corpus(casino_folder)
    part = corpus.select("valid")
    assert set(part.utterances["dialogue_id"]) == set(part.labels["dialogue_id"]) == {"1"}
    assert part.labelled("strategy")["split"].tolist() == ["valid", "valid"]
    assert part.hash == corpus.hash
    assert (part.report.dialogues, part.report.utterances, part.report.annotated) == (1, 4, 2)
    assert part.report.stray_commas == corpus.report.stray_commas
    assert part.summary().startswith("casino: 1 dialogues, 4 utterances, 2 annotated")
