"""Whether the published results still stand: every failure is provoked in a temporary checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from anima import health
from anima.cli import main
from anima.corpora import load_corpus
from anima.findings import Claim, Finding, Material, Measurement, receipt
from anima.findings.history import append_history
from anima.stats import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AT = "2026-01-05T10:00:00Z"
DATA = "stopwords.toml"


def made(kappa: float = 0.6, **options: Any) -> Finding:
    """Return a finding on the written negation corpus, whose code is the module ``anima.findings.record``."""
    corpus = load_corpus("negation", sample=True)
    rows = [
        Measurement("x/phrases/kappa", "x", Estimate("kappa", kappa, kappa - 0.05, kappa + 0.05, n=200)),
        Measurement("x/phrases/gone", "x", Estimate.undefined("F1", "nothing there")),
    ]
    given = {
        "title": "T", "answer": "A.", "measurements": rows, "limits": [], "parameters": {"folds": 5}, "data": (DATA,),
        "materials": [replace(Material.of(corpus), sample=False)], "records": {"table": [{"a": 1.5, "b": None}]},
        "claims": [Claim("x is above .4", "x/phrases/kappa", 0.4)],
    }  # fmt: skip
    return Finding.make("record", **(given | options))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one published finding, its history, and the same result of a rerun."""
    for folder in ("notebooks", "book/results"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "book" / "_toc.yml").touch()
    (tmp_path / "book" / "changelog.md").write_text("# Changelog\n\n- first\n")
    publish(tmp_path, made())
    made().write(tmp_path / "build" / "book" / "notebooks" / "results")
    monkeypatch.setattr(health, "card_problems", lambda _: [])
    return tmp_path


def publish(root: Path, finding: Finding, at: str = AT) -> None:
    """Do what the refresh script does."""
    finding.write(root / "book" / "results")
    append_history(finding, root / "book" / "results", at=at)


def rerun(root: Path, finding: Finding) -> None:
    """Leave another result of a rerun."""
    finding.write(root / "build" / "book" / "notebooks" / "results")


def states(root: Path, folder: Path | None = None) -> dict[str, str]:
    """Return the state of every row."""
    return {row.name.removeprefix("record: "): row.state for row in health.check_results(root, folder)}


def details(root: Path, state: str = "failed") -> str:
    """Return the details of the rows in one state."""
    return " | ".join(row.detail for row in health.check_results(root) if row.state == state)


ALL_WELL = {"receipt": "ok", "reproduced": "ok", "history of kappa": "ok", "capability card": "ok"}


def test_a_clean_checkout_passes(root: Path) -> None:
    assert states(root) == ALL_WELL


def test_other_measurements_beside_the_findings_are_left_alone(root: Path) -> None:
    (root / "book" / "results" / "costs.json").write_text('{"seconds": 3}')
    assert states(root) == ALL_WELL


def test_a_number_that_does_not_come_out_again(root: Path) -> None:
    rerun(root, made(0.609))
    assert states(root) == ALL_WELL  # within the tolerance of .01
    rerun(root, made(0.62))
    assert states(root) == ALL_WELL | {"reproduced": "failed"}
    assert "x/phrases/kappa: 0.600 published, 0.620 now" in details(root)
    rerun(root, made(measurements=list(made().measurements[:1])))
    assert "missing: x/phrases/gone" in details(root)


def test_a_verdict_that_differs_within_the_tolerance(root: Path) -> None:
    near = made(0.455)
    publish(root, near, "2026-02-01T00:00:00Z")
    (root / "book" / "changelog.md").write_text(f"- `record/x/phrases`: kappa fell to {0.455:.2f}.")
    rerun(root, made(0.449))
    assert states(root)["reproduced"] == "failed"
    assert "A claim's verdict differs" in details(root)


def test_what_cannot_be_compared_is_said_and_fails_nothing(root: Path) -> None:
    sample = replace(made().materials[0], sample=True)
    for other, said in (
        (made(0.1, materials=[sample]), "written sample"),
        (made(0.1, materials=[replace(sample, sample=False, hash="1" * 64)]), "other corpora"),
    ):
        rerun(root, other)
        assert states(root) == ALL_WELL | {"reproduced": "warning"}
        assert said in details(root, "warning")
    made(0.1, parameters={"folds": 2}).write(root / "mine")
    assert states(root, root / "mine") == ALL_WELL | {"reproduced": "warning"}
    nowhere = states(root, root / "nowhere")
    assert nowhere["reproduced"] == "warning"


def test_a_notebook_whose_parameters_changed_since(root: Path) -> None:
    rerun(root, made(parameters={"folds": 2}))
    assert states(root) == ALL_WELL | {"reproduced": "failed"}
    assert "other parameters than its notebook" in details(root)


