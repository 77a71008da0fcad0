"""Does the score predict what happens later: correlation of scores with outcomes, and the validity of rubrics.

Both studies join runs with their outcomes (:mod:`anima.metaeval.join`), estimate each pair with an interval, correct
for the number of pairs, and only then speak a verdict: from the interval, never from the point. For agreement in level,
not only in order, see :func:`anima.metaeval.calibration_curve`.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from anima.checks import require_int
from anima.metaeval.join import Accounting, Stamped, join
from anima.metaeval.pairs import PairResult, correlate, strength, validity
from anima.metaeval.sources import run_table
from anima.stats.correlation import MIN_PAIRS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from anima.metaeval.join import Reduction
    from anima.metaeval.pairs import Control, Interval, Method, Polarity
    from anima.metaeval.sources import Extractor, Outcomes, Runs
    from anima.stats.estimate import Estimate, Presentable
    from anima.stats.resampling import QuantileRule, RngLike


@dataclass(frozen=True)
class CorrelationStudy(Stamped):
    """All pairs of a study, eval metric by eval metric; made by :func:`correlation_study`.

    Undefined pairs keep their place and say why. ``runs`` and ``outcomes`` say what became of each run (used: in at
    least one pair) and of each outcome, ``notes`` what a reader must know about the join.
    """

    pairs: tuple[PairResult, ...]
    runs: Accounting
    outcomes: Accounting
    method: Method
    control: Control
    level: float
    notes: tuple[str, ...] = ()
    health: Presentable | None = None
    also: ClassVar[tuple[str, ...]] = ("family_size",)

    @property
    def family_size(self) -> int:
        """Number of defined pairs: the comparisons that were corrected for."""
        return sum(pair.estimate.defined for pair in self.pairs)

    def __getitem__(self, names: tuple[str, str]) -> PairResult:
        """Return the pair of an eval and an outcome metric: ``study["score", "csat"]``."""
        for pair in self.pairs:
            if (pair.eval_metric, pair.outcome_metric) == names:
                return pair
        raise KeyError(names)

    def verdicts(self) -> dict[str, int]:
        """Return how often each verdict was spoken."""
        spoken = [pair.verdict for pair in self.pairs]
        return {verdict: spoken.count(verdict) for verdict in dict.fromkeys(spoken)}

    def summary(self) -> str:
        """Return one sentence, and the health of the judges if attached."""
        counts = ", ".join(f"{n} {verdict}" for verdict, n in self.verdicts().items()) or "no pairs"
        return (
            f"{len(self.pairs)} pairs ({self.method}, {self.control} over {self.family_size}): {counts}; "
            f"{self.runs.summary()}{self.stamp_text()}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair."""
        import pandas as pd

        return pd.concat([pair.to_frame() for pair in self.pairs], ignore_index=True) if self.pairs else pd.DataFrame()

    def _repr_html_(self) -> str:
        shown = ["eval_metric", "outcome_metric", "n", "value", "low", "high", "p_adjusted", "direction", "verdict"]
        table = self.to_frame()[[*shown, "reason"]].round(3).to_html(index=False) if self.pairs else ""
        return "".join([*(f"<p>{html.escape(text)}</p>" for text in (self.summary(), *self.notes)), table])

    def _rows(self) -> list[Estimate]:
        return [pair.estimate.renamed(f"{pair.eval_metric} → {pair.outcome_metric}") for pair in self.pairs]


