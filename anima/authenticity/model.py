"""A reference under an embedder: its vectors, centroids, poles and heads, each made once and kept.

The model of the bundled embedder is shipped (``corpora/models``), so that a first analysis needs no training; a test
retrains it and compares. For other embedders it is trained at first use and kept in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.authenticity.classify import CentroidClassifier, Classifier, ClassifierName, Head
from anima.authenticity.intents import UNCLASSIFIED
from anima.authenticity.neighbours import Neighbourhood
from anima.authenticity.poles import Poles
from anima.authenticity.profiles import safe_name
from anima.errors import CacheWarning, DataError, InputError
from anima.settings import data_path, user_cache_dir
from anima.vectors import centroid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anima.authenticity.reference import Reference
    from anima.embedding import Embedder

#: Raised whenever the way of training changes, so that kept models are not mistaken for new ones.
RECIPE: Final = "1"
#: Centroids per intent of the classifier "centroids".
PER_INTENT: Final = 4


class Model:
    """Everything about a reference that depends on the embedder.

    ``kept`` holds arrays read from a file made by :meth:`save`; missing pieces are computed.
    """

    def __init__(self, reference: Reference, embedder: Embedder, kept: dict[str, NDArray[Any]] | None = None) -> None:
        self.reference = reference
        self.embedder = embedder
        self._kept = kept or {}
        self._heads: dict[str, Head] = {}

    @staticmethod
    def open(reference: Reference, embedder: Embedder) -> Model:
        """Return the model, with whatever a shipped or kept file holds already read."""
        key = fingerprint(reference, embedder.id)
        places = [_own_path(key, embedder)]
        with contextlib.suppress(DataError):  # none is shipped for this embedder
            places.insert(0, data_path(f"models/{safe_name(embedder.id)}.npz"))
        for path in places:
            if path.exists() and (kept := _read(path)) is not None and str(kept.get("key")) == key:
                if not (fault := _fault(kept, reference, embedder.dim)):
                    return Model(reference, embedder, kept)
                warnings.warn(f"{path}: model file not usable ({fault}); training anew", CacheWarning, stacklevel=2)
        return Model(reference, embedder)

    @cached_property
    def key(self) -> str:
        """Hash of everything the model is made from."""
        return fingerprint(self.reference, self.embedder.id)

    @property
    def ready(self) -> bool:
        """Whether the heads need no training."""
        return "hybrid.weights" in self._kept

    def save(self, path: Path) -> None:
        """Compute every piece and write them to one file, atomically."""
        arrays: dict[str, NDArray[Any]] = {
            "key": np.array(self.key),
            "pools": self.neighbourhood.vectors.astype(np.float32),
        }
        if self.poles is not None:
            arrays |= {f"pole.{name}": vector for name, vector in asdict(self.poles).items() if vector is not None}
        for built in (self.centroids(1, threshold=0.0), self.centroids(PER_INTENT, threshold=0.0)):
            arrays |= {f"{built.name}.vectors": built.vectors.astype(np.float32), f"{built.name}.owner": built.owner}
        arrays |= self.head(ngrams=False).to_arrays("linear") | self.head(ngrams=True).to_arrays("hybrid")
        _write(path, arrays)

    @cached_property
    def prototype_vectors(self) -> NDArray[np.float64]:
        """Unit rows of the labelled sentences, shape ``(n, dim)``."""
        return np.asarray(
            self.embedder.embed([example.text for example in self.reference.prototypes]), dtype=np.float64
        )

    @cached_property
    def poles(self) -> Poles | None:
        """The pole vectors; None when the reference lacks certainty or doubt."""
        found: dict[str, NDArray[np.float64]] = {}
        for name, value in self.reference.poles.items():
            if f"pole.{name}" in self._kept:
                found[name] = self._kept[f"pole.{name}"]
            elif isinstance(value, np.ndarray):
                found[name] = self._given(value, f"pole {name!r}")
            else:
                found[name] = centroid(self.embedder.embed(list(value)))
        if "certainty" not in found or "doubt" not in found:
            return None
        return Poles(found["certainty"], found["doubt"], found.get("edge"))

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The reference corpus as vectors."""
        entries = self.reference.pools
        if self.reference.pool_vectors is not None:
            return Neighbourhood(entries, self._given(self.reference.pool_vectors, "the pools"))
        if "pools" in self._kept:
            return Neighbourhood(entries, self._kept["pools"])
        return Neighbourhood(entries, np.asarray(self.embedder.embed([entry.text for entry in entries])))

    def classifier(self, name: ClassifierName, *, threshold: float) -> Classifier:
        """Return the classifier ``name``; ``threshold`` is the cosine cut of the centroid ones."""
        if name == "centroid":
            return self.centroids(1, threshold=threshold)
        if name == "centroids":
            return self.centroids(PER_INTENT, threshold=threshold)
        return self.head(ngrams=name == "hybrid")

    def centroids(self, per_intent: int, *, threshold: float) -> CentroidClassifier:
        """Return the centroid classifier with ``per_intent`` centroids each."""
        name: ClassifierName = "centroid" if per_intent == 1 else "centroids"
        if f"{name}.vectors" in self._kept:
            vectors = self._kept[f"{name}.vectors"].astype(np.float64)
            return CentroidClassifier(self.reference.intents, vectors, self._kept[f"{name}.owner"], threshold, name)
        return CentroidClassifier.fit(
            self.reference, self.prototype_vectors, threshold=threshold, per_intent=per_intent
        )

    def head(self, *, ngrams: bool) -> Head:
        """Return the trained head, from the file or trained now and kept for the next time."""
        name = "hybrid" if ngrams else "linear"
        if name not in self._heads:
            if f"{name}.weights" not in self._kept or (head := self._kept_head(name)) is None:
                self._kept |= self._train(ngrams=ngrams).to_arrays(name)
                self._keep()
                head = Head.from_arrays(self._kept, name)  # as the next process will read it
            self._heads[name] = head
        return self._heads[name]

    def _kept_head(self, name: str) -> Head | None:
        try:
            head = Head.from_arrays(self._kept, name)
            if (head.labels, head.dim) == ((*self.reference.intents, UNCLASSIFIED), self.embedder.dim):
                return head
            fault = "it was trained for other labels or dimensions"
        except (KeyError, ValueError, IndexError) as error:
            fault = str(error)
        warnings.warn(
            f"the kept head {name!r} for {self.embedder.id} is not usable ({fault}); training anew",
            CacheWarning,
            stacklevel=4,
        )
        return None

    def _train(self, *, ngrams: bool) -> Head:
        examples = self.reference.sentences
        texts = [example.text for example in examples]
        vectors = self.prototype_vectors
        if more := texts[len(vectors) :]:
            vectors = np.vstack([vectors, self.embedder.embed(more)])
        intents = [example.intent for example in examples]
        return Head.fit(texts, vectors, intents, self.reference.intents, ngrams=ngrams)

    def _keep(self) -> None:
        """Keep the trained heads for the next process; failing to costs time later, nothing else."""
        path = _own_path(self.key, self.embedder)
        try:
            _write(path, self._kept | {"key": np.array(self.key)})
        except OSError as error:
            warnings.warn(
                f"{path}: the trained model could not be kept ({error}); it will be trained again",
                CacheWarning,
                stacklevel=2,
            )

    def _given(self, vectors: NDArray[np.float64], what: str) -> NDArray[np.float64]:
        if vectors.shape[-1] != self.embedder.dim:
            raise InputError(
                f"reference {self.reference.name}: {what} has {vectors.shape[-1]} dimensions, the embedder {self.embedder.id!r} "
                f"{self.embedder.dim}; use the embedder that made the folder"
            )
        return vectors


