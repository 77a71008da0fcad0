"""Measure the rules judge on the golden sets and write corpora/judge/rules_agreement.json anew.

Run it when a test says that the table or the instrument has changed since. It reads the held-out set: fix the weights of
corpora/judge/rules.toml on dev before, and say in NOTE how often it has been read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anima
from anima.judge.agreement import RangeAgreement, rules_agreement
from anima.judge.rules import rules_hash
from anima.settings import data_path
from anima.stats import Estimate

if TYPE_CHECKING:
    from pathlib import Path

NOTE = (
    "Weights were fitted on dev; test was read once, after they were fixed. Golden sets were written and labelled by language "
    "models from one guide. Intervals: 95 %, percentile bootstrap by reply; correlation: Spearman. Constant: the best single "
    "score on dev."
)
FIELDS = ("value", "low", "high", "n", "n_dropped", "method", "status", "reason")


def told(found: RangeAgreement) -> dict[str, Any]:
    """Return an agreement as the file tells it, rounded."""

    def plain(value: Any) -> Any:
        if isinstance(value, Estimate):
            return {name: plain(getattr(value, name)) for name in FIELDS}
        return round(value, 3) if isinstance(value, float) else value

    return {name: plain(value) for name, value in vars(found).items()}


def write(path: Path) -> None:
    """Measure, and write ``path``."""
    instrument = anima.instrument()
    result = {
        "table": rules_hash(),
        "embedder": instrument.embedder.id,
        "classifier": instrument.analyze("Water boils.").classifier,
        "note": NOTE,
        "sets": {name: told(rules_agreement(instrument, name)) for name in ("dev", "test")},
    }
    path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    target = data_path("judge/rules_agreement.json")
    before = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    write(target)
    after = json.loads(target.read_text(encoding="utf-8"))
    if before.get("table", after["table"]) != after["table"]:
        print("The table has changed: the held-out set has been read once more. Say so in NOTE of this script.")
    print(f"{target}: {'as before' if after == before else 'changed'}")
