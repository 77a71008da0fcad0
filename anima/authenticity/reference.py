"""What the instrument compares with: labelled sentences, poles, pools and markers.

:meth:`Reference.bundled` is the material written for this project; :meth:`Reference.from_dcs_gate` reads a folder of
the reference service, so that its users can bring their own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from anima.authenticity.files import Fields, is_number, parse_json, read_jsonl, read_utf8
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import Marker, load_markers, markers_from_json
from anima.authenticity.neighbours import POOLS, PoolEntry, PoolName
from anima.checks import show
from anima.errors import DataError
from anima.settings import data_path
from anima.vectors import centroid, unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

PoleName = Literal["certainty", "doubt", "edge"]
POLES: tuple[PoleName, ...] = get_args(PoleName)


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence and its label: an intent or UNCLASSIFIED."""

    text: str
    intent: str
    lang: str = ""


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """A whole reply whose sentences are labelled in order."""

    response: str
    sentences: tuple[Example, ...]
    id: str = ""
    lang: str = ""
    question: str = ""


@dataclass(frozen=True)
class Reference:
    """Everything the instrument compares with.

    Attributes
    ----------
    prototypes
        Labelled sentences; those labelled UNCLASSIFIED are plain content and train the rejection.
    poles
        Texts by pole, or a unit vector of shape ``(dim,)`` where a folder brings one.
    pools
        The reference corpus.
    markers
        Formal markers in the order in which they are reported.
    replies
        Labelled replies: sentences in their context. May be empty.
    pool_vectors
        Unit rows for ``pools`` where a folder brings them; else None, and the texts are embedded.
    name
        Where it came from; part of messages and receipts.
    """

    prototypes: tuple[Example, ...]
    poles: Mapping[PoleName, tuple[str, ...] | NDArray[np.float64]]
    pools: tuple[PoolEntry, ...]
    markers: tuple[Marker, ...]
    replies: tuple[LabelledReply, ...] = ()
    pool_vectors: NDArray[np.float64] | None = field(default=None, repr=False)
    name: str = "bundled"

    @property
    def intents(self) -> tuple[str, ...]:
        """Names of the intents that have prototypes: catalogue order, then any others as they appear."""
        present = dict.fromkeys(example.intent for example in self.prototypes if example.intent != UNCLASSIFIED)
        known = [name for name in catalogue() if name in present]
        return tuple(dict.fromkeys([*known, *present]))

    @property
    def sentences(self) -> tuple[Example, ...]:
        """Every labelled sentence: the prototypes, then those of the replies."""
        return (*self.prototypes, *(sentence for reply in self.replies for sentence in reply.sentences))

    @staticmethod
    def bundled() -> Reference:
        """Return the reference written for this project, in Spanish and English (read once, then shared)."""
        return _bundled()

    @staticmethod
    def from_dcs_gate(folder: str | Path) -> Reference:
        """Read a data folder of the reference service.

        Parameters
        ----------
        folder
            Holds ``intent_prototypes.json``, ``poles_1024.json``, ``formal_markers.json`` and at least two of
            ``baseline_{core,shadow,edge}.jsonl`` with their vectors.

        Raises
        ------
        DataError
            Names the file, line and field that cannot be used. The service itself skips bad lines silently.
        """
        root = Path(folder)
        if not root.is_dir():
            raise DataError(f"folder {root}: no such folder; pass the service's data folder")
        pools, vectors = _read_baselines(root)
        return Reference(
            prototypes=_read_prototypes(root / "intent_prototypes.json"),
            poles=_read_poles(root / "poles_1024.json", vectors.shape[1]),
            pools=pools,
            markers=markers_from_json(root / "formal_markers.json"),
            pool_vectors=vectors,
            name=str(root),
        )


@cache
def _bundled() -> Reference:
    def rows(name: str, *required: str) -> Iterator[dict[str, Any]]:
        return (row for _, row in read_jsonl(data_path(name), required=required))

    prototypes = [
        Example(row["text"], row["intent"], row["lang"])
        for name in ("intents/prototypes.jsonl", "intents/plain.jsonl")
        for row in rows(name, "text", "intent", "lang")
    ]
    replies = [
        LabelledReply(
            response=row["response"],
            sentences=tuple(
                Example(s["text"], s["intent"], row["lang"]) for s in row["sentences"] if s["intent"] is not None
            ),
            id=row["id"],
            lang=row["lang"],
            question=row["question"],
        )
        for row in rows("intents/replies.jsonl", "id", "lang", "question", "response", "sentences")
    ]
    poles: dict[PoleName, list[str]] = {pole: [] for pole in POLES}
    for row in rows("poles.jsonl", "text", "pole"):
        poles[row["pole"]].append(row["text"])
    pools = [
        PoolEntry(
            text=row["text"],
            pool=row["pool"],
            block_id=row["id"],
            position=row["position"],
            primary_pattern=row["pattern"],
            secondary_patterns=tuple(row["secondary"]),
            metrics=row["metrics"],
            notes=row["notes"],
            tags=tuple(row["tags"]),
            lang=row["lang"],
        )
        for row in rows("pools.jsonl", "id", "text", "pool", "position", "pattern", "metrics", "notes", "tags")
    ]
    return Reference(
        prototypes=tuple(prototypes),
        poles={name: tuple(texts) for name, texts in poles.items()},
        pools=tuple(sorted(pools, key=lambda entry: POOLS.index(entry.pool))),
        markers=load_markers(),
        replies=tuple(replies),
    )


