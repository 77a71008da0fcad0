"""Every detector as one rater among others: agreement with human labels, and across versions.

What is rated is in :mod:`anima.findings.kappa_readings`, how the sentinel watches it in :mod:`anima.findings.kappa_watch`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from anima.embedding import get_embedder
from anima.findings.casino_recall import EARLIER, INFORMED
from anima.findings.history import Standing
from anima.findings.kappa_readings import ALL, EMBEDDINGS, FLOOR, HAND, HYBRID, TFIDF, Reading, difference
from anima.findings.record import DESIGN, Finding, Material, Measurement, stated
from anima.metaeval import eval_health_stamp
from anima.settings import data_path
from anima.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from anima.findings.kappa_readings import Rater, Sources
    from anima.metaeval import SentinelSnapshot

CHANGE: Final = "findings/casino_js_kappa_change.csv"
STATED: Final = stated("kappa_revalidation")
LIMITS: Final = STATED.limits
_DATA: Final = (
    "lexicon/lexicon.toml", "negation/en.toml", "golden/test.jsonl", "markers.toml", "findings/kappa_revalidation.toml"
)  # fmt: skip
#: Labels for which an earlier lexicon had a category, as its table spells them.
EARLIER_LABELS: Final = ("elicit-pref", "promote-coordination", "elicit-pref|promote-coordination")


def raters_frame(raters: Iterable[Rater]) -> pd.DataFrame:
    """Return one row per rater: source, label, detector, n, groups, kappa and AC1 with intervals, agreement, base rates."""
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
    frame = pd.read_csv(data_path(EARLIER), dtype={"version": str})
    chosen = frame[(frame["category"] == "apertura") & frame["label"].isin(EARLIER_LABELS)]
    columns = ["version", "label", "n", "support", "fires", "kappa", "low", "high"]
    return chosen.rename(columns={"kappa_lo": "low", "kappa_hi": "high"})[columns].reset_index(drop=True)


def earlier_change() -> dict[str, Estimate]:
    """Return the paired change of that kappa from version 0.23.0 to 0.24.0, by label (same source)."""
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

    def add(of: Reading, key: str, text: str, estimate: Estimate, held_out: bool) -> None:
        note = "" if of.evidence != "measured" else DESIGN if of.held_out else INFORMED
        about = (held_out, of.evidence, of.language, of.genre, 0.02, "items", note)
        measurements.append(Measurement(key, text, estimate, None, *about))

    for rater in raters:
        r = rater.reading
        add(r, f"{r.key}/kappa", f"{r.capability}, by {r.detector}", rater.kappa, r.held_out)
    for old, new, estimate in steps:
        step = f"{new.detector} less {old.detector}"
        add(new, f"{new.judge}/{step}", f"{new.capability}: {step}", estimate, old.held_out and new.held_out)
    for label, estimate in earlier_change().items():
        key, text = f"earlier lexicon/{label}/0.24.0 less 0.23.0", f"{label} in negotiation, by an earlier lexicon"
        measurements.append(Measurement(key, text, estimate, genre="negotiation chat"))
    known = {item.key for item in measurements}
    health = eval_health_stamp(report_on(history))
    doubtful = [r.reading.key for r in raters if r.doubtful]
    return Finding.make(
        "kappa_revalidation",
        title=STATED.title,
        answer=answer(raters),
        measurements=measurements,
        claims=[claim for claim in STATED.claims if claim.by in known],
        limits=LIMITS,
        materials=[Material.of(sources.casino), Material.of(sources.delidata)],
        parameters=parameters,
        embedder=get_embedder("bundled").id,
        data=(*_DATA, EARLIER, CHANGE),
        records={"raters": raters_frame(raters).to_dict("records"), "doubtful": doubtful, "health": health.to_dict()},
    )


def answer(raters: Sequence[Rater]) -> str:
    """Return the finding in two sentences, from its numbers."""
    standing = Standing.of(((r.kappa.low, r.kappa.high) for r in raters), FLOOR)
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
    return f"Of {len(raters)} rows of a detector and a label, {standing.told(FLOOR)}. Kappa: {', '.join(told)}."
