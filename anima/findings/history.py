"""The history of published kappas: an append-only file of snapshots, which is a sentinel store.

``book/results/history.jsonl`` holds one line for each detector whose published kappa changed: the finding and key as
judge, the hash of the code as model, kappa with n and interval, and the time of the publication. Nothing reads the clock
but the publication itself.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anima.checks import require_instant
from anima.metaeval import JsonlSentinelStore, SentinelSnapshot, judge_sentinel_report, validate_sentinel_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from anima.findings.record import Finding
    from anima.metaeval import SentinelReport
    from anima.stats import Estimate

NAME: Final = "history.jsonl"
#: Measurements whose key ends so are kappas of a detector against labels.
SUFFIX: Final = "/kappa"
#: The page that sets every detector against people; its rows stand for those that other pages publish too.
RATERS: Final = "kappa_revalidation/"
#: How judges of other pages begin, and the rows of that page begin which are the same detector, label and corpus.
_SAME: Final = (
    (RATERS, ""), ("casino_recall/", "casino/"), ("embedding_pipeline/intents", "intents/all classes/trained head"),
)  # fmt: skip
#: Part of the keys of means over labels: no kappa of a detector on a label.
_MEAN: Final = "/macro/"


def read_history(folder: str | Path) -> list[SentinelSnapshot]:
    """Return the lines of ``history.jsonl`` in a folder of results, oldest first; none where there is no file.

    Raises
    ------
    DataError
        A line is no snapshot; the message names file and line.
    """
    path = Path(folder) / NAME
    return JsonlSentinelStore(path).history() if path.is_file() else []


def kappa_snapshot(judge: str, model: str, at: str, kappa: Estimate | None) -> SentinelSnapshot:
    """Return a snapshot of a defined kappa; without one, the mere mark that another model is in use."""
    told: dict[str, Any] = {"at": at, "judgeId": judge, "judgeModel": model, "metrics": {}}
    if kappa is not None:
        told["metrics"] = {"calibrationKappa": round(kappa.value, 6)}
        if kappa.n:
            told["n"] = {"calibrationKappa": kappa.n}
        if kappa.has_interval:
            told["interval"] = {"calibrationKappa": [round(kappa.low, 6), round(kappa.high, 6)]}
    return validate_sentinel_snapshot(told)


def snapshots(finding: Finding, at: str) -> list[SentinelSnapshot]:
    """Return a snapshot of every defined kappa of a finding, dated ``at`` (ISO-8601 with a zone)."""
    require_instant(at, "at")
    return [
        kappa_snapshot(f"{finding.name}/{item.key}", finding.receipt.sources, at, item.estimate)
        for item in finding.measurements
        if item.key.endswith(SUFFIX) and item.estimate.defined
    ]


def append_history(finding: Finding, folder: str | Path, *, at: str) -> int:
    """Append the kappas of a finding that differ from their newest line; return how many lines were written.

    A line is written when value, interval or n changed, not when only the code did. A sample is never written.
    """
    if finding.sample:
        return 0
    newest = {item.judge_id: item.measured("calibrationKappa") for item in read_history(folder)}
    new = [item for item in snapshots(finding, at) if newest.get(item.judge_id) != item.measured("calibrationKappa")]
    if new:
        JsonlSentinelStore(Path(folder) / NAME).extend(new)
    return len(new)


class Standing(NamedTuple):
    """How many kappas lie above a floor by their whole interval, how many below it, and how many hold it."""

    above: int
    below: int
    doubt: int

    @classmethod
    def of(cls, intervals: Iterable[tuple[float, float]], floor: float) -> Standing:
        """Count intervals; one that is not known (NaN) leaves the kappa in doubt."""
        ends = list(intervals)
        above, below = sum(low > floor for low, _ in ends), sum(high < floor for _, high in ends)
        return cls(above, below, len(ends) - above - below)

    def told(self, floor: float) -> str:
        """Return the counts in words."""
        return (
            f"{self.above} agree with people above a kappa of {floor:g} by their whole interval, {self.below} lie below it, and "
            f"{self.doubt} are in doubt because their interval holds it"
        )


def series(judge: str) -> str:
    """Return detector, label and corpus of a published kappa, under one name whichever page publishes it."""
    name = judge.removesuffix(SUFFIX)
    for page, same in _SAME:
        if name.startswith(page):
            return same + name.removeprefix(page)
    return name


def ends(snapshot: SentinelSnapshot) -> tuple[float, float]:
    """Return the interval of a snapshot's kappa; NaN where it has none."""
    _, _, low, high = snapshot.measured("calibrationKappa")
    return (math.nan, math.nan) if low is None or high is None else (low, high)


