"""How far a Spanish negation reaches: rules on clause ends, coordination, enumerations and new predicates.

The convention is the one of NUBes (Lima López et al. 2020): the scope runs from the cue to the right; negative words
in agreement ("no vino nadie") and "ni" inside an open scope belong to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from anima.negation.cues import Extent, Rules, language

if TYPE_CHECKING:
    from anima.negation.cues import Cue, Tokens

_MARKS = frozenset(
    [";", ":", "?", "!", "\n", "…", "—", "–", "(", ")", "[", "]", '"', "''", "``", "«", "»", "¿", "¡", "+"]
)
_REACH = 250  # words; keeps the time linear where a text has no punctuation
_LIST = 120
_NEW = frozenset(["no", "sin", "nunca", "jamás", "tampoco"])
_ARTICLES = frozenset(["la", "lo", "los", "las"])  # also clitics
_JOINTS = frozenset(["y", "e", "por", "con", "que", "ni"])


@lru_cache(maxsize=1)
def _sets() -> dict[str, frozenset[str]]:
    """Return unions of word classes that the rules ask for over and over."""
    rules = language("es")
    c = rules.classes
    clitics = c["clitic"] - _ARTICLES
    return {
        # The walk along a clause passes over all words but these, gerunds excepted.
        "turn": c["stop"] | c["clitic"] | c["finite"] | c["opening"] | _NEW | _JOINTS | frozenset(rules.pairs),
        "predicate": c["finite"] | clitics,
        "unlisted": c["finite"] | clitics | c["stop"] | frozenset(rules.kinds) | frozenset(["o", "y", "e"]),
        "clause": c["finite"]
        | c["clitic"]
        | c["preposition"]
        | frozenset(rules.kinds)
        | frozenset(["que", "bien", "hoy"]),
    }


@lru_cache(maxsize=1)
def _endings() -> dict[str, tuple[str, ...]]:
    classes = language("es").classes
    return {name: tuple(classes[f"{name}_ending"]) for name in ("verb", "infinitive", "participle")}


class Spanish(Rules):
    """The rules, bound to one tokenised text."""

    __slots__ = ("endings", "pairs")

    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens, "es", _sets())
        self.pairs, self.endings = language("es").pairs, _endings()

    def right(self, cue: Cue) -> Extent:
        """Return where the scope to the right of the cue ends."""
        low, words, c = self.low, self.words, self.c
        turn, stop = self.sets["turn"], c["stop"]
        start = i = cue.last + 1
        n = min(self.n, start + _REACH)
        first = self.word(start)
        # A noun is denied, or a predicate; only within a predicate do later verbs belong to the scope.
        verbal = first.endswith(self.endings["infinitive"]) if cue.kind == "preposition" else self._verb(first)
        clause = cue.kind == "pronoun" or first == "que" or language("es").kinds.get(first) == "pronoun"
        clause = clause or (verbal and self.word(cue.first - 1) not in ("al", "por", "tras"))
        skipped: list[int] = []
        while i < n:
            w = low[i]
            if words[i] and w not in turn and w[-3:] != "ndo":
                i += 1
                continue
            rule = ""
            if (
                w in _MARKS
                or w[:2] in ("--", "..")
                or (w == "-" and self._spaced(i))
                or (w == "." and self._ends_sentence(i))
            ):
                rule = "punctuation"
            elif w == ",":
                rule = "" if i > start and self._list(i) else "comma"
            elif w in ("y", "e"):
                rule = "coordination" if self._new_conjunct(i, start, verbal) else ""
            elif w == "ni" and cue.kind == "correlative":
                skipped.append(i)  # the second cue of "ni … ni"
            elif i == start:
                rule = "connector" if w in ("pero", "aunque", "sino") else ""
            elif w in stop or (w in self.pairs and self.word(i + 1) in self.pairs[w]) or self._gerund(i):
                rule = "connector"
            elif w in _NEW:
                rule = "" if self.word(i + 1) == "obstante" else "next cue"
            elif w in ("por", "con"):
                rule = "" if verbal or self._governed(i) else "connector"
            elif w == "que":
                if i <= start + 2 and low[i - 1] in c["reporting"]:
                    rule = "complement"
                elif not verbal and first != "que" and self.word(i + 1) in c["indicative"]:
                    rule = "main clause"
                clause = True
            elif (not clause and w in self.sets["predicate"]) or (
                w in c["opening"] and self.tokens.is_capital(i) and not self.tokens.is_capital(i - 1)
            ):
                rule = "main clause"
            if rule:
                return Extent(i, w, rule, skipped)
            i += 1
        return Extent(n, "", "end", skipped)

    def weak(self, cue: Cue, end: int) -> bool:
        """Tell whether the denial is hedged ("sin clara ventaja") or cancels a lexical one ("no se puede descartar"): what
        follows is then uncertain rather than denied.
        """
        near = self.low[cue.last + 1 : min(end, cue.last + 5)]
        hedged, ruled_out = self.c["hedged"], self.c["ruled_out"]
        return any(word in hedged or (word in ruled_out and cue.kind != "pronoun") for word in near)

    def left(self, cue: Cue) -> list[int]:
        """Return the tokens of the scope to the left of the cue: the subject and the words up to the cue."""
        k = cue.first
        if cue.kind != "preposition":
            while (
                k > max(0, cue.first - _LIST)
                and self.words[k - 1]
                and self.low[k - 1] not in self.c["stop"]
                and self.low[k - 1] not in ("y", "e", "que", "si", "o")
            ):
                k -= 1
        return list(range(k, cue.first))

    def _verb(self, word: str) -> bool:
        """Tell whether a verb begins with ``word``, as far as its form or a clitic shows."""
        return word in self.c["clitic"] or word in self.c["finite"] or word.endswith(self.endings["verb"])

    def _gerund(self, i: int) -> bool:
        """Tell whether a gerund at ``i`` opens a predicate of its own, as it does but after "estar" and the like."""
        w = self.low[i]
        if not w.endswith("ndo") or len(w) <= 5:
            return False
        return self.low[i - 1] not in self.c["progressive"] and self.word(i - 2) not in self.c["progressive"]

    def _ends_sentence(self, i: int) -> bool:
        tokens = self.tokens
        if i and tokens.ends[i - 1] == tokens.starts[i]:
            before = self.low[i - 1]
            if before in self.c["title"]:
                return i + 1 >= self.n
            if len(before) == 1 and i + 1 < self.n and tokens.ends[i] == tokens.starts[i + 1] and before.isalpha():
                return False
        return True

    def _spaced(self, i: int) -> bool:
        tokens = self.tokens
        return i + 1 >= self.n or (
            i > 0 and tokens.ends[i - 1] < tokens.starts[i] and tokens.ends[i] < tokens.starts[i + 1]
        )

    def _list(self, i: int) -> bool:
        """Tell whether the comma at ``i`` stands in an enumeration of short items that ends with "ni"."""
        size = 0
        for j in range(i + 1, min(i + _LIST, self.n)):
            w = self.low[j]
            if w == "ni":
                return True
            if w == "," and size:
                size = 0
            elif (
                not self.words[j]
                or w in self.sets["unlisted"]
                or (not size and w in self.c["preposition"])
                or size == 5
            ):
                return False
            else:
                size += 1
        return False

    def _new_conjunct(self, i: int, start: int, verbal: bool) -> bool:
        """Tell whether "y" at ``i`` opens a predicate or phrase of its own."""
        low, n = self.low, self.n
        j = i + 1
        w = self.word(j)
        if not w:
            return True
        if w in ("/", "o") or i == start or (low[i] == "e" and w[0] not in "ihy"):
            return False
        if not self.words[j] or w in self.sets["clause"] or self._verb(w) or w.endswith("mente"):
            return True
        # Two nouns are joined inside a phrase ("del tejado y el muro"); a denied noun or adjective alone is complete.
        if not verbal and {"de", "del", "entre", "en"}.isdisjoint(low[start:i]):
            return True
        while j < n and self.words[j]:
            if low[j] in self.sets["predicate"] or j - i > 3:
                return True
            j += 1
        return False

    def _governed(self, i: int) -> bool:
        """Tell whether "con" at ``i`` is called for by the word before it, or "por" names the doer or the part of the day."""
        after, before = self.word(i + 1), self.low[i - 1]
        if self.low[i] == "por":
            return after in self.c["agent"] or self.word(i + 2) in self.c["agent_noun"]
        return (
            before in self.c["governs_con"]
            or after in ("respecto", "respeto")
            or before.endswith(self.endings["participle"])
        )
