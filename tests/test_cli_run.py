"""``anima run``: a bad parameter is refused by name before anything runs; what differs from the published run is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import pytest

from anima import cli, publish
from anima.cli import main
from anima.findings import Finding, Measurement, record
from anima.stats import Estimate

CODE = """
from anima.findings import Claim, Finding, Measurement
from anima.stats import Estimate
row = Measurement("x/kappa", "x", Estimate("kappa", 0.1 * folds, 0.1 * folds - 0.05, 0.1 * folds + 0.05, n=9))
Finding.make("record", title="T", answer="A.", measurements=[row], limits=[], materials=[],
             claims=[Claim("x is above .4", "x/kappa", 0.4)], parameters={"folds": folds}).write(results)
"""
PARAMETERS = 'corpus = "auto"\nfolds = 6\nshare = 0.5\nquick = False\nresults = "results"\n'


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one notebook that writes a finding."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "book" / "results").mkdir(parents=True)
    (tmp_path / "book" / "_toc.yml").touch()
    cell = nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[cell, nbformat.v4.new_code_cell(CODE)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "notebooks" / "09_record.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "results_dir", lambda: tmp_path / "book" / "results")
    return tmp_path


def _run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["anima", "run", *args])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("flods=10", "'flods' is unknown; the notebook takes corpus, folds, share, quick, results"),
        ("folds=ten", "'folds' must be int"),
        ("folds=2.5", "'folds' must be int"),
        ("folds=true", "'folds' must be int"),
        ("share=half", "'share' must be float"),
        ("quick=1", "'quick' must be bool"),
        ("folds", "must have the form name=value"),
    ],
)
def test_a_bad_parameter_is_refused_before_anything_runs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str, said: str
) -> None:
    monkeypatch.setattr(publish, "run_notebook", lambda *_: pytest.fail("something ran"))
    assert _run(monkeypatch, "record", "-p", "quick=true", "-p", given) == 2
    assert said in capsys.readouterr().err
    assert not (checkout / "build").exists()


def test_what_differs_is_said_and_written(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "record", "--out", "a") == 0
    assert "no full-corpus result is published" in capsys.readouterr().out
    assert not Path("a/record-differences.md").exists()
    Path("a/results/record.json").rename(checkout / "book" / "results" / "record.json")
    assert _run(monkeypatch, "record", "--out", "a") == 0
    assert "identical with the published run" in capsys.readouterr().out
    assert _run(monkeypatch, "record", "-p", "folds=3", "-p", "results=mine", "--out", "b") == 0
    assert "farthest is x/kappa: 0.600 published, 0.300 now" in capsys.readouterr().out
    page = Path("b/record-differences.md").read_text(encoding="utf-8")
    for row in (
        "| folds | 6 | 3 |",
        "| `x/kappa` | 0.6000 | 0.3000 | **no** |",
        "| x is above .4 | holds | fails |",
        "- differs in: parameters",
    ):
        assert row in page


def test_a_result_left_by_an_earlier_run_is_not_taken_for_this_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Measurement("x/kappa", "x", Estimate("kappa", 0.9))
    old = Finding.make("record", title="T", answer="A.", measurements=[row], limits=[], materials=[], parameters={})
    old.write(checkout / "out" / "results")
    monkeypatch.setattr(publish, "run_notebook", lambda path, out, parameters: out)
    assert _run(monkeypatch, "record", "--out", "out") == 0
    assert not (checkout / "out" / "results" / "record.json").exists()
    assert json.loads((checkout / "notebooks" / "09_record.ipynb").read_text())["cells"]
    assert "published" not in capsys.readouterr().out


def test_a_run_that_fails_leaves_the_result_of_an_earlier_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "record", "--out", "a") == 0
    result = checkout / "a" / "results" / "record.json"
    assert f"wrote {result}" in capsys.readouterr().out
    kept = result.read_bytes()

    def stops(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publish, "run_notebook", stops)
    assert _run(monkeypatch, "record", "--out", "a") == 130
    assert result.read_bytes() == kept
    assert [file.name for file in result.parent.iterdir()] == [result.name]


def test_a_file_is_named_as_seen_from_here(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "mine.csv").write_text("response\nHi\n")
    monkeypatch.chdir(checkout)
    known = {"replies": "", "corpus": "auto"}
    assert publish.read_parameters(["replies=mine.csv", "corpus=sample"], known) == {
        "replies": str((checkout / "mine.csv").resolve()),
        "corpus": "sample",
    }


@pytest.mark.parametrize("place", ["file/under", "/proc/nothing", "/proc"])
def test_a_folder_that_cannot_be_made_is_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    if place.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("no /proc here")
    (checkout / "file").touch()
    assert _run(monkeypatch, "record", "--out", place) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"anima: out: {Path(place).resolve()} cannot be written to (")
    assert said.count("\n") == 1


@pytest.mark.parametrize("shared", ["out", "results"])
def test_runs_into_one_folder_go_one_by_one(checkout: Path, monkeypatch: pytest.MonkeyPatch, shared: str) -> None:
    told: list[str] = []
    results = "results" if shared == "out" else str(checkout / "shared")
    given = [f"results={results}"]
    other = threading.Thread(target=lambda: cli.run("record", given, Path("a" if shared == "out" else "b")))

    def fake(_: Path, out: Path, __: object) -> Path:
        told.append("begins")
        if len(told) == 1:
            other.start()
            other.join(0.5)  # were the folder open, the other would be through by now
        (out.parent / results).mkdir(parents=True, exist_ok=True)
        (out.parent / results / "record.json").write_text(str(len(told)))
        told.append("ends")
        return out

    monkeypatch.setattr(publish, "run_notebook", fake)
    cli.run("record", given, Path("a"))
    other.join()
    assert told == ["begins", "ends"] * 2
    folder = checkout / "a" / results
    assert (folder / "record.json").read_text() == "3"
    assert not (folder / "record-earlier.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a group of processes")
def test_an_interrupted_run_ends_without_a_traceback(checkout: Path) -> None:
    code = "import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(60)"
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), checkout / "notebooks" / "slow.ipynb"
    )
    command = [sys.executable, "-m", "anima", "run", "slow", "--out", "o"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not Path("o/began").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert (child.returncode, said.strip()) == (130, "")
