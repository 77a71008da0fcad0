"""English words with a negative affix: which they are, and the noun phrases they stand in."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from anima.negation.cues import Extent, language

if TYPE_CHECKING:
    from anima.negation.english import English


@lru_cache(maxsize=8192)
def affix_of(word: str) -> tuple[int, int] | None:
    """Return the bounds of the negative affix of a lower-case English word, or None."""
    rules = language("en")
    found = rules.affixes.get(word)
    if found:
        return found
    lists = rules.classes
    if (
        word.startswith("un")
        and len(word) >= 6
        and word.endswith(("ed", "able", "ably", "ible", "ing", "edly", "ingly", "ful", "fully"))
    ):
        return None if word in lists["not_un"] or word.startswith(("under", "uni", "undul")) else (0, 2)
    for ending in ("less", "lessly", "lessness"):
        if (
            word.endswith(ending)
            and len(word) >= len(ending) + 3
            and word[: len(word) - len(ending)] + "less" not in lists["not_less"]
        ):
            return len(word) - len(ending), len(word) - len(ending) + 4
    return None


def attributive(rules: English, i: int) -> bool:
    """Tell whether the word with an affix at ``i`` stands before a noun that it qualifies."""
    low, c = rules.low, rules.c
    if i + 1 >= rules.n or not rules.words[i + 1] or low[i].endswith(("ness", "ly", "ility", "ience", "ure")):
        return False
    if low[i + 1] in rules.sets["not_noun"]:
        return False
    for k in range(i - 1, max(i - 7, -1), -1):
        w = low[k]
        if w in c["determiner"] or (w in c["preposition"] and w != "as"):
            return True
        if w in c["copula"] or w in c["auxiliary"] or w in c["subject"]:
            return False
    return False


def noun_phrase(rules: English, i: int) -> Extent:
    """Return where the noun phrase of an attributive adjective ends, a phrase with "of" included."""
    low, c, outside = rules.low, rules.c, rules.sets["outside"]
    start, of = i, False
    while i < rules.n:
        w = low[i]
        if not rules.words[i]:
            return Extent(i, w, "punctuation")
        after_noun = i > start and (
            w in c["verb"] or (not of and (w in c["determiner"] or w == "to" or w in c["adverb"]))
        )
        if w == "of":
            of = True
        elif w != "'s" and (w in outside or after_noun or (w in c["preposition"] and not of)):
            return Extent(i, w, "noun phrase")
        i += 1
    return Extent(rules.n, "", "end")


def determiner(rules: English, k: int) -> list[int]:
    """Return the determiner of the noun phrase at whose adjective ``k + 1`` the affix stands, with a degree word."""
    low, c = rules.low, rules.c
    degree = [k] if rules.word(k) in c["degree"] else []
    for m in range(k, max(k - 6, -1), -1):
        if low[m] in c["determiner"]:
            return [m, *degree]
        if low[m] in c["preposition"] or low[m] in c["auxiliary"] or not (rules.words[m] or low[m] == ","):
            break
    return degree
