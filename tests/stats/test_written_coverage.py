"""The committed simulations belong to the settings of the tests, keep what is promised, and are what the page shows."""

import importlib.util
import json
import math
import re
import sys
from pathlib import Path

import pytest

from anima.errors import DataError
from anima.pages import changed_statistics

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "book" / "results" / "coverage.json"
PAGE = ROOT / "book" / "changed-statistics.md"


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def written():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(written):
    return [dict(zip(written["columns"], row, strict=True)) for row in written["coverage"]]


def test_every_setting_is_written_once_and_none_is_stale(rows):
    ran = [
        (s.statistic, s.data, s.n, round(s.truth, 4), s.interval, s.promised) for s in load("coverage_table").settings()
    ]
    shown = [
        (
            row["statistic"], row["data"], row["n"], row["truth"], row["interval"],
            None if row["promised_low"] is None else (row["promised_low"], row["promised_high"]),
        )
        for row in rows
    ]  # fmt: skip
    assert [row[:3] + row[4:] for row in shown] == [row[:3] + row[4:] for row in ran]
    assert [row[3] for row in shown] == pytest.approx([row[3] for row in ran], abs=2e-4)


def test_every_promise_is_kept(rows, written):
    promised = [row for row in rows if row["promised_low"] is not None]
    assert len(promised) > 200
    for row in rows:
        share, trials = row["coverage"], row["trials"] * (1 - row["undefined"])
        assert row["mc_error"] == pytest.approx(math.sqrt(max(share * (1 - share), 0.01 * 0.99) / trials), abs=2e-4)
    rounding = 2e-4
    for row in promised:
        assert row["promised_low"] <= row["coverage"] + 2 * row["mc_error"] + rounding
        assert row["coverage"] - 2 * row["mc_error"] - rounding <= row["promised_high"]
        assert row["kept"] is True
    assert all(row["kept"] is None for row in rows if row["promised_low"] is None)
    for *_, (share, error), promise in written["comparisons"]["sentinel"]["rows"]:
        if promise:
            limit = float(promise[2:-1]) / 100
            assert share <= limit + 2 * error if promise[0] == "≤" else share >= limit - 2 * error


def test_comparisons_are_those_of_the_script(written):
    """A few trials of each give the same rows and heads; the one without chance gives the same numbers."""
    again = load("changed_statistics").comparisons(effort=0.002)
    assert list(written["comparisons"]) == [*again, "sentinel"]
    for name, found in again.items():
        shown = written["comparisons"][name]
        assert shown["head"] == found["head"], name
        settings = [[cell for cell in row if isinstance(cell, str | int)] for row in found["rows"]]
        assert [[cell for cell in row if isinstance(cell, str | int)] for row in shown["rows"]] == settings, name
    for shown, found in zip(written["comparisons"]["normal"]["rows"], again["normal"]["rows"], strict=True):
        assert shown == pytest.approx(found, abs=1e-4)


def test_the_simulations_show_what_the_page_says(written):
    found = {name: entry["rows"] for name, entry in written["comparisons"].items()}
    for pairs, theirs, ours in found["correlation"]:
        assert abs(ours[0] - 0.95) < 0.015
        assert theirs[0] < 0.93 or pairs == 100
    assert all(theirs[0] < ours[0] - 0.02 for *_, theirs, ours in found["icc"])
    assert found["clusters"][2][1][0] < 0.85 < found["clusters"][2][2][0]
    assert found["family"][0][1][0] > 0.5
    assert all(ours[0] <= 0.05 + 2 * ours[1] for *_, ours in found["family"])
    assert all(untrue[0] <= 0.03 for *_, untrue, _, _ in found["verdicts"])
    assert all(theirs > 0.1 and abs(ours) < 0.02 for *_, theirs, ours in found["constants"])
    assert [row[2] for row in found["rounding"][:2]] == [1.0, 1.0]
    assert found["rounding"][0][3] < -0.6
    assert all(ours < theirs / 3 for _, theirs, ours, _ in found["ece"])


def test_the_page_includes_every_table_and_nothing_else(written):
    files = changed_statistics(RESULTS)
    named = re.findall(r"changed/([\w.]+)", PAGE.read_text(encoding="utf-8"))
    assert sorted(named) == sorted(files)
    first = written["comparisons"]["correlation"]["rows"][0][1]
    assert f"{first[0]:.1%}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{first[1] * 100:.1f}" in files["correlation.md"]
    assert files["coverage.md"].count("\n| ") == len(written["coverage"]) + files["coverage.md"].count(":::{dropdown}")
    assert files["coverage.svg"].startswith("<svg")


def test_without_results_the_command_is_named(tmp_path):
    with pytest.raises(DataError, match=r"write_coverage\.py"):
        changed_statistics(tmp_path / "coverage.json")
