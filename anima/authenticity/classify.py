"""Which intent a sentence has: centroids, several centroids, or a trained linear head.

Compared in the notebook on the embedding pipeline; the default is the one that won there by more than its interval.
Every classifier gives the same answer for a sentence whatever else is in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from anima.authenticity.intents import UNCLASSIFIED
from anima.errors import InputError
from anima.text import normalize
from anima.vectors import centroid, cosine, unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from anima.authenticity.reference import Reference

ClassifierName = Literal["centroid", "centroids", "linear", "hybrid"]
CLASSIFIERS: tuple[ClassifierName, ...] = get_args(ClassifierName)

_SEED = 20240607


@dataclass(frozen=True, slots=True)
class IntentScores:
    """Scores of ``n`` sentences.

    Attributes
    ----------
    labels
        Names of the columns of ``scores``.
    scores
        Shape ``(n, len(labels))``: cosines (centroids) or probabilities (heads).
    chosen, confidence
        The label of each sentence and its score. A sentence rejected by a cosine threshold is UNCLASSIFIED with its
        best cosine.
    runner_up, margin
        The second best column and its distance from the best.
    """

    labels: tuple[str, ...]
    scores: NDArray[np.float64]
    chosen: list[str]
    confidence: NDArray[np.float64]
    runner_up: list[str]
    margin: NDArray[np.float64]


class Classifier(Protocol):
    """Anything that gives sentences an intent."""

    @property
    def name(self) -> ClassifierName:
        """Which classifier it is."""

    def classify(self, texts: Sequence[str], vectors: NDArray[Any]) -> IntentScores:
        """Score sentences given as texts and as unit rows of shape ``(n, dim)``."""


def rank(labels: tuple[str, ...], scores: NDArray[np.float64], *, threshold: float = -np.inf) -> IntentScores:
    """Choose the best label of each row; equal scores go to the label declared first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    rows = np.arange(len(scores))
    best = order[:, 0]
    second = order[:, 1] if scores.shape[1] > 1 else best
    top = scores[rows, best]
    return IntentScores(
        labels=labels,
        scores=scores,
        chosen=[labels[j] if score >= threshold else UNCLASSIFIED for j, score in zip(best, top, strict=True)],
        confidence=top,
        runner_up=[labels[j] for j in second],
        margin=top - scores[rows, second],
    )


@dataclass(frozen=True)
class CentroidClassifier:
    """Nearest centroid by cosine, UNCLASSIFIED below a threshold."""

    labels: tuple[str, ...]
    vectors: NDArray[np.float64]  # unit rows, one or several per intent, (m, dim)
    owner: NDArray[np.intp]  # whose each row is, as a place in ``labels``
    threshold: float
    name: ClassifierName = "centroid"

    @staticmethod
    def fit(
        reference: Reference, vectors: NDArray[Any], *, threshold: float, per_intent: int = 1
    ) -> CentroidClassifier:
        """Build centroids from the vectors of ``reference.prototypes``; plain sentences have none.

        With ``per_intent`` > 1 each intent gets that many spherical k-means centroids.
        """
        labels = reference.intents
        intents = np.array([example.intent for example in reference.prototypes])
        groups = [unit(vectors[intents == label]) for label in labels]
        found = [[centroid(own)] if per_intent == 1 else _spherical_means(own, per_intent) for own in groups]
        owner = np.repeat(np.arange(len(labels)), [len(rows) for rows in found])
        name: ClassifierName = "centroid" if per_intent == 1 else "centroids"
        return CentroidClassifier(labels, np.concatenate(found), owner, threshold, name)

    def classify(self, texts: Sequence[str], vectors: NDArray[Any]) -> IntentScores:  # noqa: ARG002
        """Score by cosine to the nearest centroid of each intent."""
        similarity = cosine(vectors, self.vectors)
        if len(self.vectors) > len(self.labels):
            similarity = np.stack([similarity[:, self.owner == j].max(axis=1) for j in range(len(self.labels))], axis=1)
        return rank(self.labels, similarity, threshold=self.threshold)


def _spherical_means(rows: NDArray[np.float64], k: int) -> list[NDArray[np.float64]]:
    from sklearn.cluster import KMeans

    found = KMeans(n_clusters=min(k, len(rows)), n_init=4, random_state=_SEED).fit(rows)
    return [centroid(rows[found.labels_ == j]) for j in range(found.n_clusters)]


