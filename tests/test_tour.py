"""The tour with a file of one's own: from twelve replies and a sheet of labels to a kappa, and without labels to plain words."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import nbformat
import pytest

from anima import analyze_many
from anima.errors import AnimaError
from anima.publish import run_notebook

TOUR = Path(__file__).resolve().parents[1] / "notebooks" / "tour.ipynb"
REPLIES = [
    f"What a thoughtful question! The {thing} weighs {n} kilos. It was built in 19{n}. I hope this helps!"
    for n, thing in enumerate(
        ("boat", "cart", "desk", "door", "lamp", "oven", "pump", "raft", "sled", "tent", "vase", "yoke"), 60
    )
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["response"], *([reply] for reply in REPLIES)])
    return path


def run(folder: Path, **parameters: object) -> str:
    """Return everything the executed tour shows as text."""
    fast = {"n_resamples": 100, "folds": 2}
    done = nbformat.read(run_notebook(TOUR, folder / "out" / "tour.ipynb", fast | parameters), as_version=4)
    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return re.sub(r"\s+", " ", " ".join(shown))


def test_own_replies_and_labels_give_a_kappa(replies: Path, tmp_path: Path) -> None:
    analyses = analyze_many(REPLIES, progress=False)
    rows, same = [], 0
    for n, analysis in enumerate(analyses, 1):
        for step in analysis.steps:
            cleo = "" if n == 12 else "c" if step.index in (0, 3) else "plain"
            same += bool(cleo) and step.regime[0] == cleo[0]
            rows.append([f"r{n:02}.s{step.index + 1}", step.phrase, cleo, "p" if n < 3 else ""])
    labels = tmp_path / "sheet.csv"
    with labels.open("w", newline="", encoding="utf-8-sig") as file:  # as a spreadsheet set to Spanish writes it
        csv.writer(file, delimiter=";").writerows([["item", "text", "Cleo", "Dan"], *rows])
    shown = run(tmp_path, replies=str(replies), labels=str(labels))
    said = re.search(r"The instrument and Cleo: Cohen's kappa = (-?[\d.]+).*?n = 44 .*?agreement ([\d.]+)", shown)
    assert said, shown
    assert float(said[2]) == pytest.approx(same / 44, abs=0.001)
    assert "kappa of Cleo and Dan" in shown
    assert "Labelled of 48 items: Cleo 44, Dan 8." in shown
    assert "Ben" not in shown


def test_own_replies_without_labels_are_told_so(replies: Path, tmp_path: Path) -> None:
    shown = run(tmp_path, replies=str(replies))
    assert shown.count("Nothing is labelled yet") == 3
    assert "Labelled of 48 items: Ana 0." in shown
    assert "kappa =" not in shown
    sheet = tmp_path / "mine-tour" / "sheet.csv"
    assert sheet.read_text(encoding="utf-8-sig").startswith("item,text\nr01.s1,What a thoughtful question!\n")


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ("item,Cleo\nr99.s1,c\n", r"1 items of the labels are no sentence of these replies .*r99\.s1"),
        (
            "item,Cleo,Dan\nr01.s1,c,\nr01.s2,p,x\n",
            r"row 3 of the labels, item 'r01\.s2': Dan gave 'x': write one of c, g, p",
        ),
        ("item,Cleo\nr01.s1,c\nr01.s1,p\n", r"the item 'r01\.s1' twice"),
        ("item,Ñandú\nr01.s1,c\n", r"labels\.csv is not UTF-8 \(byte 5\): save it as UTF-8"),
        ("", r"labels\.csv is no table \(No columns"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_refused_with_place_and_fix(
    replies: Path, tmp_path: Path, sheet: str, message: str
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(sheet, encoding="latin-1")
    with pytest.raises(AnimaError, match=message):
        run(tmp_path, replies=str(replies), labels=str(labels))
