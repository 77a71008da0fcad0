"""Can the judge be trusted: its scores against people's, with everything that must stand beside such a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction, require_int, require_number, show
from anima.errors import InputError
from anima.metaeval.join import Accounted, Accounting, Stamped
from anima.metaeval.tables import mean_estimate, require_same_ids, worst_items
from anima.stats.agreement import cohen_kappa, percent_agreement, scale_positions, share_estimate
from anima.stats.bootstrap import FEW_ITEMS
from anima.stats.estimate import Estimate, Presentable, plot_estimates
from anima.stats.intraclass import icc, lin_ccc
from anima.stats.power import n_for_kappa_width
from anima.stats.resampling import RngLike, numpy_or_default

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray


Scores: TypeAlias = "Mapping[Any, Any] | ArrayLike"
Scale = Literal["auto", "nominal", "ordinal", "interval"]
_NAMES = {"judge": "judge_scores", "human": "human_labels", "group": "groups", "cluster": "clusters"}
_FEW_STEPS = 10  # whole numbers with at most so many steps are taken for an ordered scale


@dataclass(frozen=True)
class JudgeValidation(Accounted, Stamped):
    """A judge against people's labels; made by :func:`validate_judge`.

    Parameters
    ----------
    agreement
        Kappa, quadratic weighted kappa or Lin's concordance, by the scale; base rates are in its ``extra``.
    hits
        Share of items on which judge and people agree exactly; None on an interval scale.
    baseline
        The share that always giving the people's commonest label would agree on; on an interval scale the mean absolute
        error of always giving their median, beside ``error``.
    error
        Mean absolute error of the judge; None on a nominal scale.
    bias
        Mean of judge − human: above 0 the judge is lenient. With two named labels the difference of the shares of the
        second one; undefined for more.
    icc
        ICC(2,1) on an interval scale, else None. It is no second piece of evidence beside concordance.
    unscored
        Share of the people's items that the judge gave no score.
    worst, groups
        Items with the largest distance (item, judge, human, delta); n, agreement and bias of each group.
    n_needed
        Items for an interval of ``agreement`` no wider than twice ``half_width``; None if it cannot be said.
    """

    scale: str
    agreement: Estimate
    hits: Estimate | None
    baseline: Estimate
    error: Estimate | None
    bias: Estimate
    icc: Estimate | None
    unscored: Estimate
    worst: pd.DataFrame
    groups: pd.DataFrame
    half_width: float
    n_needed: int | None
    accounting: Accounting
    health: Presentable | None = None
    also, tables = ("beats_baseline",), ("worst", "groups")

    @property
    def beats_baseline(self) -> bool | None:
        """Whether the judge is beyond the baseline by more than its interval; None if that cannot be said."""
        against = self.hits or self.error
        if against is None or not against.has_interval or not self.baseline.defined:
            return None
        if self.hits is None:
            return against.high < self.baseline.value
        return against.low > self.baseline.value

    def summary(self) -> str:
        """Return one sentence, and the health of the judges if attached."""
        text = self.agreement.summary()
        against = self.hits or self.error
        if against is not None and against.defined:
            text += f" {against.name} {against.value:.3f} against {self.baseline.value:.3f} of {self.baseline.name}."
        text += f" Unscored: {self.unscored.value:.1%} of {self.unscored.n}." if self.unscored.defined else ""
        needed = f" About {self.n_needed} items for ±{self.half_width:g}." if self.n_needed else ""
        return f"{text}{needed}{self.stamp_text()}"

    def plot(self, **options: Any) -> Any:
        """Draw agreement, overall and by group (an Altair chart)."""
        rows = [self.agreement.renamed("all")]
        for row in self.groups.to_dict("records"):
            undefined = {} if row["agreement"] == row["agreement"] else {"status": "undefined", "reason": row["remark"]}
            rows.append(Estimate(str(row["group"]), row["agreement"], row["low"], row["high"], n=row["n"], **undefined))
        return plot_estimates(rows, **{"title": self.agreement.name, **options})

    def _rows(self) -> list[Estimate]:
        rows = (self.agreement, self.hits, self.error, self.baseline, self.bias, self.icc, self.unscored)
        return [row for row in rows if row is not None]


def validate_judge(
    judge_scores: Scores,
    human_labels: Scores,
    *,
    scale: Scale = "auto",
    categories: Sequence[Any] | None = None,
    groups: Scores | None = None,
    clusters: Scores | None = None,
    level: float = 0.95,
    half_width: float = 0.1,
    n_worst: int = 5,
    n_resamples: int = 2000,
    rng: RngLike = None,
    health: Presentable | None = None,
) -> JudgeValidation:
    """Return all that must be known before a judge's scores are trusted.

    Parameters
    ----------
    judge_scores, human_labels
        Scores of the same items in the same order, or mappings from item to score, joined by item. None and NaN are
        missing: a judge that failed is unscored, never 0.
    scale
        ``"nominal"``: Cohen's kappa; ``"ordinal"``: quadratic weighted kappa on the steps; ``"interval"``: Lin's
        concordance of raw scores, and ICC(2,1). ``"auto"``: nominal for text, booleans and at most two labels, ordinal
        for declared ``categories`` and whole numbers of at most 10 steps, else interval.
    categories
        The declared scale in order; steps that nobody used count as part of it.
    groups, clusters
        Group of each item (e.g. the family of the model that wrote it), for the audit by group; its cluster (e.g.
        dialogue).
    half_width
        Half-width of the interval that ``n_needed`` is for.
    n_worst
        Items to show.

    Returns
    -------
    JudgeValidation
        Read ``agreement`` beside ``baseline``: where one label rules, a high share of hits says nothing.

    Examples
    --------
    >>> validate_judge(list("yyyynnnynnyy"), list("yyynnnnynnyy")).agreement.value.__round__(2)
    0.83
    """
    require_choice(scale, "scale", ("auto", "nominal", "ordinal", "interval"))
    require_fraction(level)
    require_number(half_width, "half_width", low=0, high=1, open_low=True)
    require_int(n_worst, "n_worst", low=0)
    frame, accounting = _joined(judge_scores, human_labels, groups, clusters)
    complete = frame.dropna(subset=["judge", "human"]).reset_index(drop=True)
    kind = _scale(complete, scale, categories)
    options: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "rng": rng}
    agreement = _agreement(complete, kind, categories, options)
    agreement = replace(agreement, n_dropped=accounting.n_in - accounting.n_used)
    steps = _with_codes(complete, kind, categories)
    judge, human = (complete[side].to_numpy() for side in ("judge_code", "human_code"))
    labels = _clusters(complete)
    hits = error = intraclass = None
    if kind != "interval":
        hits = percent_agreement(complete["judge"], complete["human"], level=level)
        share = agreement.extra.get("majority_baseline", 0.0)
        baseline = share_estimate(share * len(complete), len(complete), "always the commonest label", level)
    if kind != "nominal":
        error = mean_estimate(np.abs(judge - human), "mean absolute error", level=level, clusters=labels)
    if kind == "interval":
        off = np.abs(human - np.median(human)) if len(human) else human
        baseline = mean_estimate(off, "always the median", level=level, clusters=labels)
        long = complete.assign(item=range(len(complete))).melt("item", ["judge", "human"], "rater")
        intraclass = icc(long.astype({"value": float}), level=level, rng=numpy_or_default(rng))
    bias = _bias(complete, kind, steps, level)
    scored = accounting.n_used + accounting.losses["unscored"]
    unscored = share_estimate(accounting.losses["unscored"], scored, "unscored", level)
    return JudgeValidation(
        kind, agreement, hits, baseline, error, bias, intraclass, unscored, worst_items(complete, judge, human, kind, n_worst),
        _by_group(complete, kind, categories, steps, options), half_width, _n_needed(agreement, kind, half_width), accounting, health,
    )  # fmt: skip


def _joined(judge: Scores, human: Scores, groups: Any, clusters: Any) -> tuple[pd.DataFrame, Accounting]:
    """Return item, judge, human, group and cluster of each item, and what is missing."""
    import pandas as pd

    given = {"judge": judge, "human": human, "group": groups, "cluster": clusters}
    given = {key: value for key, value in given.items() if value is not None or key in {"judge", "human"}}
    if all(isinstance(value, Mapping) for value in given.values()):
        for key in given.keys() - {"human"}:
            require_same_ids(human, given[key], ("human_labels", _NAMES[key]))  # type: ignore[arg-type]
        items = list(dict.fromkeys([*human, *judge]))  # type: ignore[misc]
        columns: dict[str, Any] = {key: [value.get(item) for item in items] for key, value in given.items()}
    elif any(isinstance(value, Mapping) for value in given.values()):
        raise InputError("judge_scores, human_labels, groups and clusters must all be mappings, or none of them")
    else:
        series = [value for value in given.values() if isinstance(value, pd.Series)]
        if any(not one.index.equals(series[0].index) for one in series[1:]):
            raise InputError("judge_scores and human_labels have different indexes: align them, or pass mappings")
        columns = {key: list(value) for key, value in given.items()}
        lengths = {key: len(values) for key, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"judge_scores, human_labels, groups and clusters differ in length: {lengths}")
        items = list(series[0].index) if series else list(range(len(columns["human"])))
    frame = pd.DataFrame({"item": items} | {key: pd.Series(values, dtype=object) for key, values in columns.items()})
    for side in ("judge", "human"):
        numbers = frame[side].notna() & ~frame[side].map(lambda value: isinstance(value, str))
        for item, value in frame.loc[numbers, ["item", side]].itertuples(index=False):
            if not isinstance(value, Real | np.bool_):
                got = f"{type(value).__name__} {show(value)}"
                raise InputError(
                    f"{_NAMES[side]}: item {show(item)} must be a number or text, got {got}: convert it first"
                )
        require_floats(frame.loc[numbers, side], _NAMES[side])
        infinite = [isinstance(value, float) and math.isinf(value) for value in frame[side]]
        frame.loc[infinite, side] = None
    if clusters is not None and frame["cluster"].isna().any():
        raise InputError(f"clusters: item {show(frame['item'][frame['cluster'].isna()].iloc[0])} has none")
    unlabelled = int(frame["human"].isna().sum())
    both = int((frame["human"].notna() & frame["judge"].notna()).sum())
    losses = {"unlabelled": unlabelled, "unscored": len(frame) - unlabelled - both}
    return frame, Accounting(len(frame), both, losses, "items")


def _scale(complete: pd.DataFrame, scale: Scale, categories: Sequence[Any] | None) -> str:
    values = [*complete["judge"], *complete["human"]]
    text = any(isinstance(value, str) for value in values)
    if scale == "interval" and text:
        raise InputError("scale='interval' needs numbers, got text: pass scale='ordinal' with categories")
    if scale != "auto":
        return scale
    if categories is not None:
        scale_positions([], list(categories))
    distinct = set(() if categories is None else categories) | set(values)
    if text or len(distinct) <= 2 or all(isinstance(value, bool | np.bool_) for value in values):
        return "ordinal" if categories is not None and len(distinct) > 2 else "nominal"
    if categories is not None:
        return "ordinal"
    numbers = np.array(values, dtype=np.float64)
    whole = bool((numbers == np.round(numbers)).all()) and numbers.max() - numbers.min() < _FEW_STEPS
    return "ordinal" if whole else "interval"


def _clusters(items: pd.DataFrame) -> NDArray[Any] | None:
    return items["cluster"].to_numpy() if "cluster" in items.columns and len(items) else None


def _agreement(
    complete: pd.DataFrame, kind: str, categories: Sequence[Any] | None, options: dict[str, Any]
) -> Estimate:
    clusters = _clusters(complete)
    if kind == "interval":
        numbers = (complete[side].astype(float) for side in ("human", "judge"))
        return lin_ccc(*numbers, clusters=clusters, **options)
    weights: Literal["quadratic", "nominal"] = "quadratic" if kind == "ordinal" else "nominal"
    name = "quadratic weighted kappa" if kind == "ordinal" else "Cohen's kappa"
    sides = [complete[side].infer_objects() for side in ("human", "judge")]
    # The people come first: the majority baseline is that of the first rater.
    return cohen_kappa(*sides, categories=categories, weights=weights, clusters=clusters, name=name, **options)


def _with_codes(complete: pd.DataFrame, kind: str, categories: Sequence[Any] | None) -> list[Any]:
    """Add the scores as numbers, text as its step on the scale, and return the steps (none on an interval scale)."""
    both = [*complete["judge"], *complete["human"]]
    text = any(isinstance(value, str) for value in both)
    steps = [] if kind == "interval" else sorted(set(both), key=str) if categories is None else list(categories)
    for side in ("judge", "human"):
        numbers = [steps.index(value) for value in complete[side]] if text else complete[side]
        complete[f"{side}_code"] = np.array(numbers, dtype=np.float64)
    return steps


def _bias(items: pd.DataFrame, kind: str, steps: list[Any], level: float) -> Estimate:
    name = "mean of judge − human"
    if kind == "nominal":
        if len(steps) > 2:
            reason = f"{len(steps)} labels without order have no mean: compare the base rates"
            return Estimate.undefined(name, reason, level=level, n=len(items))
        name = f"share of {show(steps[-1])}, judge − human" if steps else name
    distance = (items["judge_code"] - items["human_code"]).to_numpy()
    return mean_estimate(distance, name, level=level, clusters=_clusters(items))


def _by_group(
    complete: pd.DataFrame, kind: str, categories: Sequence[Any] | None, steps: list[Any], options: dict[str, Any]
) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for group, part in complete.groupby("group", sort=True, dropna=False) if "group" in complete.columns else ():
        agreement = _agreement(part, kind, categories, options)
        bias = _bias(part, kind, steps, options["level"])
        few = f"{len(part)} items are too few; " if len(part) < FEW_ITEMS else ""
        rows.append([
            group, len(part), agreement.value, agreement.low, agreement.high, bias.value, bias.low, bias.high,
            few + agreement.reason,
        ])  # fmt: skip
    columns = ["group", "n", "agreement", "low", "high", "bias", "bias_low", "bias_high", "remark"]
    return pd.DataFrame(rows, columns=columns)


def _n_needed(agreement: Estimate, kind: str, half_width: float) -> int | None:
    if agreement.n < FEW_ITEMS:
        return None  # the width of such an interval says nothing about that of another
    rates = agreement.extra.get("base_rates_a")
    if kind == "nominal" and rates and len(rates) == 2 and agreement.defined and agreement.value < 1:
        share = (next(iter(rates.values())) + next(iter(agreement.extra["base_rates_b"].values()))) / 2
        lowest = max(-share / (1 - share), -(1 - share) / share) if 0 < share < 1 else 0.0
        if agreement.value >= lowest and 0 < share < 1:
            return n_for_kappa_width(agreement.value, half_width, prevalence=share)
    if not agreement.has_interval or agreement.high == agreement.low:
        return None
    # Half-widths shrink with the root of n.
    return math.ceil(agreement.n * ((agreement.high - agreement.low) / 2 / half_width) ** 2)
