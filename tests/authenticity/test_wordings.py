"""The shortcuts of the wordings lose nothing, and no pattern can run away.

``heads`` and ``cues`` in ``corpora/markers.toml`` are derived from the patterns. This module derives them again from the parsed patterns and
compares. After changing a wording run ``python tests/authenticity/test_wordings.py``: it prints what each line should declare.
"""

from __future__ import annotations

import re
import re._constants as op
import re._parser as parser
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from anima.authenticity.markers import Marker, load_markers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anima.authenticity.matching import Wording

Nodes = list
ZERO_WIDTH = (op.AT, op.ASSERT, op.ASSERT_NOT)
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT)
LETTERS = 4
LIMIT = 600
WORDINGS = [pytest.param(m, i, id=f"{m.id}-{i}") for m in load_markers() for i in range(len(m.wordings))]


class UnknownError(Exception):
    """The words cannot be listed."""


def in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def members(items: Nodes) -> set[str]:
    """Return the characters of a class; one stands for all of a range that holds no letter."""
    found: set[str] = set()
    for kind, value in items:
        if kind is op.LITERAL:
            found.add(chr(value))
        elif kind is op.RANGE and value[0] >= 0x2000:
            found.add("\u2000")
        elif kind is op.RANGE and value[1] - value[0] <= 60:
            found |= {chr(code) for code in range(value[0], value[1] + 1)}
        elif kind is op.CATEGORY and value is op.CATEGORY_SPACE:
            found.add(" ")
        else:
            raise UnknownError
    return found


def beginnings(nodes: Nodes, begun: str = "", within: frozenset[str] | None = None) -> set[str]:
    """Return the beginnings that the next word of a match can have, ``begun`` being what of it was read.

    Gives up at the first that is not ``within`` the wanted ones.
    """
    while len(begun) < LETTERS:
        if not nodes:
            raise UnknownError
        (kind, value), rest = nodes[0], nodes[1:]
        if kind is op.LITERAL and in_word(chr(value)):
            begun, nodes = begun + chr(value), rest
        elif kind is op.LITERAL or (kind is op.AT and value in (op.AT_BOUNDARY, op.AT_END, op.AT_END_STRING)):
            if begun:
                return wanted(begun, within)
            nodes = rest
        elif kind in ZERO_WIDTH:
            nodes = rest
        elif kind is op.IN:
            chars = members(value)
            out = set().union(*(beginnings(rest, begun + char, within) for char in chars if in_word(char)))
            if any(not in_word(char) for char in chars):
                out |= {begun} if begun else beginnings(rest, "", within)
            return limited(out)
        elif kind is op.SUBPATTERN:
            nodes = [*value[3], *rest]
        elif kind is op.BRANCH:
            return limited(set().union(*(beginnings([*branch, *rest], begun, within) for branch in value[1])))
        elif kind in REPEATS:
            low, high, item = value
            more = [(kind, (max(low - 1, 0), min(int(high), LETTERS) - 1, item))] if int(high) > 1 else []
            taken = [*item, *more, *rest]
            found = beginnings(taken, begun, within)
            return found if low else limited(found | beginnings(rest, begun, within))
        else:
            raise UnknownError
    return wanted(begun[:LETTERS], within)


def wanted(begun: str, within: frozenset[str] | None) -> set[str]:
    if within is not None and begun not in within:
        raise UnknownError
    return {begun}


def limited(found: set[str]) -> set[str]:
    if len(found) > LIMIT:
        raise UnknownError
    return found


def ends_word(nodes: Nodes) -> bool:
    """Tell whether after ``nodes`` a word can only begin, not go on."""
    if not nodes:
        return False
    kind, value = nodes[-1]
    if kind is op.SUBPATTERN:
        return ends_word(list(value[3]))
    if kind is op.BRANCH:
        return all(ends_word(list(branch)) for branch in value[1])
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return ends_word(nodes[:-1])
    if kind in REPEATS:
        return ends_word(list(value[2])) and (value[0] > 0 or ends_word(nodes[:-1]))
    if kind is op.LITERAL:
        return not in_word(chr(value))
    if kind is op.IN:
        try:
            return not any(in_word(char) for char in members(value))
        except UnknownError:
            return False
    return kind is op.AT and value in (op.AT_BOUNDARY, op.AT_BEGINNING, op.AT_BEGINNING_STRING)


