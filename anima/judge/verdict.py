"""What a judge says of one reply, or why it said nothing that counts; and the receipt of either."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from anima.judge.sanitize import redacted, sanitize
from anima.stats import Presentable, json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from anima.authenticity import Analysis, Instrument

Depth = Literal["surface", "simulated", "moderate", "genuine"]
Predictability = Literal["high", "moderate", "low"]
UnscoredKind = Literal[
    "empty",  # the judge answered nothing
    "thinking_only",  # it reasoned and never answered
    "no_object",  # it answered without a JSON object
    "truncated",  # its object breaks off
    "unreadable",  # its object is not JSON that can be mended
    "duplicate_key",
    "missing_score",
    "bad_score",  # not a whole number
    "out_of_range",
    "not_applicable",  # it says that the reply is none to be judged, and gives no score
    "quoted",  # the only objects are those of the text it was to judge
    "call_failed",  # no answer arrived
]

DEPTHS: tuple[Depth, ...] = get_args(Depth)
PREDICTABILITIES: tuple[Predictability, ...] = get_args(Predictability)


@dataclass(frozen=True)
class Receipt:
    """What produced an outcome: enough to repeat it and to see what it cost.

    Parameters
    ----------
    model, digest
        Name of the model, and the hash of its weights where the server tells it.
    prompt_hash
        Content hash of the prompt's version, without question and reply.
    options, seed
        Sampling options as sent; ``seed`` is None when none was set.
    prompt_tokens, output_tokens
        As the server counted them; None when it did not say.
    truncated
        Whether the output stopped at a length limit.
    times
        Seconds by phase, e.g. ``{"first_token": 0.8, "total": 12.4}``; they take no part in comparisons.
    version
        Version of anima.
    """

    model: str = ""
    digest: str = ""
    prompt_hash: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    truncated: bool = False
    times: Mapping[str, float] = field(default_factory=dict, compare=False)
    version: str = ""


class _Outcome(Presentable):
    """What verdicts and failures share: one flat row, and a form fit to be shown."""

    receipt: Receipt | None
    shown: ClassVar[tuple[str, ...]] = ()

    def redacted(self) -> Self:
        """Return a copy whose texts went through :func:`~anima.judge.sanitize.sanitize`; for pages and logs, not for analysis."""
        return redacted(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row: the fields, and those of the receipt behind them."""
        import pandas as pd

        row = {name: getattr(self, name) for name in (*vars(self), *self.also) if name != "receipt"}
        return pd.DataFrame([row | vars(self.receipt or Receipt())])

    def _repr_html_(self) -> str:
        safe = self.redacted()
        rows = [(name.replace("_", " "), getattr(safe, name)) for name in self.shown]
        cells = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{_cell(value)}</td></tr>"
            for name, value in rows
            if value
        )
        folded = "".join(
            f"<details><summary>{title}</summary><pre style='white-space:pre-wrap'>{html.escape(text)}</pre></details>"
            for title, text in safe._folded()
            if text
        )
        return f"<p>{html.escape(safe.summary())}</p><table>{cells}</table>{folded}"

    def _folded(self) -> list[tuple[str, str]]:
        receipt = ", ".join(f"{key}: {value}" for key, value in json_ready(self.receipt or {}).items())
        return [("Receipt", sanitize(receipt))]


