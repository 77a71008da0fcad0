"""The embedding pipeline, re-measured: which classifier, which of the founding hypotheses hold, and which claims cannot
be so.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima import stats
from anima.authenticity.classify import CLASSIFIERS, Head
from anima.authenticity.evaluate import chain_match, jaccard, macro_f1
from anima.authenticity.intents import UNCLASSIFIED, regime
from anima.authenticity.neighbours import NEAR, texture
from anima.authenticity.poles import Poles
from anima.findings.embedding_scores import LABELS, SEED, found_labels, gold_labels
from anima.stats import Estimate, bootstrap_sums, confusion_terms
from anima.stats.separation import auc_difference, pair_auc
from anima.vectors import centroid, cosine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from anima.authenticity.golden import GoldenReply
    from anima.authenticity.instrument import Instrument

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_RESAMPLES = 500
HYPOTHESES: Final = {
    1: "angle carries the relevant meaning",
    2: "a centroid represents its intent",
    3: "order is primary information",
    4: "poles are directions",
    5: "break density feels like a change of tone",
    6: "near a shadow text means artificial closure",
    7: "the judge's thinking is data",
}


def compare_classifiers(
    instrument: Instrument, golden: Sequence[GoldenReply], *, n_resamples: int = 2000, folds: int = 3
) -> pd.DataFrame:
    """Compare every classifier on golden sentences, with paired differences.

    Returns
    -------
    DataFrame
        One row per classifier: macro-F1 with interval, and the difference to the plain centroid and to the hybrid head,
        each with its interval. Both are bootstrapped by reply on the same resamples. ``context`` stacks position and
        the neighbouring sentences' probabilities on the hybrid head; it is trained on the training replies alone, with
        out-of-fold probabilities.
    """
    truth, owner = gold_labels(golden)
    predicted: dict[str, NDArray[np.int64]] = {}
    for classifier in CLASSIFIERS:
        analyses = instrument.with_settings(classifier=classifier).analyze_many(
            [reply.response for reply in golden], keywords="off"
        )
        predicted[classifier] = found_labels(golden, analyses)
    predicted["hybrid + context"] = _with_context(instrument, golden, folds=folds)
    n, rows = len(LABELS), []
    options: dict[str, Any] = {"clusters": owner, "n_resamples": n_resamples}
    for name, labels in predicted.items():
        own = confusion_terms(truth, labels, n)
        score = bootstrap_sums(lambda s: macro_f1(s, n), own, **options)
        row: dict[str, Any] = {"classifier": name, "macro-F1": score.value, "low": score.low, "high": score.high}
        row["accuracy"] = float((truth == labels).mean())
        for other in ("centroid", "hybrid"):
            pair = np.hstack([own, confusion_terms(truth, predicted[other], n)])
            gap = bootstrap_sums(lambda s: macro_f1(s[:, : n * n], n) - macro_f1(s[:, n * n :], n), pair, **options)
            row |= {f"vs {other}": gap.value, f"vs {other} low": gap.low, f"vs {other} high": gap.high}
        rows.append(row)
    return pd.DataFrame(rows)


def _with_context(instrument: Instrument, golden: Sequence[GoldenReply], *, folds: int) -> NDArray[np.int64]:
    """Return labels of the golden sentences by a second stage that also sees position and neighbours."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    reference, embed = instrument.reference, instrument.embedder.embed
    texts = [s.text for reply in reference.replies for s in reply.sentences]
    labels = np.array([s.intent for reply in reference.replies for s in reply.sentences])
    owner = np.array([i for i, reply in enumerate(reference.replies) for _ in reply.sentences])
    base = [example.text for example in reference.prototypes]
    base_labels = [example.intent for example in reference.prototypes]
    base_vectors, vectors = instrument.model.prototype_vectors, np.asarray(embed(texts), dtype=np.float64)
    held_out = np.zeros((len(texts), len(LABELS)))
    for train, test in GroupKFold(folds).split(texts, labels, owner):
        head = Head.fit(
            [*base, *[texts[i] for i in train]],
            np.vstack([base_vectors, vectors[train]]),
            [*base_labels, *labels[train]],
            reference.intents,
            ngrams=True,
        )
        held_out[test] = head.probabilities([texts[i] for i in test], vectors[test])
    model = LogisticRegression(C=0.1, max_iter=5000).fit(
        _context(held_out, owner), [LABELS.index(label) for label in labels]
    )
    sentences = [s.text for reply in golden for s in reply.sentences if s.intent is not None]
    first = instrument.model.head(ngrams=True).probabilities(sentences, embed(sentences))
    second = model.predict_proba(_context(first, gold_labels(golden)[1]))
    return np.asarray(((first + second) / 2).argmax(axis=1), dtype=np.int64)


