"""The records of runs, spans, outcomes and judge health: camelCase in JSON, snake_case in Python, immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, TypeVar, cast, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from anima.checks import show
from anima.errors import InputError
from anima.jsonl import plain

if TYPE_CHECKING:
    import pandas as pd

FailureClass = Literal[
    "success", "reasoning_error", "tool_selection_error", "tool_argument_error", "tool_recovery_failure",
    "hallucination", "instruction_following", "safety_refusal_miss", "policy_violation", "budget_exceeded",
    "format_drift", "permission_escalation", "pii_leak", "cost_overrun", "timeout", "sandbox_failure",
    "missing_user_data", "missing_domain_data", "missing_codebase_context", "missing_runtime_context",
    "missing_credentials", "missing_integration_connection", "missing_integration_scope",
    "integration_approval_required", "integration_auth_expired", "integration_provider_failure",
    "bad_integration_manifest", "unsafe_integration_write_denied", "stale_external_data", "bad_retrieval",
    "insufficient_evidence", "contradictory_evidence", "ambiguous_user_intent", "knowledge_readiness_blocked",
    "unknown",
]  # fmt: skip
FAILURE_CLASSES: Final[tuple[FailureClass, ...]] = get_args(FailureClass)

R = TypeVar("R", bound="Record")


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes, so that stores can hand out their records without copying them."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the mappings of a record cannot be changed: work on a copy, dict(mapping)")

    __setitem__ = __delitem__ = __ior__ = update = clear = pop = popitem = setdefault = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def object_of(value: Any) -> Any:
    """Return a list as a mapping of its positions: to the reference package, arrays are objects too."""
    return {str(i): item for i, item in enumerate(value)} if isinstance(value, list) else value


Text = Annotated[str, Field(min_length=1)]
Finite = int | Annotated[float, Field(allow_inf_nan=False)]
Texts = Annotated[dict[str, str], AfterValidator(FrozenDict)]
Numbers = Annotated[dict[str, Finite], BeforeValidator(object_of), AfterValidator(FrozenDict)]
Measures = Annotated[dict[str, float | None], AfterValidator(FrozenDict)]  # None: not measured


class Record(BaseModel):
    """Base of all records: fields by either spelling, unknown ones kept, no coercion, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="allow",
        strict=True,
        frozen=True,
        serialize_by_alias=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, given: Any) -> Any:
        """Refuse a field given in both spellings: one of the two values would be lost."""
        if isinstance(given, Mapping):
            for name, item in cls.model_fields.items():
                if item.alias not in (None, name) and name in given and item.alias in given:
                    raise ValueError(f"fields {name!r} and {item.alias!r} are the same one: give it once")
        return given

    def to_dict(self) -> dict[str, Any]:
        """Return the record as in its file: camelCase, absent fields left out, unknown ones as they came."""
        return self.model_dump(exclude_none=True) | (self.model_extra or {})

    def to_frame(self) -> pd.DataFrame:
        """Return one row; see :func:`records_frame`."""
        return records_frame([self], type(self))


class RunResult(Record):
    """How a run ended: ``passed`` is ``pass`` in JSON; a score of None or NaN is no score."""

    score: int | float | None = None
    passed: bool | None = Field(None, alias="pass")
    failure_class: FailureClass | None = None
    notes: str | None = None


class Run(Record):
    """One execution of a scenario; times in milliseconds since 1970."""

    run_id: Text
    scenario_id: str
    started_at: Finite
    status: Literal["running", "completed", "failed", "aborted"]
    ended_at: Finite | None = None
    outcome: RunResult | None = None
    variant_id: str | None = None
    dataset_version: str | None = None
    code_sha: str | None = None
    prompt_sha: str | None = None
    model_fingerprint: str | None = None
    seed: Finite | None = None
    env_fingerprint: Texts | None = None
    redaction_version: str | None = None
    parent_run_id: str | None = None
    project_id: str | None = None
    chat_id: str | None = None
    layer: Literal["builder", "app-build", "app-runtime", "meta", "custom"] | None = None
    budget: Measures | None = None
    tags: Texts | None = None

    @property
    def failure_class(self) -> FailureClass:
        """The class stated, else ``success`` (completed, not failed), ``budget_exceeded`` (aborted) or ``unknown``."""
        if self.outcome and self.outcome.failure_class:
            return self.outcome.failure_class
        if self.status == "completed" and not (self.outcome and self.outcome.passed is False):
            return "success"
        return "budget_exceeded" if self.status == "aborted" else "unknown"


