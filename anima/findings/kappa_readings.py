"""What detectors say of items that people labelled, and how far they agree with the labels.

A :class:`Reading` is all that agreement is computed from, so that lexicons, heads and the instrument are held to one
standard.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.authenticity.evaluate import align
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import load_markers
from anima.detectors import EmbeddingHead, HandLexicon, LearntPhrases, TfidfHead, cross_validate
from anima.findings.casino_recall import RULES
from anima.findings.record import load_materials
from anima.stats import Estimate, bootstrap_sums, cohen_kappa, confusion_terms, grouped_folds, n_for_kappa
from anima.stats.agreement import kappa_of_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from anima.authenticity.golden import GoldenReply
    from anima.authenticity.instrument import Instrument
    from anima.corpora import Corpus
    from anima.detectors import Detector
    from anima.findings.record import Evidence
    from anima.stats.weighted import Floats

    Codes = NDArray[np.intp]

#: A kappa below it is an alarm of the sentinel, and no rater to rely on; a row is in doubt when its interval holds it.
FLOOR: Final = 0.4
#: Labels of golden replies with fewer positives are not reported one by one: their intervals would say nothing.
FEW: Final = 8
HAND, PHRASES, TFIDF, EMBEDDINGS = "hand lexicon", "learnt phrases", "TF-IDF", "embeddings"
CENTROID, HYBRID = "nearest centroid", "trained head"
ALL: Final = "all classes"


@dataclass(frozen=True)
class Reading:
    """What one detector said of labelled items.

    Parameters
    ----------
    source, label, detector
        Where the labels come from, e.g. ``"casino"``; what was labelled; who says so.
    truth, said
        ``(n,)`` codes 0 … ``classes`` - 1 of the human label and of the detector's; with two classes, 1 is "has the label".
    groups
        ``(n,)`` dialogue or reply of each item: resampled as a whole.
    batch
        ``(n,)`` number of the batch that the sentinel sees the item in: whole dialogues, none twice.
    held_out
        Whether the detector was made without these items.
    """

    source: str
    label: str
    detector: str
    truth: Codes = field(repr=False)
    said: Codes = field(repr=False)
    groups: NDArray[Any] = field(repr=False)
    batch: Codes = field(repr=False)
    classes: int = 2
    held_out: bool = True
    evidence: Evidence = "measured"
    language: str = "en"
    genre: str = ""
    capability: str = ""

    @property
    def judge(self) -> str:
        """What is judged, whoever judges: the name under which versions follow one another."""
        return f"{self.source}/{self.label}"

    @property
    def key(self) -> str:
        """Judge and detector."""
        return f"{self.judge}/{self.detector}"

    @property
    def terms(self) -> Floats:
        """One-hot confusion cells of the items."""
        return confusion_terms(self.truth, self.said, self.classes)

    def part(self, mask: NDArray[np.bool_]) -> Reading:
        """Return the reading of some of the items."""
        cut = {name: getattr(self, name)[mask] for name in ("truth", "said", "groups", "batch")}
        return replace(self, **cut)


def kappa_of(classes: int) -> Callable[[Floats], Floats]:
    """Return Cohen's kappa as a function of summed confusion cells ``(m, classes**2)``."""
    return lambda sums: kappa_of_tables(sums.reshape(-1, classes, classes), np.eye(classes))


def ac1_of(classes: int) -> Callable[[Floats], Floats]:
    """Return Gwet's AC1 likewise: chance agreement from the mean base rates of both raters."""

    def statistic(sums: Floats) -> Floats:
        p = sums.reshape(-1, classes, classes) / sums.sum(axis=1)[:, None, None]
        rate = (p.sum(axis=1) + p.sum(axis=2)) / 2
        chance = (rate * (1 - rate)).sum(axis=1) / (classes - 1)
        return np.asarray((np.trace(p, axis1=1, axis2=2) - chance) / (1 - chance))

    return statistic


