"""How much of what annotators see in CaSiNo a lexicon, learnt phrases, few examples and trained heads find.

Every detector is judged on the same folds by dialogue. The hand lexicon learns nothing, but its opening triggers were
informed by this corpus: it is not held out.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.detectors import (
    CrossValidation,
    EmbeddingHead,
    FewShotCentroids,
    HandLexicon,
    LearntPhrases,
    Majority,
    StackedHead,
    Texts,
    TfidfHead,
    cross_validate,
    learning_curve,
    with_context,
)
from anima.embedding import CachedEmbedder, get_embedder
from anima.findings.record import DESIGN, Claim, Finding, Material, Measurement, load_materials, stated
from anima.findings.shares import of_label
from anima.lexicon import learn
from anima.settings import data_path
from anima.stats import bootstrap_sums
from anima.text import count_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from anima.corpora import Corpus
    from anima.detectors import Detector
    from anima.detectors.crossval import Statistic
    from anima.findings.casino_outcomes import Family
    from anima.lexicon import PhraseLexicon
    from anima.lexicon.phrases import Scores

SCHEME: Final = "strategy"
HAND, PHRASES, FEW, TFIDF, BEST = "hand lexicon", "learnt phrases", "32-shot centroids", "TF-IDF", "embeddings + TF-IDF"
PLAIN, CONTEXT = "embeddings", "embeddings + context"
#: Which category of the hand lexicon was written for which label; no category means the other eight.
RULES: Final[Mapping[str, str]] = {"elicit-pref": "opening", "promote-coordination": "opening"}
#: Labels that the authors of the corpus left out of their own analysis because annotators agreed too little.
WEAK: Final = ("promote-coordination", "showing-empathy")
EARLIER: Final = "findings/casino_js_kappa_by_version.csv"
EXAMPLES: Final = "findings/casino_errors.toml"
NOTHING: Final = "(nothing instead)"
#: The rule that the reference baseline used: precision, support, and nothing shrunk.
FIXED_RULE: Final[Mapping[str, Any]] = {"min_precision": 0.6, "min_support": 5, "prior": 0.0}
#: Pairs of detectors whose difference is reported: label (None: the mean of all), statistic, detector, rival.
GAPS: Final[tuple[tuple[str | None, Statistic, str, str], ...]] = (
    ("elicit-pref", "kappa", PHRASES, HAND), ("promote-coordination", "kappa", PHRASES, HAND), (None, "f1", PHRASES, FEW),
    (None, "f1", BEST, TFIDF), (None, "f1", BEST, PHRASES), (None, "f1", CONTEXT, PLAIN),
)  # fmt: skip
#: Why the hand lexicon is not called held out.
INFORMED: Final = "Some phrases came from an earlier lexicon that was read off this corpus."
STATED: Final = stated("casino_recall")
LIMITS: Final = STATED.limits
_KEY: Final = ["utterance_id", "dialogue_id", "speaker"]
_BINS: Final[Mapping[str, tuple[float, ...]]] = {"words": (0, 8, 16, 28), "place in the dialogue": (0, 0.25, 0.5, 0.75)}


def load(corpus: str = "auto") -> Corpus:
    """Load CaSiNo; see :func:`~anima.findings.record.load_materials`."""
    return load_materials(corpus, "casino")[0]


def structure(corpus: Corpus) -> pd.DataFrame:
    """Return what the corpus holds, counted: one row per fact."""
    kinds = corpus.utterances["kind"].value_counts()
    texts = corpus.utterances.loc[corpus.utterances["kind"] == "button", "text"].value_counts()
    frame = corpus.labelled(SCHEME)
    several = frame[list(corpus.label_names(SCHEME))].to_numpy().sum(axis=1) >= 2
    strings = corpus.labels.groupby("utterance_id", sort=False)["label"].agg(",".join)
    rows = [
        ("dialogues", len(corpus.dialogues)),
        ("annotated dialogues", frame["dialogue_id"].nunique()),
        ("chat rows", len(corpus.utterances)),
        ("messages", int(kinds.get("message", 0))),
        *((f"buttons: {name}", int(n)) for name, n in texts.items()),
        ("annotated messages", len(frame)),
        *((f"annotated messages, {name}", int(n)) for name, n in frame["split"].value_counts().items()),
        ("with two labels or more", int(several.sum())),
        ("distinct strings of labels", strings.nunique()),
        ("texts that stand twice or more", corpus.report.duplicate_texts),
    ]
    return pd.DataFrame(rows, columns=["what", "n"])


def label_counts(corpus: Corpus) -> pd.DataFrame:
    """Return each label with the number and share of annotated utterances, the commonest first."""
    table = corpus.labelled(SCHEME)[list(corpus.label_names(SCHEME))]
    found = table.sum().sort_values(ascending=False, kind="stable").rename_axis("label").reset_index(name="utterances")
    return found.assign(share=found["utterances"] / len(table))


@cache
def earlier() -> pd.DataFrame:
    """Return what an earlier lexicon scored: every version, category and label (source: ``corpora/findings/README.md``)."""
    return pd.read_csv(data_path(EARLIER), dtype={"version": str})


def examples() -> pd.DataFrame:
    """Return the written messages that resemble the detector's errors: ``kind, label, text``."""
    return pd.DataFrame(tomllib.loads(data_path(EXAMPLES).read_text(encoding="utf-8"))["example"])


