"""The twenty intents: their names, regimes and usual successors."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Mapping

UNCLASSIFIED: Final = "UNCLASSIFIED"

Regime = Literal["control", "genuine", "plain"]


@dataclass(frozen=True, slots=True)
class Intent:
    """One intent of the catalogue."""

    name: str
    regime: Regime
    next: str
    pattern: str
    gloss: str


@cache
def catalogue() -> Mapping[str, Intent]:
    """Return the intents by name, in declared order."""
    with data_path("intents/intents.toml").open("rb") as file:
        return MappingProxyType({row["name"]: Intent(**row) for row in tomllib.load(file)["intent"]})


def regime(intent: str, *, plain_is_control: bool = False) -> Regime:
    """Return the regime of ``intent``; UNCLASSIFIED is plain, or control on request.

    An intent outside the catalogue (a reference folder may bring its own) is control, as in the reference service.
    """
    if intent == UNCLASSIFIED:
        return "control" if plain_is_control else "plain"
    known = catalogue().get(intent)
    return known.regime if known else "control"


def predicted_next(intent: str) -> str:
    """Return the usual successor of ``intent``; empty when anything may follow."""
    known = catalogue().get(intent)
    return known.next if known else ""


def pattern_for_intent(intent: str) -> str:
    """Return the pattern name under which markers and pools speak of ``intent``; unknown names map to themselves."""
    known = catalogue().get(intent)
    return known.pattern if known else intent
