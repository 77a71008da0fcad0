"""How well the instrument agrees with a golden set, beside what could be attained and what chance attains."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anima.authenticity.golden import GoldenReply, load_golden
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.rules import round3
from anima.errors import InputError
from anima.stats import Estimate, Presentable, bootstrap_mean, bootstrap_sums, confusion_terms, json_ready
from anima.stats.agreement import share_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from anima.authenticity.analysis import Analysis
    from anima.authenticity.instrument import Instrument

_POLES = {1: "certainty", -1: "doubt", 0: "other"}


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, in O(len(a) len(b)) time and O(len(b)) space."""
    previous = [0] * (len(b) + 1)
    for x in a:
        current = [0]
        for j, y in enumerate(b, 1):
            current.append(previous[j - 1] + 1 if x == y else max(previous[j], current[-1]))
        previous = current
    return previous[-1]


def chain_match(detected: Sequence[str], expected: Sequence[str]) -> float:
    """Return LCS / max(len): 1 for equal chains, 0 when either is empty. Surplus sentences cost as much as missing
    ones.

    Examples
    --------
    >>> chain_match(["VALIDATE", "PROBE", "EXPAND", "CLOSE"], ["VALIDATE", "EXPAND", "CLOSE"])
    0.75
    """
    return lcs_length(detected, expected) / max(len(detected), len(expected)) if detected and expected else 0.0


def chain_ceiling(detected: Sequence[str], expected: Sequence[str]) -> float:
    """Return min(len) / max(len): the best :func:`chain_match` that any labels could reach on these numbers of
    sentences.
    """
    return min(len(detected), len(expected)) / max(len(detected), len(expected)) if detected and expected else 0.0


def jaccard(detected: Sequence[str], expected: Sequence[str]) -> float:
    """Return the overlap of the two bags of intents, order ignored: multiset intersection over union."""
    a, b = Counter(detected), Counter(expected)
    union = (a | b).total()
    return (a & b).total() / union if union else 0.0


def marker_coverage(detected: Sequence[str], expected: Sequence[str]) -> float:
    """Return the share of expected marker ids that were detected; 0 when none is expected, as in the reference
    service.
    """
    found = set(detected)
    return sum(marker in found for marker in expected) / len(expected) if expected else 0.0


def align(reply: GoldenReply, analysis: Analysis) -> list[str]:
    """Return for each golden sentence the intent of the step that overlaps it most, UNCLASSIFIED where none does."""
    labels = []
    for sentence in reply.sentences:
        best, overlap = UNCLASSIFIED, 0
        for step in analysis.steps:
            shared = min(step.end, sentence.end) - max(step.start, sentence.start)
            if shared > overlap:
                best, overlap = step.intent, shared
        labels.append(best)
    return labels


@dataclass(frozen=True)
class Evaluation(Presentable):
    """Agreement of an instrument with a golden set.

    Attributes
    ----------
    estimates
        By name; intervals are bootstrapped by reply, or Wilson's where all of a few are right (:func:`with_width`).
    per_intent
        One row per label: precision, recall, F1, support.
    rows
        One row per reply.
    confusion
        Counts, golden label by detected label, over ``labels``.
    suggested_threshold
        The reference service's rule of thumb for the cosine threshold.
    """

    name: str
    estimates: dict[str, Estimate]
    per_intent: pd.DataFrame
    rows: pd.DataFrame
    labels: tuple[str, ...]
    confusion: NDArray[np.int64]
    suggested_threshold: float
    setup: str

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates and the reference service's report fields, JSON-ready."""
        report = {
            "name": self.name,
            "setup": self.setup,
            "total_tests": len(self.rows),
            "overall_chain": round3(self.estimates["chain match"].value),
            "overall_marker": round3(float(self.rows["marker_coverage"].mean())),
            "suggested_threshold": self.suggested_threshold,
            "estimates": {name: estimate.to_dict() for name, estimate in self.estimates.items()},
            "per_intent": self.per_intent.to_dict("records"),
        }
        return dict(json_ready(report))

    def summary(self) -> str:
        """Return one sentence."""
        main = self.estimates["macro-F1"] if "macro-F1" in self.estimates else self.estimates["chain match"]
        return f"{self.name} ({len(self.rows)} replies, {self.setup}): {main.summary()}"

    def _rows(self) -> list[Estimate]:
        return list(self.estimates.values())