@dataclass(frozen=True, eq=False)
class Recall:
    """Every detector on the annotated utterances; made by :func:`compare`.

    Parameters
    ----------
    frame
        As from ``corpus.labelled``, with ``words`` and ``place in the dialogue`` (0 at its first chat row, 1 at its last).
    cv
        Held-out predictions of all detectors.
    """

    corpus: Corpus
    frame: pd.DataFrame = field(repr=False)
    cv: CrossValidation = field(repr=False)
    embedder: CachedEmbedder = field(repr=False)

    @property
    def labels(self) -> list[str]:
        """Names of the labels."""
        return list(self.cv.labels)

    @cached_property
    def head(self) -> Detector:
        """The head on embeddings and TF-IDF, trained on all annotated utterances: for texts it has not seen."""
        texts = Texts(self.frame["text"].tolist(), groups=self.frame["dialogue_id"], embedder=self.embedder)
        return StackedHead().fit(texts, self.frame[self.labels])

    def unseen(self) -> pd.DataFrame:
        """Return the head's decisions on the messages of dialogues without annotation: ids and one column per label."""
        chat = self.corpus.utterances[self.corpus.utterances["kind"] == "message"]
        chat = chat[~chat["dialogue_id"].isin(set(self.frame["dialogue_id"]))].reset_index(drop=True)
        if not len(chat):
            return pd.DataFrame(columns=[*_KEY, *self.labels])
        return chat[_KEY].join(self.head.predict(Texts(chat["text"].tolist(), embedder=self.embedder)))

    def held_out(self, name: str = BEST) -> pd.DataFrame:
        """Return a detector's held-out decisions: ids and one column per label."""
        return self.frame[_KEY].join(pd.DataFrame(self.cv.predicted[name], columns=self.labels))

    def without_repeats(self) -> CrossValidation:
        """Return the cross-validation without utterances whose text also stands in another dialogue."""
        homes = self.frame["dialogue_id"].groupby(self.frame["text"].map(bare)).transform("nunique")
        kept, cv = (homes == 1).to_numpy(), self.cv
        predicted = {name: values[kept] for name, values in cv.predicted.items()}
        scores = {name: values[kept] for name, values in cv.scores.items()}
        rows = cv.rows[kept].reset_index(drop=True)
        return replace(cv, rows=rows, truth=cv.truth[kept], predicted=predicted, scores=scores)


def detectors(seed: int = 7) -> list[Detector]:
    """Return the detectors that are compared, from those that learn nothing to those that learn most."""
    return [
        *(Majority(), HandLexicon(RULES), LearntPhrases(seed=seed), FewShotCentroids(8, seed=seed), FewShotCentroids(32, seed=seed)),
        *(TfidfHead(seed=seed), EmbeddingHead(seed=seed), EmbeddingHead(context=True, seed=seed), StackedHead(seed=seed)),
    ]  # fmt: skip


def compare(corpus: Corpus, *, folds: int = 5, n_resamples: int = 2000, seed: int = 7) -> Recall:
    """Judge every detector on the same folds by dialogue."""
    frame = with_context(corpus.labelled(SCHEME), corpus.utterances[corpus.utterances["kind"] == "message"])
    last = dict(zip(corpus.dialogues["dialogue_id"], corpus.dialogues["n_utterances"] - 1, strict=True))
    frame["words"] = [float(count_words(text)) for text in frame["text"]]
    frame["place in the dialogue"] = frame["turn"] / frame["dialogue_id"].map(last).clip(lower=1)
    embedder = CachedEmbedder(get_embedder("bundled"), memory=1 << 15)
    cv = cross_validate(
        detectors(seed), frame, list(corpus.label_names(SCHEME)), exclusive=False, folds=folds, seed=seed,
        n_resamples=n_resamples, embedder=embedder,
    )  # fmt: skip
    return Recall(corpus, frame, cv, embedder)


