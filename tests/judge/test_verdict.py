"""Outcomes of a judgement as results: rows, JSON, pages without secrets."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import FrozenInstanceError

import pandas as pd
import pytest

from anima.judge.verdict import Receipt, Unscored, Verdict

SECRET = "sk-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
RECEIPT = Receipt(
    model="qwen3:14b", digest="abc", options={"temperature": 0.0}, seed=0, prompt_tokens=10, times={"total": 1.5}
)
VERDICT = Verdict(
    42,
    depth_assessment="moderate",
    trajectory_predictability="low",
    pattern_breaks=("<b>one</b>", f"key {SECRET}"),
    notes=f"see {SECRET}",
    judge_thinking=f"I read {SECRET} & <think>",
    receipt=RECEIPT,
)
FAILED = Unscored(
    f"cannot be read near {SECRET}", raw=f"raw {SECRET}", thinking="t", receipt=RECEIPT, kind="unreadable"
)


def test_verdict_in_words() -> None:
    assert VERDICT.summary() == "Authenticity 42 of 100 by qwen3:14b, moderate depth, low predictability."
    assert Verdict(7, fallback=True, repairs=("quotes",)).summary() == (
        "Authenticity 7 of 100 by the rules (fall-back, no language model); the answer had to be mended."
    )
    assert Verdict(7, not_applicable=True).summary().startswith("Not applicable according to the judge")
    assert Unscored("no answer.", kind="thinking_only").summary() == "Unscored (thinking only): no answer."


def test_rows_stand_together() -> None:
    frame = pd.concat([VERDICT.to_frame(), FAILED.to_frame()], ignore_index=True)
    assert frame["score"][0] == 42
    assert math.isnan(frame["score"][1])
    assert list(frame["status"]) == ["scored", "unscored"]
    assert list(frame["model"]) == ["qwen3:14b"] * 2
    assert not frame["fallback"][0]


@pytest.mark.parametrize("outcome", [VERDICT, FAILED, Verdict(0), Unscored("x")])
def test_plain_and_frozen(outcome: Verdict | Unscored) -> None:
    told = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert told["status"] == outcome.status
    assert told.get("receipt", None) == (None if outcome.receipt is None else told["receipt"])
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    with pytest.raises(FrozenInstanceError):
        outcome.receipt = None  # type: ignore[misc]


def test_data_keeps_the_text_and_the_page_hides_secrets() -> None:
    assert SECRET in VERDICT.to_dict()["notes"]
    assert VERDICT.redacted().notes == "see [REDACTED]"
    assert VERDICT.redacted().pattern_breaks == ("<b>one</b>", "key [REDACTED]")
    assert VERDICT.redacted().authenticity_score == 42
    for outcome in (VERDICT, FAILED):
        page = outcome._repr_html_()
        assert SECRET not in page
        assert "[REDACTED]" in page
        assert "qwen3:14b" in page
    page = VERDICT._repr_html_()
    assert "&lt;b&gt;one" in page
    assert "&amp; &lt;think&gt;" in page
    assert "<details>" in page


def test_times_take_no_part_in_comparisons() -> None:
    assert Receipt(model="m", times={"total": 1.0}) == Receipt(model="m", times={"total": 2.0})
    assert Receipt(model="m", seed=1) != Receipt(model="m", seed=2)


def test_the_instrument_reads_the_judge() -> None:
    thinking = "Great question! I hope this helps."
    analysis = Verdict(1, judge_thinking=thinking).analyze_thinking()
    assert analysis.response == thinking
    assert [step.phrase for step in analysis.steps] == ["Great question!", "I hope this helps."]
    assert not Verdict(1).analyze_thinking().steps
