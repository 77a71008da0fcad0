"""One number with everything needed to judge it, and what every result of several numbers can do."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from anima.checks import require_fraction
from anima.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["ok", "undefined", "unreliable"]

_COLUMNS = (
    "name", "value", "low", "high", "level", "p_value", "n", "n_dropped", "n_clusters", "n_resamples", "n_undefined",
    "method", "seed", "status", "reason",
)  # fmt: skip


class Presentable:
    """What every result can do; a dataclass adds its fields, ``summary()``, and what it shows besides its estimates.

    ``also`` names properties that belong in :meth:`to_dict`, ``tables`` the fields that the page of a notebook shows.
    """

    also: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[str, ...]] = ()

    def summary(self) -> str:
        """Return one sentence."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; NaN and infinities become None."""
        return {key: json_ready(getattr(self, key)) for key in (*vars(self), *self.also)}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per estimate; of a result without estimates one row of its fields."""
        import pandas as pd

        return estimates_frame(rows) if (rows := self._rows()) else pd.DataFrame([vars(self)])

    def plot(self, **options: Any) -> Any:
        """Draw the estimates (an Altair chart); options as in :func:`plot_estimates`."""
        if not (rows := self._rows()):
            raise InputError(f"{type(self).__name__} has no estimates to draw")
        return plot_estimates(rows, **options)

    def __str__(self) -> str:
        return self.summary()

    def _rows(self) -> list[Estimate]:
        return [value for value in vars(self).values() if isinstance(value, Estimate)]

    def _repr_html_(self) -> str:
        tables = [getattr(self, name).round(4).to_html(index=False) for name in self.tables if len(getattr(self, name))]
        rows = self._rows()
        return "".join([f"<p>{html.escape(self.summary())}</p>", _estimates_html(rows) if rows else "", *tables])


@dataclass(frozen=True)
class Estimate(Presentable):
    """A number that estimates something, with its interval and its accounting.

    Parameters
    ----------
    name
        What is estimated, as a reader would say it, e.g. ``"Cohen's kappa"``.
    value, low, high
        Point estimate and interval; NaN where undefined.
    level
        Coverage the interval aims at.
    method
        How the interval was made, e.g. ``"Fisher z"`` or ``"percentile bootstrap by cluster"``.
    n, n_dropped
        Units used, and units left out because a value was missing.
    n_clusters
        Independent clusters among the units; None when each unit stands alone.
    n_resamples, n_undefined
        Resamples drawn, and those for which the statistic was undefined (they are counted, never replaced).
    seed
        Seed of the resampling; None when nothing was drawn or a generator was handed in.
    p_value
        Two-sided, of the null hypothesis that ``method`` or ``extra`` names; NaN when not computed.
    status
        ``"ok"``; ``"undefined"`` (value is NaN); ``"unreliable"`` (there is a value, but its interval is undefined or
        should not be leaned on).
    reason
        Why the status is not ``"ok"``; with ``"ok"`` a remark worth reading, or empty.
    extra
        Numbers that belong beside this one, such as base rates beside a kappa.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    method: str = ""
    n: int = 0
    n_dropped: int = 0
    n_clusters: int | None = None
    n_resamples: int = 0
    n_undefined: int = 0
    seed: int | None = None
    p_value: float = math.nan
    status: Status = "ok"
    reason: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        require_fraction(self.level)
        for key in ("value", "low", "high", "level", "p_value"):  # numpy scalars would leak into JSON and reprs
            object.__setattr__(self, key, float(getattr(self, key)))
        if math.isnan(self.value) != (self.status == "undefined"):
            raise InputError(
                f"Estimate {self.name!r}: value {self.value} does not go with status {self.status!r}; "
                "NaN and 'undefined' belong together, use Estimate.undefined(name, reason)"
            )
        if self.status != "ok" and not self.reason:
            raise InputError(f"Estimate {self.name!r}: status {self.status!r} needs a reason")

    @classmethod
    def undefined(cls, name: str, reason: str, **details: Any) -> Estimate:
        """Return an estimate without a value; ``reason`` says what the data lack."""
        return cls(name, math.nan, status="undefined", reason=reason, **details)

    @classmethod
    def noted(cls, name: str, value: float, low: float, high: float, notes: Iterable[str], **details: Any) -> Estimate:
        """Return an estimate that is unreliable if there is a note."""
        reason = "; ".join(note for note in notes if note)
        return cls(name, value, low, high, status="unreliable" if reason else "ok", reason=reason, **details)

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return self.status != "undefined"

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are numbers."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def renamed(self, name: str) -> Estimate:
        """Return the same estimate under another name."""
        return replace(self, name=name)

    def summary(self) -> str:
        """Return one sentence."""
        losses = f", {self.n_dropped} dropped" if self.n_dropped else ""
        groups = f" in {self.n_clusters} clusters" if self.n_clusters is not None else ""
        if not self.defined:
            return f"{self.name} is undefined (n = {self.n}{groups}{losses}): {self.reason}."
        text = f"{self.name} = {_number(self.value)}"
        details = [f"n = {self.n}{groups}{losses}"]
        if self.has_interval:
            text += f", {self.level * 100:g}% interval {_number(self.low)} to {_number(self.high)}"
            details.insert(0, self.method)
        if not math.isnan(self.p_value):
            text += f", p = {self.p_value:.3g}"
        if self.n_undefined:
            details.append(f"{self.n_undefined} of {self.n_resamples} resamples undefined")
        text += f" ({'; '.join(part for part in details if part)})"
        unreliable = "unreliable: " if self.status == "unreliable" else ""
        return f"{text}; {unreliable}{self.reason}." if self.reason else f"{text}."

    def _rows(self) -> list[Estimate]:
        return [self]


