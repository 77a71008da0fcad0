"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def _folder(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: {what} not available on this machine")
    path = Path(value).resolve()
    if not path.is_dir():
        pytest.skip(f"{variable}={value} is not a folder: {what} not available on this machine")
    return path


@pytest.fixture(scope="session")
def oracle() -> Path:
    """Folder that holds ``oracle/`` and ``cases/``: outputs of the reference implementations."""
    return _folder("ANIMA_ORACLE", "reference outputs")


@pytest.fixture(scope="session")
def corpora_dir() -> Path:
    """Folder of the external corpora."""
    return _folder("ANIMA_CORPORA", "external corpora")


class Mulberry32:
    """The counter-based generator of the reference package, vectorised: draw i is a function of seed + i alone.

    ``zero`` replaces a seed whose low 32 bits are 0, as one of the package's two variants does.
    """

    def __init__(self, seed: float, *, zero: int = 0) -> None:
        self.state = (int(seed) & 0xFFFFFFFF) or zero

    def random(self, size: int) -> np.ndarray:
        a = np.uint32(self.state) + np.arange(1, size + 1, dtype=np.uint32) * np.uint32(0x6D2B79F5)
        self.state = (self.state + size * 0x6D2B79F5) & 0xFFFFFFFF
        t = (a ^ (a >> np.uint32(15))) * (a | np.uint32(1))
        t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
        return (t ^ (t >> np.uint32(14))) / 4294967296.0

    def integers(self, low: int, high: int, *, size: tuple[int, int]) -> np.ndarray:
        return low + np.floor(self.random(size[0] * size[1]) * (high - low)).astype(np.intp).reshape(size)


@pytest.fixture(scope="session")
def mulberry32() -> type[Mulberry32]:
    """Generator class of the reference package: pass an instance as ``rng``."""
    return Mulberry32


def _unwrap(value: object) -> object:
    """Return a value of the oracle's JSON with its special numbers made floats."""
    if isinstance(value, dict):
        if set(value) == {"$f"}:
            return float(str(value["$f"]).replace("Infinity", "inf"))
        return {key: _unwrap(item) for key, item in value.items()}
    return [_unwrap(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def oracle_cases(oracle: Path) -> Callable[[str], list[dict]]:
    """Reader of ``oracle/metaeval/<name>.jsonl``: a list of cases with special numbers decoded."""

    def read(name: str) -> list[dict]:
        text = (oracle / "oracle" / "metaeval" / f"{name}.jsonl").read_text(encoding="utf-8")
        return [_unwrap(json.loads(line)) for line in text.split("\n") if line.strip()]

    return read
