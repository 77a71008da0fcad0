"""DeliData: groups of two to six people solve the Wason card selection task in a chat (Karadzhov et al. 2023).

One tab-separated file per group. The quote character is the apostrophe: a cell that holds one is written between two
others and its own are doubled (``'I don''t'``), while a quotation mark is a character like any other. The project's own
reader leaves these marks in the text; they are taken away here.
"""

from __future__ import annotations

import csv
import json
import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from anima.checks import show
from anima.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from anima.corpora.build import Builder, Kind
    from anima.corpora.files import Files

COLUMNS: Final = (
    "group_id", "message_id", "message_type", "origin", "original_text", "clean_text", "annotation_type",
    "annotation_target", "annotation_additional", "team_performance", "performance_change", "sol_tracker_message",
    "sol_tracker_all",
)  # fmt: skip
_KINDS: Final[dict[str, Kind]] = {"INITIAL": "initial", "MESSAGE": "message", "SUBMIT": "submit"}
_VOWELS: Final = frozenset("AEIOU")
Cards = tuple[str, ...]


def group_files(folder: Path) -> list[Path]:
    """Return the files of the groups: all of ``delidata_corpus``, else the folder's own files named ``.tsv``."""
    inner = folder / "delidata_corpus"
    paths = inner.iterdir() if inner.is_dir() else folder.glob("*.tsv")
    return sorted(path for path in paths if not path.name.startswith(".") and path.is_file())


def read(files: Files, builder: Builder) -> None:
    """Read all groups of a folder.

    Columns of the utterances: ``clean_text`` (cards and names masked), ``team_performance`` and
    ``performance_change``, ``solution`` (the cards that the message names or the participant submits) and ``state``
    (what each participant is taken to hold after it, both as tuples of cards).

    Outcomes of the group: ``tp_initial``, ``tp_final``, ``tp_last_msg``, ``tp_max`` and ``gain`` of the tracked team
    performance; ``exact_initial``, the share of participants who begin with the right cards, ``exact_last_submit``,
    the share of those who submitted whose last submission is right (NaN without one), and ``gain_exact``.
    Per speaker who submitted: ``correct``. Shown equal to independent values by ``tests/corpora/test_delidata.py``.

    Labels: type "0" means that nobody annotated the message. Of annotated ones the target "0" or "None" is the label
    "None" (no deliberation), and an empty set of additional labels is none.
    """
    for path in group_files(files.folder):
        _group(_rows(files, path), path, builder)


def _rows(files: Files, path: Path) -> list[tuple[str, ...]]:
    """Return the rows below the header, the cells in the order of ``COLUMNS``."""
    reader = csv.reader(files.text(path).splitlines(keepends=True), delimiter="\t", quotechar="'", strict=True)
    rows = []
    try:
        header = next(reader, [])
        if missing := [name for name in COLUMNS if name not in header]:
            raise DataError(
                f"{path}:1: lacks the column{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}: "
                "the header must name all columns, separated by tabs"
            )
        pick = itemgetter(*map(header.index, COLUMNS))
        for cells in reader:
            if len(cells) != len(header):
                raise DataError(
                    f"{path}:{reader.line_num}: {len(cells)} cells where the header has {len(header)}; the file may be "
                    "cut: fetch or copy it again"
                )
            rows.append(pick(cells))
    except csv.Error as error:
        raise DataError(
            f"{path}:{reader.line_num}: not a table ({error}): an apostrophe at the start of a cell is unpaired, or the "
            "file is cut; fetch or copy it again"
        ) from None
    return rows


