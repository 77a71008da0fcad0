"""Where stores keep their records: a table in memory, alone or behind a file."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from anima.errors import DataError, InputError
from anima.jsonl import BadLine, JsonlFile, JsonlReader, Line, OnCorrupt, read_record
from anima.metaeval.records import Record, build
from anima.metaeval.snapshot import SentinelSnapshot, validate_sentinel_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R", bound=Record)


class Table(Generic[R]):
    """Records in order; those with a ``key`` can be patched, and a run is there once."""

    def __init__(self, model: type[R], key: str = "") -> None:
        self.model, self.key = model, key
        self.wire_key, self.noun = to_camel(key), key.removesuffix("_id")
        self._records: list[R] = []
        self._first: dict[str, int] = {}
        self._patches: dict[int, dict[str, Any]] = {}

    def add(self, records: list[R]) -> None:
        """Add records; a run must be new."""
        self.require_new(records)
        for record in records:
            self.put(record)

    def require_new(self, records: list[R]) -> None:
        """Raise if one of the records is a run that is there already."""
        batch = set()
        for record in records if self.key == "run_id" else ():
            run_id = getattr(record, self.key)
            if run_id in self._first or run_id in batch:
                raise InputError(f"run {run_id} already exists: change it with update_run")
            batch.add(run_id)

    def put(self, record: R, place: str = "") -> None:
        """Add a record; the repeated row of a run is merged into the first, later fields winning, patches last."""
        if self.key:
            position = self._first.setdefault(getattr(record, self.key), len(self._records))
            if self.key == "run_id" and position < len(self._records):
                merged = self._records[position].to_dict() | record.to_dict() | self._patches.get(position, {})
                self._records[position] = build(self.model, merged, place, error=DataError)
                return
        self._records.append(record)

    def patched(self, key: str, patch: dict[str, Any], place: str, error: type[ValueError]) -> tuple[int, R]:
        """Return where the record is and what the patch would make of it."""
        position = self._first.get(key)
        if position is None:
            raise error(f"{place}{self.noun} {key} not found: append it before it is updated")
        if patch.get(self.wire_key, key) != key:
            raise error(f"{place}{self.noun} {key}: {self.wire_key} cannot be changed: append a new {self.noun}")
        fields = self._records[position].to_dict() | patch
        return position, build(self.model, fields, f"{place}{self.noun} {key}", error=error)

    def patch(self, key: str, patch: dict[str, Any], place: str = "", error: type[ValueError] = InputError) -> None:
        """Replace fields, named as in the file, of the first record with this key."""
        position, record = self.patched(key, patch, place, error)
        self._patches.setdefault(position, {}).update(patch)
        self._records[position] = record

    def records(self) -> list[R]:
        """Return all records: the list itself, not to be changed."""
        return self._records

    def problems(self) -> list[BadLine]:
        """Return nothing: memory holds no bad line."""
        return []

    def flush(self) -> None:
        """Do nothing: nothing is kept."""


class Disk(Generic[R]):
    """A table behind a file: what is written goes there, what is read comes from there."""

    def __init__(self, model: type[R], file: JsonlFile, on_corrupt: OnCorrupt, key: str = "") -> None:
        self._options = (model, file, on_corrupt, key)
        self._file, self._table = file, Table(model, key)
        self._reader = JsonlReader(file, _parser(model, patched=bool(key)), on_corrupt=on_corrupt)
        self._lock = threading.RLock()
        self.flush = file.flush

    def __reduce__(self) -> tuple[Any, ...]:
        return Disk, self._options  # another process reads for itself

    def add(self, records: list[R]) -> None:
        """Write records; a run must be new."""
        rows = [record.to_dict() for record in records]
        if self._table.key != "run_id" or not rows:
            self._file.extend(rows)
            return
        with self._lock, self._file.held():  # between the check and the writing no other process may add the same run
            self.records()
            self._table.require_new(records)
            self._file.extend(rows)

    def patch(self, key: str, patch: dict[str, Any]) -> None:
        """Write a patch, unless nothing can come of it."""
        with self._lock, self._file.held():
            self.records()
            self._table.patched(key, patch, "", InputError)  # a bad patch would make the file unreadable
            self._file.append({self._table.wire_key: key, **patch, "_update": True})

    def records(self) -> list[R]:
        """Return all records, those of other processes included; see :meth:`Table.records`."""
        with self._lock:
            anew, items = self._reader.refresh()
            if anew:
                self._table = Table(self._table.model, self._table.key)
            # Patches after all records: with several writers a patch may stand in the file before its record.
            for line, item in sorted(items, key=lambda pair: isinstance(pair[1], dict)):
                try:
                    if isinstance(item, dict):
                        key = item.pop(self._table.wire_key, None)
                        self._table.patch(key, item, f"{line.place}: ", DataError)
                    else:
                        self._table.put(item, line.place)
                except DataError as error:
                    self._reader.reject(line, error)
            return self._table.records()

    def problems(self) -> list[BadLine]:
        """Return the lines left out."""
        self.records()
        return [*self._reader.bad, *([self._reader.torn] if self._reader.torn else [])]


def _parser(model: type[R], *, patched: bool) -> Callable[[Line], R | dict[str, Any]]:
    """Return the reader of a line: a record, or the fields of a patch."""
    validate = model.__pydantic_validator__.validate_json

    def parse(line: Line) -> R | dict[str, Any]:
        if model is SentinelSnapshot:
            return validate_sentinel_snapshot(read_record(line), line.place)  # type: ignore[return-value]
        if not (patched and b'"_update"' in line.data):
            try:
                return validate(line.data)  # type: ignore[no-any-return]
            except ValidationError:
                pass  # the slow way mends what can be mended, and says what cannot
        data = read_record(line)
        if patched and data.pop("_update", False):
            return data
        return build(model, data, line.place, error=DataError)

    return parse
