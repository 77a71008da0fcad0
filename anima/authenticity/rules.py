"""Two sets of rules: how the reference service decides, and how anima does.

Every place where the two differ reads one of these fields; nothing else in the package asks which set is in force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from anima.checks import require_choice

if TYPE_CHECKING:
    from anima.text import SegmentRule

RulesName = Literal["anima", "reference"]
RULES: tuple[RulesName, ...] = get_args(RulesName)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is decided differently.

    Attributes
    ----------
    segment
        Segmentation rule.
    classifier
        Intent classifier used unless another is asked for.
    plain_is_control
        Whether UNCLASSIFIED counts as control in densities, breaks and the trajectory rules.
    min_classified
        Classified sentences needed before a trajectory is assessed; with fewer it is "insufficient". 0 assesses
        everything.
    pole_thresholds
        Fixed (negative, positive) cuts of the pole score, or None for the embedder's calibrated ones.
    intent_threshold
        Fixed cosine cut of the centroid classifier, or None for the embedder's calibrated one.
    re2_markers
        Whether marker patterns keep RE2's ASCII classes and byte positions, and nothing is suppressed.
    """

    name: RulesName
    segment: SegmentRule
    classifier: str
    plain_is_control: bool
    min_classified: int
    pole_thresholds: tuple[float, float] | None
    intent_threshold: float | None
    re2_markers: bool


_SETS: dict[RulesName, Rules] = {
    "anima": Rules("anima", "robust", "hybrid", False, 2, None, None, False),
    "reference": Rules("reference", "reference", "centroid", True, 0, (-0.25, 0.25), 0.55, True),
}


def round3(value: float) -> float:
    """Round to three decimals, halves away from zero, as the reference service does; NaN stays NaN.

    ``round()`` would send halves to the even neighbour.

    Examples
    --------
    >>> round3(0.0625), round(0.0625, 3)
    (0.063, 0.062)
    """
    if not math.isfinite(value):
        return value
    return math.copysign(math.floor(abs(value) * 1000 + 0.5) / 1000, value)


def round3_or_null(value: float) -> float | None:
    """Return :func:`round3` of ``value``, or None where it is undefined: JSON has no NaN."""
    return round3(value) if math.isfinite(value) else None


def get_rules(name: RulesName) -> Rules:
    """Return the set of rules called ``name``."""
    return _SETS[require_choice(name, "rules", RULES)]
