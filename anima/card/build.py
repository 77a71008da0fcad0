"""Gather the card: rows named in ``corpora/card.toml``, numbers from the published findings and the lexicon's ledger."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anima.card.model import Card, Section
from anima.card.rows import (
    coverage,
    evasion_rows,
    lexicon_rows,
    named_row,
    newest_day,
    open_claims,
    rules_judge,
    unproven_rows,
    worst_intents,
)
from anima.errors import InputError
from anima.files import write_whole
from anima.findings import published_findings, sources_hash
from anima.findings.history import NAME, RATERS, Standing, ends, published_report, read_history
from anima.findings.receipt import digest
from anima.lexicon import ledger
from anima.metaeval import eval_health_stamp
from anima.settings import data_path, results_dir
from anima.stats.estimate import json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from anima.findings import Finding
    from anima.metaeval import SentinelReport, SentinelSnapshot

#: What one alarm of each kind means, and what several mean; those below the floor are counted by their intervals.
_ALARMS: Final = {
    "drop": ("dropped at the last change", "dropped at the last change"),
    "drifting": ("drifts", "drift"),
    "silent-upgrade": (
        "stands for a model that changed and was not measured again",
        "stand for models that changed and were not measured again",
    ),
    "stale": ("is old", "are old"),
    "future": ("is dated in the future", "are dated in the future"),
}
_RULES: Final = "judge/rules_agreement.json"
_WORDS: Final = "card.toml"


def build_card(
    findings: Mapping[str, Finding],
    *,
    evidence: pd.DataFrame,
    rules: Mapping[str, Any] | None,
    history: Sequence[SentinelSnapshot],
    words: Mapping[str, Any],
    inputs: Mapping[str, str],
) -> Card:
    """Make a card; :func:`current_card` gathers the arguments.

    Parameters
    ----------
    findings
        By name. Those computed on written samples are left out: their rows read "not measured".
    evidence
        Of :func:`anima.lexicon.ledger`.
    rules
        Published agreement of the rules judge; None if there is none.
    history
        Snapshots of the results; dates and the health stamp come from it.
    words
        Content of ``card.toml``.
    inputs
        Hashes for the receipt.
    """
    findings = {name: item for name, item in findings.items() if not item.sample}
    known = {name: {item.key: item for item in found.measurements} for name, found in findings.items()}
    known["rules_judge"] = rules_judge(rules)
    dates = {name: newest_day(name, history) for name in known}
    able = [named_row(item, known, dates) for item in words["capability"]]
    blind = [named_row(item, known, dates) for item in words["blind_spot"]]
    blind += unproven_rows(able, blind) + worst_intents(known, dates)
    shown = {f"{item.get('finding')}: {item.get(key)}" for item in words["blind_spot"] for key in ("measurement", "difference")}  # fmt: skip
    blind += [row for row in open_claims(findings, dates) if row.source not in shown]
    order = list(dict.fromkeys(row.group for row in blind))
    blind.sort(key=lambda row: order.index(row.group))
    tables = {
        "capabilities": able,
        "blind_spots": blind,
        "evasions": evasion_rows(findings.get("evasions"), dates),
        "lexicon": lexicon_rows(evidence),
    }
    report = published_report(history)
    card = Card(
        title=words["title"],
        purpose=words["purpose"],
        uses=tuple(words["uses"]),
        avoid=tuple(words["avoid"]),
        stance=words["stance"],
        reading=words["reading"],
        coverage=coverage(able),
        sections=tuple(Section(**words["sections"][key], rows=tuple(rows)) for key, rows in tables.items()),
        limits={item.title: item.limits for item in findings.values()},
        stamp=eval_health_stamp(report),
        health=health_words(report),
        inputs=dict(inputs),
    )
    plain = card.to_dict()
    plain.pop("content")
    return replace(card, content=digest(plain))


def health_words(report: SentinelReport) -> str:
    """Return in a few sentences what the sentinel says of all published kappas together.

    Parameters
    ----------
    report
        Of :func:`anima.findings.history.published_report`.
    """
    if not report.judges:
        return "No detector is watched yet."
    floor = report.thresholds.floor("calibrationKappa") or 0.0
    newest = {item.judge_id: item for item in report.snapshots}
    told, (page, others) = (
        [],
        ([ends(item) for judge, item in newest.items() if judge.startswith(RATERS) == here] for here in (True, False)),
    )
    if page:
        told.append(
            f"Of {len(page)} row{'s' * (len(page) > 1)} of a detector and a label on the page “Which detectors agree with people?”, "
            f"{Standing.of(page, floor).told(floor)}."
        )
    if others:
        above, below, doubt = Standing.of(others, floor)
        told.append(
            f"Other pages publish {len(others)}{' more' * bool(page)}, each counted once: {above} above {floor:g}, {below} below "
            f"and {doubt} in doubt."
        )
    if any(alarm.kind == "below-floor" for alarm in report.alarms):
        told.append(
            "“Alarmed” means that at least one row lies below: do not rely on that detector for that label. It does not mean "
            "that a number changed."
        )
    found = Counter(alarm.kind for alarm in report.alarms if alarm.kind in _ALARMS)
    told += [f"{number} {_ALARMS[kind][number > 1]}." for kind, number in sorted(found.items())]
    if few := len(report.insufficient_history):
        whole = f"{few} of the {len(newest)}" if few < len(newest) else "All" if few > 1 else "It"
        told.append(f"{whole} {'was' if few == 1 else 'were'} published too few times to say whether anything changed.")
    return " ".join(told)


def current_card(folder: Path | None = None) -> Card:
    """Return the card of the code that is here and of its results; ``folder`` stands for theirs of this installation."""
    folder = folder or results_dir() or Path()
    findings = published_findings(folder)
    log, frame = folder / NAME, ledger()
    rules, words = data_path(_RULES).read_bytes(), data_path(_WORDS).read_bytes()
    inputs = {f"result {name}": digest(item.to_dict()) for name, item in findings.items()}
    for name in findings:
        try:
            inputs[f"code of {name}"] = sources_hash(f"anima.findings.{name}")
        except InputError:  # a result whose module is gone: its numbers stay, its code cannot be named
            inputs[f"code of {name}"] = "none"
    inputs |= {
        "lexicon ledger": digest(json_ready(frame.astype(object).where(frame.notna(), None))),
        "words of the card": digest(words),
        "agreement of the rules judge": digest(rules),
        "code of the card": sources_hash("anima.card.build"),
    }
    if log.is_file():
        inputs["history"] = digest(log.read_bytes())
    return build_card(
        findings,
        evidence=frame,
        rules=json.loads(rules),
        history=read_history(folder),
        words=tomllib.loads(words.decode()),
        inputs=inputs,
    )


def card_problems(folder: Path | None = None) -> list[str]:
    """Return why the committed card no longer describes the code and the results beside it; empty when it does."""
    return current_card(folder).problems(folder)


def write_card(folder: str | Path) -> Path:
    """Write the current card to ``<folder>/card.json``, whole or not at all, and return its path."""
    text = json.dumps(current_card().to_dict(), ensure_ascii=False, indent=1)
    return write_whole(Path(folder) / "card.json", text + "\n")
