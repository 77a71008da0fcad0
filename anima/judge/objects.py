"""The answer of a language model: its last complete JSON object that validates, never one it was given."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from anima.checks import show
from anima.judge.quotes import Quotes, find_head
from anima.judge.scanner import DuplicateKeyError, Located, decoded, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anima.judge.verdict import UnscoredKind

T = TypeVar("T")

_MOST: Final = 2000
"""An answer is among the last so many objects of a text."""


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
        Texts the judge was given. A copy of an object of theirs is never the answer, also one with small changes; see
        :meth:`~anima.judge.quotes.Quotes.copied` for what makes a copy.

    Raises
    ------
    Refused
        If there is none; the reason is that of the last object that looked like an answer.
    """
    mark = key.replace("_", "")
    quotes = Quotes(quoted, mark)
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
            value, repairs = _decoded(one, text)
            result = check(value)
            if quotes.copied(value, source):
                raise Refused("quoted", "the only answer is copied from the text that was to be judged: ask again")
            return Found(result, source, repairs)
        except Refused as refused:
            if failure is None or not failure[0]:
                marked = len(source) > len(mark) and find_head(source, mark) is not None
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


def _decoded(one: Located, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    try:
        return decoded(one, text)
    except DuplicateKeyError as error:
        raise Refused("duplicate_key", f"the answer gives {error.args[0]!r} twice: ask again") from None
    except (ValueError, RecursionError) as error:
        raise Refused("unreadable", f"the object of the answer cannot be read ({error}): ask for JSON output") from None
