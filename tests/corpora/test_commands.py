"""The command line of the corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from anima.cli import app
from anima.errors import CorpusMissingError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["corpora", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.output.split())


def test_list_and_verify(casino_folder: Path, register: Callable) -> None:
    register(casino_folder)
    code, output = run("list")
    assert code == 0
    assert "CC BY 4.0" in output
    assert output.count("sample only") == 3
    assert run("verify") == (0, f"casino: 3 files in {casino_folder}, all hashes as registered.")
    (casino_folder / "casino_test.json").unlink()
    code, output = run("verify", "casino")
    assert code == 1
    assert "damaged" in output
    assert "casino_test.json is missing" in output


def test_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMA_CORPORA", str(tmp_path))
    assert "no external corpus is on this machine" in run("verify")[1]
    assert run("verify", "nubes")[0] == 1
    with pytest.raises(CorpusMissingError, match="no lasting address"):
        run("fetch", "cd-sco")
    with pytest.raises(InputError, match="name must be one of"):
        run("fetch", "casino", "imdb")
