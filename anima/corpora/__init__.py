"""Corpora as data frames: dialogues, utterances, labels, outcomes, with provenance and a report of what was found."""

from anima.corpora.base import Corpus, LoadReport, Provenance
from anima.corpora.fetch import fetch
from anima.corpora.generic import from_convokit, from_table
from anima.corpora.load import load_corpus
from anima.corpora.registry import Entry, Verification, registry, verify

__all__ = [
    "Corpus",
    "Entry",
    "LoadReport",
    "Provenance",
    "Verification",
    "fetch",
    "from_convokit",
    "from_table",
    "load_corpus",
    "registry",
    "verify",
]
