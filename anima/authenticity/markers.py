"""Formal markers: wordings and layout that manage the reader, found by pattern.

Our fourteen markers are read from ``corpora/markers.toml``; the reference service's file is read by
:func:`markers_from_json`. Matching is on normalised text (NFC, straight quotes, no zero-width characters), spans refer
to the original.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.authenticity.files import Fields, is_number, parse_json, read_utf8
from anima.authenticity.matching import Plan, View, Wording
from anima.authenticity.re2 import translate
from anima.authenticity.suppression import enclosing, negation_of, reported
from anima.checks import require_text, show
from anima.errors import DataError
from anima.settings import data_path
from anima.text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Position = Literal["opening", "middle", "closing"]
Severity = Literal["high", "medium", "low"]

#: Of a marker at the opening or closing, and from which weight its severity is high or medium; see :func:`severity`.
EDGE_FACTOR: Final = 1.15
HIGH: Final = 0.75
MEDIUM: Final = 0.6
_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{\{(\w+)\}\}| \??", re.DOTALL)
_LINE_BREAK = re.compile(r"\n[ \t]*")
_LIST_ASKED = re.compile(
    r"\b(?:bullet(?:ed|s)?(?: ?points?| list)?|(?:a|the|as|in) (?:\w+ )?list|list (?:of|the|out|me)|check ?list"
    r"|viñetas?|(?:una?|la|el|en) (?:\w+ )?list(?:a|ado)|enum[eé]ra\w*|lísta\w*|por puntos)\b",
    re.IGNORECASE,
)
_LIST_REFUSED = re.compile(r"\b(?:no|without|avoid|skip|not|sin|nada de|ni)\b[^.?!]{0,20}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marker:
    """A formal marker.

    Attributes
    ----------
    id, pattern, weight, note
        Name, the pattern it stands for, weight in [0, 1], and what it does to the reader.
    wordings
        Its patterns, Spanish and English.
    late
        Whether it counts only towards the end of the reply.
    negatable
        Whether a negation before the wording undoes it. Not where the wording holds its own negation or is layout.
    layout
        Whether it is layout and not wording: then it means nothing inside a quotation or code.
    unasked
        What in the question excuses it: a request for a ``"list"``, or the same ``"phrase"``.
    """

    id: str
    pattern: str
    weight: float
    note: str
    wordings: tuple[Wording, ...]
    late: bool = False
    negatable: bool = True
    layout: bool = False
    unasked: Literal["", "list", "phrase"] = ""

    def __hash__(self) -> int:  # the generated one would hash every pattern, for each reply
        return hash((self.id, self.pattern, self.weight))


@dataclass(frozen=True, slots=True)
class MarkerHit:
    """One place where a marker was found.

    Attributes
    ----------
    marker_id, pattern, weight, note
        See :class:`Marker`.
    phrase, start, end
        Verbatim slice of the reply and its character span.
    position, severity
        See :func:`position_of` and :func:`severity`.
    suppressed, reason
        Whether the wording is there but does not count, and why; otherwise why it counts.
    """

    marker_id: str
    pattern: str
    phrase: str
    start: int
    end: int
    position: Position
    weight: float
    severity: Severity
    suppressed: bool = False
    reason: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the reference service's fields, and span, suppressed and reason."""
        return {
            "pattern": self.pattern,
            "phrase": self.phrase,
            "keyword": self.phrase,
            "confidence": self.weight,
            "severity": self.severity,
            "position": self.position,
            "extra": {"source": "formal", "marker_id": self.marker_id, "note": self.note},
            "span": [self.start, self.end],
            "suppressed": self.suppressed,
            "reason": self.reason,
        }


def severity(weight: float, position: Position) -> Severity:
    """Return how grave a marker is: its weight, times 1.15 at either end of the reply; high from 0.75, medium from 0.6.

    Proved by ``tests/authenticity/test_markers_parity.py`` against outputs of the reference service.
    """
    value = weight * EDGE_FACTOR if position in ("opening", "closing") else weight
    return "high" if value >= HIGH else "medium" if value >= MEDIUM else "low"


def position_of(index: int, total: int) -> Position:
    """Return where sentence ``index`` of ``total`` stands: before the first quarter, after the third, or between.

    Proved by ``tests/authenticity/test_markers_parity.py`` against outputs of the reference service.
    """
    if total <= 1:
        return "opening"
    share = index / (total - 1)
    return "opening" if share < 0.25 else "closing" if share > 0.75 else "middle"


