"""The record of one evaluated run, with the rules of the reference package: first failure wins, named by its path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ValidationError, ValidationInfo, model_validator

from anima.checks import require_choice
from anima.errors import InputError, RecordError
from anima.jsonl import plain
from anima.metaeval.records import (
    FailureClass,
    Finite,
    FrozenDict,
    Numbers,
    Record,
    Text,
    first_error,
    is_finite,
    js,
    object_of,
    records_frame,
)
from anima.metaeval.run_rules import SCHEMAS, Schema, check_run_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

SplitTag = Literal["search", "dev", "holdout"]
TerminalOutcome = Literal["succeeded", "failed", "cancelled", "incomplete", "unknown"]
_NumberTable = Annotated[
    dict[str, Annotated[dict[str, Finite], BeforeValidator(object_of), AfterValidator(FrozenDict)]],
    BeforeValidator(object_of),
    AfterValidator(FrozenDict),
]
_Id = Annotated[str, BeforeValidator(lambda value: js(value) if is_finite(value) else value)]


class TokenUsage(Record):
    """Tokens of a run; ``reasoning`` is part of ``output``; ``tokens_known=False`` marks incomplete counts."""

    input: Finite
    output: Finite
    reasoning: Finite | None = None
    cached: Finite | None = None
    cache_write: Finite | None = None
    tokens_known: bool | None = None


class CostProvenance(Record):
    """Where the amount comes from; ``usd`` is None if and only if nobody captured it."""

    kind: Literal["observed", "estimated", "uncaptured"]
    usd: Finite | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as in JSON, ``usd`` always among them."""
        return {"kind": self.kind, "usd": self.usd}


class JudgeMetadata(Record):
    """The judge of a run, its confidence, and whether it fell back on something else."""

    model: Text
    prompt_version: Text
    confidence: Finite
    fallback: bool


class JudgeScoresRecord(Record):
    """Scores by judge and dimension; judges that failed are named, not guessed from gaps."""

    per_judge: _NumberTable
    per_dim_mean: Numbers
    composite: Finite
    failed_judges: list[Text] | None = None
    notes: str | None = None


class Realness(Record):
    """Whether the run did the real thing; a gated run is no success whatever its score."""

    score: Finite
    gated: bool
    reason: str | None = None


class RecordOutcome(Record):
    """Scores of a run by split, every other metric in ``raw``."""

    search_score: Finite | None = None
    holdout_score: Finite | None = None
    raw: Numbers
    judge_scores: JudgeScoresRecord | None = None
    realness: Realness | None = None


class ProfileSource(Record):
    """Kind and SHA-256 of the profile behind a cell."""

    kind: Text
    hash: Text


class ProfileHarness(Record):
    """The harness of a cell."""

    id: Text
    version: Text | None = None
    hash: Text | None = None


class AgentProfileCell(Record):
    """Identity of the agent profile that made a run."""

    schema_version: Literal["agent-profile-cell/v1"]
    cell_id: Text
    profile_id: Text
    source_profile: ProfileSource
    harness: ProfileHarness | None = None
    model: Text | None = None
    prompt_hash: Text | None = None
    dimensions: Annotated[dict[str, str | bool | int | float | None], AfterValidator(FrozenDict)] | None = None


class RunRecord(Record):
    """One evaluated run as a row for analysis.

    Made by its fields or by ``RunRecord.model_validate`` it must keep the rules of version 0.120.3; those of 0.170
    with ``context={"schema": "0.170"}``. :func:`validate_run_record` gives clearer errors.
    """

    run_id: Text
    experiment_id: Text
    candidate_id: Text
    seed: Finite
    model: Text
    prompt_hash: Text
    config_hash: Text
    commit_sha: Text
    wall_ms: Finite
    queue_ms: Finite | None = None
    cost_usd: Finite | None
    cost_provenance: CostProvenance | None = None
    token_usage: TokenUsage
    judge_metadata: JudgeMetadata | None = None
    outcome: RecordOutcome
    failure_class: FailureClass | None = None
    failure_mode: str | None = None
    terminal_outcome: TerminalOutcome | None = None
    terminal_failure_reason: str | None = None
    split_tag: SplitTag
    scenario_id: _Id | None = None
    agent_profile: AgentProfileCell | None = None

    @model_validator(mode="after")
    def _rules(self, info: ValidationInfo) -> Self:
        schema = (info.context or {}).get("schema", SCHEMAS[0])
        if schema is not None:
            check_run_record(self.to_dict(), require_choice(schema, "schema", SCHEMAS))
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the record as in its file: camelCase, absent fields left out, an uncaptured cost null."""
        record = super().to_dict() | {"costUsd": self.cost_usd}
        if self.cost_provenance:
            record["costProvenance"] = self.cost_provenance.to_dict()
        return record

    @property
    def gated(self) -> bool:
        """Whether the run must not count as a success."""
        return self.outcome.realness is not None and self.outcome.realness.gated


@dataclass(frozen=True)
class ParsedRecord:
    """A record, or the error that says which rule is broken and where (``error.path``)."""

    value: RunRecord | None = None
    error: RecordError | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a record."""
        return self.error is None


def validate_run_record(record: Any, *, schema: Schema = "0.120.3") -> RunRecord:
    """Return a run record, or raise at the first rule broken.

    Parameters
    ----------
    record
        A mapping as in JSON (camelCase), or a :class:`RunRecord`.
    schema
        Version of the reference package whose rules hold. ``"0.170"`` also wants ``costProvenance``,
        ``terminalOutcome`` and ``scenarioId``, stricter model names, a null cost when none was captured, and a failure
        class beside a failure mode; it needs no score.

    Raises
    ------
    RecordError
        With ``path``, e.g. ``outcome.judgeScores.perJudge.j.d``. Order and wording are the reference package's.
    """
    data = record.to_dict() if isinstance(record, RunRecord) else record
    check_run_record(data, require_choice(schema, "schema", SCHEMAS))
    try:
        return RunRecord.model_validate(plain(object_of(data), "record"), context={"schema": None})
    except ValidationError as problem:
        path, message, given = first_error(problem)
        raise RecordError(message + given, path) from None
    except InputError as problem:  # something in a field of the caller's own
        raise RecordError(str(problem)) from None


def parse_run_record(record: Any, *, schema: Schema = "0.120.3") -> ParsedRecord:
    """Return the record or its error, for data that may be bad; see :func:`validate_run_record`."""
    try:
        return ParsedRecord(value=validate_run_record(record, schema=schema))
    except RecordError as error:
        return ParsedRecord(error=error)


def is_run_record(record: Any, *, schema: Schema = "0.120.3") -> bool:
    """Return whether :func:`validate_run_record` would pass."""
    return parse_run_record(record, schema=schema).ok


def run_records_frame(records: Iterable[RunRecord]) -> pd.DataFrame:
    """Return one row per record, e.g. with ``outcome.search_score`` and a column ``outcome.raw.<metric>`` each."""
    return records_frame(records, RunRecord)


def resolve_cost_provenance(record: RunRecord | Mapping[str, Any]) -> CostProvenance:
    """Return where a run's cost comes from; what old records leave open is read cautiously: 0 is uncaptured."""
    data = record.to_dict() if isinstance(record, RunRecord) else record
    if data.get("costProvenance") is not None:
        return CostProvenance.model_validate(data["costProvenance"])
    usd = data["costUsd"]
    if data["outcome"]["raw"].get("cost_estimated") == 1:
        return CostProvenance(kind="estimated", usd=usd)
    return CostProvenance(kind="observed", usd=usd) if usd else CostProvenance(kind="uncaptured", usd=None)