def candidates(nodes: Nodes, edge: bool, within: frozenset[str] | None = None, depth: int = 0) -> Iterator[set[str]]:
    """Yield sets of word beginnings of each of which any match holds one; only subsets of ``within``, if given."""
    for i, (kind, value) in enumerate(nodes):
        rest = nodes[i + 1 :]
        if edge and kind is not op.AT:
            with suppress(UnknownError):
                yield beginnings(nodes[i:], "", within)
        if kind is op.BRANCH and depth < 4:
            each = [
                min(candidates([*branch, *rest], edge, within, depth + 1), key=len, default=None) for branch in value[1]
            ]
            if None not in each:
                yield set().union(*each)
        elif kind is op.SUBPATTERN and depth < 8:
            yield from candidates([*value[3], *rest], edge, within, depth + 1)
        if kind not in (op.ASSERT, op.ASSERT_NOT):
            edge = ends_word(nodes[: i + 1]) if kind not in REPEATS or value[0] else edge and ends_word(list(value[2]))


def opens_with_word(nodes: Nodes) -> bool:
    if not nodes:
        return True
    (kind, value), rest = nodes[0], nodes[1:]
    if kind in ZERO_WIDTH:
        return opens_with_word(rest)
    if kind is op.SUBPATTERN:
        return opens_with_word([*value[3], *rest])
    if kind is op.BRANCH:
        return all(opens_with_word([*branch, *rest]) for branch in value[1])
    if kind in REPEATS:
        return opens_with_word(list(value[2])) and (value[0] > 0 or opens_with_word(rest))
    return not ends_word([nodes[0]])


def parsed(wording: Wording) -> Nodes:
    return list(parser.parse(wording.regex.pattern, wording.regex.flags & ~re.UNICODE))


def derived_heads(wording: Wording) -> set[str]:
    nodes = parsed(wording)
    try:
        return beginnings(nodes) if opens_with_word(nodes) and not wording.cased else set()
    except UnknownError:
        return set()


@pytest.mark.parametrize(("marker", "i"), WORDINGS)
def test_shortcuts_are_sound(marker: Marker, i: int) -> None:
    wording = marker.wordings[i]
    if wording.heads:
        assert derived_heads(wording)
        assert derived_heads(wording) <= wording.heads
    if wording.cues:
        assert any(candidates(parsed(wording), wording.at == "sentence", wording.cues))


@pytest.mark.parametrize(("marker", "i"), WORDINGS)
def test_every_repetition_is_bounded(marker: Marker, i: int) -> None:
    def unbounded(nodes: Nodes) -> Iterator[object]:
        for kind, value in nodes:
            if kind in REPEATS:
                if value[1] is op.MAXREPEAT:
                    yield value
                yield from unbounded(list(value[2]))
            elif kind is op.SUBPATTERN:
                yield from unbounded(list(value[3]))
            elif kind is op.BRANCH:
                for branch in value[1]:
                    yield from unbounded(list(branch))
            elif kind in (op.ASSERT, op.ASSERT_NOT):
                yield from unbounded(list(value[1]))

    assert not list(unbounded(parsed(marker.wordings[i])))


def test_no_shortcut_for_a_wording_that_opens_anywhere() -> None:
    loose = [w for m in load_markers() for w in m.wordings if not w.heads and w.at == "anywhere"]
    assert len(loose) < 20, "most wordings should be tried at words only"


if __name__ == "__main__":
    for m in load_markers():
        for n, w in enumerate(m.wordings):
            best = min(candidates(parsed(w), w.at == "sentence"), key=len, default=set())
            print(f"{m.id} {n}: heads = {' '.join(sorted(derived_heads(w)))!r}, cues = {' '.join(sorted(best))!r}")
