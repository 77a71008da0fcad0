"""Negations that deny less than their clause: answers, tag and rhetorical questions, double negation, hedges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anima.negation.english import English

if TYPE_CHECKING:
    from anima.negation.cues import Cue, Extent, Tokens
    from anima.negation.spanish import Spanish

_ANSWERS = frozenset(["no", "none", "never", "nunca", "ninguno", "ninguna"])
_CERTAIN = frozenset(
    [
        "true",
        "certain",
        "so",
        "possible",
        "case",
        "fact",
        "the",
        "quite",
        "cierto",
        "verdad",
        "seguro",
        "posible",
        "muy",
    ]
)
_COPULA = frozenset(["is", "was", "'s", "are", "were", "be", "es", "era", "fue", "sea"])


@dataclass(slots=True)
class Reading:
    """A cue with its extent, and what is made of it: ``rule`` overrides the extent's, ``label`` holds denied tokens to
    the left.
    """

    cue: Cue
    extent: Extent
    rule: str = ""
    empty: bool = False
    double: bool = False
    label: list[int] = field(default_factory=list)


def read(tokens: Tokens, readings: list[Reading], reach: English | Spanish) -> None:
    """Mark, in place, the readings that deny nothing, cancel each other, or answer a label to their left."""
    low = tokens.low
    for at, reading in enumerate(readings):
        cue = reading.cue
        if cue.kind == "affix":
            if at and readings[at - 1].cue.last == cue.first - 1 and readings[at - 1].cue.kind == "particle":
                reading.double = readings[at - 1].double = True  # "not unhappy": a litotes
            continue
        _answer(tokens, reading)
        if isinstance(reach, English):
            _question(tokens, reading, reach)
        elif cue.first and low[cue.first - 1] in ("¿", "¡") and low[cue.first] == "no":
            _empty(reading, "rhetorical question")
        elif not reading.empty and reach.weak(cue, reading.extent.end):
            _empty(reading, "hedged")
        if at:
            _double(tokens, readings[at - 1], reading)


def _empty(reading: Reading, rule: str) -> None:
    reading.empty = True
    reading.rule = rule


def _answer(tokens: Tokens, reading: Reading) -> None:
    """Read "No, …", "No I don't" and "Label: no"."""
    low, cue = tokens.low, reading.cue
    if low[cue.first] not in _ANSWERS:
        return
    after = cue.last + 1
    ends = after >= len(low) or not tokens.words[after]
    if (
        cue.first > 1
        and low[cue.first - 1] == ":"
        and (ends or low[after][0].isdigit() or (tokens.is_capital(after) and not tokens.is_capital(cue.first)))
    ):
        k = cue.first - 1
        while k > max(0, cue.first - 14) and tokens.words[k - 1]:
            k -= 1
        reading.label = list(range(k, cue.first - 1))
        _empty(reading, "answer")
    elif (low[cue.first] == "no" and ends) or (
        low[cue.first] == "no"
        and cue.kind == "determiner"
        and not ends
        and low[after] in ("i", "he", "she", "we", "they", "you", "it")
    ):
        _empty(reading, "answer")


def _question(tokens: Tokens, reading: Reading, reach: English) -> None:
    """Read "…, don't you?" and "Isn't that fine?", which expect a yes."""
    low, cue = tokens.low, reading.cue
    i = cue.first
    if not i or i + 1 >= len(low):
        return
    if (
        low[i] == "not"
        and i > 2
        and low[i - 1] in reach.c["subject"]
        and low[i - 2] in reach.c["auxiliary"]
        and low[i - 3] == ","
        and not tokens.words[i + 1]
    ):
        _empty(reading, "tag question")
    if low[i] != "n't" or i + 2 >= len(low):
        return
    pronoun = low[i + 1] in reach.c["subject"] or low[i + 1] in ("this", "that", "these", "those")
    opened = i < 2 or not tokens.words[i - 2] or low[i - 2] in ("and", "but", "so")
    if pronoun and opened:
        if low[i + 2] == "?":
            _empty(reading, "tag question")
        elif _first_stop(low, i + 2) in ("?", "!"):
            _empty(reading, "rhetorical question")


def _first_stop(low: list[str], i: int) -> str:
    return next((mark for mark in low[i : i + 80] if mark in (".", "?", "!", "\n")), "")


def _double(tokens: Tokens, first: Reading, second: Reading) -> None:
    """Cancel two adjacent negations, and "it is not (true) that … not …"."""
    low = tokens.low
    a, b = first.cue, second.cue
    if first.empty or second.empty or b.kind != "particle" or a.kind != "particle":
        return
    if b.first == a.last + 1:
        for reading in (first, second):
            _empty(reading, "double negation")
            reading.double = True
        return
    k = a.last + 1
    if k < len(low) and low[k] in _COPULA:
        k += 1  # Spanish: the verb follows the particle
    elif not a.first or low[a.first - 1] not in _COPULA:
        return
    while k < b.first and low[k] in _CERTAIN:
        k += 1
    if (
        k < b.first
        and low[k] in ("that", "que")
        and b.first - k <= 6
        and all(tokens.words[m] for m in range(k, b.first))
    ):
        first.double = second.double = True
        _empty(second, "double negation")
        first.extent = first.extent._replace(end=k, terminator=low[k], rule="double negation")
