"""The ruler equals the reference ruler, and the rules keep their figures on sentences they were not developed on."""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING

import pytest

from anima.corpora import load_corpus
from anima.errors import DataError
from anima.negation import score as ruler

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

CD_SCO = "SEM-2012-SharedTask-CD-SCO-{}-09032012.txt"
FIGURES = ("precision", "recall", "f1", "exact", "false_alarm", "n_gold", "n_free")


@pytest.fixture(scope="module")
def reference(oracle: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_negation", oracle / "tools" / "score_negation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.oracle
@pytest.mark.corpora
@pytest.mark.parametrize("data", ["right", "full", "nubes"])
def test_ruler_equals_the_reference(reference: ModuleType, corpora_dir: Path, data: str) -> None:
    if data == "nubes":
        mine = ruler.read_corpus(load_corpus("nubes", sample=False).select("SAMPLE-005"))
        theirs = list(reference.nubes(corpora_dir / "nubes" / "SAMPLE-005"))
    else:
        mine = ruler.read_corpus(load_corpus("cd-sco", sample=False).select("dev"), data)
        theirs = list(reference.cd_sco(corpora_dir / "cd-sco" / CD_SCO.format("dev"), data))
    assert [(s.text, s.tokens, s.offsets, set(s.gold)) for s in mine] == [tuple(row) for row in theirs]
    for name in ("after_cue", "to_punctuation", "six_words"):
        predict = getattr(ruler, name)
        expected = reference.score(theirs, getattr(reference, name))
        assert ruler.score(mine, predict).to_dict() == {
            figure: pytest.approx(expected[figure], abs=0) for figure in FIGURES
        }
        gold_by_text = {s.text: s for s in mine}
        crossed = reference.score(theirs, lambda text, tokens, offsets, p=predict, g=gold_by_text: p(g[text]))
        assert crossed == expected


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("data", "view", "f1", "exact"),
    [("dev", "right", 0.88, 0.76), ("dev", "full", 0.78, 0.50), ("nubes", "right", 0.85, 0.74)],
)
def test_figures_on_sentences_not_developed_on(
    corpora_dir: Path, data: str, view: str, f1: float, exact: float
) -> None:
    splits = [f"SAMPLE-00{k}" for k in (5, 6, 7)] if data == "nubes" else [data]
    corpus = load_corpus("nubes" if data == "nubes" else "cd-sco", sample=False)
    sentences = ruler.read_corpus(corpus.select(splits), view)
    ours = ruler.score(sentences, ruler.ours("es" if data == "nubes" else "en", view))
    trivial = ruler.score(sentences, ruler.to_punctuation)
    assert ours.f1 >= f1
    assert ours.exact >= exact
    assert ours.f1 > trivial.f1
    assert ours.false_alarm <= trivial.false_alarm


def _sentence(gold: set[int]) -> ruler.Sentence:
    return ruler.Sentence(
        "I do not see it", ["I", "do", "not", "see", "it"], [(0, 1), (2, 4), (5, 8), (9, 12), (13, 15)], frozenset(gold)
    )


def test_score_counts_by_hand() -> None:
    sentences = [_sentence({3, 4}), _sentence({3}), _sentence(set())]
    result = ruler.score(sentences, lambda _: {3, 4})
    assert (result.precision, result.recall) == (3 / 6, 1.0)
    assert result.f1 == pytest.approx(2 / 3)
    assert (result.exact, result.false_alarm, result.n_gold, result.n_free) == (1 / 2, 1.0, 2, 1)
    assert result.to_frame()["tp"].tolist() == [2, 1, 0]
    assert "0.667" in result.summary()


def test_undefined_shares_are_nan() -> None:
    result = ruler.score([], ruler.to_punctuation)
    assert math.isnan(result.f1)
    assert math.isnan(result.exact)
    assert result.to_dict()["f1"] is None


def test_predictor_reads_scopes() -> None:
    assert ruler.ours("en")(_sentence(set())) == {3, 4}
    assert ruler.ours("en", "full")(_sentence(set())) == {0, 1, 3, 4}


def test_broken_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / CD_SCO.format("dev")
    path.write_text("a\tb\tc\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"\.txt:1: 3 columns"):
        load_corpus(tmp_path)
    path.unlink()
    (tmp_path / "x.txt").write_text("sin dolor\n", encoding="utf-8")
    (tmp_path / "x.ann").write_text("T1\tNegSynMarker 0 3\tsin\nT2\tno spans\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.ann:2: not a brat annotation"):
        load_corpus(tmp_path)


def test_brat_scopes_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("Anda sin dolor.\n", encoding="utf-8")
    (tmp_path / "x.ann").write_text(
        "T1\tNegSynMarker 5 8\tsin\nT2\tDISO 9 14\tdolor\nR1\tScope Arg1:T1 Arg2:T2\n", encoding="utf-8"
    )
    (sentence,) = ruler.read_corpus(load_corpus(tmp_path))
    assert sentence.tokens == ["Anda", "sin", "dolor"]
    assert sentence.gold == {2}
