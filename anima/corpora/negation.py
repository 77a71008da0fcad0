"""Corpora of negation: CD-SCO (English, CoNLL columns), NUBes (Spanish, brat), and the written sentences (JSON lines).

Each is read into the same records of cue and scope spans.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anima.checks import show
from anima.corpora.build import as_id, require_fields
from anima.errors import DataError
from anima.jsonl import Line, loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from anima.corpora.build import Builder
    from anima.corpora.files import Files

Span = tuple[int, int]
_GLUED: Final = re.compile(r"[.,;:!?’”)\]…]+|n['’]t|['’](?:s|ll|re|ve|m|d)")
_HAS_WORD: Final = re.compile(r"\w")
_DIGITS: Final = re.compile(r"\d+")
_CD_SCO: Final = re.compile(r"SEM-2012-SharedTask-CD-SCO-(training|dev|test)\b.*\.txt")
_RELATION: Final = re.compile(r"(?:Scope|DiscScope) Arg1:(T\d+) Arg2:(T\d+)")
_NEGATION_MARKERS: Final = ("NegSynMarker", "NegLexMarker", "NegMorMarker")
_LANGUAGES: Final = ("en", "es")
_FIELDS: Final = ("id", "lang", "phenomenon", "text", "negations")


class Negation(NamedTuple):
    """One negation: what kind of cue, the character spans of the cue, and those of the scope."""

    kind: str
    cue: tuple[Span, ...]
    scope: tuple[Span, ...]


class Negated(NamedTuple):
    """One sentence and its negations; ``tokens`` are spans where the corpus brings its own, else None."""

    place: str
    document: str
    sentence: str
    text: str
    tokens: tuple[Span, ...] | None
    negations: tuple[Negation, ...]


def cd_sco_files(folder: Path) -> list[tuple[str, Path]]:
    """Return split and path of the files of CD-SCO in a folder: training, development and, where there, test."""
    found = [(match[1], path) for path in folder.iterdir() if (match := _CD_SCO.fullmatch(path.name))]
    return sorted(found, key=lambda pair: (("training", "dev", "test").index(pair[0]), pair[1].name))


def read_cd_sco(files: Files, builder: Builder) -> None:
    """Read CD-SCO; a dialogue is a chapter. Cue labels are "negation" and "affix" (a part of a word, as in un|happy)."""
    for split, path in cd_sco_files(files.folder):
        _add(cd_sco(files, path), builder, split=split, lang="en")


def read_nubes(files: Files, builder: Builder) -> None:
    """Read NUBes; a dialogue is a file of one specialty and section, a split a sample, a sentence a line.

    Cue labels tell syntactic (``NegSynMarker``), lexical and morphological negation apart; uncertainty is left out.
    """
    for path in sorted(files.folder.rglob("*.ann")):
        _add(nubes(files, path, builder), builder, split=path.parent.name, lang="es")


def read_written(files: Files, builder: Builder, lang: str | None = None) -> None:
    """Read the written sentences, each its own dialogue; the column ``phenomenon`` says what each is about."""
    path = files.folder / "sentences.jsonl"
    for number, line in enumerate(files.text(path).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        record = require_fields(loads(Line(path, number, line.encode())), _FIELDS, place)
        if record["lang"] not in _LANGUAGES:
            known = ", ".join(map(repr, _LANGUAGES))
            raise DataError(f"{place}: lang must be one of {known}, got {show(record['lang'])}")
        if lang in (None, record["lang"]):
            key = as_id(record["id"], "id", place)
            for name, shape in (("text", str), ("negations", list)):
                if not isinstance(record[name], shape):
                    what = "a string" if shape is str else "a list"
                    raise DataError(f"{place}: {name} must be {what}, got {show(record[name])}")
            negated = Negated(place, key, "", record["text"], None, tuple(_written(record, place)))
            _add([negated], builder, split="", lang=record["lang"], phenomenon=record["phenomenon"])


def _written(record: dict[str, Any], place: str) -> Iterator[Negation]:
    length = len(record["text"])
    for number, item in enumerate(record["negations"]):
        spot = f"{place}, negation {number}"
        spans = []
        for name in ("cue", "scope"):
            part = require_fields(item, ("cue", "scope"), spot)[name]
            if not isinstance(part, list) or not all(_is_span(span, length) for span in part):
                raise DataError(f"{spot}: {name} must be a list of [start, end] inside the text, got {show(part)}")
            spans.append(tuple((int(low), int(high)) for low, high in part))
        if not spans[0]:
            raise DataError(f"{spot}: cue is empty: a negation needs one")
        yield Negation("negation", *spans)


def _is_span(span: Any, length: int) -> bool:
    whole = isinstance(span, list) and len(span) == 2 and all(type(end) is int for end in span)
    return whole and 0 <= span[0] < span[1] <= length


def _add(sentences: Iterable[Negated], builder: Builder, *, split: str, **columns: Any) -> None:
    document = None
    for item in sentences:
        if item.document != document:
            document = item.document
            builder.dialogue(document, item.place, split=split, **columns)
        key = f"{document}:{item.sentence}" if item.sentence else document
        more: dict[str, Any] = {"kind": "sentence", "reply_to": "", "annotated": True, "tokens": item.tokens}
        builder.utterance(key, "", item.text, item.place, **more)
        for group, negation in enumerate(item.negations):
            for scheme, spans in (("cue", negation.cue), ("scope", negation.scope)):
                for start, end in spans:
                    builder.label(scheme, negation.kind, item.place, start=start, end=end, group=group)


def cd_sco(files: Files, path: Path) -> Iterator[Negated]:
    """Yield the sentences of one file in the format of the *SEM 2012 shared task; the text is put together of tokens.

    Raises
    ------
    DataError
        If a line has too few columns, or a cue or scope is no part of its token.
    """
    line = 1
    for block in files.text(path).strip("\n").split("\n\n"):
        rows = [row.split("\t") for row in block.split("\n")]
        width = len(rows[0])
        for at, row in enumerate(rows):
            if len(row) < 8 or len(row) != width:
                raise DataError(
                    f"{path}:{line + at}: {len(row)} columns where the sentence has {width} (at least 8): "
                    "the line is cut or its tabs are lost, fetch or copy the file again"
                )
        text, tokens = "", []
        for row in rows:
            text += "" if not text or _GLUED.fullmatch(row[3]) else " "
            tokens.append((len(text), len(text) + len(row[3])))
            text += row[3]
        negations = []
        for column in range(7, width - 2, 3) if rows[0][7:] != ["***"] else ():
            cue, scope = (_spans(rows, tokens, part, f"{path}:", line) for part in (column, column + 1))
            words = {token for token in tokens if any(token[0] < high and low < token[1] for low, high in cue)}
            whole = {edge for token in words for edge in token}
            kind = "negation" if all(low in whole and high in whole for low, high in cue) else "affix"
            negations.append(Negation(kind, cue, scope))
        yield Negated(f"{path}:{line}", rows[0][0], rows[0][1], text, tuple(tokens), tuple(negations))
        line += len(rows) + 1


def _spans(rows: list[list[str]], tokens: list[Span], column: int, path: str, line: int) -> tuple[Span, ...]:
    """Return the spans of a column, neighbours joined; a cell holds the token, a part of it, or "_"."""
    spans: list[Span] = []
    joined = -1  # index of the token that the last span reaches the end of
    for at, row in enumerate(rows):
        if (cell := row[column]) == "_":
            continue
        # The part is a prefix (un-) or else the last such part (-less).
        start = 0 if row[3].startswith(cell) else row[3].rfind(cell)
        if start < 0:
            where = f"{path}{line + at}: column {column + 1}"
            raise DataError(f"{where} holds {show(cell)}, no part of the token {row[3]!r}")
        low, high = tokens[at][0] + start, tokens[at][0] + start + len(cell)
        if spans and joined == at - 1 and not start:
            low = spans.pop()[0]
        spans.append((low, high))
        joined = at if high == tokens[at][1] else -2
    return tuple(spans)


def nubes(files: Files, path: Path, builder: Builder) -> Iterator[Negated]:
    """Yield the lines of one brat file (``.ann`` beside ``.txt``) that hold a word, with their negations.

    Raises
    ------
    DataError
        If a line of the annotations is none, or points outside of the text.
    """
    source = path.with_suffix(".txt")
    text = files.text(source)
    entities, scopes = _brat(files.text(path), path, len(text))
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found: defaultdict[int, list[Negation]] = defaultdict(list)
    for key, (kind, low, high) in sorted(entities.items(), key=lambda pair: pair[1][1:]):
        if kind not in _NEGATION_MARKERS:
            if kind.startswith("Uncert"):
                builder.dropped["cues of uncertainty are left out: they negate nothing"] += 1
            continue
        at = bisect_right(starts, low) - 1
        start, end = starts[at], starts[at] + len(lines[at])
        parts = [
            (max(entities[scope][1], start) - start, min(entities[scope][2], end) - start)
            for scope in scopes[key]
            if scope in entities
        ]
        kept = tuple(sorted(part for part in parts if part[0] < part[1]))
        if len(kept) < len(scopes[key]):
            builder.dropped["scopes stand on another line than their cue"] += len(scopes[key]) - len(kept)
        found[at].append(Negation(kind, ((low - start, min(high, end) - start),), kept))
    name, document = str(source), path.stem
    for at, line in enumerate(lines):
        if _HAS_WORD.search(line):
            yield Negated(f"{name}:{at + 1}", document, str(at), line, None, tuple(found.get(at, ())))


def _brat(text: str, path: Path, length: int) -> tuple[dict[str, tuple[str, int, int]], defaultdict[str, list[str]]]:
    """Return the entities (kind, first and last character) and the scopes of each cue of a brat file."""
    entities: dict[str, tuple[str, int, int]] = {}
    scopes: defaultdict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(text.split("\n"), 1):
        part = line.split("\t")
        try:
            if part[0].startswith("T"):
                kind, where = part[1].split(" ", 1)
                places = _DIGITS.findall(where)
                entities[part[0]] = (kind, int(places[0]), int(places[-1]))
                if not entities[part[0]][1] < entities[part[0]][2] <= length:
                    raise DataError(f"{path}:{number}: the span {where} is outside of the text, which may be cut")
            elif part[0].startswith("R") and (match := _RELATION.match(part[1])):
                scopes[match[1]].append(match[2])
        except (IndexError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}:{number}: not a brat annotation: {show(line)}") from None
    return entities, scopes
