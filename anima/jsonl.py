"""Append-only files of JSON lines that several processes share and a killed writer cannot spoil."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Generic, Literal, NamedTuple, TypeVar

from anima.checks import require_choice, require_int, show
from anima.errors import DataError, DataWarning, InputError
from anima.locks import locked, locked_for_reading, sync_folder

Durability = Literal["record", "batch"]
OnCorrupt = Literal["error", "quarantine"]
T = TypeVar("T")
_Identity = tuple[int, int]  # device and inode: a file keeps them when it is renamed

_BOM: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 120  # characters of a bad line in a message
# Faults of a path, which another path mends; those of the machine, such as a full disk, stay OSError.
_OF_THE_PATH: Final = {
    *(errno.EACCES, errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT),
    *(errno.ENOTDIR, errno.EPERM, errno.EROFS),
}


class Line(NamedTuple):
    """One line of a file as it stands there, without its end; ``number`` counts from 1, blank lines included."""

    file: Path
    number: int
    data: bytes

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class BadLine:
    """A line that was left out, and why."""

    file: str
    line: int
    reason: str
    text: str


def dumps(record: Mapping[str, Any]) -> bytes:
    """Return one record as compact UTF-8 JSON, without a line end.

    NaN becomes null (a missing number) and whole floats lose their fraction, as JavaScript writes them; numpy's
    scalars and arrays become plain. Infinities, lone surrogates and foreign types are refused with their path.
    """
    if not isinstance(record, Mapping):
        raise InputError(f"record must be a mapping, got {type(record).__name__} {show(record)}")
    try:
        text = json.dumps(plain(record, "record"), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise InputError("record is nested too deeply, or holds itself") from None
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"record holds a lone surrogate {text[error.start]!a}: repair the text, "
            "e.g. text.encode('utf-8', 'replace').decode('utf-8')"
        ) from None


def plain(value: Any, path: str = "value") -> Any:
    """Return ``value`` made of dict, list, str, int, finite float, bool and None; see :func:`dumps`."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"{path} has the key {show(key)}: keys must be str")
        return {key: plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if hasattr(value, "tolist"):
        return plain(value.tolist(), path)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise InputError(f"{path} is {value}: JSON has no infinities, leave the number out or write a bound")
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e21 else float(value)
    raise InputError(f"{path} is a {type(value).__name__}, which JSON cannot hold: {show(value)}")


def loads(line: Line) -> Any:
    """Return the value of a line; raise :class:`DataError` with file, line and text if it is no JSON.

    Halves of a surrogate pair, which ``JSON.stringify`` writes when text was cut inside an emoji, become U+FFFD.
    """
    try:
        value = json.loads(line.data.decode())
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        shown = line.data[:_SHOWN].decode("utf-8", "replace")
        raise DataError(f"{line.place}: corrupt JSON line ({reason}): {shown}") from None
    return _mend(value) if b"\\ud" in line.data.lower() else value


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return [_mend(item) for item in value] if isinstance(value, list) else value


def read_record(line: Line) -> dict[str, Any]:
    """Return the JSON object of a line; raise :class:`DataError` if it is another thing."""
    if isinstance(value := loads(line), dict):
        return value
    raise DataError(f"{line.place}: must be a JSON object, got {show(value)}")


def require_path(path: object, name: str = "path") -> Path:
    """Return a path as one that can be written to, "~" resolved; raise :class:`InputError` if nothing could be there."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{name} must be a str or a Path, got {type(path).__name__} {show(path)}")
    if not os.fspath(path) or "\0" in str(path):
        raise InputError(f"{name} must name a place on the disk, got {show(path)}")
    try:
        found = Path(path).expanduser()
    except RuntimeError as error:  # "~nobody"
        raise InputError(f"{name} {show(str(path))}: {error}: write the path out") from None
    with _naming(found, name):
        above = next((folder for folder in found.parents if folder.exists()), None)
        if above is not None and not above.is_dir():
            raise InputError(f"{name} {str(found)!r} lies under {str(above)!r}, which is a file: give another path")
    return found


@contextlib.contextmanager
def _naming(path: Path, name: str = "path") -> Iterator[None]:
    """Say of an error of the system that another path would mend which path it was, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_PATH:
            raise
        at = f" at {error.filename}" if error.filename and str(error.filename) != str(path) else ""
        raise InputError(
            f"{name} {str(path)!r} cannot be used ({error.strerror}{at}): "
            "give the path of a file in a folder that you may write to"
        ) from error


class JsonlFile:
    """A file of JSON lines, one record a line, that is only ever appended to.

    Parameters
    ----------
    path
        The file; made with its folder at the first append.
    max_bytes
        Size from which the file is renamed to ``STEM.MILLISECONDS.SUFFIX`` before an append; None for never. Stamps
        strictly increase, also between processes.
    durability
        ``"record"``: an append returns when its records are on the disk (fsync). ``"batch"``: they are with the
        operating system, safe from a crash of the process but not of the machine, until :meth:`flush`.

    Raises
    ------
    InputError
        If the path cannot be used, at once or when it is read or written. A full disk stays an OSError.

    Notes
    -----
    Each record is one ``write``, under a lock that processes and threads share (``NAME.lock``, which may be deleted
    when nobody writes). A write that fails, as on a full disk, is taken back. What a killed writer left of its last
    record is moved to ``NAME.torn`` at the next append, with a :class:`~anima.errors.DataWarning`; a last record that
    only lacks its line end gets it. Neither is ever joined to the next record.
    Proof: ``tests/test_jsonl.py`` and the crash tests in ``tests/metaeval/test_stores_crash.py``.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int | None = None, durability: Durability = "record"
    ) -> None:
        self.path = require_path(path)
        with _naming(self.path):
            if self.path.is_dir():
                raise InputError(
                    f"path {str(path)!r} is a folder: add the name of a file, e.g. {self.path / 'a.jsonl'}"
                )
        self.max_bytes = None if max_bytes is None else require_int(max_bytes, "max_bytes", low=1)
        self.durability: Durability = require_choice(durability, "durability", ("record", "batch"))

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record."""
        self.extend([record])

    def extend(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records under one lock and with one fsync.

        Nothing is written if one of them cannot be; when the disk is full, those that found room stay.
        """
        lines = [dumps(record) + b"\n" for record in records]
        if not lines:
            return
        with self.held(), contextlib.ExitStack() as stack:
            with _naming(self.path):
                handle, size, healed = self._open(stack)
            for line in lines:
                if self.max_bytes is not None and size >= self.max_bytes:
                    with _naming(self.path):
                        self._rotate(handle)
                        handle, size, _ = self._open(stack)
                _write(handle, line, size)
                size += len(line)
            if self.durability == "record":
                os.fsync(handle.fileno())
        if healed:
            warnings.warn(healed, DataWarning, stacklevel=3)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other writers out, so that a check of what is there still holds when the next append writes."""
        with contextlib.ExitStack() as stack:
            with _naming(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.path))
            yield

    def flush(self) -> None:
        """Return when all records are on the disk."""
        with _naming(self.path):
            if self.path.exists():
                with self.path.open("ab") as handle:
                    os.fsync(handle.fileno())
                sync_folder(self.path.parent)

    def files(self) -> list[Path]:
        """Return the files there are in the order of their records: renamed ones by stamp, the active one last."""
        active = [self.path] if self.path.exists() else []
        if self.max_bytes is None or not self.path.parent.is_dir():
            return active
        return [path for _, path in sorted(self._rolled())] + active

    def _rolled(self) -> Iterator[tuple[int, Path]]:
        stem, suffix = re.escape(self.path.stem), re.escape(self.path.suffix)
        for path in self.path.parent.iterdir():
            if match := re.fullmatch(rf"{stem}\.(\d+){suffix}", path.name, re.ASCII):
                yield int(match[1]), path
            elif re.fullmatch(rf"{stem}.+{suffix}", path.name):
                names = f"neither {self.path.name} nor {self.path.stem}.MILLISECONDS{self.path.suffix}"
                warnings.warn(f"{path} is not read: its name is {names}", DataWarning, stacklevel=2)

    def _open(self, stack: contextlib.ExitStack) -> tuple[IO[bytes], int, str]:
        new = not self.path.exists()
        handle = stack.enter_context(self.path.open("a+b", buffering=0))
        if new and self.durability == "record":
            sync_folder(self.path.parent)
        return handle, *self._heal(handle)

    def _rotate(self, handle: IO[bytes]) -> None:
        os.fsync(handle.fileno())
        handle.close()
        latest = max((stamp for stamp, _ in self._rolled()), default=0)
        stamp = max(time.time_ns() // 1_000_000, latest + 1)
        self.path.rename(self.path.with_name(f"{self.path.stem}.{stamp}{self.path.suffix}"))

    def _heal(self, handle: IO[bytes]) -> tuple[int, str]:
        """Make the file end with a whole line; return its size and what is to be said about it."""
        size = handle.seek(0, os.SEEK_END)
        tail, start = b"", size
        while start and b"\n" not in tail:
            step = min(start, 16 * len(tail) or 1)  # one byte tells nearly always
            start = handle.seek(start - step)
            tail = handle.read(step) + tail
        cut = tail.rfind(b"\n") + 1
        start, tail = start + cut, tail[cut:]
        text = tail.removeprefix(_BOM) if start == 0 else tail
        if not text.strip():
            return size, ""
        if _torn(Line(self.path, 0, text)) is None:
            _write(handle, b"\n", size)
            return size + 1, ""
        aside = self.path.with_name(self.path.name + ".torn")
        with aside.open("ab") as torn:
            torn.write(tail + b"\n")
            torn.flush()
            os.fsync(torn.fileno())
        handle.truncate(start)
        return start, f"{self.path}: a writer was stopped within a record; its {len(tail)} bytes were moved to {aside}"


def _write(handle: IO[bytes], data: bytes, size: int) -> None:
    """Append ``data`` to a file of ``size`` bytes wholly or not at all."""
    try:
        written = handle.write(data)
        if written != len(data):
            raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes could be written")
    except BaseException:
        with contextlib.suppress(OSError):
            handle.truncate(size)
        raise


class JsonlReader(Generic[T]):
    """Reads a :class:`JsonlFile` once, and afterwards only what was appended since, by whichever process.

    Parameters
    ----------
    file
        What to read.
    parse
        Makes an item of a :class:`Line` or raises :class:`DataError`.
    on_corrupt
        ``"error"``: a line that ``parse`` refuses raises its error, again at every reading. ``"quarantine"``: such
        lines are left out and listed in :attr:`bad`, and a :class:`~anima.errors.DataWarning` gives their number.

    Notes
    -----
    A byte-order mark, CRLF and blank lines are read over. A last line without an end that is no JSON is a record in
    flight or a killed writer's: it is left out, reported by a warning, and listed in :attr:`torn` until the next
    append moves it away.
    """

    def __init__(self, file: JsonlFile, parse: Callable[[Line], T], *, on_corrupt: OnCorrupt = "error") -> None:
        self.file = file
        self.parse = parse
        self.on_corrupt: OnCorrupt = require_choice(on_corrupt, "on_corrupt", ("error", "quarantine"))
        self.reset()

    def reset(self) -> None:
        """Forget what was read."""
        self._seen: dict[_Identity, tuple[int, int]] = {}  # bytes and lines read of each file, in order
        self._anew, self._open_end = True, False
        self.bad: list[BadLine] = []
        self.torn: BadLine | None = None

    def refresh(self) -> tuple[bool, list[tuple[Line, T]]]:
        """Return whether all was read anew, as at first or when files were removed, cut or reordered, and the items."""
        with _naming(self.file.path), locked_for_reading(self.file.path):
            found = [(path, path.stat()) for path in self.file.files()]
            sizes = {(stat.st_dev, stat.st_ino): stat.st_size for _, stat in found}
            anew = self._anew or not self._continues(sizes)
            before = {} if anew else self._seen
            parts = []
            for (identity, size), (path, _) in zip(sizes.items(), found, strict=True):
                offset, number = before.get(identity, (0, 0))
                parts.append((identity, path, offset, number, _read(path, offset, size)))
        items: list[tuple[Line, T]] = []
        bad: list[BadLine] = []
        seen: dict[_Identity, tuple[int, int]] = {}
        open_end, torn = self._open_end and not anew, None
        with no_collection():
            for identity, path, offset, number, data in parts:
                end = offset + len(data)
                *complete, tail = (data if offset else data.removeprefix(_BOM)).split(b"\n")
                for text in complete:
                    number += 1
                    if text and not text.isspace():
                        self._take(Line(path, number, text), items, bad)
                if tail and not tail.isspace():
                    line = Line(path, number + 1, tail)
                    open_end = path == self.file.path
                    torn = _torn(line) if open_end else None
                    if torn is None:
                        self._take(line, items, bad)
                seen[identity] = (end - len(tail) if torn else end, number)
        self._report(bad, torn)
        self._seen, self._anew, self._open_end, self.torn = seen, False, open_end, torn
        self.bad = bad if anew else self.bad + bad
        return anew, items

    def reject(self, line: Line, error: DataError) -> None:
        """Treat a line that ``parse`` took as corrupt after all, for reasons that lie in other lines."""
        if self.on_corrupt == "error":
            self.reset()  # so that the next reading meets it again
            raise error
        found = [_bad(line, error)]
        self._report(found, None)
        self.bad += found

    def _continues(self, sizes: dict[_Identity, int]) -> bool:
        """Whether the files are those read so far, untouched, the last one perhaps grown, and newer ones."""
        known = list(self._seen)
        if list(sizes)[: len(known)] != known:
            return False
        done = [sizes[key] == self._seen[key][0] for key in known]
        if known and not done[-1]:
            grown = sizes[known[-1]] > self._seen[known[-1]][0]
            done[-1] = grown and (self.torn is not None or not self._open_end)
        return all(done)

    def _take(self, line: Line, items: list[tuple[Line, T]], bad: list[BadLine]) -> None:
        try:
            items.append((line, self.parse(line)))
        except DataError as error:
            if self.on_corrupt == "error":
                raise
            bad.append(_bad(line, error))

    def _report(self, bad: list[BadLine], torn: BadLine | None) -> None:
        if bad:
            lines = "1 corrupt line" if len(bad) == 1 else f"{len(bad)} corrupt lines"
            warnings.warn(f"{lines} left out, the first: {bad[0].reason}", DataWarning, stacklevel=4)
        if torn and torn != self.torn:
            why = "its writer was stopped, or is not one of ours and still writing"
            said = f"{torn.file}:{torn.line}: the last record is incomplete and left out: {why}"
            warnings.warn(said, DataWarning, stacklevel=4)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking again and again over records that all stay: 60 % of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: Path, start: int, end: int) -> bytes:
    if end <= start:
        return b""
    with path.open("rb") as handle:
        handle.seek(start)
        return handle.read(end - start)


def _torn(line: Line) -> BadLine | None:
    try:
        loads(line)
    except DataError as error:
        return _bad(line, error)
    return None


def _bad(line: Line, error: DataError) -> BadLine:
    return BadLine(str(line.file), line.number, str(error), line.data.decode("utf-8", "replace"))
