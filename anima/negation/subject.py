"""The part of an English scope to the left of its cue: the subject and the words up to the cue, as CD-SCO marks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anima.negation.affix import attributive, determiner

if TYPE_CHECKING:
    from anima.negation.cues import Cue
    from anima.negation.english import English

_REACH = 60  # words
_NOUN_ENDINGS = ("ness", "ice", "age", "ity", "ion", "ence", "ure", "our", "order", "gard")
_RELATIVES = frozenset(["which", "who", "whom", "whose", "what", "how", "why"])
_CONJUNCTIONS = frozenset(["if", "when", "because", "whether", "since", "than", "until"])


def left(rules: English, cue: Cue) -> list[int]:
    """Return the tokens of the scope before the cue, in order."""
    low, words, c = rules.low, rules.words, rules.c
    k = cue.first - 1
    if cue.kind == "preposition" or low[cue.first] in ("nor", "neither"):
        return []
    if cue.kind == "affix":
        if attributive(rules, cue.first):
            return determiner(rules, k)
        if low[cue.first].endswith(_NOUN_ENDINGS):
            return []
    if (
        low[cue.first] == "not"
        and not (cue.last + 1 < rules.n and words[cue.last + 1])
        and rules.word(k) not in c["auxiliary"]
    ):
        return []  # "I think not", "as likely as not"
    found: list[int] = []
    subject = False
    while k >= max(0, cue.first - _REACH) and words[k] and low[k] not in c["stop"]:
        w = low[k]
        after = low[k + 1]
        if w in ("and", "or"):
            if not subject and _predicate(rules, k + 1):
                found = [*found, *reversed(_subject_before(rules, k))]
            break
        if w in _RELATIVES:
            found.append(k)
            if k and low[k - 1] in c["preposition"]:
                found.append(k - 1)
            break
        if w == "that":
            if found and after in c["auxiliary"]:
                found.append(k)
            break
        if w in _CONJUNCTIONS or (w in ("for", "as") and found and after in c["subject"]):
            break
        if w in c["subject"] and (w not in ("it", "you", "there") or _predicate(rules, k + 1)):
            subject = True
        elif subject:
            # Left of a subject only the auxiliary of a question belongs to the clause.
            boundary = k == 0 or not words[k - 1] or low[k - 1] in ("why", "how", "what", "where", "and", "but", "so")
            if w not in c["auxiliary"] or not boundary:
                break
        found.append(k)
        k -= 1
    while found and low[found[-1]] in c["discourse"]:
        if low[found[-1]] == "why" and low[found[-1] + 1] in c["auxiliary"]:
            break
        found.pop()
    return [i for i in reversed(found) if low[i] not in c["aside"]]


def _predicate(rules: English, k: int) -> bool:
    """Tell whether a verb, an adverb or a cue stands at ``k``."""
    w = rules.word(k)
    return w in rules.sets["predicate"] or w in rules.sets["led"]


def _subject_before(rules: English, k: int) -> list[int]:
    """Return the subject of the predicate that ends before the "and" at ``k``."""
    low, c = rules.low, rules.c
    start = k
    while (
        start > 0
        and rules.words[start - 1]
        and low[start - 1] not in ("that", "if", "when", "because", "and", "but", "for", "as")
    ):
        start -= 1
    while start < k and low[start] in c["discourse"]:
        start += 1
    end = start
    while end < k and not (low[end] in rules.sets["predicate"] or low[end].endswith("ed")):
        end += 1
    return list(range(start, end)) if end < k else []
