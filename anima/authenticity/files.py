"""Files of JSON, read strictly: a fault is a :class:`~anima.errors.DataError` that names file, line and field."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, TypeGuard

from anima.checks import require_text, show
from anima.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def read_utf8(path: Path) -> str:
    """Return the text of a file, a byte order mark left out."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def parse_json(text: str, path: Path, line: int = 1) -> Any:
    """Return the value of ``text``, which begins at ``line`` of ``path``."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{line + error.lineno - 1}: not JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise DataError(f"{path}:{line}: not usable JSON ({error})") from None


def read_jsonl(path: Path, *, required: tuple[str, ...] = ()) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` for each non-blank line; ``required`` fields are there."""
    for number, line in enumerate(read_utf8(path).split("\n"), 1):
        if not line.strip():
            continue
        row = parse_json(line, path, number)
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: must be a JSON object, got {show(row)}")
        for name in required:
            if name not in row:
                raise DataError(f"{path}:{number}: field {name!r} is missing")
        yield number, row


def is_number(value: Any) -> TypeGuard[float]:
    """Tell whether ``value`` is a finite number and no truth value."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


class Fields:
    """Reads the fields of one JSON object, each as the kind it should be; an absent one, or null, is empty.

    Parameters
    ----------
    row, where
        The object and its place, for the messages.
    """

    def __init__(self, row: dict[str, Any], where: str) -> None:
        self._row, self._where = row, where

    def bad(self, name: str, wanted: str) -> DataError:
        """Return the error of a field that is not as ``wanted``."""
        return DataError(f"{self._where}: field {name!r} must be {wanted}, got {show(self._row.get(name))}")

    def text(self, name: str, *, blank: bool = True) -> str:
        """Return a string; with ``blank=False`` it is never empty."""
        value = self._row.get(name)
        if not blank and not (isinstance(value, str) and value):
            raise self.bad(name, "a non-empty string")
        if value is not None and not isinstance(value, str):
            raise self.bad(name, "a string")
        try:
            return require_text(value or "", f"field {name!r}")
        except InputError as error:  # half an emoji
            raise DataError(f"{self._where}: {error}") from None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self._row.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise self.bad(name, "a list of strings")
        return tuple(value or ())

    def number(self, name: str) -> float:
        """Return a finite number."""
        value = self._row.get(name)
        if value is not None and not is_number(value):
            raise self.bad(name, "a finite number")
        return float(value or 0.0)

    def choice(self, name: str, choices: Sequence[str]) -> str | None:
        """Return one of ``choices``, or None."""
        value = self.text(name)
        if value and value not in choices:
            raise self.bad(name, f"one of {', '.join(choices)} or null")
        return value or None
