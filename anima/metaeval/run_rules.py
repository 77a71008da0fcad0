"""The rules of a run record, in the order and the words of the reference package."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NoReturn

from anima.checks import require_choice, require_text
from anima.errors import RecordError
from anima.metaeval.records import FAILURE_CLASSES, MISSING, is_finite, js, object_of

Schema = Literal["0.120.3", "0.170"]
SCHEMAS: Final[tuple[Schema, ...]] = ("0.120.3", "0.170")
_SPLITS: Final = ("search", "dev", "holdout")
_ENDS: Final = ("succeeded", "failed", "cancelled", "incomplete", "unknown")
_REQUIRED: Final = (
    "runId", "experimentId", "candidateId", "seed", "model", "promptHash", "configHash", "commitSha", "wallMs", "costUsd",
    "costProvenance", "tokenUsage", "terminalOutcome", "outcome", "splitTag", "scenarioId",
)  # fmt: skip
_REQUIRED_LATER: Final = {"costProvenance", "terminalOutcome", "scenarioId"}  # since 0.170


def model_has_snapshot(model: str, *, schema: Schema = "0.120.3") -> bool:
    """Return whether a model name pins a version.

    0.120.3 asks for an ``@``, a date at the end (no calendar is consulted) or ``:date-``. 0.170 asks for one
    ``name@token``, a real date, a provider's ``-MMDD``, or ``:date-token`` at the end.
    """
    require_text(model, "model")
    if require_choice(schema, "schema", SCHEMAS) == "0.120.3":
        return "@" in model or ":date-" in model or bool(re.search(r"-(\d{8}|\d{4}-\d\d-\d\d)\Z", model, re.ASCII))
    if not model or model.strip() != model:
        return False
    tag = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    if re.fullmatch(f"[^@]+@{tag}", model, re.DOTALL) or re.search(f":date-{tag}\\Z", model):
        return True
    for pattern in (r"-(\d{4})-(\d\d)-(\d\d)\Z", r"-(\d{4})(\d\d)(\d\d)\Z", r"-()(\d\d)(\d\d)\Z"):
        if match := re.search(pattern, model, re.ASCII):
            year, month, day = int(match[1] or 2000), int(match[2]), int(match[3])  # 29 February may be any year's
            if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]:
                return True
    return False


def _fail(message: str, path: str = "") -> NoReturn:
    raise RecordError(message, path)


def _text(value: Any, path: str) -> None:
    if not isinstance(value, str) or not value:
        _fail("expected non-empty string", path)


def _finite(value: Any, path: str) -> None:
    if not is_finite(value):
        _fail("expected finite number", path)


def _amount(value: Any, path: str) -> None:
    _finite(value, path)
    if value < 0:
        _fail("expected non-negative number", path)


def _object(value: Any, path: str, message: str = "") -> Mapping[str, Any]:
    value = object_of(value)
    if not isinstance(value, Mapping):
        _fail(message or f"{path.rsplit('.', 1)[-1]} must be an object", path)
    return value


def _numbers(value: Any, path: str, message: str = "") -> None:
    for key, number in _object(value, path, message).items():
        _finite(number, f"{path}.{key}")


def _each(record: Mapping[str, Any], keys: str, check: Callable[[Any, str], None], prefix: str = "") -> None:
    """Check fields by name; those marked ``?`` may be absent, but not null."""
    for key in keys.split():
        name = key.rstrip("?")
        if not key.endswith("?") or name in record:
            check(record.get(name), prefix + name)


def check_run_record(record: Any, schema: Schema) -> None:
    """Raise at the first rule that a record, as in JSON, breaks; the order is part of the format."""
    old = schema == "0.120.3"
    record = _object(record, "", "expected object")
    for key in _REQUIRED:
        if key not in record and not (old and key in _REQUIRED_LATER):
            _fail(f'missing mandatory field "{key}"')
    _each(record, "runId experimentId candidateId", _text)
    _finite(record["seed"], "seed")
    _each(record, "model promptHash configHash commitSha", _text)
    _each(record, "wallMs queueMs?", _amount)
    _check_cost(record, old=old)
    model = record["model"]
    unnamed = not old and model == "unknown" and record["terminalOutcome"] != "succeeded"
    if not unnamed and not model_has_snapshot(model, schema=schema):
        _fail(f"model \"{model}\" lacks a snapshot version (use 'name@YYYY-MM-DD' or 'name-YYYYMMDD')", "model")
    _check_tokens(_object(record["tokenUsage"], "tokenUsage"), old=old)
    if "judgeMetadata" in record:
        judge = _object(record["judgeMetadata"], "judgeMetadata")
        _each(judge, "model promptVersion", _text, "judgeMetadata.")
        _finite(judge.get("confidence"), "judgeMetadata.confidence")
        if not isinstance(judge.get("fallback"), bool):
            _fail("judgeMetadata.fallback must be boolean", "judgeMetadata.fallback")
    _check_outcome(_object(record["outcome"], "outcome"), old=old)
    if "failureClass" in record and record["failureClass"] not in FAILURE_CLASSES:
        _fail(f"failureClass must be one of {', '.join(FAILURE_CLASSES)}", "failureClass")
    _each(record, "failureMode?", _text)
    if not old:
        if "failureMode" in record and record.get("failureClass", "success") == "success":
            _fail("failureMode requires a non-success failureClass", "failureMode")
        if record["terminalOutcome"] not in _ENDS:
            _fail(f"terminalOutcome must be one of {', '.join(_ENDS)}", "terminalOutcome")
        _each(record, "terminalFailureReason?", _text)
        if "terminalFailureReason" in record and record["terminalOutcome"] in {"succeeded", "unknown"}:
            said = "terminalFailureReason requires terminalOutcome failed, cancelled, or incomplete"
            _fail(said, "terminalFailureReason")
    if "agentProfile" in record:
        _check_profile_of(record, schema)
    if not old:
        _text(record["scenarioId"], "scenarioId")
    if record["splitTag"] not in _SPLITS:
        _fail(f"splitTag must be one of {', '.join(_SPLITS)}, got {js(record['splitTag'])}", "splitTag")


def _check_cost(record: Mapping[str, Any], *, old: bool) -> None:
    cost = record["costUsd"]
    if old:
        _amount(cost, "costUsd")
        if "costProvenance" not in record:
            return
    provenance = _object(record["costProvenance"], "costProvenance")
    usd = provenance.get("usd", MISSING)
    if provenance.get("kind") not in {"observed", "estimated", "uncaptured"}:
        _fail("costProvenance.kind must be observed, estimated, or uncaptured", "costProvenance.kind")
    if provenance["kind"] == "uncaptured":
        if usd is not None:
            _fail("uncaptured costProvenance.usd must be null", "costProvenance.usd")
        if old and cost != 0:
            _fail("uncaptured cost requires the costUsd sentinel 0", "costUsd")
        if not old and cost is not None:
            _fail("uncaptured cost requires costUsd to be null", "costUsd")
        return
    if not old:
        _amount(cost, "costUsd")
        _amount(usd, "costProvenance.usd")
    _finite(usd, "costProvenance.usd")
    if usd < 0:
        _fail("costProvenance.usd must be non-negative", "costProvenance.usd")
    if usd != cost:
        _fail("costProvenance.usd must equal costUsd", "costProvenance.usd")


def _check_tokens(usage: Mapping[str, Any], *, old: bool) -> None:
    _each(usage, "input output", _amount, "tokenUsage.")
    if not old and usage.get("tokensKnown", False) is not False:
        _fail("tokensKnown must be false when present; omit it when token usage is complete", "tokenUsage.tokensKnown")
    _each(usage, "reasoning?", _amount, "tokenUsage.")
    if usage.get("reasoning", 0) > usage["output"]:
        _fail("reasoning tokens must be a subset of output tokens", "tokenUsage.reasoning")
    _each(usage, "cached? cacheWrite?", _amount, "tokenUsage.")


def _check_outcome(outcome: Mapping[str, Any], *, old: bool) -> None:
    _each(outcome, "searchScore? holdoutScore?", _finite, "outcome.")
    if old and "searchScore" not in outcome and "holdoutScore" not in outcome:
        _fail("outcome must define searchScore or holdoutScore (or both)", "outcome")
    _numbers(outcome.get("raw"), "outcome.raw", "outcome.raw must be an object")
    if "realness" in outcome:
        realness = _object(outcome["realness"], "outcome.realness", "outcome.realness must be an object")
        _finite(realness.get("score"), "outcome.realness.score")
        if not isinstance(realness.get("gated"), bool):
            _fail("outcome.realness.gated must be a boolean", "outcome.realness.gated")
    if "judgeScores" in outcome:
        _check_judges(outcome["judgeScores"], "outcome.judgeScores")


def _check_judges(value: Any, path: str) -> None:
    scores = _object(value, path)
    for judge, dimensions in _object(scores.get("perJudge"), f"{path}.perJudge").items():
        _numbers(dimensions, f"{path}.perJudge.{judge}", "per-judge entry must be an object of dimension scores")
    _numbers(scores.get("perDimMean"), f"{path}.perDimMean")
    _finite(scores.get("composite"), f"{path}.composite")
    if "failedJudges" in scores:
        if not isinstance(scores["failedJudges"], list):
            _fail("failedJudges must be an array of strings", f"{path}.failedJudges")
        for i, judge in enumerate(scores["failedJudges"]):
            if not isinstance(judge, str) or not judge:
                _fail("failedJudges entry must be a non-empty string", f"{path}.failedJudges[{i}]")
    if not isinstance(scores.get("notes", ""), str):
        _fail("notes must be a string", f"{path}.notes")


def _check_profile_of(record: Mapping[str, Any], schema: Schema) -> None:
    try:
        profile = _check_profile(record["agentProfile"], schema)
    except RecordError as error:
        _fail(str(error), "agentProfile")
    for key in ("model", "promptHash"):
        if key in profile and profile[key] != record[key]:
            said = f'agentProfile.{key} "{profile[key]}" does not match {key} "{record[key]}"'
            _fail(said, f"agentProfile.{key}")


def _check_profile(value: Any, schema: Schema) -> Mapping[str, Any]:
    cell = _object(value, "", "expected object")
    if cell.get("schemaVersion") != "agent-profile-cell/v1":
        _fail("expected agent-profile-cell/v1", "schemaVersion")
    digest = "sha256" if schema == "0.120.3" else "sha256(?:-rfc8785)?"
    if not _matches(f"agent-profile-cell:{digest}:[0-9a-f]{{64}}", cell.get("cellId")):
        _fail("cellId must match agent-profile-cell:sha256:<64 lowercase hex chars>", "cellId")
    _text(cell.get("profileId"), "profileId")
    source = _plain_object(cell.get("sourceProfile"), "sourceProfile")
    _text(source.get("kind"), "sourceProfile.kind")
    if not _matches("[0-9a-f]{64}", source.get("hash")):
        _fail("expected 64 lowercase sha256 hex chars", "sourceProfile.hash")
    if "harness" in cell:
        _each(_plain_object(cell["harness"], "harness"), "id version? hash?", _text, "harness.")
    _each(cell, "model? promptHash?", _text)
    for key, item in sorted(_plain_object(cell.get("dimensions", {}), "dimensions").items()):
        _text(key, "dimensions.<key>")
        if item is not None and not isinstance(item, str | int | float):
            _fail("expected primitive dimension value", f"dimensions.{key}")
        if isinstance(item, float):
            _finite(item, f"dimensions.{key}")
    return cell


def _plain_object(value: Any, path: str) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else _fail("expected object", path)


def _matches(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None
