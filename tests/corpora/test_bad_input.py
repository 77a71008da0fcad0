"""Damaged files are refused, and the error names file, place, field and fix."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima.corpora import load_corpus
from anima.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "casino_valid.json"
    records = json.loads(path.read_text(encoding="utf-8"))
    edit(records[0])
    path.write_text(json.dumps(records), encoding="utf-8")


CASINO = {
    "unknown label": (
        lambda d: d["annotations"][0].__setitem__(1, "small-talk,banter"),
        r"dialogue 1, annotation 0: strategy has the unknown label 'banter': use one of small-talk, ",
    ),
    "annotation of no row": (
        lambda d: d["annotations"][1].__setitem__(0, "Wood please"),
        "dialogue 1, annotation 1: its text 'Wood please' is in no later chat row",
    ),
    "annotation of wrong shape": (lambda d: d["annotations"].append(["a"]), "dialogue 1, annotation 2: must be a pair"),
    "missing field": (lambda d: d.pop("chat_logs"), "record 0: lacks the field 'chat_logs'; it has 'dialogue_id'"),
    "missing field of a row": (
        lambda d: d["chat_logs"][1].pop("id"),
        "dialogue 1, chat row 1: lacks the field 'id'",
    ),
    "text that is none": (
        lambda d: d["chat_logs"][2].update(text=5),
        "dialogue 1, chat row 2: text must be a string, got 5",
    ),
    "text that is a list": (
        lambda d: d["chat_logs"][2].update(text=["a"]),
        r"dialogue 1, chat row 2: text must be a string, got \['a'\]",
    ),
    "demographics that would overwrite a column": (
        lambda d: d["participant_info"]["mturk_agent_1"]["demographics"].update(svo="x"),
        "dialogue 1, participant mturk_agent_1, demographics: 'svo' is a column of another field",
    ),
    "lone surrogate": (
        lambda d: d["chat_logs"][2].update(text="\ud83d"),
        "dialogue 1, chat row 2: text holds half of a surrogate pair",
    ),
    "unknown level": (
        lambda d: d["participant_info"]["mturk_agent_2"]["outcomes"].update(satisfaction="Happy"),
        "dialogue 1, participant mturk_agent_2, outcomes: satisfaction has the unknown value 'Happy': use one of Extremely diss",
    ),
    "points that are no number": (
        lambda d: d["participant_info"]["mturk_agent_1"]["outcomes"].update(points_scored="18"),
        "dialogue 1, participant mturk_agent_1, outcomes: points_scored must be a number, got '18'",
    ),
    "id of another kind": (lambda d: d.update(dialogue_id=1.5), "record 0: dialogue_id must be a string or an integer"),
    "duplicate id": (
        lambda d: d.update(dialogue_id=0),
        r"record 0: dialogue_id '0' is a duplicate of .*casino_train\.json: record 0: .* remove or rename",
    ),
    "list instead of object": (lambda d: d.update(participant_info=[]), "dialogue 1: participant_info must be a dict"),
}


@pytest.mark.parametrize("case", CASINO)
def test_casino(casino_folder: Path, case: str) -> None:
    edit, message = CASINO[case]
    change(casino_folder, edit)
    with pytest.raises(DataError, match=r"casino_valid\.json: " + message):
        load_corpus(casino_folder)


DELIDATA = {
    "missing columns": ("\tclean_text", "\tclean", "g1:1: lacks the column 'clean_text': the header must name"),
    "unknown type": ("Probing", "Prodding", "g1:3: annotation_type: type has the unknown label 'Prodding': use one of"),
    "unknown target": ("\tSolution\t", "\tSolved\t", "g1:3: annotation_target: target has the unknown label 'Solved'"),
    "unknown kind": ("SUBMIT\t", "SEND\t", "g1:6: message_type has the unknown value 'SEND': use one of INITIAL"),
    "number": ("\t0.75\t", "\thigh\t", "g1:5: team_performance must be a number, got 'high'"),
    "not a number": ("\t0.75\t", "\tnan\t", "g1:5: team_performance must be a number, got 'nan'"),
    "state": ('{"Fox": ["A"], "Owl"', '{"Fox": ["A"], "Ow', "g1:5: sol_tracker_all must be a JSON object"),
    "cards": ("&&2,7,V,A", "&&2,7,V,B", "g1:2: original_text must end in && and four cards"),
    "duplicate id": ("\tm3\t", "\tm2\t", "g1:5: utterance_id 'm2' is a duplicate of .*g1:4"),
    "two groups": ("g1\tm3", "g2\tm3", "g1:5: group_id 'g2' differs from 'g1'"),
    "no start": ("INITIAL", "MESSAGE", "g1:2: message_type must be INITIAL in the first row"),
    "unpaired apostrophe": ("\tNA\tNA\t", "\t'NA\tNA\t", "g1:.: not a table .*apostrophe at the start of a cell"),
}


@pytest.mark.parametrize("case", DELIDATA)
def test_delidata(delidata_folder: Path, case: str) -> None:
    old, new, message = DELIDATA[case]
    path = delidata_folder / "delidata_corpus" / "g1"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_corpus(delidata_folder)


def test_a_missing_file_is_named(casino_folder: Path) -> None:
    (casino_folder / "casino_test.json").unlink()
    with pytest.raises(DataError, match=r"casino_test\.json: cannot be read \(No such file.*fetch or copy it again"):
        load_corpus(casino_folder)


def test_mixed_encodings_are_named(casino_folder: Path) -> None:
    path = casino_folder / "casino_train.json"
    data = path.read_bytes().replace(b"}, {", b"},\n{", 1)
    path.write_bytes(data.replace(b"a dog", b"a \xe9clair", 1))
    with pytest.raises(
        DataError,
        match=r"casino_train\.json:\d+: byte 0xe9 at position \d+ of the line is not UTF-8; the file mixes encodings: re-",
    ):
        load_corpus(casino_folder)
    path.write_bytes(data.decode().encode("utf-16"))
    with pytest.raises(DataError, match=r"casino_train\.json:1: .*is UTF-16: save it as UTF-8$"):
        load_corpus(casino_folder)


def test_a_file_cut_inside_a_text_says_so(casino_folder: Path) -> None:
    path = casino_folder / "casino_train.json"
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"a dog") + 3])
    with pytest.raises(DataError, match=r"casino_train\.json:\d+: .*ends too early, as after a cut download"):
        load_corpus(casino_folder)


def test_a_name_is_a_name() -> None:
    with pytest.raises(InputError, match="name must be a name or the path of a folder, got 5"):
        load_corpus(5)  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(min_value=0, max_value=10_000))
def test_a_truncated_json_file_never_loads(casino_folder: Path, cut: int) -> None:
    path = casino_folder / "casino_train.json"
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: cut % len(whole)])
        with pytest.raises(DataError, match=r"casino_train\.json:\d+: not a JSON file \(.*fetch or copy it again"):
            load_corpus(casino_folder)
    finally:
        path.write_bytes(whole)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(min_value=0, max_value=10_000))
def test_a_truncated_table_is_refused_or_ends_with_a_whole_row(delidata_folder: Path, cut: int) -> None:
    path = delidata_folder / "delidata_corpus" / "g1"
    whole = path.read_bytes()
    kept = whole[: cut % len(whole)]
    try:
        path.write_bytes(kept)
        corpus = load_corpus(delidata_folder)
    except DataError as error:
        assert "g1" in str(error)  # noqa: PT017
    else:  # only the hash can tell that whole rows are gone
        assert [*kept.splitlines()] == whole.splitlines()[: 1 + len(corpus.utterances)]
    finally:
        path.write_bytes(whole)
