"""Texts with what stands around them; features are computed once for all of them and shared by every part taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from anima.checks import require_columns, require_texts
from anima.errors import InputError
from anima.stats.resampling import cluster_codes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from anima.embedding.base import Embedder

Grams = Literal["word", "char"]

#: How each table of n-grams is counted: whole words one and two at a time, characters inside words two to five.
GRAMS: Final[Mapping[Grams, dict[str, Any]]] = {
    "word": {"ngram_range": (1, 2), "token_pattern": r"(?u)\b\w\w+\b"},
    "char": {"ngram_range": (2, 5), "analyzer": "char_wb"},
}
#: Columns that :func:`with_context` adds.
CONTEXT: Final = ("previous", "same_speaker", "turn")


class Texts(Sequence[str]):
    """A list of texts that detectors read.

    Parameters
    ----------
    texts
        The texts.
    groups
        ``(n,)`` dialogue of each text, kept whole by the folds in which thresholds are chosen; None: each text by
        itself.
    context
        Columns of :data:`CONTEXT`, for detectors that look at what came before.
    embedder
        As for :func:`anima.embedding.get_embedder`; asked when the first detector wants vectors.
    """

    def __init__(
        self,
        texts: Sequence[str],
        *,
        groups: ArrayLike | None = None,
        context: Mapping[str, ArrayLike] | None = None,
        embedder: str | Embedder | None = None,
    ) -> None:
        self._store = _Store(require_texts(texts), context, embedder)
        n = len(self._store.texts)
        self._rows = np.arange(n)
        self.groups = np.arange(n) if groups is None else cluster_codes(groups, n, "groups")

    @classmethod
    def of(cls, texts: Sequence[str], groups: ArrayLike | None = None) -> Texts:
        """Return ``texts`` as they are if they are :class:`Texts`, else wrapped."""
        return texts if isinstance(texts, Texts) else cls(texts, groups=groups)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        return self._store.texts[self._rows[place]]

    def take(self, rows: NDArray[Any]) -> Texts:
        """Return the texts of some rows (numbers or a mask); features already computed are shared."""
        part = object.__new__(Texts)
        part._store, part._rows, part.groups = self._store, self._rows[rows], self.groups[rows]
        return part

    def vectors(self, which: Literal["text", "previous"] = "text") -> NDArray[np.float64]:
        """Return ``(n, dim)`` embeddings; zeros for a blank text."""
        return self._store.vectors(which)[self._rows]

    def context(self, column: str) -> NDArray[Any]:
        """Return a column of the context."""
        return self._store.column(column)[self._rows]

    def vocabulary(self, grams: Grams, min_count: int) -> list[str]:
        """Return the n-grams that stand in at least ``min_count`` of these texts, in alphabetical order."""
        names, table = self._store.counted(grams)
        found = np.bincount(table[self._rows].indices, minlength=len(names))
        return [names[j] for j in np.flatnonzero(found >= min_count)]

    def counts(self, grams: Grams, vocabulary: Sequence[str]) -> Any:
        """Return how often each n-gram stands in each text, a sparse table ``(n, len(vocabulary))``."""
        from scipy.sparse import csr_matrix

        if not len(vocabulary):
            return csr_matrix((len(self), 0))
        places = self._store.places.get(grams, {})
        columns = [places.get(name, -1) for name in vocabulary]
        if places and min(columns, default=0) >= 0:
            return self._store.counted(grams)[1][self._rows][:, columns]
        return _vectorizer(grams, vocabulary=list(vocabulary)).transform(list(self))

    def runs(self, max_words: int) -> list[frozenset[str]]:
        """Return the runs of words of each text, as learnt phrases are made of."""
        known = self._store.runs_of(max_words)
        return [known[row] for row in self._rows]


class _Store:
    """Texts and what was computed of them."""

    def __init__(
        self, texts: list[str], context: Mapping[str, ArrayLike] | None, embedder: str | Embedder | None
    ) -> None:
        self.texts, self._embedder = texts, embedder
        self._context = {name: np.asarray(values) for name, values in (context or {}).items()}
        for name, values in self._context.items():
            if values.shape != (len(texts),):
                raise InputError(f"context[{name!r}] must have {len(texts)} items, one per text, got {values.shape}")
        self._vectors: dict[str, NDArray[np.float64]] = {}
        self._counted: dict[Grams, tuple[list[str], Any]] = {}
        self._runs: dict[int, list[frozenset[str]]] = {}
        self.places: dict[Grams, dict[str, int]] = {}

    def column(self, name: str) -> NDArray[Any]:
        if name not in self._context:
            raise InputError(f"context lacks {name!r}: use anima.detectors.with_context, or a detector without context")
        return self._context[name]

    def vectors(self, which: str) -> NDArray[np.float64]:
        if which not in self._vectors:
            from anima.embedding import get_embedder

            texts = self.texts if which == "text" else [str(text) for text in self.column(which)]
            distinct = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            rows = get_embedder(self._embedder).embed(list(distinct))
            self._vectors[which] = np.nan_to_num(rows.astype(np.float64))[[distinct[text] for text in texts]]
        return self._vectors[which]

    def counted(self, grams: Grams) -> tuple[list[str], Any]:
        if grams not in self._counted:
            vectorizer = _vectorizer(grams, min_df=1)
            try:
                table = vectorizer.fit_transform(self.texts)
            except ValueError:
                raise InputError("texts hold no words to count: use a detector of vectors or phrases") from None
            self.places[grams] = vectorizer.vocabulary_
            self._counted[grams] = vectorizer.get_feature_names_out().tolist(), table.tocsr()
        return self._counted[grams]

    def runs_of(self, max_words: int) -> list[frozenset[str]]:
        if max_words not in self._runs:
            from anima.lexicon.learn import word_runs

            self._runs[max_words] = [frozenset(word_runs(text, max_words)) for text in self.texts]
        return self._runs[max_words]


def _vectorizer(grams: Grams, **options: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(**GRAMS[grams], **options)


def with_context(frame: pd.DataFrame, utterances: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return labelled utterances with what came before each: ``previous`` (a text, "" at the start) and ``same_speaker``.

    Parameters
    ----------
    frame
        Columns ``dialogue_id``, ``turn``, ``speaker``, ``text``, as from ``corpus.labelled``.
    utterances
        All utterances of the dialogues, those without labels too (``corpus.utterances``); None: ``frame`` itself.
        Only earlier turns are looked at, so that the detector can be used while a dialogue runs.
    """
    columns = ["dialogue_id", "turn", "speaker", "text"]
    every = frame if utterances is None else utterances
    require_columns(frame, columns)
    require_columns(every, columns, "utterances")
    ordered = every[columns].sort_values(["dialogue_id", "turn"], kind="stable")
    if ordered.duplicated(["dialogue_id", "turn"]).any():
        raise InputError("utterances has two rows for one turn of one dialogue: number the turns anew")
    before = ordered.groupby("dialogue_id", sort=False)[["speaker", "text"]].shift(1)
    ordered["previous"] = before["text"].fillna("")
    ordered["same_speaker"] = before["speaker"].eq(ordered["speaker"])
    bare = frame.drop(columns=["previous", "same_speaker"], errors="ignore")
    found = bare.merge(
        ordered[["dialogue_id", "turn", "previous", "same_speaker"]], how="left", on=["dialogue_id", "turn"]
    )
    if found["previous"].isna().any():
        row = frame.index[int(found["previous"].isna().to_numpy().argmax())]
        raise InputError(f"utterances lacks the turn of row {row!r} of frame: pass all utterances of its dialogue")
    return found.set_axis(frame.index).astype({"same_speaker": bool})
