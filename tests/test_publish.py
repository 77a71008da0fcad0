"""Notebooks: found by name, run with typed parameters, failing with the cell and the reason."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from anima import publish
from anima.errors import AnimaError, DataError, InputError
from anima.publish import notebook_parameters, notebook_path, project_root, read_parameters, run_notebook, run_notebooks

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = {"sample": True, "n": 10, "share": 0.5, "name": "dev", "seed": None, "grid": [0.1]}


def _notebook(*cells: str) -> dict[str, Any]:
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {
                "id": f"c{i}",
                "cell_type": "code",
                "metadata": {"tags": ["parameters"] if i == 0 else []},
                "source": source.splitlines(keepends=True),
                "outputs": [],
                "execution_count": None,
            }
            for i, source in enumerate(cells)
        ],
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "_toc.yml").write_text("root: index\n")
    (tmp_path / "notebooks").mkdir()
    for name in ("01_first_steps", "02_second"):
        text = json.dumps(_notebook("# chosen by hand\nn = 2\nname: str = 'x'\n", "print(n * 21, name)"))
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(text)
    return tmp_path


def test_a_checkout_is_found_from_anywhere_inside(checkout: Path) -> None:
    (checkout / "a" / "b").mkdir(parents=True)
    assert project_root(checkout / "a" / "b") == checkout.resolve()


def test_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anima.publish.__file__", str(tmp_path / "site-packages" / "anima" / "publish.py"))
    with pytest.raises(DataError, match="notebooks and book are not part of an installed package"):
        project_root(tmp_path)


@pytest.mark.parametrize("name", ["first_steps", "01_first_steps"])
def test_notebooks_by_name(checkout: Path, name: str) -> None:
    path = notebook_path(name, checkout)
    assert path.name == "01_first_steps.ipynb"
    assert notebook_parameters(path) == {"n": 2, "name": "x"}


def test_an_unknown_notebook(checkout: Path) -> None:
    with pytest.raises(InputError, match="notebook 'third' not found; there are first_steps, second"):
        notebook_path("third", checkout)


def test_parameters_take_the_types_of_their_defaults() -> None:
    given = ["sample=false", "n=3", "share=1", "name=3", "seed=7", "grid=[0.2, 0.3]"]
    found = read_parameters(given, KNOWN)
    assert found == {"sample": False, "n": 3, "share": 1, "name": "3", "seed": 7, "grid": [0.2, 0.3]}
    assert read_parameters(["seed=none", "name=a=b"], KNOWN) == {"seed": None, "name": "a=b"}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("n", "parameter 'n' must have the form name=value"),
        ("m=3", "parameter 'm' is unknown; the notebook takes sample, n, share, name, seed, grid"),
        ("n=3.5", "parameter 'n' must be int like its default 10, got '3.5'"),
        ("n=true", "parameter 'n' must be int like its default 10, got 'true'"),
        ("sample=1", "parameter 'sample' must be bool like its default True, got '1'"),
        ("share=half", "parameter 'share' must be float like its default 0.5, got 'half'"),
        ("share=true", "parameter 'share' must be float"),
        ("grid=0.2", "parameter 'grid' must be list"),
    ],
)
def test_bad_parameters(pair: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_parameters([pair], KNOWN)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_notebook_runs_with_parameters(checkout: Path) -> None:
    pytest.importorskip("papermill")
    out = run_notebook(notebook_path("second", checkout), checkout / "out" / "second.ipynb", {"n": 3})
    cells = json.loads(out.read_text())["cells"]
    assert "".join(cells[-1]["outputs"][0]["text"]) == "63 x\n"
    broken = checkout / "notebooks" / "03_broken.ipynb"
    broken.write_text(json.dumps(_notebook("n = 0\n", "1 / n")))
    with pytest.raises(
        AnimaError,
        match=r"03_broken.ipynb: cell \d failed with ZeroDivisionError: division by zero; see .*out-failed.ipynb",
    ):
        run_notebook(broken, checkout / "out.ipynb")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_notebooks_run_side_by_side(checkout: Path) -> None:
    """Each of two notebooks waits for a file that the other writes, so that one after the other they would never end."""
    pytest.importorskip("papermill")
    wait = (
        "import pathlib, time\npathlib.Path({mine!r}).touch()\nuntil = time.monotonic() + 60\n"
        "while not pathlib.Path({other!r}).exists():\n    assert time.monotonic() < until\n    time.sleep(0.05)"
    )
    folder = checkout / "notebooks"
    paths = [folder / "03_left.ipynb", folder / "04_right.ipynb"]
    for path, mine, other in zip(paths, ("left", "right"), ("right", "left"), strict=True):
        path.write_text(json.dumps(_notebook("n = 0\n", wait.format(mine=mine, other=other))))
    assert run_notebooks(paths, checkout / "out", workers=2) == [checkout / "out" / path.name for path in paths]
    paths[0].write_text(json.dumps(_notebook("n = 0\n", "1 / n")))
    last = folder / "09_last.ipynb"
    last.write_text((folder / "01_first_steps.ipynb").read_text())
    with pytest.raises(AnimaError, match=r"03_left.ipynb: cell \d failed with ZeroDivisionError"):
        run_notebooks([paths[0], *[folder / "01_first_steps.ipynb"] * 4, last], checkout / "failed", workers=1)
    assert not (checkout / "failed" / last.name).exists()


@pytest.mark.parametrize("sample", [True, False])
def test_captions_of_a_sample_run_say_whose_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: bool
) -> None:
    notebook = _notebook("n = 0\n", "n")
    notebook["cells"][1]["metadata"]["mystnb"] = {"figure": {"caption": "All rise."}, "image": {"alt": "A line."}}
    page = tmp_path / "03_x.ipynb"
    page.write_text(json.dumps(notebook))
    monkeypatch.setattr(publish, "rerun_result", lambda _: SimpleNamespace(sample=sample))
    publish._for_the_page(page)
    told = json.loads(page.read_text())["cells"][1]["metadata"]["mystnb"]
    before = "SAMPLE, invented data. The published figure: " if sample else ""
    assert told == {"figure": {"caption": f"{before}All rise."}, "image": {"alt": f"{before}A line."}}