@dataclass(frozen=True)
class Rater:
    """A reading's agreement with its labels.

    Parameters
    ----------
    kappa, ac1
        With percentile intervals over dialogues (replies).
    agreement
        Share of items given the human label.
    human, said
        Share of items that people, and the detector, give the label; NaN for several classes.
    majority
        Share of the commonest human class: what agreement costs nothing.
    design
        How many times the variance of kappa exceeds that of items which stand alone; 1 at least.
    """

    reading: Reading
    kappa: Estimate
    ac1: Estimate
    agreement: float
    human: float
    said: float
    majority: float
    design: float = 1.0

    @property
    def doubtful(self) -> bool:
        """Whether the interval of kappa holds the floor: the data leave open on which side it lies."""
        return self.kappa.has_interval and self.kappa.low <= FLOOR <= self.kappa.high

    @property
    def needed(self) -> float:
        """Items that would tell kappa from the floor in 80 % of studies, were it what it seems; NaN for several classes.

        For two raters with one base rate (Donner and Eliasziw 1992), times ``design``.
        """
        if self.reading.classes > 2 or not self.kappa.defined or not 0 < self.human < 1:
            return math.nan
        # A kappa nearer to the floor than this cannot be told from it by any study one would run.
        if abs(self.kappa.value - FLOOR) < 0.01:
            return math.inf
        base = (self.human + self.said) / 2
        return math.ceil(n_for_kappa(min(max(self.kappa.value, 0.0), 0.999), null=FLOOR, prevalence=base) * self.design)


def rate(reading: Reading, *, n_resamples: int = 2000, seed: int = 7) -> Rater:
    """Return a reading's agreement with its labels."""
    k, terms = reading.classes, reading.terms
    options: dict[str, Any] = {"clusters": reading.groups, "n_resamples": n_resamples, "rng": seed}
    kappa = bootstrap_sums(kappa_of(k), terms, name=f"kappa, {reading.key}", **options)
    ac1 = bootstrap_sums(ac1_of(k), terms, name=f"AC1, {reading.key}", **options)
    table = terms.mean(axis=0).reshape(k, k)
    human, said = table.sum(axis=1), table.sum(axis=0)
    alone = cohen_kappa(reading.truth, reading.said, categories=list(range(k)))
    widths = [e.high - e.low if e.has_interval else math.nan for e in (kappa, alone)]
    if kappa.has_interval and kappa.low == kappa.high and alone.has_interval:
        # Where no resample differs, as at full agreement, the bootstrap would claim to know the value exactly.
        kappa = replace(kappa, low=alone.low, high=alone.high, method=f"{alone.method} (no resample differs)")
    design = max(1.0, (widths[0] / widths[1]) ** 2) if all(width > 0 for width in widths) else 1.0
    rates = (float(human[1]), float(said[1])) if k == 2 else (math.nan, math.nan)
    extra = dict(kappa.extra) | {"ac1": ac1.value, "agreement": float(np.trace(table)), "majority": float(human.max())}
    extra |= {"human rate": rates[0], "detector rate": rates[1]} if k == 2 else {}
    return Rater(reading, replace(kappa, extra=extra), ac1, float(np.trace(table)), *rates, float(human.max()), design)


def difference(new: Reading, old: Reading, *, n_resamples: int = 2000, seed: int = 7) -> Estimate:
    """Return how much kappa differs between two detectors of one label, both on the same resampled dialogues."""
    value, width = kappa_of(new.classes), new.classes**2
    return bootstrap_sums(
        lambda sums: value(sums[:, :width]) - value(sums[:, width:]), np.hstack([new.terms, old.terms]),
        clusters=new.groups, n_resamples=n_resamples, rng=seed, name=f"kappa of {new.judge}, {new.detector} less {old.detector}",
    )  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """The corpora of this finding; made by :func:`load`."""

    casino: Corpus
    delidata: Corpus

    @property
    def sample(self) -> bool:
        """Whether written dialogues stand in for a corpus."""
        return self.casino.sample or self.delidata.sample


def load(corpus: str = "auto") -> Sources:
    """Load the corpora; see :func:`~anima.findings.record.load_materials`."""
    return Sources(*load_materials(corpus, "casino", "delidata"))


