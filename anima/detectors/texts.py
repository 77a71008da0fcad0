"""Texts with what stands around them; features are computed once for all of them and shared by every part taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
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


def aligned(values: Any, like: Any, name: str, of: str = "texts") -> Any:
    """Return ``values`` in the order of the rows of ``like``, where both have an index; else as they are.

    pandas matches rows by index, numpy by place: where the two would differ, the index is right or the rows are not the same.
    """
    index, other = (item.index if hasattr(item, "iloc") else None for item in (values, like))
    if index is None or other is None or len(index) != len(other) or index.equals(other):
        return values
    if index.is_unique and other.is_unique and index.isin(other).all():
        return values.loc[other]
    strange = index[~index.isin(other)]
    told = f"row {strange[0]!r} of {name} is not in {of}" if len(strange) else "rows of one name cannot be told apart"
    raise InputError(
        f"{name} must have the index of {of}: {told}; if the rows stand in one order, write {name}.set_axis({of}.index)"
    )


class Texts(Sequence[str]):
    """A list of texts that detectors read.

    Parameters
    ----------
    texts
        The texts. What else has an index is put in the order of theirs.
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
        self._texts, self._embedder = require_texts(texts), embedder
        n = len(self._texts)
        self._columns = {
            name: np.asarray(aligned(values, texts, f"context[{name!r}]")) for name, values in (context or {}).items()
        }
        for name, values in self._columns.items():
            if values.shape != (n,):
                raise InputError(f"context[{name!r}] must have {n} items, one per text, got {values.shape}")
        #: What was computed of all texts, by name; shared with every part.
        self._known: dict[Any, Any] = {}
        self._rows = np.arange(n)
        told = aligned(groups, texts, "groups")
        self.groups = np.arange(n) if groups is None else cluster_codes(told, n, "groups")

    @classmethod
    def of(cls, texts: Sequence[str], groups: ArrayLike | None = None) -> Texts:
        """Return ``texts`` as they are if they are :class:`Texts`, else wrapped."""
        return texts if isinstance(texts, Texts) else cls(texts, groups=groups)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        return self._texts[self._rows[place]]

    def take(self, rows: NDArray[Any]) -> Texts:
        """Return the texts of some rows (numbers or a mask); features already computed are shared."""
        part = copy(self)
        part._rows, part.groups = self._rows[rows], self.groups[rows]
        return part

    def vectors(self, which: Literal["text", "previous"] = "text") -> NDArray[np.float64]:
        """Return ``(n, dim)`` embeddings; zeros for a blank text."""
        if which not in self._known:
            from anima.embedding import get_embedder

            texts = self._texts if which == "text" else [str(text) for text in self._column(which)]
            distinct = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            rows = np.nan_to_num(get_embedder(self._embedder).embed(list(distinct)).astype(np.float64))
            self._known[which] = rows[[distinct[text] for text in texts]]
        return np.asarray(self._known[which][self._rows])

    def context(self, column: str) -> NDArray[Any]:
        """Return a column of the context."""
        return self._column(column)[self._rows]

    def vocabulary(self, grams: Grams, min_count: int) -> list[str]:
        """Return the n-grams that stand in at least ``min_count`` of these texts, in alphabetical order."""
        names, table, _ = self._counted(grams)
        found = np.bincount(table[self._rows].indices, minlength=len(names))
        return [names[j] for j in np.flatnonzero(found >= min_count)]

    def counts(self, grams: Grams, vocabulary: Sequence[str]) -> Any:
        """Return how often each n-gram stands in each text, a sparse table ``(n, len(vocabulary))``."""
        from scipy.sparse import csr_matrix

        if not len(vocabulary):
            return csr_matrix((len(self), 0))
        if grams in self._known:
            _, table, places = self._known[grams]
            columns = [places.get(name, -1) for name in vocabulary]
            if min(columns) >= 0:
                return table[self._rows][:, columns]
        return _vectorizer(grams, vocabulary=list(vocabulary)).transform(list(self))

    def runs(self, max_words: int) -> list[frozenset[str]]:
        """Return the runs of words of each text, as learnt phrases are made of."""
        if max_words not in self._known:
            from anima.lexicon.learn import word_runs

            self._known[max_words] = [frozenset(word_runs(text, max_words)) for text in self._texts]
        return [self._known[max_words][row] for row in self._rows]

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._columns:
            raise InputError(f"context lacks {name!r}: use anima.detectors.with_context, or a detector without context")
        return self._columns[name]

    def _counted(self, grams: Grams) -> tuple[list[str], Any, dict[str, int]]:
        """Return the n-grams of all texts, their table, and their columns in it."""
        if grams not in self._known:
            vectorizer = _vectorizer(grams, min_df=1)
            try:
                table = vectorizer.fit_transform(self._texts).tocsr()
            except ValueError:
                raise InputError("texts hold no words to count: use a detector of vectors or phrases") from None
            names = vectorizer.get_feature_names_out().tolist()
            self._known[grams] = names, table, vectorizer.vocabulary_
        return self._known[grams]  # type: ignore[no-any-return]


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
    added = ordered[["dialogue_id", "turn", "previous", "same_speaker"]]
    found = bare.merge(added, how="left", on=["dialogue_id", "turn"])
    if found["previous"].isna().any():
        row = frame.index[int(found["previous"].isna().to_numpy().argmax())]
        raise InputError(f"utterances lacks the turn of row {row!r} of frame: pass all utterances of its dialogue")
    return found.set_axis(frame.index).astype({"same_speaker": bool})
