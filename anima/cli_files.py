"""What the command line reads and writes: replies, lines of JSON, results."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from anima.checks import require_text, unique_names
from anima.errors import DataError, InputError

if TYPE_CHECKING:
    from pathlib import Path


def show(out: Path | None, *parts: Any, width: int = 100) -> None:
    """Print to the terminal, or plain and of a fixed width to a file."""
    from rich.console import Console

    page = io.StringIO()
    (Console() if out is None else Console(file=page, width=width)).print(*parts, sep="\n")
    if out is not None:
        write_text(page.getvalue(), out)


def write_text(text: str, out: Path | None = None) -> None:
    """Write to a file, whose folder is made, or to standard output."""
    if out is None:
        typer.echo(text.encode(), nl=False)  # UTF-8 whatever the terminal's encoding: JSON is
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror})") from error


def write_json(value: dict[str, Any], out: Path | None = None) -> None:
    """Write a value as indented JSON."""
    write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", out)


def read_reply(text: str | None, file: Path | None) -> str:
    """Return a reply given as an argument, in a file, or on standard input."""
    if text is not None and text != "-":
        return decode(os.fsencode(text), "TEXT")  # the shell's bytes, whatever the locale made of them
    return read_text(file)[1]


def read_text(path: Path | None) -> tuple[str, str]:
    """Return name and text of a file, of standard input for None and "-"."""
    if path is not None and str(path) != "-":
        try:
            return str(path), decode(path.read_bytes(), str(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    if sys.stdin is None or (path is None and sys.stdin.isatty()):
        raise InputError(
            'nothing to analyse: give the reply as an argument, with --file, or on standard input, e.g. anima analyze "Great question!"'
        )
    return "standard input", decode(sys.stdin.buffer.read(), "standard input")


def decode(raw: bytes, name: str) -> str:
    """Return UTF-8 as text, without a byte-order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 at byte {error.start}; convert it, e.g. iconv -f latin1 -t utf-8") from None


def read_row(line: str, place: str, field: str) -> dict[str, Any]:
    """Return the object of a line, whose reply and question are texts."""
    try:
        row = json.loads(line, parse_constant=_no_constant, object_pairs_hook=unique_names)
    except json.JSONDecodeError as error:
        raise DataError(f"{place}: not JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not usable JSON ({error})") from None
    if not isinstance(row, dict) or not isinstance(row.get(field), str):
        raise DataError(f"{place}: must be an object with a string field {field!r}; name another field with --field")
    try:
        for key in {field, "question"} & row.keys():
            if row[key] is not None:
                require_text(row[key], f"field {key!r}")
    except InputError as error:
        raise DataError(f"{place}: {error}") from None
    return row


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON: write null")
