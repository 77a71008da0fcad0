"""The one home of input checks and of the wording of their errors."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from anima.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T", bound=str)
K = TypeVar("K")


def show(value: object, limit: int = 60) -> str:
    """Return a short, printable form of ``value`` for error messages."""
    if type(value).__module__ == "numpy" and not getattr(value, "shape", 1):
        value = value.item()  # type: ignore[attr-defined]  # a numpy scalar prints as np.int64(0)
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def require_text(value: object, name: str = "text", *, place: str = "") -> str:
    """Return ``value`` when it is a ``str`` that UTF-8 can encode; else raise :class:`InputError`.

    Lone surrogates are refused: no file or server could take the text.
    """
    if type(value) is str and value.isascii():
        return value
    where = f" ({place})" if place else ""
    if isinstance(value, bytes | bytearray):
        raise InputError(f"{name}{where} is bytes, not str: decode it first, e.g. {name}.decode('utf-8')")
    if value is None:
        raise InputError(f"{name}{where} is None: pass a str (an empty one gives an empty analysis)")
    if not isinstance(value, str):
        raise InputError(f"{name}{where} must be a str, got {type(value).__name__} {show(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name}{where} holds a lone surrogate {value[error.start]!a} at character {error.start}: "
            f"repair it, e.g. {name}.encode('utf-8', 'replace').decode('utf-8')"
        ) from None
    return value


def require_texts(values: object, name: str = "texts") -> list[str]:
    """Return ``values`` as a list of checked strings; a single string is refused because it is a likely slip."""
    if isinstance(values, str | bytes):
        raise InputError(f"{name} must be a list of str, got one {type(values).__name__}: write [{name}]")
    # A mapping or a frame would give its names, and a set its members in an order of its own.
    if not isinstance(values, Iterable) or isinstance(values, Mapping | Set) or hasattr(values, "columns"):
        raise InputError(f"{name} must be a list of str, got {type(values).__name__} {show(values)}")
    return [require_text(value, name, place=f"item {i}") for i, value in enumerate(values)]


def require_number(
    value: object,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return ``value`` as a finite float inside the bounds (inclusive unless opened)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a number, got {type(value).__name__} {show(value)}")
    number = float(value)
    inside = (number > low if open_low else number >= low) and (number < high if open_high else number <= high)
    if not math.isfinite(number) or not inside:
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise InputError(f"{name} must lie in {left}{low}, {high}{right}, got {number}")
    return number


def require_fraction(value: object, name: str = "level") -> float:
    """Return ``value`` as a float above 0 and below 1, as coverage levels and error rates must be."""
    return require_number(value, name, low=0, high=1, open_low=True, open_high=True)


def require_int(value: object, name: str, *, low: int | None = None, high: int | None = None) -> int:
    """Return ``value`` as an int inside the inclusive bounds."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be an integer, got {type(value).__name__} {show(value)}")
    number = int(value)
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
        raise InputError(f"{name} must be {bounds}, got {number}")
    return number


_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)(:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)", re.ASCII)


def require_instant(value: object, name: str) -> datetime:
    """Return an ISO-8601 time as a datetime in UTC, so that instants of several zones sort rightly.

    A time without a zone is refused: it would mean another instant on another machine. ``24:00:00`` is the next day.
    """
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match:
        day, hour, rest, zone = match.groups()
        midnight = hour == "24" and not re.search("[1-9]", rest)
        try:
            moment = datetime.fromisoformat(day + "T" + ("00" if midnight else hour) + rest + zone)
            return (moment + timedelta(days=midnight)).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise InputError(f"{name} must be an ISO-8601 time with a zone, e.g. 2026-01-05T10:00:00Z, got {show(value)}")


def require_choice(value: object, name: str, choices: Sequence[T]) -> T:
    """Return ``value`` when it is one of ``choices``."""
    for choice in choices:
        if value == choice and isinstance(value, str):
            return choice
    raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {show(value)}")


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these names and values, as ``object_pairs_hook`` of JSON, where the last of two would win."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} stands twice in one object: rename or remove one")
    return found


