"""Measure how a model's reply manages its reader, and whether any such score means something.

The names below load what they need when first used: importing this package loads no model and no plotting stack.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anima.version import __version__ as __version__

if TYPE_CHECKING:
    from anima import (
        authenticity,
        corpora,
        detectors,
        embedding,
        findings,
        judge,
        lexicon,
        metaeval,
        negation,
        stats,
        text,
        widgets,
    )
    from anima.api import (
        analyze,
        analyze_frame,
        analyze_many,
        astream,
        calibrate,
        evaluate,
        instrument,
        load_corpus,
        refine,
        stream,
    )

_PACKAGES = (
    "authenticity", "corpora", "detectors", "embedding", "findings", "judge", "lexicon", "metaeval", "negation", "stats", "text",
    "widgets",
)  # fmt: skip

__all__ = [
    "analyze",
    "analyze_frame",
    "analyze_many",
    "astream",
    "authenticity",
    "calibrate",
    "corpora",
    "detectors",
    "embedding",
    "evaluate",
    "findings",
    "instrument",
    "judge",
    "lexicon",
    "load_corpus",
    "metaeval",
    "negation",
    "refine",
    "stats",
    "stream",
    "text",
    "widgets",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"anima.{name}")
    if name in __all__:
        return getattr(import_module("anima.api"), name)
    raise AttributeError(f"module 'anima' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
