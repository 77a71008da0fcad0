"""Scopes of negation in a text, English or Spanish: the public function and its result."""

from __future__ import annotations

import html
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.checks import require_bool, require_choice
from anima.negation.cues import LANGUAGES, Lang, Tokens, language, tokenize
from anima.negation.english import English
from anima.negation.find import find_cues, guess_language
from anima.negation.reading import Reading, read
from anima.negation.spanish import Spanish
from anima.negation.subject import left
from anima.text.normalize import Normalized, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

View = Literal["right", "full"]
VIEWS: Final[tuple[View, ...]] = ("right", "full")
Direction = Literal["right", "left", "both", "none"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What one negation cue denies.

    Attributes
    ----------
    cue, cue_span, kind
        The cue, verbatim; its characters in the original text; "particle", "pronoun", "determiner", "preposition",
        "correlative" or "affix".
    text, span
        The scope from its first to its last token, verbatim, and its characters in the original text; empty, at the end
        of the cue, where nothing is denied.
    tokens
        Character spans in the original text of the scope's word tokens, in order. Where the scope has gaps (an
        address, the cue itself) they are fewer than the words of ``span``.
    direction
        "right", "left" (an answer after its label: "Transfusion: No"), "both", or "none" for an empty scope.
    terminator
        The token that ended the scope on the right; empty at the end of the text.
    rule
        The rule that decided: "punctuation", "comma", "connector", "coordination", "main clause", "noun phrase", "complement",
        "next cue", "end"; for empty scopes "answer", "tag question", "rhetorical question", "double negation", "hedged".
    double
        Whether another negation cancels this one ("I don't not agree"). In "not unhappy" both are marked and keep
        their scopes.
    lang
        The language whose rules were used.
    """

    cue: str
    cue_span: tuple[int, int]
    kind: str
    text: str
    span: tuple[int, int]
    tokens: tuple[tuple[int, int], ...]
    direction: Direction
    terminator: str
    rule: str
    double: bool
    lang: Lang

    def covers(self, start: int, end: int) -> bool:
        """Tell whether a token of the scope overlaps the characters ``start`` to ``end`` of the original text."""
        return any(low < end and start < high for low, high in self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return found | {
            "cue_span": list(self.cue_span),
            "span": list(self.span),
            "tokens": [list(token) for token in self.tokens],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row; :func:`to_frame` takes many scopes."""
        return to_frame([self])

    def summary(self) -> str:
        """Return one sentence."""
        what = f"denies “{self.text}”" if self.tokens else "denies nothing"
        return f"“{self.cue}” {what} ({self.rule})."

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary())}</p>"


def to_frame(found: Iterable[Scope]) -> pd.DataFrame:
    """Return scopes as a table, one row each, with the fields of :class:`Scope` as columns."""
    import pandas as pd

    names = [field.name for field in fields(Scope)]
    return pd.DataFrame([[getattr(scope, name) for name in names] for scope in found], columns=names)


def scopes(text: str, lang: Lang | None = None, *, view: View = "right", affixal: bool | None = None) -> list[Scope]:
    """Return the negation cues of a text with what they deny, in order.

    Parameters
    ----------
    text
        Any text; sentences need not be cut beforehand.
    lang
        "en" or "es"; None guesses from the listed words in the first 2,000 characters, English when in doubt.
    view
        "right" gives the scope to the right of the cue, which is what a reader of polarity wants; "full" adds the
        subject and the words of the clause before the cue, as CD-SCO does.
    affixal
        Whether negative affixes ("unhappy", "careless") are cues; None takes the language's default (English yes,
        Spanish no: its list is empty). The word with the affix is cue, not scope.

    Returns
    -------
    list of Scope
        One for each cue. Pseudo-negations ("no doubt", "not only", "sin embargo") are no cues; nor are Spanish words in
        negative agreement ("no vino nadie"), which belong to the scope.

    Raises
    ------
    InputError
        If an argument cannot be used.

    Notes
    -----
    Rules, not a parser: no part of speech is known beyond closed word classes. Under the protocol of
    :mod:`anima.negation.score` they are measured on CD-SCO's development part and on samples of NUBes, neither of
    which they were developed on (``tests/negation/test_score.py``). A neural tagger (NegBERT: token F1 .92 on CD-SCO
    given the cues, full scope) is beyond their reach. Complement clauses belong to the scope, as in CD-SCO: "not say
    that the price was final" reaches to "final", although only the saying is denied.
    """
    if lang is not None:
        require_choice(lang, "lang", LANGUAGES)
    require_choice(view, "view", VIEWS)
    normal = normalize(text)
    if lang is None:
        lang = guess_language(normal.text)
    rules = language(lang)
    affixal = rules.affixal_by_default if affixal is None else require_bool(affixal, "affixal")
    if not affixal and not rules.triggers.search(normal.text):
        return []
    tokens = tokenize(normal.text, lang)
    cues = find_cues(tokens, rules, affixal=affixal)
    if not cues:
        return []
    reach = English(tokens) if lang == "en" else Spanish(tokens)
    readings: list[Reading] = []
    open_until = 0
    for cue in cues:
        if lang == "es" and cue.first < open_until and cue.kind in ("pronoun", "correlative"):
            continue  # negative agreement: "no vino nadie", "no trajo pan ni agua"
        reading = Reading(cue, reach.right(cue))
        readings.append(reading)
        if cue.kind != "correlative":
            open_until = max(open_until, reading.extent.end)
    read(tokens, readings, reach)
    found = []
    for reading in readings:
        before: list[int] = []
        if view == "full" and not reading.empty:
            before = left(reach, reading.cue) if isinstance(reach, English) else reach.left(reading.cue)
        found.append(_scope(normal, tokens, reading, before, lang))
    return found


def _scope(normal: Normalized, tokens: Tokens, reading: Reading, before: list[int], lang: Lang) -> Scope:
    """Return the result for one reading, in offsets of the original text."""
    cue, extent = reading.cue, reading.extent
    skipped = extent.skipped
    inside = (
        [] if reading.empty else [i for i in range(cue.last + 1, extent.end) if tokens.words[i] and i not in skipped]
    )
    before = [i for i in (reading.label or before) if tokens.words[i]]
    starts, ends = tokens.starts, tokens.ends
    direction: Direction = ("both" if inside else "left") if before else ("right" if inside else "none")
    rule = extent.rule if inside or reading.rule else "answer"
    if normal.starts is None:
        spans = tuple((starts[i], ends[i]) for i in [*before, *inside])
        cue_span = (cue.start, cue.end)
    else:
        spans = tuple(normal.span(starts[i], ends[i]) for i in [*before, *inside])
        cue_span = normal.span(cue.start, cue.end)
    span = (spans[0][0], spans[-1][1]) if spans else (cue_span[1], cue_span[1])
    original = normal.original
    return Scope(
        original[cue_span[0] : cue_span[1]],
        cue_span,
        cue.kind,
        original[span[0] : span[1]],
        span,
        spans,
        direction,
        extent.terminator,
        reading.rule or rule,
        reading.double,
        lang,
    )
