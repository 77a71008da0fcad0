"""Agreement of several raters who score on a continuous scale: one panel, or all dimensions of a corpus.

Quadratic weighted kappa of raw scores is Lin's concordance and nearly equals ICC(2,1): two readings of one thing.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction, require_int
from anima.errors import InputError
from anima.metaeval.join import Accounted, Accounting, unique_names
from anima.metaeval.tables import Table, read_table, refuse_repeats
from anima.stats.bootstrap import estimate_from_counts, sums_estimate
from anima.stats.estimate import Estimate, Presentable, estimates_frame
from anima.stats.intraclass import concordance_terms, icc, icc_of_sums, mean_concordance, mean_linear_agreement
from anima.stats.raters import Ratings
from anima.stats.resampling import RngLike, estimate_from_distribution, numpy_or_default, resample_counts, resolve_rng
from anima.stats.weighted import Floats, is_constant, midranks, pearson_value, without_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray


Weights = Literal["quadratic", "linear"]
PanelInterval = Literal["auto", "percentile"]


@dataclass(frozen=True)
class ContinuousAgreement(Accounted):
    """Agreement of raters on a continuous scale; made by :func:`continuous_agreement`.

    Parameters
    ----------
    weighted_kappa, icc
        Chance-corrected agreement of raw scores, mean over all pairs of raters; ICC(2,1), absolute agreement of single
        raters.
    pearson, spearman
        Plain means over the pairs of raters that are defined (Fisher's z would let one perfect pair rule), NaN if none.
    """

    weighted_kappa: Estimate
    icc: Estimate
    pearson: float
    spearman: float
    raters: int
    accounting: Accounting

    def summary(self) -> str:
        """Return one sentence."""
        return f"{self.raters} raters: {self.weighted_kappa.summary()} {self.icc.summary()} {self.accounting.summary()}"


@dataclass(frozen=True)
class CorpusAgreement(Presentable):
    """Agreement of judges by dimension, and the items that all of them scored; made by :func:`corpus_agreement`.

    ``overall_icc`` and ``overall_weighted_kappa`` are plain means over the dimensions that are defined, with an
    interval from resampling items across all of them.
    """

    per_dimension: dict[str, ContinuousAgreement]
    items: dict[str, tuple[str, ...]]
    judges: tuple[str, ...]
    overall_icc: Estimate
    overall_weighted_kappa: Estimate

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions, in order."""
        return tuple(self.per_dimension)

    def summary(self) -> str:
        """Return one sentence."""
        return f"{len(self.judges)} judges, {len(self.dimensions)} dimensions: {self.overall_icc.summary()}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per dimension and coefficient."""
        import pandas as pd

        frames = [agreement.to_frame().assign(dimension=name) for name, agreement in self.per_dimension.items()]
        frames.append(estimates_frame([self.overall_weighted_kappa, self.overall_icc]).assign(dimension="all"))
        return pd.concat(frames, ignore_index=True)

    def _rows(self) -> list[Estimate]:
        named = [agreement.icc.renamed(f"ICC(2,1), {name}") for name, agreement in self.per_dimension.items()]
        return [*named, self.overall_icc]


def continuous_agreement(
    scores: pd.DataFrame | Sequence[Sequence[float]] | NDArray[Any],
    *,
    weights: Weights = "quadratic",
    interval: PanelInterval = "auto",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: RngLike = None,
) -> ContinuousAgreement:
    """Return the agreement of raters who scored the same items on a continuous scale.

    Parameters
    ----------
    scores
        One row per item, one column per rater: a wide DataFrame, an array or lists. Items with a missing score, and
        rows of another length than most, are left out and counted.
    weights
        How a disagreement counts: squared or by its size.
    interval
        ``"auto"``: jackknife on Fisher's z for kappa (linear: percentile bootstrap), generalized for ICC, which is the
        honest one with few raters; ``"percentile"`` resamples items, both coefficients from the same resamples.

    Returns
    -------
    ContinuousAgreement
        Undefined with fewer than 2 items or raters, or where the scores have no spread.

    Examples
    --------
    >>> continuous_agreement([[1, 2], [2, 2], [3, 4], [4, 5]]).icc.value.__round__(3)
    0.83
    """
    require_choice(weights, "weights", ("quadratic", "linear"))
    require_choice(interval, "interval", ("auto", "percentile"))
    require_fraction(level)
    require_int(n_resamples, "n_resamples", low=1)
    matrix, raters, accounting = _matrix(scores)
    n = len(matrix)
    names = ("quadratic kappa" if weights == "quadratic" else "linear kappa", "ICC(2,1)")
    common: dict[str, Any] = {"level": level, "n": n, "n_dropped": accounting.n_in - n}
    if n < 2 or raters < 2 or all(map(is_constant, matrix.T)):
        reason = f"{n} items scored by all of {raters} raters, at least 2 by 2 are needed"
        if min(n, raters) > 1:
            reason = "each rater gave one score throughout: whether they tell items apart cannot be seen"
        empty = (Estimate.undefined(names[0], reason, **common), Estimate.undefined(names[1], reason, **common))
        return ContinuousAgreement(*empty, math.nan, math.nan, raters, accounting)
    coefficients = _means_over_pairs(matrix)
    centred = matrix - matrix.mean()
    terms = concordance_terms(centred)
    whole = np.ones((1, n))
    kappa_value = float(_kappa(whole, whole @ terms, centred, weights)[0])
    if flat := without_interval(matrix):
        kappa, intraclass = (Estimate(name, 0.0, status="unreliable", reason=flat, **common) for name in names)
        if not math.isfinite(kappa_value):  # two raters gave one and the same score
            kappa = Estimate.undefined(names[0], _no_spread(kappa_value), **common)
        return ContinuousAgreement(kappa, intraclass, *coefficients, raters, accounting)
    if interval == "auto":
        wrapped = Ratings(
            np.arange(n * raters).reshape(n, raters), list(matrix.ravel()), [*range(n)], [*range(raters)], 0
        )
        intraclass = replace(icc(wrapped, level=level, rng=numpy_or_default(rng)), n_dropped=common["n_dropped"])
        if weights == "quadratic":
            kappa = sums_estimate(
                names[0], lambda sums: mean_concordance(sums, raters), terms, None, "jackknife",
                n_resamples=n_resamples, rng=rng, **common,
            )  # fmt: skip
            return ContinuousAgreement(kappa, intraclass, *coefficients, raters, accounting)
    source, seed = resolve_rng(rng)
    options: dict[str, Any] = {**common, "n_units": n, "seed": seed}
    drawn = np.concatenate([
        np.column_stack([_kappa(block, sums := block @ terms, centred, weights), icc_of_sums(sums, raters)])
        for block in resample_counts(n, n_resamples, source)
    ])  # fmt: skip
    kappa = estimate_from_distribution(names[0], kappa_value, drawn[:, 0], reason=_no_spread(kappa_value), **options)
    if interval == "percentile":
        value = float(icc_of_sums(whole @ terms, raters)[0])
        intraclass = estimate_from_distribution(names[1], value, drawn[:, 1], reason=_no_spread(value), **options)
    return ContinuousAgreement(kappa, intraclass, *coefficients, raters, accounting)


def corpus_agreement(
    records: Table,
    *,
    dimensions: Sequence[str] | None = None,
    judges: Sequence[str] | None = None,
    weights: Weights = "quadratic",
    interval: PanelInterval = "auto",
    level: float = 0.95,
    n_resamples: int = 1000,
    rng: RngLike = None,
) -> CorpusAgreement:
    """Return the agreement of judges on each dimension of a corpus, over the items that all of them scored.

    Parameters
    ----------
    records
        ``item_id``, ``judge_name``, ``dimension``, ``score`` (either spelling). A missing score is an unscored item;
        two scores of one item by one judge on one dimension are refused.
    dimensions, judges
        Those to use, in order; None takes all, sorted. Other options as in :func:`continuous_agreement`.
    """
    frame = read_table(records, ["item_id", "judge_name", "dimension", "score"], "records")
    if frame.empty:
        raise InputError("records is empty: there is nothing to compare")
    for column in ("item_id", "judge_name", "dimension"):
        frame[column] = frame[column].astype(str)
    refuse_repeats(frame, ["item_id", "judge_name", "dimension"], "records")
    frame["score"] = require_floats(frame["score"], "records['score']")
    chosen = [
        sorted(set(frame[column])) if wanted is None else list(unique_names(wanted, label))
        for column, wanted, label in (("judge_name", judges, "judges"), ("dimension", dimensions, "dimensions"))
    ]
    for column, names in zip(("judge_name", "dimension"), chosen, strict=True):
        if absent := set(names) - set(frame[column]):
            known = ", ".join(sorted(set(frame[column])))
            raise InputError(f"records have no {column} {min(absent)!r}: known are {known}")
    panel, wanted_dimensions = chosen
    if len(panel) < 2:
        raise InputError(f"agreement needs at least 2 judges, got {', '.join(panel)}")
    per_dimension, items, matrices = {}, {}, {}
    for name in wanted_dimensions:
        wide = frame[frame["dimension"] == name].pivot(index="item_id", columns="judge_name", values="score")  # noqa: PD010
        wide = wide.reindex(columns=panel).sort_index()
        per_dimension[name] = continuous_agreement(
            wide, weights=weights, interval=interval, level=level, n_resamples=n_resamples, rng=rng
        )
        matrices[name] = wide.dropna()
        items[name] = tuple(matrices[name].index)
    overall = _overall(per_dimension, matrices, weights, level, n_resamples, rng)
    return CorpusAgreement(per_dimension, items, tuple(panel), *overall)


def _overall(
    parts: dict[str, ContinuousAgreement], matrices: dict[str, pd.DataFrame], weights: Weights, level: float,
    n_resamples: int, rng: RngLike,
) -> list[Estimate]:  # fmt: skip
    everything = sorted({item for matrix in matrices.values() for item in matrix.index})
    place = {item: k for k, item in enumerate(everything)}
    ready = {}
    for name, matrix in matrices.items():
        scores = matrix.to_numpy(dtype=np.float64)
        centred = scores - scores.mean() if len(scores) else scores
        ready[name] = ([place[item] for item in matrix.index], centred, concordance_terms(centred))
    out = []
    for which, title in (("icc", "mean ICC(2,1) over dimensions"), ("weighted_kappa", "mean kappa over dimensions")):
        sound = {name: found for name, part in parts.items() if (found := getattr(part, which)).defined}
        if not sound:
            out.append(Estimate.undefined(title, "no dimension has a defined value", level=level))
            continue

        def mean(counts: Floats, which: str = which, names: Sequence[str] = tuple(sound)) -> Floats:
            values = []
            for name in names:
                rows, centred, terms = ready[name]
                held = counts[:, rows]
                with np.errstate(all="ignore"):  # a resample may hold no item of a dimension
                    sums, k = held @ terms, centred.shape[1]
                    values.append(icc_of_sums(sums, k) if which == "icc" else _kappa(held, sums, centred, weights))
            return np.asarray(np.mean(values, axis=0))

        if not any(found.has_interval for found in sound.values()):
            common: dict[str, Any] = {"level": level, "n": len(everything), "status": "unreliable"}
            middle = float(np.mean([found.value for found in sound.values()]))
            out.append(Estimate(title, middle, reason="no dimension has an interval", **common))
            continue
        missing = len(parts) - len(sound)
        out.append(estimate_from_counts(
            title, float(np.mean([found.value for found in sound.values()])), mean, len(everything),
            n_resamples=n_resamples, method="percentile", rng=rng, level=level,
            reason=f"{missing} dimensions are undefined" if missing else "",
        ))  # fmt: skip
    return out


def _matrix(scores: Any) -> tuple[Floats, int, Accounting]:
    """Return the complete rows, the number of raters and what became of each item."""
    rows = scores.to_numpy() if hasattr(scores, "to_numpy") else scores
    if isinstance(rows, str) or not hasattr(rows, "__len__"):
        raise InputError(f"scores must be rows of items by raters, got {type(scores).__name__}")
    checked = [require_floats(row, f"scores row {k}") for k, row in enumerate(rows)]
    lengths = Counter(len(row) for row in checked)
    raters = lengths.most_common(1)[0][0] if checked else 0
    even = [row for row in checked if len(row) == raters]
    complete = [row for row in even if not np.isnan(row).any()]
    losses = {"not_scored_by_all": len(even) - len(complete), "other_number_of_raters": len(checked) - len(even)}
    matrix = np.array(complete, dtype=np.float64).reshape(len(complete), raters)
    return matrix, raters, Accounting(len(checked), len(complete), losses, "items")


def _kappa(counts: Floats, sums: Floats, scores: Floats, weights: Weights) -> Floats:
    if weights == "linear":
        return mean_linear_agreement(counts, scores)
    with np.errstate(all="ignore"):
        return mean_concordance(sums, scores.shape[1])


def _no_spread(value: float) -> str:
    return "" if math.isfinite(value) else "the scores have no spread"


def _means_over_pairs(matrix: Floats) -> tuple[float, float]:
    columns = [column for column in matrix.T if not is_constant(column)]
    values = [(pearson_value(a, b), pearson_value(midranks(a), midranks(b))) for a, b in combinations(columns, 2)]
    if not values:
        return math.nan, math.nan
    pearson, spearman = np.mean(values, axis=0)
    return float(pearson), float(spearman)
