"""Find the triggers of a lexicon in a text: whole words, longest first, with the polarity that negation gives them.

Words are found once, triggers by walking a tree of words: the time does not depend on the number of triggers. Matching
is on normalised text (NFC, straight quotes), spans refer to the original.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from anima.checks import require_choice, require_texts
from anima.errors import InputError
from anima.lexicon.categories import BLOCKED, expand, load_lexicon
from anima.negation import LANGUAGES, scopes
from anima.negation.cues import language
from anima.text import count_words, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from anima.lexicon.categories import Trigger
    from anima.negation import Lang, Scope

Polarity = Literal["affirmed", "negated", "uncertain"]

#: Words with inner apostrophes and marks that combine with nothing; marks that end a phrase. Commas, quotes, hyphens are overlooked.
_TOKEN = re.compile(r"[\w\u0300-\u036f]+(?:'[\w\u0300-\u036f]+)*|[?!.;:…\n¿¡()\[\]]|--+|[–—]")
_STARTS: Final = frozenset("?!.;:…\n¿¡()[]")
_MOST_BETWEEN: Final = 12
#: Between a cue and a hit these leave open what is denied: "I don't think (that) we have a deal", "no creo que".
_CLAUSE = re.compile(
    r"\b(?:that|if|whether|think|thought|believe|mean|say|said|know|sure|certain|que|si|creo|pienso|digo|dije|sé)\b",
    re.IGNORECASE,
)


class Words(NamedTuple):
    """A text in words: lower-case forms, bounds in the normalised text, which are marks."""

    text: str
    low: list[str]
    starts: list[int]
    ends: list[int]


def words_of(text: str) -> Words:
    """Cut a normalised text into words and the marks that end a phrase."""
    spans = [match.span() for match in _TOKEN.finditer(text)]
    return Words(text, [text[a:b].lower() for a, b in spans], [a for a, _ in spans], [b for _, b in spans])


@lru_cache(maxsize=1 << 14)
def _tokens(word: str) -> tuple[str, ...]:
    return tuple(words_of(word).low)


def is_mark(token: str) -> bool:
    """Tell whether a token of :func:`words_of` is a mark."""
    return token in _STARTS or token[0] in "-–—"


@dataclass(frozen=True, slots=True)
class Hit:
    """A trigger found in a text.

    Attributes
    ----------
    text, span
        Verbatim slice of the original text and its character span.
    trigger, category, register, lang, evidence
        See :class:`anima.lexicon.categories.Trigger`.
    polarity
        "affirmed"; "negated" in the scope of a negation outside the trigger ("we do not have a deal"); "uncertain"
        where negations cancel each other or deny another clause ("I don't think that we have a deal").
    cue
        The negation cue that decided, verbatim; empty if affirmed.
    """

    text: str
    span: tuple[int, int]
    trigger: str
    category: str
    register: str
    lang: str
    evidence: str
    polarity: Polarity = "affirmed"
    cue: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self) | {"span": list(self.span)}


@dataclass(slots=True)
class _Form:
    trigger: Trigger
    at_start: bool
    at_end: bool
    cased: tuple[tuple[int, str], ...]
    tail: tuple[str, ...]


@dataclass(slots=True)
class _Node:
    next: dict[str, _Node] = field(default_factory=dict)
    forms: list[_Form] = field(default_factory=list)


class Scanner:
    """Triggers compiled into a tree of words.

    Parameters
    ----------
    triggers
        What to look for; those of category "" only keep shorter ones from matching.
    """

    def __init__(self, triggers: Iterable[Trigger]) -> None:
        self._root = _Node()
        for trigger in triggers:
            for form in expand(normalize(trigger.pattern).text):
                self._add(form, trigger)

    def _add(self, form: str, trigger: Trigger) -> None:
        head, _, rest = form.partition(" ... ")
        words = head.split()
        at_start, at_end = words[:1] == ["^"], words[-1:] == ["$"]
        words = words[at_start : len(words) - at_end]
        cased = tuple((i, word) for i, word in enumerate(words) if word != word.lower())
        # One word of the file may be several in the text: "on-call".
        path = [token for word in words for token in _tokens(word)]
        if not path:
            raise InputError(f"trigger {trigger.pattern!r} has a form without words: {form!r}")
        node = self._root
        for token in path:
            node = node.next.setdefault(token, _Node())
        node.forms.append(_Form(trigger, at_start, at_end, cased, tuple(words_of(rest).low)))

    def spans(self, words: Words) -> list[tuple[int, int, Trigger]]:
        """Return first and last token of each hit, in order, overlaps resolved: the longest wins, then the first."""
        low = words.low
        root = self._root.next
        found: list[tuple[int, int, Trigger]] = []
        for i, token in enumerate(low):
            node = root.get(token)
            j = i
            while node is not None:
                for form in node.forms:
                    last = self._last(form, words, i, j)
                    if last >= 0:
                        found.append((i, last, form.trigger))
                j += 1
                node = node.next.get(low[j]) if j < len(low) else None
        if len(found) > 1:
            found = self._resolved(found)
        return [item for item in found if item[2].category != BLOCKED]

    @staticmethod
    def _last(form: _Form, words: Words, i: int, j: int) -> int:
        """Return the last token of a form whose head stands at ``i`` to ``j``, or -1 if its conditions are not met."""
        low = words.low
        if form.at_start and i and low[i - 1] not in _STARTS:
            return -1
        if form.at_end and j + 1 < len(low) and not is_mark(low[j + 1]):
            return -1
        for at, word in form.cased:
            if words.text[words.starts[i + at] : words.ends[i + at]] != word:
                return -1
        if not form.tail:
            return j
        size = len(form.tail)
        for k in range(j + 1, min(len(low) - size, j + _MOST_BETWEEN + 1) + 1):
            if tuple(low[k : k + size]) == form.tail:
                return k + size - 1
            if low[k] in ".?!;\n…":
                break
        return -1

    @staticmethod
    def _resolved(found: list[tuple[int, int, Trigger]]) -> list[tuple[int, int, Trigger]]:
        taken: set[int] = set()
        kept = []
        # Of equal length a blocked phrase wins, then the one that stands first.
        for item in sorted(found, key=lambda item: (item[0] - item[1], item[2].category != BLOCKED, item[0])):
            places = range(item[0], item[1] + 1)
            if taken.isdisjoint(places):
                taken.update(places)
                kept.append(item)
        return sorted(kept, key=lambda item: item[0])

    def scan(self, text: str, *, polarity: bool = True) -> list[Hit]:
        """Return the hits of a text, in order; without ``polarity`` all count as affirmed."""
        normal = normalize(text)
        words = words_of(normal.text)
        hits = []
        for first, last, trigger in self.spans(words):
            span = normal.span(words.starts[first], words.ends[last])
            of = (trigger.pattern, trigger.category, trigger.register, trigger.lang, trigger.evidence)
            hits.append(Hit(text[slice(*span)], span, *of))
        return _with_polarity(text, normal.text, hits) if polarity and hits else hits


def _with_polarity(text: str, normal: str, hits: list[Hit]) -> list[Hit]:
    """Return the hits with the polarity of the negation scopes; these are looked for only where a cue is possible."""
    for lang in LANGUAGES:
        if not any(hit.lang == lang for hit in hits) or not language(lang).triggers.search(normal):
            continue
        if found := scopes(text, lang, affixal=False):
            hits = [_judged(text, hit, found) if hit.lang == lang else hit for hit in hits]
    return hits


def _judged(text: str, hit: Hit, found: Sequence[Scope]) -> Hit:
    start, end = hit.span
    deciding = [
        scope
        for scope in found
        if (
            (scope.cue_span[1] <= start or scope.cue_span[0] >= end)
            and (scope.covers(start, end) or _cancelled(scope, start, end))
        )
        # A cue inside a hit is part of what the trigger means ("not sure"), and a promise not to act is a promise; but an act that
        # is told as not done is not told as done.
        or (
            hit.category == "narrated-act"
            and start <= scope.cue_span[0]
            and scope.cue_span[1] <= end
            and scope.cue.casefold() in _optional(hit.trigger)
        )
    ]
    if not deciding:
        return hit
    cue = deciding[-1]
    cancelled = len(deciding) % 2 == 0 or any(scope.double for scope in deciding)
    apart = cue.cue_span[1] <= start and bool(_CLAUSE.search(text[cue.cue_span[1] : start]))
    polarity: Polarity = "uncertain" if cancelled or apart else "negated"
    return replace(hit, polarity=polarity, cue=cue.cue)


@cache
def _optional(trigger: str) -> frozenset[str]:
    """Return the words of a trigger that may be left out: those in square brackets."""
    return frozenset(word for group in re.findall(r"\[([^\]]*)\]", trigger) for word in re.split(r"[| ]+", group))


def _cancelled(scope: Scope, start: int, end: int) -> bool:
    """Tell whether a double negation, whose scope is empty, stands right before the hit."""
    return bool(scope.double and not scope.tokens and 0 <= start - scope.cue_span[1] <= 1 and end > start)


@cache
def _scanner(lang: Lang | None) -> Scanner:
    return Scanner(trigger for trigger in load_lexicon().triggers if lang is None or trigger.lang == lang)


def scan(text: str, lang: Lang | None = None) -> list[Hit]:
    """Return the discourse moves that the lexicon finds in a text.

    Parameters
    ----------
    text
        Any text.
    lang
        "en" or "es"; None takes the triggers of both, as suits texts that mix them.

    Returns
    -------
    list of Hit
        In order, without overlaps; negated ones included and marked. Read :func:`ledger` before leaning on a category:
        most were constructed, and recall is low by design.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Examples
    --------
    >>> [(hit.text, hit.category, hit.polarity) for hit in scan("We don't have a deal. What do you need?")]
    [('deal', 'closing', 'negated'), ('What do you need', 'opening', 'affirmed')]
    """
    if lang is not None:
        require_choice(lang, "lang", LANGUAGES)
    return _scanner(lang).scan(text)


def scan_many(texts: Iterable[str], lang: Lang | None = None) -> list[list[Hit]]:
    """Return :func:`scan` of each text."""
    if lang is not None:
        require_choice(lang, "lang", LANGUAGES)
    scanner = _scanner(lang)
    return [scanner.scan(text) for text in require_texts(texts)]


def densities(texts: Iterable[str], lang: Lang | None = None, *, negated: bool = False) -> pd.DataFrame:
    """Return hits per 100 words of each category.

    Parameters
    ----------
    texts, lang
        As for :func:`scan_many`.
    negated
        Whether negated hits count; uncertain ones always do.

    Returns
    -------
    DataFrame
        One row per text, one column per category; NaN where a text has no word. Words as :func:`anima.text.count_words`.
    """
    import numpy as np
    import pandas as pd

    texts = require_texts(texts)
    names = list(load_lexicon().categories)
    place = {name: i for i, name in enumerate(names)}
    counts = np.zeros((len(texts), len(names)))
    for row, hits in zip(counts, scan_many(texts, lang), strict=True):
        for hit in hits:
            row[place[hit.category]] += negated or hit.polarity != "negated"
    totals = np.array([float(count_words(text)) for text in texts])
    totals[totals == 0] = np.nan
    return pd.DataFrame(100 * counts / totals[:, None], columns=names)
