"""DeliData: what single messages can tell of a change of mind and of their labels, and the record of the whole finding.

What a change is, and what happens before one, is counted by :mod:`anima.findings.delidata_changes`; what groups gain by
:mod:`anima.findings.delidata_gain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.detectors import (
    EmbeddingHead,
    FewShotCentroids,
    LearntPhrases,
    Majority,
    StackedHead,
    TfidfHead,
    cross_validate,
)
from anima.embedding import get_embedder
from anima.findings.delidata_changes import CATEGORY, CONTEXT, DATA, SUBMISSION, UNITS
from anima.findings.delidata_gain import OUTCOMES
from anima.findings.record import DESIGN, Finding, Material, Measurement, load_materials, stated
from anima.findings.shares import of_label
from anima.stats import Estimate, auc, grouped_folds
from anima.stats.separation import auc_difference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anima.corpora import Corpus
    from anima.detectors import CrossValidation, Detector
    from anima.findings.delidata_changes import Changes


def load(corpus: str = "auto") -> Corpus:
    """Load DeliData; see :func:`~anima.findings.record.load_materials`."""
    return load_materials(corpus, "delidata")[0]


LENGTH, TFIDF, EMBEDDING, MESSAGE = "its length", "its words (TF-IDF)", "its meaning (embedding)", "the whole message"
BEFORE, BOTH = "what went before", "message and what went before"
#: What each system reads of a repeated proposal.
SYSTEMS: Final[Mapping[str, tuple[str, ...]]] = {
    LENGTH: ("length",), TFIDF: ("words",), EMBEDDING: ("meaning",), MESSAGE: ("words", "meaning"), BEFORE: ("before",),
    BOTH: ("words", "meaning", "before"),
}  # fmt: skip
#: Pairs whose difference is reported.
PAIRS: Final = ((MESSAGE, LENGTH), (MESSAGE, BEFORE), (BOTH, MESSAGE), (BOTH, BEFORE))


def held_out_scores(changes: Changes, *, folds: int = 5, seed: int = 7) -> pd.DataFrame:
    """Return for each repeated proposal how likely each system holds it to be another than the speaker's last one.

    Cards are masked in the text. Logistic regressions, fitted on the groups of the other folds; the strength of their
    penalty is scikit-learn's default, chosen on nothing.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    frame = changes.proposals
    vectors = np.nan_to_num(get_embedder("bundled").embed(frame["masked"].tolist()).astype(np.float64))
    meaning = [f"meaning {i}" for i in range(vectors.shape[1])]
    table = pd.concat([frame, pd.DataFrame(vectors, columns=meaning)], axis=1)
    table["length"] = frame["masked"].str.split().map(len)

    def numbers() -> Any:
        return make_pipeline(FunctionTransformer(np.log1p), StandardScaler())

    def system(reads: tuple[str, ...]) -> Any:
        parts = {
            "length": (numbers(), ["length"]), "before": (numbers(), list(CONTEXT)), "meaning": ("passthrough", meaning),
            "words": (TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2), "masked"),
        }  # fmt: skip
        chosen = ColumnTransformer([(name, *parts[name]) for name in reads])
        return make_pipeline(chosen, LogisticRegression(max_iter=1000))

    truth = frame["new_proposal"].to_numpy(dtype=bool)
    fold = grouped_folds(frame["dialogue_id"], min(folds, frame["dialogue_id"].nunique()), seed=seed)
    out = pd.DataFrame({name: np.zeros(len(frame)) for name in SYSTEMS})
    for k in range(int(fold.max()) + 1):
        if len(set(truth[fold != k])) < 2:
            continue  # in a small sample: nothing can be learnt, every proposal is scored alike
        for name, reads in SYSTEMS.items():
            model = system(reads).fit(table[fold != k], truth[fold != k])
            out.loc[fold == k, name] = model.decision_function(table[fold == k])
    return out


