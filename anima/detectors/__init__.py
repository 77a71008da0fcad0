"""Detectors of labels, from a written lexicon to linear heads, and what they are worth on unseen dialogues."""

from anima.detectors.base import Detector, Explanation, label_frame
from anima.detectors.crossval import CrossValidation, Scoreboard, cross_validate
from anima.detectors.curve import LearningCurve, learning_curve
from anima.detectors.heads import EmbeddingHead, LinearHead, StackedHead, TfidfHead
from anima.detectors.simple import FewShotCentroids, HandLexicon, LearntPhrases, Majority
from anima.detectors.texts import Texts, with_context

__all__ = [
    "CrossValidation", "Detector", "EmbeddingHead", "Explanation", "FewShotCentroids", "HandLexicon", "LearningCurve",
    "LearntPhrases", "LinearHead", "Majority", "Scoreboard", "StackedHead", "Texts", "TfidfHead", "cross_validate",
    "label_frame", "learning_curve", "with_context",
]  # fmt: skip
