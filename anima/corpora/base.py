"""A corpus as data frames, where it comes from, and what was found while reading it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from anima.checks import require_choice
from anima.corpora.files import tree_hash
from anima.errors import InputError
from anima.stats.estimate import Presentable, json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


#: The frames of a corpus.
FRAMES: Final = ("dialogues", "utterances", "labels", "outcomes", "speakers")


@dataclass(frozen=True)
class Provenance(Presentable):
    """Where a corpus comes from and what of it is used.

    Parameters
    ----------
    title, source, licence, citation, version
        As registered, or as told by whoever loaded a file of their own; empty where unknown.
    files
        SHA-256 by path inside the corpus' folder, of the content with line ends read as LF.
    dropped
        What was left out or mended, how often, and why; one sentence each.
    verified
        Whether every registered file was there with its registered hash; False for files without one.
    """

    title: str
    source: str = ""
    licence: str = ""
    citation: str = ""
    version: str = ""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    dropped: tuple[str, ...] = ()
    verified: bool = False

    def summary(self) -> str:
        """Return one sentence."""
        parts = [part for part in (self.version, self.licence, self.source) if part]
        state = "hashes as registered" if self.verified else "hashes not registered"
        return f"{self.title} ({'; '.join([*parts, f'{len(self.files)} files', state])})."


@dataclass(frozen=True)
class LoadReport(Presentable):
    """What was counted while a corpus was read; nothing is mended silently.

    Parameters
    ----------
    dialogues, utterances, annotated
        Units read; annotated ones were seen by an annotator, also where no label applied.
    duplicate_texts
        Annotated utterances whose text an earlier annotated one has too: no independent evidence when they fall on
        both sides of a split.
    self_replies, dangling_replies, cyclic_replies
        Replies to themselves, to no known utterance of their dialogue, or in a circle; each is treated as a root.
    empty_texts
        Utterances without a visible character: kept with ``status`` "empty", to be skipped by whatever embeds.
    boms, crlf_files
        Files that begin with a byte order mark, or end their lines as Windows does; both are read like any other.
    stray_commas
        Label cells with a leading, trailing or doubled comma; the empty part is no label.
    """

    dialogues: int = 0
    utterances: int = 0
    annotated: int = 0
    duplicate_texts: int = 0
    self_replies: int = 0
    dangling_replies: int = 0
    cyclic_replies: int = 0
    empty_texts: int = 0
    boms: int = 0
    crlf_files: int = 0
    stray_commas: int = 0

    def summary(self) -> str:
        """Return one sentence."""
        units = ("dialogues", "utterances", "annotated")
        found = [
            f"{value} {item.name.replace('_', ' ')}"
            for item in fields(self)
            if item.name not in units and (value := getattr(self, item.name))
        ]
        read = ", ".join(f"{getattr(self, name):,} {name}" for name in units)
        return f"{read}; {', '.join(found) if found else 'nothing to remark'}."


def counts(dialogues: pd.DataFrame, utterances: pd.DataFrame) -> dict[str, int]:
    """Return the fields of a report that are counted in the frames."""
    seen = utterances.loc[utterances["annotated"].astype(bool), "text"]
    return {
        "dialogues": len(dialogues), "utterances": len(utterances), "annotated": len(seen),
        "duplicate_texts": int(seen.duplicated().sum()), "empty_texts": int((utterances["status"] == "empty").sum()),
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Corpus(Presentable):
    """Dialogues with their utterances, labels and outcomes.

    Parameters
    ----------
    name
        Name it was loaded by.
    dialogues
        One row per dialogue: ``dialogue_id``, ``split``, ``n_utterances`` and the corpus' own columns.
    utterances
        One row per utterance in order: ``utterance_id`` (unique), ``dialogue_id``, ``turn`` (from 0), ``speaker``,
        ``text``, ``reply_to`` ("" for a root), ``kind`` ("message", "button", "submit", "initial" or "sentence"),
        ``status`` ("ok" or "empty"), ``annotated``, and the corpus' own columns.
    labels
        One row per label: ``utterance_id``, ``dialogue_id``, ``scheme``, ``label``; where labels are spans also
        ``start``, ``end`` (characters of ``text``) and ``group``, the number of the negation in its sentence.
    outcomes
        One row per measured outcome: ``dialogue_id``, ``speaker`` ("" for the whole dialogue), ``name``, ``value``.
    speakers
        One row per participant of a dialogue, with what is known of them; empty where nothing is.
    schemes
        The labels of each scheme, in their usual order.
    provenance, report
        Where it comes from; what was counted while reading.
    sample
        Whether these are the invented dialogues written for this project instead of the corpus.
    """

    name: str
    dialogues: pd.DataFrame = field(repr=False)
    utterances: pd.DataFrame = field(repr=False)
    labels: pd.DataFrame = field(repr=False)
    outcomes: pd.DataFrame = field(repr=False)
    speakers: pd.DataFrame = field(repr=False)
    schemes: Mapping[str, tuple[str, ...]]
    provenance: Provenance
    report: LoadReport
    sample: bool = False

    @property
    def hash(self) -> str:
        """SHA-256 over the names and contents of the files, the same on every machine."""
        return tree_hash(self.provenance.files)

    def label_names(self, scheme: str) -> tuple[str, ...]:
        """Return the labels of a scheme, in their usual order."""
        return self.schemes[require_choice(scheme, "scheme", tuple(self.schemes))]

    def labelled(self, scheme: str) -> pd.DataFrame:
        """Return one row per annotated utterance, with one boolean column per label of the scheme.

        An utterance may have several labels or none. For folds, group by ``dialogue_id``.

        Returns
        -------
        DataFrame
            ``utterance_id``, ``dialogue_id``, ``split``, ``speaker``, ``turn``, ``text``, then the labels.
        """
        import numpy as np
        import pandas as pd

        names = self.label_names(scheme)
        seen = self.utterances[self.utterances["annotated"]]
        frame = seen[["utterance_id", "dialogue_id", "speaker", "turn", "text"]].reset_index(drop=True)
        splits = dict(zip(self.dialogues["dialogue_id"], self.dialogues["split"], strict=True))
        frame.insert(2, "split", [splits[key] for key in frame["dialogue_id"]])
        if clash := sorted(set(names) & set(frame.columns)):
            raise InputError(f"scheme {scheme!r} has a label named like a column, {clash[0]!r}: rename the label")
        row_of = {key: row for row, key in enumerate(frame["utterance_id"])}
        column_of = {name: column for column, name in enumerate(names)}
        chosen = self.labels[self.labels["scheme"] == scheme]
        table = np.zeros((len(frame), len(names)), dtype=bool)
        rows, columns = [row_of[key] for key in chosen["utterance_id"]], [column_of[key] for key in chosen["label"]]
        table[rows, columns] = True
        return pd.concat([frame, pd.DataFrame(table, columns=list(names))], axis=1)

    def select(self, splits: str | list[str]) -> Corpus:
        """Return the corpus cut down to some of its splits.

        Provenance and hash stay those of the whole, and so does what the report says of files, replies and commas; its
        counts of dialogues and utterances are those of the selection.
        """
        wanted = [splits] if isinstance(splits, str) else list(splits)
        known = tuple(dict.fromkeys(self.dialogues["split"]))
        for name in wanted:
            require_choice(name, "splits", known)
        keep = set(self.dialogues.loc[self.dialogues["split"].isin(wanted), "dialogue_id"])
        frames = {
            name: (frame := getattr(self, name))[frame["dialogue_id"].isin(keep)].reset_index(drop=True)
            for name in FRAMES
        }
        report = replace(self.report, **counts(frames["dialogues"], frames["utterances"]))
        return replace(self, report=report, **frames)

    def summary(self) -> str:
        """Return one sentence."""
        mark = "SAMPLE (invented for this project), " if self.sample else ""
        return f"{mark}{self.name}: {self.report.summary()}"

    def to_dict(self) -> dict[str, Any]:
        """Return name, hash, provenance, report and schemes, ready for JSON; no text of the corpus."""
        told = {"name": self.name, "sample": self.sample, "hash": self.hash, "provenance": self.provenance}
        return dict(json_ready(told | {"report": self.report, "schemes": self.schemes}))

    def to_frame(self) -> pd.DataFrame:
        """Return the utterances."""
        return self.utterances
