"""The mean that people would have given, from many judged items and a few that people labelled too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_choice, require_floats, require_fraction
from anima.errors import InputError
from anima.stats.correlation import paired
from anima.stats.estimate import Estimate
from anima.stats.weighted import Floats, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


Correction = Literal["auto", "prediction-powered", "rogan-gladen"]
_FEW = 10


def corrected_mean(
    judge_scores: ArrayLike,
    judge_labelled: ArrayLike,
    human_labelled: ArrayLike,
    *,
    method: Correction = "auto",
    level: float = 0.95,
) -> Estimate:
    """Return a mean score corrected for the errors of the judge, with an interval that knows both samples.

    Parameters
    ----------
    judge_scores
        Scores of the items that only the judge scored.
    judge_labelled, human_labelled
        Scores of the labelled items by both, in the same order; a random sample of the same kind of items.
    method
        ``"prediction-powered"`` (``"auto"``): human mean of the labelled items, moved by what the judge sees elsewhere,
        with the weight that makes the variance least (PPI++: Angelopoulos, Duchi and Zrnic 2023); for any scores.
        ``"rogan-gladen"``: for labels of 0 and 1, the judged share turned back through sensitivity and specificity
        (Rogan and Gladen 1978; interval of Lang and Reiczigel 2014, Preventive Veterinary Medicine 113, 13–22); needed
        when the labelled items were picked by their label, so that their base rate means nothing.

    Returns
    -------
    Estimate
        ``extra``: the uncorrected mean of the judge, the mean of the human labels, and the weight, or sensitivity and
        specificity. Undefined for a judge no better than chance (Rogan–Gladen). Coverage:
        ``tests/metaeval/test_probes.py``.
    """
    require_choice(method, "method", ("auto", "prediction-powered", "rogan-gladen"))
    require_fraction(level)
    scores = require_floats(judge_scores, "judge_scores")
    kept = scores[~np.isnan(scores)]
    judge, human, _, lost = paired(judge_labelled, human_labelled, names=("judge_labelled", "human_labelled"))
    dropped = lost + len(scores) - len(kept)
    common: dict[str, Any] = {"level": level, "n": len(kept) + len(judge), "n_dropped": dropped}
    name = "mean corrected for the judge"
    if not len(kept) or len(judge) < 2:
        reason = f"{len(kept)} judged and {len(judge)} labelled items: at least 1 and 2 are needed"
        return Estimate.undefined(name, reason, **common)
    common["extra"] = {
        "uncorrected": float(np.r_[kept, judge].mean()), "human_mean": float(human.mean()), "n_labelled": len(judge),
    }  # fmt: skip
    correct = _rogan_gladen if method == "rogan-gladen" else _prediction_powered
    return correct(name, kept, judge, human, common)


def _prediction_powered(name: str, scores: Floats, judge: Floats, human: Floats, common: dict[str, Any]) -> Estimate:
    from scipy.special import stdtrit

    n, many = len(judge), len(scores)
    spread = float(np.r_[scores, judge].var())
    covariance = float(((judge - judge.mean()) * (human - human.mean())).sum() / (n - 1))
    weight = float(np.clip(covariance / ((1 + n / many) * spread), 0, 1)) if spread > 0 else 0.0
    value = float(human.mean() + weight * (scores.mean() - judge.mean()))
    variance = float((human - weight * judge).var(ddof=1)) / n
    variance += weight**2 * (float(scores.var(ddof=1)) / many if many > 1 else 0.0)
    common["extra"] |= {"weight": weight}
    notes = [] if n >= _FEW else [f"{n} labelled items: below {_FEW}, lean on nothing"]
    if variance == 0:
        notes.append("no spread: no interval")
        return Estimate(name, value, status="unreliable", reason="; ".join(notes), **common)
    half = float(stdtrit(n - 1, (1 + common["level"]) / 2)) * math.sqrt(variance)
    return Estimate.noted(name, value, value - half, value + half, notes, method="prediction-powered, t", **common)


def _rogan_gladen(name: str, scores: Floats, judge: Floats, human: Floats, common: dict[str, Any]) -> Estimate:
    for label, values in (("judge_scores", scores), ("judge_labelled", judge), ("human_labelled", human)):
        if len(odd := values[~np.isin(values, (0, 1))]):
            raise InputError(f"method='rogan-gladen' needs labels of 0 and 1, {label} has {odd[0]:g}")
    positives, negatives, n = int(human.sum()), int((1 - human).sum()), len(scores)
    if not positives or not negatives:
        return Estimate.undefined(
            name, "the labelled items are of one class: sensitivity or specificity is unknown", **common
        )
    hits, rejections = int(judge[human == 1].sum()), int((1 - judge[human == 0]).sum())
    sensitivity, specificity = hits / positives, rejections / negatives
    common["extra"] |= {"sensitivity": sensitivity, "specificity": specificity}
    if sensitivity + specificity <= 1:
        reason = (
            f"sensitivity {sensitivity:.2f} + specificity {specificity:.2f} ≤ 1: the judge is no better than chance"
        )
        return Estimate.undefined(name, reason, **common)
    share = float(scores.mean())
    value = min(1.0, max(0.0, (share + specificity - 1) / (sensitivity + specificity - 1)))
    # Lang and Reiczigel: pseudo-observations, and a shift for the skew of the ratio.
    z = normal_quantile(common["level"])
    p, se, sp = (n * share + z * z / 2) / (n + z * z), (hits + 1) / (positives + 2), (rejections + 1) / (negatives + 2)
    youden = se + sp - 1
    notes = (
        [] if min(positives, negatives) >= _FEW else [f"only {min(positives, negatives)} labelled items of one class"]
    )
    low, high = 0.0, 1.0
    if youden > 0:
        centre = (p + sp - 1) / youden
        noise_se, noise_sp = se * (1 - se) / (positives + 2), sp * (1 - sp) / (negatives + 2)
        shift = 2 * z * z * (centre * noise_se - (1 - centre) * noise_sp)
        variance = p * (1 - p) / (n + z * z) + centre**2 * noise_se + (1 - centre) ** 2 * noise_sp
        half = z * math.sqrt(variance) / youden
        low, high = max(0.0, centre + shift - half), min(1.0, centre + shift + half)
    else:
        notes.append("the judge may be no better than chance: any share is possible")
    ends = min(low, value), max(high, value)
    return Estimate.noted(name, value, *ends, notes, method="Rogan–Gladen, Lang–Reiczigel", **common)
