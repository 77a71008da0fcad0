"""The JSON objects of a text, whatever stands around them and with the usual slips of models allowed.

Strict JSON goes through the standard library's decoder; the rest is read by a scanner that takes time linear in the length
of the text and recurses nowhere.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

BLANK: Final = r"\s\u200b-\u200d\u2060\ufeff"
MAX_DEPTH: Final = 64
"""What is nested deeper is no answer of a judge."""

# One token and the blanks and comments before it. Group 1: structure. 2: a string, the last one of a text maybe without its
# end. 3: a number or a word. 4: what none of these is, or the end. It matches everywhere, so that the length of the match
# is what it cost.
TOKEN = re.compile(
    rf"""(?:[{BLANK}]+|//[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z))*+
    (?:([{{}}\[\],:])
    |("[^"\\]*(?:\\.?[^"\\]*)*+(?:"|\Z)|'[^'\\]*(?:\\.?[^'\\]*)*+(?:'|\Z)|[“”„][^“”]*(?:[“”]|\Z)|‘[^’]*(?:’|\Z))
    |(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|-?[^\W\d]\w*)
    |(.|\Z))""",
    re.VERBOSE | re.DOTALL,
)
# A brace that the start or the end of an object may follow; of a long row of braces only the last is.
_OPENING = re.compile(rf"\{{(?=[{BLANK}]*[\w\"'“”„‘}}/#-])")
_EMPTIES = re.compile(r"(?:\{\})++")  # in a row they are one
_INNER = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.?))|"', re.DOTALL)
_LITERALS: Final = {
    "true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null",
    "NaN": "NaN", "nan": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity", "inf": "Infinity", "-inf": "-Infinity",
}  # fmt: skip
_LETTERS = re.compile(r"[^a-z]+")


def plain(key: str) -> str:
    """Return the letters of a key: ``Authenticity Score`` and ``authenticity_score`` are one."""
    return _LETTERS.sub("", key.casefold())


class Located(NamedTuple):
    """A complete object: decoded if it was strict JSON, made strict if it was mended, else still to be read."""

    start: int
    end: int
    value: dict[str, Any] | None = None
    mended: str = ""
    repairs: tuple[str, ...] = ()


class Broken(NamedTuple):
    """An object with the key of an answer that does not fit the grammar at ``end``; ``open`` if the text ends there."""

    start: int
    end: int
    open: bool


@dataclass(slots=True)
class Scan:
    """The objects of a text in order; ``spent`` if the reading was given up."""

    objects: list[Located] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    spent: bool = False


@dataclass(slots=True)
class _Frame:
    """An object or array that is being read; ``before`` is how many objects were complete when it began."""

    start: int
    is_object: bool
    before: int
    marked: bool = False


_KEY, _COLON, _VALUE, _NEXT = range(4)


def scan(text: str, *, mark: str = "", nested: bool = False) -> Scan:
    """Find the objects of a text: the outermost, with ``nested`` also those inside them.

    Reading starts at a brace and follows the grammar to the end of the object or to the first token that does not fit;
    then it goes on at the next brace that was no part of what was read. A text made to be read again and again is given up
    after eight times its length.
    """
    found = Scan()
    left, tries = 8 * len(text) + 1000, 0 if nested else 8
    ends: dict[int, int] = {}  # the end of the object of each brace that was read as structure; 0 if it has none
    start = _opening(text, 0)
    while start >= 0:
        if start not in ends:
            if tries:  # the decoder in C first, as long as it mostly succeeds
                if one := decode(text, start):
                    found.objects.append(one)
                    start = _opening(text, one.end)
                    tries -= bool(one.repairs)
                    continue
                tries -= 1
            if left < 0:
                found.spent = True
                break
            left -= read(text, start, found, ends, mark, nested) - start
        start = _opening(text, ends[start] or start + 1)
    return found


def _opening(text: str, pos: int) -> int:
    match = _OPENING.search(text, pos)
    if not match:
        return -1
    start = match.start()
    if text.startswith("{}{}", start):  # of a row of empty objects the last one stands for all
        start = _EMPTIES.match(text, start).end() - 2  # type: ignore[union-attr]  # it matches
    return start


def decode(text: str, start: int) -> Located | None:
    """Decode strict JSON, or JSON whose only slips are a few commas before a closing bracket; None for all else."""
    if not text.startswith("{", start):
        return None
    for n_commas in range(4):
        try:
            value, end = DECODER.raw_decode(text, start)
            return Located(start, end + n_commas, value, "", ("trailing comma",) if n_commas else ())
        except json.JSONDecodeError as error:
            at = error.pos
            if text[at : at + 1] in ("}", "]"):  # newer Pythons point at the comma
                at -= 1
                while text[at].isspace():
                    at -= 1
            if text[at : at + 1] != ",":
                return None
            text = text[:at] + text[at + 1 :]
        except (ValueError, RecursionError):
            return None
    return None


def read(text: str, start: int, found: Scan, ends: dict[int, int], mark: str = "", nested: bool = False) -> int:
    """Read one object from its brace, add what is complete to ``found``, and return where the reading stopped."""
    frames: list[_Frame] = []
    out: list[str] = []  # the object as strict JSON
    repairs: dict[str, None] = {}
    state, match = _VALUE, TOKEN.scanner(text, start).match  # type: ignore[attr-defined]  # not in the stubs
    at = start
    while True:
        token = match()
        kind, before, at = token.lastindex, at, int(token.end())
        word = token[kind]
        if kind == 1:
            if word == ",":
                fits, state = state == _NEXT, _KEY if frames[-1].is_object else _VALUE
            elif word == ":":
                fits, state = state == _COLON, _VALUE
            elif word in "{[":
                fits = state == _VALUE and len(frames) < MAX_DEPTH
                if fits:
                    frames.append(_Frame(at - 1, word == "{", len(found.objects)))
                    if word == "{":
                        ends[at - 1], state = 0, _KEY
            else:
                top = frames[-1]
                fits = top.is_object == (word == "}") and (state == _NEXT or out[-1] in ("{", "[", ","))
                if fits:
                    if out[-1] == ",":
                        out.pop()
                        repairs["trailing comma"] = None
                    frames.pop()
                    state = _NEXT
                    if top.is_object:
                        ends[top.start] = at
                        if not nested:
                            del found.objects[top.before :]
                        mended = "" if frames else "".join([*out, "}"])
                        found.objects.append(Located(top.start, at, None, mended, tuple(repairs)))
        elif kind == 4:
            fits = False
        elif state == _KEY:
            fits, state = True, _COLON
            if mark and not frames[-1].marked:
                frames[-1].marked = plain(word) == mark
            if kind == 3:
                repairs["key without quotes"] = None
                word = f'"{word}"'
        else:
            fits, state = state == _VALUE, _NEXT
            if kind == 3 and not word[-1].isdigit():
                literal = _LITERALS.get(word, "")
                fits &= bool(literal)
                if literal != word:
                    repairs["Python literal"] = None
                    word = literal
            elif kind == 3:
                fits &= word.lstrip("-")[0].isdigit()
        if not fits:
            if first := next((frame for frame in frames if frame.marked), None):
                del found.objects[first.before :]
                found.broken.append(Broken(first.start, at, kind == 4 and not word))
            return at
        if kind == 2 and (word[0] != '"' or "\\" in word):
            if word[0] != '"':
                repairs["quotes"] = None
            word = f'"{_INNER.sub(_escape, word[1:-1])}"'
        gap = token.start(kind)
        if gap - before > 1 and ("/" in token[0] or "#" in token[0]) and text[before:gap].strip():
            repairs["comment"] = None
        out.append(word)
        if not frames:
            return at


def _escape(match: re.Match[str]) -> str:
    """Keep the escapes that JSON knows; another backslash is text, except before a quote that needed none."""
    if match[1]:
        return match[0]
    if match[2] is None:
        return '\\"'
    return match[2] if match[2] in ("'", "’", "“", "”") and match[2] else "\\\\" + match[2]


def decoded(one: Located, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an object of a text as a dict, and what had to be mended to read it.

    Raises
    ------
    DuplicateKeyError
        If it gives a key twice.
    ValueError, RecursionError
        If it cannot be decoded.
    """
    if one.value is not None:
        return one.value, one.repairs
    if not one.mended:
        again = Scan()
        read(text[one.start : one.end], 0, again, {})
        one = again.objects[-1]
    return DECODER.decode(one.mended), one.repairs


def unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a wrapper such as ``{"verdict": {…}}`` holds."""
    while len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        value = inner
    return value


class DuplicateKeyError(ValueError):
    """An object gives a key twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise DuplicateKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return value


# Line ends inside strings are let pass: models write them, and what they mean is clear.
DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)


_FENCES: Final = (("```json", "```"), ("```", "```"), ("```JSON", "```"))
_SCAN: Final = json.JSONDecoder(object_pairs_hook=tuple, strict=False).scan_once  # type: ignore[attr-defined]  # not in the stubs


def sole_object(text: str) -> dict[str, Any] | None:
    """Decode a text that is one strict JSON object, bare or in a fence, as most answers are; None for all else.

    An object inside the object is left as a tuple of pairs, so that no call back from C is needed to see a key given twice.
    """
    start = 0 if text[:1] == "{" else text.find("{", 0, 40)
    if start < 0:
        return None
    try:
        pairs, end = _SCAN(text, start)
    except (StopIteration, ValueError, RecursionError):
        return None
    if start or end != len(text):
        around = text[:start].strip(), text[end:].strip()
        if around != ("", "") and around not in _FENCES:
            return None
    value = dict(pairs)
    return value if len(value) == len(pairs) else None
