"""What detectors are worth on dialogues they did not see: held-out predictions, and numbers with intervals by dialogue.

Every detector sees the same folds, and every interval the same resamples of dialogues, so that differences between
detectors are paired.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from anima.checks import require_choice, require_columns, require_fraction, require_int, show
from anima.detectors.base import Detector, decide, label_frame
from anima.detectors.texts import CONTEXT, Texts
from anima.errors import InputError
from anima.stats import Estimate, Presentable, confusion_terms, estimates_frame, json_ready
from anima.stats.folds import grouped_folds
from anima.stats.resampling import estimate_from_distribution, resample_counts, sum_by_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from anima.embedding.base import Embedder
    from anima.stats.weighted import Flags, Floats

Statistic = Literal["precision", "recall", "f1", "kappa"]

STATISTICS: Final[tuple[Statistic, ...]] = ("precision", "recall", "f1", "kappa")
_NAMES: Final = {"precision": "precision", "recall": "recall", "f1": "F1", "kappa": "kappa"}
_REASONS: Final = {
    "precision": "the label is never predicted",
    "recall": "the label does not occur",
    "f1": "the label neither occurs nor is predicted",
    "kappa": "the label always holds or never, in truth and prediction alike",
}


@dataclass(frozen=True)
class Scoreboard(Presentable):
    """Estimates of detectors; ``detector``, ``label``, ``statistic``, ``support`` and ``predicted`` stand in ``extra``."""

    title: str
    estimates: tuple[Estimate, ...]

    def summary(self) -> str:
        """Return one sentence."""
        best = max((e for e in self.estimates if e.defined), key=lambda e: e.value, default=None)
        told = f"; highest, {best.summary()}" if best else ", none defined."
        return f"{self.title}: {len(self.estimates)} estimates{told}"

    def __getitem__(self, name: str) -> Estimate:
        known = {estimate.name: estimate for estimate in self.estimates}
        if name not in known:
            raise InputError(f"{self.title} has no {name!r}; it has {', '.join(map(repr, list(known)[:8]))} …")
        return known[name]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per estimate, what it is about first."""
        frame = estimates_frame(self.estimates)
        first = [name for name in ("detector", "label", "statistic", "support", "predicted") if name in frame]
        return frame[[*first, *(name for name in frame.columns if name not in first and name != "name")]]

    def _rows(self) -> list[Estimate]:
        return list(self.estimates)


