"""A lock between processes and threads that dies with its holder."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Final

from anima.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MINE = threading.local()  # paths whose lock this thread holds
_PATIENCE: Final = 30.0  # seconds to wait for a lock that the system does not give back by itself

if sys.platform == "win32":
    import msvcrt

    def _acquire(handle: IO[bytes]) -> None:
        handle.seek(0)
        while True:
            try:
                return msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
            except OSError as error:
                if error.errno != errno.EDEADLOCK:  # which only says that ten seconds have passed
                    raise

    def _release(handle: IO[bytes]) -> None:
        handle.seek(0)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

    def sync_folder(folder: Path) -> None:
        """Do nothing: this system cannot sync folders."""

else:
    import fcntl

    def _acquire(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _release(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

    def sync_folder(folder: Path) -> None:
        """Return when the names in ``folder`` are on the disk."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of ``path``, a file beside it, against other processes and threads; it dies with its holder.

    A thread that holds it already goes on: what it checks and what it then writes can be one step.
    """
    mine: set[Path] = _MINE.__dict__.setdefault("paths", set())
    place = path.absolute()
    if place in mine:
        yield
        return
    with _locked(path.with_name(path.name + ".lock")):
        mine.add(place)
        try:
            yield
        finally:
            mine.discard(place)


@contextlib.contextmanager
def _locked(beside: Path) -> Iterator[None]:
    with beside.open("ab") as handle:
        try:
            _acquire(handle)
        except OSError:  # a file system without locks
            with _held(beside.with_name(beside.name + "-held")):
                yield
            return
        try:
            yield
        finally:
            _release(handle)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a lock that is the existence of a file."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            path.touch(exist_ok=False)
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise DataError(f"{path} stayed for {_PATIENCE:g} s: delete it if no process is writing") from None
            time.sleep(0.005)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked_for_reading(path: Path) -> Iterator[None]:
    """Hold the lock of ``path`` unless there is no such file, or its folder cannot be written: then nobody writes."""
    with contextlib.ExitStack() as stack:
        if path.exists() or path.with_name(path.name + ".lock").exists():
            try:
                stack.enter_context(locked(path))
            except OSError as error:
                if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
                    raise
        yield
