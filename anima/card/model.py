"""What a capability card holds: tables of one form, words, health, and the hashes it was made from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.findings.receipt import digest
from anima.findings.record import DIGITS
from anima.settings import results_dir
from anima.stats import Estimate, Presentable
from anima.stats.estimate import json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from anima.metaeval import EvalHealthStamp

Verdict = Literal["better", "not shown", "worse", "fails", "undecided", ""]
NOT_MEASURED: Final = "not measured"


@dataclass(frozen=True)
class Row(Presentable):
    """One line of a table of the card.

    Attributes
    ----------
    group, title, note
        Part of the toolkit, what is claimed or missing, and for whom it is and what it is not.
    estimate, baseline
        Number and trivial rival; an undefined estimate says why in its reason.
    verdict
        Whether the number is better than the trivial rival: decided by the interval of their paired difference where that was
        measured, otherwise by its own. Of a claim: "fails" or "undecided".
    evidence, held_out
        Grade of the evidence; ``held_out`` is None where the question does not arise.
    language, genre, date
        Material, and day of the last change in the history ("–" if unknown).
    source
        Finding and measurement.
    unit
        What ``n`` of the estimate counts.
    """

    group: str
    title: str
    note: str
    estimate: Estimate
    baseline: Estimate | None = None
    verdict: Verdict = ""
    evidence: str = NOT_MEASURED
    held_out: bool | None = None
    language: str = ""
    genre: str = ""
    date: str = "–"
    source: str = ""
    unit: str = ""

    @property
    def grade(self) -> str:
        """Evidence in words."""
        if self.held_out is None or self.evidence in (NOT_MEASURED, "refuted"):
            return self.evidence
        return f"{self.evidence}, {'held out' if self.held_out else 'not held out'}"

    def summary(self) -> str:
        """Return one sentence."""
        return f"{self.title}: {self.estimate.summary() if self.estimate.defined else NOT_MEASURED}"


@dataclass(frozen=True)
class Section:
    """A table of the card."""

    title: str
    text: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Card(Presentable):
    """What the instrument can and cannot do.

    Attributes
    ----------
    title, purpose, uses, avoid, stance, reading
        Words from ``card.toml``: what it is for and not for, how to deploy it, how to read the tables.
    coverage
        Languages and genres with the grades of their evidence, one line each.
    sections
        Tables of equal form: capabilities, blind spots, evasions, lexicon.
    limits
        What each finding says it does not say.
    stamp
        Health of the measured detectors over the history of results.
    health
        The same in a sentence.
    inputs
        Content hashes of all the card was made from.
    content
        Hash of the card itself.
    """

    title: str
    purpose: str
    uses: tuple[str, ...]
    avoid: tuple[str, ...]
    stance: str
    reading: str
    coverage: tuple[str, ...]
    sections: tuple[Section, ...]
    limits: Mapping[str, tuple[str, ...]]
    stamp: EvalHealthStamp
    health: str
    inputs: Mapping[str, str]
    content: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the card as it is written, numbers rounded."""
        plain = json.dumps({key: json_ready(value) for key, value in vars(self).items()})
        # Adding 0 makes -0 plain 0.
        return {"card": 1, **json.loads(plain, parse_float=lambda text: round(float(text), DIGITS) + 0.0)}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per line of the tables."""
        import pandas as pd

        rows = []
        for section in self.sections:
            for row in section.rows:
                known: dict[str, Any] = {"section": section.title, "group": row.group, "title": row.title}
                known |= {"statistic": row.estimate.name, "value": row.estimate.value, "low": row.estimate.low}
                known |= {"high": row.estimate.high, "n": row.estimate.n}
                known |= {"baseline": row.baseline.value if row.baseline else float("nan"), "verdict": row.verdict}
                rows.append(known | {"evidence": row.grade, "date": row.date, "source": row.source})
        return pd.DataFrame(rows)

    def summary(self) -> str:
        """Return one sentence."""
        able, blind = self.sections[0].rows, self.sections[1].rows
        shown = sum(row.verdict == "better" for row in able)
        return (
            f"{shown} of {len(able)} capabilities are shown to be better than a trivial rule; {len(blind)} blind spots are named; "
            f"health {self.stamp.health}."
        )

    def problems(self, folder: Path | None = None) -> list[str]:
        """Return in words how the committed card differs from this one; see :func:`card_problems`."""
        path = (folder or results_dir() or Path()) / "card.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            inputs, content = dict(kept["inputs"]), str(kept.pop("content"))
        except OSError:
            return [f"{path}: no card there; refresh the notebooks with `make refresh`"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return [f"{path}: not a card ({error}); refresh the notebooks with `make refresh`"]
        found = [
            f"the card was written before a change of: {name}"
            for name in sorted(set(inputs) | set(self.inputs))
            if inputs.get(name) != self.inputs.get(name)
        ]
        if digest(kept) != content:
            found.append(f"{path}: edited by hand: its rows do not have the hash that it states")
        elif not found and content != self.content:
            found.append(f"{path}: generated anew, the card comes out differently")
        return found

    def _repr_html_(self) -> str:
        from anima.card.render import card_fragment

        return card_fragment(self)
