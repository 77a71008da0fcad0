"""The instrument: intents, trajectory, poles, neighbours, markers, evaluation and calibration."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anima.authenticity.analysis import Analysis, Keyword, Step
    from anima.authenticity.calibrate import Calibration
    from anima.authenticity.evaluate import Evaluation, chain_match, lcs_length
    from anima.authenticity.golden import GoldenReply, load_golden
    from anima.authenticity.instrument import Instrument, Settings
    from anima.authenticity.intents import UNCLASSIFIED, catalogue
    from anima.authenticity.markers import Marker, MarkerHit, find_markers, load_markers
    from anima.authenticity.reference import Reference
    from anima.authenticity.trajectory import Trajectory, assess

_HOMES = {
    "Analysis": "analysis", "Calibration": "calibrate", "Evaluation": "evaluate", "GoldenReply": "golden",
    "Instrument": "instrument", "Keyword": "analysis", "Marker": "markers", "MarkerHit": "markers",
    "Reference": "reference", "Settings": "instrument", "Step": "analysis", "Trajectory": "trajectory",
    "UNCLASSIFIED": "intents", "assess": "trajectory", "catalogue": "intents", "chain_match": "evaluate",
    "find_markers": "markers", "lcs_length": "evaluate", "load_golden": "golden", "load_markers": "markers",
}  # fmt: skip

__all__ = [
    "UNCLASSIFIED", "Analysis", "Calibration", "Evaluation", "GoldenReply", "Instrument", "Keyword", "Marker",
    "MarkerHit", "Reference", "Settings", "Step", "Trajectory", "assess", "catalogue", "chain_match", "find_markers",
    "lcs_length", "load_golden", "load_markers",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
