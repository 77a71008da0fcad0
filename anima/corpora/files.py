"""Reading and hashing the files of a corpus."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from anima.checks import unique_names
from anima.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def content_hash(data: bytes) -> str:
    """Return the SHA-256 of a file's content with line ends read as LF, which version control and wheels rewrite."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def tree_hash(files: Mapping[str, str]) -> str:
    """Return one SHA-256 for files given as path -> SHA-256; equal to hashing the sorted output of ``sha256sum``."""
    return hashlib.sha256("".join(f"{files[path]}  {path}\n" for path in sorted(files)).encode()).hexdigest()


class Files:
    """Reads the files of one folder and keeps their hashes, byte order marks and foreign line ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hashes: dict[str, str] = {}
        self.boms = 0
        self.crlf = 0

    def bytes(self, path: Path) -> bytes:
        """Return the content of a file and keep its hash."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}): fetch or copy it again") from error
        self.hashes[path.relative_to(self.folder).as_posix()] = content_hash(data)
        return data

    def text(self, path: Path) -> str:
        """Return the text of a UTF-8 file, with or without byte order mark, its line ends as LF.

        Raises
        ------
        DataError
            If it cannot be read, or is not UTF-8 throughout: the message names the line and the byte.
        """
        data = self.bytes(path)
        if b"\r\n" in data:
            self.crlf += 1
            data = data.replace(b"\r\n", b"\n")
        if data.startswith(b"\xef\xbb\xbf"):
            self.boms += 1
            data = data[3:]
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            line = data.count(b"\n", 0, error.start) + 1
            fix = "the file mixes encodings: re-encode that line (e.g. from Windows-1252) or fetch the corpus again"
            if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                fix = "the file is UTF-16: save it as UTF-8"
            raise DataError(
                f"{path}:{line}: byte 0x{data[error.start]:02x} at position {error.start - start} of the line is not UTF-8; {fix}"
            ) from None

    def json(self, path: Path) -> Any:
        """Return the value of a JSON file; a truncated or damaged one is named with line and column."""
        text = self.text(path)
        try:
            return json.loads(text, object_pairs_hook=unique_names)
        except (ValueError, RecursionError) as error:
            at = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            cut = isinstance(error, json.JSONDecodeError) and (
                error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")
            )
            why = "the file ends too early, as after a cut download" if cut or not text.strip() else str(error)
            raise DataError(f"{path}{at}: not a JSON file ({why}): fetch or copy it again") from None