def estimates_frame(estimates: Iterable[Estimate]) -> pd.DataFrame:
    """Return one row per estimate, undefined ones included; scalars of their ``extra`` become further columns."""
    import pandas as pd

    rows = []
    for estimate in estimates:
        row = {column: getattr(estimate, column) for column in _COLUMNS}
        row.update((key, value) for key, value in estimate.extra.items() if isinstance(value, int | float | str))
        rows.append(row)
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(_COLUMNS))


def plot_estimates(estimates: Iterable[Estimate], *, reference: float | None = 0.0, title: str = "") -> Any:
    """Draw estimates under one another with their intervals (an Altair chart); undefined ones keep an empty line.

    ``reference`` is the value at which a grey rule is drawn (no effect, chance); None for none.
    """
    import altair as alt
    import pandas as pd

    from anima.plots import MUTED

    frame = estimates_frame(estimates)[["name", "value", "low", "high", "n", "status"]]
    base = alt.Chart(frame).encode(y=alt.Y("name:N", sort=None, title=None))
    layers = [
        base.mark_rule().encode(x=alt.X("low:Q", title="estimate and interval"), x2="high:Q"),
        base.mark_point(filled=True, size=60).encode(x="value:Q", color=alt.Color("status:N", legend=None)),
    ]
    if reference is not None:
        rule = alt.Chart(pd.DataFrame({"x": [reference]})).mark_rule(color=MUTED, strokeDash=[4, 3])
        layers.insert(0, rule.encode(x="x:Q"))
    return alt.layer(*layers).properties(title=title)


def _estimates_html(estimates: Iterable[Estimate]) -> str:
    """Return a small table for notebooks: every text is escaped, no styles are needed."""
    head = "".join(f"<th>{text}</th>" for text in ("", "estimate", "interval", "n", "method", "status"))
    body = []
    for item in estimates:
        interval = f"{_number(item.low)} to {_number(item.high)} ({item.level * 100:g}%)" if item.has_interval else "–"
        status = item.status + (f": {item.reason}" if item.reason else "")
        cells = (item.name, _number(item.value), interval, str(item.n), item.method, status)
        body.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"


def json_ready(value: Any) -> Any:
    """Return ``value`` made plain: results and tables as dicts and records, numpy as lists, non-finite floats None."""
    if hasattr(value, "columns"):
        value = value.to_dict("records")
    elif hasattr(value, "to_dict"):
        value = value.to_dict()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    elif is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
