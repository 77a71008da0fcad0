"""Run records: the rules and words of the reference package, and of its later version."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from anima.errors import InputError, RecordError
from anima.metaeval import (
    RunRecord,
    is_run_record,
    model_has_snapshot,
    parse_run_record,
    resolve_cost_provenance,
    run_records_frame,
    validate_run_record,
)

RECORD = {
    "runId": "u1",
    "experimentId": "e",
    "candidateId": "c",
    "seed": 7,
    "model": "m@2025-04-15",
    "promptHash": "p",
    "configHash": "q",
    "commitSha": "s",
    "wallMs": 10,
    "costUsd": 0.5,
    "tokenUsage": {"input": 1, "output": 2},
    "outcome": {"searchScore": 0.5, "raw": {"a": 1}},
    "splitTag": "search",
}
NEWER = RECORD | {
    "costProvenance": {"kind": "observed", "usd": 0.5},
    "terminalOutcome": "succeeded",
    "scenarioId": "sc",
    "outcome": {"raw": {}},
}


def verdict(function: str, given: dict) -> object:
    """Answer a case in the reference package's terms."""

    def error(problem: RecordError) -> dict:
        return {"name": "RunRecordValidationError", "message": str(problem), "code": "validation", "path": problem.path}

    record = given.get("record")
    if isinstance(record, dict) and record == {"$undefined": True}:
        record = None
    match function:
        case "validateRunRecord":
            parsed = parse_run_record(record)
            return "valid" if parsed.ok else error(parsed.error)
        case "isRunRecord":
            return is_run_record(record)
        case "parseRunRecordSafe":
            parsed = parse_run_record(record)
            return {"ok": True} if parsed.ok else {"ok": False, "error": error(parsed.error)}
        case "modelHasSnapshot":
            return model_has_snapshot(given["model"])
        case "resolveRunCostProvenance":
            return resolve_cost_provenance(given["run"]).to_dict()
    raise NotImplementedError(function)


@pytest.mark.oracle
def test_every_verdict_path_and_wording_is_the_reference_package_s(oracle_cases):
    cases = oracle_cases("run_record")
    assert len(cases) > 90
    for case in cases:
        expected = case.get("error") or case["output"]
        if isinstance(expected, dict):
            expected.pop("value", None)
        assert verdict(case["function"], case["input"]) == expected, case["id"]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"agentProfile": []}, "agentProfile", "expected agent-profile-cell/v1 (at schemaVersion)"),
        ({"costProvenance": None}, "costProvenance", "must be an object"),
        ({"costUsd": 0, "costProvenance": {"kind": "uncaptured", "usd": 0}}, "costProvenance.usd", "must be null"),
        ({"costUsd": 1, "costProvenance": {"kind": "uncaptured", "usd": None}}, "costUsd", "sentinel 0"),
        ({"costProvenance": {"kind": "observed"}}, "costProvenance.usd", "expected finite number"),
        ({"seed": True}, "seed", "expected finite number"),
        ({"failureClass": "made up"}, "failureClass", "must be one of success, reasoning_error"),
        ({"failureMode": ""}, "failureMode", "expected non-empty string"),
        ({"scenarioId": ["s"]}, "scenarioId", "Input should be a valid string"),
        ({"judgeMetadata": {"model": "j", "promptVersion": "1", "confidence": 1}}, "judgeMetadata.fallback", "boolean"),
    ],
)
def test_more_rules(change, path, message):
    with pytest.raises(RecordError) as caught:
        validate_run_record(RECORD | change)
    assert caught.value.path == path
    assert message in str(caught.value)


def test_judge_scores_are_checked_entry_by_entry():
    scores = {"perJudge": {"j": {"d": 1}}, "perDimMean": {"d": 1}, "composite": 1, "failedJudges": ["z"], "notes": "n"}
    for change, path in (
        ({"perJudge": {"j": None}}, "perJudge.j"),
        ({"perDimMean": None}, "perDimMean"),
        ({"composite": math.nan}, "composite"),
        ({"failedJudges": "z"}, "failedJudges"),
        ({"failedJudges": ["z", ""]}, "failedJudges[1]"),
    ):
        outcome = {"searchScore": 1, "raw": {}, "judgeScores": scores | change}
        assert parse_run_record(RECORD | {"outcome": outcome}).error.path == f"outcome.judgeScores.{path}"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({}, None),
        ({"model": "unknown", "terminalOutcome": "failed"}, None),
        ({"model": "unknown"}, "model"),
        ({"model": "@preset/name"}, "model"),
        ({"costUsd": None, "costProvenance": {"kind": "uncaptured", "usd": None}}, None),
        ({"costUsd": 0, "costProvenance": {"kind": "uncaptured", "usd": None}}, "costUsd"),
        ({"terminalOutcome": "done"}, "terminalOutcome"),
        ({"terminalOutcome": "failed", "terminalFailureReason": "limit"}, None),
        ({"terminalFailureReason": "limit"}, "terminalFailureReason"),
        ({"failureMode": "m"}, "failureMode"),
        ({"failureMode": "m", "failureClass": "success"}, "failureMode"),
        ({"failureMode": "m", "failureClass": "timeout"}, None),
        ({"tokenUsage": {"input": 1, "output": 2, "tokensKnown": False}}, None),
        ({"tokenUsage": {"input": 1, "output": 2, "tokensKnown": True}}, "tokenUsage.tokensKnown"),
        ({"scenarioId": 5}, "scenarioId"),
    ],
)
def test_rules_of_0_170(change, path):
    parsed = parse_run_record(NEWER | change, schema="0.170")
    assert (parsed.error and parsed.error.path) == path
    missing = {key: value for key, value in NEWER.items() if key != "scenarioId"}
    assert "scenarioId" in str(parse_run_record(missing, schema="0.170").error)
    with pytest.raises(InputError, match="schema must be one of"):
        parse_run_record(NEWER, schema="1")


