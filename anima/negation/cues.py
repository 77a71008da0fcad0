"""The word lists of a language, and where its negation cues stand.

Lists live in ``corpora/negation/<lang>.toml``; this module compiles them once and finds the cues of a tokenised text.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from anima.errors import DataError
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Lang = Literal["en", "es"]
LANGUAGES: Final[tuple[Lang, ...]] = ("en", "es")
CueKind = Literal["particle", "pronoun", "determiner", "preposition", "correlative", "affix"]

#: Numbers, clitics of their own, words, runs of dashes and points, single marks, line ends.
_TAIL = r"|\w+(?:-\w+|'(?!(?:s|ll|re|ve|m|d)\b)\w+)*|--+|\.{2,}|''|``|\n|[^\w\s]"
_ENGLISH = re.compile(r"\d+(?:[.,/:]\d+)*\w*|'(?:s|ll|re|ve|m|d)\b" + _TAIL)
#: The same with "n't" cut off, which is slower and seldom needed.
_CONTRACTED = re.compile(
    r"\d+(?:[.,/:]\d+)*\w*|[^\W\d]\w*?(?=n't\b)|n't\b|'(?:s|ll|re|ve|m|d)\b" + _TAIL, re.IGNORECASE
)
#: Spanish has no clitics after an apostrophe, and compounds with a hyphen are rare.
_SPANISH = re.compile(r"\d+(?:[.,/:]\d+)*\w*|\w+|--+|\.{2,}|''|``|\n|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A normalised text in tokens: ``low[i]`` is the lower-case form of ``text[starts[i]:ends[i]]``, ``words[i]`` whether
    it holds a letter or digit.
    """

    text: str
    low: list[str]
    starts: list[int]
    ends: list[int]
    words: list[bool]

    def is_capital(self, i: int) -> bool:
        """Tell whether token ``i`` begins with a capital."""
        return self.text[self.starts[i]].isupper()


def tokenize(text: str, lang: Lang) -> Tokens:
    """Cut a normalised text into tokens; punctuation marks are tokens, blanks are not, a line end is one."""
    lower = text.lower()
    pattern = _SPANISH if lang == "es" else _CONTRACTED if "n't" in lower else _ENGLISH
    spans = [match.span() for match in pattern.finditer(text)]
    # A few capitals grow when lowered; then each token is lowered by itself.
    low = [lower[a:b] for a, b in spans] if len(lower) == len(text) else [text[a:b].lower() for a, b in spans]
    words = [form[-1].isalnum() or form[0].isalnum() for form in low]
    return Tokens(text, low, [a for a, _ in spans], [b for _, b in spans], words)


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue: tokens ``first`` to ``last`` inclusive, its kind, and its characters in the normalised text."""

    first: int
    last: int
    kind: CueKind
    start: int
    end: int


class Extent(NamedTuple):
    """How far a scope reaches to the right.

    ``end`` is the first token after it, ``terminator`` that token's form (empty at the end of the text), ``rule`` the
    rule that decided, ``skipped`` the tokens before ``end`` that stand outside, such as an address.
    """

    end: int
    terminator: str
    rule: str
    skipped: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """Compiled lists of one language.

    Attributes
    ----------
    kinds
        Kind of each cue of one word.
    phrases
        Cues of several words by their first word, longest first.
    pseudo
        Phrases that deny nothing, by their first two words, longest first; some only under a condition:
    alone, with_gerund
        Those that deny nothing only between marks ("no problem"), or before a gerund or "but" ("can't help laughing").
    with_but, corrective
        Those that deny nothing only where one of the corrective words follows ("not just … but").
    deniable, deniers
        Those whose noun may itself be what is denied ("there is no doubt"), and the words before them that show it.
    starters
        Words a cue can begin with.
    classes
        The word classes.
    pairs
        Second words by first word of pairs that end a clause (Spanish "por lo").
    affixes
        For each word with a negative affix, the bounds of the affix in it.
    affixal_by_default
        Whether affixes count as cues unless the caller says otherwise.
    triggers
        Finds what a cue can begin with: without a match there is no cue but affixes.
    """

    name: Lang
    kinds: Mapping[str, CueKind]
    phrases: Mapping[str, tuple[tuple[str, ...], ...]]
    pseudo: Mapping[tuple[str, str], tuple[tuple[str, ...], ...]]
    starters: frozenset[str]
    alone: frozenset[tuple[str, ...]]
    with_but: frozenset[tuple[str, ...]]
    with_gerund: frozenset[tuple[str, ...]]
    corrective: frozenset[str]
    deniable: frozenset[tuple[str, ...]]
    deniers: frozenset[str]
    classes: Mapping[str, frozenset[str]]
    pairs: Mapping[str, frozenset[str]]
    affixes: Mapping[str, tuple[int, int]]
    affixal_by_default: bool
    triggers: re.Pattern[str] = field(repr=False)


class Rules:
    """The rules of a language, bound to one tokenised text; subclasses say how far a negation reaches."""

    __slots__ = ("c", "low", "n", "sets", "tokens", "words")

    def __init__(self, tokens: Tokens, lang: Lang, sets: Mapping[str, frozenset[str]]) -> None:
        self.tokens, self.words, self.low, self.n = tokens, tokens.words, tokens.low, len(tokens.low)
        self.c, self.sets = language(lang).classes, sets

    def word(self, i: int) -> str:
        """Return the form of token ``i``, or an empty string outside the text."""
        return self.low[i] if 0 <= i < self.n else ""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace("n't", " n't").split())


def _by_first_word(phrases: Iterable[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return phrases by their first word, longest first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for words in sorted(map(_words, phrases), key=lambda words: (-len(words), words)):
        found.setdefault(words[0], []).append(words)
    return {word: tuple(items) for word, items in found.items()}


def _affixes(table: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return the bounds of the affix for each listed word."""
    prefixes = sorted(table["prefixes"].split(), key=len, reverse=True)
    suffix = table["suffix"]
    found: dict[str, tuple[int, int]] = {}
    for word in table["words"].split():
        prefix = next((p for p in prefixes if word.startswith(p)), "")
        if prefix:
            found[word] = (0, len(prefix))
        elif suffix and suffix in word:
            found[word] = (word.rindex(suffix), word.rindex(suffix) + len(suffix))
    return found


