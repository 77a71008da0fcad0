"""Blind labelling without a screen: who gave which item which label, saved at once and replayed from the file."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Real
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from anima.checks import require_choice, require_columns, require_int, require_text, require_texts, show
from anima.errors import DataError, InputError
from anima.jsonl import JsonlFile, JsonlReader, Line, read_record
from anima.stats import Estimate, cohen_kappa

if TYPE_CHECKING:
    import os

    import pandas as pd

    from anima.metaeval import JudgeValidation
    from anima.stats.resampling import RngLike

Kind = Literal["label", "skip", "undo"]

RESERVED: Final = {"u": "undo", "s": "skip"}
_KEYS: Final = "123456789" + "".join(letter for letter in ascii_lowercase if letter not in RESERVED)
_FORMAT: Final = 1


class Event(NamedTuple):
    """One thing an annotator did; ``label`` is empty unless ``kind`` is ``"label"``."""

    kind: Kind
    annotator: str
    item: str
    label: str = ""


class LabellingSession:
    """One annotator's way through a set of items, each with exactly one label.

    Parameters
    ----------
    items
        Texts by id, or a frame such as ``corpus.labelled`` returns. Only ids, texts and clusters are taken from a
        frame: gold labels and scores stay outside.
    labels
        Names of the labels, in order; their keys are 1 to 9, then letters. Or names by key.
    path
        The file of JSON lines that everything is saved to. One that exists is gone on with; several annotators, also
        in several processes, may share it.
    annotator
        Who labels.
    detectors
        Labels that detectors or judges gave, by their name and by item; only used for :meth:`agreement`. Their names
        must differ from those of all who label in the file.
    id, text, cluster
        Columns of a frame of items. ``cluster`` may be missing: then intervals take items for independent.
    seed
        Shuffles the order of the items; None keeps it.

    Raises
    ------
    InputError
        If the file was made with other items or labels: labels of different sets are never mixed. If a detector has an
        annotator's name, also of one who came to the file later: labelling goes on, results wait for another name.
    DataError
        If the file is none of a labelling session, or a line contradicts those before it.

    Notes
    -----
    The state is nothing but a replay of the file: every action is written (and on the disk) before it counts, an action
    that cannot be written did not happen, and a record cut short by a crash is left out with a
    :class:`~anima.errors.DataWarning`. Skipped items come back at the end. Proof, for any sequence of actions, crashes
    and reloads: ``tests/widgets/test_session.py``.

    Examples
    --------
    >>> session = LabellingSession({"a": "Yes.", "b": "No."}, ["true", "false"], path, annotator="ana")  # doctest: +SKIP
    >>> session.label("true")  # doctest: +SKIP
    'b'
    """

    def __init__(
        self,
        items: Mapping[str, str] | pd.DataFrame,
        labels: Sequence[str] | Mapping[str, str],
        path: str | os.PathLike[str],
        *,
        annotator: str,
        detectors: Mapping[str, Mapping[str, str | None]] | None = None,
        id: str = "utterance_id",  # noqa: A002
        text: str = "text",
        cluster: str = "dialogue_id",
        seed: int | None = None,
    ) -> None:
        self.texts, self.clusters = _items(items, id, text, cluster)
        self.keys = _keys(labels)
        self.labels = tuple(self.keys.values())
        self.annotator = require_text(annotator, "annotator").strip()
        if not self.annotator:
            raise InputError("annotator is blank: give a name, so that two people can be told apart")
        if not isinstance(detectors, Mapping | None):
            got = f"{type(detectors).__name__} {show(detectors)}"
            raise InputError(
                f"detectors must be labels by item for each name, got {got}: write {{name: {{item: label}}}}"
            )
        self.detectors = {
            require_text(name, "name in detectors"): self._known(found, f"detectors[{name!r}]")
            for name, found in (detectors or {}).items()
        }
        self._seed = seed
        self.order = tuple(self.texts)
        if seed is not None:
            self.order = tuple(random.Random(require_int(seed, "seed")).sample(self.order, len(self.order)))  # noqa: S311
        content = [sorted(self.texts.items()), self.labels]
        self.hash = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        self.file = JsonlFile(path)
        self._reader = JsonlReader(self.file, self._parse)
        self._forget()
        self.refresh()

    # What is known

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who has done something in this file, and this session's annotator."""
        return tuple(dict.fromkeys((*self._done, self.annotator)))

    def labelled(self, annotator: str | None = None) -> dict[str, str]:
        """Return the labels an annotator has given, by item; None: this session's annotator."""
        return {e.item: e.label for e in self._done.get(annotator or self.annotator, ()) if e.kind == "label"}

    @property
    def pending(self) -> list[str]:
        """Items without a label, skipped ones last."""
        own, done = self._done.get(self.annotator, []), self.labelled()
        skipped = {event.item: place for place, event in enumerate(own) if event.kind == "skip"}
        return sorted((item for item in self.order if item not in done), key=lambda item: skipped.get(item, -1))

    @property
    def current(self) -> str | None:
        """The item to label now; None when all are."""
        return next(iter(self.pending), None)

    @property
    def last(self) -> Event | None:
        """What :meth:`undo` would take back."""
        own = self._done.get(self.annotator)
        return own[-1] if own else None

    # What can be done

    def label(self, label: str, item: str | None = None) -> str | None:
        """Give the current item a label and return the next item.

        Parameters
        ----------
        label
            One of the session's labels.
        item
            The item that was looked at; refused unless it is the current one, as after a step in another window.
        """
        require_choice(label, "label", self.labels)
        return self._act("label", item, label)

    def skip(self, item: str | None = None) -> str | None:
        """Put the current item behind the others and return the next one."""
        return self._act("skip", item)

    def undo(self) -> Event | None:
        """Take back the annotator's last label or skip and return it; None if there is none."""
        with self.file.held():
            self._read()
            last = self.last
            if last is not None:
                self._write(Event("undo", self.annotator, last.item))
        return last

    def refresh(self) -> None:
        """Read what was written since, by whichever window or annotator; results that name others do so themselves."""
        self._read()
        for name in self.annotators:
            if name in self.detectors:
                raise InputError(
                    f"detectors has the annotator's name {name!r}, who labels in {self.file.path}: rename the detector"
                )

    def _read(self) -> None:
        anew, found = self._reader.refresh()
        if anew:
            self._forget()
        for line, event in found:
            try:
                self._replay(line, event)
            except DataError:
                self._reader.reset()
                raise

    def as_annotator(self, annotator: str) -> LabellingSession:
        """Return a session of somebody else on the same items and file."""
        other = LabellingSession(
            self.texts, self.keys, self.file.path, annotator=annotator, detectors=self.detectors, seed=self._seed
        )
        other.clusters = self.clusters
        return other

    # What comes of it

    def agreement(
        self, other: str, annotator: str | None = None, *, level: float = 0.95, rng: RngLike = None
    ) -> Estimate:
        """Return Cohen's kappa with another annotator or a detector, on the items that both labelled.

        The interval is by cluster where clusters are known; see :func:`anima.stats.cohen_kappa`.
        """
        self.refresh()
        me = self._annotator(annotator)
        theirs: Mapping[str, str | None] = self.labelled(other)
        if other not in self.annotators:
            theirs = self.detectors[require_choice(other, "other", (*self.annotators, *self.detectors))]
        mine = self.labelled(me)
        both = [item for item in self.texts if item in mine and theirs.get(item) is not None]
        clusters = None if self.clusters is None else [self.clusters[item] for item in both]
        first, second = [mine[item] for item in both], [str(theirs[item]) for item in both]
        name = f"kappa of {me} and {other}"
        return cohen_kappa(first, second, categories=self.labels, clusters=clusters, level=level, rng=rng, name=name)

    def agreements(self) -> list[Estimate]:
        """Return :meth:`agreement` with every other annotator and every detector."""
        self.refresh()
        return [self.agreement(name) for name in (*self.annotators, *self.detectors) if name != self.annotator]

    def validate(
        self, judge_scores: Mapping[str, str | None] | pd.Series[Any], *, annotator: str | None = None, **options: Any
    ) -> JudgeValidation:
        """Return :func:`anima.metaeval.validate_judge` of a judge against an annotator's labels.

        Parameters
        ----------
        judge_scores
            Labels by item, as mapping or Series; None is unscored. Items outside the session are left out.
        options
            As there. ``scale`` is ``"nominal"`` unless given, ``categories`` are the session's labels, ``clusters`` its
            clusters.
        """
        from anima.metaeval import validate_judge

        self.refresh()
        scores = self._known(judge_scores, "judge_scores", self.texts)
        human = self.labelled(self._annotator(annotator))
        given = {"scale": "nominal", "categories": self.labels, "clusters": self.clusters, **options}
        sides = ({item: found.get(item) for item in self.texts} for found in (scores, human))
        return validate_judge(*sides, **given)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item: ``item``, ``cluster`` where known, and the label of each annotator (None: none yet)."""
        import pandas as pd

        self.refresh()
        known: dict[str, Mapping[str, str]] = {} if self.clusters is None else {"cluster": self.clusters}
        known |= {name: self.labelled(name) for name in self.annotators}
        columns = {name: [found.get(item) for item in self.texts] for name, found in known.items()}
        return pd.DataFrame({"item": list(self.texts), **columns}, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return set-up and labels, JSON-ready; no text."""
        self.refresh()
        labels = {name: self.labelled(name) for name in self.annotators}
        return {"hash": self.hash, "labels": list(self.labels), "annotator": self.annotator, "labelled": labels}

    def summary(self) -> str:
        """Return one sentence."""
        counts = ", ".join(f"{name} {len(self.labelled(name))}" for name in self.annotators)
        return f"Labelled of {len(self.texts)} items: {counts}."

    def __repr__(self) -> str:
        return f"<LabellingSession of {self.annotator}: {self.summary()}>"

    # Writing and replaying

    def _act(self, kind: Literal["label", "skip"], item: str | None, label: str = "") -> str | None:
        with self.file.held():
            self._read()
            now = self.current
            if now is None:
                raise InputError(f"every item has a label of {self.annotator}: undo() takes the last one back")
            if item is not None and item != now:
                raise InputError(f"item {show(item)} is not the current one, {show(now)}: it was dealt with elsewhere")
            self._write(Event(kind, self.annotator, now, label))
        return self.current

    def _write(self, event: Event) -> None:
        record = {key: value for key, value in event._asdict().items() if value}
        record["at"] = datetime.now(UTC).isoformat(timespec="seconds")
        head = {"kind": "session", "format": _FORMAT, "hash": self.hash, "n": len(self.texts), "labels": self.labels}
        try:
            self.file.extend([record] if self._headed else [head, record])
        finally:
            self._read()  # the state is what the file says, also after a failure

    def _forget(self) -> None:
        self._headed = False
        self._done: dict[str, list[Event]] = {}

    def _parse(self, line: Line) -> Event | None:
        record = read_record(line)
        if record.get("kind") == "session":
            if record.get("hash") == self.hash and record.get("format") == _FORMAT:
                return None
            raise InputError(
                f"{line.place}: this file belongs to other items or labels (n={record.get('n')}, "
                f"labels={show(record.get('labels'))}; here n={len(self.texts)}, labels={show(list(self.labels))}): "
                "give the same items and labels, or another path"
            )
        kind, *rest = (record.get(name, "") for name in Event._fields)
        fits = kind in ("label", "skip", "undo") and all(isinstance(value, str) for value in rest) and rest[0]
        if not fits or rest[1] not in self.texts or (kind == "label") != (rest[2] in self.labels):
            raise DataError(f"{line.place}: not a step of this labelling session: {show(record)}")
        return Event(kind, *rest)

    def _replay(self, line: Line, event: Event | None) -> None:
        if event is None:
            self._headed = True
            return
        done = self._done.setdefault(event.annotator, [])
        if not self._headed:
            raise DataError(f"{line.place}: the file does not begin with the record of a labelling session")
        if event.kind == "undo":
            if not done or done[-1].item != event.item:
                raise DataError(f"{line.place}: nothing of {event.annotator} to undo at item {show(event.item)}")
            done.pop()
        elif any(before.item == event.item and before.kind == "label" for before in done):
            raise DataError(f"{line.place}: item {show(event.item)} has a label of {event.annotator} already")
        else:
            done.append(event)

    def _annotator(self, name: str | None) -> str:
        """Return who is asked for; somebody who has done nothing in this file is refused, as most often misspelt."""
        return self.annotator if name is None else require_choice(name, "annotator", self.annotators)

    def _known(self, found: Any, name: str, inside: Container[str] | None = None) -> dict[str, str | None]:
        """Return labels by item, missing ones as None; refuse a label the session does not have."""
        if not isinstance(found, Mapping) and type(found).__name__ != "Series":
            got = f"{type(found).__name__} {show(found)}"
            raise InputError(f"{name} must be labels by item, a mapping or a Series, got {got}: write {{item: label}}")
        labels: dict[str, str | None] = {}
        for item, value in found.items():
            if item in labels:  # in the index of a Series
                raise InputError(f"{name} has the item {show(item)} twice: keep one label each")
            if inside is not None and item not in inside:
                continue
            missing = value is None or type(value).__name__ == "NAType" or (isinstance(value, Real) and value != value)
            if not missing and not (isinstance(value, str) and value in self.labels):
                known = ", ".join(self.labels)
                raise InputError(f"{name}: item {show(item)} has {show(value)}, which is none of {known}")
            labels[item] = None if missing else value
        return labels


