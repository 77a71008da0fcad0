"""Written dialogues with two ways of labelling, and an embedder that needs no model."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pytest

PHRASES = {
    "ask": ["what do you need", "which of these would you like", "how much water would you take"],
    "thank": ["thank you so much", "thanks, that is kind", "many thanks for that"],
    "offer": ["i can give you two of them", "you may have my firewood", "take three of mine"],
}
FILLER = ["well", "okay", "so", "right", "the weather is fine", "in the morning", "for my family", "by the lake"]


class WordEmbedder:
    """The mean of one fixed random direction per word."""

    id = "words"
    dim = 24

    def embed(self, texts):
        out = np.full((len(texts), self.dim), np.nan, dtype=np.float32)
        for i, text in enumerate(texts):
            if words := text.lower().split():
                row = sum(np.random.default_rng(zlib.crc32(w.encode())).normal(size=self.dim) for w in words)
                out[i] = row / np.linalg.norm(row)
        return out


def written(n_dialogues=30, turns=8, seed=0, both=0.2):
    rng = np.random.default_rng(seed)
    names, rows = list(PHRASES), []
    for d in range(n_dialogues):
        for turn in range(turns):
            labels = {names[rng.integers(3)]}
            if rng.random() < both:
                labels.add(names[rng.integers(3)])
            parts = [rng.choice(PHRASES[name]) for name in sorted(labels)] + list(rng.choice(FILLER, 2))
            rows.append(
                {"utterance_id": f"{d}:{turn}", "dialogue_id": f"d{d}", "turn": turn, "speaker": "ab"[turn % 2]}
                | {"text": " ".join(rng.permutation(parts)), **{name: name in labels for name in names}}
            )
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def embedder():
    return WordEmbedder()


@pytest.fixture(scope="session")
def frame():
    return written()


@pytest.fixture(scope="session")
def single():
    """Exactly one label for each text."""
    return written(both=0.0, seed=1)


@pytest.fixture(scope="session")
def names():
    return list(PHRASES)


@pytest.fixture(scope="session")
def make():
    return written