@dataclass(frozen=True)
class RubricValidity(CorrelationStudy):
    """Rubrics against outcomes; made by :func:`rubric_predictive_validity`."""

    rubrics: tuple[str, ...] = ()
    min_samples: int = 8
    also = ("family_size", "insufficient", "no_data")

    @property
    def ranked(self) -> tuple[PairResult, ...]:
        """The best pair of each rubric, strongest first, whatever its sign: read the verdict.

        The p-value is adjusted over all pairs and so also for having picked the best.
        """
        best: dict[str, PairResult] = {}
        for pair in self.pairs:
            strength = abs(pair.estimate.value)
            held = best.get(pair.eval_metric)
            if pair.estimate.defined and (held is None or strength > abs(held.estimate.value)):
                best[pair.eval_metric] = pair
        return tuple(sorted(best.values(), key=lambda pair: -abs(pair.estimate.value)))

    @property
    def insufficient(self) -> dict[str, int]:
        """Rubrics with fewer than ``min_samples`` runs in every pair, and the most they have."""
        return {name: n for name, n in self._most().items() if 0 < n < self.min_samples}

    @property
    def no_data(self) -> tuple[str, ...]:
        """Rubrics without a single run that has both rubric and outcome."""
        return tuple(name for name, n in self._most().items() if n == 0)

    def _most(self) -> dict[str, int]:
        most = dict.fromkeys(self.rubrics, 0)
        for pair in self.pairs:
            most[pair.eval_metric] = max(most[pair.eval_metric], pair.n)
        return most

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; ``ranked`` by name."""
        return super().to_dict() | {"ranked": [pair.eval_metric for pair in self.ranked]}


def correlation_study(
    runs: Runs,
    outcomes: Outcomes,
    eval_metrics: Sequence[str] | Mapping[str, Extractor | None],
    outcome_metrics: Sequence[str],
    *,
    method: Method = "spearman",
    reduction: Reduction = "latest",
    min_lag_ms: float = 0.0,
    max_lag_ms: float = math.inf,
    outcome_filter: Mapping[str, Any] | None = None,
    clusters: str | None = "auto",
    polarity: Mapping[str, Polarity] | None = None,
    interval: Interval = "auto",
    control: Control = "holm",
    level: float = 0.95,
    n_resamples: int = 2000,
    resamples: Literal["shared", "per pair"] = "shared",
    quantiles: QuantileRule = "linear",
    rng: RngLike = None,
    health: Presentable | None = None,
) -> CorrelationStudy:
    """Return the correlation of each eval metric of runs with each of their later outcomes.

    Parameters
    ----------
    runs
        A :class:`TraceStore`, :class:`RunRecord` objects, or a DataFrame with ``run_id``, the eval metrics, and if
        known ``started_at`` (ms since 1970, or datetimes), ``scenario_id`` and ``gated``. A run id that stands twice is
        refused.
    outcomes
        A :class:`OutcomeStore`, :class:`DeploymentOutcome` objects, or a DataFrame with ``run_id``, ``captured_at`` and
        the outcome metrics; several per run are welcome.
    eval_metrics
        Names. Of a store: score, pass, durationMs, failureClass (1 for success), costUsd, inputTokens, outputTokens,
        tokens, or a mapping of own names to functions of a run (None for the known ones). Of records: the keys of
        ``raw``, searchScore, holdoutScore, costUsd, wallMs. What a run does not state is missing, never 0.
    outcome_metrics
        Names of outcomes; one that nobody has measured yet gives undefined pairs.
    method
        ``"spearman"`` asks for order only and withstands outliers; ``"pearson"`` for a straight line.
    reduction
        Several outcomes of a run: the ``"latest"`` that carries the metric asked for (of equal times the last added),
        ``"mean"`` or ``"max"`` (grows with the number of captures, which is noted).
    min_lag_ms, max_lag_ms
        Outcomes count if captured so long after the start of the run. Below 0 an outcome was known before the run and
        would leak into it; ``-math.inf`` takes even those.
    outcome_filter
        Options of :meth:`OutcomeStore.outcomes`.
    clusters
        Field or column whose equal values make runs dependent. ``"auto"``: ``scenario_id``, if scenarios repeat and
        there are at least two; None: independent runs.
    polarity
        Per outcome whether ``"higher"`` (the default) or ``"lower"`` values are wished for.
    interval
        ``"auto"``: analytic, with clusters percentile bootstrap by cluster; see :func:`anima.stats.correlation`.
    control
        Correction of p-values over all defined pairs: see :mod:`anima.stats.multiplicity`. ``"bonferroni"`` also widens
        all intervals so that they hold together; ``"max_t"`` permutes runs and needs independent ones.
    resamples
        ``"shared"``: pairs that use the same runs share their resamples; ``"per pair"`` draws anew for each.
    health
        Stamp of :func:`anima.metaeval.eval_health_stamp`, shown with the result.

    Returns
    -------
    CorrelationStudy
        Verdicts: ``"strong"`` or ``"moderate"`` if the whole interval lies beyond ±0.7 or ±0.4 and the adjusted p-value
        is at most 1 − level; ``"weak"`` if it lies within ±0.4; else, and always below 10 runs or clusters,
        ``"uncertain"``. Runs whose realness was gated never count as successes: ``pass`` and ``failureClass`` are 0 for
        them, other metrics are left out and counted.

    Notes
    -----
    The reference package's numbers are reproduced in ``tests/metaeval/test_studies_oracle.py``; where ours differ on
    purpose, the case and the reason stand in ``tests/metaeval/differences.toml``.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"run_id": range(12), "score": range(12)})
    >>> outcomes = pd.DataFrame({"run_id": range(12), "csat": [1, 2, 2, 3, 5, 4, 6, 6, 8, 7, 9, 9]})
    >>> correlation_study(runs, outcomes, ["score"], ["csat"])["score", "csat"].verdict
    'strong'
    """
    joined = join(
        runs, outcomes, eval_metrics, outcome_metrics, reduction=reduction, min_lag_ms=min_lag_ms,
        max_lag_ms=max_lag_ms, outcome_filter=outcome_filter, clusters=clusters,
    )  # fmt: skip
    pairs = correlate(
        joined, strength, MIN_PAIRS, method, interval, control, level, n_resamples, resamples, quantiles, polarity, rng
    )  # fmt: skip
    return CorrelationStudy(pairs, joined.runs(), joined.outcomes, method, control, level, joined.notes, health)


def rubric_predictive_validity(
    runs: Runs,
    outcomes: Outcomes,
    outcome_metrics: Sequence[str],
    *,
    rubrics: Sequence[str] | None = None,
    min_samples: int = 8,
    method: Method = "spearman",
    reduction: Reduction = "latest",
    min_lag_ms: float = 0.0,
    max_lag_ms: float = math.inf,
    outcome_filter: Mapping[str, Any] | None = None,
    clusters: str | None = "auto",
    polarity: Mapping[str, Polarity] | None = None,
    interval: Interval = "auto",
    control: Control = "holm",
    level: float = 0.95,
    n_resamples: int = 2000,
    resamples: Literal["shared", "per pair"] = "shared",
    quantiles: QuantileRule = "linear",
    rng: RngLike = None,
    health: Presentable | None = None,
) -> RubricValidity:
    """Return which rubrics of the runs predict outcomes, and which are decoration.

    Parameters
    ----------
    runs
        Usually :class:`RunRecord` objects, whose ``outcome.raw`` holds the rubrics; or a DataFrame.
    rubrics
        Names; None takes every key of ``raw``, or every numeric column, in order of first appearance. A rubric without
        data is listed, not refused.
    min_samples
        Pairs with fewer runs are undefined. Eight is the reference package's; telling rho = 0.4 from 0 takes 47
        (:func:`anima.stats.n_for_correlation`). The other parameters are those of :func:`correlation_study`.

    Returns
    -------
    RubricValidity
        Verdicts, with the sign turned for outcomes of ``polarity`` "lower": ``"load_bearing"`` or ``"informative"`` if
        the whole interval lies above 0.7 or 0.4, ``"misleading"`` if it lies below 0 (all three only if the adjusted
        p-value is at most 1 − level), ``"decorative"`` if it stays below 0.4; else, and always below 10 runs or
        clusters, ``"uncertain"``.
    """
    require_int(min_samples, "min_samples", low=MIN_PAIRS)
    table = run_table(runs)
    names = table.rubrics if rubrics is None else rubrics
    joined = join(
        replace(table, column=lambda name: table.column(name) if table.knows(name) else np.full(len(table.ids), math.nan)),
        outcomes, names, outcome_metrics, reduction=reduction, min_lag_ms=min_lag_ms, max_lag_ms=max_lag_ms,
        outcome_filter=outcome_filter, clusters=clusters,
    )  # fmt: skip
    pairs = correlate(
        joined, validity, min_samples, method, interval, control, level, n_resamples, resamples, quantiles, polarity, rng
    )  # fmt: skip
    return RubricValidity(
        pairs, joined.runs(), joined.outcomes, method, control, level, joined.notes, health, joined.eval_names, min_samples
    )  # fmt: skip
