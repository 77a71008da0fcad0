"""Kept models: the shipped one is the one that the data give, damaged files cost a warning and time, never a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from anima.authenticity import UNCLASSIFIED, Reference, catalogue
from anima.authenticity.classify import CentroidClassifier, Head
from anima.authenticity.model import Model, fingerprint
from anima.embedding import BundledEmbedder
from anima.errors import CacheWarning, InputError
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anima.authenticity import Instrument


def test_the_shipped_model_is_that_of_the_data() -> None:
    """Whoever changes a sentence must train anew: ``python -m anima.authenticity.model``."""
    embedder = BundledEmbedder()
    with np.load(data_path(f"models/{embedder.id}.npz"), allow_pickle=False) as kept:
        assert str(kept["key"]) == fingerprint(Reference.bundled(), embedder.id)
    assert Model.open(Reference.bundled(), embedder).ready


@pytest.mark.slow
def test_training_again_gives_the_shipped_model() -> None:
    """Equal up to the half precision in which weights are kept and the solver's tolerance."""
    reference, embedder = Reference.bundled(), BundledEmbedder()
    shipped, fresh = Model.open(reference, embedder), Model(reference, embedder)
    sentences = [example.text for example in reference.prototypes[::40]]
    vectors = np.asarray(embedder.embed(sentences))
    for ngrams in (False, True):
        new = fresh._train(ngrams=ngrams).probabilities(sentences, vectors)
        old = shipped.head(ngrams=ngrams).probabilities(sentences, vectors)
        assert new.argmax(axis=1).tolist() == old.argmax(axis=1).tolist()
        assert np.abs(new - old).max() < 0.01
    assert fresh.centroids(1, threshold=0).vectors == pytest.approx(shipped.centroids(1, threshold=0).vectors, abs=1e-6)
    assert fresh.neighbourhood.vectors == pytest.approx(shipped.neighbourhood.vectors, abs=1e-6)
    assert fresh.poles is not None
    assert shipped.poles is not None
    assert fresh.poles.certainty == pytest.approx(shipped.poles.certainty, abs=1e-6)


def test_a_trained_head_is_kept_and_read_again(toy: Any, toy_embedder: Any, private_cache: Path) -> None:
    first = toy(classifier="hybrid").analyze("Validate this now. Nothing here.")
    [path] = (private_cache / "models").glob("*.npz")
    stamp = path.stat().st_mtime_ns
    toy_embedder.calls.clear()
    again = toy(classifier="hybrid").analyze("Validate this now. Nothing here.")
    assert again == first
    assert path.stat().st_mtime_ns == stamp
    assert "validate this" not in [text for call in toy_embedder.calls for text in call]  # no training
    assert first.chain == ("VALIDATE", UNCLASSIFIED)
    assert path.stat().st_mode & 0o444 == 0o444


def _rewrite(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        change(arrays)
        np.savez_compressed(path, **arrays)

    return apply


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 40] = bytes(40)
    path.write_bytes(raw)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "other content": lambda path: path.write_text("not a model"),
    "pickled": lambda path: np.savez(path, key=np.array([{"a": 1}], dtype=object)),
    "flipped bytes": _flip,
    "NaN": _rewrite(lambda a: a["hybrid.weights"].__setitem__((0, 0), np.nan)),
    "an array lost": _rewrite(lambda a: a.pop("hybrid.words_idf")),
    "labels lost": _rewrite(lambda a: a.pop("hybrid.labels")),
    "other labels": _rewrite(lambda a: a.update({"hybrid.labels": a["hybrid.labels"][::-1]})),
    "weights of another shape": _rewrite(lambda a: a.update({"hybrid.weights": a["hybrid.weights"][:-3]})),
    "one dimension": _rewrite(lambda a: a.update({"hybrid.weights": a["hybrid.weights"][0]})),
    "pools of another shape": _rewrite(lambda a: a.update({"pools": np.ones((2, 3))})),
    "pole of another shape": _rewrite(lambda a: a.update({"pole.doubt": np.ones(3)})),
    "centroids of another shape": _rewrite(lambda a: a.update({"centroid.vectors": np.ones(3)})),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_costs_a_warning(toy: Any, private_cache: Path, name: str) -> None:
    reply = "Validate this now. Nothing here. Probe that."
    sound = toy(classifier="hybrid").analyze(reply)
    [path] = (private_cache / "models").glob("*.npz")
    DAMAGE[name](path)
    with pytest.warns(CacheWarning, match="training anew"):
        again = toy(classifier="hybrid").analyze(reply)
    assert again.to_dict() == sound.to_dict()
    assert toy(classifier="hybrid").analyze(reply) == sound  # mended: no warning now