def _group(rows: list[tuple[str, ...]], path: Path, builder: Builder) -> None:
    if not rows or rows[0][2] != "INITIAL":
        raise DataError(f"{path}:2: message_type must be INITIAL in the first row, which holds the cards")
    group = rows[0][0]
    _, mark, cells = rows[0][4].rpartition("&&")
    cards = _cards(cells)
    right = {card for card in cards if card.upper() in _VOWELS or (card.isdigit() and int(card) % 2)}
    if not mark or len(right) != 2:
        raise DataError(f"{path}:2: original_text must end in && and four cards, got {show(rows[0][4])}")
    builder.dialogue(group, f"{path}:2", cards=cards, correct=tuple(card for card in cards if card in right))
    first = _state(rows[0][12], f"{path}:2")
    submitted: dict[str, Cards] = {}
    performance: list[float] = []
    last_message = math.nan
    cell, state = "", first
    name = str(path)
    for number, row in enumerate(rows, 2):
        place = f"{name}:{number}"
        of, key, what, origin, text, clean, kind, target, more, level, change, solution, tracked = row
        if of != group:
            raise DataError(f"{place}: group_id {of!r} differs from {group!r}: one file holds one group")
        if what not in _KINDS:
            raise DataError(f"{place}: message_type has the unknown value {show(what)}: use one of {', '.join(_KINDS)}")
        if tracked != cell:
            cell, state = tracked, _state(tracked, place)
        performance.append(_number(level, "team_performance", place))
        named = _cards(text if what == "SUBMIT" else solution)
        if what == "SUBMIT":
            submitted[origin] = named
        elif what == "MESSAGE":
            last_message = performance[-1]
        builder.utterance(
            f"{group}:-1" if key == "-1" else key,
            origin,
            text,
            place,
            kind=_KINDS[what],
            clean_text=clean,
            team_performance=performance[-1],
            performance_change=_number(change, "performance_change", place),
            solution=named,
            state=dict(state),
        )
        if what == "MESSAGE":
            _labels(kind, target, more, place, builder)
    for speaker, own in first.items():
        builder.speaker(speaker, initial=own, submitted=submitted.get(speaker))
    _outcomes(performance, last_message, first, submitted, right, builder)


def _labels(kind: str, target: str, more: str, place: str, builder: Builder) -> None:
    if kind == "0":
        builder.dropped['messages have the annotation type "0": nobody annotated them, they carry no label'] += 1
        return
    builder.label("type", kind, f"{place}: annotation_type")
    if target == "None":
        builder.dropped['annotation target is written "None" instead of "0"; both are the label None'] += 1
    builder.label("target", "None" if target == "0" else target, f"{place}: annotation_target")
    for label in builder.split_labels(more) if more != "0" else ():
        builder.label("additional", label, f"{place}: annotation_additional")


def _outcomes(
    performance: list[float],
    last_message: float,
    first: dict[str, Cards],
    submitted: dict[str, Cards],
    right: set[str],
    builder: Builder,
) -> None:
    begun = [float(set(own) == right) for own in first.values()]
    ended = {speaker: float(set(own) == right) for speaker, own in submitted.items()}
    exact_initial = sum(begun) / len(begun)
    exact_last = sum(ended.values()) / len(ended) if ended else math.nan
    for name, value in (
        ("tp_initial", performance[0]),
        ("tp_final", performance[-1]),
        ("tp_last_msg", last_message),
        ("tp_max", max(performance)),
        ("gain", performance[-1] - performance[0]),
        ("exact_initial", exact_initial),
        ("exact_last_submit", exact_last),
        ("gain_exact", exact_last - exact_initial),
    ):
        builder.outcome(name, value)
    for speaker, value in ended.items():
        builder.outcome("correct", value, speaker=speaker)


def _cards(cell: str) -> Cards:
    return tuple(cell.split(",")) if cell else ()


def _number(cell: str, field: str, place: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{place}: {field} must be a number, got {show(cell)}")
    return value


def _state(cell: str, place: str) -> dict[str, Cards]:
    try:
        value: Any = json.loads(cell)
        if isinstance(value, dict) and value:
            return {speaker: tuple(cards) for speaker, cards in value.items()}
    except (ValueError, TypeError):
        pass
    raise DataError(f"{place}: sol_tracker_all must be a JSON object of lists of cards, got {show(cell)}")
