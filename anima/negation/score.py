"""One ruler for negation scope: readers of CD-SCO and NUBes, the score, and trivial baselines.

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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anima.errors import DataError
from anima.negation.scope import scopes

if TYPE_CHECKING:
    import pandas as pd

    from anima.negation.cues import Lang
    from anima.negation.scope import View

_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")
_GLUED: Final = re.compile(r"[.,;:!?’”)\]…]+|n['’]t|['’](?:s|ll|re|ve|m|d)")
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


def read_cd_sco(path: str | Path, view: View = "right") -> Iterator[Sentence]:
    """Yield the sentences of one CD-SCO file in the format of the *SEM 2012 shared task.

    Raises
    ------
    DataError
        If a line has too few columns.
    """
    path = Path(path)
    line = 1
    for block in path.read_text(encoding="utf-8-sig").replace("\r\n", "\n").strip().split("\n\n"):
        rows = [row.split("\t") for row in block.splitlines()]
        for at, row in enumerate(rows):
            if len(row) < 8 or len(row) != len(rows[0]):
                raise DataError(
                    f"{path}:{line + at}: {len(row)} columns where the sentence has {len(rows[0])} (at least 8)"
                )
        line += len(rows) + 1
        n_cues = 0 if rows[0][7:] == ["***"] else (len(rows[0]) - 7) // 3
        gold: set[int] = set()
        for k in range(n_cues):
            cue = {i for i, row in enumerate(rows) if row[7 + 3 * k] != "_"}
            scope = {i for i, row in enumerate(rows) if row[8 + 3 * k] != "_"}
            # A word with a negative affix is cue and scope at once: it counts as cue.
            gold |= {i for i in scope - cue if view == "full" or i > min(cue)}
        text, offsets = "", []
        for row in rows:
            text += "" if not text or _GLUED.fullmatch(row[3]) else " "
            offsets.append((len(text), len(text) + len(row[3])))
            text += row[3]
        kept = [i for i, row in enumerate(rows) if re.search(r"\w", row[3])]
        yield Sentence(
            text,
            [rows[i][3] for i in kept],
            [offsets[i] for i in kept],
            frozenset(j for j, i in enumerate(kept) if i in gold),
        )


def read_nubes(folder: str | Path) -> Iterator[Sentence]:
    """Yield the lines of the brat files of NUBes under a folder, syntactic negation only, to the right of the cue."""
    for path in sorted(Path(folder).rglob("*.ann")):
        text = path.with_suffix(".txt").read_text(encoding="utf-8")
        spans, pairs = _brat(path)
        start = 0
        for line in text.split("\n"):
            offsets = [match.span() for match in _WORD.finditer(line)]
            cues = {
                key: span
                for key, span in spans.items()
                if span[0] == "NegSynMarker" and start <= span[1] < start + len(line)
            }
            gold: set[int] = set()
            cue_tokens: set[int] = set()
            for i, (low, high) in enumerate(offsets):
                low, high = low + start, high + start
                if any(low >= cue[1] and high <= cue[2] for cue in cues.values()):
                    cue_tokens.add(i)
                for cue_key, scope_key in pairs:
                    scope = spans.get(scope_key)
                    if cue_key in cues and scope and low >= scope[1] and high <= scope[2] and low >= cues[cue_key][1]:
                        gold.add(i)
            if offsets:
                yield Sentence(line, [line[low:high] for low, high in offsets], offsets, frozenset(gold - cue_tokens))
            start += len(line) + 1


def _brat(path: Path) -> tuple[dict[str, tuple[str, int, int]], list[tuple[str, str]]]:
    """Return the entities (kind, first and last character) and the pairs of cue and scope of a brat file."""
    spans: dict[str, tuple[str, int, int]] = {}
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        part = line.split("\t")
        try:
            if part[0].startswith("T"):
                kind, where = part[1].split(" ", 1)
                places = re.findall(r"\d+", where)
                spans[part[0]] = (kind, int(places[0]), int(places[-1]))
            elif part[0].startswith("R") and (
                match := re.match(r"(?:Scope|DiscScope) Arg1:(T\d+) Arg2:(T\d+)", part[1])
            ):
                pairs.append((match[1], match[2]))
        except (IndexError, ValueError):
            raise DataError(f"{path}:{number}: not a brat annotation: {line!r}") from None
    return spans, pairs


@dataclass(frozen=True, slots=True)
class NegationScore:
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
        names = ("precision", "recall", "f1", "exact", "false_alarm", "n_gold", "n_free")
        values = {name: getattr(self, name) for name in names}
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()
        }

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

    def _repr_html_(self) -> str:
        return f"<p>{self.summary()}</p>"


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
