"""How much a detector gains from more labelled dialogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anima.checks import require_int
from anima.detectors.crossval import CrossValidation, held_out, named, prepared
from anima.errors import InputError
from anima.stats import Estimate, Presentable
from anima.stats.folds import grouped_folds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from anima.detectors.base import Detector
    from anima.embedding.base import Embedder


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
    embedder: str | Embedder | None = None,
    text: str = "text",
    exclusive: bool | None = None,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> LearningCurve:
    """Return how detectors score when each fold trains on some of its dialogues only.

    Parameters
    ----------
    detectors, frame, labels, groups, folds, seed, embedder, text, exclusive, n_resamples, level
        As for :func:`anima.detectors.cross_validate`; the folds are the same, so that the full size gives its numbers.
    sizes
        Numbers of training dialogues; smaller ones are parts of larger ones. None: an eighth, a quarter, a half, all.
    """
    import pandas as pd

    runners = named(detectors)
    known, truth, is_exclusive = prepared(frame, labels, groups, text, embedder, exclusive)
    fold = grouped_folds(frame[groups].to_numpy(), folds, seed=seed)
    n_groups = int(known.groups.max()) + 1
    fewest = n_groups - int(np.bincount(pd.DataFrame({"g": known.groups, "f": fold}).drop_duplicates()["f"]).max())
    wanted = sorted({max(2, fewest // part) for part in (8, 4, 2, 1)}) if sizes is None else sorted(set(sizes))
    for size in wanted:
        if require_int(size, "sizes", low=1) > fewest:
            raise InputError(f"sizes holds {size}, more than the {fewest} groups that a fold trains on")
    place = np.random.default_rng([seed, 1]).permutation(n_groups)  # the order in which dialogues are added
    rows = pd.DataFrame({"id": np.arange(len(frame)), "group": frame[groups].to_numpy(), "fold": fold})
    found, scores, keys = {}, {}, {}
    for detector in runners:
        for size in wanted:
            train = np.zeros((folds, len(frame)), dtype=bool)
            for k in range(folds):
                others = np.unique(known.groups[fold != k])
                train[k] = np.isin(known.groups, others[np.argsort(place[others])[:size]])
            name = f"{detector.name}, {size} dialogues"
            scores[name], found[name] = held_out(detector, known, truth, fold, train)
            keys[name] = (detector.name, size, float(train.sum(axis=1).mean()))
    board = CrossValidation(
        tuple(truth.columns), is_exclusive, rows, truth.to_numpy(), found, scores, seed, n_resamples, level
    ).macro()
    points = []
    for name, (detector_name, size, texts) in keys.items():
        f1, kappa = board[f"macro-F1, {name}"], board[f"macro-kappa, {name}"]
        points.append(
            {
                "detector": detector_name,
                "dialogues": size,
                "texts": texts,
                "f1": f1.value,
                "low": f1.low,
                "high": f1.high,
                "kappa": kappa.value,
            }
        )
    return LearningCurve(pd.DataFrame(points), tuple(board[f"macro-F1, {name}"] for name in keys))
