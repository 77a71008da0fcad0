"""Where a reply stands between performed certainty and performed doubt.

The score is a difference of two cosines, so its scale belongs to the embedder: thresholds are quantiles calibrated for
it (see ``corpora/profiles``), never constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from anima.authenticity.rules import round3, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

PoleLabel = Literal["certeza_performada", "duda_performada", "frontera_edge", "neutro", ""]

#: What the labels, fields of the reference service, are called where people read them.
_WORDS: Final[Mapping[PoleLabel, str]] = {
    "certeza_performada": "performed certainty",
    "duda_performada": "performed doubt",
    "frontera_edge": "undecidable edge",
    "neutro": "neither",
    "": "",
}

_LABELS: Final[Mapping[int, PoleLabel]] = {1: "certeza_performada", -1: "duda_performada", 0: "neutro"}


@dataclass(frozen=True, slots=True)
class Poles:
    """Unit vectors of the three poles, of shape ``(dim,)``; ``edge`` may be absent."""

    certainty: NDArray[np.float64]
    doubt: NDArray[np.float64]
    edge: NDArray[np.float64] | None = None

    def raw(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Return cos(v, certainty) - cos(v, doubt) for unit rows ``vectors`` of shape ``(n, dim)``."""
        result: NDArray[np.float64] = np.asarray(vectors, dtype=np.float64) @ (self.certainty - self.doubt)
        return result


@dataclass(frozen=True, slots=True)
class PoleScore:
    """Pole score of one reply; values unrounded.

    Attributes
    ----------
    raw
        Similarity to certainty minus similarity to doubt, in [-2, 2].
    bucket, label
        +1 ``certeza_performada``, -1 ``duda_performada``, 0 ``frontera_edge`` (nearest the edge pole) or ``neutro``.
        An empty label means that nothing was scored.
    sim_pos, sim_neg, sim_neu
        Cosines to the three poles; ``sim_neu`` is NaN without an edge pole.
    low, high
        The thresholds that were applied.
    """

    raw: float
    bucket: int
    label: PoleLabel
    sim_pos: float
    sim_neg: float
    sim_neu: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """The label in English; empty if nothing was scored."""
        return _WORDS[self.label]

    def to_dict(self) -> dict[str, Any]:
        """Return the reference service's fields, rounded to three decimals; null where nothing was scored."""
        names = ("raw", "bucket", "label", "sim_pos", "sim_neg", *(("sim_neu",) if np.isfinite(self.sim_neu) else ()))
        return rounded({name: getattr(self, name) for name in names})


NO_POLE = PoleScore(np.nan, 0, "", np.nan, np.nan, np.nan, np.nan, np.nan)


def score_pole(vector: NDArray[Any], poles: Poles | None, *, low: float, high: float) -> PoleScore:
    """Score one unit vector of shape ``(dim,)`` against the poles.

    ``raw > high`` is certainty and ``raw < low`` doubt, both strictly; between them the edge pole wins when it is
    nearer than both others.
    """
    if poles is None or np.isnan(vector).any():
        return NO_POLE
    vector = np.asarray(vector, dtype=np.float64)
    pos, neg = float(vector @ poles.certainty), float(vector @ poles.doubt)
    neu = float("nan") if poles.edge is None else float(vector @ poles.edge)
    raw = pos - neg
    bucket = 1 if raw > high else -1 if raw < low else 0
    label = _LABELS[bucket]
    # The service compares the rounded edge similarity with the unrounded others; the difference shows only on exact
    # ties.
    if bucket == 0 and round3(neu) > pos and round3(neu) > neg:  # false for NaN
        label = "frontera_edge"
    return PoleScore(raw, bucket, label, pos, neg, neu, low, high)
