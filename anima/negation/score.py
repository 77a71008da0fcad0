"""One ruler for negation scope: gold from CD-SCO, NUBes and the written sentences, the score, and trivial baselines.

Protocol. The unit is the sentence (in NUBes the line); word tokens only. Gold is the union over the sentence of the scope
tokens to the right of their cue (view "right") or of all scope tokens ("full", CD-SCO only), the cue's own tokens left
out. Affixal cues of CD-SCO count; of NUBes only syntactic cues. Cues are found by the system, never given. Token
precision, recall and F1 run over all sentences, also those without negation; ``exact`` is the share of sentences with a
gold scope whose prediction is right to the token; ``false_alarm`` the share of sentences without one in which
something is predicted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anima.corpora.negation import Negation
from anima.negation.scope import scopes
from anima.stats import Presentable

if TYPE_CHECKING:
    import pandas as pd

    from anima.corpora.base import Corpus
    from anima.corpora.negation import Span
    from anima.negation.cues import Lang
    from anima.negation.scope import View

_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")
_HAS_WORD: Final = re.compile(r"\w")
_CUE_WORDS: Final = "no not never nobody nothing nowhere neither nor none cannot without nunca jamás nadie nada ningún ninguna ninguno tampoco ni sin"
_CUES: Final = frozenset(_CUE_WORDS.split())
_MARK: Final = re.compile(r"[.,;:!?—…]")


class Sentence(NamedTuple):
    """A sentence with its word tokens, their character offsets, and the indices of the tokens in the gold scope."""

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    gold: frozenset[int]


Predictor = Callable[[Sentence], "set[int] | frozenset[int]"]
"""From a sentence (its gold unseen) to the indices of the tokens held to be negated."""


def read_corpus(corpus: Corpus, view: View = "right") -> list[Sentence]:
    """Return the sentences of a loaded corpus of negation in its order; of NUBes under the protocol of NUBes.

    Shown equal to the reference ruler's by ``tests/negation/test_score.py``.
    """
    found: dict[str, dict[int, Negation]] = {}
    columns = (corpus.labels[name] for name in ("utterance_id", "scheme", "label", "start", "end", "group"))
    for key, scheme, kind, start, end, group in zip(*columns, strict=True):
        groups = found.setdefault(key, {})
        item = groups.get(group, Negation(kind, (), ()))
        longer: dict[str, Any] = {scheme: (*getattr(item, scheme), (start, end))}
        groups[group] = item._replace(**longer)
    syntactic = any("NegSynMarker" in labels for labels in corpus.schemes.values()) and not corpus.sample
    frame = corpus.utterances
    return [
        _sentence(text, tokens, found.get(key, {}).values(), view, syntactic=syntactic)
        for key, text, tokens in zip(frame["utterance_id"], frame["text"], frame["tokens"], strict=True)
    ]


def _sentence(
    text: str, tokens: tuple[Span, ...] | None, negations: Iterable[Negation], view: View, *, syntactic: bool
) -> Sentence:
    """Return a sentence with its gold; ``syntactic`` is the protocol of NUBes.

    There the tokens of every cue are left out and a token counts when it lies wholly inside a span, since the words
    are not the corpus' own; elsewhere only a negation's own cue is left out of its scope, and a token that a span
    touches counts: a word with a negative affix is cue and scope at once, and counts as cue.
    """
    spans = tokens or [match.span() for match in _WORD.finditer(text)]
    offsets = [(low, high) for low, high in spans if _HAS_WORD.search(text, low, high)]
    gold: set[int] = set()
    cues: set[int] = set()
    for kind, cue, scope in negations:
        if syntactic and kind != "NegSynMarker":
            continue
        own = _indices(offsets, cue, whole=syntactic)
        first = min(low for low, _ in cue)
        reach = _indices(offsets, scope, whole=syntactic)
        gold |= {i for i in reach - own if view == "full" or offsets[i][0] >= first}
        cues |= own if syntactic else set()
    return Sentence(text, [text[low:high] for low, high in offsets], offsets, frozenset(gold - cues))


def _indices(offsets: list[Span], spans: Iterable[Span], *, whole: bool) -> set[int]:
    return {
        i
        for start, end in spans
        for i, (low, high) in enumerate(offsets)
        if (start <= low and high <= end if whole else low < end and start < high)
    }


@dataclass(frozen=True)
class NegationScore(Presentable):
    """Score of a predictor; ``rows`` holds (true positives, false positives, misses, size of gold, exact) per sentence, so
    that intervals can be resampled over sentences. An undefined share is NaN.
    """

    precision: float
    recall: float
    f1: float
    exact: float
    false_alarm: float
    n_gold: int
    n_free: int
    rows: tuple[tuple[int, int, int, int, bool], ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, without the rows, ready for JSON."""
        return {name: value for name, value in super().to_dict().items() if name != "rows"}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per sentence: tp, fp, fn, n_gold, exact."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=["tp", "fp", "fn", "n_gold", "exact"])

    def summary(self) -> str:
        """Return one sentence."""
        return (
            f"Token F1 {self.f1:.3f}, exact scopes {self.exact:.3f} of {self.n_gold} sentences, "
            f"false alarms {self.false_alarm:.3f} of {self.n_free}."
        )


