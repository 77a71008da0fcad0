"""Does the score predict what happens later: correlation of scores with outcomes, and the validity of rubrics.

Both studies join runs with their outcomes (:mod:`anima.metaeval.join`), estimate each pair with an interval, correct
for the number of pairs, and only then speak a verdict: from the interval, never from the point. For agreement in level,
not only in order, see :func:`calibration_curve`. The reference package's numbers are reproduced in
``tests/metaeval/test_studies_oracle.py``; where ours differ on purpose, ``tests/metaeval/differences.toml`` says why.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from anima.checks import require_choice, require_columns, require_floats, require_int, show
from anima.errors import InputError
from anima.metaeval.join import Accounted, Accounting, Reduction, Stamped, join
from anima.metaeval.pairs import Control, Interval, Method, PairResult, Polarity, correlate, strength, validity
from anima.metaeval.sources import Extractor, Outcomes, Runs, run_table
from anima.stats import calibration
from anima.stats.correlation import MIN_PAIRS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from anima.stats.calibration import CalibrationCurve
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

    def summary(self) -> str:
        """Return one sentence, and the health of the judges if attached."""
        counts = Counter(pair.verdict for pair in self.pairs)
        spoken = ", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "no pairs"
        return (
            f"{len(self.pairs)} pairs ({self.method}, {self.control} over {self.family_size}): {spoken}; "
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
        defined = [pair for pair in self.pairs if pair.estimate.defined]
        for pair in sorted(defined, key=lambda pair: -abs(pair.estimate.value)):
            best.setdefault(pair.eval_metric, pair)
        return tuple(best.values())

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
    min_samples: int = MIN_PAIRS,
    verdicts: Literal["strength", "validity"] = "strength",
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
    min_samples
        Pairs with fewer runs are undefined.
    verdicts
        ``"strength"``: see Returns; ``"validity"``: those of :func:`rubric_predictive_validity`.
    health
        Stamp of :func:`anima.metaeval.eval_health_stamp`, shown with the result.

    Returns
    -------
    CorrelationStudy
        Verdicts: ``"strong"`` or ``"moderate"`` if the whole interval lies beyond ±0.7 or ±0.4 and the adjusted p-value
        is at most 1 − level; ``"weak"`` if it lies within ±0.4; else, and always below 10 runs or clusters,
        ``"uncertain"``. Runs whose realness was gated never count as successes: ``pass`` and ``failureClass`` are 0 for
        them, other metrics are left out and counted.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"run_id": range(12), "score": range(12)})
    >>> outcomes = pd.DataFrame({"run_id": range(12), "csat": [1, 2, 2, 3, 5, 4, 6, 6, 8, 7, 9, 9]})
    >>> correlation_study(runs, outcomes, ["score"], ["csat"])["score", "csat"].verdict
    'strong'
    """
    require_int(min_samples, "min_samples", low=MIN_PAIRS)
    judge = validity if require_choice(verdicts, "verdicts", ("strength", "validity")) == "validity" else strength
    joined = join(
        runs, outcomes, eval_metrics, outcome_metrics, reduction=reduction, min_lag_ms=min_lag_ms,
        max_lag_ms=max_lag_ms, outcome_filter=outcome_filter, clusters=clusters,
    )  # fmt: skip
    pairs = correlate(
        joined, judge=judge, min_samples=min_samples, method=method, interval=interval, control=control, level=level,
        n_resamples=n_resamples, resamples=resamples, quantiles=quantiles, polarity=polarity, rng=rng,
    )  # fmt: skip
    return CorrelationStudy(pairs, joined.runs(), joined.outcomes, method, control, level, joined.notes, health)


def rubric_predictive_validity(
    runs: Runs,
    outcomes: Outcomes,
    outcome_metrics: Sequence[str],
    *,
    rubrics: Sequence[str] | None = None,
    min_samples: int = 8,
    **options: Any,
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
        (:func:`anima.stats.n_for_correlation`).
    options
        The other parameters of :func:`correlation_study`.

    Returns
    -------
    RubricValidity
        Verdicts, with the sign turned for outcomes of ``polarity`` "lower": ``"load_bearing"`` or ``"informative"`` if
        the whole interval lies above 0.7 or 0.4, ``"misleading"`` if it lies below 0 (all three only if the adjusted
        p-value is at most 1 − level), ``"decorative"`` if it stays below 0.4; else, and always below 10 runs or
        clusters, ``"uncertain"``.
    """
    table = run_table(runs)
    names = table.rubrics if rubrics is None else rubrics
    absent = np.full(len(table.ids), math.nan)
    lenient = replace(table, column=lambda name: table.column(name) if table.knows(name) else absent)
    study = correlation_study(
        lenient, outcomes, names, outcome_metrics, min_samples=min_samples, verdicts="validity", **options
    )
    return RubricValidity(**vars(study), rubrics=tuple(names), min_samples=min_samples)


@dataclass(frozen=True)
class CalibrationStudy(Accounted, Stamped):
    """The calibration curve of an eval metric for an outcome metric, what became of each run or pair, and notes on the join."""

    eval_metric: str
    outcome_metric: str
    curve: CalibrationCurve
    accounting: Accounting
    notes: tuple[str, ...] = ()
    health: Presentable | None = None

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
    span: tuple[float, float] | None = None,
    health: Presentable | None = None,
    **options: Any,
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
    span
        Ends of the bins, by default the smallest and the largest score; pass ``(0, 1)`` for probabilities.
    options
        ``bins``, ``binning``, ``out_of_range``, ``level``, ``rng`` of :func:`anima.stats.calibration_curve`.
    """
    joined = join(
        runs, outcomes, {eval_metric: extract}, [outcome_metric], reduction=reduction, min_lag_ms=min_lag_ms,
        max_lag_ms=max_lag_ms, outcome_filter=outcome_filter, clusters=clusters,
    )  # fmt: skip
    rows = joined.rows(0, 0)
    curve = calibration.calibration_curve(
        joined.x[rows, 0], joined.y[rows, 0], span=span,
        clusters=None if joined.clusters is None else joined.clusters[rows], **options,
    )  # fmt: skip
    return CalibrationStudy(eval_metric, outcome_metric, curve, joined.pair(0, 0), joined.notes, health)


def calibration_from_pairs(
    pairs: pd.DataFrame | Iterable[tuple[float, float]] | Iterable[Mapping[str, Any]],
    eval_metric: str = "score",
    outcome_metric: str = "outcome",
    *,
    span: tuple[float, float] | None = None,
    health: Presentable | None = None,
    **options: Any,
) -> CalibrationStudy:
    """Return the calibration curve of scores that already stand beside their outcomes.

    Parameters
    ----------
    pairs
        A DataFrame with the columns ``eval_metric`` and ``outcome_metric``, tuples (score, outcome), or mappings with
        ``evalScore`` and ``outcome`` as in the reference package. Pairs with a missing member are dropped and counted.
    span, options
        As in :func:`calibration_curve`, and ``clusters``, the cluster of each pair.

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
    curve = calibration.calibration_curve(x, y, span=span, **options)
    no_score = int(np.isnan(x).sum())
    losses = {"no_eval_value": no_score, "no_outcome_value": len(x) - curve.n - no_score}
    return CalibrationStudy(
        eval_metric, outcome_metric, curve, Accounting(len(x), curve.n, losses, "pairs"), health=health
    )
