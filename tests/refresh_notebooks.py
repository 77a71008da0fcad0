"""Write the outputs of notebooks anew, keeping only what is stable and reviewable, and publish their results.

Kappas that changed are added to the history of results, and the capability card is written anew. A result computed on written samples is not published, and a
notebook that used them is not written: committed outputs are those of the full corpora.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from anima.card import write_card
from anima.findings.history import append_history
from anima.publish import project_root, rerun_result, run_notebooks

# Pictures that two machines draw differently, and views of widgets that exist only while a kernel runs.
UNSTABLE = {"image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json"}


def refresh(paths: list[Path]) -> None:
    """Execute the notebooks, write their outputs back and publish what they found."""
    with tempfile.TemporaryDirectory() as folder:
        for path, executed in zip(paths, run_notebooks(paths, Path(folder)), strict=True):
            publish(path, executed)
            write_back(nbformat.read(executed, as_version=4), path)
    write_card(project_root() / "book" / "results")


def publish(path: Path, executed: Path) -> None:
    """Put the result of a notebook among the published ones, and changed kappas into the history."""
    if (finding := rerun_result(executed)) is None:
        return
    if finding.sample:
        raise SystemExit(f"{path}: ran on a written sample; set ANIMA_CORPORA to the full corpora to refresh it")
    results = project_root(path.parent) / "book" / "results"
    finding.write(results)
    append_history(finding, results, at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def write_back(done: nbformat.NotebookNode, path: Path) -> None:
    """Write the outputs that are stable and reviewable into the notebook."""
    source = nbformat.read(path, as_version=4)
    done.metadata = {"kernelspec": source.metadata["kernelspec"], "language_info": {"name": "python"}}
    done.cells = [cell for cell in done.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    for cell in done.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key in ("tags", "mystnb") and value}
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.outputs:
            output.get("metadata", {}).clear()
            for kind in UNSTABLE & set(output.get("data", {})):
                del output["data"][kind]
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            cell.outputs = []
    nbformat.write(done, path)


if __name__ == "__main__":
    refresh([Path(name) for name in sys.argv[1:]])
