"""Learn readable phrases that tell a label from labelled dialogues.

A phrase is a run of one to ``max_words`` words (a question or exclamation mark may close it). Phrases are taken one
after the other, the most precise first, each for what it adds to those before it; precision is shrunk towards the base
rate, so that three hits of three do not count as certainty. How much to shrink and where to stop is decided on inner
folds of the training dialogues; what the result is worth is estimated on outer folds that the choice never saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.checks import require_columns, require_int, require_number, require_texts
from anima.errors import InputError
from anima.lexicon.phrases import Phrase, PhraseLexicon, flags_of, scores_of
from anima.lexicon.scan import is_mark, words_of
from anima.text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from anima.stats.weighted import Flags

#: Bars that the inner folds choose from, unless told otherwise: shrunk precision, and weight of the base rate.
PRECISIONS = (0.3, 0.4, 0.5, 0.6)
PRIORS = (2.0, 4.0, 8.0)


def learn(
    utterances: pd.DataFrame,
    label: str,
    *,
    text: str = "text",
    groups: str = "dialogue_id",
    min_precision: float | Sequence[float] = PRECISIONS,
    min_support: int = 3,
    max_words: int = 4,
    prior: float | Sequence[float] = PRIORS,
    folds: int = 5,
    seed: int = 0,
    n_resamples: int = 2000,
) -> PhraseLexicon:
    """Learn the phrases that tell a label.

    Parameters
    ----------
    utterances
        One row per utterance; as from ``corpus.labelled(scheme)``.
    label, text, groups
        Columns: the label (booleans), the text, and what is held out as a whole.
    min_precision
        Least shrunk precision ``(hits + prior · base rate) / (n + prior)`` of a phrase on the utterances that no
        earlier phrase found. Several values: the inner folds choose.
    min_support
        Least number of such utterances.
    max_words
        Longest phrase.
    prior
        Weight of the base rate, in utterances; 0 is raw precision. Several values: the inner folds choose.
    folds, seed
        Outer folds, by group and shuffled by ``seed``; inner ones are one fewer, at least two. 0 folds: no held-out score; 1
        is refused.
    n_resamples
        Resamples of groups for the intervals.

    Returns
    -------
    PhraseLexicon
        Learnt on all utterances; ``held_out`` is the score of the predictions of the outer folds.

    Raises
    ------
    InputError
        If a column is missing, the label is no boolean or constant, or there are too few groups for the folds.

    Notes
    -----
    Sequential covering with the m-estimate (Cestnik 1990; Fürnkranz, Gamberger and Lavrač 2012, ch. 8). Choosing the
    bars on kappa over inner folds costs nothing in honesty: outer folds see neither phrases nor bars
    (``tests/lexicon/test_phrases.py`` proves it on shuffled labels). The default bars themselves were picked with CaSiNo
    in view; there, 5 folds by dialogue give kappa .62 [.58, .66] on elicit-pref with 22 phrases, where the rule
    "precision .6, support 5, nothing shrunk" gives .59.
    """
    for name, column in (("label", label), ("text", text), ("groups", groups)):
        if not isinstance(column, str):
            fix = "" if not hasattr(column, "index") else "; put it into utterances, which pandas does by index"
            raise InputError(f"{name} must be the name of a column of utterances, got {type(column).__name__}{fix}")
    require_columns(utterances, [text, label, groups], "utterances")
    precisions = [require_number(value, "min_precision", low=0, high=1) for value in _several(min_precision)]
    priors = [require_number(value, "prior", low=0) for value in _several(prior)]
    require_int(min_support, "min_support", low=1)
    require_int(max_words, "max_words", low=1, high=8)
    if require_int(folds, "folds", low=0) == 1:
        raise InputError(
            "folds must be 0 (no held-out score) or at least 2, got 1: one fold leaves nothing to learn from"
        )
    if not (precisions and priors):
        raise InputError("min_precision and prior must hold one value each at least")
    if not len(utterances):
        raise InputError("utterances has no row: nothing to learn")
    if (gone := utterances[groups].isna()).any():
        raise InputError(
            f"utterances: column {groups!r} is missing in row {utterances.index[gone][0]!r}: give every row a group"
        )
    truth = flags_of(utterances, label)
    if truth.all() or not truth.any():
        raise InputError(f"utterances: column {label!r} is {bool(truth[:1].all())} everywhere: nothing to learn")
    clusters = utterances[groups].to_numpy()
    bars = [(precision, weight) for precision in precisions for weight in priors]
    # What an outer fold trains on is parted into inner folds, if there is something to choose.
    least = {0: 2, 2: 4}.get(folds, folds) if len(bars) > 1 else folds
    if (n_groups := len(set(clusters))) < least:
        advice = "lower folds" if folds > 2 else "give more groups"
        raise InputError(f"utterances: {n_groups} groups in {groups!r}, {folds} folds need at least {least}: {advice}")
    grams = Grams(require_texts(utterances[text], text), max_words)
    rows = np.arange(len(truth))
    held_out = None
    if folds >= 2:
        predicted = np.zeros(len(truth), dtype=bool)
        for train, test in _folds(clusters, rows, folds, seed):
            _, chosen = take(grams, truth, clusters, train, bars, min_support, folds, seed)
            predicted[test] = grams.any(test, chosen)
        held_out = scores_of(label, truth, predicted, clusters, True, n_resamples, seed)
    bar, chosen = take(grams, truth, clusters, rows, bars, min_support, folds, seed)
    phrases = tuple(grams.phrase(j, truth) for j in chosen)
    settings = {
        "min_precision": bar[0], "prior": bar[1], "min_support": min_support, "max_words": max_words, "folds": folds,
        "seed": seed, "n_utterances": len(truth), "n_positive": int(truth.sum()), "n_groups": n_groups,
    }  # fmt: skip
    return PhraseLexicon(label, phrases, settings, held_out)


def _several(value: float | Sequence[float]) -> list[float]:
    return list(value) if isinstance(value, Sequence) else [value]


def _folds(
    clusters: NDArray[Any], rows: NDArray[np.intp], folds: int, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield training and test rows, whole groups together."""
    from sklearn.model_selection import GroupKFold

    for train, test in GroupKFold(folds, shuffle=True, random_state=seed).split(rows, groups=clusters[rows]):
        yield rows[train], rows[test]


