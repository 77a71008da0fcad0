"""Negation scope by rules: against trivial rivals and negspaCy, where it errs, and what polarity changes.

Everything runs under the protocol of :mod:`anima.negation.score`: cues are found by the system, all sentences are scored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.corpora import load_corpus
from anima.findings.negation_polarity import READINGS, UNITS
from anima.findings.negspacy import negspacy
from anima.findings.record import Claim, Evidence, Finding, Material, Measurement, load_materials, stated
from anima.findings.shares import counted
from anima.negation.score import Predictor, after_cue, ours, read_corpus, score, six_words, to_punctuation
from anima.stats import Estimate, bootstrap_sums, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from anima.corpora import Corpus
    from anima.negation import Lang, View
    from anima.negation.score import Sentence

    Floats = NDArray[np.float64]

#: Token F1 of NegBERT (Khandelwal and Sawant 2020) on the test part of CD-SCO: full scope and given cues, not our protocol.
NEURAL_F1: Final = 0.924
OURS, PUNCTUATION, NEGSPACY = "our rules", "to the next punctuation", "negspaCy"
TRIVIAL: Final[Mapping[str, Predictor]] = {
    PUNCTUATION: to_punctuation,
    "everything after the cue": after_cue,
    "six words": six_words,
}
#: A rise of false alarms below this is taken for none.
MARGIN: Final = 0.01
#: CD-SCO's development part has two chapters, too few to resample: passages of so many sentences are resampled instead.
PASSAGE: Final = 20
REPORTED: Final = {"cd-sco": ["dev"], "nubes": ["SAMPLE-005", "SAMPLE-006", "SAMPLE-007"]}
DEVELOPED: Final = {"cd-sco": ["training"], "nubes": ["SAMPLE-001", "SAMPLE-002", "SAMPLE-003", "SAMPLE-004"]}


@dataclass(frozen=True)
class Part:
    """Sentences of one source that are reported together.

    Parameters
    ----------
    key, name
        In the record, and as a reader is told.
    lang, genre
        What the numbers speak of; language None is mixed and guessed sentence by sentence.
    sentences, ids
        Cut into the protocol's tokens; the corpus' own ids.
    clusters
        What is resampled, one label per sentence; empty where each sentence stands alone.
    held_out
        Whether the rules were written without these sentences.
    evidence
        ``measured`` on labels of others, ``constructed`` on sentences written for the purpose.
    phenomena
        What each sentence is about, where that is known.
    """

    key: str
    name: str
    lang: Lang | None
    genre: str
    sentences: Sequence[Sentence] = field(repr=False)
    ids: Sequence[str] = field(repr=False)
    clusters: Sequence[str] = field(default=(), repr=False)
    held_out: bool = True
    view: View = "right"
    evidence: Evidence = "measured"
    phenomena: Sequence[str] = field(default=(), repr=False)

    @property
    def systems(self) -> dict[str, Predictor]:
        """Return every system that can be run here, by name."""
        peer = negspacy(self.lang, self.view)
        return {OURS: ours(self.lang, self.view), **TRIVIAL} | ({NEGSPACY: peer} if peer else {})


@dataclass(frozen=True)
class Sources:
    """The corpora of this finding, as loaded by :func:`load`."""

    cd_sco: Corpus
    nubes: Corpus
    written: Corpus
    casino: Corpus

    @property
    def sample(self) -> bool:
        """Whether written sentences or dialogues stand in for a corpus."""
        return self.cd_sco.sample or self.nubes.sample or self.casino.sample

    @property
    def materials(self) -> list[Material]:
        """Return what the record keeps; the written sentences are gold of their own, no sample of something else."""
        others = [Material.of(corpus) for corpus in (self.cd_sco, self.nubes, self.casino)]
        return [*others, replace(Material.of(self.written), sample=False)]

    def part(self, name: str, *, view: View = "right", held_out: bool = True) -> Part:
        """Return the reported sentences of "cd-sco", "nubes" or "negation" (the written gold), or those developed on."""
        if name == "negation":
            frame = self.written.utterances
            return Part(
                name, "written gold", None, "written sentences", read_corpus(self.written, view), list(frame["utterance_id"]),
                view=view, evidence="constructed", phenomena=list(self.written.dialogues["phenomenon"]),
            )  # fmt: skip
        english = name == "cd-sco"
        corpus, title = (self.cd_sco, "CD-SCO") if english else (self.nubes, "NUBes")
        if corpus.sample:
            title = f"stand-in for {title}"
        else:
            corpus = corpus.select((REPORTED if held_out else DEVELOPED)[name])
            title += "" if held_out else " (developed on)"
        title += ", full scope" if view == "full" else ""
        frame = corpus.utterances
        clusters = frame["dialogue_id"]
        if english:
            clusters = clusters + "/" + (frame["turn"] // PASSAGE).astype(str)
        return Part(
            name, title, "en" if english else "es", "stories" if english else "clinical notes",
            read_corpus(corpus, view), list(frame["utterance_id"]), list(clusters), held_out, view,
        )  # fmt: skip


def load(corpus: str = "auto") -> Sources:
    """Load what the finding is computed on; see :func:`~anima.findings.record.load_materials`."""
    cd_sco, nubes, casino = load_materials(corpus, "cd-sco", "nubes", "casino")
    return Sources(cd_sco, nubes, load_corpus("negation", sample=True), casino)


@dataclass(frozen=True)
class Line:
    """One statistic of one system on one part, and how far it lies above a rival's (paired)."""

    part: Part
    system: str
    statistic: str
    estimate: Estimate
    rival: str
    difference: Estimate


