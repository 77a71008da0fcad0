"""What a detector is: texts and labels in, margins, decisions and reasons out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from anima.checks import require_bool, require_choice, require_columns, require_text, show
from anima.detectors.texts import Texts, aligned
from anima.errors import InputError
from anima.stats import Presentable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from anima.stats.weighted import Flags, Floats

    #: What counted, of which kind, and by how much.
    Part = tuple[str, str, float]


def label_frame(
    labels: pd.DataFrame | pd.Series[Any] | Sequence[str],
    frame: pd.DataFrame | None = None,
    *,
    exclusive: bool | None = None,
) -> pd.DataFrame:
    """Return labels as a table with one column of True and False per label.

    Parameters
    ----------
    labels
        Such a table; a Series with one class per row; or the names of columns of ``frame``: of several with True and
        False, or of one with classes.
    frame
        The rows that are labelled; labels with another order of its index are put in its order.
    exclusive
        Whether each row has exactly one label, so that detectors choose the best instead of deciding label by label.
        None: what ``labels.attrs["exclusive"]`` says, else whether it is so in all rows. Kept in ``attrs``.

    Raises
    ------
    InputError
        If a column holds anything but True and False, or ``exclusive`` does not fit the rows.
    """
    if exclusive is not None:
        require_bool(exclusive, "exclusive")
    if not isinstance(labels, pd.DataFrame | pd.Series):
        if not isinstance(labels, Iterable):
            raise InputError(f"labels must be a table, a Series or names of columns, got {show(labels)}")
        names = [labels] if isinstance(labels, str) else list(labels)
        if frame is None:
            raise InputError(f"labels must be a table of True and False, got {show(labels)}")
        require_columns(frame, names)
        labels = frame[names[0]] if len(names) == 1 and frame[names[0]].dtype != bool else frame[names]
    if isinstance(labels, pd.Series):
        if labels.isna().any():
            raise InputError(f"labels has no class in row {labels.index[labels.isna()][0]!r}: leave the row out")
        labels, exclusive = pd.get_dummies(labels, dtype=bool), True
    require_columns(labels, list(labels.columns), "labels")
    if not labels.shape[1]:
        raise InputError("labels has no column: name one label at least")
    for name in labels.columns:
        if labels[name].dtype != bool:
            raise InputError(f"labels: column {name!r} must hold True and False only, got {labels[name].dtype}")
    counts = labels.to_numpy().sum(axis=1)
    single = labels.shape[1] > 1 and bool((counts == 1).all())
    wanted = labels.attrs.get("exclusive", single) if exclusive is None else exclusive
    if wanted and not single:
        row = labels.index[int((counts != 1).argmax())] if len(labels) else "(none)"
        raise InputError(
            f"labels are said to exclude each other, but row {row!r} has not exactly one: set exclusive=False"
        )
    table: pd.DataFrame = aligned(labels.rename(columns=str), frame, "labels", "frame")
    table.attrs["exclusive"] = bool(wanted)
    return table


@dataclass(frozen=True, eq=False)
class Explanation(Presentable):
    """Why a detector gave a text its score.

    Attributes
    ----------
    score
        The margin, see :meth:`Detector.scores`.
    parts
        One row for everything that counted: ``feature``, ``kind``, ``contribution``; the contributions add up to the
        score (``tests/detectors/test_heads.py``). Largest first.
    """

    detector: str
    label: str
    score: float
    parts: pd.DataFrame
    tables: ClassVar[tuple[str, ...]] = ("parts",)

    def summary(self) -> str:
        """Return one sentence."""
        first = ", ".join(f"{row.feature!r} {row.contribution:+.2f}" for row in self.parts.head(3).itertuples())
        return f"{self.detector} gives {self.label} a margin of {self.score:+.2f}: {first}."

    def to_frame(self) -> pd.DataFrame:
        """Return the parts."""
        return self.parts


class Detector(ABC):
    """Tells labels of texts. Subclasses write three hooks; ``fit`` returns the detector itself.

    After ``fit``: ``labels``, their names; ``exclusive``, whether exactly one holds for each text.
    """

    name: str
    labels: tuple[str, ...] = ()
    exclusive: bool = False

    def fit(self, texts: Sequence[str], labels: pd.DataFrame, *, groups: ArrayLike | None = None) -> Self:
        """Learn from labelled texts.

        Parameters
        ----------
        texts
            Strings, or :class:`Texts`, which share features between detectors.
        labels
            See :func:`label_frame`. If ``texts`` is a Series, rows belong together by index.
        groups
            Dialogue of each text, if ``texts`` does not know it: what is tuned is tuned on whole dialogues.
        """
        known = Texts.of(texts, groups)
        table = aligned(label_frame(labels), texts, "labels")
        if len(known) != len(table) or not len(known):
            raise InputError(f"texts and labels must have the same rows, got {len(known)} and {len(table)}")
        self.labels, self.exclusive = tuple(table.columns), table.attrs["exclusive"]
        self._fit(known, table.to_numpy())
        return self

    def scores(self, texts: Sequence[str]) -> pd.DataFrame:
        """Return margins, one column per label: higher is likelier.

        A label holds where its margin is at least 0; where labels exclude each other, the one with the largest margin.
        """
        return self._table(texts, self._checked_scores(texts))

    def predict(self, texts: Sequence[str]) -> pd.DataFrame:
        """Return True and False, one column per label."""
        return self._table(texts, decide(self._checked_scores(texts), self.exclusive))

    def explain(self, text: str | Texts, label: str) -> Explanation:
        """Return what the margin of a label is made of. A text with context is a :class:`Texts` of one."""
        one = text if isinstance(text, Texts) else Texts([require_text(text)])
        if len(one) != 1:
            raise InputError(f"text must be one text, got {len(one)}")
        score = float(self._checked_scores(one)[0, place := self._place(label)])
        parts = pd.DataFrame(self._parts(one, place), columns=["feature", "kind", "contribution"])
        order = parts["contribution"].abs().sort_values(ascending=False, kind="stable").index
        return Explanation(self.name, label, score, parts.loc[order].reset_index(drop=True))

    @abstractmethod
    def _fit(self, texts: Texts, truth: Flags) -> None: ...

    @abstractmethod
    def _scores(self, texts: Texts) -> Floats: ...

    @abstractmethod
    def _parts(self, text: Texts, place: int) -> list[Part]: ...

    def _place(self, label: str) -> int:
        return self.labels.index(require_choice(label, "label", self.labels))

    def _checked_scores(self, texts: Sequence[str]) -> Floats:
        if not self.labels:
            raise InputError(f"{self.name} knows no labels yet: call fit(texts, labels) first")
        known = Texts.of(texts)
        return self._scores(known) if len(known) else np.zeros((0, len(self.labels)))

    def _table(self, texts: Sequence[str], values: NDArray[Any]) -> pd.DataFrame:
        index = getattr(texts, "index", None) if hasattr(texts, "to_numpy") else None  # a Series keeps its own
        table = pd.DataFrame(values, columns=list(self.labels), index=index)
        table.attrs["exclusive"] = self.exclusive
        return table

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {len(self.labels)} labels>"


def decide(scores: Floats, exclusive: bool) -> Flags:
    """Return which labels hold, given margins ``(n, labels)``."""
    if not exclusive:
        return np.asarray(scores >= 0)
    return np.asarray(np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None])
