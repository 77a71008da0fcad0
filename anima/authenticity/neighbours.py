"""Nearest reference texts, and what their pools say together."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from anima.authenticity.rules import round3, rounded
from anima.vectors import top_k

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

PoolName = Literal["core", "shadow", "edge"]
POOLS: tuple[PoolName, ...] = get_args(PoolName)

#: Similarity above which the nearest text speaks for its pool (reference document, section 9).
NEAR = 0.7
#: Lead of the first pool over the second from which a closure counts as artificial.
LEAD = 0.05
#: Temperature of the texture that moves: cosines differ by hundredths, so a softmax without one is flat.
TEMPERATURE = 0.05


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """One text of the reference corpus with its author's reading."""

    text: str
    pool: PoolName
    tag: str = ""
    block_id: str = ""
    position: str = ""
    primary_pattern: str = ""
    secondary_patterns: tuple[str, ...] = ()
    source_model: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    notes: str = ""
    tags: tuple[str, ...] = ()
    lang: str = ""
    sims: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A reference text near the reply; ``score`` is their cosine, unrounded."""

    rank: int
    score: float
    entry: PoolEntry

    def to_dict(self) -> dict[str, Any]:
        """Return the reference service's fields; empty ones are left out, as there."""
        entry = self.entry
        sims = entry.sims or (0.0, 0.0, 0.0)
        names = ("block_id", "position", "primary_pattern", "source_model")
        optional: dict[str, Any] = {"corpus": entry.tag or entry.pool} | {name: getattr(entry, name) for name in names}
        optional |= zip(("sim_pos", "sim_neg", "sim_neu"), sims, strict=True)
        optional |= {"metrics": dict(entry.metrics), "notes": entry.notes, "tags": list(entry.tags)}
        given = {name: value for name, value in optional.items() if value}
        return {"rank": self.rank, "score": round3(self.score), "text": entry.text, **given}


@dataclass(frozen=True, slots=True)
class CrossPool:
    """What the nearest text of each pool says together; values unrounded.

    Attributes
    ----------
    core_top1, shadow_top1, edge_top1
        Best cosine of each pool, floored at 0; 0 for an empty pool.
    dominancia
        The pool with the best cosine; ties go to core, then shadow.
    deriva
        Lead of the first pool over the second.
    textura
        Entropy of the softmax of the three, over log2 3. Without a temperature it cannot fall below 0.888: kept for
        compatibility.
    textura_t
        The same with the softmax at :data:`TEMPERATURE`: near 0 when one pool dominates, 1 when none does.
    cierre_artificial
        The shadow pool dominates, is near and leads clearly.
    continuidad
        The core pool dominates and is near.
    """

    core_top1: float
    shadow_top1: float
    edge_top1: float
    textura: float
    textura_t: float
    dominancia: PoolName
    deriva: float
    cierre_artificial: bool
    continuidad: bool

    def tops(self) -> dict[PoolName, float]:
        """Return the best cosine of each pool."""
        return {"core": self.core_top1, "shadow": self.shadow_top1, "edge": self.edge_top1}

    def to_dict(self) -> dict[str, Any]:
        """Return the reference service's fields and ``textura_t``, rounded to three decimals."""
        return rounded(asdict(self))


def texture(similarities: Sequence[float], temperature: float = 1.0) -> float:
    """Return the normalised entropy in [0, 1] of the softmax of ``similarities`` at ``temperature``."""
    scaled = [value / temperature for value in similarities]
    weights = [math.exp(value - max(scaled)) for value in scaled]
    total = sum(weights)
    entropy = -sum(w / total * math.log2(w / total) for w in weights if w > 0)
    return entropy / math.log2(len(weights))


def cross_pool(best: Mapping[PoolName, float]) -> CrossPool:
    """Combine the best cosine of each pool; absent pools count as 0."""
    tops = [max(0.0, best.get(pool, 0.0)) for pool in POOLS]
    dominant = POOLS[int(np.argmax(tops))]  # argmax takes the first of equals: core, shadow, edge
    first, second, _ = sorted(tops, reverse=True)
    lead = first - second
    return CrossPool(
        core_top1=tops[0],
        shadow_top1=tops[1],
        edge_top1=tops[2],
        textura=texture(tops),
        textura_t=texture(tops, TEMPERATURE),
        dominancia=dominant,
        deriva=lead,
        cierre_artificial=dominant == "shadow" and tops[1] > NEAR and lead > LEAD,
        continuidad=dominant == "core" and tops[0] > NEAR,
    )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies near one reply: the nearest texts of the whole corpus, and of each pool that has any."""

    neighbours: tuple[Neighbour, ...]
    by_pool: Mapping[PoolName, tuple[Neighbour, ...]]
    pools: CrossPool


NOWHERE = Surroundings((), {}, cross_pool({}))


@dataclass(frozen=True)
class Neighbourhood:
    """The reference corpus, core, shadow, edge, and its unit rows of shape ``(len(entries), dim)``."""

    entries: tuple[PoolEntry, ...]
    vectors: NDArray[Any]

    def search(self, queries: NDArray[Any], k: int) -> list[Surroundings]:
        """Return for each unit row of ``queries`` its ``k`` nearest texts, overall and of each pool.

        Order is by score, then by place in the corpus, so that ties are deterministic.
        """
        if not self.entries:
            return [NOWHERE] * len(queries)
        everywhere = self._nearest(queries, np.arange(len(self.entries)), k)
        rows = {pool: np.flatnonzero([entry.pool == pool for entry in self.entries]) for pool in POOLS}
        by_pool = {pool: self._nearest(queries, index, k) for pool, index in rows.items() if len(index)}
        found = []
        for q in range(len(queries)):
            near = {pool: lists[q] for pool, lists in by_pool.items()}
            tops = {pool: texts[0].score for pool, texts in near.items()}
            found.append(Surroundings(everywhere[q], near, cross_pool(tops)))
        return found

    def _nearest(self, queries: NDArray[Any], rows: NDArray[np.intp], k: int) -> list[tuple[Neighbour, ...]]:
        indices, scores = top_k(queries, self.vectors[rows], min(k, len(rows)))
        return [
            tuple(
                Neighbour(rank, float(score), self.entries[rows[i]])
                for rank, (i, score) in enumerate(zip(row, row_scores, strict=True), 1)
            )
            for row, row_scores in zip(indices, scores, strict=True)
        ]
