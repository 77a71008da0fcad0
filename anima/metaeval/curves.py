"""Does a score of 0.7 come true seven times in ten: calibration of the scores of runs against their outcomes."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from anima.checks import require_columns, require_floats, show
from anima.errors import InputError
from anima.metaeval.join import Accounting, Reduction, Stamped, join
from anima.stats import calibration

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from anima.metaeval.sources import Extractor, Outcomes, Runs
    from anima.stats.calibration import Binning, CalibrationCurve, OutOfRange
    from anima.stats.estimate import Presentable
    from anima.stats.resampling import RngLike


@dataclass(frozen=True)
class CalibrationStudy(Stamped):
    """The calibration curve of an eval metric for an outcome metric, what became of each run or pair, and notes on the join."""

    eval_metric: str
    outcome_metric: str
    curve: CalibrationCurve
    accounting: Accounting
    notes: tuple[str, ...] = ()
    health: Presentable | None = None

    @property
    def n(self) -> int:
        """Pairs used: the sum of the bins' n."""
        return self.curve.n

    def summary(self) -> str:
        """Return one sentence, and the health of the judges if attached."""
        text = f"{self.eval_metric} against {self.outcome_metric}: {self.curve.summary()}"
        return f"{text} {self.accounting.summary()}{self.stamp_text()}"

    def to_frame(self) -> pd.DataFrame:
        """Return the bins."""
        return self.curve.to_frame()

    def plot(self) -> Any:  # type: ignore[override]
        """Draw the curve; see :meth:`anima.stats.CalibrationCurve.plot`."""
        return self.curve.plot()

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.summary())}</p>{self.curve.bins.round(4).to_html(index=False)}"


def calibration_curve(
    runs: Runs,
    outcomes: Outcomes,
    eval_metric: str,
    outcome_metric: str,
    *,
    extract: Extractor | None = None,
    reduction: Reduction = "latest",
    min_lag_ms: float = 0.0,
    max_lag_ms: float = math.inf,
    outcome_filter: Mapping[str, Any] | None = None,
    clusters: str | None = "auto",
    bins: int = 10,
    binning: Binning = "equal-width",
    span: tuple[float, float] | None = None,
    out_of_range: OutOfRange = "error",
    level: float = 0.95,
    rng: RngLike = None,
    health: Presentable | None = None,
) -> CalibrationStudy:
    """Return how the scores of runs compare with the level of their outcomes, bin by bin; empty with no run left.

    Parameters
    ----------
    runs, outcomes, reduction, min_lag_ms, max_lag_ms, outcome_filter, clusters
        As in :func:`anima.metaeval.correlation_study`.
    eval_metric, outcome_metric
        One name each.
    extract
        Own function of a run of a store, for an eval metric that is not built in.
    bins, binning, span, out_of_range, level, rng
        As in :func:`anima.stats.calibration_curve`, but the default ``span`` runs from the smallest to the largest
        score; pass ``(0, 1)`` for probabilities.
    """
    joined = join(
        runs, outcomes, {eval_metric: extract}, [outcome_metric], reduction=reduction, min_lag_ms=min_lag_ms,
        max_lag_ms=max_lag_ms, outcome_filter=outcome_filter, clusters=clusters,
    )  # fmt: skip
    rows = joined.rows(0, 0)
    curve = calibration.calibration_curve(
        joined.x[rows, 0], joined.y[rows, 0], bins=bins, binning=binning, span=span, out_of_range=out_of_range,
        clusters=None if joined.clusters is None else joined.clusters[rows], level=level, rng=rng,
    )  # fmt: skip
    return CalibrationStudy(eval_metric, outcome_metric, curve, joined.pair(0, 0), joined.notes, health)


def calibration_from_pairs(
    pairs: pd.DataFrame | Iterable[tuple[float, float]] | Iterable[Mapping[str, Any]],
    eval_metric: str = "score",
    outcome_metric: str = "outcome",
    *,
    clusters: ArrayLike | None = None,
    bins: int = 10,
    binning: Binning = "equal-width",
    span: tuple[float, float] | None = None,
    out_of_range: OutOfRange = "error",
    level: float = 0.95,
    rng: RngLike = None,
    health: Presentable | None = None,
) -> CalibrationStudy:
    """Return the calibration curve of scores that already stand beside their outcomes.

    Parameters
    ----------
    pairs
        A DataFrame with the columns ``eval_metric`` and ``outcome_metric``, tuples (score, outcome), or mappings with
        ``evalScore`` and ``outcome`` as in the reference package. Pairs with a missing member are dropped and counted.
    clusters
        Cluster of each pair. Other options as in :func:`calibration_curve`.

    Examples
    --------
    >>> study = calibration_from_pairs([(0.1, 0), (0.4, 0), (0.6, 1), (0.9, 1)], bins=2)
    >>> round(study.curve.ece, 2), study.n
    (0.25, 4)
    """
    if hasattr(pairs, "columns"):
        require_columns(pairs, [eval_metric, outcome_metric], "pairs")
        frame = cast("pd.DataFrame", pairs)
        scores, outcomes = frame[eval_metric].to_numpy(), frame[outcome_metric].to_numpy()
    else:
        rows = []
        for k, pair in enumerate(cast("Iterable[Any]", pairs)):
            row = (pair.get("evalScore"), pair.get("outcome")) if isinstance(pair, Mapping) else pair
            if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
                raise InputError(f"pairs item {k} must be (score, outcome), got {show(row)}")
            rows.append(tuple(row))
        scores, outcomes = (np.array([row[k] for row in rows], dtype=object) for k in (0, 1))
    x, y = require_floats(scores, eval_metric), require_floats(outcomes, outcome_metric)
    curve = calibration.calibration_curve(
        x, y, bins=bins, binning=binning, span=span, out_of_range=out_of_range, clusters=clusters, level=level, rng=rng
    )
    no_score = int(np.isnan(x).sum())
    losses = {"no_eval_value": no_score, "no_outcome_value": len(x) - curve.n - no_score}
    return CalibrationStudy(
        eval_metric, outcome_metric, curve, Accounting(len(x), curve.n, losses, "pairs"), health=health
    )
