"""DeliData: exact counts and group outcomes on the corpus, and what each row of a small group becomes."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

import pytest

from anima.corpora import load_corpus

if TYPE_CHECKING:
    from pathlib import Path

    from anima.corpora import Corpus

OUTCOMES = (
    "tp_initial", "tp_final", "tp_last_msg", "tp_max", "gain", "exact_initial", "exact_last_submit", "gain_exact"
)  # fmt: skip


@pytest.fixture(scope="module")
def delidata(corpora_dir: Path) -> Corpus:
    return load_corpus("delidata", sample=False)


@pytest.mark.corpora
def test_counts(delidata: Corpus) -> None:
    rows = delidata.utterances
    assert rows["kind"].value_counts().to_dict() == {"message": 14003, "submit": 3107, "initial": 500}
    report = delidata.report
    assert (report.dialogues, report.utterances, report.annotated, report.empty_texts) == (500, 17610, 13592, 6)
    assert (rows[rows["kind"] == "message"]["solution"].map(len) > 0).sum() == 6272
    assert any(text.startswith("411 messages have the annotation type") for text in delidata.provenance.dropped)
    probing = delidata.labels[delidata.labels["label"] == "Probing"]["utterance_id"]
    assert (rows[rows["utterance_id"].isin(probing)]["solution"].map(len) > 0).sum() == 765
    assert not rows["text"].str.contains("''").any()
    assert len(delidata.labelled("additional")) == len(delidata.labelled("type")) == 13592


@pytest.mark.corpora
@pytest.mark.oracle
def test_label_counts_equal_the_table(delidata: Corpus, oracle: Path) -> None:
    with (oracle / "oracle" / "findings" / "delidata_label_counts.csv").open(newline="", encoding="utf-8") as handle:
        table = {(row["field"], row["label"]): int(row["n"]) for row in csv.DictReader(handle)}
    for scheme in delidata.schemes:
        found = delidata.labels[delidata.labels["scheme"] == scheme]["label"].value_counts().to_dict()
        expected = {label: n for (field, label), n in table.items() if field == f"annotation_{scheme}" and label != "0"}
        if scheme == "target":  # the table counts the cell "0", which is the label None when the message is annotated
            expected["None"] += table["annotation_target", "0"] - table["annotation_type", "0"]
        assert found == expected


@pytest.mark.corpora
@pytest.mark.oracle
def test_outcomes_equal_the_table(delidata: Corpus, oracle: Path) -> None:
    groups = delidata.outcomes[delidata.outcomes["speaker"] == ""]
    found = groups.pivot_table(index="dialogue_id", columns="name", values="value", dropna=False)
    with (oracle / "oracle" / "findings" / "delidata_groups.csv").open(newline="", encoding="utf-8") as handle:
        table = list(csv.DictReader(handle))
    assert len(table) == len(found) == 500
    for row in table:
        for name in OUTCOMES:
            expected = float(row[name]) if row[name] else math.nan
            assert found.loc[row["group_id"], name] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    gain = found["gain"]
    assert ((gain > 0).sum(), (gain == 0).sum(), (gain < 0).sum()) == (318, 94, 88)
    correct = delidata.outcomes[delidata.outcomes["name"] == "correct"]["value"]
    assert correct.mean() == pytest.approx(0.334, abs=5e-4)


def test_rows_of_a_group(delidata_folder: Path) -> None:
    corpus = load_corpus(delidata_folder)
    rows = corpus.utterances.set_index("utterance_id")
    assert rows.index.tolist() == ["g1:-1", "m1", "m2", "m3", "m4"]
    assert rows.loc["m1", "text"] == 'I\'d say "2"'
    assert rows.loc["m2", "text"] == "NA"
    assert rows.loc["m3", "text"] == "None"
    assert rows["solution"].tolist() == [(), ("2",), (), ("A",), ("A", "7")]
    assert rows.loc["m3", "state"] == {"Fox": ("A",), "Owl": ("2",)}
    assert rows["annotated"].tolist() == [False, True, True, False, False]
    both = corpus.labelled("additional")[["partial_solution", "complete_solution"]].values.tolist()
    assert both == [[True, False], [False, False]]
    assert corpus.labelled("target")["None"].tolist() == [False, True]
    values = corpus.outcomes.set_index(["speaker", "name"])["value"]
    expected = {"exact_initial": 0.5, "exact_last_submit": 1.0, "gain": 0.5, "tp_last_msg": 0.75}
    assert values[""][list(expected)].to_dict() == expected
    assert values[("Fox", "correct")] == 1.0
    assert corpus.dialogues.loc[0, "correct"] == ("7", "A")
    assert corpus.speakers["submitted"].tolist() == [("A", "7"), None]


def test_states_of_two_rows_are_not_one_object(delidata_folder: Path) -> None:
    states = load_corpus(delidata_folder).utterances["state"]
    states[0]["Fox"] = ()
    assert states[1]["Fox"] == ("7", "A")


def test_a_group_without_submission_has_no_final_share(delidata_folder: Path) -> None:
    path = delidata_folder / "delidata_corpus" / "g1"
    path.write_text("\n".join(path.read_text(encoding="utf-8").split("\n")[:-2]) + "\n", encoding="utf-8")
    outcomes = load_corpus(delidata_folder).outcomes.set_index("name")["value"]
    assert math.isnan(outcomes["exact_last_submit"])
    assert math.isnan(outcomes["gain_exact"])
    assert "correct" not in outcomes
