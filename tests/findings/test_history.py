"""The history of published kappas: what is appended, and what must be explained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from anima.errors import DataError, InputError
from anima.findings import Finding, Material, Measurement
from anima.findings.history import NAME, append_history, changelog_entries, history_problems, read_history, snapshots
from anima.metaeval import JsonlSentinelStore, judge_sentinel_report
from anima.stats import Estimate

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-01-05T10:00:00Z"


def finding(kappa: float = 0.6, *, other: float | None = 0.5, sample: bool = False, name: str = "record") -> Finding:
    """Return a finding with two kappas and something that is none."""
    rows = [Measurement("x/phrases/kappa", "x", Estimate("kappa", kappa, kappa - 0.05, kappa + 0.05, n=200))]
    if other is not None:
        rows.append(Measurement("y/phrases/kappa", "y", Estimate("kappa", other, other - 0.05, other + 0.05, n=200)))
    rows.append(Measurement("x/phrases/f1", "x", Estimate("F1", 0.7)))
    return Finding.make(
        name, title="T", answer="A.", measurements=rows, limits=[], materials=[Material("made", "0" * 16, sample)], parameters={}
    )  # fmt: skip


def problems(folder: Path, published: Finding | None, changelog: str = "") -> list[str]:
    """Return the problems of a folder's history."""
    return history_problems(read_history(folder), {} if published is None else {published.name: published}, changelog)


def test_only_what_changed_is_appended_and_nothing_is_rewritten(tmp_path: Path) -> None:
    assert read_history(tmp_path) == []
    assert append_history(finding(), tmp_path, at=AT) == 2
    first = (tmp_path / NAME).read_bytes()
    assert append_history(finding(), tmp_path, at="2026-02-01T00:00:00Z") == 0
    assert (tmp_path / NAME).read_bytes() == first
    assert append_history(finding(0.58), tmp_path, at="2026-02-02T00:00:00Z") == 1
    assert (tmp_path / NAME).read_bytes().startswith(first)
    history = JsonlSentinelStore(tmp_path / NAME).history("record/x/phrases/kappa")
    assert [item.metrics.calibration_kappa for item in history] == [0.6, 0.58]
    assert history[0].judge_model == finding().receipt.sources
    assert history[0].measured("calibrationKappa") == (0.6, 200, 0.55, 0.65)
    assert judge_sentinel_report(JsonlSentinelStore(tmp_path / NAME)).as_of == "2026-02-02T00:00:00Z"


def test_same_number_with_another_interval_or_n_is_a_change(tmp_path: Path) -> None:
    one = finding(other=None)
    append_history(one, tmp_path, at=AT)
    first = one.measurements[0]
    wider = replace(one, measurements=(replace(first, estimate=replace(first.estimate, low=0.4)),))
    fewer = replace(one, measurements=(replace(first, estimate=replace(first.estimate, low=0.4, n=100)),))
    assert [append_history(item, tmp_path, at=AT) for item in (wider, wider, fewer)] == [1, 0, 1]


def test_samples_and_undefined_kappas_leave_no_line(tmp_path: Path) -> None:
    assert append_history(finding(sample=True), tmp_path, at=AT) == 0
    assert not (tmp_path / NAME).exists()
    row = Measurement("x/phrases/kappa", "x", Estimate.undefined("kappa", "nothing there"))
    assert snapshots(replace(finding(), measurements=(row,)), AT) == []
    with pytest.raises(InputError, match="at must be"):
        snapshots(finding(), "yesterday")


def test_a_torn_history_is_named(tmp_path: Path) -> None:
    append_history(finding(), tmp_path, at=AT)
    path = tmp_path / NAME
    path.write_text(path.read_text(encoding="utf-8").replace('"judgeId"', '"judge"', 1), encoding="utf-8")
    with pytest.raises(DataError, match=r"history\.jsonl.*1"):
        read_history(tmp_path)


@pytest.mark.parametrize(
    ("changelog", "explained"),
    [
        ("", False),
        ("- `record/x/phrases`: kappa 0.60 to 0.50, the corpus was mended.", True),
        ("- Kappa of `record/x/phrases`\n  fell to 0.50.\n- Else.", True),
        ("- `record/x/phrases` was made faster.", False),
        ("- `record/x/phrases`: kappa fell to 0.501.", False),
        ("- `record/x/phrases/long` 0.50", False),
        ("- `record/x/phrases`\n- 0.50", False),
        ("record/x/phrases 0.50, but in no list", False),
    ],
)
def test_a_fall_below_the_interval_must_be_explained(tmp_path: Path, changelog: str, explained: bool) -> None:
    append_history(finding(), tmp_path, at=AT)
    append_history(new := finding(0.5), tmp_path, at="2026-02-01T00:00:00Z")
    found = problems(tmp_path, new, changelog)
    assert bool(found) is not explained
    if found:
        assert "record/x/phrases" in found[0]
        assert "from 0.600 to 0.500" in found[0]


def test_an_old_fall_stays_to_be_explained_and_a_fall_within_the_interval_does_not(tmp_path: Path) -> None:
    append_history(finding(), tmp_path, at=AT)
    append_history(new := finding(0.56), tmp_path, at="2026-02-01T00:00:00Z")
    assert problems(tmp_path, new) == []
    for month, value in ((3, 0.4), (4, 0.7)):
        append_history(new := finding(value), tmp_path, at=f"2026-0{month}-01T00:00:00Z")
    assert len(problems(tmp_path, new)) == 1


def test_numbers_and_history_belong_together(tmp_path: Path) -> None:
    assert len(problems(tmp_path, finding())) == 2  # published and never written down
    append_history(finding(), tmp_path, at=AT)
    assert problems(tmp_path, finding()) == []
    assert "not the newest line" in problems(tmp_path, finding(0.61))[0]
    low = problems(tmp_path, finding(0.4))
    assert [("newest line" in item, "fell from" in item) for item in low] == [(True, False), (False, True)]


def test_a_detector_that_is_gone_must_be_named(tmp_path: Path) -> None:
    append_history(finding(), tmp_path, at=AT)
    assert ["no longer measured" in item for item in problems(tmp_path, finding(other=None))] == [True]
    assert problems(tmp_path, finding(other=None), "- `record/y/phrases` is no longer measured.") == []
    assert len(problems(tmp_path, None)) == 2


def test_lines_out_of_order_are_told(tmp_path: Path) -> None:
    append_history(finding(), tmp_path, at=AT)
    append_history(new := finding(0.62), tmp_path, at="2025-01-01T00:00:00Z")
    assert any("order of their times" in item for item in problems(tmp_path, new))


def test_entries_of_a_changelog() -> None:
    assert changelog_entries("# C\n\n- one\n  more\n* two\n") == ["one more", "two"]
