"""What the three renderings share: the reply cut where sentences and markers begin and end, and the wording of its parts."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from anima.authenticity.intents import UNCLASSIFIED, catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anima.authenticity.analysis import Analysis, Step
    from anima.authenticity.markers import MarkerHit
    from anima.authenticity.poles import PoleScore
    from anima.authenticity.trajectory import Trajectory

#: A longer reply is shown up to here and says so; ``to_frame()`` has all of it.
MAX_SENTENCES: Final = 200
MAX_CHARACTERS: Final = 20_000

#: Margin at which a tint is full: cosines of centroids differ by hundredths, probabilities of the heads by tenths.
_FULL_MARGIN: Final = {"centroid": 0.12, "centroids": 0.12}
_FULL_PROBABILITY: Final = 0.8

# Control characters become visible pictures: a browser drops or replaces them, a terminal would obey them.
_VISIBLE: Final = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice of the reply inside at most one sentence and under the same markers throughout."""

    text: str
    step: Step | None  # None between sentences
    first: bool  # whether it begins, or ends, the sentence
    last: bool
    hits: tuple[tuple[int, MarkerHit], ...]  # numbers and markers over it
    ending: tuple[int, ...]  # those of them that end with it


def visible(text: str) -> str:
    """Return ``text`` with line ends made one kind and control characters made visible."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_VISIBLE)


def shorten(text: str, limit: int) -> str:
    """Return ``text`` on one line, at most ``limit`` characters long."""
    line = " ".join(visible(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def number(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """Return ``value`` with fixed digits; NaN is "undefined"."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−") if math.isfinite(value) else "undefined"


def setup(analysis: Analysis) -> str:
    """Say what read the reply."""
    return f"embedder {analysis.embedder} · classifier {analysis.classifier} · rules {analysis.rules}"


def verdict(trajectory: Trajectory) -> str:
    """Return what the rule says, in words."""
    found = trajectory.predictability
    said = found if found == "insufficient" else f"{found} predictability"
    return f"{said}{', formulaic' if trajectory.formulaic else ''}"


def reach(pole: PoleScore) -> float:
    """Return half the width of the scale on which a pole score is drawn with its cuts."""
    ends = [abs(value) for value in (pole.raw, pole.low, pole.high) if math.isfinite(value)]
    return 1.25 * max(ends, default=1.0) or 1.0


def filled(value: float) -> float:
    """Return the share of a bar that ``value``, from 0 to 1, fills; nothing if it is undefined."""
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


def label(intent: str) -> str:
    """Return the name under which a sentence's label stands beside it."""
    return "plain" if intent == UNCLASSIFIED else intent


def strength(step: Step, classifier: str) -> float:
    """Return how decided a label is, in [0, 1]: its margin over the runner-up, relative to the classifier's scale."""
    return filled(step.margin / _FULL_MARGIN.get(classifier, _FULL_PROBABILITY))


def explain(step: Step) -> str:
    """Say in words what was found about one sentence."""
    known = catalogue().get(step.intent)
    gloss = f" ({known.gloss})" if known else " (no intent recognised)" if step.intent == UNCLASSIFIED else ""
    margin = (
        "" if step.runner_up == step.intent or not step.margin else f", {number(step.margin)} ahead of {step.runner_up}"
    )
    if step.intent == UNCLASSIFIED and step.runner_up != UNCLASSIFIED and UNCLASSIFIED not in step.scores:
        margin = f", margin {number(step.margin)}"  # rejected by a threshold: the scores are those of intents
    came = f"; {step.actual_next} came" if step.deviation else ""
    follows = f" Usually followed by {step.predicted_next}{came}." if step.predicted_next else ""
    return f"{step.intent}{gloss}: confidence {number(step.confidence)}{margin}.{follows}"


def numbered(analysis: Analysis) -> list[tuple[int, MarkerHit]]:
    """Return the markers in the order of the text, numbered from 1, suppressed ones among them."""
    hits = (*analysis.markers, *analysis.suppressed_markers)
    return list(enumerate(sorted(hits, key=lambda hit: (hit.start, hit.end, hit.suppressed)), 1))


def shown_steps(analysis: Analysis) -> tuple[Step, ...]:
    """Return the sentences that are shown."""
    return tuple(step for step in analysis.steps[:MAX_SENTENCES] if step.start < MAX_CHARACTERS)


def pieces(analysis: Analysis) -> Iterator[Piece]:
    """Cut the shown part of the reply so that sentences and markers may overlap in any way."""
    steps = shown_steps(analysis)
    cut = min(len(analysis.response), MAX_CHARACTERS)
    if len(steps) < len(analysis.steps):
        cut = min(cut, steps[-1].end if steps else 0)
    starts: dict[int, list[tuple[int, MarkerHit]]] = defaultdict(list)
    ends: dict[int, int] = {}
    bounds = {0, cut}
    for i, hit in numbered(analysis):
        # Space at the end of a wording is not underlined, and its number stands close to it.
        end = min(hit.start + len(analysis.response[hit.start : hit.end].rstrip()), cut)
        if hit.start < end:
            starts[hit.start].append((i, hit))
            ends[i] = end
            bounds |= {hit.start, end}
    bounds |= {edge for step in steps for edge in (step.start, min(step.end, cut))}
    active: list[tuple[int, MarkerHit]] = []
    at = 0
    edges = sorted(bounds)
    for low, high in itertools.pairwise(edges):
        active = [item for item in active if ends[item[0]] > low] + starts.get(low, [])
        while at < len(steps) and steps[at].end <= low:
            at += 1
        step = steps[at] if at < len(steps) and steps[at].start <= low else None
        yield Piece(
            text=visible(analysis.response[low:high]),
            step=step,
            first=step is not None and low == step.start,
            last=step is not None and high == min(step.end, cut),
            hits=tuple(active),
            ending=tuple(i for i, _ in active if ends[i] == high),
        )


def left_out(analysis: Analysis) -> str:
    """Say how much of a long reply is not shown; empty when all of it is."""
    steps = shown_steps(analysis)
    if len(steps) < len(analysis.steps):
        return f"Shown: the first {len(steps)} of {len(analysis.steps):,} sentences; to_frame() has all of them."
    hidden = len(analysis.response) - MAX_CHARACTERS
    return f"Shown: the first {MAX_CHARACTERS:,} characters; {hidden:,} more are not." if hidden > 0 else ""