def ceiling(changes: Changes, scores: pd.DataFrame, *, n_resamples: int = 2000, seed: int = 7) -> dict[str, Estimate]:
    """Return the AUC of each system on repeated proposals, and the paired differences of :data:`PAIRS`, by name.

    Groups are resampled. AUC .5 is chance; a reader who compares the cards with the speaker's last proposal would have 1.
    """
    frame = changes.proposals
    truth = frame["new_proposal"].to_numpy(dtype=float)
    options: dict[str, Any] = {"clusters": frame["dialogue_id"].to_numpy(), "n_resamples": n_resamples, "rng": seed}
    found = {name: auc(scores[name], truth, name=f"AUC of {name}", **options) for name in SYSTEMS}
    for name, rival in PAIRS:
        key = f"{name} less {rival}"
        found[key] = auc_difference(scores[name], scores[rival], truth, name=f"AUC of {key}", **options)
    return found


SCHEMES: Final = ("type", "target")


def detect(corpus: Corpus, *, folds: int = 5, n_resamples: int = 2000, seed: int = 7) -> dict[str, CrossValidation]:
    """Return held-out predictions of both annotation schemes, from the commonest label to the strongest head.

    Groups are kept whole. Strengths of the heads are fixed; only the strongest head tunes its thresholds, on inner folds.
    """
    from anima.embedding import TableEmbedder

    texts = sorted(set(corpus.labelled(SCHEMES[0])["text"]))
    # One pass of the model serves both schemes.
    embedder = TableEmbedder(texts, np.nan_to_num(get_embedder("bundled").embed(texts)))
    detectors: list[Detector] = [
        Majority(), LearntPhrases(seed=seed), FewShotCentroids(32, seed=seed), EmbeddingHead(strength=6.0, tune=False),
        TfidfHead(strength=4.0, tune=False), StackedHead(strength=0.5, seed=seed),
    ]  # fmt: skip
    found = {}
    for scheme in SCHEMES:
        frame, names = corpus.labelled(scheme), list(corpus.label_names(scheme))
        options: dict[str, Any] = {"folds": min(folds, frame["dialogue_id"].nunique()), "seed": seed}
        found[scheme] = cross_validate(detectors, frame, names, embedder=embedder, n_resamples=n_resamples, **options)
    return found


BEST: Final = "embeddings + TF-IDF"
#: Why the written lexicon is not called held out.
READ: Final = (
    "Phrases not fitted to these labels, but some hits on this corpus were read for the ledger of the lexicon."
)
STATED: Final = stated("delidata_ceiling")
LIMITS: Final = STATED.limits