def _third_of(start: int, length: int) -> Position:
    """Return the third of ``length`` bytes in which ``start`` lies, as the reference service places markers."""
    third = max(1, length // 3)
    return "opening" if start < third else "closing" if start >= 2 * third else "middle"


def find_markers(
    text: str, markers: Iterable[Marker], *, re2: bool = False, question: str | None = None
) -> list[MarkerHit]:
    """Find the formal markers of a reply.

    Parameters
    ----------
    text
        The reply, any length.
    markers
        What to look for; hits come in this order, then by position.
    re2
        Do as the reference service does: raw text, thirds of bytes for the position, nothing suppressed.
    question
        What was asked, if known: a list that it asks for and a technical term that it uses are no markers. Without it,
        a reply that is a list from its first line is taken to have been asked for one.

    Returns
    -------
    list of MarkerHit
        Suppressed ones included. Hits of one marker do not overlap.

    Notes
    -----
    Work grows linearly with the length: every pattern is bounded (``tests/authenticity/test_markers.py``).
    """
    require_text(text)
    chosen = tuple(markers)
    if re2:
        return list(_find_re2(text, chosen))
    if question is not None:
        require_text(question, "question")
    normal = normalize(text)
    view = View(normal.text)
    hits = []
    spans = _plan(chosen).spans(view)
    _settle(spans, chosen, view)
    for order, found in sorted(spans.items()):
        marker = chosen[order]
        for start, end in found:
            reason = _suppressed(view, marker, start, end)
            if reason is None or (not reason and not _counts(view, marker, (start, end), question)):
                continue
            place = position_of(view.sentence_of(start), len(view.sentences))
            span = normal.span(start, end)
            hits.append(_hit(marker, text[slice(*span)], span, place, reason))
    return hits


@lru_cache(maxsize=16)
def _plan(markers: tuple[Marker, ...]) -> Plan:
    return Plan(marker.wordings for marker in markers)


def _settle(spans: dict[int, list[tuple[int, int]]], markers: Sequence[Marker], view: View) -> None:
    """Give a phrase that two markers of closing and of humility claim to the one that its place fits."""
    order = {markers[i].id: i for i in spans}
    soft, humble = order.get("SOFT_CLOSURE"), order.get("PERFORMED_HUMILITY_LEX")
    if soft is None or humble is None:
        return
    for start, end in list(spans[soft]):
        shared = [span for span in spans[humble] if span[0] < end and start < span[1]]
        if not shared:
            continue
        if _is_late(view, start) or enclosing(view.quotes, start):
            spans[humble] = [span for span in spans[humble] if span not in shared]
        else:
            spans[soft].remove((start, end))


def _is_late(view: View, start: int) -> bool:
    """Tell whether ``start`` lies in the last two sentences or the last two fifths of a reply of several sentences."""
    index, total = view.sentence_of(start), len(view.sentences)
    return index > 0 and (index >= total - 2 or start >= 0.6 * len(view.text))


def _suppressed(view: View, marker: Marker, start: int, end: int) -> str | None:
    """Return why a hit does not count, an empty string if nothing speaks against it, or None if it is no hit at all."""
    if quote := enclosing(view.quotes, start):
        if marker.layout or (end > quote[1] and not marker.negatable):
            return None
        return "inside a quotation"
    if marker.negatable:
        if cue := negation_of(view.text, start, end):
            return f"negated by “{cue}”"
        if reported(view.text, start):
            return "reported as somebody else's words"
    return ""


def _counts(view: View, marker: Marker, span: tuple[int, int], question: str | None) -> bool:
    """Tell whether a hit counts where it stands and after what was asked."""
    if marker.late and not _is_late(view, span[0]):
        return False
    if marker.unasked == "list":
        return not _list_asked(view, span[0], question)
    return not (marker.unasked == "phrase" and question and view.lower[slice(*span)] in question.lower())


def _list_asked(view: View, start: int, question: str | None) -> bool:
    """Tell whether a list was asked for; without the question, whether the reply is one from its first line."""
    if question is None:
        return not view.text[:start].strip()
    return any(not _LIST_REFUSED.search(question[: match.start()]) for match in _LIST_ASKED.finditer(question))


def _find_re2(text: str, markers: Sequence[Marker]) -> Iterator[MarkerHit]:
    length = len(text.encode())
    for marker in markers:
        for match in (match for item in marker.wordings for match in item.regex.finditer(text)):
            place = _third_of(len(text[: match.start()].encode()), length)
            yield _hit(marker, match[0], match.span(), place)


def _hit(marker: Marker, phrase: str, span: tuple[int, int], place: Position, suppressed: str = "") -> MarkerHit:
    return MarkerHit(
        marker_id=marker.id,
        pattern=marker.pattern,
        phrase=phrase,
        start=span[0],
        end=span[1],
        position=place,
        weight=marker.weight,
        severity=severity(marker.weight, place),
        suppressed=bool(suppressed),
        reason=suppressed or marker.note,
        note=marker.note,
    )


@cache
def load_markers() -> tuple[Marker, ...]:
    """Return the fourteen markers written for this project, each with its Spanish and English wordings."""
    with data_path("markers.toml").open("rb") as file:
        table = tomllib.load(file)
    fragments: dict[str, str] = {}
    for name, value in table["fragments"].items():
        fragments[name] = _expand(value, fragments)
    return tuple(_marker_from_toml(entry, fragments) for entry in table["marker"])


def _marker_from_toml(entry: dict[str, Any], fragments: dict[str, str]) -> Marker:
    wordings = [
        Wording(
            regex=_compiled(_expand(item["re"], fragments), f"{entry['id']}, wordings[{i}]", cased=item.get("cased")),
            heads=frozenset(item.get("heads", "").split()),
            cues=frozenset(item.get("cues", "").split()),
            **{name: item[name] for name in ("chars", "at", "emoji", "cased") if name in item},
        )
        for i, item in enumerate(entry["wordings"])
    ]
    flags = {name: entry[name] for name in ("late", "negatable", "layout", "unasked") if name in entry}
    return Marker(entry["id"], entry["pattern"], entry["weight"], entry["note"], tuple(wordings), **flags)


def _compiled(pattern: str, where: str, *, cased: bool | None) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE | re.IGNORECASE if cased else re.MULTILINE)
    except re.error as error:
        raise DataError(f"markers.toml: {where}: {error}; got {show(pattern, 200)}") from None


