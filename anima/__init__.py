"""Measure how a model's reply manages its reader, and whether any such score means something.

The names below load what they need when first used: importing this package loads no model and no plotting stack.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from anima import authenticity, corpora, embedding, lexicon, metaeval, negation, stats, text
    from anima.api import analyze, analyze_frame, analyze_many, calibrate, evaluate, instrument, load_corpus

_PACKAGES = ("authenticity", "corpora", "embedding", "lexicon", "metaeval", "negation", "stats", "text")

__all__ = [
    "analyze",
    "analyze_frame",
    "analyze_many",
    "authenticity",
    "calibrate",
    "corpora",
    "embedding",
    "evaluate",
    "instrument",
    "lexicon",
    "load_corpus",
    "metaeval",
    "negation",
    "stats",
    "text",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"anima.{name}")
    if name in __all__:
        return getattr(import_module("anima.api"), name)
    raise AttributeError(f"module 'anima' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