def record(
    corpus: Corpus,
    changes: Changes,
    *,
    words: pd.DataFrame,
    areas: Mapping[str, Estimate],
    before: pd.DataFrame,
    outcomes: Mapping[str, Estimate],
    gains: pd.DataFrame,
    labels: Mapping[str, CrossValidation],
    parameters: Mapping[str, Any],
) -> Finding:
    """Gather the finding.

    Parameters
    ----------
    words, before
        Of ``score_words`` and ``before_submission`` of :mod:`anima.findings.delidata_changes`.
    areas, labels
        Of :func:`ceiling` and :func:`detect`.
    outcomes, gains
        Of ``outcome_counts`` and ``gain_correlations`` of :mod:`anima.findings.delidata_gain`.
    """
    seen: list[Measurement] = []

    def add(key: str, capability: str, estimate: Estimate, **details: Any) -> None:
        seen.append(Measurement(key, capability, estimate, genre="group chat on a reasoning task", **details))

    for row in words[words["words"] == CATEGORY].to_dict("records"):
        definition, statistic = row["definition"], row["statistic"]
        base = Estimate(f"precision of every unit: {definition}", changes.unit(definition)[1].mean())
        told = f"a change of mind ({definition}), told by self-correction phrases"
        key = f"{CATEGORY}/{definition}/{statistic}"
        unit = f"{'submissions' if definition == SUBMISSION else 'messages'} {UNITS[statistic]}".strip()
        rival = base if statistic == "precision" else None
        add(key, told, row["estimate"], baseline=rival, unit=unit, note=READ)
    for name, estimate in areas.items():
        chance = Estimate("AUC of chance", 0.5) if " less " not in name else None
        told = "a proposal that differs from the speaker's last one, cards masked"
        add(f"ceiling/{name}", told, estimate, held_out=True, baseline=chance, unit="repeated proposals")
    for row in before.to_dict("records"):
        event = row["event"]
        key = f"before a changed submission/{event}"
        add(key, f"changed submissions after: {event}", row["estimate"], unit="submissions")
    for name, estimate in outcomes.items():
        unit = "groups" if estimate.n_clusters is None else "people"
        add(f"outcome/{name}", "what groups reach", estimate, unit=unit)
    for row in gains.to_dict("records"):
        key, told = f"{row['outcome']}/{row['count']}", f"{OUTCOMES[row['outcome']]}, by {row['count']}"
        add(key, told, row["rho"], unit="groups")
        if row["count"] != "messages":
            add(f"{key}/partial", f"{told} at equal length", row["partial"], unit="groups")
    for scheme, result in labels.items():
        told = f"annotation {scheme} of a message"
        trivial = {e.extra["statistic"]: e for e in result.macro().estimates if e.extra["detector"] == "majority"}
        for estimate in result.macro().estimates:
            which, name = estimate.extra["statistic"], estimate.extra["detector"]
            key, note = f"{scheme}/{name}/macro-{which}", "" if name == "majority" else DESIGN
            about: dict[str, Any] = {"held_out": True, "unit": "messages", "note": note}
            add(key, told, estimate, baseline=trivial[which], **about)
        for estimate in result.per_class(BEST).estimates:
            label, which = estimate.extra["label"], estimate.extra["statistic"]
            if which in ("f1", "kappa"):
                own, unit = of_label(estimate)
                add(f"{scheme}/{label}/{which}", f"{told}: {label}", own, held_out=True, unit=unit, note=DESIGN)
    return Finding.make(
        "delidata_ceiling",
        title=STATED.title,
        answer=answer(changes, areas, before, gains),
        measurements=seen,
        claims=STATED.claims,
        limits=LIMITS,
        materials=[Material.of(corpus)],
        parameters=parameters,
        embedder=get_embedder("bundled").id,
        data=(DATA, "lexicon/lexicon.toml", "negation/en.toml", "findings/delidata_ceiling.toml"),
        records={"definitions": changes.counts().drop(columns="rate"), "mentions": changes.mentions()},
    )


def answer(changes: Changes, areas: Mapping[str, Estimate], before: pd.DataFrame, gains: pd.DataFrame) -> str:
    """Return the finding in four sentences, from its numbers."""
    frame = changes.counts(n_resamples=1).set_index("definition")["changes"]
    odds = before.set_index("event")["estimate"]
    differ = odds["others' sets that differ"]
    rho = gains.set_index(["outcome", "count"])["rho"]
    return (
        f"Of {frame['names a card']:,} messages that name a card {frame['complete proposal differs']:,} are complete "
        f"proposals that differ from the speaker's last one. With the cards masked the message tells these from other "
        f"repeated proposals with an AUC of {_say(areas[MESSAGE])}, together with what went before of {_say(areas[BOTH])}. "
        f"Odds ratio of a changed submission: {_say(odds[f'own {CATEGORY}'])} after a self-correction phrase of the "
        f"participant, {_say(differ)} after a different proposal by someone else. Correlation with the group's gain: "
        f"{_say(rho['gain', 'Reasoning'])} of reasoning, {_say(rho['gain', CATEGORY])} of self-correction."
    )


def _say(number: Estimate) -> str:
    return f"{number.value:.2f} [{number.low:.2f}, {number.high:.2f}]" if number.defined else "undefined"
