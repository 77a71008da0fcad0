"""Corpora of negation: their spans give the gold of the ruler, and tables and files give the same."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.corpora import load_corpus
from anima.corpora.files import Files
from anima.corpora.negation import cd_sco
from anima.errors import DataError
from anima.negation import score as ruler

if TYPE_CHECKING:
    from pathlib import Path

CD_SCO = "SEM-2012-SharedTask-CD-SCO-{}-09032012.txt"


def conll(words: list[str], *negations: list[tuple[str, str, str]]) -> str:
    lines = []
    for i, word in enumerate(words):
        cells = [cell for negation in negations for cell in negation[i]] or ["***"]
        lines.append("\t".join(["tale01", "4", str(i), word, word, "X", "*", *cells]))
    return "\n".join(lines)


@pytest.mark.corpora
@pytest.mark.parametrize("view", ["right", "full"])
def test_counts_of_cd_sco(corpora_dir: Path, view: str) -> None:
    corpus = load_corpus("cd-sco", sample=False)
    found = ruler.read_corpus(corpus, view)
    assert (len(found), corpus.report.dialogues) == (4431, 16)
    assert sum(corpus.dialogues["split"] == "dev") == 2


@pytest.mark.corpora
def test_counts_of_nubes(corpora_dir: Path) -> None:
    corpus = load_corpus("nubes", sample=False)
    counts = corpus.labels[corpus.labels["scheme"] == "cue"]["label"].value_counts().to_dict()
    assert counts == {"NegSynMarker": 4708, "NegLexMarker": 1268, "NegMorMarker": 577}
    assert sorted(set(corpus.dialogues["split"])) == [f"SAMPLE-00{k}" for k in range(1, 8)]
    assert corpus.provenance.dropped == ("1,750 cues of uncertainty are left out: they negate nothing",)


def test_spans_of_cd_sco(tmp_path: Path) -> None:
    words = ["They", "were", "unhappy", "and", "hopeless", ",", "weren't"]
    first = [("_", "They", "_"), ("_", "were", "_"), ("un", "happy", "_"), *[("_", "_", "_")] * 4]
    second = [("_", "_", "_")] * 3 + [("_", "and", "_"), ("less", "hope", "_"), ("_", ",", "_"), ("_", "_", "_")]
    (tmp_path / CD_SCO.format("dev")).write_text(conll(words, first, second) + "\n", encoding="utf-8")
    corpus = load_corpus(tmp_path)
    text = corpus.utterances.loc[0, "text"]
    assert text == "They were unhappy and hopeless, weren't"
    spans = corpus.labels.assign(part=[text[a:b] for a, b in zip(corpus.labels.start, corpus.labels.end, strict=True)])
    assert spans[["scheme", "label", "group", "part"]].values.tolist() == [
        ["cue", "affix", 0, "un"],
        ["scope", "affix", 0, "They were"],
        ["scope", "affix", 0, "happy"],
        ["cue", "affix", 1, "less"],
        ["scope", "affix", 1, "and hope"],
        ["scope", "affix", 1, ","],
    ]
    (sentence,) = ruler.read_corpus(corpus, "full")
    assert sorted(sentence.tokens[i] for i in sentence.gold) == ["They", "and", "were"]


def test_a_part_that_is_none_of_its_token_is_named(tmp_path: Path) -> None:
    path = tmp_path / CD_SCO.format("dev")
    path.write_text(conll(["No", "way"], [("No", "_", "_"), ("_", "road", "_")]), encoding="utf-8")
    with pytest.raises(DataError, match=r":2: column 9 holds 'road', no part of the token 'way'"):
        load_corpus(tmp_path)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.text("abcñ.,'’", min_size=1, max_size=5), st.booleans(), st.booleans()), min_size=1, max_size=8
    )
)
def test_spans_cover_exactly_the_marked_tokens(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    path = tmp_path_factory.mktemp("cd-sco") / CD_SCO.format("dev")
    cells = [(word if cue else "_", word if scope else "_", "_") for word, cue, scope in rows]
    path.write_text(conll([word for word, *_ in rows], cells), encoding="utf-8")
    (sentence,) = cd_sco(Files(path.parent), path)
    (negation,) = sentence.negations
    assert [sentence.text[low:high] for low, high in sentence.tokens] == [word for word, *_ in rows]
    for spans, marks in ((negation.cue, [row[1] for row in rows]), (negation.scope, [row[2] for row in rows])):
        inside = [any(low <= a and b <= high for low, high in spans) for a, b in sentence.tokens]
        assert inside == marks
        assert all(one[1] <= two[0] for one, two in pairwise(spans))


def test_brat_files_that_were_cut_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("sin do", encoding="utf-8")
    (tmp_path / "x.ann").write_text("T1\tNegSynMarker 0 3\tsin\nT2\tDISO 4 9\tdolor\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.ann:2: the span 4 9 is outside of the text"):
        load_corpus(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lang": "fr"}, "lang must be one of 'en', 'es', got 'fr'"),
        ({"negations": [{"cue": [[0, 99]], "scope": []}]}, "negation 0: cue must be a list of .* inside the text"),
        ({"negations": [{"cue": [], "scope": [[0, 1]]}]}, "negation 0: cue is empty"),
        ({"negations": [{"cue": [[0, 2]]}]}, "negation 0: lacks the field 'scope'"),
        ({"id": None}, "id must be a string or an integer, got None"),
        ({"text": None}, "text must be a string, got None"),
    ],
)
def test_written_sentences_are_checked(tmp_path: Path, change: dict, message: str) -> None:
    from anima.corpora.build import Builder
    from anima.corpora.negation import read_written

    record = {"id": "a", "lang": "en", "phenomenon": "local", "text": "No way", "negations": []}
    path = tmp_path / "sentences.jsonl"
    path.write_text(json.dumps(record) + "\n" + json.dumps({**record, "id": "b", **change}) + "\n", encoding="utf-8")
    files = Files(tmp_path)
    with pytest.raises(DataError, match=r"sentences\.jsonl:2.*" + message):
        read_written(files, Builder(files, {"cue": None, "scope": None}))
