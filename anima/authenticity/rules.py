"""Two sets of rules: how the reference service decides, and how anima does.

Every place where the two differ reads one of these fields; nothing else in the package asks which set is in force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from anima.checks import require_choice

if TYPE_CHECKING:
    from anima.authenticity.classify import ClassifierName
    from anima.text import SegmentRule

RulesName = Literal["anima", "reference"]
RULES: tuple[RulesName, ...] = get_args(RulesName)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is decided differently."""

    name: RulesName
    segment: SegmentRule
    #: Used unless another is asked for.
    classifier: ClassifierName
    #: Whether UNCLASSIFIED counts as control in densities, breaks and the trajectory rules.
    plain_is_control: bool
    #: Classified sentences below which a trajectory is "insufficient"; 0 assesses everything.
    min_classified: int
    #: Fixed (negative, positive) cuts of the pole score, or None for the embedder's calibrated ones.
    pole_thresholds: tuple[float, float] | None
    #: Fixed cosine cut of the centroid classifiers, or None for the embedder's calibrated one.
    intent_threshold: float | None
    #: Whether marker patterns keep RE2's ASCII classes and byte positions, and nothing is suppressed.
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


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Return ``row`` ready for JSON: numbers by :func:`round3`, undefined ones None, tuples as lists."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return round3(value) if math.isfinite(value) else None
        return list(value) if isinstance(value, tuple) else value

    return {key: plain(value) for key, value in row.items()}


def get_rules(name: RulesName) -> Rules:
    """Return the set of rules called ``name``."""
    return _SETS[require_choice(name, "rules", RULES)]
