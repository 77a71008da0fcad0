"""The instrument: intents, trajectory, poles, neighbours, markers, evaluation and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anima.lazy import lazy

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

__getattr__, __dir__ = lazy(__name__, _HOMES)
