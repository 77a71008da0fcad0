"""Where a sentence ends: what a terminal mark, the word before it and the text after it say together."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from anima.settings import data_path
from anima.text.protect import MAX_QUOTE

# No pattern of this module can backtrack over more than it has just read, and each starts with a rare character:
# time is linear in the text.
_WIDE = "。！？｡．"  # these need no space after them
_MARKS = f"[.!?…؟۔।॥‼⁇⁈⁉{_WIDE}]"
_EMOJI = "\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"
_MARKED = re.compile(
    rf"(?P<mark>{_MARKS}{_MARKS}*)"  # a class that stands alone lets the engine skip to it; "+" would not
    r"(?P<close>[\"')\]}»›*_」』）】》〉]*)"
    r"(?:\[\^?\d{1,3}(?:[,–-] ?\d{1,3})*\]|[¹²³⁰⁴-⁹])*"  # notes: "[3]", "²"
    rf"(?:[ \t]*(?:[{_EMOJI}]+|[:;=][-^']?[()DPp]+(?!\w)))*"
)
#: Pictures that may stand for a mark: no arrows, ticks or flags, which introduce what follows.
_PICTURE = "[\u2600-\u26ff\u2728\u2764\U0001f300-\U0001faff]"
_PICTURES = re.compile(rf"{_PICTURE}\ufe0f?(?:[ \t]*{_PICTURE}\ufe0f?)*")
_PICTURE_MIN_WORDS = 3
_OPENING = re.compile(r"[-–—\"'(\[{«‹¿¡*_「『（【《]*")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NUMBER = re.compile(r"[+#§]?\d|[A-Z]\.?\d|(?:[IVXLC]{2,}|[VXLC])\b")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_KINDS = ("maybe_final", "before_number", "before_name", "never_final", "with_mark")  # later ones win
_VOWELS = frozenset("aeiouyáéíóúü")
_WINDOW = 32  # no abbreviation is longer, and looking further back would cost quadratic time in a run of full stops


def skip(pattern: re.Pattern[str], text: str, low: int, high: int) -> int:
    """Return where ``text`` goes on after ``pattern``, matched at ``low``."""
    match = pattern.match(text, low, high)
    return match.end() if match else low


def candidates(text: str, low: int, high: int) -> list[re.Match[str]]:
    """Return where a sentence of ``text[low:high]`` might end, in order: marks and what closes with them, or emoji."""
    found = list(_MARKED.finditer(text, low, high))
    if text.isascii():
        return found
    pictures = list(_PICTURES.finditer(text, low, high))
    if pictures:
        merged = sorted([*found, *pictures], key=re.Match.start)
        found = merged[:1] + [match for before, match in pairwise(merged) if match.start() >= before.end()]
    return found


def is_end(text: str, start: int, match: re.Match[str], following: int, high: int, *, caseless: bool) -> bool:
    """Tell whether a sentence ends with one of the :func:`candidates`.

    Parameters
    ----------
    text, start, high
        Normalised text; the sentence begins at ``start``, its line stops at ``high``.
    match, following
        The candidate; the next printed character stands at ``following < high``.
    caseless
        The text is typed without capitals: a small letter says nothing.
    """
    dot = match.start()
    if match.re is _PICTURES:
        words = _WORD.findall(text, max(start, dot - 2 * _WINDOW), dot)
        inner = skip(_OPENING, text, following, high)
        return following > match.end() and text[inner : inner + 1].isupper() and len(words) >= _PICTURE_MIN_WORDS
    mark = match["mark"]
    if mark[-1] in _WIDE:
        return True
    if following == match.end():  # nothing but space tells an end from a decimal, an address, a file name
        return text[following] in "¿¡"
    if text[following] in ",;:.!?…%" or (dot > start and text[dot - 1] in "(["):
        return False  # the last is an omission or an aside: "[…]", "(?)"
    inner = skip(_OPENING, text, following, high)
    before = text[max(start, dot - _WINDOW) : dot].split() if dot > start and not text[dot - 1].isspace() else []
    word = before[-1].rpartition("/")[2].lstrip("\"'([{«‹¿¡*_-–—") if before else ""
    goes_on = text[inner : inner + 1].islower() and not text[inner + 1 : inner + 2].isupper()  # but "iPhone", "eBay"
    if not {"¿", "¡"}.isdisjoint(text[following:inner]):
        return True
    if goes_on:
        if match["close"].strip("*_") or text[following] in "-–—" or _is_ellipsis(text, start, dot, mark):
            return False  # '"Stop!" she said', "¿Vienes? —preguntó", "well… maybe"
        if mark != "." and ("/" in "".join(before[-1:]) or _in_mid_sentence(text, start, dot)):
            return False
        if mark == "." and not caseless and not _is_common_word(word):
            return False
    previous = before[-2] if len(before) > 1 else ""
    return not _is_abbreviated(word if mark == "." else word + mark, previous, text, inner, high)


def is_abbreviation(text: str, start: int, dot: int, following: int, high: int) -> bool:
    """Tell whether the full stop at ``dot`` belongs to an abbreviation and the sentence goes on at ``following``."""
    before = text[max(start, dot - _WINDOW) : dot].split()
    return bool(before) and _is_abbreviated(before[-1], before[-2] if len(before) > 1 else "", text, following, high)


def _is_ellipsis(text: str, start: int, dot: int, mark: str) -> bool:
    if "…" in mark or ".." in mark:
        return True
    return text[dot - 1 : dot] == " " and text[max(start, dot - 3) : dot].rstrip()[-1:] == "."  # ". . ."


def _in_mid_sentence(text: str, start: int, dot: int) -> bool:
    """Tell whether the mark closes an exclamation or question that began within the sentence: "Y ¡zas! cayó"."""
    low = max(start, dot - MAX_QUOTE)
    opener = max(text.rfind("¿", low, dot), text.rfind("¡", low, dot))
    return opener > start and bool(_WORD.search(text, start, opener))


def _is_common_word(word: str) -> bool:
    """Tell whether what stands before a full stop reads as a word rather than as an abbreviation, known or unknown."""
    known = _abbreviations().kinds
    low = word.lower()
    if low in known or word in known or (word.isupper() and len(word) <= 3):  # the second half of "JJ. OO."
        return False
    if not low.isalpha():
        return True
    return len(low) > 1 and (low[-1] in _VOWELS or (len(low) > 2 and not _VOWELS.isdisjoint(low)))


class _Abbreviations(NamedTuple):
    kinds: dict[str, str]
    doubled: frozenset[tuple[str, str]]
    labels: frozenset[str]
    openers: frozenset[str]


@cache
def _abbreviations() -> _Abbreviations:
    with data_path("abbreviations.toml").open("rb") as file:
        table = tomllib.load(file)
    return _Abbreviations(
        kinds={word: kind for kind in _KINDS for word in table[kind]},
        doubled=frozenset((first, second) for first, second in table["doubled"]),
        labels=frozenset(table["letter_labels"]),
        openers=frozenset(table["sentence_openers"]),
    )


def _is_abbreviated(word: str, previous: str, text: str, inner: int, high: int) -> bool:
    """Tell whether the mark after ``word``, before which stands ``previous``, is no end: text goes on at ``inner``."""
    known = _abbreviations()
    kind = known.kinds.get(word) or (
        known.kinds.get(word.lower()) if len(word) > 1 else None
    )  # "p." but the initial "P."
    if not word or (kind is None and len(word) > 2 and "." not in word):
        return False
    next_word = _WORD.match(text, inner, high)
    after = next_word[0].lower() if next_word else ""
    stopped = next_word is not None and text[next_word.end() : next_word.end() + 1] == "."
    upper = text[inner : inner + 1].isupper()
    opener = upper and after in known.openers and not (stopped and len(after) == 1)
    if kind == "never_final" or (stopped and (word.lower(), after) in known.doubled):
        return True
    if kind == "before_number":
        return _NUMBER.match(text, inner, high) is not None
    if kind == "before_name":
        return not (after[:1].isdigit() or previous[-1:].isdigit() or (previous[:1].isupper() and opener))
    if kind == "with_mark":
        return not opener
    if word.isdecimal() and len(word) <= 2:  # "the steps: 1. Open it. 2. Close it."
        return not previous or previous[-1] == ":"
    if kind is None and len(word) == 1 and word.isupper():  # an initial
        label = previous.lower() in known.labels or (word == "I" and previous[:1].islower())
        return upper and not label and not opener
    dotted = _DOTTED.fullmatch(word) is not None
    if kind is None and dotted and word.isupper():
        return not opener
    return (kind == "maybe_final" or dotted) and not upper