def corpus_readings(corpus: Corpus, scheme: str, *, folds: int = 5, seed: int = 7) -> list[Reading]:
    """Return what detectors say of dialogues they were not trained on, label by label; where labels exclude each other
    also of all classes at once.

    The written lexicon has a category for two labels of CaSiNo and learns nothing; its triggers were informed by that
    corpus, so it is not held out.
    """
    casino = corpus.name == "casino"
    genre, what = ("negotiation chat", "in negotiation") if casino else ("group deliberation chat", "in deliberation")
    heads: list[Detector] = [LearntPhrases(seed=seed), TfidfHead(seed=seed)]
    detectors = [HandLexicon(RULES), *heads, EmbeddingHead(seed=seed)] if casino else heads
    frame, labels = corpus.labelled(scheme), corpus.label_names(scheme)
    cv = cross_validate(
        detectors, frame, list(labels), exclusive=not casino, folds=folds, seed=seed, n_resamples=1, embedder="bundled"
    )
    where: dict[str, Any] = {"groups": cv.rows["group"].to_numpy(), "batch": cv.rows["fold"].to_numpy()}
    source = corpus.name if casino else f"{corpus.name} {scheme}"
    found = []
    for name, predicted in cv.predicted.items():
        told = partial(Reading, source=source, detector=name, genre=genre, **where)
        if not casino:
            codes = cv.truth.argmax(axis=1), predicted.argmax(axis=1)
            text = f"{scheme} of a message {what}"
            found.append(told(label=ALL, truth=codes[0], said=codes[1], classes=len(labels), capability=text))
        for j, label in enumerate(labels):
            if name != HAND or label in RULES:
                flags = cv.truth[:, j].astype(np.intp), predicted[:, j].astype(np.intp)
                text = f"{label} {what}"
                found.append(told(label=label, truth=flags[0], said=flags[1], held_out=name != HAND, capability=text))
    return found


def golden_readings(
    instrument: Instrument, golden: Sequence[GoldenReply], *, folds: int = 5, seed: int = 7
) -> list[Reading]:
    """Return what the instrument says of golden replies: intents of sentences, by the plain centroid and by the trained
    head; formal markers; poles. Labels with fewer than :data:`FEW` positives count in "all classes" only.

    ``golden`` should be held out; items on which the two annotators disagreed are left out.
    """
    texts, questions = [reply.response for reply in golden], [reply.question for reply in golden]
    batch = grouped_folds(np.arange(len(golden)), folds, seed=seed)
    found: list[Reading] = []

    def add(
        source: str, label: str, detector: str, rows: Sequence[tuple[int, int, int]], capability: str, classes: int = 2,
        language: str = "en, es",
    ) -> None:  # fmt: skip
        """Add rows of (reply, truth, said)."""
        owner, truth, said = np.array(rows, dtype=np.intp).reshape(-1, 3).T
        if len(rows) and (label == ALL or FEW <= truth.sum() <= len(truth) - FEW):
            found.append(Reading(
                source, label, detector, truth, said, owner, batch[owner], classes, evidence="constructed",
                language=language, genre="assistants' replies", capability=capability,
            ))  # fmt: skip

    labels = (*catalogue(), UNCLASSIFIED)
    analyses = {
        name: instrument.with_settings(classifier=classifier).analyze_many(texts, questions, keywords="off")
        for name, classifier in ((CENTROID, "centroid"), (HYBRID, "hybrid"))
    }
    for name, results in analyses.items():
        rows = [
            (i, labels.index(sentence.intent), labels.index(said))
            for i, (reply, analysis) in enumerate(zip(golden, results, strict=True))
            for sentence, said in zip(reply.sentences, align(reply, analysis), strict=True)
            if sentence.intent is not None
        ]
        add("intents", ALL, name, rows, "intent of a sentence", len(labels))
        for lang in ("en", "es"):
            own = [row for row in rows if golden[row[0]].lang == lang]
            add(f"intents {lang}", ALL, name, own, "intent of a sentence", len(labels), lang)
        for j, label in enumerate(labels):
            add("intents", label, name, [(i, t == j, s == j) for i, t, s in rows], f"intent {label}")
    results = analyses[HYBRID]
    seen = [{hit.marker_id for hit in analysis.markers} for analysis in results]
    pairs = {
        marker.id: [
            (i, marker.id in reply.markers, marker.id in seen[i])
            for i, reply in enumerate(golden)
            if marker.id not in reply.disputed_markers
        ]
        for marker in load_markers()
    }
    add("markers", ALL, "patterns", [row for rows in pairs.values() for row in rows], "formal markers of a reply")
    for marker, hits in pairs.items():
        add("markers", marker, "patterns", hits, f"marker {marker}")
    poles = {"certainty": 0, "doubt": 1, "edge": 2, "none": 2}
    rows = [
        (i, poles[reply.pole], {1: 0, -1: 1}.get(analysis.pole.bucket, 2))
        for i, (reply, analysis) in enumerate(zip(golden, results, strict=True))
        if reply.pole in poles
    ]
    add("poles", ALL, "poles", rows, "certainty, doubt or neither", 3)
    return found
