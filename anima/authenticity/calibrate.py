"""Find the thresholds of an embedder on a development set."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.authenticity.evaluate import chain_match, evaluate_analyses
from anima.authenticity.golden import GoldenReply, load_golden
from anima.authenticity.profiles import Profile
from anima.checks import require_choice, require_number, show
from anima.errors import CalibrationWarning, InputError
from anima.stats import Estimate, Presentable, bootstrap_sums, confusion_terms, json_ready

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from anima.authenticity.instrument import Instrument
    from anima.authenticity.poles import Poles

Target = Literal["intent", "poles"]

#: The reference service's grid of cosine thresholds.
DEFAULT_GRID = tuple(round(0.20 + 0.05 * i, 2) for i in range(11))
#: Share of the reference texts that the default pole cuts leave outside on each side.
POLE_TAIL = 0.15
#: How an uncalibrated profile says so.
DEFAULT_NOTE = "computed from the reference; not calibrated on labelled replies"
_POLE_TAILS = (0.02, 0.05, 0.08, 0.10, 0.12, 0.15, 0.18, 0.20, 0.25, 0.30, 0.35, 0.40)


@dataclass(frozen=True)
class Calibration(Presentable):
    """Result of a sweep.

    Attributes
    ----------
    target
        What was calibrated.
    best
        The chosen threshold, or (low, high) for poles.
    score
        Value of the criterion at ``best``, with its interval; optimistic, because chosen on these very replies.
    points
        One row per point of the grid.
    profile
        The embedder's profile with the new values put in.
    """

    target: Target
    best: tuple[float, ...]
    score: Estimate
    previous: tuple[float, ...]
    points: pd.DataFrame
    profile: Profile
    criterion: str
    tables = ("points",)

    def with_profile(self, base: Profile) -> Calibration:
        """Return the same result with its new values put into ``base`` instead."""
        mine = self.profile
        if self.target == "poles":
            key, merged = "poles", replace(base, pole_low=mine.pole_low, pole_high=mine.pole_high)
        else:
            key, merged = "intent_threshold", replace(base, intent_threshold=mine.intent_threshold)
        how = next((line for line in mine.obtained.splitlines() if line.startswith(key)), "")
        return replace(self, profile=replace(merged, obtained=_merge(base.obtained, key, how)))

    def to_frame(self) -> pd.DataFrame:
        """Return the points of the grid."""
        return self.points

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict with the reference service's names where it has them."""
        return {
            "target": self.target,
            "criterion": self.criterion,
            "best_threshold": list(self.best) if len(self.best) > 1 else self.best[0],
            "previous_threshold": list(self.previous) if len(self.previous) > 1 else self.previous[0],
            "score": self.score.to_dict(),
            "points": json_ready(self.points.to_dict("records")),
        }

    def summary(self) -> str:
        """Return one sentence."""
        best = " and ".join(f"{value:.3f}" for value in self.best)
        return f"Calibrated {self.target} to {best} by {self.criterion}: {self.score.summary()}"


