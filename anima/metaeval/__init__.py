"""Does the score mean anything: records, stores, studies, judge calibration, and the health of judges."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anima.metaeval.curves import (
        CalibrationStudy,
        calibration_curve,
        calibration_from_pairs,
    )
    from anima.metaeval.join import (
        Accounting,
    )
    from anima.metaeval.pairs import PairResult
    from anima.metaeval.records import (
        FAILURE_CLASSES,
        Artifact,
        BudgetEntry,
        DeploymentOutcome,
        Event,
        Run,
        RunResult,
        Span,
    )
    from anima.metaeval.run_record import (
        AgentProfileCell,
        JudgeScoresRecord,
        ParsedRecord,
        RunRecord,
        is_run_record,
        parse_run_record,
        resolve_cost_provenance,
        run_records_frame,
        validate_run_record,
    )
    from anima.metaeval.run_rules import model_has_snapshot
    from anima.metaeval.snapshot import SENTINEL_METRICS, SentinelSnapshot, validate_sentinel_snapshot
    from anima.metaeval.stores import (
        JsonlOutcomeStore,
        JsonlSentinelStore,
        JsonlTraceStore,
        MemoryOutcomeStore,
        MemorySentinelStore,
        MemoryTraceStore,
        OutcomeStore,
        SentinelStore,
        TraceStore,
    )
    from anima.metaeval.studies import (
        CorrelationStudy,
        RubricValidity,
        correlation_study,
        rubric_predictive_validity,
    )

# Looked through in this order at the first use of a name: pydantic builds its models when they are imported.
_MODULES: Final = ("records", "run_rules", "run_record", "snapshot", "stores", "curves", "join", "pairs", "studies")

__all__ = [
    "FAILURE_CLASSES",
    "SENTINEL_METRICS",
    "Accounting",
    "AgentProfileCell",
    "Artifact",
    "BudgetEntry",
    "CalibrationStudy",
    "CorrelationStudy",
    "DeploymentOutcome",
    "Event",
    "JsonlOutcomeStore",
    "JsonlSentinelStore",
    "JsonlTraceStore",
    "JudgeScoresRecord",
    "MemoryOutcomeStore",
    "MemorySentinelStore",
    "MemoryTraceStore",
    "OutcomeStore",
    "PairResult",
    "ParsedRecord",
    "RubricValidity",
    "Run",
    "RunRecord",
    "RunResult",
    "SentinelSnapshot",
    "SentinelStore",
    "Span",
    "TraceStore",
    "calibration_curve",
    "calibration_from_pairs",
    "correlation_study",
    "is_run_record",
    "model_has_snapshot",
    "parse_run_record",
    "resolve_cost_provenance",
    "rubric_predictive_validity",
    "run_records_frame",
    "validate_run_record",
    "validate_sentinel_snapshot",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            home = import_module(f"{__name__}.{module}")
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
