"""The result of the instrument: one reply, read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anima.authenticity.intents import UNCLASSIFIED, regime
from anima.authenticity.rules import RulesName, round3

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import altair as alt
    import pandas as pd

    from anima.authenticity.markers import MarkerHit
    from anima.authenticity.neighbours import CrossPool, Neighbour, PoolName
    from anima.authenticity.poles import PoleScore
    from anima.authenticity.trajectory import Trajectory
    from anima.stats import Presentable


@dataclass(frozen=True, slots=True)
class Keyword:
    """The n-gram of a sentence that lies nearest to the centroid of its intent."""

    text: str
    similarity: float


class LazyKeyword:
    """A keyword that is computed when somebody looks at it: it costs about 29 times the sentence itself."""

    def __init__(self, compute: Callable[[], Keyword] | None) -> None:
        self._compute = compute
        self._value: Keyword | None = None

    @property
    def known(self) -> bool:
        """Whether the keyword has been computed already."""
        return self._value is not None

    def get(self) -> Keyword | None:
        """Return the keyword, computing it the first time; None when keywords were switched off or lost in a copy."""
        if self._value is None and self._compute is not None:
            self._value = self._compute()
            self._compute = None
        return self._value

    def __getstate__(self) -> tuple[Keyword | None]:
        # A copy sent to another process keeps what is known and lets go of the model behind the rest. (A state of None would not be restored.)
        return (self._value,)

    def __setstate__(self, state: tuple[Keyword | None]) -> None:
        self._compute, self._value = None, state[0]


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence of the reply.

    Attributes
    ----------
    phrase, start, end
        Verbatim slice of the reply and its character span.
    intent, confidence
        The label and its score: a cosine for the centroid classifiers, a probability for the trained head.
    runner_up, margin
        The next best label and how far behind it is. Where a label was withheld, it is the runner-up, at no margin.
    position
        ``opening``, ``middle`` or ``closing``.
    predicted_next, actual_next, deviation
        The usual successor, the one that came, and whether they differ.
    """

    index: int
    phrase: str
    start: int
    end: int
    intent: str
    confidence: float
    runner_up: str
    margin: float
    scores: Mapping[str, float]
    position: str
    predicted_next: str
    actual_next: str
    deviation: bool
    _keyword: LazyKeyword = field(default_factory=lambda: LazyKeyword(None), repr=False, compare=False)

    @property
    def keyword(self) -> Keyword | None:
        """The n-gram nearest to the intent, computed on first look."""
        return self._keyword.get()

    @property
    def has_keyword(self) -> bool:
        """Whether the keyword has been computed already."""
        return self._keyword.known

    @property
    def regime(self) -> str:
        """``control``, ``genuine`` or ``plain``."""
        return regime(self.intent)

    def to_dict(self) -> dict[str, Any]:
        """Return the reference service's fields, and margin, runner-up, scores and span."""
        names = ("index", "phrase", "intent", "confidence", "position")
        more = ("predicted_next", "actual_next", "deviation", "margin", "runner_up")
        row = {name: getattr(self, name) for name in names}
        if self.has_keyword and (keyword := self.keyword) is not None:
            row |= {"keyword": keyword.text, "keyword_sim": keyword.similarity}
        row |= {name: getattr(self, name) for name in more}
        span = [self.start, self.end]
        return row | {"scores": dict(self.scores), "span": span, "extra": {"source": "semantic"}}