@pytest.mark.parametrize(
    ("model", "old", "new"),
    [
        ("m@", True, False), ("@m", True, False), (" x@1", True, False), ("a@b@c", True, False),
        ("x@v3", True, True), ("m-2024-13-45", True, False), ("x-99999999", True, False),
        ("m-2024-02-29", True, True), ("m-2023-02-29", True, False), ("x-20250415", True, True),
        ("grok-4-0709", False, True), ("x-1345", False, False), ("m-0229", False, True),
        ("v:date-2025", True, True), ("v:date-", True, False), ("gpt-4o", False, False), ("", False, False),
        ("m-٢٠٢٤٠١٠١", False, False), ("x-20250415\n", False, False),
    ],
)  # fmt: skip
def test_which_model_names_pin_a_version(model, old, new):
    assert model_has_snapshot(model) is old
    assert model_has_snapshot(model, schema="0.170") is new


@pytest.mark.parametrize("schema", ["0.120.3", "0.170"])
def test_a_model_name_is_a_str(schema):
    with pytest.raises(InputError, match="model is None"):
        model_has_snapshot(None, schema=schema)


def test_a_record_reads_as_python_and_is_written_as_it_came():
    text = json.dumps(NEWER | {"costUsd": None, "costProvenance": {"kind": "uncaptured", "usd": None}, "extra": [1]})
    record = validate_run_record(json.loads(text), schema="0.170")
    assert (record.run_id, record.wall_ms, record.cost_usd, record.gated) == ("u1", 10, None, False)
    assert record.to_dict() == json.loads(text)
    assert validate_run_record(record, schema="0.170") == record
    assert parse_run_record(record).error.path == "costUsd"  # under the older rules
    gated = validate_run_record(RECORD | {"outcome": RECORD["outcome"] | {"realness": {"score": 1, "gated": True}}})
    assert gated.gated


def test_records_made_in_python_keep_the_rules_too():
    fields = validate_run_record(RECORD)
    made = RunRecord(**{name: getattr(fields, name) for name in RunRecord.model_fields})
    assert made == fields
    with pytest.raises(ValidationError, match="lacks a snapshot version"):
        RunRecord.model_validate(RECORD | {"model": "gpt-4o"})
    assert RunRecord.model_validate(NEWER, context={"schema": "0.170"}).terminal_outcome == "succeeded"
    with pytest.raises(TypeError, match="cannot be changed"):
        made.outcome.raw["a"] = 2
    with pytest.raises(ValidationError):
        made.seed = 8


def test_numpy_scalars_are_numbers():
    record = validate_run_record(RECORD | {"seed": np.int64(3), "wallMs": np.float32(1.5)})
    assert (record.seed, record.wall_ms) == (3, 1.5)


def test_frame():
    frame = run_records_frame([validate_run_record(RECORD), validate_run_record(RECORD | {"queueMs": 3})])
    assert frame["outcome.raw.a"].tolist() == [1, 1]
    assert frame["token_usage.input"].tolist() == [1, 1]
    assert frame["queue_ms"].isna().tolist() == [True, False]
    assert "run_id" in run_records_frame([]).columns


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3) | st.sampled_from(["search", "a@1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*NEWER, "queueMs", "agentProfile", "judgeMetadata", "failureMode", "own"]), ANYTHING
    )
)
def test_whatever_comes_in_there_is_a_record_or_an_error(change):
    for schema in ("0.120.3", "0.170"):
        parsed = parse_run_record(NEWER | change, schema=schema)
        assert (parsed.value is None) != (parsed.error is None)
        if parsed.ok:
            again = json.loads(json.dumps(parsed.value.to_dict()))
            assert validate_run_record(again, schema=schema) == parsed.value
