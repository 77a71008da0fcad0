"""Logistic regression on embeddings, on n-grams, and on both; thresholds and regularisation from inner folds.

One regression per label, exclusive or not. The n-grams' table is sparse and is solved in the dual by coordinate
descent; the embeddings' is dense and small and is solved by L-BFGS: measured, each is several times faster than the
other way round, with the same margins up to the solver's tolerance.

What is not chosen on inner folds (weight of the embeddings, sizes of the n-grams, the strengths offered) was picked with
CaSiNo and DeliData in view; both are flat around these values, macro-F1 moving by less than .005.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.checks import require_int, require_number
from anima.detectors.base import Detector
from anima.detectors.thresholds import macro_f1, thresholds_of
from anima.errors import InputError
from anima.stats.folds import grouped_folds

if TYPE_CHECKING:
    from anima.detectors.base import Part
    from anima.detectors.texts import Grams, Texts
    from anima.stats.weighted import Flags, Floats

_MIN_COUNT: dict[Grams, int] = {"word": 2, "char": 3}  # an n-gram in fewer training texts is noise


class LinearHead(Detector):
    """What the three heads share.

    Parameters
    ----------
    strength
        Inverse regularisation ``C``; of several, the first inner fold chooses by macro-F1. None: ``offered``.
    context
        Also look at the previous utterance, whether it has the same speaker, and how far the dialogue is
        (:func:`anima.detectors.with_context`).
    tune
        Choose the threshold of each label on inner folds by F1; where labels exclude each other, the handicap of each
        by macro-F1. False: even odds, as scikit-learn does.
    inner_folds, seed
        Inner folds keep dialogues whole and see training texts only.
    """

    grams: tuple[Grams, ...] = ()
    embedding_weight: float = 0.0  # what a unit vector weighs beside unit rows of n-grams; 0: not used

    offered: tuple[float, ...] = (1.0,)  # strengths, where none is given

    def __init__(
        self, *, strength: float | Sequence[float] | None = None, context: bool = False, tune: bool = True,
        inner_folds: int = 3, seed: int = 0,
    ) -> None:  # fmt: skip
        strength = self.offered if strength is None else strength
        several = strength if isinstance(strength, Sequence) else [strength]
        self.strength = [require_number(value, "strength", low=0, open_low=True) for value in several]
        if not self.strength:
            raise InputError("strength must hold one value at least")
        self.context, self.tune = context, tune
        self.inner_folds, self.seed = require_int(inner_folds, "inner_folds", low=2), require_int(seed, "seed", low=0)
        if context:
            self.name += " + context"
        self._vocabulary: dict[Grams, list[str]] = {}
        self._idf: dict[Grams, Floats] = {}

    def _fit(self, texts: Texts, truth: Flags) -> None:
        for grams in self.grams:
            words = self._vocabulary[grams] = texts.vocabulary(grams, _MIN_COUNT[grams])
            found = np.bincount(texts.counts(grams, words).indices, minlength=len(words))
            self._idf[grams] = np.log((1 + len(texts)) / (1 + found)) + 1
        X = self._features(texts)
        chosen, thresholds = self.strength[0], np.zeros(truth.shape[1])
        n_groups = len(np.unique(texts.groups))
        if n_groups > 1 and (self.tune or len(self.strength) > 1):
            fold = grouped_folds(texts.groups, min(self.inner_folds, n_groups), seed=self.seed)
            chosen, thresholds = self._tuned(X, truth, fold)
        self.chosen_strength = chosen
        self._weights, self._intercepts = _solve(X, truth, chosen)
        self._intercepts = self._intercepts - thresholds

    def _tuned(self, X: Any, truth: Flags, fold: Any) -> tuple[float, Floats]:
        """Return the strength and the thresholds that inner folds choose."""
        held: dict[tuple[float, int], Floats] = {}

        def scores(strength: float, k: int) -> Floats:
            if (strength, k) not in held:
                weights, intercepts = _solve(X[fold != k], truth[fold != k], strength)
                held[strength, k] = np.asarray(X[fold == k] @ weights + intercepts)
            return held[strength, k]

        def worth(strength: float) -> float:
            found, wanted = scores(strength, 0), truth[fold == 0]
            return macro_f1(found - thresholds_of(found, wanted, self.exclusive), wanted, self.exclusive)

        best = max(self.strength, key=worth) if len(self.strength) > 1 else self.strength[0]
        if not self.tune:
            return best, np.zeros(truth.shape[1])
        out = np.empty(truth.shape)
        for k in range(int(fold.max()) + 1):
            out[fold == k] = scores(best, k)
        return best, thresholds_of(out, truth, self.exclusive)

    def _features(self, texts: Texts) -> Any:
        """Return the table of features: dense without n-grams, else sparse."""
        dense = []
        if self.embedding_weight:
            dense.append(self.embedding_weight * texts.vectors())
        if self.context:
            if self.embedding_weight:
                dense.append(self.embedding_weight / 2 * texts.vectors("previous"))
            turn = np.log1p(texts.context("turn").astype(np.float64)) / 3  # late turns differ less than early ones
            dense.append(np.column_stack([texts.context("same_speaker").astype(np.float64), turn]))
        if not self.grams:
            return np.hstack(dense)
        from scipy import sparse

        tables = [self._tfidf(texts, grams) for grams in self.grams]
        return sparse.hstack([*tables, *map(sparse.csr_matrix, dense)], format="csr")

    def _tfidf(self, texts: Texts, grams: Grams) -> Any:
        from sklearn.preprocessing import normalize

        table = texts.counts(grams, self._vocabulary[grams]).astype(np.float64)
        if not table.shape[1]:
            return table  # in a few training texts no n-gram may stand twice
        table.data = (1 + np.log(table.data)) * self._idf[grams][table.indices]
        return normalize(table, copy=False)

    def _scores(self, texts: Texts) -> Floats:
        return np.asarray(self._features(texts) @ self._weights + self._intercepts)

    def _parts(self, text: Texts, place: int) -> list[Part]:
        row = self._features(text)
        values = np.asarray(row.todense() if self.grams else row).ravel() * self._weights[:, place]
        parts: list[Part] = [("intercept less threshold", "intercept", float(self._intercepts[place]))]
        start = 0
        for grams in self.grams:
            words = self._vocabulary[grams]
            held = row[:, start : start + len(words)].indices
            parts += [(words[j], grams, float(values[start + j])) for j in held]
            start += len(words)
        if self.embedding_weight:
            width = text.vectors().shape[1]
            parts.append(("meaning of the text", "embedding", float(values[start : start + width].sum())))
            start += width
        if self.context:
            if self.embedding_weight:
                parts.append(("meaning of the previous text", "embedding", float(values[start:-2].sum())))
            parts += [("same speaker as before", "context", float(values[-2])), ("turn", "context", float(values[-1]))]
        return parts


class EmbeddingHead(LinearHead):
    """Logistic regression on sentence embeddings: paraphrases count alike, single words hardly."""

    name = "embeddings"
    embedding_weight = 1.0
    offered = (2.0, 6.0)


class TfidfHead(LinearHead):
    """Logistic regression on TF-IDF of words (1–2) and of characters inside words (2–5): readable word by word."""

    name = "TF-IDF"
    grams = ("word", "char")
    offered = (1.0, 4.0)


class StackedHead(LinearHead):
    """Logistic regression on both, side by side: the strongest here, and the slowest."""

    name = "embeddings + TF-IDF"
    grams = ("word", "char")
    embedding_weight = 2.0
    offered = (0.25, 1.0)


def _solve(X: Any, truth: Flags, strength: float) -> tuple[Floats, Floats]:
    """Return weights ``(features, labels)`` and intercepts of one regression per label."""
    from sklearn.linear_model import LogisticRegression

    options: dict[str, Any] = {"solver": "liblinear", "dual": True, "tol": 0.1, "random_state": 0}
    if isinstance(X, np.ndarray):
        options = {"max_iter": 500}
    weights, intercepts = np.zeros((X.shape[1], truth.shape[1])), np.empty(truth.shape[1])
    for j, wanted in enumerate(truth.T):
        n = int(wanted.sum())
        if n in (0, len(wanted)) or not X.shape[1]:
            # Nothing to separate: the odds of a Bernoulli rate, smoothed as Jeffreys' prior does.
            intercepts[j] = np.log((n + 0.5) / (len(wanted) - n + 0.5))
            continue
        model = LogisticRegression(C=strength, **options).fit(X, wanted)
        weights[:, j], intercepts[j] = model.coef_[0], model.intercept_[0]
    return weights, intercepts