def curve(
    found: Recall, names: Sequence[str] = (PHRASES, TFIDF, BEST), *, parts: Sequence[int] = (16, 8, 4, 2)
) -> pd.DataFrame:
    """Return macro-F1 by number of training dialogues: a sixteenth, an eighth … of a fold's, and all of them."""
    cv = found.cv
    per_fold = cv.rows.groupby("fold")["group"].nunique()
    whole = int(per_fold.sum() - per_fold.max())
    sizes = sorted({max(2, whole // part) for part in parts})
    chosen = [item for item in detectors(cv.seed) if item.name in names]
    points = learning_curve(
        chosen, found.frame, found.labels, sizes=sizes, folds=len(per_fold), seed=cv.seed, n_resamples=cv.n_resamples,
        embedder=found.embedder, exclusive=False,
    ).points  # fmt: skip
    board = {e.extra["detector"]: e for e in cv.macro().estimates if e.extra["statistic"] == "f1"}
    full = [
        {"detector": n, "dialogues": whole, "f1": board[n].value, "low": board[n].low, "high": board[n].high}
        for n in names
    ]
    return pd.concat([points[["detector", "dialogues", "f1", "low", "high"]], pd.DataFrame(full)], ignore_index=True)


def phrases(found: Recall, label: str) -> PhraseLexicon:
    """Return the phrases learnt for a label from all annotated utterances, with their score on held-out dialogues."""
    return learn(found.frame, label, seed=found.cv.seed, n_resamples=found.cv.n_resamples)


def fixed_rule(found: Recall, label: str) -> Scores:
    """Return the held-out score of phrases under :data:`FIXED_RULE`, with nothing chosen here."""
    options: dict[str, Any] = dict(FIXED_RULE) | {"seed": found.cv.seed, "n_resamples": found.cv.n_resamples}
    scores = learn(found.frame, label, **options).held_out
    if scores is None:  # learn scores whenever it has folds
        raise RuntimeError("phrases were learnt without folds")
    return scores


def bare(text: str) -> str:
    """Return a text as lower-case words: what makes two messages the same."""
    return " ".join(re.findall(r"\w+", text.lower()))


def printable(lexicon: PhraseLexicon, texts: Iterable[str]) -> pd.DataFrame:
    """Return the learnt phrases that may be shown: none is a whole message of the corpus, none has more than four words."""
    whole = {bare(text) for text in texts}
    frame = lexicon.to_frame()[["phrase", "hits", "n"]]
    words = frame["phrase"].map(bare)
    return frame[[text not in whole and text.count(" ") < 4 for text in words]].reset_index(drop=True)


def confusions(found: Recall, name: str = BEST) -> pd.DataFrame:
    """Return for each label how often it is missed, and which wrong label stands instead.

    An utterance with several wrong labels counts for each. ``share`` is of the utterances with the missed label.
    """
    truth, predicted = found.cv.truth, found.cv.predicted[name]
    missed, extra = truth & ~predicted, predicted & ~truth
    table = np.column_stack([missed.T.astype(int) @ extra, missed[~extra.any(axis=1)].sum(axis=0)])
    frame = pd.DataFrame(table, index=found.labels, columns=[*found.labels, NOTHING]).rename_axis("missed")
    long = frame.reset_index().melt("missed", var_name="instead", value_name="utterances")
    support = dict(zip(found.labels, truth.sum(axis=0), strict=True))
    return long.assign(share=long["utterances"] / long["missed"].map(support))


def by_bin(found: Recall, names: Sequence[str] = (PHRASES, BEST)) -> pd.DataFrame:
    """Return F1 over all label decisions (micro-F1) by length of the utterance and by its place in the dialogue."""
    rows = []
    for measure, edges in _BINS.items():
        bins = np.digitize(found.frame[measure], edges[1:])
        ends = [f"{edge * (100 if edge < 1 and edges[-1] < 1 else 1):g}" for edge in edges]
        unit = "" if measure == "words" else " %"
        for k in range(len(edges)):
            mask = bins == k
            title = f"{ends[k]}–{ends[k + 1]}{unit}" if k + 1 < len(edges) else f"{ends[k]}{unit} and on"
            for name in names:
                truth, predicted = found.cv.truth[mask], found.cv.predicted[name][mask]
                terms = np.column_stack([(truth & predicted).sum(axis=1), truth.sum(axis=1) + predicted.sum(axis=1)])
                estimate = bootstrap_sums(
                    lambda sums: 2 * sums[:, 0] / sums[:, 1], terms, clusters=found.frame["dialogue_id"][mask],
                    n_resamples=found.cv.n_resamples, rng=found.cv.seed, name=f"micro-F1, {name}, {measure} {title}",
                )  # fmt: skip
                rows.append((measure, title, name, estimate, int(mask.sum())))
    return pd.DataFrame(rows, columns=["measure", "bin", "detector", "estimate", "n"])


def error_ids(found: Recall, name: str = BEST, most: int = 10) -> pd.DataFrame:
    """Return for each label and kind of error its number and the ids of the most confident ones."""
    rows = []
    for label in found.labels:
        for kind, group in found.cv.errors(name, label).groupby("error"):
            rows.append((label, kind, len(group), list(group["id"].head(most))))
    return pd.DataFrame(rows, columns=["label", "error", "n", "ids"])


def record(
    found: Recall, families: Mapping[str, Family], again: pd.DataFrame, *, parameters: Mapping[str, Any]
) -> Finding:
    """Gather the finding.

    Parameters
    ----------
    families
        As from :func:`anima.findings.casino_outcomes.families`.
    again
        What was found on human labels and looked for in the other dialogues, as from ``casino_outcomes.replicate``.
    """
    from anima.findings.casino_outcomes import CONSTANT, OUTCOMES

    cv, trivial = found.cv, found.cv.detectors[0]
    measured = partial(Measurement, genre="negotiation chat", language="en")
    measurements, claims = [], list(STATED.claims)
    shown = [e for e in cv.per_class().estimates if e.extra["detector"] in (trivial, HAND, PHRASES, BEST)]
    board = {(e.extra["detector"], e.extra["label"], e.extra["statistic"]): e for e in shown}
    board |= {(e.extra["detector"], "macro", e.extra["statistic"]): e for e in cv.macro().estimates}
    for (name, label, statistic), estimate in board.items():
        # The hand lexicon has no category for the other labels: its zeros there would measure nothing.
        if name == trivial or (name == HAND and label not in (*RULES, "macro")):
            continue
        what = "ten negotiation strategies" if label == "macro" else f"{label} in negotiation"
        base, key = board[trivial, label, statistic], f"{label}/{name}/{statistic}"
        number, unit = of_label(estimate)
        about: dict[str, Any] = {"held_out": name != HAND, "unit": unit, "note": INFORMED if name == HAND else DESIGN}
        measurements.append(measured(key, f"{what}, by {name}", number, base, **about))
    told = {claim.by: claim.text for claim in claims}
    for label, statistic, one, other in GAPS:
        key = f"{label or 'macro'}/{statistic}/{one} less {other}"
        gap = cv.difference(one, other, statistic, label)
        hand = HAND in (one, other)
        about = {"held_out": not hand, "unit": "messages", "note": f"{DESIGN} {INFORMED}" if hand else DESIGN}
        measurements.append(measured(key, told[key], gap, **about))
    for name, family in families.items():
        for outcome in OUTCOMES.values():
            key, strongest = f"outcomes/{name}/{outcome}", family.strongest(outcome)
            told_of = f"{outcome} of a speaker, from {name}"
            measurements.append(measured(key, told_of, strongest, tolerance=0.02, unit="speakers"))
            if name.endswith(CONSTANT):
                text = f"Some kind of message or phrase goes with {outcome} ({name})"
                claims.append(Claim(text, key, 0.0, "below" if strongest.value < 0 else "above"))
    return Finding.make(
        "casino_recall",
        title=STATED.title,
        answer=answer(found),
        measurements=measurements,
        claims=claims,
        limits=LIMITS,
        materials=[Material.of(found.corpus)],
        parameters=parameters,
        embedder=found.embedder.id,
        data=("lexicon/lexicon.toml", "negation/en.toml", EARLIER, "findings/casino_recall.toml"),
        records={"labels": label_counts(found.corpus), "errors": error_ids(found), "outcomes": again},
    )


def answer(found: Recall) -> str:
    """Return the finding in two sentences, from its numbers."""
    kappa = {
        e.extra["detector"]: e.value
        for e in found.cv.per_class([HAND, PHRASES, BEST]).estimates
        if (e.extra["label"], e.extra["statistic"]) == ("elicit-pref", "kappa")
    }
    old = earlier()[(earlier()["category"] == "apertura") & (earlier()["label"] == "elicit-pref")]["kappa"]
    f1 = {e.extra["detector"]: e.value for e in found.cv.macro().estimates if e.extra["statistic"] == "f1"}
    return (
        f"Kappa with annotators on elicit-pref: {old.iloc[0].round(2) + 0:.2f} and, mended on the same corpus, {old.iloc[-1]:.2f} by an earlier "
        f"lexicon, {kappa[HAND]:.2f} by ours, {kappa[PHRASES]:.2f} by phrases learnt from other dialogues, {kappa[BEST]:.2f} by a "
        f"trained head. Macro-F1 over ten labels: {f1[PHRASES]:.2f} by phrases, {f1[BEST]:.2f} by the head."
    )
