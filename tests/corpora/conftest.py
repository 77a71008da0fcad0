"""Small written corpora in the original formats, and a way to load them as if they were registered."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from anima.corpora.registry import Entry, hash_files, registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADER = (
    "group_id\tmessage_id\tmessage_type\torigin\toriginal_text\tclean_text\tannotation_type\tannotation_target\t"
    "annotation_additional\tteam_performance\tperformance_change\tsol_tracker_message\tsol_tracker_all"
)
START = 'g1\t-1\tINITIAL\tSYSTEM\tFox,SYSTEM,Owl&&2,7,V,A\t\t\t\t\t0.5\t0.0\t\t{"Fox": ["7", "A"], "Owl": ["2"]}'
GROUP = "\n".join([
    HEADER,
    START,
    "g1\tm1\tMESSAGE\tOwl\t'I''d say \"2\"'\tI'd say <CARD>\tProbing\tSolution\tpartial_solution,solution_summary\t0.5\t0.0\t2\t"
    '{"Fox": ["7", "A"], "Owl": ["2"]}',
    'g1\tm2\tMESSAGE\tFox\tNA\tNA\tNone\t0\t0\t0.5\t0.0\t\t{"Fox": ["7", "A"], "Owl": ["2"]}',
    'g1\tm3\tMESSAGE\tFox\tNone\tNone\t0\t0\t0\t0.75\t0.25\tA\t{"Fox": ["A"], "Owl": ["2"]}',
    'g1\tm4\tSUBMIT\tFox\tA,7\t\t\t\t\t1.0\t0.25\t\t{"Fox": ["A", "7"], "Owl": ["2"]}',
]) + "\n"  # fmt: skip


def participant(points: int = 18) -> dict[str, Any]:
    return {
        "value2issue": {"High": "Water", "Medium": "Food", "Low": "Firewood"},
        "value2reason": {"High": "a dog", "Medium": "hungry", "Low": "a stove"},
        "outcomes": {"points_scored": points, "satisfaction": "Slightly satisfied", "opponent_likeness": "Undecided"},
        "demographics": {"age": 30, "gender": "x", "ethnicity": "y", "education": "z"},
        "personality": {
            "svo": "proself",
            "big-five": {"extraversion": 5.0, "emotional-stability": 4.0},
        },
    }


def negotiation(key: int = 7) -> dict[str, Any]:
    texts = ["Hello!", "Water please", "Water please", "Submit-Deal"]
    return {
        "dialogue_id": key,
        "chat_logs": [
            {"text": text, "task_data": {}, "id": f"mturk_agent_{1 + turn % 2}"} for turn, text in enumerate(texts)
        ],
        "participant_info": {"mturk_agent_1": participant(), "mturk_agent_2": participant(12)},
        "annotations": [["Hello!", "small-talk"], ["Water please", "self-need,,elicit-pref"]],
    }


@pytest.fixture
def casino_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "casino"
    folder.mkdir()
    for number, split in enumerate(("train", "valid", "test")):
        (folder / f"casino_{split}.json").write_text(json.dumps([negotiation(number)]), encoding="utf-8")
    return folder


@pytest.fixture
def delidata_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "delidata"
    (folder / "delidata_corpus").mkdir(parents=True)
    (folder / "delidata_corpus" / "g1").write_text(GROUP, encoding="utf-8")
    return folder


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Entry]:
    """Register the files of a folder (taken as right) as the corpus of that name; further arguments replace fields."""

    def run(folder: Path, **fields: Any) -> Entry:
        monkeypatch.setenv("ANIMA_CORPORA", str(folder.parent))
        item = registry()[folder.name]
        trees = {path.name + "/" for path in folder.iterdir() if path.is_dir()}
        files = dict.fromkeys(trees or {path.name for path in folder.iterdir()}, "")
        hashes = hash_files(replace(item, files=files), folder)
        if trees:
            from anima.corpora.files import tree_hash

            (tree,) = trees
            fields = {"files": {tree: tree_hash(hashes)}, "counts": {tree: len(hashes)}, **fields}
        else:
            fields = {"files": hashes, "counts": {}, **fields}
        made = replace(item, **fields)
        module = import_module("anima.corpora.registry")
        monkeypatch.setattr(module, "registry", lambda: {**registry(), folder.name: made})
        return made

    return run
