"""How the wordings of the formal markers are tried on a text, quickly.

Two hundred patterns on every reply would cost more than embedding it. A wording therefore names the beginnings of the words it may
open with (``heads``) and of the words any match holds (``cues``), four letters each, and is tried only where they stand. Both are derived
from the pattern; ``tests/authenticity/test_wordings.py`` proves that they lose no match.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from anima.authenticity.suppression import quoted_spans

if TYPE_CHECKING:
    from collections.abc import Iterable

Place = Literal["anywhere", "sentence", "start", "end"]

_LETTERS: Final = 4
_WORD = re.compile(rf"\b\w{{1,{_LETTERS}}}")
_SENTENCE_END = re.compile(r"[.!?…]{1,8}[\"')\]»*_]{0,4}(?=\s)|\n{1,8}")
#: List marks, emoji and opening marks that stand before the first word of a sentence.
_LEAD = re.compile(
    r"[\s*_#>\"'«(¡•▪–—\U0001F000-\U0001FAFF\u2600-\u27BF\uFE0F-]{0,40}(?:\d{1,2}[.)]\s{1,3}[*_\"'«(¡]{0,4})?"
)
#: What lies at the end of a text lies in its last characters.
_TAIL: Final = 80
#: Stands for "whatever the first word": no word begins with it.
_ANY: Final = "*"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wording:
    """One wording of a marker.

    Attributes
    ----------
    regex
        Compiled pattern. A group called ``hit`` marks what is reported; without one the whole match is.
    heads
        Beginnings of the first word of any match; tried at these words only. Empty: tried everywhere.
    cues
        Beginnings of words of which any match holds one; texts without any are not searched. Empty: none.
    chars
        Characters of which every match holds one. Empty: none.
    at
        Where a match may lie: ``"anywhere"``; ``"sentence"``: it begins a sentence or a quotation; at the ``"start"`` or
        ``"end"`` of the text.
    emoji
        Whether every match holds an emoji.
    cased
        Whether it looks at capitals; the others read lower case.
    """

    regex: re.Pattern[str]
    heads: frozenset[str] = frozenset()
    cues: frozenset[str] = frozenset()
    chars: str = ""
    at: Place = "anywhere"
    emoji: bool = False
    cased: bool = False


class View:
    """A normalised text and what several wordings need to know of it, computed when first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = _lower(text)

    @cached_property
    def words(self) -> list[tuple[str, int]]:
        """The beginning and the position of every word."""
        return [(match[0], match.start()) for match in _WORD.finditer(self.lower)]

    @cached_property
    def present(self) -> set[str]:
        """The beginnings of all words."""
        return {head for head, _ in self.words}

    @cached_property
    def pictured(self) -> bool:
        """Whether the text may hold an emoji: none comes before U+203C."""
        return max(self.text, default="") >= "\u203c"

    @cached_property
    def quotes(self) -> list[Span]:
        """Spans of quotations and code."""
        return quoted_spans(self.text)

    @cached_property
    def sentences(self) -> list[int]:
        """Starts of the sentences, marks that lead in skipped; at least one."""
        cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(self.text))]
        starts = dict.fromkeys(self._skip(cut) for cut in cuts)
        return [start for start in starts if start < len(self.text)] or [0]

    @cached_property
    def starts(self) -> list[tuple[str, int]]:
        """The first word and the position of sentences and of quotations."""
        found = sorted({*self.sentences, *(self._skip(start) for start, _ in self.quotes)})
        return [(match[0] if (match := _WORD.match(self.lower, at)) else "", at) for at in found]

    def _skip(self, at: int) -> int:
        match = _LEAD.match(self.text, at)
        return match.end() if match else at

    def sentence_of(self, at: int) -> int:
        """Return the number of the sentence in which ``at`` lies."""
        return max(0, bisect_right(self.sentences, at) - 1)

    def allows(self, wording: Wording) -> bool:
        """Tell whether the text holds what every match of ``wording`` does."""
        if wording.cues and wording.cues.isdisjoint(self.present):
            return False
        if wording.emoji and not self.pictured:
            return False
        return not wording.chars or any(char in self.text for char in wording.chars)


def _lower(text: str) -> str:
    """Return ``text`` in lower case, character by character: offsets stay.

    One letter (İ) has a lower case of two characters, which would shift every offset after it.
    """
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


_Entry = tuple[frozenset[str], int, Wording]  # cues come first: looking at them is the inner loop


class Plan:
    """The wordings of several markers, arranged by where they are tried: at words, at sentence starts, or everywhere.

    Parameters
    ----------
    wordings
        For each marker, its wordings.
    """

    def __init__(self, wordings: Iterable[Iterable[Wording]]) -> None:
        self._at_word: dict[str, list[_Entry]] = {}
        self._at_sentence: dict[str, list[_Entry]] = {}
        self._everywhere: list[tuple[int, Wording]] = []
        for i, several in enumerate(wordings):
            for wording in several:
                if wording.at in ("start", "end") or (wording.at == "anywhere" and not wording.heads):
                    self._everywhere.append((i, wording))
                    continue
                table = self._at_sentence if wording.at == "sentence" else self._at_word
                for head in wording.heads or {_ANY}:
                    table.setdefault(head, []).append((wording.cues, i, wording))

    def spans(self, view: View) -> dict[int, list[Span]]:
        """Return, by the number of the marker, where its wordings stand: leftmost first, none overlapping."""
        found: dict[int, list[Span]] = {}
        for i, wording in self._everywhere:
            if view.allows(wording):
                found.setdefault(i, []).extend(_span(match) for match in _matches(wording, view))
        present = view.present
        for table, places in ((self._at_word, view.words), (self._at_sentence, view.starts)):
            anyhow = [item for item in table.get(_ANY, ()) if view.allows(item[2])]
            active = {
                head: [*kept, *anyhow]
                for head in {head for head, _ in places} & table.keys()
                if (kept := [item for item in table[head] if not item[0] or not item[0].isdisjoint(present)])
            }
            for head, at in places if active or anyhow else ():
                for _, i, wording in active.get(head, anyhow):
                    if match := wording.regex.match(view.lower, at):
                        found.setdefault(i, []).append(_span(match))
        return {i: _disjoint(several) for i, several in found.items()}


def _matches(wording: Wording, view: View) -> Iterable[re.Match[str]]:
    text = view.text if wording.cased else view.lower
    if wording.at == "start":
        return filter(None, [wording.regex.match(text)])
    return wording.regex.finditer(text, max(0, len(text) - _TAIL) if wording.at == "end" else 0)


def _span(match: re.Match[str]) -> Span:
    return match.span("hit" if "hit" in match.re.groupindex else 0)


def _disjoint(spans: list[Span]) -> list[Span]:
    """Return spans leftmost first, the longer of two that start together, none overlapping."""
    kept: list[Span] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < end and (not kept or start >= kept[-1][1]):
            kept.append((start, end))
    return kept