def _ratio(part: int | slice, whole: Sequence[int]) -> Callable[[Floats], Floats]:
    return lambda sums: sums[:, part] / sums[:, whole].sum(axis=1)


#: Columns of :func:`terms`: twice the hits, wrong and missed tokens; scopes in gold and found to the token; sentences without
#: gold, and those among them with a prediction.
STATISTICS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "token F1": _ratio(0, (0, 1, 2)),
    "exact scope": _ratio(4, (3,)),
    "false alarms": _ratio(6, (5,)),
}
#: What each statistic is a share of, in words and as a function of the sums: the n of its line.
DENOMINATORS: Final[Mapping[str, tuple[str, Callable[[Floats], float]]]] = {
    "token F1": ("words denied in the gold", lambda sums: sums[0] / 2 + sums[2]),
    "exact scope": ("sentences with a scope", lambda sums: sums[3]),
    "false alarms": ("sentences without a scope", lambda sums: sums[5]),
}


def terms(part: Part, predict: Predictor) -> Floats:
    """Return what each sentence adds to the sums that the statistics are made of."""
    hits, wrong, missed, size, exact = np.array(score(part.sentences, predict).rows, dtype=float).reshape(-1, 5).T
    gold = size > 0
    return np.column_stack([2 * hits, wrong, missed, gold, gold & (exact > 0), ~gold, ~gold & (wrong > 0)])


def compare(part: Part, *, n_resamples: int = 2000, seed: int = 7) -> list[Line]:
    """Score every system on a part, each with its difference to the trivial rule of the best token F1 there; our rules with
    that to negspaCy too, where installed.

    Differences are paired: both systems are resampled together, by cluster. ``n`` of a line is the denominator of its
    statistic, see :data:`DENOMINATORS`.
    """
    found = {name: terms(part, predict) for name, predict in part.systems.items()}
    f1 = STATISTICS["token F1"]
    best = max(TRIVIAL, key=lambda name: float(f1(found[name].sum(axis=0)[None])[0]))
    options: dict[str, Any] = {"clusters": part.clusters or None, "n_resamples": n_resamples, "rng": seed}

    def line(name: str, rival: str, statistic: str) -> Line:
        value, width = STATISTICS[statistic], found[name].shape[1]
        own = bootstrap_sums(value, found[name], name=f"{statistic}, {name}", **options)
        gap = bootstrap_sums(
            lambda s: value(s[:, :width]) - value(s[:, width:]), np.hstack([found[name], found[rival]]),
            name=f"{statistic}, {name} less {rival}", **options,
        )  # fmt: skip
        n, units = DENOMINATORS[statistic][1](found[name].sum(axis=0)), len(part.sentences) if value is f1 else None
        return Line(part, name, statistic, counted(own, n, units=units), rival, counted(gap, n, units=units))

    pairs = [(name, best) for name in found] + [(OURS, NEGSPACY)] * (NEGSPACY in found)
    return [line(name, rival, statistic) for name, rival in pairs for statistic in STATISTICS]