@dataclass(frozen=True)
class Verdict(_Outcome):
    """A judge's holistic reading of one reply.

    Parameters
    ----------
    authenticity_score
        Whole number from 0 (managed throughout) to 100.
    depth_assessment, trajectory_predictability
        The judge's words for them; None when it gave none of the known ones.
    dominant_strategy, pattern_breaks, genuine_elements, notes
        What it saw, in its words.
    not_applicable
        Whether it held the reply to be no case for the instrument (code, data, a line or two): :attr:`score` is then
        NaN, so that the number does not enter a mean.
    judge_thinking
        Its reasoning before the answer, as written.
    fallback
        Whether rules gave the score in place of a language model; the two are never mixed unmarked.
    repairs
        What had to be mended to read the answer; empty for clean JSON.
    receipt
        What produced the verdict.

    Notes
    -----
    The fields hold the judge's text as it came; what is shown in a notebook went through the sanitiser.
    """

    also: ClassVar[tuple[str, ...]] = ("score", "status")
    shown: ClassVar[tuple[str, ...]] = ("dominant_strategy", "pattern_breaks", "genuine_elements", "notes", "repairs")

    authenticity_score: int
    depth_assessment: Depth | None = None
    dominant_strategy: str = ""
    pattern_breaks: tuple[str, ...] = ()
    genuine_elements: tuple[str, ...] = ()
    trajectory_predictability: Predictability | None = None
    notes: str = ""
    not_applicable: bool = False
    judge_thinking: str = ""
    fallback: bool = False
    repairs: tuple[str, ...] = ()
    receipt: Receipt | None = None

    @property
    def score(self) -> float:
        """The score as a number to average: NaN when the judge held the reply to be no case."""
        return math.nan if self.not_applicable else float(self.authenticity_score)

    @property
    def status(self) -> str:
        """``"scored"`` or ``"not_applicable"``."""
        return "not_applicable" if self.not_applicable else "scored"

    def summary(self) -> str:
        """Return one sentence."""
        model = self.receipt.model if self.receipt else ""
        who = "the rules (fall-back, no language model)" if self.fallback else model or "the judge"
        if self.not_applicable:
            return f"Not applicable according to {who}: nothing in the reply to score."
        details = [f"{self.depth_assessment} depth"] if self.depth_assessment else []
        if self.trajectory_predictability:
            details.append(f"{self.trajectory_predictability} predictability")
        mended = "; the answer had to be mended" if self.repairs else ""
        return (
            f"Authenticity {self.authenticity_score} of 100 by {who}{''.join(f', {one}' for one in details)}{mended}."
        )

    def analyze_thinking(self, instrument: Instrument | None = None) -> Analysis:
        """Run the instrument on the judge's own reasoning, to see whether the judge manages its reader as well.

        Parameters
        ----------
        instrument
            The instrument to use, e.g. ``anima.instrument(classifier="centroid")``; None for the default one.

        Returns
        -------
        Analysis
            Empty, with a note, when the judge did not think aloud.
        """
        return (instrument or default_instrument()).analyze(self.judge_thinking)

    def _folded(self) -> list[tuple[str, str]]:
        return [("Thinking of the judge", self.judge_thinking), *super()._folded()]


@dataclass(frozen=True)
class Unscored(_Outcome):
    """A judgement without a usable score: never a 0, never an exception that ends a batch.

    Parameters
    ----------
    reason
        Why, and what to do about it.
    raw
        What the judge answered, as it came.
    thinking
        Its reasoning, as it came.
    receipt
        What produced it.
    kind
        The reason as a word to count by.
    fallback
        Whether rules were to judge in place of a language model.
    """

    also: ClassVar[tuple[str, ...]] = ("score", "status")
    shown: ClassVar[tuple[str, ...]] = ("kind",)

    reason: str
    raw: str = ""
    thinking: str = ""
    receipt: Receipt | None = None
    kind: UnscoredKind = "unreadable"
    fallback: bool = False

    @property
    def score(self) -> float:
        """NaN: there is no score."""
        return math.nan

    @property
    def status(self) -> str:
        """``"unscored"``."""
        return "unscored"

    def summary(self) -> str:
        """Return one sentence."""
        return f"Unscored ({self.kind.replace('_', ' ')}): {self.reason.rstrip('.')}."

    def _folded(self) -> list[tuple[str, str]]:
        return [("Answer", self.raw), ("Thinking of the judge", self.thinking), *super()._folded()]


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return "<br>".join(html.escape(str(item)) for item in value)
    return html.escape(str(value))


@lru_cache(maxsize=1)
def default_instrument() -> Instrument:
    """Return a default instrument; the facade's shared one lives above this package."""
    from anima.authenticity import Instrument
    from anima.embedding import CachedEmbedder, get_embedder
    from anima.settings import env

    return Instrument(None, CachedEmbedder(get_embedder(env("EMBEDDER", "bundled"))))
