"""Discourse moves by registers and categories, phrases learnt from labelled dialogues, commitments and their ruptures."""

from anima.lexicon.categories import Category, Lexicon, Measurement, Refuted, Trigger, ledger, load_lexicon
from anima.lexicon.commitments import Commitment, Rupture, RuptureScores, commitments, measure_ruptures, ruptures
from anima.lexicon.learn import learn
from anima.lexicon.phrases import Phrase, PhraseLexicon, Scores
from anima.lexicon.scan import Hit, Polarity, densities, scan, scan_many

__all__ = [
    "Category",
    "Commitment",
    "Hit",
    "Lexicon",
    "Measurement",
    "Phrase",
    "PhraseLexicon",
    "Polarity",
    "Refuted",
    "Rupture",
    "RuptureScores",
    "Scores",
    "Trigger",
    "commitments",
    "densities",
    "learn",
    "ledger",
    "load_lexicon",
    "measure_ruptures",
    "ruptures",
    "scan",
    "scan_many",
]