def published_report(history: Sequence[SentinelSnapshot]) -> SentinelReport:
    """Return the sentinel's report on the published kappas: one series for each detector, label and corpus.

    A kappa raises the alarm "below floor" where its whole interval lies below; where the interval reaches over the floor
    its health is unknown. An unchanged number leaves no line in the history, so that the age of a line says nothing.
    """
    chosen: dict[str, str] = {}
    for item in sorted(history, key=lambda item: not item.judge_id.startswith(RATERS)):
        chosen.setdefault(series(item.judge_id), item.judge_id)
    kept = {judge for judge in chosen.values() if _MEAN not in judge}
    lines = [item for item in history if item.judge_id in kept]
    report = judge_sentinel_report(lines, thresholds={"stale_after_days": None})
    floor = report.thresholds.floor("calibrationKappa") or 0.0
    newest = {item.judge_id: item for item in report.snapshots}
    open_ = [
        alarm for alarm in report.alarms if alarm.kind == "below-floor" and not ends(newest[alarm.judge_id])[1] < floor
    ]
    alarms = tuple(alarm for alarm in report.alarms if alarm not in open_)
    told = tuple(f"{alarm.summary()}, but its interval reaches over it." for alarm in open_)
    alarmed, doubted = {alarm.judge_id for alarm in alarms}, {alarm.judge_id for alarm in open_}

    def health(judge: str, was: Any) -> Any:
        return "alarmed" if judge in alarmed else "unknown" if judge in doubted else was

    judges = {judge: health(judge, was) for judge, was in report.judges.items()}
    rows = (
        replace(row, health=health(row.judge_id, row.health), alarmed=row.judge_id in alarmed) for row in report.rows
    )
    unknown = report.unknown + told
    worst: Any = "alarmed" if alarms else "unknown" if unknown else "healthy"
    return replace(report, health=worst, rows=tuple(rows), alarms=alarms, unknown=unknown, judges=judges)


def history_problems(
    history: Sequence[SentinelSnapshot], published: Mapping[str, Finding], changelog: str
) -> list[str]:
    """Return what is wrong with the history of the published kappas.

    * A kappa fell below the interval of the line before, and no entry of the changelog names the detector (finding/key,
      without "/kappa") and its new value to two decimals.
    * A detector is no longer measured, and no entry names it.
    * A published kappa is not the newest line of its detector: it was written by hand, or the history was.
    * Lines of a detector do not follow one another in time.
    """
    problems: list[str] = []
    lines: dict[str, list[SentinelSnapshot]] = {}
    for item in history:
        lines.setdefault(item.judge_id, []).append(item)
    entries = changelog_entries(changelog)
    now = {item.judge_id: item for finding in published.values() for item in snapshots(finding, "2000-01-01T00:00:00Z")}
    for judge in sorted(lines.keys() | now.keys()):
        own, name = lines.get(judge, []), judge.removesuffix(SUFFIX)
        if any(old.time > new.time for old, new in pairwise(own)):
            problems.append(f"{judge}: lines of the history are not in the order of their times")
        if (current := now.get(judge)) is None:
            if not _named(entries, name):
                problems.append(f"{judge}: no longer measured; say so in the changelog, naming `{name}`")
        elif not own or own[-1].measured("calibrationKappa") != current.measured("calibrationKappa"):
            problems.append(f"{judge}: the published kappa is not the newest line of {NAME}; refresh its notebook")
            own = [*own, current]
        for old, new in pairwise(own):
            (before, _, low, _), (value, *_) = old.measured("calibrationKappa"), new.measured("calibrationKappa")
            if before is None or value is None or low is None or value >= low:
                continue
            if not _named(entries, name, f"{value:.2f}"):
                problems.append(
                    f"{judge}: kappa fell from {before:.3f} to {value:.3f}, below its interval from {low:.3f}; explain it in "
                    f"the changelog, naming `{name}` and {value:.2f}"
                )
    return problems


def changelog_entries(text: str) -> list[str]:
    """Return the items of a Markdown list, each as one line."""
    return [" ".join(item.split()) for item in re.split(r"^\s*[-*] ", text, flags=re.MULTILINE)[1:]]


def _named(entries: Iterable[str], *words: str) -> bool:
    """Say whether one entry holds all words, none of them inside a longer name or number."""
    shapes = [re.compile(rf"(?<![\w./-]){re.escape(word)}(?![\w/-]|\.\d)") for word in words]
    return any(all(shape.search(entry) for shape in shapes) for entry in entries)
