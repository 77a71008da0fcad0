"""Whether what a speaker does in a CaSiNo dialogue goes with how it ends: densities against points, satisfaction, liking.

One unit is a speaker in a dialogue. Every density is taken for the speaker and for the partner; the two speakers of a
dialogue are resampled together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from anima.lexicon import densities
from anima.metaeval import CorrelationStudy, correlation_study
from anima.stats import Estimate, adjust_p, correlation, n_for_correlation
from anima.stats.weighted import midranks
from anima.text import count_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anima.corpora import Corpus
    from anima.findings.casino_recall import Recall

#: Outcomes by the corpus' own name, as a reader is told.
OUTCOMES: Final[Mapping[str, str]] = {
    "points": "points",
    "satisfaction": "satisfaction",
    "opponent_likeness": "liking of the partner",
}
#: A density that fewer speakers than this share have at all is not studied.
MIN_SHARE: Final = 0.02
#: Fewer dialogues than this say nothing.
FEW_DIALOGUES: Final = 20
HUMAN, HEAD, LEXICON, LENGTH = "human labels", "trained head, other dialogues", "hand lexicon", "length alone"
CONSTANT: Final = ", messages held constant"
_KEY: Final = ["dialogue_id", "speaker"]


def label_shares(frame: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Return for each speaker of each dialogue the share of utterances with each label (columns of True and False)."""
    return frame.groupby(_KEY, sort=False)[list(labels)].mean().reset_index()


def lexicon_densities(messages: pd.DataFrame) -> pd.DataFrame:
    """Return for each speaker of each dialogue the hits of each lexicon category per 100 words, negated ones left out."""
    joined = messages.groupby(_KEY, sort=False)["text"].agg("\n".join).reset_index()
    return joined[_KEY].join(densities(joined["text"], "en"))


def lengths(messages: pd.DataFrame) -> pd.DataFrame:
    """Return how many messages and words each speaker wrote: the trivial predictors."""
    counted = messages[_KEY].assign(messages=1.0, words=[float(count_words(text)) for text in messages["text"]])
    return counted.groupby(_KEY, sort=False)[["messages", "words"]].sum().reset_index()


@dataclass(frozen=True)
class Family:
    """Densities of one source against all outcomes; corrected for together.

    Parameters
    ----------
    name
        Source of the densities, as a reader is told.
    study
        All pairs; p-values by Holm, intervals resample dialogues.
    detectable
        Correlation that this family finds with 80 % power at its strictest level (Bonferroni), if a dialogue counts as
        one unit, and if each speaker does; the truth lies between.
    """

    name: str
    study: CorrelationStudy
    detectable: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of comparisons."""
        return self.study.family_size

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair: source, density, of whom, outcome, rho, interval, simultaneous interval, p by Holm."""
        rows = []
        for pair in self.study.pairs:
            rho, wide = pair.estimate, simultaneous(pair.estimate, self.size)
            about = (self.name, *pair.eval_metric.split(": ", 1), pair.outcome_metric, pair.n)
            rows.append((*about, rho.value, rho.low, rho.high, wide.low, wide.high, pair.p_adjusted))
        columns = [
            "source",
            "whose",
            "density",
            "outcome",
            "n",
            "rho",
            "low",
            "high",
            "wide low",
            "wide high",
            "p by Holm",
        ]
        return pd.DataFrame(rows, columns=columns)

    def strongest(self, outcome: str) -> Estimate:
        """Return the strongest pair of an outcome, with the interval that holds for all pairs of the family at once.

        Being the best of many is thereby allowed for.
        """
        found = [pair for pair in self.study.pairs if pair.outcome_metric == outcome and pair.estimate.defined]
        if not found:
            return Estimate.undefined(f"{self.name}, {outcome}", "no density varies between speakers")
        best = max(found, key=lambda pair: abs(pair.estimate.value))
        named = replace(best.estimate, name=f"rho of {outcome} with the {best.eval_metric.replace(': ', '’s ')}")
        return simultaneous(named, self.size)


def simultaneous(estimate: Estimate, size: int) -> Estimate:
    """Return an estimate with the interval that holds together with those of ``size`` comparisons.

    Bonferroni on Fisher's z with the standard error over resampled dialogues that the p-value was made with, so that
    interval and p-value say the same; tail quantiles of the resamples themselves would need many more of them.
    """
    from scipy.special import stdtrit

    units = (estimate.n_clusters or estimate.n) - 1
    if not (estimate.defined and 0 < estimate.p_value < 1):
        return replace(estimate, low=math.nan, high=math.nan)
    z = math.atanh(estimate.value)
    error = abs(z / float(stdtrit(units, estimate.p_value / 2)))
    half = error * float(stdtrit(units, 1 - (1 - estimate.level) / 2 / size))
    method = f"Fisher z, error over clusters, Bonferroni over {size}"
    return replace(estimate, low=math.tanh(z - half), high=math.tanh(z + half), method=method)


