"""How far an English negation reaches to the right: clause ends, coordination, subordination, noun phrases.

No parser is needed: closed word classes tell where a clause ends and where another one begins. The convention is that
of CD-SCO (Morante and Daelemans 2012): the scope is the negated clause with its complements, the cue left out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from anima.negation import affix
from anima.negation.cues import Extent, Rules, language

if TYPE_CHECKING:
    from anima.negation.cues import Cue, Tokens

MARKS = frozenset([";", ":", "?", "!", "\n", "…", "—", "–", "(", ")", "[", "]", '"', "''", "``", "«", "»"])
_QUOTES = frozenset(['"', "``"])
_PARENTHESIS = 12  # words
_REACH = 250  # words; keeps the time linear where a text has no punctuation
_LIST = 60
_NOUNS = 6  # a noun phrase of more words is not looked through
_FRONTED = 14  # nor a clause before the main clause
_RELATIVE = 6


@lru_cache(maxsize=1)
def _sets() -> dict[str, frozenset[str]]:
    """Return unions of word classes that the rules ask for over and over."""
    rules = language("en")
    c = rules.classes
    cues = frozenset(rules.kinds)
    joints = frozenset(["and", "or", "nor", "during", "because", "for", "so", "have", "do"])
    return {
        # The walk along a clause passes over all words but these.
        "turn": c["stop"] | c["subject"] | c["opener"] | c["finite"] | joints,
        "unlisted": c["subject"] | c["auxiliary"] | c["opener"] | cues | c["stop"] | c["vocative"],
        "clause": c["subject"]
        | c["auxiliary"]
        | cues
        | frozenset(["that", "if", "when", "because", "though", "what", "which", "who", "so", "with"]),
        "not_noun": c["preposition"]
        | c["determiner"]
        | c["auxiliary"]
        | c["opener"]
        | c["subject"]
        | frozenset(["and", "or", "but"]),
        "outside": c["auxiliary"] | c["opener"] | c["subject"] | c["stop"] | frozenset(["and", "or"]),
        "object": c["determiner"] | frozenset(["it", "him", "her", "them", "me", "us", "you"]),
        "led": c["auxiliary"] | c["adverb"] | cues | frozenset(["to"]),
        "predicate": c["auxiliary"] | c["verb"] | c["adverb"],
    }


class English(Rules):
    """The rules for the right, bound to one tokenised text."""

    __slots__ = ()

    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens, "en", _sets())

    def right(self, cue: Cue) -> Extent:
        """Return where the scope to the right of the cue ends."""
        if cue.kind == "affix" and affix.attributive(self, cue.first):
            return affix.noun_phrase(self, cue.last + 1)
        return self._clause(cue)

    def _clause(self, cue: Cue) -> Extent:
        low, words, c = self.low, self.words, self.c
        turn, stop, subject, opener, finite = self.sets["turn"], c["stop"], c["subject"], c["opener"], c["finite"]
        start = i = cue.last + 1
        n = min(self.n, start + _REACH)
        relative = cue.kind == "preposition" or self._in_relative(cue.first)
        fronted = self._in_fronted(cue.first)
        # How many finite verbs the clauses opened so far may still have.
        verbs = int(self._waits(cue))
        last_opener = -1
        skipped: list[int] = []
        while i < n:
            w = low[i]
            if words[i] and w not in turn:
                i += 1
                continue
            if w in _QUOTES and (close := self._quoted(i)):
                i = close + 1
                continue
            rule, end = "", i
            if w in MARKS or w[:2] in ("--", "..") or (w == "." and self._ends_sentence(i)):
                rule = "punctuation"
            elif w == ",":
                if close := self._parenthesis(i, cue):
                    skipped += range(i + 1, close)
                    i = close
                elif close := self._interruption(i):
                    i = close
                elif not self._comma_continues(i, start):
                    rule = "comma"
            elif w in stop:
                if w == "however" and self.word(i + 1) == "," and self.word(i + 2) in ("that", "of", "to"):
                    skipped.append(i)
                    i += 1
                elif not self._stop_continues(i, start):
                    rule = "connector"
            elif w == "and" or w == "or":
                adjective = w == "and" and i == start and cue.kind == "affix"
                if adjective or (not self._subject_goes_on(i, last_opener) and self._new_clause(i + 1, cue, w)):
                    rule = "coordination"
            elif w == "nor":
                if low[cue.first] == "neither":
                    skipped.append(i)
            elif (
                w == "because"
                or (w == "during" and cue.kind == "preposition")
                or (w in ("for", "so") and self._opens(i, start))
            ):
                rule = "connector"
            elif w in opener:
                rule = "complement" if w == "that" and i == start + 1 and self._reports(cue, i - 1) else ""
                verbs += 1
                last_opener = i
            elif w in subject:
                main = i > start and (fronted or cue.kind == "preposition") and self._main_subject(i)
                rule = "main clause" if main else ""
                verbs += 1
                last_opener = i
            elif i > start and w != "'s" and (w in finite or (w in ("have", "do") and (fronted or relative))):
                if low[i - 1] in self.sets["led"] or self.word(i + 1) in subject:
                    pass
                elif verbs > 0:
                    verbs -= 1
                elif (relative or fronted) and low[i - 1] not in c["preposition"]:
                    rule, end = "main clause", self._phrase_start(i, start) if fronted else i
            if rule:
                return Extent(end, w, rule, skipped)
            i += 1
        return Extent(n, "", "end", skipped)

    def _waits(self, cue: Cue) -> bool:
        """Tell whether the clause of the cue still lacks its finite verb, as after a negative subject."""
        if cue.kind == "determiner":
            return True
        if cue.kind != "pronoun" and self.low[cue.first] not in ("nor", "neither", "never", "nowhere"):
            return False
        return self.word(cue.first - 1) not in ("is", "was", "'s", "are", "were", "have", "has", "had")

    def _ends_sentence(self, i: int) -> bool:
        """Tell whether the full stop at ``i`` ends a sentence rather than an abbreviation."""
        tokens = self.tokens
        if not i or tokens.ends[i - 1] != tokens.starts[i] or i + 1 >= self.n:
            return True
        before = self.low[i - 1]
        initial = len(before) == 1 and before.isalpha() and before != "i" and tokens.is_capital(i - 1)
        return not (initial or before in self.c["title"])

    def _stop_continues(self, i: int, start: int) -> bool:
        """Tell whether a word that mostly ends a clause does not do so here."""
        w = self.low[i]
        if w == "but":
            return i == start or self.low[i - 1] in ("anything", "any", "one", "else")
        if w in ("yet", "still"):
            return self.word(i + 1) not in self.c["subject"]
        return w == "unless" and i - start < 4

    def _opens(self, i: int, start: int) -> bool:
        """Tell whether "for" or "so" at ``i`` opens a clause."""
        after = self.word(i + 1)
        if self.low[i] == "so":
            return after == "that" or (i > start and after in self.c["subject"])
        return i > start and after in self.c["subject"] and self.word(i + 2) in (self.c["auxiliary"] | self.c["verb"])

    def _reports(self, cue: Cue, i: int) -> bool:
        """Tell whether the verb at ``i`` reports what its clause says, so that only the saying is denied. "I can't say that"
        doubts the clause itself.
        """
        plain = (
            self.word(cue.first - 1) in ("do", "did", "does", "has", "have", "had") or self.low[cue.first] == "never"
        )
        return plain and self.low[i] in self.c["reporting"]

    def _main_subject(self, i: int) -> bool:
        """Tell whether the pronoun at ``i`` begins the main clause after a subordinate one."""
        before = self.low[i - 1]
        return self.word(i + 1) in self.sets["predicate"] and not (
            before in self.c["opener"]
            or before in self.c["thinking"]
            or before in self.c["auxiliary"]
            or before in ("and", "or")
        )

    def _phrase_start(self, i: int, start: int) -> int:
        """Return where the noun phrase before ``i`` begins."""
        return next((k for k in range(i - 1, max(start, i - 5), -1) if self.low[k] in self.c["determiner"]), i)

    def _comma_continues(self, i: int, start: int) -> bool:
        """Tell whether the scope goes on behind the comma at ``i``."""
        if i == start:
            return False
        after = self.word(i + 1)
        if after in ("save", "except", "until"):
            return True
        return (after == "or" and self.word(i + 2) in ("to", "of", "in", "any", "even", "at")) or self._list(i, start)

    def _list(self, i: int, start: int) -> bool:
        """Tell whether the comma at ``i`` stands in a list of short items that ends with "and", "or" or "nor"."""
        low, words, unlisted = self.low, self.words, self.sets["unlisted"]
        k = i - 1
        while k >= start and words[k]:
            k -= 1
        items = int(k >= start and low[k] == "," and i - k <= 4)
        size = 0
        for j in range(i + 1, min(i + _LIST, self.n)):
            w = low[j]
            if w == "," and size:
                items += 1
                size = 0
            elif w in ("and", "or", "nor"):
                if not items and not size:
                    return False
                k = j + 1
                while k < self.n and words[k] and k - j <= 5 and not (low[k] in self.c["preposition"] and k > j + 1):
                    if low[k] in unlisted:
                        return False
                    k += 1
                return 1 < k - j <= 4
            elif not words[j] or w in unlisted or size == 3:
                return False
            else:
                size += 1
        return False

    def _parenthesis(self, i: int, cue: Cue) -> int:
        """Return the comma that closes an address or a set phrase opened by the comma at ``i``, or 0 where the clause does
        not go on behind it.
        """
        low, c = self.low, self.c
        at_cue = i == cue.last + 1
        if at_cue and cue.kind != "particle":
            return 0
        if (
            at_cue
            and low[cue.first] in ("not", "n't", "never")
            and self.word(cue.first - 1) in c["auxiliary"] | c["subject"]
        ):
            close = self._closing(i)
            if close and self.word(close + 1) not in self.sets["clause"]:
                return close
        for k in range(i + 2, min(i + 7, self.n - 1)):
            if low[k] == ",":
                inside = low[i + 1 : k]
                named = all(
                    w == "." or w in c["vocative"] or self.tokens.is_capital(m) for m, w in enumerate(inside, i + 1)
                )
                reported = inside[-1] in ("said", "he", "she", "i") and not {"said", "think", "believe"}.isdisjoint(
                    inside
                )
                phrase = " ".join(inside) in ("for example", "of course", "in fact", "after all", "as usual")
                if not (named or reported or phrase or (len(inside) == 1 and inside[0] in c["parenthetical"])):
                    return 0
                after = low[k + 1]
                goes_on = after in ("that", "whether", "to", "what", "how", "where") or (
                    after in c["preposition"] and after not in ("for", "as", "like", "with")
                )
                return k if goes_on or at_cue else 0
            if not self.words[k] and low[k] != ".":
                return 0
        return 0

    def _interruption(self, i: int) -> int:
        """Return the comma that closes a parenthesis which parts a subject or a conjunction from its verb: "since she, on the
        last day, called us"; else 0.
        """
        low = self.low
        pronoun = low[i - 1] in ("i", "he", "she", "we", "they")
        if not pronoun and low[i - 1] not in self.c["opener"]:
            return 0
        close = self._closing(i)
        after = self.word(close + 1) if close else ""
        predicate = after in self.sets["predicate"] or after.endswith("ed")
        clause = after in self.c["subject"] or after in self.c["determiner"]
        return close if (predicate if pronoun else clause or (predicate and low[i - 1] != "that")) else 0

    def _closing(self, i: int) -> int:
        """Return the next comma after the one at ``i``, with only words between, or 0."""
        for k in range(i + 1, min(i + 1 + _PARENTHESIS, self.n)):
            if self.low[k] == ",":
                return k if k > i + 1 else 0
            if not self.words[k] and self.low[k] != ".":
                return 0
        return 0

    def _quoted(self, i: int) -> int:
        """Return the mark that closes a quoted word or phrase opened at ``i`` in mid-sentence, or 0."""
        low, tokens = self.low, self.tokens
        if not i or not self.words[i - 1] or tokens.ends[i - 1] == tokens.starts[i]:
            return 0
        closing = "''" if low[i] == "``" else low[i]
        for k in range(i + 1, min(i + 8, self.n)):
            if low[k] == closing:
                return k
            if not self.words[k]:
                return 0
        return 0

    def _subject_goes_on(self, i: int, opener: int) -> bool:
        """Tell whether "and" at ``i`` joins nouns of a subject that has no verb yet: "that Ann and Joe may"."""
        if opener < 0 or i - opener > 4 or not (self.low[opener] in self.c["interrogative"] or i - opener == 1):
            return False
        return not any(w in self.c["auxiliary"] or w in self.c["verb"] for w in self.low[opener + 1 : i])

    def _new_clause(self, j: int, cue: Cue, joint: str) -> bool:
        """Tell whether what follows "and" or "or" at ``j`` is a clause or a predicate of its own."""
        low, n, c = self.low, self.n, self.c
        if joint == "or" and self.word(j) == "so":
            return False
        cues = language("en").kinds
        while (
            j < n
            and low[j] in c["adverb"]
            and low[j] not in cues
            and low[j] not in ("here", "there", "more", "most", "much", "very")
        ):
            j += 1
        if j >= n or not self.words[j]:
            return True
        w = low[j]
        if joint == "or" and (w in c["verb"] or w in c["auxiliary"]) and self.word(j + 1) not in c["subject"]:
            return False
        if w in self.sets["clause"] or w in c["verb"] or (w.endswith("ed") and len(w) > 4 and low[cue.first] != "no"):
            return True
        # A noun phrase with its finite verb is a clause.
        for k in range(j + 1, min(j + 1 + _NOUNS, n)):
            w = low[k]
            if w in c["subject"]:
                return False
            if w in c["finite"] and w != "'s":
                return True
            if (
                not self.words[k]
                or w in ("and", "or", "to", "which", "who", "that")
                or (w in c["preposition"] and w != "of")
            ):
                return False
            past = w.endswith("ed") and k > j + 1 and self.word(k + 1) in self.sets["object"]
            if past or w in c["verb"] or w in cues:
                return True
        return False

    def _in_relative(self, first: int) -> bool:
        """Tell whether the cue stands in a relative clause."""
        for k in range(first - 1, max(first - 1 - _RELATIVE, -1), -1):
            w = self.low[k]
            if w in ("which", "who", "whom", "whose"):
                return True
            if w == "that":
                return k > 0 and self.low[k + 1] in self.c["auxiliary"]
            if not self.words[k]:
                return False
        return False

    def _in_fronted(self, first: int) -> bool:
        """Tell whether the cue stands in a subordinate clause that precedes its main clause."""
        low, c = self.low, self.c
        for k in range(first - 1, max(first - 1 - _FRONTED, -1), -1):
            w = low[k]
            boundary = k == 0 or not self.words[k - 1] or low[k - 1] in ("and", "but", "that", "as", "far", "long")
            if w in c["fronted"]:
                return boundary
            if w in ("had", "were", "should") and boundary and low[k + 1] in c["subject"]:
                return True
            if not self.words[k] or w in ("that", "which", "who"):
                return False
            if (
                w in ("i", "he", "she", "we", "they", "there")
                and not boundary
                and low[k - 1] not in c["opener"] | c["auxiliary"]
            ):
                return False  # the main clause has begun: "When it came to that I could not"
        return False
