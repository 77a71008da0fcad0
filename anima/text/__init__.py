"""Strings: normalisation with a way back, segmentation, words."""

from anima.text.boundaries import BoundaryScores, boundary_scores
from anima.text.normalize import Normalized, normalize
from anima.text.segment import SEGMENT_RULES, Segment, SegmentRule, segment, sentences
from anima.text.tokens import count_words, fields, words

__all__ = [
    "SEGMENT_RULES",
    "BoundaryScores",
    "Normalized",
    "Segment",
    "SegmentRule",
    "boundary_scores",
    "count_words",
    "fields",
    "normalize",
    "segment",
    "sentences",
    "words",
]