class Span(Record):
    """A step of a run. Which of the later fields are there depends on ``kind``; the reference package never checks."""

    span_id: Text
    run_id: str
    kind: Literal["agent", "llm", "tool", "retrieval", "judge", "sandbox", "custom"]
    name: str
    started_at: Finite
    ended_at: Finite | None = None
    parent_span_id: str | None = None
    status: Literal["ok", "error"] | None = None
    error: str | None = None
    attributes: dict[str, Any] | None = None
    # llm
    model: str | None = None
    messages: list[dict[str, Any]] | None = None
    output: str | None = None
    input_tokens: Finite | None = None
    output_tokens: Finite | None = None
    cached_tokens: Finite | None = None
    cache_write_tokens: Finite | None = None
    reasoning_tokens: Finite | None = None
    cost_usd: Finite | None = None
    finish_reason: str | None = None
    # tool
    tool_name: str | None = None
    args: Any = None
    args_captured: bool | None = None
    result: Any = None
    latency_ms: Finite | None = None
    # retrieval
    query: str | None = None
    hits: list[dict[str, Any]] | None = None
    # judge
    judge_id: str | None = None
    target_span_id: str | None = None
    dimension: str | None = None
    score: int | float | None = None
    rationale: str | None = None
    evidence: Any = None
    # sandbox
    image: str | None = None
    command: str | None = None
    exit_code: Finite | None = None
    tests_total: Finite | None = None
    tests_passed: Finite | None = None
    stdout_hash: str | None = None
    stderr_hash: str | None = None
    wall_ms: Finite | None = None


class Event(Record):
    """Something that happened at one moment of a run."""

    event_id: Text
    run_id: str
    kind: Literal[
        "log", "error", "budget_decrement", "budget_breach", "state_mutation", "policy_violation",
        "redaction_applied", "custom",
    ]  # fmt: skip
    timestamp: Finite
    payload: dict[str, Any]
    span_id: str | None = None


class Artifact(Record):
    """A file that a run made."""

    artifact_id: Text
    run_id: str
    content_type: str
    size_bytes: Finite
    hash: str
    span_id: str | None = None
    storage_url: str | None = None
    inline_content: str | None = None


class BudgetEntry(Record):
    """One line of a run's ledger."""

    run_id: str
    dimension: Literal["tokens", "wallMs", "calls", "usd"]
    limit: Finite
    consumed: Finite
    remaining: Finite
    timestamp: Finite
    breached: bool
    span_id: str | None = None


class DeploymentOutcome(Record):
    """What the world said about a run, later: numbers by name; None or NaN where one was not measured."""

    run_id: Text
    captured_at: Finite
    metrics: Measures
    labels: Texts | None = None
    source: str | None = None


def build(model: type[R], value: Any, place: str, *, error: type[ValueError] = InputError) -> R:
    """Return ``value``, a record or a mapping by either spelling, as a ``model``.

    ``place`` opens the message of the error: an argument (``error=InputError``; numpy's scalars are welcome), or file
    and line. The message names the first bad field.
    """
    if isinstance(value, model):
        return value
    if not isinstance(value, Mapping):
        raise error(f"{place} must be a {model.__name__} or a mapping of its fields, got {show(value)}")
    try:
        return model.model_validate(plain(value, place) if error is InputError else value)
    except ValidationError as problem:
        path, message, given = first_error(problem)
        raise error(f"{place}: {path}: {message}{given}") from None


def first_error(problem: ValidationError) -> tuple[str, str, str]:
    """Return path, message and the value given of the first thing that pydantic refuses."""
    detail = problem.errors(include_url=False)[0]
    where, message = list(detail["loc"]), detail["msg"].removeprefix("Value error, ")
    if len(where) > 1 and where[-1] in {"int", "float"}:  # a branch of "int or float", no key
        where, message = where[:-1], "must be a finite number"
    known = detail["type"] == "missing" or isinstance(detail["input"], Mapping)
    return ".".join(map(str, where)) or "the record", message, "" if known else f", got {show(detail['input'])}"


MISSING: Final = object()


def is_finite(value: Any) -> bool:
    """Return whether a value is a number of JavaScript's kind: no bool, NaN or infinity."""
    return isinstance(value, Real) and not isinstance(value, bool) and value - value == 0


def js(value: Any) -> str:
    """Return a value as JavaScript prints it in a message."""
    if value is MISSING:
        return "undefined"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value).removesuffix(".0"))
    return value if isinstance(value, str) else show(value)


def records_frame(records: Iterable[Record], model: type[Record]) -> pd.DataFrame:
    """Return one row per record.

    Columns carry the Python names; inner records and mappings are spread out as ``outcome.score`` or
    ``metrics.csat``, free-form values stay objects. Absent fields are missing; without records there are the columns
    of the required fields.
    """
    import pandas as pd

    records = list(records)
    columns: dict[str, list[Any]] = {}
    for i, record in enumerate(records):
        for name, value in _spread(record):
            if name not in columns:
                columns[name] = [None] * len(records)
            columns[name][i] = value
    if records:
        return pd.DataFrame(columns)
    return pd.DataFrame(columns=[name for name, field in model.model_fields.items() if field.is_required()])


def _spread(record: Record | FrozenDict, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in cast("Iterable[tuple[str, Any]]", record.items() if isinstance(record, dict) else record):
        if isinstance(value, Record | FrozenDict):
            yield from _spread(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value