def family(
    name: str,
    table: pd.DataFrame,
    corpus: Corpus,
    *,
    given: pd.DataFrame | None = None,
    n_resamples: int = 2000,
    seed: int = 7,
) -> Family:
    """Study the densities of one source against all outcomes.

    Parameters
    ----------
    table
        One row per speaker and dialogue, as from :func:`label_shares`; columns in which fewer than :data:`MIN_SHARE` of
        the speakers have anything are left out.
    given
        As from :func:`lengths`: correlations hold the messages of speaker and partner constant (partial rank
        correlation: ranks less what the ranks of both counts explain linearly). None: plain Spearman.
    """
    names = [column for column in table.columns if column not in _KEY and (table[column] > 0).mean() >= MIN_SHARE]
    runs = _both_sides(table, names)
    outcomes = corpus.outcomes.pivot_table(index=_KEY, columns="name", values="value")
    outcomes = outcomes.rename(columns=OUTCOMES).reset_index()
    metrics, ends = [column for column in runs.columns if ": " in column], list(OUTCOMES.values())
    if given is not None:
        both = _both_sides(given, ["messages"]).rename(columns=lambda column: column.replace(": ", " wrote "))
        every = runs.merge(outcomes, on=_KEY).merge(both, on=_KEY).dropna()
        ranks = every[[*metrics, *ends]].apply(midranks, raw=True)
        wrote = (midranks(every[column].to_numpy()) for column in both.columns[2:])
        design = np.column_stack([np.ones(len(every)), *wrote])
        every = every[_KEY].join(ranks - design @ np.linalg.lstsq(design, ranks.to_numpy(), rcond=None)[0])
        runs, outcomes = every[[*_KEY, *metrics]].copy(), every[[*_KEY, *ends]].copy()
    for frame in (runs, outcomes):
        frame["run_id"] = frame["dialogue_id"] + "/" + frame["speaker"]
    study = correlation_study(
        runs, outcomes, metrics, ends, clusters="dialogue_id", n_resamples=n_resamples, rng=seed,
        method="spearman" if given is None else "pearson",
    )  # fmt: skip
    alpha = 0.05 / max(1, study.family_size)
    units = (runs["dialogue_id"].nunique(), len(runs))
    return Family(name, study, tuple(detectable(n, alpha=alpha) for n in units))


def _both_sides(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return each speaker's columns, and the partner's beside them."""
    own, other = (table[_KEY].join(table[names].add_prefix(f"{whose}: ")) for whose in ("speaker", "partner"))
    pairs = own.merge(other, on="dialogue_id", suffixes=("", "_of_partner"))
    pairs = pairs[pairs["speaker"] != pairs["speaker_of_partner"]]
    return pairs.drop(columns="speaker_of_partner").reset_index(drop=True)


def families(found: Recall, *, n_resamples: int = 2000, seed: int = 7) -> dict[str, Family]:
    """Return the four sources of densities, each also with the messages of both speakers held constant.

    Human labels of the annotated dialogues; the head's decisions on the others, which it was not trained on (in a sample
    without enough of those, its held-out decisions); the hand lexicon and mere length on all dialogues.
    """
    chat = found.corpus.utterances[found.corpus.utterances["kind"] == "message"]
    other = found.unseen()
    length = lengths(chat)
    if other["dialogue_id"].nunique() < FEW_DIALOGUES:
        other = found.held_out()
    shares = {HUMAN: label_shares(found.frame, found.labels), HEAD: label_shares(other, found.labels)}
    tables = [
        (name + suffix, table, given)
        for name, table in (shares | {LEXICON: lexicon_densities(chat)}).items()
        for suffix, given in (("", None), (CONSTANT, length))
    ]
    return {
        name: family(name, table, found.corpus, given=given, n_resamples=n_resamples, seed=seed)
        for name, table, given in [*tables, (LENGTH, length, None)]
    }


def replicate(first: Family, again: Family, *, level: float = 0.05) -> pd.DataFrame:
    """Return what a family found (p by Holm below ``level``), and the same pairs in another family, on other dialogues.

    ``replicated``: same sign, and p by Holm over these pairs alone below ``level``.
    """
    table = first.to_frame()
    table = table[table["p by Holm"] < level]
    rows = []
    for row in table.itertuples():
        try:
            estimate = again.study[f"{row.whose}: {row.density}", str(row.outcome)].estimate
        except KeyError:  # hardly anybody does it there
            estimate = Estimate.undefined("rho", "not studied there")
        first_time = (row.whose, row.density, row.outcome, row.rho, row.low, row.high)
        rows.append((*first_time, estimate.value, estimate.low, estimate.high, estimate.p_value))
    columns = ["whose", "density", "outcome", "rho", "low", "high", "rho again", "low again", "high again", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["p by Holm, again"] = adjust_p(frame.pop("p").astype(float))
    frame["replicated"] = (frame["p by Holm, again"] < level) & (frame["rho"] * frame["rho again"] > 0)
    return frame.sort_values("rho", key=abs, ascending=False, ignore_index=True)


def detectable(n: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest correlation that ``n`` pairs find with the given power, two-sided."""
    low, high = 1e-3, 0.999
    if n_for_correlation(high, power=power, alpha=alpha) > n:
        return math.nan
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if n_for_correlation(middle, power=power, alpha=alpha) <= n else (middle, high)
    return high


def agreement_of_shares(
    human: pd.DataFrame, detected: pd.DataFrame, labels: Sequence[str], *, n_resamples: int = 2000, seed: int = 7
) -> pd.DataFrame:
    """Return for each label how well a detector's share per speaker orders speakers as the human share does (rho)."""
    both = human.merge(detected, on=_KEY, suffixes=("", " detected"), validate="one_to_one")
    rows = []
    for label in labels:
        own, other = both[label], both[f"{label} detected"]
        found = correlation(
            own, other, clusters=both["dialogue_id"], n_resamples=n_resamples, rng=seed, p_value="none",
            name=f"rho of {label} shares",
        )  # fmt: skip
        rows.append((label, found, own.mean(), other.mean()))
    return pd.DataFrame(rows, columns=["label", "estimate", "human", "detected"])
