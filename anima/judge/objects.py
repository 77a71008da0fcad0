"""The answer of a language model: its last complete JSON object that validates, never one it was given."""

from __future__ import annotations

import re
from bisect import bisect_left
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from anima.checks import show
from anima.judge.scanner import BLANK, DECODER, TOKEN, DuplicateKeyError, Located, Scan, plain, read, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anima.judge.verdict import UnscoredKind

T = TypeVar("T")

_LOOSE = re.compile(rf"[{BLANK}\\\"'“”„‘’`>_-]+|,(?=[{BLANK}]*[}}\]])")
_MOST: Final = 2000
"""An answer is among the last so many objects of a text."""
_FENCES: Final = ("```json", "```", "```JSON")
_EMPTY: Final = {"", "false", "none", "null", "[]", "{}"}
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class Refused(Exception):  # noqa: N818  # a finding about a text, not an error of the program
    """A text holds no answer, or an object is none."""

    def __init__(self, kind: UnscoredKind, reason: str) -> None:
        super().__init__(reason)
        self.kind: UnscoredKind = kind
        self.reason = reason


class Found(NamedTuple, Generic[T]):
    """An object that validated: what the check made of it, its source, and what was mended to read it."""

    value: T
    source: str
    repairs: tuple[str, ...] = ()


def last_object(text: str, check: Callable[[dict[str, Any]], T], *, key: str, quoted: Iterable[str] = ()) -> Found[T]:
    """Return the last complete JSON object of a text that a check accepts.

    Parameters
    ----------
    text
        The answer of a judge, without its reasoning.
    check
        Makes a value of an object or raises :class:`Refused`.
    key
        The field that marks an object as an answer, in lower-case letters and underscores. Objects inside an answer that breaks
        off or cannot be read are its parts, not answers.
    quoted
        Texts the judge was given. An object of theirs is never the answer, in whatever order, with fields left out or with
        empty ones added; nor is a copy of one that does not end or cannot be read there. The same value of ``key`` beside
        fields of its own is no copy.

    Raises
    ------
    Refused
        If there is none; the reason is that of the last object that looked like an answer.
    """
    mark = key.replace("_", "")
    texts = [one for one in quoted if "{" in one and mark in plain(_unescaped(one))]
    if not texts and text[:1] in ("{", "`"):  # the usual cases first: the text is the object, or a fence around it
        start = text.find("{", 0, 40)
        try:
            value, end = DECODER.scan_once(text, start)  # type: ignore[attr-defined]  # not in the stubs
            if not start and end == len(text):
                return Found(check(value), text)
            if start > 0 and text[:start].rstrip() in _FENCES and text[end:].strip() == "```":
                return Found(check(value), text[start:end])
        except (StopIteration, ValueError, RecursionError, Refused):
            pass
    quotes = _Quotes(texts, mark)
    found = scan(text, mark=mark)
    broken = found.broken and [one for one in found.broken if not quotes.hold(text[one.start : one.end])]
    starts: list[int] = [one.start for one in broken] if broken else []
    reach: list[int] = list(accumulate((one.end for one in broken), max)) if broken else []
    # An answer in the making at the end of the text overrides what came before it.
    cut = broken[-1] if broken and broken[-1].open else None
    failure: tuple[bool, Refused] | None = None
    for one in found.objects[: -_MOST - 1 : -1]:
        if cut and one.end <= cut.start:
            break
        source = text[one.start : one.end]
        if broken and (i := bisect_left(starts, one.start)) and reach[i - 1] > one.start:
            continue  # a part of what is broken
        try:
            value, repairs = _decoded(one, source)
            result = check(value)
            if texts and (quotes.equal(value) or quotes.hold(source, value)):
                raise Refused("quoted", "the only answer is copied from the text that was to be judged: ask again")
            return Found(result, source, repairs)
        except Refused as refused:
            if failure is None or not failure[0]:
                marked = len(source) > len(mark) and _head(source, mark) is not None
                if failure is None or marked:
                    failure = marked, refused
    if cut:
        near = show(text[max(cut.start, cut.end - 40) :])
        raise Refused("truncated", f"the answer breaks off inside its object, near {near}: allow more output")
    if failure:
        raise failure[1]
    if found.broken:
        last = found.broken[-1]
        near = show(text[max(last.end - 20, last.start) : last.end + 20])
        raise Refused("unreadable", f"the object of the answer cannot be read near {near}: ask for JSON output")
    if found.spent:
        raise Refused("unreadable", "the braces of the answer are too tangled to read: ask for JSON output")
    raise Refused("no_object", f"no JSON object in the answer {show(text)}: ask the server for JSON output")


def unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a wrapper such as ``{"verdict": {…}}`` holds."""
    while len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        value = inner
    return value


def _decoded(one: Located, source: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an object as a dict, and what had to be mended to read it."""
    if one.value is not None:
        return one.value, one.repairs
    if not one.mended:
        again = Scan()
        read(source, 0, again, {})
        one = again.objects[-1]
    try:
        value: dict[str, Any] = DECODER.decode(one.mended)
    except DuplicateKeyError as error:
        raise Refused("duplicate_key", f"the answer gives {error.args[0]!r} twice: ask again") from None
    except (ValueError, RecursionError) as error:
        raise Refused("unreadable", f"the object of the answer cannot be read ({error}): ask for JSON output") from None
    return value, one.repairs


# ---- what the judge was given


def _head(source: str, mark: str) -> str | None:
    """Return the source of an object from its innermost brace to the value of the key; None without the key."""
    start, seen = 0, False
    for token in TOKEN.finditer(source):
        if token[1] == "{":
            start, seen = token.end() - 1, False
        elif seen and token[1] != ":":
            return source[start : token.end()]
        elif (token[2] or token[3]) and plain(_unescaped(token[token.lastindex or 0])) == mark:
            seen = True
    return source[start:] if seen else None


class _Quotes:
    """The objects of the texts that a judge was given, and what is left of the texts without them."""

    def __init__(self, texts: list[str], mark: str) -> None:
        self._mark = mark
        self._texts = list(map(_loose, texts))
        self._rests: list[str] = []
        self._objects: list[dict[str, str]] = []
        self._known: dict[str, bool] = {}
        for text in texts:
            rest = text
            for form in dict.fromkeys((text, text.replace("\\", ""))):
                pieces, done = [], 0
                for one in scan(form, nested=True).objects:
                    with suppress(Refused):
                        self._objects.append(_loosened(_decoded(one, form[one.start : one.end])[0]))
                        if mark in self._objects[-1] and one.start >= done:
                            pieces.append(form[done : one.start])
                            done = one.end
                rest = min(rest, "\x00".join((*pieces, form[done:])), key=len)
            self._rests.append(_loose(rest))

    def hold(self, source: str, value: dict[str, Any] | None = None) -> bool:
        """Return whether an object stands in a text, at least up to the value of the key.

        With its ``value`` it is complete: then only what cannot be read there counts, and fields of its own behind the key
        tell it from a copy.
        """
        if not self._texts or (head := _head(source, self._mark)) is None:
            return False
        head, own = _loose(head), None
        if value is not None and "," not in head and _loosened(value, empty=False).keys() - {self._mark}:
            whole = _loose(source)
            own = whole[whole.rfind(head) + len(head) :]
        key = head if value is None else f"{head} {own}"
        if key not in self._known:
            pattern = re.compile(re.escape(head) + r"(?![\d.])")
            self._known[key] = any(
                own is None or _goes_on(own, text, match.end())
                for text in (self._texts if value is None else self._rests)
                for match in pattern.finditer(text)
            )
        return self._known[key]

    def equal(self, value: dict[str, Any]) -> bool:
        """Return whether all that an object says is said by one object of a text."""
        if not self._objects:
            return False
        mine = _loosened(value, empty=False)
        return any(mine.items() <= theirs.items() for theirs in self._objects)


def _goes_on(own: str, text: str, at: int) -> bool:
    """Return whether a text goes on at ``at`` as an object does: for its next field, or until the text breaks off."""
    n = min(len(own), len(text) - at, 32)
    return n > 1 and text.startswith(own[:n], at)


def _loose(text: str) -> str:
    """Return a text without what a copy may change: escapes, blanks, quotes, backslashes, underscores, last commas, case."""
    return _LOOSE.sub("", _unescaped(text)).casefold()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _loosened(value: dict[str, Any], *, empty: bool = True) -> dict[str, str]:
    """Return the fields of an object, those that say nothing on request only, so that 42, 42.0 and "42" compare as equal."""
    fields = {}
    for key, item in unwrap(value).items():
        text = str(item)
        with suppress(ValueError):
            text = f"{float(text):g}"
        if (text := _loose(text)) not in _EMPTY or empty:
            fields[plain(key)] = text
    return fields
