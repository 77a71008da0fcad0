"""The written lexicon: registers × categories of discourse moves, their triggers, and what is known about each.

The data, and the way triggers are written, stand in ``corpora/lexicon/lexicon.toml``.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.checks import show
from anima.errors import DataError, InputError
from anima.negation import LANGUAGES
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

Evidence = Literal["measured held-out", "spot-checked", "constructed"]
EVIDENCE: Final[tuple[Evidence, ...]] = ("measured held-out", "spot-checked", "constructed")
#: Category of phrases that only keep shorter ones from matching.
BLOCKED: Final = ""

_PIECE = re.compile(r"\s*([()\[\]|]|[^()\[\]|\s]+)")
_MOST_FORMS = 10_000


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of discourse move: its name, the name it had in the Spanish source, and what it means."""

    name: str
    alias: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """A wording that stands for a category.

    Attributes
    ----------
    pattern
        As written in the file.
    category, register, lang
        What it stands for; the category is empty for a blocked phrase, the language for phrases of any language.
    evidence
        How it is known to work; see the head of the file.
    """

    pattern: str
    category: str
    register: str
    lang: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the triggers of a category are worth on a corpus.

    ``label`` is the human label they were compared with; empty where hits were read by hand, and then recall and kappa
    are NaN. ``n`` counts the items compared or read, ``fires`` those with a hit.
    """

    category: str
    lang: str
    corpus: str
    label: str
    n: int
    fires: int
    precision: float
    register: str = ""
    recall: float = float("nan")
    kappa: float = float("nan")
    base_rate: float = float("nan")
    held_out: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Refuted:
    """A trigger that was tried and found wrong; it is recorded, never matched."""

    trigger: str
    category: str
    lang: str
    reason: str
    corpus: str = ""
    n: int = 0
    wrong: int = 0
    precision: float = float("nan")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The whole lexicon."""

    categories: Mapping[str, Category]
    registers: Mapping[str, Category]
    triggers: tuple[Trigger, ...]
    measurements: tuple[Measurement, ...]
    refuted: tuple[Refuted, ...]

    def category(self, name: str) -> Category:
        """Return a category by its name or its Spanish alias."""
        for item in self.categories.values():
            if name in (item.name, item.alias):
                return item
        raise InputError(f"category must be one of {', '.join(map(repr, self.categories))}, got {show(name)}")


def expand(pattern: str) -> list[str]:
    """Return the plain forms of a pattern: ``"(a|b) [c] d"`` gives ``a c d``, ``a d``, ``b c d``, ``b d``.

    Raises
    ------
    InputError
        If brackets do not match or the forms are too many.
    """
    pieces = [match[1] for match in _PIECE.finditer(pattern)]
    forms, at = _alternatives(pieces, 0, pattern)
    if at < len(pieces):
        raise InputError(f"trigger {show(pattern)}: {pieces[at]!r} closes nothing")
    return list(dict.fromkeys(" ".join(form.split()) for form in forms))


def _alternatives(pieces: list[str], at: int, pattern: str) -> tuple[list[str], int]:
    """Read ``a b|c d`` up to a closing bracket or the end."""
    found, current = [], [""]
    while at < len(pieces) and pieces[at] not in ")]":
        piece = pieces[at]
        at += 1
        if piece == "|":
            found += current
            current = [""]
            continue
        options = [piece]
        if piece in "([":
            options, at = _alternatives(pieces, at, pattern)
            if pieces[at : at + 1] != [")" if piece == "(" else "]"]:
                raise InputError(f"trigger {show(pattern)}: {piece!r} is not closed")
            at += 1
            options += [""] if piece == "[" else []
        current = [f"{form} {option}" for form in current for option in options]
        if len(current) > _MOST_FORMS:
            raise InputError(f"trigger {show(pattern)} stands for more than {_MOST_FORMS:,} forms: split it")
    return found + current, at