def score(sentences: Iterable[Sentence], predict: Predictor) -> NegationScore:
    """Return the score of ``predict`` under the protocol of this module.

    Shown equal to the reference ruler by ``tests/negation/test_score.py``.
    """
    rows = []
    for sentence in sentences:
        found, gold = set(predict(sentence)), sentence.gold
        rows.append((len(found & gold), len(found - gold), len(gold - found), len(gold), found == gold))
    tp, fp, fn = (sum(row[k] for row in rows) for k in range(3))
    with_gold = [row for row in rows if row[3]]
    free = [row for row in rows if not row[3]]
    return NegationScore(
        precision=_share(tp, tp + fp),
        recall=_share(tp, tp + fn),
        f1=_share(2 * tp, 2 * tp + fp + fn),
        exact=_share(sum(row[4] for row in with_gold), len(with_gold)),
        false_alarm=_share(sum(row[1] > 0 for row in free), len(free)),
        n_gold=len(with_gold),
        n_free=len(free),
        rows=tuple(rows),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def ours(lang: Lang | None, view: View = "right") -> Predictor:
    """Return the predictor made of :func:`anima.negation.scopes`."""

    def predict(sentence: Sentence) -> set[int]:
        found: set[int] = set()
        for scope in scopes(sentence.text, lang, view=view):
            if view == "right" and scope.direction == "left":
                continue
            for i, (start, end) in enumerate(sentence.offsets):
                own = start < scope.cue_span[1] and scope.cue_span[0] < end
                if not own and scope.covers(start, end):
                    found.add(i)
        return found

    return predict


def _is_cue(token: str) -> bool:
    form = token.lower().replace("’", "'")
    return form in _CUES or form.endswith("n't")


def after_cue(sentence: Sentence) -> set[int]:
    """Baseline: everything after the first cue."""
    cues = [i for i, token in enumerate(sentence.tokens) if _is_cue(token)]
    return set(range(cues[0] + 1, len(sentence.tokens))) - set(cues) if cues else set()


def to_punctuation(sentence: Sentence) -> set[int]:
    """Baseline: from each cue to the next punctuation mark."""
    text, tokens, offsets, _ = sentence
    cues = {i for i, token in enumerate(tokens) if _is_cue(token)}
    found: set[int] = set()
    for cue in cues:
        for i in range(cue + 1, len(tokens)):
            if _MARK.search(text[offsets[i - 1][1] : offsets[i][0]]):
                break
            found.add(i)
    return found - cues


def six_words(sentence: Sentence) -> set[int]:
    """Baseline: the six words after no, not, never, nunca or jamás, closed early by an adversative."""
    words = [token.lower() for token in sentence.tokens]
    found: set[int] = set()
    for cue, word in enumerate(words):
        if word in ("no", "not", "never", "nunca", "jamás"):
            for i in range(cue + 1, min(cue + 7, len(words))):
                if words[i] in ("but", "however", "except", "though", "pero", "aunque"):
                    break
                found.add(i)
    return found