def _items(
    items: Mapping[str, str] | pd.DataFrame, key: str, text: str, cluster: str
) -> tuple[dict[str, str], dict[str, str] | None]:
    clusters = None
    if isinstance(items, Mapping):
        names, texts = list(items), list(items.values())
    else:
        require_columns(items, [key, text], "items")
        names, texts = items[key].tolist(), items[text].tolist()
        if cluster in items.columns:
            clusters = dict(zip(names, items[cluster].tolist(), strict=True))
    found = dict(zip(require_texts(names, "ids of items"), require_texts(texts, "texts of items"), strict=True))
    if not found:
        raise InputError("items is empty: there is nothing to label")
    if len(found) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise InputError(f"items has the id {show(twice)} twice: ids must be unique")
    return found, clusters


def _keys(labels: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(labels, Mapping):
        keys = {require_text(key, "key of labels").lower(): label for key, label in labels.items()}
        if len(keys) < len(labels):
            raise InputError(
                f"labels has a key twice, in capitals and not, got {show(list(labels))}: give each its own"
            )
        for key in keys:
            if len(key) != 1 or not key.isalnum() or key in RESERVED:
                raise InputError(f"labels has the key {show(key)}: one letter or digit, but not u (undo) or s (skip)")
    else:
        labels = require_texts(labels, "labels")
        if len(labels) > len(_KEYS):
            raise InputError(f"labels has {len(labels)} names, but there are only {len(_KEYS)} keys")
        keys = dict(zip(_KEYS, labels, strict=False))
    names = require_texts(keys.values(), "labels")
    if len(names) < 2 or len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise InputError(f"labels must be at least two different names, got {show(names)}")
    return keys