def to_frame(lines: Iterable[Line]) -> pd.DataFrame:
    """Return one row per line: part, system, statistic, value and interval, rival, difference and interval, n."""
    return pd.DataFrame([
        {
            "part": line.part.name, "system": line.system, "statistic": line.statistic,
            "value": line.estimate.value, "low": line.estimate.low, "high": line.estimate.high,
            "rival": line.rival, "difference": line.difference.value,
            "difference low": line.difference.low, "difference high": line.difference.high,
            "n": line.estimate.n, "clusters": line.estimate.n_clusters or line.estimate.n,
        }
        for line in lines
    ])  # fmt: skip


def by_phenomenon(part: Part) -> pd.DataFrame:
    """Return for each phenomenon and system how many sentences are right to the token, with Wilson intervals.

    A sentence without gold is right when nothing is predicted, so that phrases which deny nothing count too.
    """
    right = {name: [set(run(s)) == s.gold for s in part.sentences] for name, run in part.systems.items()}
    frame = pd.DataFrame({"phenomenon": part.phenomena} | right)
    frame = frame.melt("phenomenon", var_name="system", value_name="right")
    table = frame.groupby(["phenomenon", "system"], sort=False)["right"].agg(n="size", right="sum").reset_index()
    table["low"], table["high"] = wilson_interval(table["right"], table["n"])
    return table.assign(share=table["right"] / table["n"])


def error_of(gold: frozenset[int], found: set[int] | frozenset[int]) -> str:
    """Return the kind of error of a prediction; an empty string where it is right."""
    if found == gold:
        return ""
    if not found or not gold:
        return "nothing found" if gold else "false alarm"
    if found < gold or gold < found:
        return "too short" if found < gold else "too long"
    return "elsewhere" if found.isdisjoint(gold) else "shifted"


def errors(part: Part, system: str = OURS) -> pd.DataFrame:
    """Return the sentences a system gets wrong: part, id, kind of error, tokens missed and tokens too many."""
    predict, rows = part.systems[system], []
    for key, sentence in zip(part.ids, part.sentences, strict=True):
        found = set(predict(sentence))
        if kind := error_of(sentence.gold, found):
            rows.append((part.name, key, kind, len(sentence.gold - found), len(found - sentence.gold)))
    return pd.DataFrame(rows, columns=["part", "id", "error", "missed", "too many"])