def fingerprint(reference: Reference, embedder_id: str) -> str:
    """Return a hash of the reference's texts and labels, the embedder and the recipe."""
    digest = hashlib.sha256(f"{RECIPE}\0{embedder_id}\0{reference.name}".encode())
    for example in reference.sentences:
        digest.update(f"\0{example.intent}\0{example.text}".encode())
    for name, value in reference.poles.items():
        content = value.tobytes() if isinstance(value, np.ndarray) else "\0".join(value).encode()
        digest.update(f"\0{name}\0".encode() + content)
    for entry in reference.pools:
        digest.update(f"\0{entry.pool}\0{entry.text}".encode())
    if reference.pool_vectors is not None:
        digest.update(reference.pool_vectors.tobytes())
    return digest.hexdigest()


def _own_path(key: str, embedder: Embedder) -> Path:
    return user_cache_dir() / "models" / f"{key[:16]}-{safe_name(embedder.id)}.npz"


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        Path(temporary).chmod(0o644)  # a temporary file is its owner's alone; a shipped one is everybody's
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)  # there only if the writing failed


def _read(path: Path) -> dict[str, NDArray[Any]] | None:
    try:
        # Opened here, because numpy leaves a damaged file open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # zip, zlib and numpy each have their own for a damaged file
        warnings.warn(f"{path}: not a readable model file ({error}); training anew", CacheWarning, stacklevel=3)
        return None


def _fault(kept: dict[str, NDArray[Any]], reference: Reference, dim: int) -> str:
    """Say what is wrong with the arrays of a model file; empty if they fit."""
    for name, array in kept.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"{name} holds a number that is not finite"
        if name == "pools" or name.endswith(".vectors"):
            if array.ndim != 2 or array.shape[1] != dim or (name == "pools" and len(array) != len(reference.pools)):
                return f"{name} has shape {array.shape}"
        elif name.startswith("pole.") and array.shape != (dim,):
            return f"{name} has shape {array.shape}"
    return ""


def main() -> None:
    """Train the model of the bundled embedder and write it where it is shipped from (``make model``)."""
    from anima.authenticity.reference import Reference
    from anima.embedding import get_embedder

    model = Model(Reference.bundled(), embedder := get_embedder("bundled"))
    path = data_path() / "models" / f"{embedder.id}.npz"
    model.save(path)
    print(f"{path}: {path.stat().st_size // 1024} KB, key {model.key[:16]}")  # noqa: T201


if __name__ == "__main__":
    main()
