"""Stores of runs, deployment outcomes and judge health: in memory, or in the reference package's files.

Files are append-only: :class:`anima.jsonl.JsonlFile` says what several writers, crashes and full disks do to them,
:class:`anima.jsonl.JsonlReader` what a corrupt line does. A store on disk sees what other processes append. Records
are immutable, so that stores hand them out without copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar

from anima.checks import require_choice, require_text, show
from anima.errors import InputError
from anima.jsonl import BadLine, Durability, JsonlFile, OnCorrupt, plain, require_path
from anima.metaeval.records import (
    Artifact,
    BudgetEntry,
    DeploymentOutcome,
    Event,
    Record,
    Run,
    Span,
    build,
    records_frame,
)
from anima.metaeval.shelves import Disk, Table
from anima.metaeval.snapshot import SENTINEL_METRICS, SentinelSnapshot, validate_sentinel_snapshot

if TYPE_CHECKING:
    import os

    import pandas as pd

R = TypeVar("R")
Kind = Literal["runs", "spans", "events", "artifacts", "budget"]

MAX_BYTES: Final = 32 * 1024 * 1024  # the reference package's size of a file


class _Store:
    """What all stores share."""

    _kinds: ClassVar[Mapping[Any, tuple[type[Record], str]]]  # model and key of each kind of record
    _where: str = ""

    def __init__(self) -> None:
        self._shelves: dict[Any, Table[Any] | Disk[Any]] = {
            kind: Table(model, key) for kind, (model, key) in self._kinds.items()
        }

    def flush(self) -> None:
        """Return when all records are on the disk; matters with ``durability="batch"`` only."""
        for shelf in self._shelves.values():
            shelf.flush()

    def problems(self) -> list[BadLine]:
        """Return the lines left out: quarantined ones, and the record in flight when a writer was stopped."""
        return [problem for shelf in self._shelves.values() for problem in shelf.problems()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where})"

    def _select(
        self, kind: Any, fields: Mapping[str, Any], time: str = "", since: float | None = None,
        until: float | None = None, **mappings: Mapping[str, str] | None,
    ) -> list[Any]:  # fmt: skip
        """Return the records whose fields, times and entries of mappings match; empty wishes do not count."""
        records, (model, _) = self._shelves[kind].records(), self._kinds[kind]
        for name in fields:
            require_choice(name, "filter", tuple(model.model_fields))
        for name, moment in (("since", since), ("until", until)):
            if moment is not None and (not isinstance(moment, Real) or moment != moment):
                raise InputError(f"{name} must be a time in ms since 1970, got {type(moment).__name__} {show(moment)}")
        for name, mapping in mappings.items():
            if mapping is not None and not isinstance(mapping, Mapping):
                raise InputError(f"{name} must be a mapping, e.g. {{'name': 'value'}}, got {show(mapping)}")
        wanted = [(name, value) for name, value in fields.items() if value]
        entries = [(name, key, value) for name, mapping in mappings.items() for key, value in (mapping or {}).items()]
        if not wanted and not entries and since is None and until is None:
            return list(records)
        return [
            record
            for record in records
            if (since is None or getattr(record, time) >= since)
            and (until is None or getattr(record, time) <= until)
            and all(getattr(record, name) == value for name, value in wanted)
            and all((getattr(record, name) or {}).get(key) == value for name, key, value in entries)
        ]


class _Folder(_Store):
    """A store whose records are in the files of a folder, one for each kind."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        durability: Durability = "record",
        on_corrupt: OnCorrupt = "error",
    ) -> None:
        self._where = repr(str(folder))
        path = require_path(folder, "folder")
        if path.exists() and not path.is_dir():
            raise InputError(f"folder {str(folder)!r} is a file: give the folder that its records shall be in")
        self._shelves = {
            kind: Disk(
                model, JsonlFile(path / f"{kind}.ndjson", max_bytes=max_bytes, durability=durability), on_corrupt, key
            )
            for kind, (model, key) in self._kinds.items()
        }