def calibrate(
    instrument: Instrument,
    golden: str | Path | Sequence[GoldenReply] | None = None,
    grid: Sequence[float] | None = None,
    *,
    target: Target = "intent",
) -> Calibration:
    """Choose thresholds for the embedder in use.

    Parameters
    ----------
    golden
        Development replies; ``"dev"`` by default.
    grid
        Cosine thresholds to try (``target="intent"``), or shares of reference texts left outside each pole cut
        (``target="poles"``).
    target
        ``"intent"``: the cut of the centroid classifiers, by macro-F1 over sentences, or by chain match where the set
        labels no sentences. ``"poles"``: the quantiles of the raw pole score over the reference texts, by macro-F1 over
        certainty, doubt and the rest.

    Returns
    -------
    Calibration
        Nothing is changed or written; the CLI's ``anima calibrate --write`` does that. Ties go to the higher threshold:
        better to leave a sentence unnamed than to name it wrongly.
    """
    require_choice(target, "target", ("intent", "poles"))
    replies = load_golden(golden)
    if not replies:
        raise InputError("golden holds no reply: there is nothing to calibrate on")
    if not isinstance(grid, Iterable | None) or isinstance(grid, str):
        raise InputError(f"grid must be a list of numbers, got {type(grid).__name__} {show(grid)}")
    values = tuple(require_number(value, f"grid[{i}]", low=-1, high=1) for i, value in enumerate(grid or ()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # that thresholds are missing is why we are here
        if target == "intent":
            return _calibrate_intent(instrument, replies, values or DEFAULT_GRID)
        return _calibrate_poles(instrument, replies, values or _POLE_TAILS)


def _calibrate_intent(instrument: Instrument, replies: tuple[GoldenReply, ...], grid: tuple[float, ...]) -> Calibration:
    import pandas as pd

    if not any(reply.chain for reply in replies):
        raise InputError("golden labels no intent: thresholds cannot be calibrated on it")
    labelled = any(sentence.intent is not None for reply in replies for sentence in reply.sentences)
    criterion = "macro-F1" if labelled else "chain match"
    name = instrument.classifier.name
    base = instrument if name.startswith("centroid") else instrument.with_settings(classifier="centroid")
    texts = [reply.response for reply in replies]
    rows = []
    best = float("nan"), Estimate.undefined(criterion, "nothing was tried")
    for threshold in sorted(grid):
        analyses = base.with_settings(intent_threshold=threshold).analyze_many(texts, keywords="off")
        found = evaluate_analyses(replies, analyses, n_resamples=200, threshold=threshold)
        chain = [step.intent for analysis in analyses for step in analysis.steps]
        score = found.estimates[criterion]
        rows.append(
            {
                "threshold": threshold,
                criterion: score.value,
                "overall_chain": float(
                    np.mean([chain_match(a.chain, r.chain) for a, r in zip(analyses, replies, strict=True) if r.chain])
                ),
                "overall_marker": float(found.rows["marker_coverage"].mean()),
                "unclassified_pct": chain.count("UNCLASSIFIED") / len(chain) if chain else float("nan"),
            }
        )
        if len(rows) == 1 or score.value >= best[1].value:
            best = threshold, score
    cut, score = best
    old = instrument.profile
    how = f"intent_threshold: {criterion} {score.value:.3f} on {len(replies)} golden replies, grid {min(grid)} to {max(grid)}, centroid classifier."
    profile = replace(old, intent_threshold=cut, obtained=_merge(old.obtained, "intent_threshold", how))
    return Calibration("intent", (cut,), score, (base.intent_threshold,), pd.DataFrame(rows), profile, criterion)


def _calibrate_poles(instrument: Instrument, replies: tuple[GoldenReply, ...], tails: tuple[float, ...]) -> Calibration:
    import pandas as pd

    scored = [reply for reply in replies if reply.pole is not None]
    if not scored:
        raise InputError("golden labels no pole: poles cannot be calibrated on it")
    for tail in tails:
        require_number(tail, "grid", low=0, high=0.5, open_low=True)
    names = ("certainty", "doubt", "other")
    truth = np.array([names.index(reply.pole) if reply.pole in names else 2 for reply in scored])
    raw = _poles(instrument).raw(instrument.embedder.embed([reply.response for reply in scored]))
    background = pole_background(instrument)

    def terms(low: float, high: float) -> NDArray[np.float64]:
        return confusion_terms(truth, np.where(raw > high, 0, np.where(raw < low, 1, 2)), 3)

    rows = []
    for low_tail, high_tail in itertools.product(tails, tails):
        low, high = np.quantile(background, [low_tail, 1 - high_tail])
        value = float(_three_way(terms(low, high).sum(axis=0)[None])[0])
        rows.append(
            {"low_tail": low_tail, "high_tail": high_tail, "pole_low": low, "pole_high": high, "macro-F1": value}
        )
    best = max(rows, key=lambda row: row["macro-F1"])  # the first of equals
    low, high = float(best["pole_low"]), float(best["pole_high"])
    score = bootstrap_sums(_three_way, terms(low, high), name="macro-F1 of certainty, doubt, rest")
    old = instrument.profile
    how = f"poles: quantiles of the raw score over {len(background)} reference texts; macro-F1 {score.value:.3f} on {len(scored)} golden replies."
    profile = replace(old, pole_low=low, pole_high=high, obtained=_merge(old.obtained, "poles", how))
    return Calibration("poles", (low, high), score, instrument.pole_thresholds, pd.DataFrame(rows), profile, "macro-F1")


def _three_way(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix = counts.reshape(-1, 3, 3)
    hits = np.diagonal(matrix, axis1=1, axis2=2)
    total = matrix.sum(axis=1) + matrix.sum(axis=2)
    return np.asarray(np.where(total > 0, 2 * hits / np.where(total > 0, total, 1), 0).mean(axis=1))


def _merge(old: str, key: str, new: str) -> str:
    kept = [line for line in old.splitlines() if line.strip() and not line.startswith((key, DEFAULT_NOTE))]
    return "\n".join([*kept, new])


def _poles(instrument: Instrument) -> Poles:
    if instrument.model.poles is None:
        raise InputError(f"reference {instrument.reference.name} has no certainty or no doubt pole")
    return instrument.model.poles


def pole_background(instrument: Instrument) -> NDArray[np.float64]:
    """Return the raw pole score of every text of the reference: pools and training replies."""
    poles = _poles(instrument)
    parts = [poles.raw(instrument.model.neighbourhood.vectors)]
    if instrument.reference.replies:
        parts.append(poles.raw(instrument.embedder.embed([reply.response for reply in instrument.reference.replies])))
    return np.concatenate(parts)


def default_profile(instrument: Instrument) -> Profile:
    """Return thresholds computed from the reference alone, for an embedder that nobody calibrated.

    The intent cut is the midpoint between the median best cosine of plain sentences and of prototypes to their own
    centroid; the pole cuts are the outer :data:`POLE_TAIL` quantiles of the raw score over the reference texts.
    """
    model = instrument.model
    classifier = model.centroids(1, threshold=0.0)
    scores = classifier.classify([], model.prototype_vectors).confidence
    plain = np.array([example.intent == "UNCLASSIFIED" for example in instrument.reference.prototypes])
    cut = (np.median(scores[plain]) + np.median(scores[~plain])) / 2 if plain.any() else np.quantile(scores, 0.05)
    low, high = -0.25, 0.25
    if model.poles is not None:
        low, high = np.quantile(pole_background(instrument), [POLE_TAIL, 1 - POLE_TAIL])
    return Profile(instrument.embedder.id, float(cut), float(low), float(high), DEFAULT_NOTE)
