"""A cache over any embedder: a table in memory, over an optional SQLite file that processes share."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import warnings
from collections import OrderedDict
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.checks import require_int, require_texts
from anima.embedding.base import embed_checked, has_vector
from anima.errors import CacheWarning
from anima.settings import env_int

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from anima.embedding.base import Embedder

_WAIT: Final = 10.0  # seconds to wait for another process's write
_CORRUPT: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_HEAD: Final = b"SQLite format 3\0"
_ASK: Final = 500  # keys in one statement; SQLite allows 999 in old builds


@dataclass(frozen=True)
class CacheInfo:
    """What a cache has done.

    Attributes
    ----------
    hits, misses
        Texts answered without, and with, the embedder. Blank texts are neither.
    disk_hits
        Of the hits, those read from the file.
    size, memory
        Vectors held in memory, and the most that may be.
    path
        The file; None if there is none or it could not be used.
    """

    hits: int
    misses: int
    disk_hits: int
    size: int
    memory: int
    path: str | None

    @property
    def hit_ratio(self) -> float:
        """Hits among all texts; NaN before the first."""
        total = self.hits + self.misses
        return self.hits / total if total else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return asdict(self)


class CachedEmbedder:
    """Remembers the vectors of an embedder; what it returns is the same to the bit.

    A call looks up every distinct text once and hands all that are missing to the embedder in one batch. A call that
    fails leaves nothing behind. Threads may share one instance, and processes one file.

    Parameters
    ----------
    embedder
        The embedder that makes the vectors; its ``id`` is part of the key, beside the SHA-256 of the text.
    memory
        Most vectors held in memory, the longest unused going first; default ``ANIMA_CACHE_SIZE``, else 2000.
    path
        SQLite file; made if absent, with its folder. It only grows (about 2.1 kB a text at 512 numbers); delete it at
        will. Without one, nothing is kept beyond the process.

    Notes
    -----
    The file is never a reason to fail. A damaged one is renamed to ``NAME.corrupt-1`` (-2, …) and begun anew; one that
    was never a database, or cannot be written or opened, is left alone. Both give a
    :class:`~anima.errors.CacheWarning`. A stored vector of the wrong length, or not of length one, is computed again
    and replaced.
    """

    def __init__(
        self, embedder: Embedder, *, memory: int | None = None, path: str | os.PathLike[str] | None = None
    ) -> None:
        self.embedder = embedder
        self._limit = env_int("CACHE_SIZE", 2000) if memory is None else require_int(memory, "memory", low=0)
        self._disk = None if path is None else _Disk(Path(path).expanduser())
        self._rows: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = self._misses = self._disk_hits = 0

    @property
    def id(self) -> str:
        """The embedder's id."""
        return self.embedder.id

    @property
    def dim(self) -> int:
        """The embedder's length of a vector."""
        return self.embedder.dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row per text, shape (n, dim), NaN for a blank text; the array is the caller's own."""
        texts = require_texts(texts)
        keys = [
            hashlib.sha256(text.encode()).digest() if has else b""
            for text, has in zip(texts, has_vector(texts), strict=True)
        ]
        distinct = {key: text for key, text in zip(keys, texts, strict=True) if key}
        with self._lock:
            found = {key: self._rows[key] for key in distinct if key in self._rows}
            for key in found:
                self._rows.move_to_end(key)
        stored: dict[bytes, NDArray[np.float32]] = {}
        if self._disk and len(found) < len(distinct):
            stored = self._disk.read(self.id, self.dim, (key for key in distinct if key not in found))
        missing = [key for key in distinct if key not in found and key not in stored]
        made = embed_checked(self.embedder, [distinct[key] for key in missing]) if missing else ()
        # Copies, so that one remembered row does not keep its whole batch in memory.
        fresh = {key: row.copy() for key, row in zip(missing, made, strict=True)}
        if self._disk and fresh:
            self._disk.write(self.id, fresh)
        with self._lock:
            self._misses += len(missing)
            self._hits += sum(map(bool, keys)) - len(missing)
            self._disk_hits += len(stored)
            for key, row in (stored | fresh).items() if self._limit else ():
                self._rows[key] = row
                self._rows.move_to_end(key)
                if len(self._rows) > self._limit:
                    self._rows.popitem(last=False)
        rows = found | stored | fresh
        out = np.full((len(texts), self.dim), np.nan, dtype=np.float32)
        for i, key in enumerate(keys):
            if key:
                out[i] = rows[key]
        return out

    def info(self) -> CacheInfo:
        """Return the counts so far."""
        path = str(self._disk.path) if self._disk and self._disk.usable else None
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._disk_hits, len(self._rows), self._limit, path)

    def __repr__(self) -> str:
        path = str(self._disk.path) if self._disk else None
        return f"CachedEmbedder({self.embedder!r}, memory={self._limit}, path={path!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Another process begins with an empty memory; the file is what they share.
        return {"embedder": self.embedder, "memory": self._limit, "path": self._disk.path if self._disk else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class _Disk:
    """The file. A connection lives for one operation: nothing to close, to share with a fork, or to hold a lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.usable = True
        self._writable = True
        self._served = False

    def read(self, embedder: str, dim: int, keys: Iterable[bytes]) -> dict[bytes, NDArray[np.float32]]:
        wanted = list(keys)

        def work(connection: sqlite3.Connection) -> dict[bytes, NDArray[np.float32]]:
            found = {}
            for start in range(0, len(wanted), _ASK):
                part = wanted[start : start + _ASK]
                marks = ",".join("?" * len(part))
                sql = f"SELECT hash, vector FROM anima_vectors WHERE embedder = ? AND hash IN ({marks})"  # noqa: S608
                for key, blob in connection.execute(sql, (embedder, *part)):
                    if isinstance(blob, bytes) and len(blob) == 4 * dim:
                        row = np.frombuffer(blob, dtype="<f4").astype(np.float32)
                        if abs(float(np.linalg.norm(row)) - 1) < 1e-3:  # False for NaN too
                            found[key] = row
            return found

        return self._do(work) or {}

    def write(self, embedder: str, rows: dict[bytes, NDArray[np.float32]]) -> None:
        def work(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO anima_vectors VALUES (?, ?, ?)",
                    [(embedder, key, row.astype("<f4").tobytes()) for key, row in rows.items()],
                )
            return True

        if self._writable:
            self._do(work)

    def _do(self, work: Any) -> Any:
        """Return ``work(connection)``; None if the file cannot serve it."""
        for attempt in (1, 2):
            if not self.usable:
                return None
            inode = _inode(self.path)
            try:
                with closing(self._connect()) as connection:
                    result = work(connection)
                self._served = True
                return result
            except (sqlite3.Error, OSError) as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind of error
                if code in _CORRUPT and attempt == 1 and not self._ours():
                    self.usable = False
                    self._warn("is a file of another kind and left alone; name another file; going on without it")
                elif code in _CORRUPT and attempt == 1:
                    self._set_aside(error, inode)
                elif code in _BUSY:
                    self._warn(f"is busy with another process ({error}); this call goes on without it")
                    return None
                elif code == sqlite3.SQLITE_READONLY and self._writable:
                    self._writable = False
                    self._warn(f"cannot be written ({error}); new vectors are not kept in it")
                    return None
                else:
                    self.usable = False
                    self._warn(f"cannot be used ({error}); going on without it")
        return None

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_WAIT)
        try:
            # Readers beside one writer. Nothing is forced to the disk, which costs ten times the write: a process may die
            # at any moment, but a loss of power may damage the file, which is then set aside.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS anima_vectors (embedder TEXT NOT NULL, hash BLOB NOT NULL, "
                "vector BLOB NOT NULL, PRIMARY KEY (embedder, hash)) WITHOUT ROWID"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _ours(self) -> bool:
        """Whether the file is, or was, a database: any other file is somebody's, named by mistake."""
        with self.path.open("rb") as file:
            head = file.read(len(_HEAD))
        return self._served or head == _HEAD or self.path.with_name(self.path.name + "-wal").exists()

    def _set_aside(self, error: Exception, inode: int) -> None:
        if _inode(self.path) != inode:
            return  # another process has done so already
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.corrupt-{number}")).exists():
            number += 1
        try:
            # The log of the damaged file must not be taken for the new one's.
            for suffix in ("-wal", "-shm", ""):
                part = self.path.with_name(self.path.name + suffix)
                if part.exists():
                    part.replace(aside.with_name(aside.name + suffix))
        except OSError as problem:
            self.usable = False
            self._warn(f"is damaged ({error}) and cannot be renamed ({problem}); going on without it")
        else:
            self._warn(f"is damaged ({error}); it was renamed to {aside.name} and begun anew")

    def _warn(self, what: str) -> None:
        warnings.warn(f"embedding cache {self.path} {what}", CacheWarning, stacklevel=5)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