@dataclass(frozen=True)
class Head:
    """A multinomial logistic regression over the intents and UNCLASSIFIED, which is its last label."""

    labels: tuple[str, ...]
    weights: NDArray[np.float32]  # (dim + n_ngrams, len(labels))
    intercept: NDArray[np.float32]  # (len(labels),)
    ngrams: Ngrams | None  # None: a head on vectors alone
    dim: int

    @property
    def name(self) -> ClassifierName:
        """``hybrid`` with n-grams, ``linear`` without."""
        return "linear" if self.ngrams is None else "hybrid"

    @staticmethod
    def fit(
        texts: Sequence[str],
        vectors: NDArray[Any],
        intents: Sequence[str],
        labels: tuple[str, ...],
        *,
        ngrams: bool,
        C: float | None = None,
    ) -> Head:
        """Train on labelled sentences.

        Parameters
        ----------
        texts, vectors, intents
            ``n`` sentences, their unit rows of shape ``(n, dim)``, and their labels.
        labels
            The intents in declared order; UNCLASSIFIED is added.
        ngrams
            Whether words and characters are read beside the vector. They catch the wording of a move, which an embedder
            trained for topics partly throws away.
        C
            Inverse strength of the L2 penalty; None for the value chosen by cross-validation on the training replies.
        """
        from scipy import sparse
        from sklearn.linear_model import LogisticRegression

        labels = (*labels, UNCLASSIFIED)
        missing = set(labels) - set(intents)
        if missing:
            raise InputError(
                f"intents has no example of {', '.join(sorted(missing))}: a head needs some of each label and of plain sentences"
            )
        dense = np.asarray(vectors, dtype=np.float64)
        features: Any = dense
        reader = None
        if ngrams:
            reader = Ngrams.fit(texts)
            features = sparse.hstack([sparse.csr_matrix(dense), reader.transform(texts)], format="csr")
        model = LogisticRegression(C=C or (30.0 if ngrams else 10.0), max_iter=3000, tol=1e-5)
        model.fit(features, np.array([labels.index(intent) for intent in intents]))
        return Head(
            labels, model.coef_.T.astype(np.float32), model.intercept_.astype(np.float32), reader, dense.shape[1]
        )

    def classify(self, texts: Sequence[str], vectors: NDArray[Any]) -> IntentScores:
        """Score by probability."""
        return rank(self.labels, self.probabilities(texts, vectors))

    def probabilities(self, texts: Sequence[str], vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of each label, shape ``(n, len(labels))``; rows sum to 1."""
        # vecdot and sparse rows, not a dense matrix product, whose last bits vary with the size of the batch.
        weights = self.weights[: self.dim].T.astype(np.float64)
        logits = np.vecdot(np.asarray(vectors, dtype=np.float64)[:, None, :], weights[None, :, :]) + self.intercept
        if self.ngrams is not None:
            logits += self.ngrams.transform(texts) @ self.weights[self.dim :].astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True), dtype=np.float64)

    def to_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the head as named arrays for one ``.npz`` file."""
        arrays: dict[str, NDArray[Any]] = {
            "labels": np.array(self.labels),
            "weights": self.weights.astype(np.float16),
            "intercept": self.intercept,
            "dim": np.array(self.dim),
        }
        if self.ngrams is not None:
            arrays |= self.ngrams.to_arrays()
        return {f"{prefix}.{key}": value for key, value in arrays.items()}

    @staticmethod
    def from_arrays(arrays: Any, prefix: str) -> Head:
        """Read what :meth:`to_arrays` made."""
        own = {key.removeprefix(f"{prefix}."): arrays[key] for key in arrays if key.startswith(f"{prefix}.")}
        head = Head(
            labels=tuple(own["labels"].tolist()),
            weights=own["weights"].astype(np.float32),
            intercept=own["intercept"],
            ngrams=Ngrams.from_arrays(own) if "words" in own else None,
            dim=int(own["dim"]),
        )
        n_features = head.dim + (head.ngrams.size if head.ngrams else 0)
        if head.weights.shape != (n_features, len(head.labels)) or head.intercept.shape != (len(head.labels),):
            raise InputError(
                f"weights of shape {head.weights.shape} do not fit {n_features} features and {len(head.labels)} labels"
            )
        return head


class Ngrams:
    """Words (1 to 3) and characters inside words (3 to 5), as two tf-idf blocks of unit length."""

    #: Options of the two blocks, and the training sentences that must hold a feature.
    _BLOCKS: ClassVar[dict[str, tuple[dict[str, Any], int]]] = {
        "words": (
            {"ngram_range": (1, 3), "token_pattern": r"\w+|[?!¿¡:;…]", "sublinear_tf": True, "dtype": np.float64},
            5,
        ),
        "chars": ({"ngram_range": (3, 5), "analyzer": "char_wb", "sublinear_tf": True, "dtype": np.float64}, 18),
    }

    def __init__(self, words: Any, chars: Any) -> None:
        self._blocks = (words, chars)

    @staticmethod
    def fit(texts: Sequence[str]) -> Ngrams:
        """Learn the vocabulary and its weights from training sentences."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        cleaned = [_plain(text) for text in texts]
        # On a handful of sentences a support of 8 would leave nothing.
        few = len(cleaned) < 500
        return Ngrams(
            *(
                TfidfVectorizer(min_df=1 if few else support, **options).fit(cleaned)
                for options, support in Ngrams._BLOCKS.values()
            )
        )

    @property
    def size(self) -> int:
        """Number of features."""
        return sum(len(block.vocabulary_) for block in self._blocks)

    def transform(self, texts: Sequence[str]) -> Any:
        """Return a sparse matrix of shape ``(n, n_ngrams)``."""
        from scipy import sparse

        cleaned = [_plain(text) for text in texts]
        return sparse.hstack([block.transform(cleaned) for block in self._blocks], format="csr")

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return vocabulary and weights; the vocabulary as UTF-8 bytes, which pack well."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, block in zip(self._BLOCKS, self._blocks, strict=True):
            joined = "\n".join(block.get_feature_names_out()).encode()
            arrays[name] = np.frombuffer(joined, dtype=np.uint8)
            arrays[f"{name}_idf"] = block.idf_.astype(np.float32)
        return arrays

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]]) -> Ngrams:
        """Read what :meth:`to_arrays` made."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        blocks = []
        for name, (options, _) in Ngrams._BLOCKS.items():
            block = TfidfVectorizer(vocabulary=arrays[name].tobytes().decode().split("\n"), **options)
            block.idf_ = arrays[f"{name}_idf"].astype(np.float64)
            blocks.append(block)
        return Ngrams(*blocks)


def _plain(text: str) -> str:
    return " ".join(normalize(text).text.split())