def test_a_file_for_other_data_is_ignored(toy: Any, private_cache: Path) -> None:
    sound = toy(classifier="hybrid").analyze("Validate this now.")
    [path] = (private_cache / "models").glob("*.npz")
    _rewrite(lambda a: a.update({"key": np.array("other"), "hybrid.weights": a["hybrid.weights"] * 0}))(path)
    assert toy(classifier="hybrid").analyze("Validate this now.") == sound


def test_a_folder_that_cannot_be_written_costs_a_warning(toy: Any, private_cache: Path) -> None:
    private_cache.write_text("a file where the folder should be")
    with pytest.warns(CacheWarning, match="could not be kept"):
        found = toy(classifier="linear").analyze("Validate this now.")
    assert found.classifier == "linear"


def test_any_id_makes_a_file_name(toy: Any, toy_embedder: Any, private_cache: Path) -> None:
    toy_embedder.id = "../../my:model\0é @1"
    toy(classifier="linear").analyze("Validate this now.")
    [path] = private_cache.rglob("*.*")
    assert path.parent == private_cache / "models"
    assert path.name.endswith("-.._.._my_model_é__1.npz")


def test_what_could_not_be_written_leaves_nothing_behind(
    toy: Any, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.warns(CacheWarning, match="could not be kept"):
        toy(classifier="linear").analyze("Validate this now.")
    assert list((private_cache / "models").iterdir()) == []


def test_the_key_knows_what_matters(toy: Any) -> None:
    from dataclasses import replace

    from anima.authenticity.reference import Example, LabelledReply

    reference = toy().reference
    first = reference.prototypes[0]
    others = [
        replace(reference, prototypes=(Example(first.text, "PROBE"), *reference.prototypes[1:])),
        replace(reference, prototypes=(Example(first.text + "!", first.intent), *reference.prototypes[1:])),
        replace(reference, poles={**reference.poles, "edge": ("else",)}),
        replace(reference, pools=reference.pools[:-1]),
        replace(reference, replies=(LabelledReply("Hm.", (Example("Hm.", UNCLASSIFIED),)),)),
        replace(reference, pool_vectors=np.eye(3)),
    ]
    keys = {
        fingerprint(reference, "toy-1"),
        fingerprint(reference, "toy-2"),
        *(fingerprint(other, "toy-1") for other in others),
    }
    assert len(keys) == 8
    assert fingerprint(replace(reference), "toy-1") in keys


def test_a_head_needs_every_label() -> None:
    texts = ["a", "b"]
    with pytest.raises(InputError, match="no example of UNCLASSIFIED"):
        Head.fit(texts, np.eye(2), ["X", "Y"], ("X", "Y"), ngrams=False)


def test_probabilities_sum_to_one_and_survive_the_file(bundled: Instrument) -> None:
    head = bundled.model.head(ngrams=True)
    texts = ["Great question!", "Water boils.", "¿Y si fuera al revés?"]
    vectors = np.asarray(bundled.embedder.embed(texts))
    found = head.probabilities(texts, vectors)
    assert found.sum(axis=1) == pytest.approx(1)
    again = Head.from_arrays(head.to_arrays("x"), "x")
    assert np.array_equal(again.probabilities(texts, vectors), found)
    assert head.labels == (*catalogue(), UNCLASSIFIED)


def test_several_centroids_take_the_nearest(toy: Any) -> None:
    vectors = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    classifier = CentroidClassifier(("a", "b"), vectors, np.array([0, 0, 1]), threshold=0.5)
    scores = classifier.classify([], np.array([[0, 1.0, 0], [0.1, 0.1, 0.99], [0.4, -0.4, -0.8]]))
    assert scores.chosen == ["a", "b", UNCLASSIFIED]
    assert scores.scores[0].tolist() == [1.0, 0.0]
