"""Which corpus a name gives, what the samples are, and what the results show of themselves."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from anima.corpora import fetch, load_corpus, registry, verify
from anima.errors import CorpusMissingError, DataError, DataWarning, InputError
from anima.negation import score as ruler
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("casino", "delidata", "cd-sco", "nubes")


@pytest.fixture
def no_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMA_CORPORA", str(tmp_path / "none"))


@pytest.mark.parametrize("name", NAMES)
def test_absent_corpora(name: str, no_corpora: None) -> None:
    with pytest.warns(DataWarning, match=f"{name}: the corpus is not in .*SAMPLE, invented for this project"):
        corpus = load_corpus(name)
    assert corpus.sample
    with pytest.raises(CorpusMissingError, match=f"corpora (fetch|verify) {name}"):
        load_corpus(name, sample=False)
    assert verify(name).state == "absent"


@pytest.mark.parametrize("name", [*NAMES, "negation"])
def test_samples(name: str) -> None:
    corpus = load_corpus(name, sample=True)
    assert corpus.summary().startswith("SAMPLE (invented for this project)")
    assert "SAMPLE" in corpus.provenance.summary()
    assert len(corpus.dialogues) >= {"negation": 80, "cd-sco": 30, "nubes": 30}.get(name, 24)
    for scheme in corpus.schemes:
        frame = corpus.labelled(scheme)
        assert frame[list(corpus.label_names(scheme))].any().all()
    if name in ("casino", "delidata"):
        assert corpus.outcomes["dialogue_id"].nunique() == len(corpus.dialogues)


def test_languages_of_the_written_sentences() -> None:
    english, spanish, both = (load_corpus(name, sample=True) for name in ("cd-sco", "nubes", "negation"))
    assert set(english.dialogues["lang"]) == {"en"}
    assert set(spanish.dialogues["lang"]) == {"es"}
    assert len(both.dialogues) == len(english.dialogues) + len(spanish.dialogues)
    gold = ruler.read_corpus(both)
    assert ruler.score(gold, lambda sentence: sentence.gold).f1 == 1.0
    assert any(sentence.gold for sentence in gold)


@pytest.mark.parametrize("name", [*NAMES, "negation"])
def test_frames_belong_together(name: str) -> None:
    corpus = load_corpus(name, sample=True)
    rows = corpus.utterances
    assert rows["utterance_id"].is_unique
    assert rows["dialogue_id"].value_counts().to_dict() == dict(
        zip(corpus.dialogues["dialogue_id"], corpus.dialogues["n_utterances"], strict=True)
    )
    assert set(corpus.labels["utterance_id"]) <= set(rows[rows["annotated"]]["utterance_id"])
    assert set(rows["reply_to"]) <= {"", *rows["utterance_id"]}
    assert set(rows["status"]) <= {"ok", "empty"}
    for frame in (corpus.dialogues, rows, corpus.labels):
        for column in (name for name in frame if name.endswith("_id")):
            assert frame[column].map(type).eq(str).all()


def test_results_show_no_text_of_the_corpus(casino_folder: Path) -> None:
    corpus = load_corpus(casino_folder)
    shown = json.dumps(corpus.to_dict()) + corpus._repr_html_() + repr(corpus) + str(corpus.report) + str(corpus)
    assert "Water please" not in shown
    assert "3 dialogues, 12 utterances, 6 annotated" in corpus.summary()
    assert corpus.to_frame() is corpus.utterances


def test_a_wrong_hash_is_named_with_the_fix(casino_folder: Path, register: Callable) -> None:
    register(casino_folder)
    assert load_corpus("casino").provenance.verified
    path = casino_folder / "casino_valid.json"
    path.write_text(path.read_text(encoding="utf-8").replace("Hello!", "Howdy!"), encoding="utf-8")
    with pytest.raises(DataError, match=r"casino_valid\.json has the wrong hash .*corpora fetch --force casino"):
        load_corpus("casino")
    assert verify("casino").state == "damaged"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(
        DataError, match=r"casino_valid\.json has the wrong hash .*; reading stopped at .*json:\d+: .*--force"
    ):
        load_corpus("casino")
    path.unlink()
    with pytest.raises(DataError, match=r"casino_valid\.json is missing; reading stopped at .*--force casino"):
        load_corpus("casino")
    path.write_text("[]", encoding="utf-8")
    assert not load_corpus(casino_folder).provenance.verified


def test_a_missing_group_is_counted(delidata_folder: Path, register: Callable) -> None:
    tree = delidata_folder / "delidata_corpus"
    second = re.sub(r"\tm(\d)\t", r"\tn\1\t", (tree / "g1").read_text(encoding="utf-8").replace("g1\t", "g2\t"))
    (tree / "g2").write_text(second, encoding="utf-8")
    register(delidata_folder)
    assert load_corpus("delidata").report.dialogues == 2
    (tree / "g2").unlink()
    with pytest.raises(DataError, match=r"delidata_corpus/ has 1 files, registered are 2"):
        load_corpus("delidata")


def test_line_ends_do_not_change_the_hash(casino_folder: Path, delidata_folder: Path, register: Callable) -> None:
    register(delidata_folder)
    before = load_corpus("delidata")
    path = delidata_folder / "delidata_corpus" / "g1"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    after = load_corpus("delidata")
    assert after.hash == before.hash
    assert (before.report.crlf_files, after.report.crlf_files) == (0, 1)
    assert after.utterances["text"].tolist() == before.utterances["text"].tolist()


def test_a_byte_order_mark_is_read_and_counted(casino_folder: Path) -> None:
    path = casino_folder / "casino_test.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_corpus(casino_folder).report.boms == 1


def test_names_and_folders_that_are_none(tmp_path: Path, casino_folder: Path) -> None:
    with pytest.raises(InputError, match=r"name must be one of 'casino', .*'negation', got 'casio'"):
        load_corpus("casio")
    with pytest.raises(CorpusMissingError, match="no such folder"):
        load_corpus(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="looks like no known corpus"):
        load_corpus(tmp_path / "empty")
    with pytest.raises(InputError, match="sample is for registered corpora"):
        load_corpus(casino_folder, sample=True)
    with pytest.raises(InputError, match="written for this project"):
        load_corpus("negation", sample=False)


def test_registry_is_complete() -> None:
    for item in registry().values():
        assert item.title
        assert item.licence
        assert item.citation
        assert item.homepage.startswith("http")
        assert item.sources or item.manual
        assert all(re.fullmatch("[0-9a-f]{64}", value) for value in item.files.values())
        assert set(item.counts) == {path for path in item.files if path.endswith("/")}
        for source in item.sources:  # whatever is registered is fetched
            assert "path" in source or "members" in source
        if item.sources:
            fetched = {path for source in item.sources for path in source.get("members", {source.get("path"): ""})}
            assert fetched == set(item.files)


def test_a_corpus_read_again_is_whole_and_the_caller_s_own():
    first = load_corpus("casino", sample=True)
    first.utterances.loc[:, "text"] = "changed"
    again = load_corpus("casino", sample=True)
    assert again.hash == first.hash
    assert (again.utterances["text"] != "changed").all()


def test_a_folder_that_changed_is_read_anew(tmp_path):
    shutil.copytree(data_path("samples/casino"), tmp_path / "casino")
    before = load_corpus(tmp_path / "casino")
    path = tmp_path / "casino" / "casino_valid.json"
    path.write_text("[]")
    assert len(load_corpus(tmp_path / "casino").dialogues) < len(before.dialogues)


@pytest.mark.parametrize("sample", ["false", "", 0, 1])
def test_sample_is_true_or_false(sample: object) -> None:
    for name in ("casino", "negation", "a/b"):
        with pytest.raises(InputError, match=f"sample must be True or False, got {type(sample).__name__} {sample!r}"):
            load_corpus(name, sample=sample)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="force must be True or False"):
        fetch("casino", force=sample)  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_read_is_named(casino_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, _: str) -> None:
        raise PermissionError(13, "Permission denied", str(path / "closed"))

    monkeypatch.setattr("pathlib.Path.rglob", refuse)
    with pytest.raises(DataError, match=r"closed: cannot be read \(Permission denied\): give a folder that holds"):
        load_corpus(casino_folder)
