"""Corpora of one's own: a ConvoKit folder, or a table with named columns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.checks import require_bool, require_choice, show, unique_names
from anima.corpora.build import Builder, as_id, require_fields
from anima.corpora.files import Files
from anima.errors import DataError, InputError
from anima.jsonl import Line, loads, require_path

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    from anima.corpora.base import Corpus

Ids = Literal["unique", "composite"]
_CORE: Final = frozenset(
    {"utterance_id", "dialogue_id", "turn", "speaker", "text", "reply_to", "kind", "status", "annotated"}
)


def is_convokit(folder: Path) -> bool:
    """Return whether a folder looks like a ConvoKit corpus."""
    return (folder / "utterances.jsonl").is_file()


def from_convokit(
    folder: str | os.PathLike[str],
    *,
    labels: Mapping[str, str] | None = None,
    ids: Ids = "unique",
    name: str | None = None,
) -> Corpus:
    """Load a corpus in the format of ConvoKit (``utterances.jsonl``, and ``conversations.json`` where there).

    Parameters
    ----------
    folder
        The unzipped corpus.
    labels
        Key of the utterances' ``meta`` that holds the labels, by scheme; a value may be a string or a list of strings.
    ids
        ``"unique"``: an utterance id may occur once, as ConvoKit means it. ``"composite"``: once per conversation; ids
        become ``"{conversation}:{id}"``.
    name
        Name of the corpus; by default that of the folder.

    Notes
    -----
    Utterances keep the order of the file inside their conversation. Metadata become columns; a key that is named like
    one of anima's columns, or like one so prefixed, is prefixed with ``meta_``.
    """
    require_choice(ids, "ids", ("unique", "composite"))
    schemes = _schemes(labels)
    root = require_path(folder, "folder")
    files = Files(root)
    path = root / "utterances.jsonl"
    builder = Builder(files, dict.fromkeys(schemes))
    conversations: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for place, record in _json_lines(files, path):
        # "root" and "user" are the names of ConvoKit's first format.
        key = record.get("conversation_id", record.get("root"))
        key = as_id(key, "conversation_id", place)
        require_fields(record, ("id", "text"), place)
        conversations.setdefault(key, []).append((place, record))
    told = root / "conversations.json"
    facts = require_fields(files.json(told), (), str(told)) if told.is_file() else {}
    for key, rows in conversations.items():
        about = require_fields(facts.get(key) or {}, (), f"{told}: {key}")
        about = require_fields(about.get("meta", about) or {}, (), f"{told}: {key}, meta")
        own = {_column(name, {"dialogue_id", "split", "n_utterances"}): value for name, value in about.items()}
        builder.dialogue(key, rows[0][0], split=str(about.get("split", "")), **own)
        for place, record in rows:
            mark = f"{key}:" if ids == "composite" else ""
            meta = require_fields(record.get("meta") or {}, (), f"{place}: meta")
            reply = record.get("reply_to", record.get("reply-to"))
            builder.utterance(
                mark + as_id(record["id"], "id", place),
                _speaker(record, place),
                "" if record["text"] is None else record["text"],
                place,
                reply_to="" if reply is None else mark + as_id(reply, "reply_to", place),
                **{_column(name, _CORE): value for name, value in meta.items() if name not in schemes.values()},
            )
            for scheme, field in schemes.items():
                for label in _values(meta.get(field), f"{place}: {field}"):
                    builder.label(scheme, label, place)
    if schemes and not builder.has_labels:
        raise InputError(
            f"labels: no utterance of {path} has any of the meta keys {', '.join(map(repr, schemes.values()))}"
        )
    return builder.build(name or root.name, title=name or root.name)


def from_table(
    path: str | os.PathLike[str],
    *,
    text: str = "text",
    dialogue_id: str | None = None,
    utterance_id: str | None = None,
    speaker: str | None = None,
    reply_to: str | None = None,
    split: str | None = None,
    labels: Mapping[str, str] | None = None,
    label_separator: str | None = None,
    all_annotated: bool = False,
    delimiter: str | None = None,
    name: str | None = None,
) -> Corpus:
    """Load a CSV, TSV or JSONL file with a header (or fields) of your own naming, one utterance a row.

    Every cell stays text: ids keep their zeros, and "NA" and "None" are words.

    Parameters
    ----------
    path
        The file; ``.jsonl`` and ``.ndjson`` are read as JSON lines, all else as a delimited table.
    text, dialogue_id, utterance_id, speaker, reply_to, split
        Names of the columns. Without ``dialogue_id`` each row is its own dialogue; without ``utterance_id`` ids are
        ``"{dialogue}:{turn}"``; without ``reply_to`` each row answers the row before it in its dialogue.
    labels
        Column of the labels by scheme; an empty cell is none.
    label_separator
        What separates several labels in one cell, e.g. ``","``; None: a cell is one label.
    all_annotated
        Whether every row was seen by an annotator, so that a row without a label is an example of none. By default such a
        row counts as not annotated, and :meth:`Corpus.labelled` leaves it out.
    delimiter
        Of a table; by default a tab for ``.tsv`` and a comma otherwise.
    name
        Name of the corpus; by default that of the file.

    Raises
    ------
    DataError
        If columns are missing, a row has too many or too few cells, or ids are not unique; with file and line.
    """
    place_of = require_path(path)
    files = Files(place_of.parent)
    schemes = _schemes(labels)
    if label_separator is not None and (not isinstance(label_separator, str) or not label_separator):
        raise InputError(
            f"label_separator must be a str that is not empty, got {show(label_separator)}: leave it out where a cell is one label"
        )
    require_bool(all_annotated, "all_annotated")
    columns = {"dialogue_id": dialogue_id, "utterance_id": utterance_id, "speaker": speaker, "reply_to": reply_to}
    for argument, column in {"text": text, **columns, "split": split}.items():
        if not isinstance(column, str) and (column is not None or argument == "text"):
            raise InputError(f"{argument} must be the name of a column, got {show(column)}")
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"'):
        raise InputError(f"delimiter must be one character that ends no line, got {show(delimiter)}")
    builder = Builder(files, dict.fromkeys(schemes))
    named = [text, dialogue_id, utterance_id, speaker, reply_to, split, *schemes.values()]
    wanted = [column for column in named if column is not None]
    if place_of.suffix.lower() in {".jsonl", ".ndjson"}:
        rows: Iterator[tuple[str, dict[str, Any]]] = _json_lines(files, place_of)
    else:
        rows = _csv_rows(files, place_of, delimiter or ("\t" if place_of.suffix.lower() == ".tsv" else ","), wanted)
    dialogues: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for number, (place, row) in enumerate(rows):
        require_fields(row, wanted, place)
        key = str(number) if dialogue_id is None else as_id(row[dialogue_id], dialogue_id, place)
        dialogues.setdefault(key, []).append((place, row))
    if not dialogues:
        raise DataError(f"{place_of}: holds no row: give a file with one utterance a row")
    for key, members in dialogues.items():
        first_place, first = members[0]
        for place, row in members:
            if split is not None and row[split] != first[split]:
                raise DataError(
                    f"{place}: {split} is {show(row[split])}, but {show(first[split])} in the same dialogue ({first_place}): "
                    "a dialogue lies in one split, mend one of them"
                )
        builder.dialogue(key, first_place, split="" if split is None else str(first[split]))
        for turn, (place, row) in enumerate(members):
            reply = None if reply_to is None else row[reply_to]
            builder.utterance(
                f"{key}:{turn}" if utterance_id is None else as_id(row[utterance_id], utterance_id, place),
                "" if speaker is None else as_id(row[speaker], speaker, place),
                row[text],
                place,
                reply_to=None if reply_to is None else "" if reply is None else as_id(reply, reply_to, place),
                annotated=all_annotated,
                **{_column(field, _CORE): value for field, value in row.items() if field not in wanted},
            )
            for scheme, field in schemes.items():
                for cell in _values(row[field], f"{place}: {field}"):
                    for label in [cell] if label_separator is None else builder.split_labels(cell, label_separator):
                        builder.label(scheme, label, place)
    return builder.build(name or place_of.stem, title=name or place_of.stem)


def _json_lines(files: Files, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(files.text(path).split("\n"), 1):
        if line.strip():
            where = Line(path, number, line.encode())
            value = loads(where)
            try:
                json.loads(line, object_pairs_hook=unique_names)
            except ValueError as error:
                raise DataError(f"{where.place}: {error}") from None
            yield where.place, require_fields(value, (), where.place)


def _csv_rows(files: Files, path: Path, delimiter: str, wanted: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    text = files.text(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    usual = csv.field_size_limit()
    csv.field_size_limit(max(usual, len(text)))  # a long text is no mistake
    try:
        header = next(reader, [])
        if len(set(header)) != len(header):
            twice = next(field for field in header if header.count(field) > 1)
            raise DataError(f"{path}:1: more than one column {twice!r}: rename all but one")
        require_fields(dict.fromkeys(header), wanted, f"{path}:1")
        for cells in reader:
            if cells and len(cells) != len(header):
                raise DataError(
                    f"{path}:{reader.line_num}: {len(cells)} cells where the header has {len(header)}: "
                    f"quote cells that hold {delimiter!r}, or name the right delimiter"
                )
            if cells:
                yield f"{path}:{reader.line_num}", dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not a table ({error}); a quotation mark may be unpaired") from None
    finally:
        csv.field_size_limit(usual)


def _schemes(labels: Mapping[str, str] | None) -> dict[str, str]:
    if labels is not None and not (
        isinstance(labels, Mapping) and all(isinstance(name, str) for pair in labels.items() for name in pair)
    ):
        raise InputError(f"labels must name a field by scheme, e.g. {{'act': 'dialogue_act'}}, got {show(labels)}")
    return dict(labels or {})


def _speaker(record: dict[str, Any], place: str) -> str:
    value = record.get("speaker", record.get("user", ""))
    value = value.get("id", "") if isinstance(value, dict) else value
    return "" if value is None else as_id(value, "speaker", place)


def _values(value: object, place: str) -> list[str]:
    values: list[object] = value if isinstance(value, list) else [] if value in (None, "") else [value]
    found = [item for item in values if isinstance(item, str)]
    if len(found) < len(values):
        raise DataError(f"{place} must hold a string or a list of strings, got {show(value)}")
    return found


def _column(name: str, taken: set[str] | frozenset[str]) -> str:
    stem = name
    while stem.startswith("meta_"):
        stem = stem.removeprefix("meta_")
    return f"meta_{name}" if stem in taken else name
