"""Stretches of a text inside which no sentence ends: fenced code, code spans, quotations, brackets.

Everything is one pass over the delimiters, so that no input, however odd, takes more than linear time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Longer quotations and brackets hold sentences of their own.
MAX_QUOTE = 400

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<rest>[^\n]*)$", re.MULTILINE)
_PAIRS = {pair[0]: pair[1] for pair in ("()", "[]", "{}", "«»", "‹›", "「」", "『』", "（）", "【】", "《》", "〈〉")}
_CLOSERS = {close: start for start, close in _PAIRS.items()}
_TICKS = re.compile("`+")
_DELIMITER = re.compile("[\"'" + "".join(re.escape(char) for char in (*_PAIRS, *_CLOSERS)) + "]")
#: Apostrophes that open nothing: letters or digits left out.
_CLIPPED = re.compile(r"'(?:\d|(?:em|cause|til|till|tis|twas|bout|round|n)\b)", re.IGNORECASE)


def fences(text: str) -> list[tuple[int, int]]:
    """Return the spans of fenced code blocks, fence lines included; one never closed runs to the end of ``text``."""
    if "```" not in text and "~~~" not in text:
        return []
    found: list[tuple[int, int]] = []
    start, fence = -1, ""
    for match in _FENCE.finditer(text):
        run, rest = match["fence"], match["rest"]
        if not fence:
            if run[0] == "~" or "`" not in rest:  # "```x``` and more" is a code span
                start, fence = match.start(), run
        elif run.startswith(fence) and not rest.strip():
            found.append((start, match.end()))
            fence = ""
    if fence:
        found.append((start, len(text)))
    return found


def closed_spans(text: str, low: int, high: int) -> list[tuple[int, int]]:
    """Return the outermost spans of code, quotations and brackets that close within ``text[low:high]``, in order.

    A delimiter that never finds its partner protects nothing.
    """
    found: list[tuple[int, int]] = []
    stack: list[tuple[str, int]] = []
    waiting: dict[str, int] = {}  # openers on the stack, by kind, so that a closer without partner costs nothing
    code = _code_spans(text, low, high)
    code_start, code_end = next(code, (high, high))
    for match in _DELIMITER.finditer(text, low, high):
        char, at = match[0], match.start()
        while code_end <= at:
            _add(found, code_start, code_end)
            code_start, code_end = next(code, (high, high))
        if code_start < at:
            continue
        partner: str | None
        if char in _PAIRS:
            partner = ""
        elif char in _CLOSERS:
            partner = _CLOSERS[char]
        else:
            before, after = text[max(low, at - 1) : at], text[at + 1 : min(high, at + 2)]
            partner = _straight(text, at, before, after, open_before=waiting.get(char, 0) > 0)
        if partner == "":
            stack.append((char, at))
            waiting[char] = waiting.get(char, 0) + 1
        elif partner is not None and waiting.get(partner):
            while True:
                opener, start = stack.pop()
                waiting[opener] -= 1
                if opener == partner:
                    break
            if at - start <= MAX_QUOTE:
                _add(found, start, at + 1)
    if code_start < high:
        found.append((code_start, code_end))
    found += code
    return found


def _add(found: list[tuple[int, int]], start: int, end: int) -> None:
    while found and found[-1][0] >= start:
        found.pop()
    found.append((start, end))


def _straight(text: str, at: int, before: str, after: str, *, open_before: bool) -> str | None:
    """Tell what a straight quote does: "" opens, the quote itself closes, None neither (an apostrophe, an inch)."""
    char = text[at]
    if open_before and before.strip() and not (char == "'" and after.isalnum()):
        return char
    if open_before and not before.strip() and not after.strip():
        return char
    if before.isalnum() or before in {*".,;!?%"} or not after:
        return None
    return None if char == "'" and (after.isspace() or _CLIPPED.match(text, at)) else ""


def _code_spans(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the code spans: each runs from a run of back quotes to the next run of the same length."""
    if text.find("`", low, high) < 0:
        return
    runs = [match.span() for match in _TICKS.finditer(text, low, high)]
    following: dict[int, int] = {}
    ends = [-1] * len(runs)
    for i in range(len(runs) - 1, -1, -1):
        length = runs[i][1] - runs[i][0]
        ends[i] = following.get(length, -1)
        following[length] = runs[i][1]
    position = low
    for (start, _), end in zip(runs, ends, strict=True):
        if start >= position and end > 0:
            yield start, end
            position = end
