"""Where a reply stands between performed certainty and performed doubt.

The score is a difference of two cosines, so its scale belongs to the embedder: thresholds are quantiles calibrated for
it (see ``corpora/profiles``), never constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.authenticity.rules import round3, round3_or_null

if TYPE_CHECKING:
    from numpy.typing import NDArray

PoleLabel = Literal["certeza_performada", "duda_performada", "frontera_edge", "neutro", ""]


@dataclass(frozen=True, slots=True)
class Poles:
    """Unit vectors of the three poles; ``edge`` may be absent.

    Attributes
    ----------
    certainty, doubt, edge
        Arrays of shape ``(dim,)``.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Return the reference service's fields, rounded to three decimals; null where nothing was scored."""
        row: dict[str, Any] = {
            "raw": round3_or_null(self.raw),
            "bucket": self.bucket,
            "label": self.label,
            "sim_pos": round3_or_null(self.sim_pos),
            "sim_neg": round3_or_null(self.sim_neg),
        }
        if np.isfinite(self.sim_neu):
            row["sim_neu"] = round3(self.sim_neu)
        return row


NO_POLE = PoleScore(float("nan"), 0, "", float("nan"), float("nan"), float("nan"), float("nan"), float("nan"))


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
    if raw > high:
        return PoleScore(raw, 1, "certeza_performada", pos, neg, neu, low, high)
    if raw < low:
        return PoleScore(raw, -1, "duda_performada", pos, neg, neu, low, high)
    # The service compares the rounded edge similarity with the unrounded others; the difference shows only on exact
    # ties.
    nearest_edge = np.isfinite(neu) and round3(neu) > pos and round3(neu) > neg
    return PoleScore(raw, 0, "frontera_edge" if nearest_edge else "neutro", pos, neg, neu, low, high)
