"""Stems of English and Spanish words, and what acts verbs stand for: the little morphology that commitments need."""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from typing import Any, NamedTuple

from anima.settings import data_path


class Acts(NamedTuple):
    """Which verbs do the same and which undo it, by stem; words that are no topic; names of days and months."""

    group: dict[str, frozenset[str]]
    opposed: dict[str, frozenset[str]]
    light: frozenset[str]
    apart: frozenset[str]


@cache
def _raw(name: str) -> dict[str, Any]:
    with data_path(name).open("rb") as file:
        return tomllib.load(file)


@cache
def _irregular() -> dict[str, str]:
    """Return the base form of each irregular form."""
    entries = [item.partition(":") for text in _raw("lexicon/acts.toml")["irregular"].values() for item in text.split()]
    return {form: verb for verb, _, forms in entries for form in forms.split(",")}


@cache
def _endings() -> list[str]:
    return sorted(_raw("lexicon/acts.toml")["endings"]["both"].split(), key=len, reverse=True)


@cache
def acts() -> Acts:
    """Return the tables of ``corpora/lexicon/acts.toml``."""
    raw = _raw("lexicon/acts.toml")
    group: dict[str, set[str]] = {}
    for name, words in raw["groups"].items():
        for word in words.split():
            group.setdefault(stem(word), set()).add(name)
    opposed: dict[str, set[str]] = {}
    for name, others in raw["opposed"].items():
        for other in others:
            opposed.setdefault(name, set()).add(other)
            opposed.setdefault(other, set()).add(name)
    light = {
        word
        for table in (raw["light"], raw["apart"], _raw("stopwords.toml"))
        for text in table.values()
        for word in text.split()
    }
    # Verbs that may be promised are no function words here.
    light -= set(raw["verbs"]["promised"].split())
    return Acts(
        {key: frozenset(value) for key, value in group.items()},
        {key: frozenset(value) for key, value in opposed.items()},
        frozenset(light),
        frozenset(raw["apart"]["days"].split()),
    )


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Return a crude stem, so that inflected forms of English and Spanish words meet: "corregiré", "corregirse" → "correg"."""
    word = _irregular().get(word, word)
    for clitic in ("se", "lo", "la", "los", "las", "le", "les", "me", "te", "nos"):
        if len(word) > len(clitic) + 4 and word.endswith(("ar" + clitic, "er" + clitic, "ir" + clitic)):
            word = word[: -len(clitic)]
            break
    for ending in _endings():
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    # Spelling alternations: keep/kept are listed; "stopped", "pido/pedir", "vuelvo/volver", "busqué/buscar" are not.
    word = (
        word.replace("ie", "e").replace("ue", "o").replace("qu", "c").translate(str.maketrans("iuáéíóúy", "eoaeeooe"))
    )
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word[-1] == "e" else word
