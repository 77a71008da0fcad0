r"""Patterns of the reference service, written for RE2, in the dialect of Python's ``re``.

Differences that matter: in RE2 ``\\w \\d \\b`` are ASCII and ``\\s`` is five characters, while ``(?i)`` folds all of
Unicode (so ``re.ASCII`` is not the answer); ``$`` is the very end; ``\\p{..}`` names a Unicode category. Python 3.11
knows Unicode 14, the service Unicode 15: categories may differ on characters younger than that.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

_CLASSES = {"w": "0-9A-Za-z_", "d": "0-9", "s": r"\t\n\f\r "}
_NOT_CLASSES = {
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "D": r"\x00-/:-\U0010ffff",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
}
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "space": r"\t\n\v\f\r ", "word": "0-9A-Za-z_",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f", "print": " -~", "graph": "!-~", "ascii": r"\x00-\x7f",
}  # fmt: skip
# The ASCII word class of a look-around must not fold: under (?i) Python would let it match ſ and K as well.
_WORD = "(?-i:[0-9A-Za-z_])"
_EDGE = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_NO_EDGE = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
_OUTSIDE = re.compile(
    r"(?P<flags>\(\?[imsU]*(?:-[imsU]+)?[:)])|(?P<name>\(\?P?<(?=[A-Za-z_]))|(?P<group>\(\?:|\((?!\?))|(?P<bad>\(\?.?.?)|(?P<class>\[)|(?P<escape>\\)|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)


def translate(pattern: str) -> str:
    """Return ``pattern``, a regular expression for RE2, as one for Python's ``re``.

    Raises
    ------
    ValueError
        The pattern uses what RE2 does not have (look-around, back references) or what cannot be said in ``re`` (flags
        that change half-way through a group, ungreedy mode).
    """
    out: list[str] = []
    multiline = False
    at = 0
    while at < len(pattern):
        match = _OUTSIDE.match(pattern, at)
        if match is None:  # cannot be: the last branch takes any character
            raise ValueError(f"cannot read {pattern[at:]!r}")
        kind, piece = match.lastgroup, match[0]
        at = match.end()
        if kind == "flags":
            if "U" in piece:
                raise ValueError("flag U (ungreedy) cannot be expressed")
            if piece.endswith(")"):
                if out:
                    raise ValueError(f"flags {piece} in the middle of the pattern cannot be expressed")
                multiline = "m" in piece.partition("-")[0]
            out.append(piece)
        elif kind == "name":
            out.append("(?P<")
        elif kind == "bad":
            raise ValueError(f"{piece!r} is not RE2 syntax")
        elif kind == "class":
            piece, at = _bracket(pattern, at)
            out.append(piece)
        elif kind == "escape":
            piece, at = _escape(pattern, at, bracket=False)
            out.append(piece)
        elif kind == "end":
            out.append("$" if multiline else r"\Z")
        else:
            out.append(piece)
    return "".join(out)


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Translate the character class whose ``[`` stands just before ``at``."""
    out = ["["]
    if pattern.startswith("^", at):
        out.append("^")
        at += 1
    if pattern.startswith("]", at):
        out.append(r"\]")
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        if posix := re.match(r"\[:(\w+):\]", pattern[at:]):
            if posix[1] not in _POSIX:
                raise ValueError(f"unknown class {posix[0]}")
            out.append(_POSIX[posix[1]])
            at += posix.end()
        elif pattern[at] == "\\":
            piece, at = _escape(pattern, at + 1, bracket=True)
            out.append(piece)
        else:
            # Python warns of these as possible set operations to come.
            out.append("\\" + pattern[at] if pattern[at] in "[&~|" else pattern[at])
            at += 1
    if at >= len(pattern):
        raise ValueError("missing closing ]")
    return "".join([*out, "]"]), at + 1


def _escape(pattern: str, at: int, *, bracket: bool) -> tuple[str, int]:
    """Translate the escape whose backslash stands just before ``at``."""
    if at >= len(pattern):
        raise ValueError("trailing backslash")
    char = pattern[at]
    if char in _CLASSES:
        return (_CLASSES[char] if bracket else f"[{_CLASSES[char]}]"), at + 1
    if char in _NOT_CLASSES:
        return (_NOT_CLASSES[char] if bracket else f"[^{_CLASSES[char.lower()]}]"), at + 1
    if char in "pP":
        match = re.match(r"\{(\^?)(\w+)\}|()(\w)", pattern[at + 1 :])
        if match is None:
            raise ValueError(f"\\{char} needs a category")
        negated = (char == "P") != bool(match[1])
        members = _category(match[2] or match[4], negated)
        return (members if bracket else f"[{members}]"), at + 1 + match.end()
    if char == "Q" and not bracket:
        literal, _, _ = pattern[at + 1 :].partition(r"\E")
        return re.escape(literal), min(len(pattern), at + 1 + len(literal) + 2)
    if char == "x" and (match := re.match(r"\{([0-9A-Fa-f]+)\}", pattern[at + 1 :])):
        return re.escape(chr(int(match[1], 16))), at + 1 + match.end()
    if not bracket and char in "bBzA":
        return {"b": _EDGE, "B": _NO_EDGE, "z": r"\Z", "A": r"\A"}[char], at + 1
    if char in "123456789" or (char.isalpha() and char not in "aftnrvx"):
        raise ValueError(f"\\{char} is not RE2 syntax")
    return "\\" + char, at + 1


@cache
def _category(name: str, negated: bool) -> str:
    """Return the members of a Unicode category, or of those that share a first letter, as the inside of a character
    class.
    """
    members = [
        code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith(name) != negated
    ]
    if not members or len(name) > 2:
        raise ValueError(f"unknown Unicode category {name}")
    ranges: list[list[int]] = []
    for code in members:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