def test_a_result_that_a_rerun_no_longer_writes(root: Path) -> None:
    path = root / "build" / "book" / "notebooks" / "results" / "record.json"
    path.write_text("{}")
    assert states(root)["reproduced"] == "failed"
    path.unlink()
    assert "has no record.json" in details(root)


def test_code_that_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt, "sources_hash", lambda module: "0" * 16)
    assert states(root) == ALL_WELL | {"receipt": "failed"}
    assert "no longer fits: code" in details(root)


def test_code_that_is_gone(root: Path) -> None:
    path = root / "book" / "results" / "record.json"
    path.write_text(path.read_text().replace('"name": "record"', '"name": "nothing"'))
    assert "'anima.findings.nothing' is not part of this package" in details(root)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw["measurements"][0]["estimate"].update(value=0.61), "results"),
        (lambda raw: raw["records"]["table"][0].update(a=2.5), "results"),
        (lambda raw: raw["parameters"].update(folds=10), "parameters"),
        (lambda raw: raw["receipt"]["inputs"].update({DATA: "0" * 16}), f"input {DATA}"),
        (lambda raw: raw["materials"][0].update(hash="0" * 64), "corpus negation"),
        (lambda raw: raw["receipt"]["inputs"].update({"no.toml": "0" * 16}), "no.toml"),
    ],
)
def test_a_receipt_that_does_not_fit(root: Path, change: Callable[[Any], None], said: str) -> None:
    path = root / "book" / "results" / "record.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    change(raw)
    path.write_text(json.dumps(raw, ensure_ascii=False), encoding="utf-8")
    assert states(root)["receipt"] == "failed"
    assert said in details(root)


def test_a_corpus_that_is_not_here_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMA_CORPORA", str(root / "none"))
    other = made(materials=[Material("casino", "1" * 64, False)])
    publish(root, other)
    rerun(root, other)
    assert states(root) == ALL_WELL | {"receipt": "warning"}
    assert "not on this machine: casino" in details(root, "warning")


def test_a_kappa_that_fell(root: Path) -> None:
    publish(root, made(0.5), "2026-02-01T00:00:00Z")
    rerun(root, made(0.5))
    assert states(root) == ALL_WELL | {"history of kappa": "failed"}
    assert "naming `record/x/phrases` and 0.50" in details(root)
    (root / "book" / "changelog.md").write_text(
        "# Changelog\n\n- `record/x/phrases`: kappa 0.60 → 0.50, labels mended.\n"
    )
    assert states(root) == ALL_WELL


def test_a_history_that_cannot_be_read(root: Path) -> None:
    with (root / "book" / "results" / "history.jsonl").open("a") as file:
        file.write("{}\n")
    assert states(root)["history of kappa"] == "failed"
    assert "history.jsonl" in details(root)


def test_a_result_that_cannot_be_read(root: Path) -> None:
    (root / "book" / "results" / "record.json").write_text('{"schema": 99}')
    assert states(root) == {"published results": "failed"}


def test_a_card_that_does_not_fit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "card_problems", lambda folder: [f"row x of {folder} is stale"])
    assert states(root) == ALL_WELL | {"capability card": "failed"}
    assert f"row x of {root / 'book' / 'results'} is stale" in details(root)


_AHEAD = """
import datetime, sys, time
import pandas  # its compiled parts want the real class
from pathlib import Path
now, plain = time.time, datetime.datetime
time.time = lambda: now() + 10 * 366 * 86400
class Ahead(plain):
    @classmethod
    def now(cls, tz=None):
        return plain.fromtimestamp(time.time(), tz)
datetime.datetime = Ahead
from anima import health
health.card_problems = lambda folder: []
for row in health.check_results(Path(sys.argv[1])):
    print(row)
"""


def test_a_clock_ten_years_ahead_changes_nothing(root: Path) -> None:
    command = [sys.executable, "-c", _AHEAD, str(root)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == [str(row) for row in health.check_results(root)]
    assert sum("state='ok'" in line for line in found) == 4


def test_the_command(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*args: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["anima", "health", *args])
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        found = capsys.readouterr()
        return code, found.out + found.err

    assert run("--strict")[0] == 0
    rerun(root, made(0.7))
    code, out = run("--strict")
    assert code == 1
    assert "record: reproduced" in out
    assert run()[0] == 0  # without --strict results are not looked at
    assert run("--strict", "--rerun", "book/results")[0] == 0
    code, out = run("--strict", "--rerun", "nowhere")
    assert (code, "not a folder" in out) == (2, True)
    assert run("--rerun", "book")[0] == 2
