"""Scores as people bring them, read into one kind of table; and the mean with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from pydantic.alias_generators import to_snake

from anima.checks import require_columns, require_fraction, show
from anima.errors import InputError
from anima.stats.estimate import Estimate
from anima.stats.resampling import cluster_codes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from anima.stats.weighted import Floats

Table: TypeAlias = "pd.DataFrame | Iterable[Mapping[str, Any]]"


def read_table(
    data: Table | Mapping[Any, Any], columns: Sequence[str], name: str, *, aliases: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return a DataFrame with at least ``columns``, in snake_case.

    ``data`` is a DataFrame or mappings, with names in either spelling (``itemId`` or ``item_id``); for two columns also
    a mapping of the first to the second. ``name`` is the argument, for messages; ``aliases`` are other names of
    columns, in snake_case.
    """
    import pandas as pd

    if hasattr(data, "columns"):
        frame = cast("pd.DataFrame", data)
    elif isinstance(data, Mapping) and len(columns) == 2:
        frame = pd.DataFrame({columns[0]: list(data), columns[1]: list(data.values())})
    elif isinstance(data, Mapping | str) or not isinstance(data, Iterable):
        raise InputError(f"{name} must be a DataFrame or a list of mappings, got {type(data).__name__} {show(data)}")
    else:
        rows = list(data)
        odd = next((k for k, row in enumerate(rows) if not isinstance(row, Mapping)), None)
        if odd is not None:
            raise InputError(f"{name} item {odd} must be a mapping of {', '.join(columns)}, got {show(rows[odd])}")
        frame = pd.DataFrame(rows, columns=None if rows else list(columns))
    frame = frame.rename(columns={label: to_snake(str(label)) for label in frame.columns})
    frame = frame.rename(columns={old: new for old, new in (aliases or {}).items() if new not in frame.columns})
    require_columns(frame, columns, name)
    return frame.reset_index(drop=True)


def refuse_repeats(frame: pd.DataFrame, columns: list[str], name: str) -> None:
    """Raise :class:`InputError` at the first row that has the same ``columns`` as an earlier one."""
    twice = frame.duplicated(columns)
    if twice.any():
        row = frame[twice].iloc[0]
        which = ", ".join(f"{column} {show(row[column])}" for column in columns)
        raise InputError(f"{name} row {int(np.argmax(twice))} repeats {which}: keep one, or measure the repeats apart")


def require_same_ids(first: Iterable[Any], second: Iterable[Any], names: tuple[str, str]) -> None:
    """Raise :class:`InputError` where no item can match, because one side's ids are of another type, e.g. 1 and '1'."""
    mine, yours = (dict.fromkeys(ids) for ids in (first, second))
    kinds = [{"number" if isinstance(one, Real) else type(one).__name__ for one in ids} for ids in (mine, yours)]
    if mine and yours and not kinds[0] & kinds[1] and not mine.keys() & yours.keys():
        one, other = next(iter(mine)), next(iter(yours))
        raise InputError(
            f"{names[0]} and {names[1]} have no item in common: ids of {names[0]} are {type(one).__name__} (e.g. "
            f"{show(one)}) and those of {names[1]} {type(other).__name__} (e.g. {show(other)}); give both one type, "
            "e.g. str(id) on either side"
        )


def mean_estimate(
    values: Floats, name: str, *, level: float = 0.95, clusters: ArrayLike | None = None, n_dropped: int = 0
) -> Estimate:
    """Return a mean with its t interval and the p-value of a mean of 0; robust to clusters when they are given."""
    common: dict[str, Any] = {"level": require_fraction(level), "n": len(values), "n_dropped": n_dropped}
    if not len(values):
        return Estimate.undefined(name, "there are no data", **common)
    mean = float(values.mean())
    parts: Floats = values - mean
    method = "t"
    if clusters is not None:
        codes = cluster_codes(clusters, len(values))
        parts = np.asarray(np.bincount(codes, weights=parts), dtype=np.float64)
        common["n_clusters"], method = len(parts), "t, robust to clusters"
    units = len(parts)
    if units < 2:
        reason = f"one {'value' if clusters is None else 'cluster'} has no spread: no interval"
        return Estimate(name, mean, status="unreliable", reason=reason, **common)
    error = math.sqrt(units / (units - 1) * float((parts**2).sum())) / len(values)
    if error <= 1e-15 * abs(mean) or error == 0:
        return Estimate(name, mean, status="unreliable", reason="all values are equal: no interval", **common)
    return t_estimate(name, mean, error, units - 1, method=method, **common)


def t_estimate(name: str, value: float, error: float, df: float, *, level: float, **details: Any) -> Estimate:
    """Return a value with its t interval and the p-value of 0."""
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(df, (1 + level) / 2)) * error
    p = float(2 * stdtr(df, -abs(value) / error))
    return Estimate(name, value, value - half, value + half, level, p_value=p, **details)


def worst_items(
    complete: pd.DataFrame, judge: NDArray[np.float64], human: NDArray[np.float64], kind: str, n_worst: int
) -> pd.DataFrame:
    """Return the items with the largest distance; of nominal labels those that differ."""
    delta = np.abs(judge - human) if kind != "nominal" else (judge != human).astype(np.float64)
    order = np.argsort(-delta, kind="stable")[:n_worst]
    out = complete.loc[order, ["item", "judge", "human"]].assign(delta=delta[order])
    return out[out["delta"] > 0].reset_index(drop=True) if kind == "nominal" else out.reset_index(drop=True)
