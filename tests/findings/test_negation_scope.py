"""The finding on negation: its definitions by hand, its counts on the corpora, and the run on written samples."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from anima.authenticity import load_golden
from anima.findings import negation_polarity as polarity
from anima.findings import negation_scope as finding
from anima.findings.negspacy import negspacy
from anima.negation.score import Sentence, ours, score

if TYPE_CHECKING:
    from anima.stats import Estimate


def _sentence(text: str, *gold: str) -> Sentence:
    tokens, offsets, at = text.split(), [], 0
    for token in tokens:
        offsets.append((at, at + len(token)))
        at += len(token) + 1
    return Sentence(text, tokens, offsets, frozenset(tokens.index(word) for word in gold))


def _part(*sentences: Sentence, **options: object) -> finding.Part:
    ids = [f"s{i}" for i in range(len(sentences))]
    return finding.Part("x", "hand-made", "en", "test", list(sentences), ids, **options)  # type: ignore[arg-type]


TWO = (
    _sentence("I do not see it", "see", "it"),
    _sentence("No doubt he left"),
    _sentence("He had no car but walked", "car"),
)


def test_terms_and_statistics_by_hand() -> None:
    table = finding.terms(_part(*TWO), lambda sentence: {3, 4})
    # Columns: twice the hits, wrong, missed, with gold, exact, without gold, alarm there.
    assert table.tolist() == [[4, 0, 0, 1, 1, 0, 0], [0, 2, 0, 0, 0, 1, 1], [2, 1, 0, 1, 0, 0, 0]]
    sums = table.sum(axis=0)[None]
    expected = {"token F1": 6 / 9, "exact scope": 1 / 2, "false alarms": 1.0}
    assert {name: float(value(sums)[0]) for name, value in finding.STATISTICS.items()} == pytest.approx(expected)


def test_compared_scores_are_those_of_the_ruler_and_differences_those_of_the_scores() -> None:
    part = _part(*TWO)
    lines = finding.compare(part, n_resamples=50)
    value = {(line.system, line.statistic): line.estimate.value for line in lines}
    ruler = score(TWO, ours("en"))
    assert value[finding.OURS, "token F1"] == ruler.f1
    assert value[finding.OURS, "false alarms"] == ruler.false_alarm
    best = max(finding.TRIVIAL, key=lambda name: score(TWO, finding.TRIVIAL[name]).f1)
    for line in lines:
        assert line.rival == (best if line.rival != finding.NEGSPACY else finding.NEGSPACY)
        assert line.difference.value == pytest.approx(
            value[line.system, line.statistic] - value[line.rival, line.statistic]
        )
    assert len(finding.to_frame(lines)) == len(lines)


def test_whole_documents_are_resampled() -> None:
    def six_words(part: finding.Part) -> Estimate:
        lines = finding.compare(part, n_resamples=200)
        return next(line.estimate for line in lines if (line.system, line.statistic) == ("six words", "token F1"))

    lone = six_words(_part(*TWO * 4))
    # Every document holds the same three sentences: there is nothing to vary.
    same = six_words(_part(*TWO * 4, clusters=[f"d{i // 3}" for i in range(12)]))
    assert same.n_clusters == 4
    assert same.low == same.high == same.value
    assert lone.low <= same.value <= lone.high


@pytest.mark.parametrize(
    ("gold", "found", "kind"),
    [
        ({1, 2}, {1, 2}, ""),
        (set(), set(), ""),
        ({1}, set(), "nothing found"),
        (set(), {1}, "false alarm"),
        ({1, 2}, {1}, "too short"),
        ({1}, {1, 2}, "too long"),
        ({1, 2}, {2, 3}, "shifted"),
        ({1}, {2}, "elsewhere"),
    ],
)
def test_kinds_of_error(gold: set[int], found: set[int], kind: str) -> None:
    assert finding.error_of(frozenset(gold), found) == kind


def test_errors_name_ids() -> None:
    wrong = finding.errors(_part(*TWO), "six words")
    # "No doubt" is a cue for six words; "car but" is closed by "but".
    assert wrong[["id", "error", "missed", "too many"]].to_numpy().tolist() == [["s1", "false alarm", 0, 3]]


def test_phenomena_count_sentences_without_gold_as_right_when_nothing_is_found() -> None:
    table = finding.by_phenomenon(_part(*TWO, phenomena=["simple", "pseudo", "simple"]))
    table = table.set_index(["phenomenon", "system"])
    assert table.loc[("pseudo", finding.OURS), "right"] == 1
    assert table.loc[("pseudo", finding.PUNCTUATION), "right"] == 0
    assert table.loc[("simple", finding.OURS), "n"] == 2
    assert ((table["low"] <= table["share"]) & (table["share"] <= table["high"])).all()


def test_negspacy_is_skipped_where_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert negspacy("en") is None
    assert finding.NEGSPACY not in _part(*TWO).systems


def test_n_of_a_line_is_the_denominator_of_its_statistic() -> None:
    lines = finding.compare(_part(*TWO), n_resamples=50)
    # Three words are denied in two sentences, the third has no scope.
    assert {(line.statistic, line.estimate.n, line.difference.n) for line in lines} == {
        ("token F1", 3, 3), ("exact scope", 2, 2), ("false alarms", 1, 1),
    }  # fmt: skip
    alarms = next(line.estimate for line in lines if (line.system, line.statistic) == (finding.OURS, "false alarms"))
    assert (alarms.value, alarms.low) == (0, 0)
    assert alarms.high > 0.5  # none of one sentence


def test_negspacy_by_hand() -> None:
    pytest.importorskip("spacy", reason="negspaCy is not installed")
    pytest.importorskip("negspacy", reason="negspaCy is not installed")
    right, full = negspacy("en"), negspacy("en", "full")
    assert right is not None
    assert full is not None
    sentence = _sentence("He denies pain but he limps")
    assert right(sentence) == {2}
    assert right(_sentence("Pain was ruled out")) == set()
    assert full(_sentence("Pain was ruled out")) >= {0}
    spanish = negspacy(None)
    assert spanish is not None
    assert spanish(_sentence("El enfermo no tiene dolor")) == {3, 4}


def test_marker_polarity_keeps_what_counts() -> None:
    replies = [reply for reply in load_golden("dev") if reply.suppressed][:12]
    hits, readings = polarity.marker_polarity(replies, n_resamples=50)
    assert hits[polarity.READINGS[0]].all()
    assert not hits[polarity.READINGS[2]].all()
    value = {(row.reading, row.statistic): row.estimate.value for row in readings.itertuples()}
    assert value["the markers' own check", "precision"] > value["no polarity", "precision"]
    for row in readings.itertuples():
        assert row.difference.value == pytest.approx(
            value[row.reading, row.statistic] - value["no polarity", row.statistic]
        )


def test_lexicon_polarity_adds_up() -> None:
    table = polarity.lexicon_polarity(
        ["We have a deal.", "We don't have a deal.", "I don't think that we have a deal."]
    )
    row = table.set_index("category").loc["closing"]
    assert row[["hits", "affirmed", "negated", "uncertain"]].tolist() == [3, 1, 1, 1]
    assert row["low"] < row["share negated"] < row["high"]


@pytest.fixture(scope="module")
def run() -> tuple[finding.Sources, list[finding.Line], object]:
    sources = finding.load("sample")
    lines = [
        line
        for name, view in (("cd-sco", "right"), ("nubes", "right"), ("negation", "right"), ("cd-sco", "full"))
        for line in finding.compare(sources.part(name, view=view), n_resamples=50)
    ]
    _, readings = polarity.marker_polarity(load_golden("dev")[:10], n_resamples=50)
    openings = polarity.opening_polarity(sources.casino, n_resamples=50)
    wrong = pd.concat([finding.errors(sources.part(name)) for name in ("cd-sco", "nubes", "negation")])
    return sources, lines, finding.record(sources, lines, readings, openings, wrong, parameters={"n_resamples": 50})


def test_sample_run_says_so(run: tuple) -> None:
    sources, lines, record = run
    assert sources.sample
    assert record.sample
    assert record.summary().startswith("SAMPLE")
    assert not record.materials[-1].sample  # the written gold stands for itself
    assert {line.part.lang for line in lines} == {"en", "es", None}
    assert record.measurement("cd-sco/token F1").baseline is not None
    assert set(record.verdicts()["verdict"]) <= {"holds", "fails", "undecided"}
    assert {"part", "id", "error", "missed", "too many"} == set(record.records["errors"][0])


def test_headline_follows_the_interval(run: tuple) -> None:
    _, lines, _ = run

    def told(low: float, high: float) -> str:
        moved = [
            replace(line, difference=replace(line.difference, low=low, high=high))
            if (line.part.key, line.statistic, line.system) == ("negation", "exact scope", finding.OURS)
            else line
            for line in lines
        ]
        return finding.answer(moved)

    assert "get more" in told(0.1, 0.2)
    assert "get fewer" in told(-0.2, -0.1)
    assert "not shown to get more" in told(-0.1, 0.1)


@pytest.mark.corpora
def test_reported_and_developed_parts_are_apart(corpora_dir: Path) -> None:
    sources = finding.load(str(corpora_dir))
    assert not sources.sample
    for name, n, clusters in (("cd-sco", 787, 40), ("nubes", 8891, 175)):
        part, other = sources.part(name), sources.part(name, held_out=False)
        assert (len(part.sentences), len(set(part.clusters))) == (n, clusters)
        assert not set(part.ids) & set(other.ids)
        assert not set(part.clusters) & set(other.clusters)
        trivial = score(part.sentences, finding.TRIVIAL[finding.PUNCTUATION])
        expected = {"cd-sco": (0.828, 0.682), "nubes": (0.756, 0.591)}[name]
        assert (round(trivial.f1, 3), round(trivial.exact, 3)) == expected
    for view, n in (("right", 129), ("full", 138)):
        lines = finding.compare(sources.part("cd-sco", view=view), n_resamples=2)  # type: ignore[arg-type]
        assert {line.estimate.n for line in lines if line.statistic == "exact scope"} == {n}


@pytest.mark.corpora
def test_committed_notebook_holds_no_sentence_of_a_corpus(corpora_dir: Path) -> None:
    pages = [
        Path(__file__).parents[2] / name
        for name in ("notebooks/02_negation_scope.ipynb", "book/results/negation_scope.json")
    ]
    sources = finding.load(str(corpora_dir))
    written = " ".join(sources.written.utterances["text"])
    text = " ".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())
    assert text
    corpora = (sources.cd_sco, sources.nubes, sources.casino)
    long = [s for corpus in corpora for s in corpus.utterances["text"] if len(s.split()) >= 6 and s not in written]
    assert [s for s in long if s in text] == []