class TraceStore(_Store):
    """Runs and what happened in them; use :class:`MemoryTraceStore` or :class:`JsonlTraceStore`.

    Every ``append_…`` takes a record or a mapping of its fields by either spelling. Filters: all must match, empty ones
    do not count, times are inclusive, ``fields`` are others by their name.
    """

    _kinds: ClassVar = {
        "runs": (Run, "run_id"),
        "spans": (Span, "span_id"),
        "events": (Event, ""),
        "artifacts": (Artifact, ""),
        "budget": (BudgetEntry, ""),
    }

    def append_run(self, run: Run | Mapping[str, Any]) -> None:
        """Add a run; its id must be new."""
        self._add("runs", [run])

    def append_span(self, span: Span | Mapping[str, Any]) -> None:
        """Add a span."""
        self._add("spans", [span])

    def append_event(self, event: Event | Mapping[str, Any]) -> None:
        """Add an event."""
        self._add("events", [event])

    def append_artifact(self, artifact: Artifact | Mapping[str, Any]) -> None:
        """Add an artifact."""
        self._add("artifacts", [artifact])

    def append_budget_entry(self, entry: BudgetEntry | Mapping[str, Any]) -> None:
        """Add a line of the ledger."""
        self._add("budget", [entry])

    def extend(self, kind: Kind, records: Iterable[Record | Mapping[str, Any]]) -> None:
        """Add many records of one kind at once: one lock, one fsync."""
        self._add(require_choice(kind, "kind", tuple(self._kinds)), records)

    def update_run(self, run_id: str, patch: Mapping[str, Any]) -> None:
        """Replace top-level fields of a run."""
        self._shelves["runs"].patch(run_id, _wire(Run, patch))

    def update_span(self, span_id: str, patch: Mapping[str, Any]) -> None:
        """Replace top-level fields of the first span with this id."""
        self._shelves["spans"].patch(span_id, _wire(Span, patch))

    def get_run(self, run_id: str) -> Run | None:
        """Return a run; None if there is none."""
        return next((run for run in self._shelves["runs"].records() if run.run_id == run_id), None)

    def runs(
        self, *, tags: Mapping[str, str] | None = None, since: float | None = None, until: float | None = None,
        **fields: str | None,
    ) -> list[Run]:  # fmt: skip
        """Return the runs that match all filters, in order: ``scenario_id=…``, ``status=…``, ``layer=…``."""
        return self._select("runs", fields, "started_at", since, until, tags=tags)

    def spans(self, *, since: float | None = None, until: float | None = None, **fields: str | None) -> list[Span]:
        """Return the spans that match all filters; a ``tool_name`` means tool spans, a ``judge_id`` judge spans."""
        kinds = {kind for kind, name in (("tool", "tool_name"), ("judge", "judge_id")) if fields.get(name)}
        found = self._select("spans", fields, "started_at", since, until)
        return [span for span in found if kinds <= {span.kind}] if kinds else found

    def events(self, *, since: float | None = None, until: float | None = None, **fields: str | None) -> list[Event]:
        """Return the events that match all filters: ``run_id=…``, ``span_id=…``, ``kind=…``."""
        return self._select("events", fields, "timestamp", since, until)

    def artifacts(self, run_id: str) -> list[Artifact]:
        """Return the artifacts of a run."""
        return self._select("artifacts", {"run_id": run_id})

    def budget(self, run_id: str) -> list[BudgetEntry]:
        """Return the ledger of a run."""
        return self._select("budget", {"run_id": run_id})

    def to_frame(self, kind: Kind = "runs") -> pd.DataFrame:
        """Return all records of one kind; see :func:`~anima.metaeval.records.records_frame`."""
        kind = require_choice(kind, "kind", tuple(self._kinds))
        return records_frame(self._shelves[kind].records(), self._kinds[kind][0])

    def _add(self, kind: Kind, records: Iterable[Record | Mapping[str, Any]]) -> None:
        self._shelves[kind].add(
            [build(self._kinds[kind][0], record, kind.removesuffix("s")) for record in _several(records, kind)]
        )


