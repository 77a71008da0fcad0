"""What polarity changes: hits of the markers and the lexicon that a negation denies, and what dropping them does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.authenticity.markers import find_markers, load_markers
from anima.findings.shares import counted
from anima.lexicon import scan_many
from anima.negation import scopes
from anima.stats import Estimate, bootstrap_sums, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from anima.authenticity.golden import GoldenReply
    from anima.corpora import Corpus

    Floats = NDArray[np.float64]

READINGS: Final = ("no polarity", "the negation rules", "the markers' own check")
#: A category of the lexicon and the human labels of CaSiNo that it should find.
OPENING: Final = ("opening", ("elicit-pref", "promote-coordination"))
#: What precision and recall are shares of: the n of their estimates.
UNITS: Final = {
    ("markers", "precision"): "markers found", ("markers", "recall"): "markers labelled",
    ("openings", "precision"): "messages with a hit", ("openings", "recall"): "messages with the label",
}  # fmt: skip


def marker_polarity(
    replies: Sequence[GoldenReply], *, n_resamples: int = 2000, seed: int = 7
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare readings of the markers on golden replies: no polarity, the negation rules, the markers' own check.

    Returns
    -------
    hits
        One row per hit that is not quoted or reported: reply, language, marker, phrase, and under each reading whether it
        counts.
    readings
        Precision and recall of the markers of a reply against its labels, with intervals by reply and the paired difference
        to "no polarity". Disputed markers are left out.
    """
    negatable = {marker.id: marker.negatable for marker in load_markers()}
    rows, sums = [], []
    for reply in replies:
        denied = [scope for scope in scopes(reply.response, reply.lang) if not scope.double]  # type: ignore[arg-type]
        counted: list[set[str]] = [set() for _ in READINGS]
        for hit in find_markers(reply.response, load_markers(), question=reply.question):
            if hit.suppressed and not hit.reason.startswith("negated"):
                continue
            inside = negatable[hit.marker_id] and any(scope.covers(hit.start, hit.start + 1) for scope in denied)
            counts = (True, not inside, not hit.suppressed)
            rows.append((reply.id, reply.lang, hit.marker_id, hit.phrase, *counts))
            for names, flag in zip(counted, counts, strict=True):
                names |= {hit.marker_id} if flag else set()
        kept = [names - reply.disputed_markers for names in counted]
        sums.append([x for names in kept for x in (len(names & reply.markers), len(names), len(reply.markers))])
    table = np.array(sums, dtype=float)
    hits = pd.DataFrame(rows, columns=["reply", "lang", "marker", "phrase", *READINGS])
    return hits, _readings(READINGS, "markers", table, None, n_resamples, seed)


def lexicon_polarity(texts: Sequence[str]) -> pd.DataFrame:
    """Count the lexicon's hits by category, and how many are negated or uncertain, with Wilson intervals of the negated."""
    hits = [(hit.category, hit.polarity) for found in scan_many(texts) for hit in found]
    frame = pd.DataFrame(hits, columns=["category", "polarity"])
    table = pd.crosstab(frame["category"], frame["polarity"])
    table = table.reindex(columns=["affirmed", "negated", "uncertain"], fill_value=0)
    table.insert(0, "hits", table.sum(axis=1))
    table = table.sort_values(["hits", "category"], ascending=[False, True]).reset_index()
    table["share negated"] = table["negated"] / table["hits"]
    table["low"], table["high"] = wilson_interval(table["negated"], table["hits"])
    return table.rename_axis(columns=None)


def opening_polarity(casino: Corpus, *, n_resamples: int = 2000, seed: int = 7) -> pd.DataFrame:
    """Compare precision and recall of the lexicon's openings on CaSiNo's labelled messages, negated hits counted and dropped;
    intervals by dialogue.
    """
    category, labels = OPENING
    frame = casino.labelled("strategy")
    truth = frame[list(labels)].any(axis=1).to_numpy()
    hits = [
        {hit.polarity for hit in found if hit.category == category} for found in scan_many(frame["text"].tolist(), "en")
    ]
    fires = np.array([bool(found) for found in hits]), np.array([bool(found - {"negated"}) for found in hits])
    table = np.column_stack([x for fire in fires for x in (fire & truth, fire, truth)]).astype(float)
    names = ("no polarity", "negated hits dropped")
    return _readings(names, "openings", table, frame["dialogue_id"], n_resamples, seed)


def _readings(
    names: Sequence[str], what: str, table: Floats, clusters: Any, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Return precision and recall of each reading, and the paired difference to the first.

    ``table`` has three columns for each reading: hits that are right, hits, gold; ``n`` is the hits of a precision (of a
    difference, the hits of the first reading) and the gold of a recall.
    """

    def estimate(name: str, statistic: Callable[[Floats], Floats], column: int) -> Estimate:
        found = bootstrap_sums(statistic, table, clusters=clusters, n_resamples=n_resamples, rng=seed, name=name)
        return counted(found, table[:, column].sum(), units=len(table))

    def share(k: int, whole: int) -> Callable[[Floats], Floats]:
        return lambda sums: sums[:, 3 * k] / sums[:, 3 * k + whole]

    def gained(k: int, whole: int) -> Callable[[Floats], Floats]:
        return lambda sums: share(k, whole)(sums) - share(0, whole)(sums)

    rows = []
    for k, name in enumerate(names):
        for statistic, whole in (("precision", 1), ("recall", 2)):
            label = f"{statistic} of {what}, {name}"
            gap = estimate(f"{label} less {names[0]}", gained(k, whole), whole)
            rows.append((name, statistic, estimate(label, share(k, whole), 3 * k + whole), gap))
    return pd.DataFrame(rows, columns=["reading", "statistic", "estimate", "difference"])