def evaluate(
    instrument: Instrument, golden: str | Path | Sequence[GoldenReply] | None = None, *, n_resamples: int = 2000
) -> Evaluation:
    """Measure an instrument on a golden set.

    Parameters
    ----------
    golden
        See :func:`~anima.authenticity.golden.load_golden`; ``"dev"`` by default. Keep ``"test"`` for the final number.
    n_resamples
        Bootstrap resamples of replies.

    Returns
    -------
    Evaluation
        Sentence accuracy and macro-F1 over the intents (sentences wrongly given or denied an intent count as errors;
        the always-plain baseline and the mean over shuffled labels stand beside them), chain match with its ceiling and
        its order-free twin, markers, suppression, poles.

    Notes
    -----
    Which to read: macro-F1, because most sentences are plain and accuracy rewards saying so. Chain match mixes
    segmentation with classification and cannot exceed its ceiling.
    """
    replies = load_golden(golden)
    if not replies:
        raise InputError("golden holds no reply: there is nothing to measure on")
    questions = [reply.question for reply in replies]
    analyses = instrument.analyze_many([reply.response for reply in replies], questions, keywords="off")
    name = "dev" if golden is None else Path(golden).stem if isinstance(golden, str | Path) else "golden"
    return evaluate_analyses(
        replies,
        analyses,
        name=name,
        n_resamples=n_resamples,
        threshold=instrument.intent_threshold if instrument.classifier.name.startswith("centroid") else float("nan"),
    )


def evaluate_analyses(
    replies: Sequence[GoldenReply],
    analyses: Sequence[Analysis],
    *,
    name: str = "golden",
    n_resamples: int = 2000,
    threshold: float = float("nan"),
) -> Evaluation:
    """Measure analyses made before; see :func:`evaluate`."""
    import pandas as pd

    if not replies or len(replies) != len(analyses):
        raise InputError(
            f"replies and analyses must be as many and at least one, got {len(replies)} and {len(analyses)}"
        )
    pairs = list(zip(replies, analyses, strict=True))
    rows = pd.DataFrame([_row(reply, analysis) for reply, analysis in pairs])
    aligned = [
        (sentence.intent, label, i)
        for i, pair in enumerate(pairs)
        for sentence, label in zip(pair[0].sentences, align(*pair), strict=True)
    ]
    # A reference folder may bring intents of its own: each is a label like the others, and never the golden one.
    foreign = dict.fromkeys(x for _, x, _ in aligned if x != UNCLASSIFIED and x not in catalogue())
    labels = (*catalogue(), *foreign, UNCLASSIFIED)
    scored = [(labels.index(gold), labels.index(found), i) for gold, found, i in aligned if gold is not None]
    estimates: dict[str, Estimate] = {}
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    if scored:
        truth, found, clusters = np.array(scored).T
        np.add.at(confusion, (truth, found), 1)
        estimates |= _sentence_estimates(truth, found, clusters, len(labels), n_resamples)
    for column, label in (
        ("chain_match", "chain match"),
        ("chain_ceiling", "chain match ceiling"),
        ("jaccard", "bag overlap (Jaccard)"),
    ):
        estimates[label] = _mean(rows[column].to_numpy(), label, n_resamples)
    estimates |= _marker_estimates(rows, n_resamples)
    poles = rows[rows["pole_gold"].isin(["certainty", "doubt", "other"])]
    if len(poles):
        hits = (poles["pole_gold"] == poles["pole_detected"]).to_numpy(dtype=np.float64)
        majority = poles["pole_gold"].value_counts(normalize=True).iloc[0]
        estimate = with_width(_mean(hits, "pole accuracy", n_resamples), hits.sum(), len(hits))
        estimates["pole accuracy"] = _with_baselines(estimate, trivial_baseline=float(majority))
    first = analyses[0]
    return Evaluation(
        name=name,
        estimates=estimates,
        per_intent=_per_intent(confusion, labels),
        rows=rows,
        labels=labels,
        confusion=confusion,
        suggested_threshold=suggest_threshold(estimates["chain match"].value, threshold),
        setup=f"{first.classifier}, {first.rules} rules, {first.embedder}",
    )


