"""Every detector as one rater among others: agreement with human labels, and across versions.

What is rated is in :mod:`anima.findings.kappa_readings`, how the sentinel watches it in :mod:`anima.findings.kappa_watch`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from anima.embedding import get_embedder
from anima.findings.casino_recall import EARLIER
from anima.findings.kappa_readings import (
    ALL,
    CENTROID,
    EMBEDDINGS,
    FEW,
    FLOOR,
    HAND,
    HYBRID,
    PHRASES,
    TFIDF,
    Reading,
    difference,
)
from anima.findings.record import Claim, Finding, Material, Measurement
from anima.metaeval import eval_health_stamp
from anima.settings import data_path
from anima.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from anima.findings.kappa_readings import Rater, Sources
    from anima.metaeval import SentinelSnapshot

CHANGE: Final = "findings/casino_js_kappa_change.csv"
#: Labels for which an earlier lexicon had a category, as its table spells them.
EARLIER_LABELS: Final = ("elicit-pref", "promote-coordination", "elicit-pref|promote-coordination")


def raters_frame(raters: Iterable[Rater]) -> pd.DataFrame:
    """Return one row per rater: source, label, detector, n, groups, kappa and AC1 with intervals, agreement, base rates."""
    import pandas as pd

    return pd.DataFrame([
        {
            "source": r.reading.source, "label": r.reading.label, "detector": r.reading.detector, "n": r.kappa.n,
            "groups": r.kappa.n_clusters, "kappa": r.kappa.value, "low": r.kappa.low, "high": r.kappa.high,
            "AC1": r.ac1.value, "AC1 low": r.ac1.low, "AC1 high": r.ac1.high, "agreement": r.agreement,
            "majority": r.majority, "human rate": r.human, "detector rate": r.said, "held out": r.reading.held_out,
            "doubtful": r.doubtful, "n needed": r.needed if r.doubtful else math.nan, "design effect": r.design,
        }
        for r in raters
    ])  # fmt: skip


def version_steps(
    readings: Sequence[Reading], *, n_resamples: int = 2000, seed: int = 7
) -> list[tuple[Reading, Reading, Estimate]]:
    """Return for each label every detector after the one before it, with the paired difference of their kappas."""
    chains: dict[str, list[Reading]] = {}
    for reading in readings:
        chains.setdefault(reading.judge, []).append(reading)
    return [
        (old, new, difference(new, old, n_resamples=n_resamples, seed=seed))
        for chain in chains.values()
        for old, new in pairwise(chain)
    ]


def earlier_versions() -> pd.DataFrame:
    """Return kappa of the earlier lexicon's opening category in each of its versions (source: ``corpora/findings/README.md``)."""
    import pandas as pd

    frame = pd.read_csv(data_path(EARLIER), dtype={"version": str})
    chosen = frame[(frame["category"] == "apertura") & frame["label"].isin(EARLIER_LABELS)]
    columns = {"kappa_lo": "low", "kappa_hi": "high", "support": "support", "fires": "fires"}
    return chosen.rename(columns=columns)[
        ["version", "label", "n", "support", "fires", "kappa", "low", "high"]
    ].reset_index(drop=True)


def earlier_change() -> dict[str, Estimate]:
    """Return the paired change of that kappa from version 0.23.0 to 0.24.0, by label (same source)."""
    import pandas as pd

    rows: list[dict[str, Any]] = pd.read_csv(data_path(CHANGE)).to_dict("records")  # type: ignore[assignment]
    return {
        row["label"]: Estimate(
            f"kappa of {row['label']}, earlier lexicon 0.24.0 less 0.23.0", row["delta"], row["lo"], row["hi"],
            method="paired percentile bootstrap over dialogues, carried over", n=4615, n_clusters=396,
        )
        for row in rows
    }  # fmt: skip