def read_lexicon(path: Path) -> Lexicon:
    """Read and check a file of the lexicon.

    Raises
    ------
    DataError
        Names the file, the table and the field: an unknown category, register, language, evidence state or key, a bad
        pattern, a phrase that stands for two things, a refuted trigger in use.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML in UTF-8: {error}") from None
    categories, registers = (
        {
            name: _table(Category, item | {"name": name}, f"{path}: {key}.{name}")
            for name, item in raw.get(key, {}).items()
        }
        for key in ("categories", "registers")
    )
    triggers = [
        Trigger(pattern, BLOCKED, "", lang, "") for lang, items in raw.get("blocked", {}).items() for pattern in items
    ]
    choices = {"category": categories, "register": registers, "lang": LANGUAGES, "evidence": EVIDENCE}
    for i, group in enumerate(raw.get("group", [])):
        patterns = group.pop("triggers", None)
        where = f"{path}: group[{i}]"
        if not isinstance(patterns, list) or not all(isinstance(item, str) and item.strip() for item in patterns):
            raise DataError(f"{where}: field 'triggers' must be a list of non-empty strings, got {show(patterns)}")
        triggers += [_table(Trigger, group | {"pattern": pattern}, where, choices) for pattern in patterns]
    measurements, refuted = (
        tuple(_table(kind, item, f"{path}: {key}[{i}]", choices) for i, item in enumerate(raw.get(key, [])))
        for key, kind in (("measurement", Measurement), ("refuted", Refuted))
    )
    lexicon = Lexicon(categories, registers, tuple(triggers), measurements, refuted)
    _check_forms(lexicon, path)
    return lexicon


def _table(kind: Any, item: dict[str, Any], where: str, choices: Mapping[str, Any] | None = None) -> Any:
    """Return a dataclass made of a table of the file; fields that are unknown, missing or not allowed are named."""
    names = {field.name for field in fields(kind)}
    if unknown := sorted(set(item) - names):
        raise DataError(f"{where}: unknown field {unknown[0]!r}; known are {', '.join(sorted(names))}")
    try:
        made = kind(**item)
    except TypeError as error:
        raise DataError(f"{where}: {str(error).partition(') ')[2] or error}") from None
    for name, allowed in (choices or {}).items():
        value = getattr(made, name, None)
        if value is not None and value not in allowed and not (name == "register" and value == ""):
            raise DataError(f"{where}: field {name!r} must be one of {', '.join(allowed)}, got {show(value)}")
    return made


def _check_forms(lexicon: Lexicon, path: Path) -> None:
    """Refuse a phrase of one language that stands for two categories, and one in use that is recorded as refuted."""
    seen: dict[tuple[str, str], Trigger] = {}
    bad = {(item.lang, item.trigger): item for item in lexicon.refuted}
    for trigger in lexicon.triggers:
        try:
            forms = expand(trigger.pattern)
        except InputError as error:
            raise DataError(f"{path}: {trigger.category or 'blocked'}, {trigger.lang}: {error}") from None
        for form in forms:
            other = seen.setdefault((trigger.lang, form), trigger)
            if other.category != trigger.category:
                raise DataError(
                    f"{path}: {form!r} ({trigger.lang}) stands for {other.category or 'blocked'} by {show(other.pattern)} "
                    f"and for {trigger.category or 'blocked'} by {show(trigger.pattern)}: keep one"
                )
            if trigger.category and (wrong := bad.get((trigger.lang, form))):
                raise DataError(f"{path}: {form!r} is recorded as refuted ({wrong.reason}): take it out")


@cache
def load_lexicon() -> Lexicon:
    """Return the lexicon written for this project, from ``corpora/lexicon/lexicon.toml``."""
    return read_lexicon(data_path("lexicon/lexicon.toml"))


_LEDGER: Final = (
    "category", "alias", "register", "lang", "n_triggers", "n_forms", "evidence", "corpus", "label", "n", "fires",
    "precision", "recall", "kappa", "base_rate", "held_out", "note",
)  # fmt: skip


def ledger() -> pd.DataFrame:
    """Return what is known about each category, register and language: the evidence, not only the claims.

    Returns
    -------
    DataFrame
        One row for each measurement, and for each group of triggers without one: ``category, alias, register, lang,
        n_triggers, n_forms, evidence, corpus, label, n, fires, precision, recall, kappa, base_rate, held_out, note``. A
        category that was only ever constructed says so; a number without ``held_out`` was read off the corpus it
        describes. Refuted triggers follow with ``evidence`` "refuted".
    """
    import pandas as pd

    lexicon = load_lexicon()
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for trigger in lexicon.triggers:
        if trigger.category:
            key = (trigger.category, trigger.register, trigger.lang, trigger.evidence)
            groups.setdefault(key, []).append(len(expand(trigger.pattern)))
    rows: list[dict[str, Any]] = []
    for (category, register, lang, evidence), forms in groups.items():
        row: dict[str, Any] = {"category": category, "register": register, "lang": lang, "evidence": evidence}
        row |= {"n_triggers": len(forms), "n_forms": sum(forms)}
        about = (item for item in lexicon.measurements if (item.category, item.lang) == (category, lang))
        found = [item for item in about if item.register in ("", register)]
        rows += [row | _fields(item, "category", "register", "lang") for item in found] or [row]
    for item in lexicon.refuted:
        row = {"register": "", "n_triggers": 1, "n_forms": 1, "evidence": "refuted"}
        row |= _fields(item, "trigger", "reason", "wrong") | {"note": f"“{item.trigger}”: {item.reason}"}
        rows.append(row | {"precision": 1 - item.wrong / item.n if item.n else item.precision})
    frame = pd.DataFrame(rows, columns=_LEDGER)
    frame["alias"] = [lexicon.categories[name].alias for name in frame["category"]]
    frame[["corpus", "label", "note"]] = frame[["corpus", "label", "note"]].fillna("")
    frame["held_out"] = frame["held_out"].eq(True)
    frame[["n", "fires"]] = frame[["n", "fires"]].replace(0, float("nan")).astype("Int64")
    return frame


def _fields(item: Measurement | Refuted, *without: str) -> dict[str, Any]:
    return {field.name: getattr(item, field.name) for field in fields(item) if field.name not in without}
