"""A judge's numeric scores against a golden set: what the reference package reports, with intervals and accounting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.checks import require_floats, require_int
from anima.metaeval.join import Accounted, Accounting
from anima.metaeval.panel import ContinuousAgreement, continuous_agreement
from anima.metaeval.tables import Table, mean_estimate, read_table, refuse_repeats, require_same_ids, worst_items
from anima.stats.agreement import cohen_kappa
from anima.stats.correlation import correlation
from anima.stats.estimate import Estimate, plot_estimates
from anima.stats.intraclass import lin_ccc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class JudgeCalibration(Accounted):
    """A judge against a golden set; made by :func:`calibrate_judge`.

    ``kappa`` is quadratic weighted kappa of the raw scores (Lin's concordance), or on the declared scale; ``bias`` the
    mean of judge − human; ``worst`` the items with the largest distance; ``extra_items`` were scored without being
    golden.
    """

    kappa: Estimate
    pearson: Estimate
    spearman: Estimate
    mae: Estimate
    bias: Estimate
    worst: pd.DataFrame
    accounting: Accounting
    extra_items: int
    also, tables = ("n",), ("worst",)

    def summary(self) -> str:
        """Return one sentence."""
        return f"{self.kappa.summary()} Mean absolute error {self.mae.value:.3f}. {self.accounting.summary()}"

    def plot(self, **options: Any) -> Any:
        """Draw the coefficients (an Altair chart)."""
        return plot_estimates([row for row in self._rows() if row not in (self.mae, self.bias)], **options)


@dataclass(frozen=True)
class ContinuousJudgeCalibration(JudgeCalibration):
    """As :class:`JudgeCalibration`, with the judge and the people as two raters of a panel."""

    agreement: ContinuousAgreement

    @property
    def weighted_kappa_continuous(self) -> Estimate:
        """Weighted kappa of the raw scores."""
        return self.agreement.weighted_kappa

    @property
    def icc(self) -> Estimate:
        """ICC(2,1) of judge and people."""
        return self.agreement.icc

    def _rows(self) -> list[Estimate]:
        return [self.weighted_kappa_continuous, self.icc, *super()._rows()[1:]]


def calibrate_judge(
    golden: Table | Mapping[Any, float],
    candidate: Table | Mapping[Any, float],
    *,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
    n_worst: int = 5,
) -> JudgeCalibration:
    """Return how a judge's numeric scores compare with a golden set, item by item; see also :func:`validate_judge`.

    Parameters
    ----------
    golden
        ``item_id`` and ``human_score`` (either spelling), or a mapping from item to score.
    candidate
        ``item_id`` and ``score``, or a mapping. Items scored twice are refused; unknown ones counted and left out.
    categories
        The declared scale in order, if scores are steps. Without it kappa takes the raw scores: rounding them, as the
        reference package does, turns every judge of a 0-to-1 scale into a perfect or a useless one.
    """
    return JudgeCalibration(**_calibration(golden, candidate, categories, level, n_worst)[0])


def calibrate_judge_continuous(
    golden: Table | Mapping[Any, float],
    candidate: Table | Mapping[Any, float],
    *,
    level: float = 0.95,
    n_worst: int = 5,
    **options: Any,
) -> ContinuousJudgeCalibration:
    """Return :func:`calibrate_judge` with weighted kappa and ICC(2,1) of the raw scores; options as in :func:`continuous_agreement`."""
    parts, pairs = _calibration(golden, candidate, None, level, n_worst)
    return ContinuousJudgeCalibration(**parts, agreement=continuous_agreement(pairs, level=level, **options))


def _calibration(
    golden: Any, candidate: Any, categories: Sequence[Any] | None, level: float, n_worst: int
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    require_int(n_worst, "n_worst", low=0)
    people = read_table(golden, ["item_id", "human_score"], "golden")
    scores = read_table(candidate, ["item_id", "score"], "candidate")
    for table, column, name in ((people, "human_score", "golden"), (scores, "score", "candidate")):
        refuse_repeats(table, ["item_id"], name)
        table[column] = require_floats(table[column], f"{name}[{column!r}]")
    require_same_ids(people["item_id"], scores["item_id"], ("golden", "candidate"))
    if people["item_id"].dtype != scores["item_id"].dtype:  # 1 is 1 beside ids of other types too
        people["item_id"], scores["item_id"] = (table["item_id"].astype(object) for table in (people, scores))
    frame = people[["item_id", "human_score"]].merge(scores[["item_id", "score"]], on="item_id", how="left")
    frame.columns = ["item", "human", "judge"]
    unlabelled = int(frame["human"].isna().sum())
    complete = frame.dropna().reset_index(drop=True)
    unscored = len(frame) - unlabelled - len(complete)
    accounting = Accounting(len(frame), len(complete), {"unlabelled": unlabelled, "unscored": unscored}, "golden items")
    human, judge = (complete[side].to_numpy(dtype=np.float64) for side in ("human", "judge"))
    lost = len(frame) - len(complete)
    if categories is None:
        kappa = lin_ccc(human, judge, level=level, name="quadratic kappa")
    else:
        kappa = cohen_kappa(human, judge, categories=categories, weights="quadratic", level=level)
    pearson, spearman = (replace(correlation(human, judge, method=m, level=level), n_dropped=lost)
                         for m in ("pearson", "spearman"))  # fmt: skip
    return {
        "kappa": replace(kappa, n_dropped=lost), "pearson": pearson, "spearman": spearman,
        "mae": mean_estimate(np.abs(judge - human), "mean absolute error", level=level, n_dropped=lost),
        "bias": mean_estimate(judge - human, "mean of judge − human", level=level, n_dropped=lost),
        "worst": worst_items(complete, judge, human, "interval", n_worst), "accounting": accounting,
        "extra_items": int((~scores["item_id"].isin(people["item_id"])).sum()),
    }, np.column_stack([human, judge])  # fmt: skip