def record(
    sources: Sources,
    raters: Sequence[Rater],
    steps: Iterable[tuple[Reading, Reading, Estimate]],
    *,
    parameters: Mapping[str, Any],
    history: Sequence[SentinelSnapshot],
) -> Finding:
    """Gather the finding.

    Parameters
    ----------
    raters, steps
        Of :func:`rate` and :func:`version_steps`.
    history
        The snapshots of this run; the sentinel's stamp on them is kept.
    """
    from anima.findings.kappa_watch import report_on

    measurements: list[Measurement] = []
    for rater in raters:
        r = rater.reading
        common: dict[str, Any] = {
            "held_out": r.held_out, "evidence": r.evidence, "language": r.language, "genre": r.genre, "tolerance": 0.02,
        }  # fmt: skip
        measurements.append(Measurement(f"{r.key}/kappa", f"{r.capability}, by {r.detector}", rater.kappa, **common))
    for old, new, estimate in steps:
        text = f"{new.capability}: {new.detector} less {old.detector}"
        common = {"language": new.language, "genre": new.genre, "evidence": new.evidence, "tolerance": 0.02}
        key = f"{new.judge}/{new.detector} less {old.detector}"
        measurements.append(Measurement(key, text, estimate, held_out=old.held_out and new.held_out, **common))
    for label, estimate in earlier_change().items():
        key = f"earlier lexicon/{label}/0.24.0 less 0.23.0"
        measurements.append(
            Measurement(key, f"{label} in negotiation, by an earlier lexicon", estimate, genre="negotiation chat")
        )
    known = {item.key: item.estimate for item in measurements}
    claims = [Claim(text, key, against) for text, key, against in _CLAIMS if key in known]
    health = eval_health_stamp(report_on(history))
    doubtful = [r.reading.key for r in raters if r.doubtful]
    return Finding.make(
        "kappa_revalidation",
        title="Which detectors agree with people, which do not, and which nobody can tell yet",
        answer=answer(raters),
        measurements=measurements,
        claims=claims,
        limits=list(LIMITS),
        materials=[Material.of(sources.casino), Material.of(sources.delidata)],
        parameters=parameters,
        embedder=get_embedder("bundled").id,
        data=("lexicon/lexicon.toml", "negation/en.toml", "golden/test.jsonl", "markers.toml", EARLIER, CHANGE),
        records={"raters": raters_frame(raters).to_dict("records"), "doubtful": doubtful, "health": health.to_dict()},
    )


def answer(raters: Sequence[Rater]) -> str:
    """Return the finding in two sentences, from its numbers."""
    above = sum(r.kappa.has_interval and r.kappa.low > FLOOR for r in raters)
    below = sum(r.kappa.has_interval and r.kappa.high < FLOOR for r in raters)
    doubt = sum(r.doubtful for r in raters)
    kappa = {r.reading.key: r.kappa for r in raters}
    told = [
        f"{name} {kappa[key].value:.2f}"
        for name, key in (
            ("elicit-pref by the hand lexicon", f"casino/elicit-pref/{HAND}"),
            ("by a head on embeddings", f"casino/elicit-pref/{EMBEDDINGS}"),
            ("types of deliberation", f"delidata type/{ALL}/{TFIDF}"),
            ("the instrument's intents", f"intents/{ALL}/{HYBRID}"),
            ("its markers", f"markers/{ALL}/patterns"),
        )
        if key in kappa
    ]
    return (
        f"Of {len(raters)} rows of a detector and a label, {above} agree with people above a kappa of {FLOOR:g} by their whole "
        f"interval, {below} below it, and {doubt} cannot be told yet. Kappa: {', '.join(told)}."
    )


_CLAIMS: Final = (
    ("An earlier lexicon's mended opening category agrees better on elicit-pref than before", "earlier lexicon/elicit-pref/0.24.0 less 0.23.0", 0.0),
    ("Phrases learnt from other dialogues agree better on elicit-pref than the hand lexicon", f"casino/elicit-pref/{PHRASES} less {HAND}", 0.0),
    ("The written lexicon alone is a usable rater of elicit-pref", f"casino/elicit-pref/{HAND}/kappa", FLOOR),
    ("A trained head is a usable rater of elicit-pref", f"casino/elicit-pref/{EMBEDDINGS}/kappa", FLOOR),
    ("A head trained on words is a usable rater of the type of a deliberating message", f"delidata type/{ALL}/{TFIDF}/kappa", FLOOR),
    ("A head trained on words is a usable rater of its target", f"delidata target/{ALL}/{TFIDF}/kappa", FLOOR),
    ("The instrument's intents agree with the golden labels substantially", f"intents/{ALL}/{HYBRID}/kappa", 0.6),
    ("The trained head names intents better than the nearest centroid", f"intents/{ALL}/{HYBRID} less {CENTROID}", 0.0),
    ("The instrument's poles are a usable rater of certainty and doubt", f"poles/{ALL}/poles/kappa", FLOOR),
    ("The instrument's formal markers agree with the golden labels substantially", f"markers/{ALL}/patterns/kappa", 0.6),
)  # fmt: skip
LIMITS: Final = (
    "Human labels are one reading each: CaSiNo and DeliData publish one label set, so no row says how far a second person would agree.",
    "The golden replies were written for this project and labelled twice by language models from one guide: agreement there is an upper bound.",
    f"Golden labels with fewer than {FEW} positives are not reported one by one; they count in the rows of all classes.",
    "Detectors were held out by dialogue, their make was not: what they choose from was picked with these corpora in view; the hand lexicon's openings too.",
    "The earlier lexicon's numbers are carried over with their source and not recomputed; its repaired phrases were read off the corpus they are scored on.",
    f"{FLOOR:g} as the floor is a convention, like every word for a kappa; nothing follows for a use that needs more.",
    "How many items would settle a row assumes that kappa and base rates are what they seem, and that dialogues cluster as they do here.",
    "Intervals are not corrected for their number: one row in twenty may miss its truth.",
)
