"""How much a detector gains from more labelled dialogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from anima.checks import require_columns, require_int
from anima.detectors.base import Detector
from anima.detectors.crossval import cross_validate, named
from anima.errors import InputError
from anima.stats import Estimate, Presentable, grouped_folds
from anima.stats.resampling import cluster_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from anima.detectors.base import Part
    from anima.detectors.texts import Texts
    from anima.stats.weighted import Flags, Floats


@dataclass(frozen=True, eq=False)
class LearningCurve(Presentable):
    """Held-out macro-F1 by the number of training dialogues.

    Attributes
    ----------
    points
        One row per detector and size: ``detector``, ``dialogues`` (trained on in each fold), ``texts`` (their mean
        number), ``f1, low, high, kappa``.
    estimates
        The same as estimates: macro-F1 of each point.
    """

    points: pd.DataFrame
    estimates: tuple[Estimate, ...]
    tables: ClassVar[tuple[str, ...]] = ("points",)

    def summary(self) -> str:
        """Return one sentence."""
        lines = []
        for name, rows in self.points.groupby("detector", sort=False):
            first, last = rows.iloc[0], rows.iloc[-1]
            lines.append(f"{name} {first.f1:.3f} at {first.dialogues} to {last.f1:.3f} at {last.dialogues}")
        return f"Macro-F1 by training dialogues: {'; '.join(lines)}."

    def to_frame(self) -> pd.DataFrame:
        """Return the points."""
        return self.points

    def plot(self, **options: Any) -> Any:
        """Draw the curves with their intervals (an Altair chart); ``options`` are properties of the chart."""
        import altair as alt

        base = alt.Chart(self.points).encode(
            x=alt.X("dialogues:Q", title="training dialogues", scale=alt.Scale(type="log")), color="detector:N"
        )
        band = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title="macro-F1, held out"), y2="high:Q")
        return alt.layer(band, base.mark_line(point=True).encode(y="f1:Q")).properties(**options)


def learning_curve(
    detectors: Iterable[Detector],
    frame: pd.DataFrame,
    labels: pd.DataFrame | pd.Series[Any] | str | Sequence[str],
    *,
    sizes: Sequence[int] | None = None,
    groups: str = "dialogue_id",
    folds: int = 5,
    seed: int = 0,
    **options: Any,
) -> LearningCurve:
    """Return how detectors score when each fold trains on some of its dialogues only.

    Parameters
    ----------
    detectors, frame, labels, groups, folds, seed, options
        As for :func:`anima.detectors.cross_validate`; the folds are the same, so that the full size gives its numbers.
    sizes
        Numbers of training dialogues; smaller ones are parts of larger ones. None: an eighth, a quarter, a half, all.
    """
    runners = named(detectors)
    require_columns(frame, [groups])
    codes = cluster_codes(frame[groups], len(frame), groups)
    fold = grouped_folds(frame[groups].to_numpy(), folds, seed=seed)
    n_groups = int(codes.max()) + 1
    fewest = n_groups - max(len(np.unique(codes[fold == k])) for k in range(folds))
    wanted = sorted({max(2, fewest // part) for part in (8, 4, 2, 1)} if sizes is None else set(sizes))
    for size in wanted:
        if require_int(size, "sizes", low=1) > fewest:
            raise InputError(f"sizes holds {size}, more than the {fewest} groups that a fold trains on")
    place = np.random.default_rng([seed, 1]).permutation(n_groups)  # the order in which dialogues are added
    parts = [_Part(detector, size, place) for detector in runners for size in wanted]
    board = cross_validate(parts, frame, labels, groups=groups, folds=folds, seed=seed, **options).macro()
    points, estimates = [], []
    for part in parts:
        texts = np.mean([part.chosen(codes[fold != k]).sum() for k in range(folds)])
        f1, kappa = board[f"macro-F1, {part.name}"], board[f"macro-kappa, {part.name}"]
        points.append((part.whole.name, part.size, texts, f1.value, f1.low, f1.high, kappa.value))
        estimates.append(f1)
    columns = ["detector", "dialogues", "texts", "f1", "low", "high", "kappa"]
    return LearningCurve(pd.DataFrame(points, columns=columns), tuple(estimates))


class _Part(Detector):
    """A detector that trains on the first ``size`` of the dialogues it is given, by their ``place`` in a fixed order."""

    def __init__(self, whole: Detector, size: int, place: NDArray[np.intp]) -> None:
        self.name = f"{whole.name}, {size} dialogues"
        self.whole, self.size, self.place = whole, size, place

    def chosen(self, codes: NDArray[np.intp]) -> Flags:
        """Return which of the texts with these codes of dialogues are trained on."""
        found = np.unique(codes)
        return np.isin(codes, found[np.argsort(self.place[found])[: self.size]])

    def _fit(self, texts: Texts, truth: Flags) -> None:
        rows = np.flatnonzero(self.chosen(texts.groups))
        # Which labels hold in a part says nothing of whether they exclude each other.
        self.whole.labels, self.whole.exclusive = self.labels, self.exclusive
        self.whole._fit(texts.take(rows), truth[rows])

    def _scores(self, texts: Texts) -> Floats:
        return self.whole._scores(texts)

    def _parts(self, text: Texts, place: int) -> list[Part]:
        return self.whole._parts(text, place)
