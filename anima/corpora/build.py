"""The one road from rows to a corpus: every loader hands its rows to a :class:`Builder`, which checks them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from anima.checks import show
from anima.corpora.base import FRAMES, Corpus, LoadReport, Provenance, counts
from anima.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from anima.corpora.files import Files

Kind = Literal["message", "button", "submit", "initial", "sentence"]


class _Table:
    """Columns that grow by rows; rows may bring columns of their own, which are None elsewhere."""

    def __init__(self, *names: str) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.n = 0

    def add(self, row: Mapping[str, Any]) -> None:
        columns = self.columns
        for name, value in row.items():
            if (column := columns.get(name)) is None:
                column = columns[name] = [None] * self.n
            column.append(value)
        self.n += 1
        if len(row) < len(columns):
            for column in columns.values():
                if len(column) < self.n:
                    column.append(None)

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.columns)


class Builder:
    """Collects the rows of a corpus and makes the frames.

    Parameters
    ----------
    files
        Where the rows come from, for hashes and counts.
    schemes
        The labels each scheme allows; None inside lets any label pass.
    """

    def __init__(self, files: Files, schemes: Mapping[str, Sequence[str] | None]) -> None:
        self.files = files
        self.stray_commas = 0
        #: What was left out or mended, with its number.
        self.dropped: Counter[str] = Counter()
        self._schemes = {name: None if labels is None else tuple(labels) for name, labels in schemes.items()}
        self._dialogues = _Table("dialogue_id", "split", "n_utterances")
        self._utterances = _Table(
            "utterance_id", "dialogue_id", "turn", "speaker", "text", "reply_to", "kind", "status", "annotated"
        )
        self._labels = _Table("utterance_id", "dialogue_id", "scheme", "label")
        self._outcomes = _Table("dialogue_id", "speaker", "name", "value")
        self._speakers = _Table("dialogue_id", "speaker")
        self._places: dict[str, str] = {}
        self._dialogue_places: dict[str, str] = {}
        self._dialogue = self._last = ""
        self._turn = 0
        self._told_replies = False  # else each answers the one before it, and nothing can be wrong

    # Positional only, so that a column of the user's may have any name.
    def dialogue(self, dialogue_id: str, place: str, /, *, split: str = "", **columns: Any) -> None:
        """Begin a dialogue; ``place`` (file and record) is for messages."""
        _check_id(dialogue_id, "dialogue_id", place, self._dialogue_places)
        self._dialogues.add({"dialogue_id": dialogue_id, "split": split, "n_utterances": 0, **columns})
        self._dialogue, self._turn, self._last = dialogue_id, 0, ""

    def utterance(
        self,
        utterance_id: str,
        speaker: str,
        text: str,
        place: str,
        /,
        *,
        kind: Kind = "message",
        reply_to: str | None = None,
        annotated: bool = False,
        **columns: Any,
    ) -> None:
        """Add an utterance to the dialogue begun last; ``reply_to`` None answers the utterance before it."""
        _check_id(utterance_id, "utterance_id", place, self._places)
        if not isinstance(text, str) or not isinstance(speaker, str):
            name, value = ("speaker", speaker) if isinstance(text, str) else ("text", text)
            raise DataError(f"{place}: {name} must be a string, got {show(value)}")
        self._told_replies |= bool(reply_to)
        self._utterances.add({
            "utterance_id": utterance_id,
            "dialogue_id": self._dialogue,
            "turn": self._turn,
            "speaker": speaker,
            "text": text,
            "reply_to": self._last if reply_to is None else reply_to,
            "kind": kind,
            "status": "ok" if text and not text.isspace() else "empty",
            "annotated": annotated,
            **columns,
        })  # fmt: skip
        self._turn += 1
        self._dialogues.columns["n_utterances"][-1] = self._turn
        self._last = utterance_id

    def label(self, scheme: str, label: str, place: str, /, **span: Any) -> None:
        """Add a label to the utterance added last."""
        allowed = self._schemes[scheme]
        if allowed is not None and label not in allowed:
            raise DataError(f"{place}: {scheme} has the unknown label {show(label)}: use one of {', '.join(allowed)}")
        self._utterances.columns["annotated"][-1] = True
        self._labels.add(
            {"utterance_id": self._last, "dialogue_id": self._dialogue, "scheme": scheme, "label": label, **span}
        )

    @property
    def has_labels(self) -> bool:
        """Whether any label was added."""
        return self._labels.n > 0

    def split_labels(self, cell: str, separator: str = ",") -> list[str]:
        """Return the labels of a cell that holds several, each once; count stray separators."""
        parts = [part.strip() for part in cell.split(separator)]
        self.stray_commas += "" in parts
        return list(dict.fromkeys(part for part in parts if part))

    def outcome(self, name: str, value: float, *, speaker: str = "") -> None:
        """Add an outcome of the dialogue begun last; ``speaker`` "" for the whole of it."""
        self._outcomes.add({"dialogue_id": self._dialogue, "speaker": speaker, "name": name, "value": float(value)})

    def speaker(self, speaker: str, /, **columns: Any) -> None:
        """Add what is known of a participant of the dialogue begun last."""
        self._speakers.add({"dialogue_id": self._dialogue, "speaker": speaker, **columns})

    def build(self, name: str, *, sample: bool = False, **provenance: Any) -> Corpus:
        """Return the corpus; further arguments are those of :class:`~anima.corpora.base.Provenance`.

        Raises
        ------
        DataError
            If there is nothing, or a text holds a lone surrogate.
        """
        if not self._utterances.n:
            raise DataError(f"{self.files.folder}: no utterance found: give the folder that holds the corpus' files")
        self._check_texts()
        replies = self._check_replies()
        tables = (self._dialogues, self._utterances, self._labels, self._outcomes, self._speakers)
        frames = dict(zip(FRAMES, (table.frame() for table in tables), strict=True))
        replies |= {"boms": self.files.boms, "crlf_files": self.files.crlf, "stray_commas": self.stray_commas}
        used: dict[str, set[str]] = {scheme: set() for scheme in self._schemes}
        for scheme, label in zip(self._labels.columns["scheme"], self._labels.columns["label"], strict=True):
            used[scheme].add(label)
        dropped = tuple(f"{number:,} {what}" for what, number in self.dropped.items())
        return Corpus(
            name=name,
            **frames,
            schemes={scheme: labels or tuple(sorted(used[scheme])) for scheme, labels in self._schemes.items()},
            provenance=Provenance(files=dict(sorted(self.files.hashes.items())), dropped=dropped, **provenance),
            report=LoadReport(**replies, **counts(frames["dialogues"], frames["utterances"])),
            sample=sample,
        )

    def _check_texts(self) -> None:
        texts = self._utterances.columns["text"]
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            at = next(i for i, text in enumerate(texts) if any("\ud800" <= letter <= "\udfff" for letter in text))
            place = self._places[self._utterances.columns["utterance_id"][at]]
            raise DataError(
                f"{place}: text holds half of a surrogate pair, which no file can take: cut or replace it"
            ) from None

    def _check_replies(self) -> dict[str, int]:
        """Make roots of the replies that lead nowhere, so that trees can be built; return how many of each kind."""
        count = {"self_replies": 0, "dangling_replies": 0, "cyclic_replies": 0}
        if not self._told_replies:
            return count
        ids, homes, replies = (self._utterances.columns[name] for name in ("utterance_id", "dialogue_id", "reply_to"))
        row_of = {key: row for row, key in enumerate(ids)}
        for row, reply in enumerate(replies):
            target = row_of.get(reply)
            if reply and (target is None or target == row or homes[target] != homes[row]):
                count["self_replies" if target == row else "dangling_replies"] += 1
                replies[row] = ""
        rooted: set[str] = {""}
        for start in ids:
            path: set[str] = set()
            at = start
            while at not in rooted:
                rooted.add(at)  # for this walk "seen"; true of the whole path when the walk ends
                path.add(at)
                row = row_of[at]
                if replies[row] in path:
                    count["cyclic_replies"] += 1
                    replies[row] = ""
                at = replies[row]
        return count


def _check_id(value: object, field: str, place: str, places: dict[str, str]) -> None:
    if not isinstance(value, str) or not value:
        raise DataError(f"{place}: {field} must be a non-empty string, got {show(value)}")
    if value in places:
        raise DataError(
            f"{place}: {field} {value!r} is a duplicate of {places[value]}: ids must be unique, remove or rename one"
        )
    places[value] = place


def require_fields(record: Any, names: Sequence[str], place: str) -> dict[str, Any]:
    """Return ``record`` when it is a JSON object with these fields; else name what is missing."""
    if not isinstance(record, dict):
        raise DataError(f"{place}: must be a JSON object, got {show(record)}")
    if missing := [name for name in names if name not in record]:
        raise DataError(
            f"{place}: lacks the field{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, record)) or 'none'}"
        )
    return record


def as_id(value: object, field: str, place: str) -> str:
    """Return an id as text: strings stay as they are, integers are written out, all else is refused."""
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise DataError(f"{place}: {field} must be a string or an integer, got {show(value)}: give every record an id")
