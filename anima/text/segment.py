"""Cut a reply into the units that get one intent each.

Two rules. ``"reference"`` is the rule of the reference service, kept exactly. ``"robust"`` knows decimals,
abbreviations, addresses, quotations, lists, code and East Asian punctuation, and merges very short sentences instead of
dropping them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from anima.checks import require_choice, require_int, require_text
from anima.text.ends import candidates, is_abbreviation, is_end, skip
from anima.text.normalize import Normalized, normalize
from anima.text.protect import closed_spans, fences
from anima.text.tokens import WHITE_SPACE, count_words

SegmentRule = Literal["reference", "robust"]
SEGMENT_RULES: tuple[SegmentRule, ...] = get_args(SegmentRule)

_REFERENCE_END = re.compile(r"[.!?;\n]")
_REFERENCE_MIN_WORDS = 3

_INDENT = re.compile(r"[ \t]*")
_SPACE = re.compile(r"[ \t\n]*")
_LETTER = re.compile(r"[^\W\d_]")
_AFTER_END = re.compile(r"[.!?][\"')\]]*[ \t\n]+[\"'(¿¡]*([^\W\d_])")
_SYMBOL_MARK = re.compile(r"[ \t]*(?:(?:[-*+•▪◦‣·>○●□■–—]|#{1,6}|\[ \])[ \t]+)*")
_NUMBER_MARK = re.compile(
    r"[*_]{0,2}(?:\(?(?:\d{1,3}(?:\.\d{1,3}){0,3}|[a-z]|[ivx]{2,5}|[IVX]{2,5})[.)]|\(?[A-Z]\)|\d\ufe0f?\u20e3|\[[xX]\])"
    r"[*_]{0,2}[ \t]+"
)
_CAPITAL_MARK = re.compile(r"[*_]{0,2}[A-Z]\.[ \t]+")  # of a list or a name: kept, but no end
_HARD_LINE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\|)")
# "**The part nobody tells** Salt costs money": bold words that open a line, with no mark of their own, before a capital.
_RUN_IN = re.compile(r"(\*\*|__)(?=\S)(?P<words>[^*_\n]{1,120})(?<![\s.:!?,;…])\1[ \t]+(?=[\"'¿¡(]?(?P<next>\w))")
_RUN_IN_MIN_WORDS = 3
_WRAP_WIDTH = 60
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003134f]")


@dataclass(frozen=True, slots=True)
class Segment:
    """One unit of a text: a verbatim slice, ``original[start:end] == text``."""

    text: str
    start: int
    end: int


def segment(text: str, rule: SegmentRule = "robust", *, min_words: int = 2) -> list[Segment]:
    """Cut ``text`` into the units that are classified.

    Parameters
    ----------
    text
        The reply, any length.
    rule
        ``"reference"``: cut after every ``. ! ? ;`` and line end, drop units of fewer than three words; one unit if
        nothing is left.
        ``"robust"``: :func:`sentences`, then units of fewer than ``min_words`` words joined to a neighbour.
    min_words
        Robust rule only. An East Asian character counts as a word.

    Returns
    -------
    list of Segment
        In order, without overlap; empty when ``text`` holds no letter or digit. Under the robust rule every letter and
        digit of ``text`` is in exactly one segment, apart from the numbers of list items; the reference rule drops
        short units.

    Raises
    ------
    InputError
        If ``text`` is not a usable str, ``rule`` is unknown or ``min_words`` is below 1.

    Notes
    -----
    Time is linear in the length. Proved by ``tests/text/test_segment_reference.py`` (the service's own output) and
    ``tests/text/test_segment_robust.py`` (written cases in both languages, properties).
    :func:`anima.text.boundary_scores` compares a rule with sentences cut by people.
    """
    require_choice(rule, "rule", SEGMENT_RULES)
    require_int(min_words, "min_words", low=1)
    if rule == "reference":
        return _segment_reference(require_text(text))
    normal = normalize(text)
    return _slices(normal, _merge_short(normal.text, _sentence_spans(normal.text), min_words))


def sentences(text: str) -> list[Segment]:
    """Split ``text`` into sentences by the robust rule, short ones kept apart.

    A quotation or bracket closed on its line is never cut inside: ``She wrote "wait. Please." and ran.`` is one sentence.
    Marks at the start of a line (bullets, numbers, ``a)``, ``##``, ``>``, ``[x]``) are not part of the slice: before a
    sentence they would move its vector. A block of fenced code is one unit.
    """
    normal = normalize(text)
    spans = _sentence_spans(normal.text)
    return _slices(normal, [span for span in spans if count_words(normal.text[slice(*span)])])


def _slices(normal: Normalized, spans: list[tuple[int, int]]) -> list[Segment]:
    if normal.starts is not None:
        spans = [normal.span(start, end) for start, end in spans]
    return [Segment(normal.original[start:end], start, end) for start, end in spans]


def _segment_reference(text: str) -> list[Segment]:
    found: list[Segment] = []
    low = 0
    for high in [*(match.end() for match in _REFERENCE_END.finditer(text)), len(text)]:
        piece = _trimmed(text, low, high)
        if count_words(piece.text) >= _REFERENCE_MIN_WORDS:
            found.append(piece)
        low = high
    whole = _trimmed(text, 0, len(text))
    return found or ([whole] if count_words(whole.text) else [])


def _trimmed(text: str, low: int, high: int) -> Segment:
    piece = text[low:high].lstrip(WHITE_SPACE)
    start = high - len(piece)
    piece = piece.rstrip(WHITE_SPACE)
    return Segment(piece, start, start + len(piece))


def _sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return trimmed spans of the sentences of a normalised text."""
    spans: list[tuple[int, int]] = []
    low = 0
    for start, end in [*fences(text), (len(text), len(text))]:
        _add_prose(text, low, start, spans)
        if start < end:
            spans.append((start + len(text[start:end]) - len(text[start:end].lstrip()), end))
        low = end
    return spans


def _add_prose(text: str, low: int, high: int, spans: list[tuple[int, int]]) -> None:
    """Add the sentences of ``text[low:high]``, which holds no fenced code; lines that were merely wrapped are one."""
    caseless = _is_caseless(text, low, high)
    block = line = low
    while line < high:
        end = text.find("\n", line, high) + 1 or high
        if end == high or not _is_wrap(text, line, end, high, caseless=caseless):
            _add_block(text, block, end, spans, caseless=caseless)
            block = end
        line = end


def _is_caseless(text: str, low: int, high: int) -> bool:
    """Tell whether the text is typed without capitals, so that a small letter after a full stop says nothing."""
    first = _LETTER.search(text, low, high)
    if first is None or not first[0].islower():
        return False
    starts = _AFTER_END.findall(text, low, high)
    return not starts or 2 * sum(map(str.islower, starts)) > len(starts)


def _is_wrap(text: str, start: int, end: int, high: int, *, caseless: bool) -> bool:
    """Tell whether the line end is a mere wrap: the line stops in mid-sentence and the next goes on in lower case."""
    following = skip(_INDENT, text, end, high)
    if following == high or text[following] == "\n":
        return False
    line = text[start:end].rstrip()
    if not line or _HARD_LINE.match(line) or _HARD_LINE.match(text, end, high):
        return False
    if _list_body(text, end, high) != following:
        return False
    if line[-1] == ".":
        return is_abbreviation(text, start, start + len(line) - 1, following, high)
    return line[-1] not in "!?…:;。！？｡．" and text[following].islower() and (len(line) >= _WRAP_WIDTH or not caseless)


def _list_body(text: str, start: int, end: int) -> int:
    """Return where a line's text begins after marks of lists, headings and quotations."""
    return skip(_NUMBER_MARK, text, skip(_SYMBOL_MARK, text, start, end), end)


def _add_block(text: str, low: int, high: int, spans: list[tuple[int, int]], *, caseless: bool) -> None:
    high = low + len(text[low:high].rstrip())
    start = _list_body(text, low, high)
    body = skip(_CAPITAL_MARK, text, start, high)
    run_in = _RUN_IN.match(text, start, high)
    if run_in and run_in["next"].isupper() and count_words(run_in["words"]) >= _RUN_IN_MIN_WORDS:
        spans.append((start, start + len(run_in[0].rstrip())))
        start = body = run_in.end()
    closed: list[tuple[int, int]] | None = None
    which = 0
    for match in candidates(text, body, high):
        at = match.end()
        following = skip(_SPACE, text, at, high)
        if following == high or not is_end(text, start, match, following, high, caseless=caseless):
            continue
        if closed is None:
            closed = closed_spans(text, start, high)
        while which < len(closed) and closed[which][1] < at:
            which += 1
        if which < len(closed) and closed[which][0] < at < closed[which][1]:
            continue
        spans.append((start, at))
        start = following
    if start < high:
        spans.append((start, high))


def _weight(text: str) -> int:
    """Return the number of words; East Asian characters, written without spaces, count one each."""
    if text.isascii():
        return count_words(text)
    # Not every character of these blocks is a letter: "・", "゛", and places where none stands yet.
    return count_words(_EAST_ASIAN.sub(" ", text)) + sum(map(str.isalpha, _EAST_ASIAN.findall(text)))


def _merge_short(text: str, spans: list[tuple[int, int]], min_words: int) -> list[tuple[int, int]]:
    """Join units of fewer than ``min_words`` words to the next on the line, else the previous, else the next line.

    Across a blank line or a line without words nothing is joined, and nothing is joined to code: a short unit that
    stands alone stays a unit.
    """
    merged: list[tuple[int, int]] = []
    enough = 24 * min_words  # characters that nearly always hold the words asked for
    carried = -1, 0  # start and weight of a short unit that joins the next one
    for i, (start, end) in enumerate(spans):
        n = _weight(text[start : min(end, start + enough)])
        n = carried[1] + (n if n >= min_words else _weight(text[start:end]))
        start = start if carried[0] < 0 else carried[0]
        carried = -1, 0
        following = spans[i + 1] if i + 1 < len(spans) else (len(text), len(text))
        gap = text[end : following[0]] if following[0] < len(text) else "\n\n"
        if n >= min_words:
            merged.append((start, end))
        elif "\n" not in gap:
            carried = start, n
        elif merged and "\n" not in text[merged[-1][1] : start]:
            merged[-1] = merged[-1][0], end
        elif n and gap == "\n" and text[following[0]] not in "`~" and _weight(text[slice(*following)]):
            carried = start, n
        elif n:
            merged.append((start, end))
    return merged