def record(
    sources: Sources,
    lines: Iterable[Line],
    readings: pd.DataFrame,
    openings: pd.DataFrame,
    wrong: pd.DataFrame,
    *,
    parameters: Mapping[str, Any],
) -> Finding:
    """Gather the finding.

    Parameters
    ----------
    lines
        Of :func:`compare` on every reported part.
    readings, openings
        Of :func:`anima.findings.negation_polarity.marker_polarity` on held-out replies and ``opening_polarity``.
    wrong
        Of :func:`errors` on the reported parts; ids only.
    """
    scores = {(line.part.name, line.system, line.statistic): line.estimate for line in lines}
    measurements: list[Measurement] = []
    claims: list[Claim] = []
    for line in lines:
        part, full = line.part, line.part.view == "full"
        stem = f"{part.key}{'/full' if full else ''}/"
        told = "what a negation denies" + (", its subject included" if full else "")
        add = partial(
            Measurement, held_out=part.held_out, evidence=part.evidence, language=part.lang or "en, es", genre=part.genre,
            unit=DENOMINATORS[line.statistic][0],
        )  # fmt: skip
        if line.system == NEGSPACY and line.statistic == "token F1":
            key = f"{stem}negspaCy {line.statistic} less the best trivial rule"
            measurements.append(add(key, f"{told}, by negspaCy", line.difference))
            claims.append(
                Claim(f"{part.name}: negspaCy has a lower token F1 than the best trivial rule", key, 0.0, "below")
            )
        if line.system != OURS:
            continue
        key = stem + line.statistic
        if line.rival != NEGSPACY:
            measurements.append(add(key, told, line.estimate, scores[part.name, line.rival, line.statistic]))
            key += " less the best trivial rule"
            text, *side = _CLAIMS[line.statistic]
            claims.append(Claim(f"{part.name}: {text}", key, *side))
        else:
            key += " less negspaCy"
            if line.statistic == "token F1":
                claims.append(Claim(f"{part.name}: our rules have a higher token F1 than negspaCy", key, 0.0))
        measurements.append(add(key, told, line.difference))
    for what, frame, language, genre in (
        ("markers", readings, "en, es", "assistants' replies"),
        ("openings", openings, "en", "negotiation chat"),
    ):
        for row in frame[frame["reading"] == frame["reading"].iloc[-1]].itertuples():
            base = frame[(frame["reading"] == READINGS[0]) & (frame["statistic"] == row.statistic)]["estimate"].iloc[0]
            key, told = f"{what}/{row.statistic}", f"{what}, negated ones dropped"
            common: dict[str, Any] = {"held_out": what == "markers", "language": language, "genre": genre}
            common["unit"] = UNITS[what, row.statistic]
            measurements.append(Measurement(key, told, row.estimate, base, **common))
            measurements.append(Measurement(f"{key} gained", told, row.difference, **common))
        claims.append(Claim(f"Dropping negated {what} raises their precision", f"{what}/precision gained", 0.0))
    return Finding.make(
        "negation_scope",
        title=STATED.title,
        answer=answer(lines),
        measurements=measurements,
        claims=claims,
        limits=STATED.limits,
        materials=sources.materials,
        parameters=parameters,
        data=_DATA,
        records={"errors": wrong},
    )


_CLAIMS: Final[Mapping[str, tuple[Any, ...]]] = {
    "token F1": ("our rules have a higher token F1 than the best trivial rule", 0.0),
    "exact scope": ("our rules get more scopes right to the word than the best trivial rule", 0.0),
    "false alarms": (
        "our rules raise no more than one further false alarm in a hundred sentences",
        MARGIN,
        "below",
        "a rise that was taken for none; the test is of this margin, not of fewer alarms",
    ),
}
_DATA: Final = (
    "negation/en.toml", "negation/es.toml", "markers.toml", "lexicon/lexicon.toml", "findings/negation_scope.toml"
)  # fmt: skip
STATED: Final = stated("negation_scope")


def answer(lines: Iterable[Line]) -> str:
    """Return the finding in two sentences, from its numbers."""
    own = {
        (line.part.key, line.part.view, line.statistic): line
        for line in lines
        if line.system == OURS and line.rival != NEGSPACY
    }
    parts = []
    for key, name in (("cd-sco", "CD-SCO"), ("nubes", "NUBes"), ("negation", "the written gold")):
        if line := own.get((key, "right", "token F1")):
            parts.append(f"{line.estimate.value:.2f} on {name} ({line.estimate.value - line.difference.value:.2f})")
    tail = ""
    if exact := own.get(("negation", "right", "exact scope")):
        lead = exact.difference
        verb = "get more" if lead.low > 0 else "get fewer" if lead.high < 0 else "are not shown to get more"
        tail = f" On sentences written for the purpose they {verb} scopes right to the word."
    return f"Token F1 of our rules, with that of the best trivial rule: {', '.join(parts)}.{tail}"
