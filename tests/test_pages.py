"""Generated pages: what stands on them comes from code, data and lock, and from nowhere else."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from anima import pages, provenance
from anima.errors import DataError
from anima.findings import compare_findings, published_findings
from anima.lexicon import load_lexicon

ROOT = Path(__file__).resolve().parents[1]


def test_versions_are_those_of_the_lock() -> None:
    head, rows = provenance.version_rows(ROOT)
    assert head == ("package", "version", "needed by")
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = {name: version for name, version, _ in rows}
    assert {"anima", "numpy", "scipy", "jupyter-book"} <= set(found)
    assert f"numpy=={found['numpy']}\n" in lock
    assert [name for name, version in found.items() if version == "not locked"] == []


def test_versions_need_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="build the book in a checkout"):
        provenance.version_rows(tmp_path)


def test_every_published_finding_has_its_receipt() -> None:
    found = published_findings()
    assert [row[0] for row in provenance.receipt_rows()[1]] == list(found)
    shown = {row[1].strip("`") for row in provenance.corpus_rows()[1]}
    assert shown == {item.hash[:16] for finding in found.values() for item in finding.materials}


def test_a_rerun_is_compared_and_run_times_are_told(tmp_path: Path) -> None:
    name, finding = next(iter(published_findings().items()))
    (tmp_path / "notebooks").mkdir()
    _, rows = provenance.finding_rows(tmp_path, [f"notebooks/01_{name}"])
    assert rows[0][0] == f"{{doc}}`notebooks/01_{name}`"
    assert rows[0][-1] == "not run in this build"
    finding.write(tmp_path / "notebooks" / "results")
    _, rows = provenance.finding_rows(tmp_path, [])
    assert rows[0][0] == finding.title
    assert rows[0][-1] == compare_findings(finding, finding).summary()
    notebook = {
        "metadata": {"papermill": {"duration": 12.34}},
        "cells": [{"cell_type": "code"}, {"cell_type": "markdown"}],
    }
    (tmp_path / "notebooks" / "a.ipynb").write_text(json.dumps(notebook))
    assert provenance.run_time_rows(tmp_path)[1] == [("a", "12", "1")]


def test_the_glossary_names_every_category_in_both_languages() -> None:
    lexicon, text = load_lexicon(), pages.lexicon_terms()
    for item in [*lexicon.categories.values(), *lexicon.registers.values()]:
        assert f"\n{item.name}\n  *{item.alias}.*" in f"\n{text}"


def test_the_picture_has_words_that_fit_it() -> None:
    files = pages.start_picture()
    alt = json.loads(re.search(r":alt: (.*)", files["start.md"])[1])
    for intent in re.findall(r"is read as ([A-Z_]+)", alt):
        assert (intent if intent != "UNCLASSIFIED" else "plain") in files["start.svg"]
    assert "<script" not in files["start.svg"]


def test_every_package_of_the_reference_is_in_the_contents() -> None:
    contents = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"file: (api/\S+)", contents))
    assert listed == {name.removesuffix(".md") for name in pages.api_pages()}


def test_every_part_that_a_page_includes_is_generated(tmp_path: Path) -> None:
    folder = tmp_path / "book"
    shutil.copytree(ROOT / "book", folder, ignore=shutil.ignore_patterns("_build", "notebooks"))
    wanted = {
        name
        for page in folder.glob("*.md")
        for name in re.findall(r"\{(?:include|figure)\} (\S+)", page.read_text(encoding="utf-8"))
    }
    written = {path.relative_to(folder).as_posix() for path in pages.write_generated_pages(folder, ROOT)}
    assert wanted <= written
    assert {name for name in written if name.startswith("tables/")} <= wanted
    assert "| pole cuts | pole score |" in (folder / "tables" / "constants.md").read_text(encoding="utf-8")


def test_a_measurement_that_is_gone_names_its_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"costs\.json: no measured costs .*bench_pipeline\.py --write"):
        pages.costs_table(tmp_path / "costs.json")
    with pytest.raises(DataError, match=r"no simulations .*write_coverage\.py"):
        pages.changed_statistics(tmp_path / "coverage.json")
