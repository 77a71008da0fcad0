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
from anima.findings import published_findings, sources_hash
from anima.findings.history import NAME, read_history
from anima.findings.receipt import digest
from anima.lexicon import ledger
from anima.metaeval import eval_health_stamp, judge_sentinel_report
from anima.settings import data_path, results_dir
from anima.stats.estimate import json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from anima.findings import Finding
    from anima.metaeval import SentinelReport, SentinelSnapshot

#: What one alarm of each kind means, and what several mean.
_ALARMS: Final = {
    "below-floor": ("lies below the sentinel's floor", "lie below the sentinel's floor"),
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
    # An unchanged number leaves no line, so that the age of a line says nothing.
    report = judge_sentinel_report(history, thresholds={"stale_after_days": None})
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
    """Return in one or two sentences what the sentinel says of all detectors together."""
    if not (n := len(report.judges)):
        return "No detector is watched yet."
    found = Counter(alarm.kind for alarm in report.alarms)
    said = [f"{number} {_ALARMS[kind][number > 1]}" for kind, number in sorted(found.items())]
    unknown = len(report.unknown)
    told = "1 was" if unknown == 1 else f"{unknown} were"
    return (
        f"Of {n} published kappa{'s' * (n > 1)} of a detector on a label, {', '.join(said) or 'none raises an alarm'}"
        + (f"; {told} measured too few times to say whether {'it' if unknown == 1 else 'they'} changed." if unknown else ".")
    )  # fmt: skip


def current_card() -> Card:
    """Return the card of the code and the results that are here."""
    findings, folder = published_findings(), results_dir() or Path()
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


def card_problems() -> list[str]:
    """Return why the committed card no longer describes the code and results that are here; empty when it does."""
    return current_card().problems()


def write_card(folder: str | Path) -> Path:
    """Write the current card to ``<folder>/card.json``, whole or not at all, and return its path."""
    path = Path(folder) / "card.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(current_card().to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
    return path