def _context(probabilities: NDArray[np.float64], owner: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log-probabilities of each sentence, probabilities of its neighbours in the same reply, and its
    position.
    """
    n, k = probabilities.shape
    before, after, place = np.zeros((n, k)), np.zeros((n, k)), np.zeros((n, 3))
    same = owner[1:] == owner[:-1]
    before[1:][same] = probabilities[:-1][same]
    after[:-1][same] = probabilities[1:][same]
    for reply in np.unique(owner):
        rows = np.flatnonzero(owner == reply)
        place[rows, 0] = rows == rows[0]
        place[rows, 1] = rows == rows[-1]
        place[rows, 2] = np.linspace(0, 1, len(rows))
    return np.hstack([np.log(np.clip(probabilities, 1e-4, 1)), before, after, place])


def auc(scores: Floats, positive: Flags, name: str) -> Estimate:
    """Return the probability that a positive outscores a negative, with a bootstrap interval."""
    options: dict[str, Any] = {"interval": "percentile", "n_resamples": _RESAMPLES, "name": name}
    return stats.auc(scores, positive.astype(float), **options)


def auc_gain(scores: Floats, rival: Floats, positive: Flags, name: str) -> Estimate:
    """Return the AUC of ``scores`` minus that of ``rival`` on the same items, with a paired bootstrap interval."""
    return auc_difference(scores, rival, positive.astype(float), n_resamples=_RESAMPLES, name=name)


def hypotheses(instrument: Instrument, golden: Sequence[GoldenReply]) -> pd.DataFrame:
    """Measure the reference document's seven hypotheses (its section 19) on the written material.

    Returns
    -------
    DataFrame
        One row per measurement: hypothesis, what was measured, value, interval, chance level, and whether the
        hypothesis stands on it.
    """
    rows = []
    for number, estimate, reading in _measurements(instrument, golden):
        # A gain over what knows less decides; where there is one, the AUC alone is for comparison.
        chance = 1 / len(instrument.reference.intents) if number == 2 else 0.0 if "gain" in estimate.name else 0.5
        verdict = "holds" if estimate.low > chance else "fails" if estimate.high < chance else "undecided"
        if number in (3, 4, 5) and "gain" not in estimate.name:
            verdict = "for comparison"
        numbers = (estimate.name, estimate.value, estimate.low, estimate.high, chance, estimate.n)
        rows.append((number, HYPOTHESES[number], *numbers, verdict, reading))
    last = (7, HYPOTHESES[7], "not measured here: needs an LLM judge", *[math.nan] * 5, "not measured", "")
    columns = ["no.", "hypothesis", "measured", "value", "low", "high", "chance", "n", "verdict", "reading"]
    return pd.DataFrame([*rows, last], columns=columns)


def _measurements(instrument: Instrument, golden: Sequence[GoldenReply]) -> Iterator[tuple[int, Estimate, str]]:
    """Yield number of the hypothesis, estimate, and how it was measured."""
    for estimate in _geometry(instrument):
        yield 1, estimate, "pairs of prototypes of one language: same intent or not; prototypes resampled"
    yield 2, _leave_one_out(instrument), "each prototype left out of its own centroid; prototypes resampled"
    for estimate in _order(golden):
        yield 3, estimate, "pairs of golden chains: same regime or not; replies resampled"
    for estimate in _pole_directions(instrument, golden):
        yield 4, estimate, "certainty against doubt on golden replies"
    analyses = instrument.analyze_many([reply.response for reply in golden], keywords="off")
    mixed, control = (np.array([reply.regime == name for reply in golden]) for name in ("mixed", "control"))
    # Where no sentence has a regime there is nothing to change between: no break.
    breaks = np.nan_to_num([analysis.trajectory.pattern_break_density for analysis in analyses])
    genuine = np.array([analysis.trajectory.genuine_density for analysis in analyses])
    both = np.minimum(genuine, np.array([analysis.trajectory.control_density_all for analysis in analyses]))
    yield 5, auc(breaks, mixed, "AUC of break density for mixed replies"), "mixed regime against the rest"
    gain = auc_gain(breaks, both, mixed, "gain in AUC over the smaller of the two shares")
    yield 5, gain, "the smaller of the control and genuine shares knows nothing of order"
    closing = np.array(["CLOSE" in reply.chain for reply in golden])
    shadow = np.array([analysis.pools.shadow_top1 for analysis in analyses])
    lead = shadow - np.array([analysis.pools.core_top1 for analysis in analyses])
    reach = f"{int((shadow > NEAR).sum())} of {len(golden)} replies reach the cosine of {NEAR} that the rule needs"
    yield 6, auc(shadow, closing, "AUC of shadow top-1 for replies that close"), reach
    yield 6, auc(lead, control, "AUC of shadow minus core top-1 for control replies"), "the pools against each other"


def _geometry(instrument: Instrument) -> list[Estimate]:
    """Compare what moves the cosine more: sharing an intent or sharing a topic."""
    examples = [example for example in instrument.reference.prototypes if example.intent != UNCLASSIFIED]
    keep = np.array([example.intent != UNCLASSIFIED for example in instrument.reference.prototypes])
    vectors = instrument.model.prototype_vectors[keep]
    rng = np.random.default_rng(SEED)
    found = []
    for lang in ("en", "es"):
        rows = np.flatnonzero([example.lang == lang for example in examples])
        rows = rng.choice(rows, size=min(400, len(rows)), replace=False)
        similar = cosine(vectors[rows], vectors[rows])
        i, j = np.triu_indices(len(rows), 1)
        same = np.array([examples[rows[a]].intent == examples[rows[b]].intent for a, b in zip(i, j, strict=True)])
        others = rng.choice(np.flatnonzero(~same), size=int(same.sum()), replace=False)
        chosen = np.concatenate([np.flatnonzero(same), others])
        a, b, name = i[chosen], j[chosen], f"AUC of the cosine for same intent ({lang})"
        found.append(pair_auc(similar[a, b], same[chosen], a, b, n_resamples=_RESAMPLES, name=name))
    return found


def _leave_one_out(instrument: Instrument) -> Estimate:
    examples = instrument.reference.prototypes
    intents = np.array([example.intent for example in examples])
    keep = intents != UNCLASSIFIED
    vectors, intents = instrument.model.prototype_vectors[keep], intents[keep]
    names = instrument.reference.intents
    sums = np.array([vectors[intents == name].sum(axis=0) for name in names])
    scores = vectors @ (sums / np.linalg.norm(sums, axis=1, keepdims=True)).T
    own = np.array([names.index(intent) for intent in intents])
    left = sums[own] - vectors
    scores[np.arange(len(own)), own] = np.einsum("ij,ij->i", vectors, left) / np.linalg.norm(left, axis=1)
    hits = (scores.argmax(axis=1) == own).astype(float)
    terms = np.column_stack([hits, np.ones(len(hits))])
    return bootstrap_sums(
        lambda s: s[:, 0] / s[:, 1], terms, n_resamples=1000, name="leave-one-out nearest-centroid accuracy"
    )


def _order(golden: Sequence[GoldenReply]) -> list[Estimate]:
    """Ask whether similarity of order tells replies of one regime apart better than similarity of the bag of
    intents.
    """
    chosen = [reply for reply in golden if reply.regime in ("control", "genuine", "mixed") and len(reply.chain) >= 3]
    chains = [[intent for intent in reply.chain if regime(intent) != "plain"] for reply in chosen]
    i, j = np.triu_indices(len(chosen), 1)
    same = np.array([chosen[a].regime == chosen[b].regime for a, b in zip(i, j, strict=True)])
    lcs = np.array([chain_match(chains[a], chains[b]) for a, b in zip(i, j, strict=True)])
    bag = np.array([jaccard(chains[a], chains[b]) for a, b in zip(i, j, strict=True)])
    area = partial(pair_auc, outcome=same, first=i, second=j, n_resamples=_RESAMPLES)
    return [
        area(lcs, name="AUC of LCS for same regime"),
        area(bag, name="AUC of Jaccard for same regime"),
        area(lcs, rival=bag, name="gain in AUC of LCS over Jaccard"),
    ]


def _pole_directions(instrument: Instrument, golden: Sequence[GoldenReply]) -> list[Estimate]:
    chosen = [reply for reply in golden if reply.pole in ("certainty", "doubt")]
    certain = np.array([reply.pole == "certainty" for reply in chosen])
    poles = instrument.model.poles
    if poles is None or len(set(certain.tolist())) < 2:
        return [Estimate.undefined("AUC of the pole difference", "no poles, or golden replies of one pole only")]
    vectors = np.asarray(instrument.embedder.embed([reply.response for reply in chosen]), dtype=np.float64)
    swapped = pool_mode_poles(instrument).raw(vectors)
    raw, away = poles.raw(vectors), -(vectors @ poles.doubt)
    return [
        auc(raw, certain, "AUC of the difference"),
        auc(away, certain, "AUC of distance from doubt alone"),
        auc_gain(raw, away, certain, "gain in AUC of the difference over distance from doubt"),
        auc(swapped, certain, "AUC with poles taken from whole pools"),
    ]


def pool_mode_poles(instrument: Instrument) -> Poles:
    """Return poles as the reference service ships them: the core pool as certainty, the shadow pool as doubt, the edge
    pool between.
    """
    near = instrument.model.neighbourhood
    parts = {
        pool: centroid(near.vectors[[entry.pool == pool for entry in near.entries]])
        for pool in ("core", "shadow", "edge")
    }
    return Poles(parts["core"], parts["shadow"], parts["edge"])


def texture_range(steps: int = 101) -> tuple[float, float]:
    """Return the least and the greatest texture without temperature over a grid of cosines in [0, 1]."""
    grid = np.linspace(0, 1, steps)
    values = [texture(point) for point in product(grid[:: max(1, steps // 20)], repeat=3)] + [texture((1.0, 0.0, 0.0))]
    return min(values), max(values)