def _expand(pattern: str, fragments: dict[str, str]) -> str:
    """Return a pattern of the data file as one for ``re``; see the head of ``corpora/markers.toml``."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return f"(?:{fragments[match[1]]})"
        return {" ": r"\s{1,3}", " ?": r"\s{0,3}"}.get(match[0], match[0])

    return _PIECE.sub(replace, _LINE_BREAK.sub("", pattern))


def markers_from_json(path: str | Path) -> tuple[Marker, ...]:
    """Read the reference service's ``formal_markers.json``.

    Parameters
    ----------
    path
        An object whose ``markers`` is a list of ``{id, pattern, regex, weight, note}``; the regular expressions are
        RE2's.

    Returns
    -------
    tuple of Marker
        For ``find_markers(..., re2=True)``.

    Raises
    ------
    DataError
        Names the file, the line or entry, and the field. The service itself drops an entry whose regex is bad, with a
        warning.
    """
    path = Path(path)
    raw = parse_json(read_utf8(path), path)
    entries = raw.get("markers") if isinstance(raw, dict) else None
    if not isinstance(entries, list):
        raise DataError(
            f"{path}: field 'markers' must be a list of markers, got {show(entries if isinstance(raw, dict) else raw)}"
        )
    return tuple(_marker_from_json(entry, f"{path}: markers[{i}]") for i, entry in enumerate(entries))


def _marker_from_json(entry: Any, where: str) -> Marker:
    if not isinstance(entry, dict):
        raise DataError(f"{where} must be an object, got {show(entry)}")
    fields = Fields(entry, where)
    weight = entry.get("weight")
    if not is_number(weight) or not 0 <= weight <= 1:
        raise fields.bad("weight", "a number in [0, 1]")
    name, kind, pattern = (fields.text(key, blank=False) for key in ("id", "pattern", "regex"))
    try:
        regex = re.compile(translate(pattern))
    except (ValueError, OverflowError, re.error) as error:
        raise DataError(f"{where}: field 'regex' cannot be used: {error}; got {show(pattern)}") from None
    return Marker(name, kind, float(weight), fields.text("note"), (Wording(regex),))