def _best_bar(
    grams: Grams, truth: Flags, clusters: NDArray[Any], rows: NDArray[np.intp], bars: list[tuple[float, float]],
    support: int, folds: int, seed: int,
) -> tuple[float, float]:  # fmt: skip
    """Return the bars with the highest kappa over inner folds of the given rows."""
    if len(bars) == 1:
        return bars[0]
    inner = list(_folds(clusters, rows, max(2, folds - 1), seed + 1))
    best, best_kappa = bars[0], -np.inf
    for bar in bars:
        predicted = np.zeros(len(truth), dtype=bool)
        for train, test in inner:
            predicted[test] = grams.any(test, grams.cover(train, truth, *bar, support))
        kappa = _kappa(truth[rows], predicted[rows])
        if kappa > best_kappa:
            best, best_kappa = bar, kappa
    return best


def take(
    grams: Grams, truth: Flags, clusters: NDArray[Any], rows: NDArray[np.intp], bars: list[tuple[float, float]],
    support: int, folds: int, seed: int,
) -> tuple[tuple[float, float], list[int]]:  # fmt: skip
    """Return the bars chosen on the given rows, and the runs they take there."""
    bar = _best_bar(grams, truth, clusters, rows, bars, support, folds, seed)
    return bar, grams.cover(rows, truth, *bar, support)


def _kappa(truth: Flags, predicted: Flags) -> float:
    a, b = truth.mean(), predicted.mean()
    chance = a * b + (1 - a) * (1 - b)
    return float(((truth == predicted).mean() - chance) / (1 - chance)) if chance < 1 else 0.0


class Grams:
    """Which runs of words stand in which utterance: a sparse table, by column for counting and by row for folds."""

    def __init__(self, texts: list[str], max_words: int) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(analyzer=lambda text: word_runs(text, max_words), binary=True, min_df=2)
        try:
            table = vectorizer.fit_transform(texts)
        except ValueError:  # not one run stands in two utterances
            raise InputError("utterances: no phrase occurs twice: nothing to learn from") from None
        self.names: list[str] = vectorizer.get_feature_names_out().tolist()
        self._rows = table.tocsr()
        self._length = np.array([name.count(" ") for name in self.names])
        self._columns = table.tocsc()

    def phrase(self, j: int, truth: Flags) -> Phrase:
        """Return a run with the number of utterances that hold it, and of those with the label among them."""
        rows = self._with(j)
        return Phrase(self.names[j], len(rows), int(truth[rows].sum()))

    def _with(self, j: int) -> NDArray[np.intp]:
        return np.asarray(self._columns.indices[self._columns.indptr[j] : self._columns.indptr[j + 1]])

    def any(self, rows: NDArray[np.intp], chosen: list[int]) -> Flags:
        """Return for each row whether one of the runs stands in it."""
        mask = np.zeros(len(self.names))
        mask[chosen] = 1
        return np.asarray(self._rows[rows] @ mask > 0)

    def cover(self, rows: NDArray[np.intp], truth: Flags, precision: float, prior: float, support: int) -> list[int]:
        """Return the runs taken, in order; only the given rows are looked at."""
        inside = np.zeros(len(truth))
        inside[rows] = 1
        n = inside @ self._rows
        hits = (inside * truth) @ self._rows
        base = prior * truth[rows].mean()
        with np.errstate(invalid="ignore"):
            shrunk = (hits + base) / (n + prior)
        candidates = np.flatnonzero((n >= support) & (shrunk >= precision))
        open_rows = inside.astype(bool)
        taken = []
        # Equal precision: the run with more support, then the shorter, then the alphabet.
        for j in candidates[np.lexsort((candidates, self._length[candidates], -n[candidates], -shrunk[candidates]))]:
            new = self._with(j)
            new = new[open_rows[new]]
            if len(new) >= support and (truth[new].sum() + base) / (len(new) + prior) >= precision:
                open_rows[new] = False
                taken.append(int(j))
        return taken


def word_runs(text: str, max_words: int) -> set[str]:
    """Return the runs of words of a text that a trigger can match: marks end them, "?" and "!" may stand last."""
    tokens = words_of(normalize(text).text).low
    found = set()
    for i, first in enumerate(tokens):
        if is_mark(first):
            continue
        for j in range(i, min(i + max_words, len(tokens))):
            if is_mark(tokens[j]):
                if tokens[j] in "?!":
                    found.add(" ".join(tokens[i : j + 1]))
                break
            found.add(" ".join(tokens[i : j + 1]))
    return found
