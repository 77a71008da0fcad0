"""Fixtures of the instrument's tests: outputs of the reference service, and a toy world whose right answers are known by hand."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from anima.authenticity import UNCLASSIFIED, Instrument, Reference, Settings, catalogue, load_markers
from anima.authenticity.neighbours import PoolEntry
from anima.authenticity.reference import Example
from anima.embedding import BundledEmbedder, TableEmbedder, has_vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray


@pytest.fixture(scope="session")
def service(oracle: Path) -> Path:
    """Folder with the outputs of the reference service."""
    return oracle / "oracle" / "authenticity"


@pytest.fixture(scope="session")
def service_embedder(service: Path) -> TableEmbedder:
    """The very vectors that the reference service worked with."""
    with np.load(service / "embeddings.npz", allow_pickle=False) as table:
        return TableEmbedder([json.loads(text) for text in table["texts"]], table["vectors"], id="usem3-table")


class ToyEmbedder:
    """Each intent has an axis that its name in a text points along; so have the poles, and whatever names none of them.

    "Validate this." is VALIDATE; "Nothing here." is plain. ``calls`` holds the texts of every call.
    """

    id = "toy-1"
    _AXES = (*(name.lower() for name in catalogue()), "certain", "doubtful", "undecided", "")
    dim = len(_AXES)

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        rows = np.full((len(texts), self.dim), np.nan)
        for i in np.flatnonzero(has_vector(texts)):
            words = re.findall(r"\w+", texts[i].lower())
            row = np.array([words.count(axis) for axis in self._AXES], dtype=float)
            row[-1] = 0.1 if row.any() else 1.0
            rows[i] = row / np.linalg.norm(row)
        return rows.astype(np.float32)


def toy_reference() -> Reference:
    prototypes = [Example(f"{name.lower()} {word}", name) for name in catalogue() for word in ("this", "that")]
    prototypes += [Example(text, UNCLASSIFIED) for text in ("Water boils.", "Bread rises.", "Nothing here.")]
    pools = [
        PoolEntry(f"{name.lower()} text", pool)
        for pool, name in (("core", "HOLD_OPEN"), ("shadow", "VALIDATE"), ("edge", "PROBE"))
    ]
    poles = {"certainty": ("certain",), "doubt": ("doubtful",), "edge": ("undecided",)}
    return Reference(tuple(prototypes), poles, tuple(pools), load_markers(), name="toy")


@pytest.fixture
def toy_embedder() -> ToyEmbedder:
    return ToyEmbedder()


@pytest.fixture
def toy(toy_embedder: ToyEmbedder) -> Callable[..., Instrument]:
    """Build instruments of the toy world; nothing is read from or kept in a cache folder."""

    def build(**settings: Any) -> Instrument:
        chosen = {"classifier": "centroid", "intent_threshold": 0.5, "pole_low": -0.2, "pole_high": 0.2} | settings
        return Instrument(toy_reference(), toy_embedder, Settings(**chosen))

    return build


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of its own for one test."""
    monkeypatch.setenv("ANIMA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def bundled() -> Instrument:
    """The default instrument without any cache of vectors, so that every text is embedded anew."""
    return Instrument(None, BundledEmbedder())