class _Document:
    """A JSON object that fills a file; knows on which line a field stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = read_utf8(path)
        self.fields = parse_json(self.text, path)
        if not isinstance(self.fields, dict) or not self.fields:
            raise DataError(f"{path}:1: must be a JSON object with fields, got {show(self.fields)}")

    def where(self, key: str) -> str:
        match = re.search(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", self.text)
        return f"{self.path}:{self.text.count(chr(10), 0, match.start()) + 1 if match else 1}: field {key!r}"


def _read_prototypes(path: Path) -> tuple[Example, ...]:
    document = _Document(path)
    examples = []
    for intent, texts in document.fields.items():
        if not isinstance(texts, list) or not texts:
            raise DataError(f"{document.where(intent)} must be a non-empty list of phrases, got {show(texts)}")
        for i, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise DataError(f"{document.where(intent)}, item {i}, must be a non-blank string, got {show(text)}")
            examples.append(Example(text, intent))
    return tuple(examples)


def _vector(value: Any, where: str) -> NDArray[np.float64]:
    if not isinstance(value, list) or not value:
        raise DataError(f"{where} must be a non-empty list of numbers, got {show(value)}")
    for i, item in enumerate(value):
        if not is_number(item):
            raise DataError(f"{where}, item {i}, must be a finite number, got {show(item)}")
    vector = unit(np.array(value, dtype=np.float64))
    if not vector.any():
        raise DataError(f"{where} is a zero vector and has no direction")
    return vector


def _read_poles(path: Path, dim: int) -> dict[PoleName, tuple[str, ...] | NDArray[np.float64]]:
    document = _Document(path)
    poles: dict[PoleName, tuple[str, ...] | NDArray[np.float64]] = {}
    keys: dict[str, PoleName] = {"pos": "certainty", "neg": "doubt", "neu": "edge"}
    for key, name in keys.items():
        value = document.fields.get(key)
        if value is None:
            continue
        where = document.where(key)
        if isinstance(value, list) and value and isinstance(value[0], list):
            rows = [_vector(row, f"{where}, vector {i}") for i, row in enumerate(value)]
        else:
            rows = [_vector(value, where)]
        for row in rows:
            if len(row) != dim:
                raise DataError(f"{where} has {len(row)} numbers, the vectors of the baseline files {dim}")
        mean = centroid(rows)
        if not mean.any():
            raise DataError(f"{where}: its vectors cancel out and have no common direction")
        poles[name] = mean
    return poles


def _read_baselines(root: Path) -> tuple[tuple[PoolEntry, ...], NDArray[np.float64]]:
    present = [pool for pool in POOLS if (root / f"baseline_{pool}.jsonl").exists()]
    if len(present) < 2:
        raise DataError(
            f"{root}: needs at least two of baseline_core.jsonl, baseline_shadow.jsonl, baseline_edge.jsonl; found {present or 'none'}"
        )
    entries: list[PoolEntry] = []
    vectors: list[NDArray[np.float64]] = []
    for pool in present:
        path = root / f"baseline_{pool}.jsonl"
        for number, row in read_jsonl(path, required=("text", "vector")):
            where = f"{path}:{number}"
            vectors.append(_vector(row["vector"], f"{where}: field 'vector'"))
            if len(vectors[-1]) != len(vectors[0]):
                raise DataError(
                    f"{where}: field 'vector' has {len(vectors[-1])} numbers, the first line of the folder {len(vectors[0])}"
                )
            entries.append(_entry(row, pool, where))
    if not entries:
        raise DataError(f"{root}: the baseline files hold no line")
    return tuple(entries), np.array(vectors)


def _entry(row: dict[str, Any], pool: PoolName, where: str) -> PoolEntry:
    fields = Fields(row, where)
    metrics = row.get("metrics") or {}
    if not isinstance(metrics, dict):
        raise fields.bad("metrics", "an object")
    for key, value in metrics.items():
        if not isinstance(value, str):
            raise DataError(f"{where}: field 'metrics.{key}' must be a string, got {show(value)}")
    return PoolEntry(
        text=fields.text("text"),
        pool=pool,
        tag=fields.text("corpus"),
        block_id=fields.text("block_id"),
        position=fields.text("position"),
        primary_pattern=fields.text("primary_pattern"),
        secondary_patterns=fields.texts("secondary_patterns"),
        source_model=fields.text("source_model"),
        metrics=metrics,
        notes=fields.text("notes"),
        tags=fields.texts("tags"),
        sims=(fields.number("sim_pos"), fields.number("sim_neg"), fields.number("sim_neu")),
    )