def suggest_threshold(average_chain: float, current: float) -> float:
    """Return the reference service's rule of thumb: lower the threshold when chains match badly, raise it when they
    match well.
    """
    step = -0.10 if average_chain < 0.40 else -0.05 if average_chain < 0.60 else 0.05 if average_chain > 0.85 else 0.0
    return current + step


def macro_f1(counts: NDArray[np.float64], n_labels: int) -> NDArray[np.float64]:
    """Return the mean F1 over all labels but the last (UNCLASSIFIED) from flattened confusion matrices of shape ``(m,
    n_labels**2)``.

    A label that neither occurs nor is predicted in a resample is left out of that resample's mean.
    """
    matrix = counts.reshape(-1, n_labels, n_labels)
    hits = np.diagonal(matrix, axis1=1, axis2=2)
    total = matrix.sum(axis=2) + matrix.sum(axis=1)
    f1 = (2 * hits / np.where(total > 0, total, 1))[:, :-1]
    n_present = (total > 0)[:, :-1].sum(axis=1)
    return np.where(n_present > 0, f1.sum(axis=1) / np.maximum(n_present, 1), np.nan)


def with_width(estimate: Estimate, hits: float, n: int, *, f1: bool = False) -> Estimate:
    """Return the estimate, with Wilson's interval where all of ``n`` or none are hits: a bootstrap has no width then.

    ``f1``: the estimate is an F1, and ``hits`` the true positives among the ``n`` items that are wanted or found. Their
    share J gives F1 = 2 J / (1 + J), which rises with J, so that the ends of its interval can be carried over. Wilson's
    interval takes items as independent, which those of one reply are not.
    """
    if not estimate.defined or estimate.low != estimate.high or not n or 0 < hits < n:
        return estimate
    share = share_estimate(hits, n, estimate.name, estimate.level)
    low, high = ((2 * x / (1 + x) if f1 else x) for x in (share.low, share.high))
    said = f"no {'error' if hits else 'hit'} in {n}, items taken as independent"
    return replace(estimate, low=low, high=high, method=share.method, status="ok", reason=said)


def _sentence_estimates(
    truth: NDArray[np.int64], found: NDArray[np.int64], clusters: NDArray[np.int64], n_labels: int, n_resamples: int
) -> dict[str, Estimate]:
    """Return accuracy and macro-F1 with intervals by reply; in ``extra`` what saying UNCLASSIFIED throughout would
    reach, and the mean over detected labels shuffled over the sentences.
    """
    diagonal = np.arange(n_labels) * (n_labels + 1)
    rng = np.random.default_rng(20240607)
    shuffles = (confusion_terms(truth, rng.permutation(found), n_labels).sum(axis=0) for _ in range(200))
    shuffled = np.array(list(shuffles))
    terms = confusion_terms(truth, found, n_labels)
    estimates = {}
    for name, statistic, trivial in (
        ("sentence accuracy", lambda s: s[:, diagonal].sum(axis=1) / s.sum(axis=1), (truth == n_labels - 1).mean()),
        ("macro-F1", lambda s: macro_f1(s, n_labels), 0.0),
    ):
        estimate = bootstrap_sums(statistic, terms, clusters=clusters, n_resamples=n_resamples, name=name)
        by_chance = float(statistic(shuffled).mean())
        estimates[name] = _with_baselines(estimate, trivial_baseline=float(trivial), shuffled_labels=by_chance)
    return estimates