@dataclass(frozen=True, eq=False)
class CrossValidation(Presentable):
    """Held-out predictions of detectors.

    Attributes
    ----------
    labels, exclusive
        Names of the labels, and whether exactly one holds for each text.
    rows
        One row per text: ``id``, ``group``, ``fold``.
    truth
        ``(n, labels)``.
    predicted, scores
        For each detector ``(n, labels)``: decisions and margins, both of the fold that held the text out.
    seed, n_resamples, level
        Of folds and resamples; coverage of the intervals.
    """

    labels: tuple[str, ...]
    exclusive: bool
    rows: pd.DataFrame = field(repr=False)
    truth: Flags = field(repr=False)
    predicted: dict[str, Flags] = field(repr=False)
    scores: dict[str, Floats] = field(repr=False)
    seed: int
    n_resamples: int
    level: float

    @property
    def detectors(self) -> tuple[str, ...]:
        """Names of the detectors."""
        return tuple(self.predicted)

    @cached_property
    def _sums(self) -> tuple[Floats, Floats, int]:
        """Confusion counts ``(detectors, labels, 4)``, those of all resamples ``(m, detectors, labels, 4)``, and units."""
        shape = (len(self.predicted), len(self.labels), 4)
        cells = [
            confusion_terms(self.truth[:, j].astype(int), found[:, j].astype(int), 2)
            for found in self.predicted.values()
            for j in range(len(self.labels))
        ]
        table = sum_by_cluster(np.hstack(cells), pd.factorize(self.rows["group"])[0])
        blocks = resample_counts(len(table), self.n_resamples, self.seed)
        drawn = np.concatenate([counts @ table for counts in blocks])
        return table.sum(axis=0).reshape(shape), drawn.reshape(-1, *shape), len(table)

    def per_class(self, detectors: str | Sequence[str] | None = None) -> Scoreboard:
        """Return precision, recall, F1 and kappa of each label, for some detectors or all.

        Points equal ``sklearn.metrics.precision_recall_fscore_support`` and ``cohen_kappa_score`` (label against rest)
        of the pooled held-out predictions; where those say 0 for want of a denominator, these are undefined.
        """
        whole, drawn, units = self._sums
        names = self.detectors if detectors is None else (detectors,) if isinstance(detectors, str) else detectors
        out = []
        for d in map(self._place, names):
            for j, label in enumerate(self.labels):
                cells = whole[d, j]
                for which in STATISTICS:
                    extra = {
                        "detector": self.detectors[d], "label": label, "statistic": which,
                        "support": int(cells[2:].sum()), "predicted": int(cells[[1, 3]].sum()),
                    }  # fmt: skip
                    name = f"{_NAMES[which]} of {label}, {self.detectors[d]}"
                    out.append(self._estimate(name, _value(which, cells), _value(which, drawn[:, d, j]), which, extra))
        return Scoreboard(f"Held out by group ({units} groups), label by label", tuple(out))

    def macro(self) -> Scoreboard:
        """Return macro-F1 and macro-kappa (means over labels, each label against the rest) of each detector."""
        estimates = [self._macro(name, which) for name in self.detectors for which in ("f1", "kappa")]
        title = f"Held out by group ({self._sums[2]} groups), mean of {len(self.labels)} labels"
        return Scoreboard(title, tuple(estimates))

    def difference(self, a: str, b: str, statistic: Statistic = "f1", label: str | None = None) -> Estimate:
        """Return how much detector ``a`` is better than ``b`` on the same resamples: of one label, or the mean of all."""
        which = require_choice(statistic, "statistic", STATISTICS)
        one, two = self._place(a), self._place(b)
        whole, drawn, _ = self._sums
        chosen = slice(None) if label is None else [self.labels.index(require_choice(label, "label", self.labels))]
        value, spread = (_value(which, s[..., chosen, :]).mean(axis=-1) for s in (whole, drawn))
        of = f" of {label}" if label is not None else ""
        name = f"{'macro-' if label is None else ''}{_NAMES[which]}{of}, {a} less {b}"
        extra = {"detector": a, "baseline": b, "label": label or "", "statistic": which}
        return self._estimate(name, value[one] - value[two], spread[:, one] - spread[:, two], which, extra)

    def errors(self, detector: str, label: str) -> pd.DataFrame:
        """Return the texts where a detector is wrong about a label, by id, the most confident error first.

        Columns: ``id, group, fold, error`` ("false alarm" or "miss"), ``margin``. No text: that is for the corpus.
        """
        name, j = self.detectors[self._place(detector)], self.labels.index(require_choice(label, "label", self.labels))
        found, margin = self.predicted[name][:, j], self.scores[name][:, j]
        wrong = np.flatnonzero(found != self.truth[:, j])
        order = wrong[np.argsort(-np.abs(margin[wrong]), kind="stable")]
        frame = self.rows.assign(error=np.where(found, "false alarm", "miss"), margin=margin)
        return frame.iloc[order].reset_index(drop=True)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per detector and label: the four numbers side by side, and the interval of F1."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for item in self.per_class().estimates:
            about = dict(item.extra)
            which = about.pop("statistic")
            row = rows.setdefault((about["detector"], about["label"]), about)
            row[which] = item.value
            if which == "f1":
                row |= {"f1_low": item.low, "f1_high": item.high}
        return pd.DataFrame(list(rows.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return set-up and numbers, JSON-ready; not the predictions."""
        report = {
            "labels": self.labels, "exclusive": self.exclusive, "n": len(self.rows), "n_groups": self._sums[2],
            "folds": int(self.rows["fold"].max()) + 1, "seed": self.seed, "n_resamples": self.n_resamples,
            "macro": self.macro().estimates, "per_class": self.per_class().estimates,
        }  # fmt: skip
        return dict(json_ready(report))

    def summary(self) -> str:
        """Return one sentence."""
        best = max(self._rows(), key=lambda estimate: -np.inf if not estimate.defined else estimate.value)
        return (
            f"{len(self.detectors)} detectors of {len(self.labels)} labels on {len(self.rows):,} texts in {self._sums[2]} "
            f"groups, {int(self.rows['fold'].max()) + 1} folds: best, {best.summary()}"
        )

    def _rows(self) -> list[Estimate]:
        return [self._macro(name, "f1") for name in self.detectors]

    def _macro(self, name: str, which: Statistic) -> Estimate:
        whole, drawn, _ = self._sums
        d = self._place(name)
        extra = {"detector": name, "statistic": which}
        values = _value(which, whole[d]).mean(), _value(which, drawn[:, d]).mean(axis=-1)
        return self._estimate(f"macro-{_NAMES[which]}, {name}", *values, which, extra)

    def _estimate(self, name: str, value: Any, drawn: Floats, which: Statistic, extra: dict[str, Any]) -> Estimate:
        return estimate_from_distribution(
            name, float(value), drawn, level=self.level, n_units=self._sums[2], n=len(self.rows), clustered=True,
            seed=self.seed, extra=extra, reason="" if np.isfinite(value) else _REASONS[which],
        )  # fmt: skip

    def _place(self, name: str) -> int:
        return self.detectors.index(require_choice(name, "detector", self.detectors))


def cross_validate(
    detectors: Iterable[Detector],
    frame: pd.DataFrame,
    labels: pd.DataFrame | pd.Series[Any] | str | Sequence[str],
    *,
    groups: str = "dialogue_id",
    folds: int = 5,
    seed: int = 0,
    embedder: str | Embedder | None = None,
    text: str = "text",
    exclusive: bool | None = None,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> CrossValidation:
    """Return held-out predictions of each detector on the same folds.

    Parameters
    ----------
    detectors
        Not fitted; of different names. They are copied, and choose whatever they choose inside the training part.
    frame
        One row per text, as from ``corpus.labelled``; for detectors with context also what :func:`with_context` adds.
    labels
        A table or Series with the index of ``frame``, in any order, or names of columns of ``frame``; see
        :func:`anima.detectors.label_frame`, also for ``exclusive``.
    groups, text
        Columns: what is held out as a whole, and the text. ``utterance_id`` names the rows if there is one.
    folds, seed
        Folds by group (:func:`anima.stats.grouped_folds`); the seed also draws the resamples.
    embedder
        As for :func:`anima.embedding.get_embedder`; every text is embedded once.
    n_resamples, level
        Of the intervals: percentile, by group.

    Notes
    -----
    The interval takes the predictions as given: it covers which dialogues were judged, not which were trained on. Its
    coverage is simulated in ``tests/detectors/test_crossval.py``.
    """
    require_int(n_resamples, "n_resamples", low=1)
    require_fraction(level)
    runners = named(detectors)
    require_columns(frame, [text, groups])
    truth = label_frame(labels, frame, exclusive=exclusive)
    if len(truth) != len(frame):
        raise InputError(f"labels must have the rows of frame, {len(frame)}, got {len(truth)}")
    context = {name: frame[name].to_numpy() for name in CONTEXT if name in frame}
    owner = frame[groups].to_numpy()
    known = Texts(frame[text].tolist(), groups=owner, context=context, embedder=embedder)
    one = bool(truth.attrs["exclusive"])
    fold = grouped_folds(owner, folds, seed=seed)
    scores = {detector.name: _held_out(detector, known, truth, fold) for detector in runners}
    predicted = {name: decide(margins, one) for name, margins in scores.items()}
    ids = frame["utterance_id"] if "utterance_id" in frame else frame.index.to_series()
    rows = pd.DataFrame({"id": ids.to_numpy(), "group": owner, "fold": fold})
    return CrossValidation(
        tuple(truth.columns), one, rows, truth.to_numpy(), predicted, scores, seed, n_resamples, level
    )


def named(detectors: Iterable[Detector]) -> list[Detector]:
    """Return detectors as a list; two of one name are refused."""
    if isinstance(detectors, Detector) or not isinstance(detectors, Iterable):
        raise InputError(f"detectors must be a list, got {show(detectors)}: write [detector]")
    runners = list(detectors)
    for item in runners:
        if not isinstance(item, Detector):
            raise InputError(f"detectors must be of anima.detectors, got {show(item)}")
    names = [detector.name for detector in runners]
    if not runners or len(set(names)) < len(names):
        raise InputError(f"detectors must be some, of different names, got {names}: set their name")
    return runners


def _held_out(detector: Detector, texts: Texts, truth: pd.DataFrame, fold: NDArray[np.intp]) -> Floats:
    """Return margins of each text, from the other folds."""
    scores = np.empty(truth.shape)
    for k in range(int(fold.max()) + 1):
        fitted = copy.deepcopy(detector).fit(texts.take(np.flatnonzero(fold != k)), truth[fold != k])
        scores[fold == k] = fitted.scores(texts.take(np.flatnonzero(fold == k))).to_numpy()
    return scores


def _value(which: Statistic, cells: Floats) -> Floats:
    """Return a statistic of confusion cells ``(…, 4)``: true negatives, false alarms, misses, hits."""
    tn, fp, fn, tp = np.moveaxis(cells, -1, 0)
    with np.errstate(invalid="ignore"):
        if which == "precision":
            return np.asarray(tp / (tp + fp))
        if which == "recall":
            return np.asarray(tp / (tp + fn))
        if which == "f1":
            return np.asarray(2 * tp / (2 * tp + fp + fn))
        return np.asarray(2 * (tp * tn - fp * fn) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)))
