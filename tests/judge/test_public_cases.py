"""Every public bug report about judges is named by a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

AREAS = {"judge-json", "think", "ollama", "openai-http", "judge-failure"}


@pytest.mark.oracle
def test_each_case_is_named_by_a_test(oracle: Path) -> None:
    lines = (oracle / "cases" / "public_bug_reports.jsonl").read_text("utf-8").splitlines()
    wanted = {case["id"] for case in map(json.loads, lines) if case["area"] in AREAS}
    written = "".join(path.read_text("utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert len(wanted) > 20
    assert {name for name in wanted if name not in written} == set()
