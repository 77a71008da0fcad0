"""Readings under the sentinel: snapshots batch by batch, a swap nobody measured, and what rounding does to kappa."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from anima.findings.history import kappa_snapshot
from anima.findings.kappa_readings import FEW, FLOOR, Reading, rate
from anima.findings.kappa_revalidation import EARLIER_LABELS, earlier_versions
from anima.judge.rules import reckon
from anima.metaeval import judge_sentinel_report
from anima.stats import Estimate, cohen_kappa, correlation, lin_ccc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from anima.authenticity.golden import GoldenReply
    from anima.authenticity.instrument import Instrument
    from anima.metaeval import SentinelReport, SentinelSnapshot, SentinelStore
    from anima.stats.agreement import Weights

#: Batches have an order and no date; the sentinel wants one, so each is given its own day.
FIRST_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)
WEIGHTS: Final[tuple[Weights, ...]] = ("nominal", "quadratic")
THRESHOLDS: Final = {"min_kappa": FLOOR}


def day(number: int) -> str:
    """Return the time given to the snapshot with this number."""
    return (FIRST_DAY + timedelta(days=number)).isoformat().replace("+00:00", "Z")


def snapshot(judge: str, model: str, number: int, kappa: Estimate) -> SentinelSnapshot | None:
    """Return a snapshot of a kappa; None if it is undefined."""
    if not kappa.defined:
        return None
    if kappa.low == kappa.high:
        # A bootstrap of few dialogues may not move at all; such an interval would claim to know the value exactly.
        kappa = replace(kappa, low=math.nan, high=math.nan)
    return kappa_snapshot(judge, model, day(number), kappa)


def batches(
    reading: Reading, *, first: int = 0, least: int = FEW, n_resamples: int = 500, seed: int = 7
) -> list[SentinelSnapshot]:
    """Return one snapshot per batch: the detector measured against gold on dialogues that no other batch holds.

    Batches with fewer than ``least`` items of the label are left out.
    """
    found = []
    for i, number in enumerate(np.unique(reading.batch)):
        part = reading.part(reading.batch == number)
        if part.classes == 2 and part.truth.sum() < least:
            continue
        kappa = rate(part, n_resamples=n_resamples, seed=seed).kappa
        if (item := snapshot(reading.judge, reading.detector, first + i, kappa)) is not None:
            found.append(item)
    return found


def all_snapshots(readings: Sequence[Reading], *, n_resamples: int = 500, seed: int = 7) -> list[SentinelSnapshot]:
    """Return the snapshots of every detector, versions of one label after each other, and those of the earlier lexicon."""
    found: list[SentinelSnapshot] = []
    ends: dict[str, int] = {}
    for reading in readings:
        first = ends.get(reading.judge, 0)
        found += batches(reading, first=first, n_resamples=n_resamples, seed=seed)
        ends[reading.judge] = first + len(np.unique(reading.batch))
    frame = earlier_versions()
    for label in EARLIER_LABELS:
        for i, row in enumerate(frame[frame["label"] == label].to_dict("records")):
            kappa = Estimate("kappa", float(row["kappa"]), float(row["low"]), float(row["high"]), n=int(row["n"]))
            item = snapshot(f"earlier lexicon/{label}", str(row["version"]), i, kappa)
            found += filter(None, [item])
    return sorted(found, key=lambda item: item.time)


def report_on(history: SentinelStore | Iterable[SentinelSnapshot]) -> SentinelReport:
    """Return the sentinel's report on snapshots of detectors."""
    return judge_sentinel_report(history, thresholds=THRESHOLDS)


def swap(old: Reading, new: Reading, *, n_resamples: int = 500, seed: int = 7) -> list[tuple[str, SentinelReport]]:
    """Return the sentinel's report at each stage of a swap: before, unmeasured, measured once, measured on all batches; and
    of the same swap when nobody says that the model is another one.
    """
    before = batches(old, least=1, n_resamples=n_resamples, seed=seed)
    at = len(np.unique(old.batch))
    mark = [kappa_snapshot(old.judge, new.detector, day(at), None)]
    measured = batches(new, first=at + 1, least=1, n_resamples=n_resamples, seed=seed)
    unnamed = [item.model_copy(update={"judge_model": old.detector}) for item in measured]
    stages = {
        f"{old.detector}, every batch measured": before,
        f"swapped for {new.detector}, not measured": before + mark,
        "measured once against gold": before + mark + measured[:1],
        "measured on every batch": before + mark + measured,
        "the same swap under the old name": before + unnamed,
    }
    return [(name, report_on(history)) for name, history in stages.items()]


def stages_frame(stages: Iterable[tuple[str, SentinelReport]]) -> pd.DataFrame:
    """Return one row per stage: what the sentinel says."""
    return pd.DataFrame([
        {
            "stage": name, "health": report.health, "alarms": ", ".join(alarm.kind for alarm in report.alarms) or "none",
            "says": "; ".join([alarm.message for alarm in report.alarms] or report.unknown) or "all well",
        }
        for name, report in stages
    ])  # fmt: skip


def rules_scores(
    instrument: Instrument, golden: Sequence[GoldenReply]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of the rules' judge and the middles of the golden ranges, both between 0 and 1."""
    known = [reply for reply in golden if reply.score_range is not None]
    analyses = instrument.analyze_many([r.response for r in known], [r.question for r in known], keywords="off")
    middles = [sum(reply.score_range) / 200 for reply in known if reply.score_range is not None]
    return np.array([reckon(analysis).score / 100 for analysis in analyses]), np.array(middles)


def rounding(
    scores: NDArray[np.float64], human: NDArray[np.float64], steps: Sequence[int], *, seed: int = 7
) -> pd.DataFrame:
    """Return kappa of scores between 0 and 1 that were rounded to so many steps, beside what needs no rounding.

    Rounding is half up, as packages written in JavaScript do it. One row per number of steps and statistic; concordance
    (Lin) and rank correlation of the unrounded scores have ``steps`` 0.
    """
    rows = []
    for k in steps:
        codes = [np.floor(values * (k - 1) + 0.5).astype(int) for values in (scores, human)]
        for weights in WEIGHTS:
            found = cohen_kappa(*codes, categories=list(range(k)), weights=weights, rng=seed)
            rows.append((k, f"kappa, {weights}", found))
    rows.append((0, "concordance", lin_ccc(scores, human)))
    rows.append((0, "rank correlation", correlation(scores, human, rng=seed)))
    return pd.DataFrame(rows, columns=["steps", "statistic", "estimate"])