def _pairs(text: str) -> dict[str, frozenset[str]]:
    """Return for each first word of pairs written "a-b" its second words."""
    found: dict[str, set[str]] = {}
    for pair in text.split():
        first, second = pair.split("-")
        found.setdefault(first, set()).add(second)
    return {first: frozenset(seconds) for first, seconds in found.items()}


def _lists(table: Mapping[str, str]) -> dict[str, str]:
    """Return the lists of words that only look as if they had a negative affix."""
    return {key: value for key, value in table.items() if key.startswith("not_")}


@cache
def language(name: Lang) -> Language:
    """Return the lists of a language.

    Raises
    ------
    DataError
        If the file is absent or lacks a part.
    """
    path = data_path(f"negation/{name}.toml")
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        cues = raw["cues"]
        kinds: dict[str, CueKind] = {}
        for kind in ("particle", "pronoun", "determiner", "preposition", "correlative"):
            kinds |= dict.fromkeys(cues.get(kind, "").split(), kind)
        if cues["contraction"]:
            kinds[cues["contraction"]] = "particle"
        phrases = _by_first_word(cues["phrases"])
        lists = {
            key: frozenset(map(_words, raw["pseudo"][key]))
            for key in ("phrases", "alone", "with_but", "with_gerund", "deniable")
        }
        pseudo: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {}
        for words in sorted(frozenset().union(*lists.values()), key=lambda words: (-len(words), words)):
            pseudo[words[0], words[1]] = (*pseudo.get((words[0], words[1]), ()), words)
        affixes = _affixes(raw["affix"])
        first = "|".join(sorted({re.escape(word) for word in [*kinds, *phrases]}, key=len, reverse=True))
        return Language(
            name=name,
            kinds=kinds,
            phrases=phrases,
            pseudo=pseudo,
            starters=frozenset([*kinds, *phrases]),
            alone=lists["alone"],
            with_but=lists["with_but"],
            with_gerund=lists["with_gerund"],
            corrective=frozenset(raw["pseudo"]["corrective"].split()),
            deniable=lists["deniable"],
            deniers=frozenset(raw["pseudo"]["deniers"].split()),
            pairs=_pairs(raw["classes"].get("stop_pairs", "")),
            classes={key: frozenset(value.split()) for key, value in (raw["classes"] | _lists(raw["affix"])).items()},
            affixes=affixes,
            affixal_by_default=raw["affixal_by_default"],
            triggers=re.compile(rf"(?:(?<!\w)|(?=n't))(?:{first})\b", re.IGNORECASE),
        )
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, IndexError) as error:
        raise DataError(f"{path}: not a list of negation cues: {error!r}; reinstall anima") from error
