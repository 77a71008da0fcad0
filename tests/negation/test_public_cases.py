"""Inputs behind public reports about comparable tools, read from the case files; cited by the public report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from anima.negation import Scope, scopes
from anima.negation.score import Sentence, ours, score

if TYPE_CHECKING:
    from pathlib import Path


def denied(text: str) -> str:
    spans = sorted({span for scope in scopes(text) for span in scope.tokens})
    return " ".join(text[low:high] for low, high in spans)


def _all_denied(text: str) -> bool:
    return all(denied(text) for scope in scopes(text)) and bool(scopes(text))


#: From the start of the report's source and of its input to what the scopes must be.
EXPECTED = {
    ("cjhutto/vaderSentiment#66", "I can"): "agree",
    ("cjhutto/vaderSentiment#46", "Not"): "bad at all",
    ("cjhutto/vaderSentiment#72", "No problem"): "",
    ("negspacy run; openmed#1182", "No fever"): "fever pain or hope",
    ("negspacy run", "I don't not"): "",
    ("jenojp/negspacy#44", "Transfusion"): "Transfusion",
    ("design case", "You agree"): "",
}


@pytest.fixture(scope="module")
def reports(oracle: Path) -> list[dict]:
    lines = (oracle / "cases" / "public_bug_reports.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["area"] == "negation"]


def _input(report: dict) -> str:
    return report["input"].split(" (")[0]


@pytest.mark.oracle
@pytest.mark.parametrize(("source", "start"), EXPECTED, ids=[f"{source} {start}" for source, start in EXPECTED])
def test_reports(reports: list[dict], source: str, start: str) -> None:
    (report,) = [row for row in reports if row["source"].startswith(source) and row["input"].startswith(start)]
    assert denied(_input(report)) == EXPECTED[source, start]


@pytest.mark.oracle
def test_adversatives_end_the_scope_in_both_languages(reports: list[dict]) -> None:
    (report,) = [row for row in reports if row["source"].startswith("TypeAgent#2644")]
    for text in _input(report).split(" / "):
        (scope,) = scopes(text)
        assert scope.rule == "connector"
        assert scope.span[1] < len(text) - len("enojado.")


@pytest.mark.oracle
def test_every_report_on_negation_is_covered(reports: list[dict]) -> None:
    sources = [source for source, _ in EXPECTED] + ["TypeAgent#2644"]
    assert [row["source"] for row in reports if not any(row["source"].startswith(source) for source in sources)] == []


@pytest.mark.oracle
def test_written_gold_is_met(oracle: Path) -> None:
    """A development set, so no evidence: it guards against going back."""
    lines = (oracle / "cases" / "negation_gold.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    gold = [
        Sentence(r["text"], r["tokens"], [(a, b) for a, b in r["offsets"]], frozenset(r["scope_idx"])) for r in rows
    ]
    result = score(gold, ours(None))
    assert result.f1 > 0.95
    assert result.exact > 0.9
    assert result.false_alarm == 0


def test_scope_is_importable_from_the_package() -> None:
    assert Scope.__module__ == "anima.negation.scope"