def _with_baselines(estimate: Estimate, **baselines: float) -> Estimate:
    return replace(estimate, extra={**estimate.extra, **baselines})


def _mean(values: NDArray[Any], name: str, n_resamples: int) -> Estimate:
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate.undefined(name, "no reply is labelled for it")
    return bootstrap_mean(known, n_resamples=n_resamples, name=name)


def _row(reply: GoldenReply, analysis: Analysis) -> dict[str, Any]:
    detected = {hit.marker_id for hit in analysis.markers} - reply.disputed_markers
    expected = reply.markers - reply.disputed_markers
    held_back = {hit.marker_id for hit in analysis.suppressed_markers} - detected
    chain = analysis.chain
    labelled = bool(reply.chain)  # a reply without a label is no mismatch
    return {
        "id": reply.id,
        "lang": reply.lang,
        "chain_match": chain_match(chain, reply.chain) if labelled else math.nan,
        "chain_ceiling": chain_ceiling(chain, reply.chain) if labelled else math.nan,
        "jaccard": jaccard(chain, reply.chain) if labelled else math.nan,
        "marker_coverage": marker_coverage([hit.marker_id for hit in analysis.markers], sorted(reply.markers)),
        "marker_tp": len(detected & expected),
        "marker_fp": len(detected - expected),
        "marker_fn": len(expected - detected),
        "suppressed_gold": len(reply.suppressed),
        # Suppression succeeds when the wording is not reported as a marker, seen or unseen.
        "suppressed_ok": len(reply.suppressed - detected),
        "suppressed_seen": len(reply.suppressed & held_back),
        "regime_gold": reply.regime,
        "pole_gold": None if reply.pole is None else reply.pole if reply.pole in ("certainty", "doubt") else "other",
        "pole_detected": _POLES[analysis.pole.bucket],
        "pole_raw": analysis.pole.raw,
        "predictability": analysis.trajectory.predictability,
        "detected_chain": ">".join(chain),
        "expected_chain": ">".join(reply.chain),
        "detected_markers": ",".join(sorted(detected)),
        "expected_markers": ",".join(sorted(expected)),
    }


def _marker_estimates(rows: pd.DataFrame, n_resamples: int) -> dict[str, Estimate]:
    columns = ["marker_tp", "marker_fp", "marker_fn", "suppressed_gold", "suppressed_ok", "suppressed_seen"]
    terms = rows[columns].to_numpy(dtype=np.float64)
    totals = terms.sum(axis=0)

    def ratio(name: str, top: int, bottom: dict[int, float]) -> Estimate:
        def statistic(sums: NDArray[np.float64]) -> NDArray[np.float64]:
            under = sums[:, list(bottom)] @ np.array(list(bottom.values()))
            return np.where(under > 0, sums[:, top] / np.where(under > 0, under, 1), np.nan)

        n = int(totals[list(bottom)].sum())  # items that the ratio is of; replies are the clusters
        found = bootstrap_sums(
            statistic, terms, clusters=np.arange(len(terms)), n_resamples=n_resamples, name=name, n=n
        )
        return with_width(found, totals[top], n, f1=name.endswith("F1"))

    estimates = (
        ratio("marker precision", 0, {0: 1, 1: 1}),
        ratio("marker recall", 0, {0: 1, 2: 1}),
        ratio("marker F1", 0, {0: 1, 1: 0.5, 2: 0.5}),
        ratio("marker suppression", 4, {3: 1}),
        ratio("suppression seen", 5, {3: 1}),
    )
    return {estimate.name: estimate for estimate in estimates}


def _per_intent(confusion: NDArray[np.int64], labels: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    hits = np.diag(confusion).astype(float)
    predicted, support = confusion.sum(axis=0), confusion.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(
            {
                "intent": labels,
                "precision": hits / predicted,
                "recall": hits / support,
                "f1": 2 * hits / (predicted + support),
                "support": support,
                "predicted": predicted,
            }
        )