class MemoryTraceStore(TraceStore):
    """Runs and what happened in them, as long as the process lives."""

    def __init__(self, runs: Iterable[Run | Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self._add("runs", runs)


class JsonlTraceStore(_Folder, TraceStore):
    """Runs and what happened in them, in ``runs``, ``spans``, ``events``, ``artifacts`` and ``budget.ndjson``.

    An update is a row of its own, marked ``"_update": true``; reading applies updates after all records, in file
    order. An update of a record that is nowhere is an error.

    Parameters
    ----------
    folder
        Made at the first append.
    max_bytes
        Size from which a file is renamed to ``NAME.MILLISECONDS.ndjson`` before an append.
    durability, on_corrupt
        See :class:`anima.jsonl.JsonlFile` and :class:`anima.jsonl.JsonlReader`.
    """


class OutcomeStore(_Store):
    """What the world said about runs; use :class:`MemoryOutcomeStore` or :class:`JsonlOutcomeStore`."""

    _kinds: ClassVar = {"outcomes": (DeploymentOutcome, "")}

    def append(self, outcome: DeploymentOutcome | Mapping[str, Any]) -> None:
        """Add an outcome."""
        self.extend([outcome])

    def extend(self, outcomes: Iterable[DeploymentOutcome | Mapping[str, Any]]) -> None:
        """Add many outcomes at once: one lock, one fsync."""
        self._shelves["outcomes"].add(
            [build(DeploymentOutcome, outcome, "outcome") for outcome in _several(outcomes, "outcomes")]
        )

    def outcomes(
        self,
        *,
        run_ids: Iterable[str] | None = None,
        labels: Mapping[str, str] | None = None,
        source: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> list[DeploymentOutcome]:
        """Return the outcomes that match all filters, in order.

        ``run_ids``: an empty list matches nothing. ``since`` and ``until`` (ms, inclusive) hold for ``captured_at``.
        """
        found = self._select("outcomes", {"source": source}, "captured_at", since, until, labels=labels)
        if run_ids is None:
            return found
        if isinstance(run_ids, str):
            raise InputError(f"run_ids must be a list of ids, got one str: write [{run_ids!r}]")
        if not isinstance(run_ids, Iterable):
            raise InputError(f"run_ids must be a list of ids, got {type(run_ids).__name__} {show(run_ids)}")
        ids = {require_text(one, "run_ids", place=f"item {k}") for k, one in enumerate(run_ids)}
        return [outcome for outcome in found if outcome.run_id in ids]

    def for_run(self, run_id: str) -> list[DeploymentOutcome]:
        """Return the outcomes of one run."""
        return self.outcomes(run_ids=[run_id])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per outcome with columns ``metrics.<name>`` and ``labels.<name>``."""
        return records_frame(self._shelves["outcomes"].records(), DeploymentOutcome)


class MemoryOutcomeStore(OutcomeStore):
    """Deployment outcomes, as long as the process lives."""

    def __init__(self, outcomes: Iterable[DeploymentOutcome | Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self.extend(outcomes)


class JsonlOutcomeStore(_Folder, OutcomeStore):
    """Deployment outcomes in ``outcomes.ndjson`` and its renamed predecessors; see :class:`JsonlTraceStore`.

    Other files of the folder are not read, and a corrupt line never ends the reading silently.
    """


class SentinelStore(_Store):
    """The history of judges' health; use :class:`MemorySentinelStore` or :class:`JsonlSentinelStore`."""

    _kinds: ClassVar = {"snapshots": (SentinelSnapshot, "")}

    def append(self, snapshot: SentinelSnapshot | Mapping[str, Any]) -> None:
        """Add a snapshot."""
        self.extend([snapshot])

    def extend(self, snapshots: Iterable[SentinelSnapshot | Mapping[str, Any]]) -> None:
        """Add many snapshots at once."""
        self._shelves["snapshots"].add(
            [validate_sentinel_snapshot(snapshot) for snapshot in _several(snapshots, "snapshots")]
        )

    def history(self, judge_id: str | None = None) -> list[SentinelSnapshot]:
        """Return all snapshots, or those of one judge, in the order they were added."""
        found = self._shelves["snapshots"].records()
        return [item for item in found if judge_id is None or item.judge_id == judge_id]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per snapshot and metric: ``at`` (UTC), judge, model, metric, value, n, low, high.

        A snapshot without metrics, which marks a change of model, has one row without a metric.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for item in self.history():
            head = {"at": item.time, "judge_id": item.judge_id, "judge_model": item.judge_model}
            measured = [name for name in SENTINEL_METRICS if item.metrics.get(name) is not None]
            for name in measured:
                value, size, low, high = item.measured(name)
                rows.append(head | {"metric": name, "value": value, "n": size, "low": low, "high": high})
            rows += [] if measured else [head]
        columns = ["at", "judge_id", "judge_model", "metric", "value", "n", "low", "high"]
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[4:], "float64"))


class MemorySentinelStore(SentinelStore):
    """Snapshots, as long as the process lives."""

    def __init__(self, snapshots: Iterable[SentinelSnapshot | Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self.extend(snapshots)


class JsonlSentinelStore(SentinelStore):
    """Snapshots in one file, never renamed; all lines are checked before one judge's are picked."""

    def __init__(
        self, path: str | os.PathLike[str], *, durability: Durability = "record", on_corrupt: OnCorrupt = "error"
    ) -> None:
        self._where = repr(str(path))
        self._shelves = {"snapshots": Disk(SentinelSnapshot, JsonlFile(path, durability=durability), on_corrupt)}


def _several(records: Iterable[R], name: str) -> Iterable[R]:
    """Return records of an argument that must be a list of them."""
    if isinstance(records, str | bytes | Mapping | Record) or not isinstance(records, Iterable):
        raise InputError(f"{name} must be a list of records, got {type(records).__name__} {show(records)}: write [...]")
    return records


def _wire(model: type[Record], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a patch with the names of the file."""
    if not isinstance(patch, Mapping):
        raise InputError(f"patch must be a mapping of fields, got {type(patch).__name__}")
    aliases = {name: field.alias or name for name, field in model.model_fields.items()}
    return {
        aliases.get(name, name): value.to_dict() if isinstance(value, Record) else plain(value, f"patch.{name}")
        for name, value in patch.items()
    }
