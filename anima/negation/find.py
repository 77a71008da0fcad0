"""Which words of a text are negation cues, and in which language the text is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from anima.checks import require_text
from anima.negation.affix import affix_of
from anima.negation.cues import Cue, language

if TYPE_CHECKING:
    from anima.negation.cues import Lang, Language, Tokens

_MARKS: Final = re.compile(r"[ñáéíóú¿¡]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_NEITHER: Final = frozenset(
    ["no", "a", "me", "has", "he", "son", "come", "so", "van", "us", "y", "o", "e", "u", "for", "has", "once", "sin"]
)


@lru_cache(maxsize=1)
def _telling() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the lists, cues included, that tell English and those that tell Spanish."""
    english, spanish = (
        frozenset().union(rules.kinds, *(forms for name, forms in rules.classes.items() if not name.endswith("ending")))
        for rules in (language("en"), language("es"))
    )
    return english - spanish - _NEITHER, spanish - english - _NEITHER


@lru_cache(maxsize=1)
def function_words() -> frozenset[str]:
    """Return the words that tell English or Spanish from other languages."""
    return frozenset().union(*_telling(), _NEITHER)


def guess_language(text: str) -> Lang:
    """Return "es" where Spanish function words and letters outnumber English ones, else "en"."""
    low = (text if isinstance(text, str) else require_text(text))[:2000].lower()
    words = set(_WORD.findall(low))
    english, spanish = _telling()
    weight = len(words & spanish) + (0 if low.isascii() else 2 * len(_MARKS.findall(low)))
    return "es" if weight > len(words & english) else "en"


def find_cues(tokens: Tokens, rules: Language, *, affixal: bool) -> list[Cue]:
    """Return the cues of a tokenised text, in order; pseudo-negations are left out."""
    low = tokens.low
    starters, kinds = rules.starters, rules.kinds
    if affixal:
        places = [i for i, word in enumerate(low) if word in starters or (len(word) > 4 and affix_of(word))]
    else:
        places = [i for i, word in enumerate(low) if word in starters]
    cues: list[Cue] = []
    done = 0
    for i in places:
        if i < done:
            continue
        word = low[i]
        if word not in starters:
            low_end, high_end = affix_of(word) or (0, 0)
            start = tokens.starts[i]
            cues.append(Cue(i, i, "affix", start + low_end, start + high_end))
            continue
        if skip := _pseudo_length(tokens, i, rules):
            done = i + skip
            continue
        kind = kinds.get(word)
        last = i
        for phrase in rules.phrases.get(word, ()):
            if low[i : i + len(phrase)] == list(phrase):
                last = i + len(phrase) - 1
                kind = kind or "particle"
                break
        if kind is not None and not (word == "no" and _number_sign(tokens, i)):
            if kind == "determiner" and low[i + 1 : i + 2] == ["one"]:
                kind = "pronoun"
            cues.append(Cue(i, last, kind, tokens.starts[i], tokens.ends[last]))
        done = last + 1
    return cues


def _number_sign(tokens: Tokens, i: int) -> bool:
    """Tell whether "no" at ``i`` is short for number: "No. 27"."""
    low = tokens.low
    return (
        i + 2 < len(low)
        and low[i + 1] in (".", "º")
        and low[i + 2][0].isdigit()
        and tokens.ends[i] == tokens.starts[i + 1]
    )


def _pseudo_length(tokens: Tokens, i: int, rules: Language) -> int:
    """Return the number of tokens of the pseudo-negation that begins at ``i``, or 0."""
    low = tokens.low
    for phrase in rules.pseudo.get((low[i], low[i + 1]), ()) if i + 1 < len(low) else ():
        end = i + len(phrase)
        if low[i:end] != list(phrase):
            continue
        after = low[end] if end < len(low) else "."
        if phrase in rules.with_gerund:
            if not (after.endswith("ing") or after == "but"):
                continue
        elif phrase in rules.alone:
            if (i and tokens.words[i - 1]) or after[0].isalnum():
                continue
        elif phrase in rules.with_but:
            if not any(word in rules.corrective for word in low[end : end + 40]):
                continue
        elif phrase in rules.deniable and _denied(low, i, end, rules):
            continue
        return len(phrase)
    return 0


def _denied(low: list[str], i: int, end: int, rules: Language) -> bool:
    """Tell whether a noun such as "doubt" is itself what the clause denies, as in "there is no doubt about it".

    With a clause after it ("I have no doubt that …") the phrase affirms that clause.
    """
    after = low[end] if end < len(low) else "."
    if after[0].isalnum() and after not in ("about", "of", "as", "on", "in", "whatever"):
        return False
    return "there" in low[max(0, i - 4) : i] or (i > 0 and low[i - 1] in rules.deniers)