def require_bool(value: object, name: str) -> bool:
    """Return ``value`` when it is True or False; a word such as "false" would count as true."""
    if type(value) is bool or type(value).__name__ in {"bool_", "bool"}:
        return bool(value)
    raise InputError(f"{name} must be True or False, got {type(value).__name__} {show(value)}")


def require_instance(value: object, name: str, kind: type[K]) -> K:
    """Return ``value`` when it is a ``kind``."""
    if isinstance(value, kind):
        return value
    home = f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"
    raise InputError(f"{name} must be an {home}, got {type(value).__name__} {show(value)}")


def require_columns(frame: Any, columns: Sequence[str], name: str = "frame") -> None:
    """Raise :class:`InputError` naming the columns that ``frame`` lacks, or has twice."""
    if not hasattr(frame, "columns"):
        raise InputError(
            f"{name} must be a pandas DataFrame, got {type(frame).__name__}: write pandas.DataFrame({{...}})"
        )
    labels = list(frame.columns)  # of several levels: whole labels, because part of one is many columns
    for column in columns:
        if not isinstance(column, Hashable):
            kind = type(column).__name__
            raise InputError(
                f"a column of {name} is named by one label, got {kind} {show(column)}: pass the label alone"
            )
        if labels.count(column) > 1:
            raise InputError(f"{name} has more than one column {column!r}: rename all but one")
    missing = [column for column in columns if column not in labels]
    if missing:
        raise InputError(
            f"{name} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, labels))}"
        )


def to_array(values: object, name: str) -> NDArray[Any]:
    """Return ``values`` as a numpy array; rows of several lengths are refused."""
    import numpy as np

    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} must have one axis, got {show(values)} with rows of several lengths: give one value per item"
        ) from None


def require_floats(values: object, name: str) -> NDArray[np.float64]:
    """Return ``values`` as a new 1-d float array; None, NA and infinities become NaN (missing).

    Text is refused, also text that looks like numbers: '10' sorts before '2'. So are times and complex numbers.
    """
    import numpy as np

    raw: Any = values
    if hasattr(raw, "to_numpy") and getattr(getattr(raw, "dtype", None), "kind", "") in set("biuf"):
        raw = raw.to_numpy(dtype="float64", na_value=np.nan)
    array = to_array(raw, name)
    if array.ndim != 1:
        raise InputError(f"{name} must have one axis, got shape {array.shape}")
    if array.dtype.kind == "O":
        array = np.array([np.nan if _missing(item) else item for item in array], dtype=object)
        bad = next((i for i, item in enumerate(array) if not isinstance(item, Real | np.bool_)), None)
        if bad is not None:
            raise InputError(f"{name} item {bad} must be a number, got {show(array[bad])}: convert it first")
    elif array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers, got {array.dtype}: {_CURES.get(array.dtype.kind, _CURES['U'])}")
    try:
        numbers = array.astype(np.float64)
    except OverflowError:  # an integer beyond every float
        raise InputError(f"{name} holds an integer that no float can: divide by a unit first") from None
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def require_array(values: object, name: str) -> NDArray[np.float64]:
    """Return ``values`` as a float array of its own shape; anything that is no number is refused, infinities stay."""
    import numpy as np

    try:
        array = np.asarray(values)
        if array.dtype.kind in "USMmc" or any(
            isinstance(item, str | bytes) for item in (array.ravel() if array.dtype.kind == "O" else ())
        ):
            raise TypeError("text, times or complex numbers")
        return array.astype(np.float64)
    except OverflowError:  # an integer beyond every float
        raise InputError(f"{name} holds an integer that no float can: divide by a unit first") from None
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers, got {show(values)}: convert them first") from None


def _missing(value: object) -> bool:
    """Return whether a scalar stands for a missing value: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return getattr(value, "shape", ()) == () and bool(value != value)  # arrays are no scalars and have no one answer


_CURES = {
    "U": "convert them first, e.g. with pandas.to_numeric",
    "M": "times are no scores, take a difference to one of them in a unit first",
    "m": "divide by a unit first, e.g. pandas.Timedelta('1h')",
    "c": "take the real part or the modulus first",
}  # what to do about a kind of dtype