@dataclass(frozen=True, repr=False)
class Analysis:
    """How one reply manages its reader.

    Attributes
    ----------
    response, question
        The texts as given.
    steps
        One per sentence.
    trajectory, pole, neighbours, neighbours_by_pool, pools
        See :mod:`anima.authenticity.trajectory`, :mod:`~anima.authenticity.poles`,
        :mod:`~anima.authenticity.neighbours`.
    markers
        Formal markers that count; ``suppressed_markers`` holds those negated or quoted, with the reason.
    embedder, classifier, rules
        What produced the result.
    note
        Why parts are missing; empty when nothing is.
    verdict
        What a judge said of the whole, a ``Verdict`` or an ``Unscored``; None when none was asked.
    """

    response: str
    question: str | None
    steps: tuple[Step, ...]
    trajectory: Trajectory
    pole: PoleScore
    neighbours: tuple[Neighbour, ...]
    pools: CrossPool
    markers: tuple[MarkerHit, ...]
    suppressed_markers: tuple[MarkerHit, ...]
    embedder: str
    classifier: str
    rules: RulesName
    note: str = ""
    loaded_vectors: int = 0
    dim: int = 0
    pool_sizes: Mapping[str, int] = field(default_factory=dict)
    neighbours_by_pool: Mapping[PoolName, tuple[Neighbour, ...]] = field(default_factory=dict)
    verdict: Presentable | None = None

    @property
    def chain(self) -> tuple[str, ...]:
        """The intents in order."""
        return self.trajectory.chain

    def summary(self) -> str:
        """Return one sentence that says what was found."""
        if not self.steps:
            return f"Nothing to analyse: {self.note}."
        n = len(self.steps)
        regimes = Counter(step.regime for step in self.steps)
        named = Counter(step.intent for step in self.steps if step.intent != UNCLASSIFIED).most_common(2)
        # "Mostly" needs a winner. The pole is left out: it is a direction, not a finding worth a headline.
        clear = bool(named) and (len(named) == 1 or named[0][1] > named[1][1])
        top = f", mostly {named[0][0]}" if clear else ""
        trajectory = self.trajectory
        return (
            f"{n} sentence{'s' * (n != 1)}: {regimes['control']} control, {regimes['genuine']} genuine, {regimes['plain']} plain{top}; "
            f"trajectory {trajectory.predictability} ({trajectory.rule}: {trajectory.reason}); "
            f"{len(self.markers)} formal marker{'s' * (len(self.markers) != 1)}."
            + (f" {self.verdict.summary()}" if self.verdict is not None else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict with the reference service's field names; keywords not yet computed are left out."""
        return {
            "response": self.response,
            "question": self.question,
            "intent_chain": [step.to_dict() for step in self.steps],
            "markers": [hit.to_dict() for hit in self.markers],
            "suppressed_markers": [hit.to_dict() for hit in self.suppressed_markers],
            "trajectory": self.trajectory.to_dict(),
            "pole_score": self.pole.to_dict(),
            "top_k": [neighbour.to_dict() for neighbour in self.neighbours],
            "top_k_per_pool": {pool: [one.to_dict() for one in near] for pool, near in self.neighbours_by_pool.items()},
            "baseline": {
                "cosine_top1": round3(self.neighbours[0].score) if self.neighbours else None,
                "loaded_vectors": self.loaded_vectors,
                "dim": self.dim,
                "cross_corpus": self.pools.to_dict() if self.neighbours else None,
                "triple_summary": dict(self.pool_sizes),
            },
            "embedder": self.embedder,
            "classifier": self.classifier,
            "rules": self.rules,
            "note": self.note,
        } | ({} if self.verdict is None else {"verdict": self.verdict.to_dict()})

    def to_frame(self) -> pd.DataFrame:
        """Return one row per sentence."""
        import pandas as pd

        columns = (
            "index", "phrase", "start", "end", "position", "intent", "regime", "confidence", "margin", "runner_up", "predicted_next",
            "actual_next", "deviation",
        )  # fmt: skip
        return pd.DataFrame([[getattr(step, name) for name in columns] for step in self.steps], columns=list(columns))

    def row(self) -> dict[str, Any]:
        """Return the figures of the whole reply as one flat row, as used by ``anima.analyze_frame``."""
        names = (
            "predictability", "formulaic", "rule", "control_density", "control_density_all", "genuine_density",
            "plain_share", "pattern_break_density",
        )  # fmt: skip
        near = self.neighbours[0] if self.neighbours else None
        return {
            "n_sentences": len(self.steps),
            "chain": ">".join(self.chain),
            **{name: getattr(self.trajectory, name) for name in names},
            "pole_raw": self.pole.raw,
            "pole_bucket": self.pole.bucket,
            "pole_label": self.pole.label,
            "nearest_score": near.score if near else math.nan,
            "nearest_pool": near.entry.pool if near else "",
            "dominancia": self.pools.dominancia if near else "",
            "deriva": self.pools.deriva if near else math.nan,
            "textura_t": self.pools.textura_t if near else math.nan,
            "n_markers": len(self.markers),
            "markers": ",".join(dict.fromkeys(hit.marker_id for hit in self.markers)),
            "n_suppressed": len(self.suppressed_markers),
            "note": self.note,
        }

    def plot(self) -> alt.VConcatChart:
        """Return a chart of the chain with its margins, the pools and the pole.

        Unless another altair renderer was chosen, the offline one is enabled: altair's own stays blank without a network.
        """
        import altair as alt

        from anima.authenticity.render import analysis_chart
        from anima.plots import enable_offline

        if alt.renderers.active in ("", "default"):
            enable_offline()
        return analysis_chart(self)

    def __repr__(self) -> str:
        return f"<Analysis: {self.summary()}>"

    def _repr_html_(self) -> str:
        from anima.authenticity.render import analysis_html

        return analysis_html(self) + (self.verdict._repr_html_() if self.verdict is not None else "")
