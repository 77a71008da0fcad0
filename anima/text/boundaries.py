"""Compare two ways of cutting the same text, by where their sentences end."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass
from operator import add
from typing import TYPE_CHECKING

from anima.checks import show
from anima.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BoundaryScores:
    """Counts of sentence ends, and what follows from them. Scores of several texts add up with ``+``.

    Attributes
    ----------
    n_gold, n_found, n_matched
        Ends of the gold sentences, ends that were found, ends that are both.
    """

    n_gold: int
    n_found: int
    n_matched: int

    @property
    def precision(self) -> float:
        """Share of found ends that are gold ends; NaN when nothing was found."""
        return self.n_matched / self.n_found if self.n_found else math.nan

    @property
    def recall(self) -> float:
        """Share of gold ends that were found; NaN when there is none."""
        return self.n_matched / self.n_gold if self.n_gold else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN when there are no ends at all."""
        total = self.n_gold + self.n_found
        return 2 * self.n_matched / total if total else math.nan

    def __add__(self, other: BoundaryScores) -> BoundaryScores:
        if not isinstance(other, BoundaryScores):
            return NotImplemented
        return BoundaryScores(*map(add, astuple(self), astuple(other)))

    def to_dict(self) -> dict[str, int | float | None]:
        """Return counts and scores, JSON-ready: an undefined score is None."""
        scores = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {name: None if math.isnan(value) else value for name, value in scores.items()} | asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row; an undefined score is NaN."""
        import pandas as pd

        return pd.DataFrame([self.to_dict()]).astype({"precision": float, "recall": float, "f1": float})

    def summary(self) -> str:
        """Return one sentence."""
        if math.isnan(self.f1):
            return "No sentence ends to compare: the scores are undefined."
        return (
            f"{self.n_matched} of {self.n_gold} gold sentence ends were found among {self.n_found}: "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}."
        )

    def _repr_html_(self) -> str:
        return f"<p>{self.summary()}</p>"


def boundary_scores(gold_spans: Iterable[Span], found_spans: Iterable[Span]) -> BoundaryScores:
    """Compare the sentence ends of two segmentations of one text.

    Parameters
    ----------
    gold_spans, found_spans
        Spans ``(start, end)`` in the text. Only ends are compared: whether a bullet belongs to the slice is taste.

    Returns
    -------
    BoundaryScores
        Add those of many texts before reading a score (micro average): a short reply then weighs little.

    Raises
    ------
    InputError
        If a span is no pair of integers with ``0 <= start <= end``.

    Notes
    -----
    The end of the whole text counts like any other, so that a rule which drops the last sentence loses recall. The
    baseline to beat is the text left whole: precision 1, recall 1 / number of sentences.
    """
    gold, found = _ends(gold_spans, "gold_spans"), _ends(found_spans, "found_spans")
    return BoundaryScores(len(gold), len(found), len(gold & found))


def _ends(spans: Iterable[Span], name: str) -> set[int]:
    ends: set[int] = set()
    if not isinstance(spans, Iterable):
        raise InputError(f"{name} must be a list of spans (start, end), got {show(spans)}")
    for i, span in enumerate(spans):
        pair = tuple(span) if isinstance(span, tuple | list) else ()
        if len(pair) != 2 or not all(isinstance(x, int) for x in pair) or not 0 <= pair[0] <= pair[1]:
            raise InputError(f"{name} item {i} must be a pair of integers with 0 <= start <= end, got {show(span)}")
        ends.add(pair[1])
    return ends
