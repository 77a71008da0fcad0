"""Does the score mean anything: records, stores, studies, judge calibration, and the health of judges."""

from anima.metaeval.bias import BiasProbe, order_flips, positional_bias, self_preference, verbosity_bias
from anima.metaeval.correction import corrected_mean
from anima.metaeval.golden import (
    ContinuousJudgeCalibration,
    JudgeCalibration,
    calibrate_judge,
    calibrate_judge_continuous,
)
from anima.metaeval.health_report import (
    EvalHealthStamp,
    SentinelAlarm,
    SentinelReport,
    SentinelRow,
    SentinelThresholds,
    eval_health_stamp,
)
from anima.metaeval.join import Accounting
from anima.metaeval.judges import JudgeValidation, validate_judge
from anima.metaeval.pairs import PairResult
from anima.metaeval.panel import ContinuousAgreement, CorpusAgreement, continuous_agreement, corpus_agreement
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
from anima.metaeval.sentinel import judge_sentinel_report
from anima.metaeval.snapshot import (
    SENTINEL_METRICS,
    SentinelSnapshot,
    snapshot_from_agreement,
    snapshot_from_calibration,
    snapshot_from_sentinel_set,
    validate_sentinel_snapshot,
)
from anima.metaeval.stability import FallbackSignal, IntraJudgeReliability, fallback_signal, intra_judge_reliability
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
    CalibrationStudy,
    CorrelationStudy,
    RubricValidity,
    calibration_curve,
    calibration_from_pairs,
    correlation_study,
    rubric_predictive_validity,
)

__all__ = [
    "FAILURE_CLASSES", "SENTINEL_METRICS", "Accounting", "AgentProfileCell", "Artifact", "BiasProbe", "BudgetEntry",
    "CalibrationStudy", "ContinuousAgreement", "ContinuousJudgeCalibration", "CorpusAgreement", "CorrelationStudy",
    "DeploymentOutcome", "EvalHealthStamp", "Event", "FallbackSignal", "IntraJudgeReliability", "JsonlOutcomeStore",
    "JsonlSentinelStore", "JsonlTraceStore", "JudgeCalibration", "JudgeScoresRecord", "JudgeValidation",
    "MemoryOutcomeStore", "MemorySentinelStore", "MemoryTraceStore", "OutcomeStore", "PairResult", "ParsedRecord",
    "RubricValidity", "Run", "RunRecord", "RunResult", "SentinelAlarm", "SentinelReport", "SentinelRow",
    "SentinelSnapshot", "SentinelStore", "SentinelThresholds", "Span", "TraceStore", "calibrate_judge",
    "calibrate_judge_continuous", "calibration_curve", "calibration_from_pairs", "continuous_agreement",
    "corpus_agreement", "corrected_mean", "correlation_study", "eval_health_stamp", "fallback_signal",
    "intra_judge_reliability", "is_run_record", "judge_sentinel_report", "model_has_snapshot", "order_flips",
    "parse_run_record", "positional_bias", "resolve_cost_provenance", "rubric_predictive_validity", "run_records_frame",
    "self_preference", "snapshot_from_agreement", "snapshot_from_calibration", "snapshot_from_sentinel_set",
    "validate_judge", "validate_run_record", "validate_sentinel_snapshot", "verbosity_bias",
]  # fmt: skip
