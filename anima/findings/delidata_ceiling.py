"""DeliData: what single messages can tell of a change of mind and of their labels, and the record of the whole finding.

What a change is, and what happens before one, is counted by :mod:`anima.findings.delidata_changes`; what groups gain by
:mod:`anima.findings.delidata_gain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.corpora import load_corpus
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
from anima.findings.delidata_changes import CATEGORY, CONTEXT, DATA
from anima.findings.delidata_gain import OUTCOMES
from anima.findings.record import Claim, Finding, Material, Measurement
from anima.stats import Estimate, auc, bootstrap
from anima.stats.folds import grouped_folds
from anima.stats.weighted import midranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from anima.corpora import Corpus
    from anima.detectors import CrossValidation, Detector
    from anima.findings.delidata_changes import Changes

    Floats = NDArray[np.float64]


def load(corpus: str = "auto") -> Corpus:
    """Load DeliData: "auto" takes it where it is installed, else the sample; "sample" the sample; else a folder."""
    named = "delidata" if corpus in ("auto", "sample") else corpus
    return load_corpus(named, sample=True if corpus == "sample" else None)


LENGTH, TFIDF, EMBEDDING, MESSAGE = "its length", "its words (TF-IDF)", "its meaning (embedding)", "the whole message"
BEFORE, BOTH = "what went before", "message and what went before"
#: What each system reads of a repeated proposal.
SYSTEMS: Final[Mapping[str, tuple[str, ...]]] = {
    LENGTH: ("length",), TFIDF: ("words",), EMBEDDING: ("meaning",), MESSAGE: ("words", "meaning"), BEFORE: ("before",),
    BOTH: ("words", "meaning", "before"),
}  # fmt: skip
#: Pairs whose difference is reported.
PAIRS: Final = ((MESSAGE, LENGTH), (BOTH, MESSAGE), (BOTH, BEFORE))


def held_out_scores(changes: Changes, *, folds: int = 5, seed: int = 7) -> pd.DataFrame:
    """Return for each repeated proposal how likely each system holds it to be another than the speaker's last one.

    Cards are masked in the text. Logistic regressions, fitted on the groups of the other folds; the strength of their
    penalty is scikit-learn's default, chosen on nothing.
    """
    import pandas as pd
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
    truth, owner = frame["new_proposal"].to_numpy(dtype=bool), frame["dialogue_id"].to_numpy()
    options: dict[str, Any] = {"clusters": owner, "n_resamples": n_resamples, "rng": seed}
    found = {name: auc(scores[name], truth.astype(float), name=f"AUC of {name}", **options) for name in SYSTEMS}

    def area(values: Floats, flags: NDArray[np.bool_]) -> float:
        n = int(flags.sum())
        return float((midranks(values)[flags].sum() - n * (n + 1) / 2) / (n * (len(flags) - n)))

    for name, rival in PAIRS:
        key = f"{name} less {rival}"
        found[key] = bootstrap(
            lambda a, b, y: area(a, y) - area(b, y), scores[name], scores[rival], truth, name=f"AUC of {key}", **options
        )
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
        frame = corpus.labelled(scheme)
        groups = min(folds, frame["dialogue_id"].nunique())
        found[scheme] = cross_validate(
            detectors,
            frame,
            list(corpus.label_names(scheme)),
            folds=groups,
            seed=seed,
            embedder=embedder,
            n_resamples=n_resamples,
        )
    return found


BEST: Final = "embeddings + TF-IDF"
LIMITS: Final = (
    "The tracked state is its authors' approximation: a question that names a card overwrites what its asker is taken to "
    "hold. Only proposals and submissions state a choice.",
    "The ceiling is that of linear models on words and on one sentence embedding; it says what these find in the proposals "
    "of one corpus, not what no reader could.",
    "Everything here is observed, nothing assigned: what precedes a changed submission, or goes with gain, need not cause it.",
    "One task with one right answer, in English, among crowd workers; the labels are one annotation each.",
    "The written lexicon was not developed on DeliData, the wide list of words was written for this comparison; both find a "
    "few changes in a hundred.",
    "Figures of the earlier lexicon are carried from its release; its list of words for submissions is not known, ours differ.",
)


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
    """Gather the finding from :func:`~anima.findings.delidata_changes.score_words`, :func:`ceiling`,
    :func:`~anima.findings.delidata_changes.before_submission`, :func:`~anima.findings.delidata_gain.outcome_counts`,
    :func:`~anima.findings.delidata_gain.gain_correlations` and
    :func:`detect`.
    """
    seen: list[Measurement] = []

    def add(key: str, capability: str, estimate: Estimate, **details: Any) -> None:
        seen.append(Measurement(key, capability, estimate, genre=GENRE, **details))

    for row in words.to_dict("records"):
        if row["words"] == CATEGORY:
            base = Estimate(f"precision of every unit: {row['definition']}", changes.unit(row["definition"])[1].mean())
            told = f"a change of mind ({row['definition']}), told by self-correction phrases"
            baseline = base if row["statistic"] == "precision" else None
            add(
                f"{CATEGORY}/{row['definition']}/{row['statistic']}",
                told,
                row["estimate"],
                baseline=baseline,
            )
    for name, estimate in areas.items():
        chance = Estimate("AUC of chance", 0.5) if " less " not in name else None
        add(
            f"ceiling/{name}",
            "a proposal that differs from the speaker's last one, cards masked",
            estimate,
            held_out=True,
            baseline=chance,
        )
    for row in before.to_dict("records"):
        add(
            f"before a changed submission/{row['event']}", f"changed submissions after: {row['event']}", row["estimate"]
        )
    for name, estimate in outcomes.items():
        add(f"outcome/{name}", "what groups reach", estimate)
    for row in gains.to_dict("records"):
        add(f"{row['outcome']}/{row['count']}", f"{OUTCOMES[row['outcome']]}, by {row['count']}", row["rho"])
        if row["count"] != "messages":
            told = f"{OUTCOMES[row['outcome']]}, by {row['count']} at equal length"
            add(f"{row['outcome']}/{row['count']}/partial", told, row["partial"])
    for scheme, result in labels.items():
        told = f"annotation {scheme} of a message"
        trivial = {e.extra["statistic"]: e for e in result.macro().estimates if e.extra["detector"] == "majority"}
        for estimate in result.macro().estimates:
            which, name = estimate.extra["statistic"], estimate.extra["detector"]
            add(f"{scheme}/{name}/macro-{which}", told, estimate, held_out=True, baseline=trivial[which])
        for estimate in result.per_class(BEST).estimates:
            if estimate.extra["statistic"] in ("f1", "kappa"):
                key = f"{scheme}/{estimate.extra['label']}/{estimate.extra['statistic']}"
                add(key, f"{told}: {estimate.extra['label']}", estimate, held_out=True)
    return Finding.make(
        "delidata_ceiling",
        title="A change of mind shows in what was said before, hardly in the message itself",
        answer=answer(changes, areas, before, gains),
        measurements=seen,
        claims=list(CLAIMS),
        limits=list(LIMITS),
        materials=[Material.of(corpus)],
        parameters=parameters,
        embedder=get_embedder("bundled").id,
        data=(DATA, "lexicon/lexicon.toml", "negation/en.toml"),
        records={"definitions": changes.counts().drop(columns="rate"), "mentions": changes.mentions()},
    )


GENRE: Final = "group chat on a reasoning task"
CLAIMS: Final = (
    Claim(
        "Self-correction phrases find a message that names a card better than chance does",
        f"{CATEGORY}/names a card/kappa",
        0.0,
    ),
    Claim(
        "Self-correction phrases find a proposal that differs better than chance does",
        f"{CATEGORY}/complete proposal differs/kappa",
        0.0,
    ),
    Claim(
        "They find more than one in twenty of the proposals that differ",
        f"{CATEGORY}/complete proposal differs/recall",
        0.05,
    ),
    Claim(
        "A message with its cards masked tells a changed proposal better than chance does", f"ceiling/{MESSAGE}", 0.5
    ),
    Claim("It tells it well (AUC above .7)", f"ceiling/{MESSAGE}", 0.7),
    Claim("What went before adds to the message", f"ceiling/{BOTH} less {MESSAGE}", 0.0),
    Claim(
        "Changed submissions more often follow a self-correction phrase of the participant",
        f"before a changed submission/own {CATEGORY}",
        1.0,
    ),
    Claim("They more often follow reasoning by others", "before a changed submission/others' Reasoning", 1.0),
    Claim(
        "They more often follow a proposal of others that differs",
        "before a changed submission/others' sets that differ",
        1.0,
    ),
    Claim("Groups gain in tracked performance", "outcome/mean gain", 0.0),
    Claim("Groups with more reasoning gain more, also at equal length", "gain/Reasoning/partial", 0.0),
    Claim("The same holds of exactly right submissions", "gain_exact/Reasoning/partial", 0.0),
    Claim("Groups with more self-correction gain more", f"gain/{CATEGORY}", 0.0),
    Claim("The type of a message is told with a mean kappa above .74", f"type/{BEST}/macro-kappa", 0.74),
    Claim("The target of a message is told with a macro-F1 above .72", f"target/{BEST}/macro-f1", 0.72),
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
