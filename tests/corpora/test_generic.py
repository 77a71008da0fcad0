"""ConvoKit folders and tables of one's own, with the public reports on ids, replies and empty texts."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.corpora import from_convokit, from_table, load_corpus
from anima.errors import DataError, InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def reports(oracle: Path) -> dict[str, dict]:
    lines = (oracle / "cases" / "public_bug_reports.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines) if row["area"] == "io"}


def convokit(folder: Path, rows: list[dict[str, Any]], conversations: dict[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    base = {"conversation_id": "c", "speaker": "ann", "text": "Hello", "meta": {}, "reply-to": None, "timestamp": 0}
    lines = (json.dumps({**base, **row}) for row in rows)
    (folder / "utterances.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if conversations is not None:
        (folder / "conversations.json").write_text(json.dumps(conversations), encoding="utf-8")
    return folder


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.oracle
def test_zeros_of_ids_and_the_word_na_stay(tmp_path: Path, reports: dict) -> None:
    assert reports["BR125"]["input"] == "id 007, text NA"
    corpus = from_table(table(tmp_path / "a.csv", "id,text\n007,NA\n008,None\n"), utterance_id="id")
    rows = corpus.utterances[["utterance_id", "text", "status"]].values.tolist()
    assert rows == [["007", "NA", "ok"], ["008", "None", "ok"]]


@pytest.mark.oracle
def test_long_ids_stay_text_beside_a_blank(tmp_path: Path, reports: dict) -> None:
    assert "72057594038135102" in reports["BR124"]["input"]
    corpus = from_table(table(tmp_path / "a.csv", "who,text\n72057594038135102,a\n,b\n"), speaker="who")
    assert corpus.utterances["speaker"].tolist() == ["72057594038135102", ""]


@pytest.mark.oracle
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path, reports: dict) -> None:
    assert reports["BR121"]["right_result"] == "'id'"
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfid,text\r\n1,Hello\r\n")
    corpus = from_table(path, utterance_id="id")
    assert corpus.utterances["utterance_id"].tolist() == ["1"]
    assert (corpus.report.boms, corpus.report.crlf_files) == (1, 1)


@pytest.mark.oracle
def test_replies_that_lead_nowhere_are_roots(tmp_path: Path, reports: dict) -> None:
    assert "reply_to is themselves or a missing id" in reports["BR126"]["input"]
    told = {"a": None, "b": "b", "d": "gone", "e": "a", "f": "g", "g": "f"}
    rows = [{"id": key, "reply-to": reply} for key, reply in told.items()]
    rows.append({"id": "h", "reply-to": "a", "conversation_id": "other"})
    corpus = from_convokit(convokit(tmp_path / "c", rows))
    report = corpus.report
    assert (report.self_replies, report.dangling_replies, report.cyclic_replies) == (1, 2, 1)
    replies = corpus.utterances.set_index("utterance_id")["reply_to"].to_dict()
    assert replies == dict.fromkeys("abdgh", "") | {"e": "a", "f": "g"}
    assert "1 self replies, 2 dangling replies, 1 cyclic replies" in report.summary()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(min_value=-1, max_value=9), min_size=1, max_size=8))
def test_replies_always_make_a_forest(tmp_path_factory: pytest.TempPathFactory, targets: list[int]) -> None:
    rows = [{"id": str(i), "reply-to": None if to < 0 else str(to)} for i, to in enumerate(targets)]
    corpus = from_convokit(convokit(tmp_path_factory.mktemp("forest"), rows))
    parent = dict(zip(corpus.utterances["utterance_id"], corpus.utterances["reply_to"], strict=True))
    for start in parent:
        at, steps = start, 0
        while at:
            at, steps = parent[at], steps + 1
            assert steps <= len(parent)
    report = corpus.report
    wrong = report.self_replies + report.dangling_replies + report.cyclic_replies
    told = sum(to >= 0 for to in targets)
    assert sum(bool(value) for value in parent.values()) == told - wrong
    assert report.self_replies == sum(to == i for i, to in enumerate(targets))
    assert report.dangling_replies == sum(to >= len(targets) for to in targets)


@pytest.mark.oracle
def test_duplicate_ids_and_conversations_without_id(tmp_path: Path, reports: dict) -> None:
    assert "duplicate utterance ids in two conversations" in reports["BR127"]["input"]
    rows = [{"id": "1"}, {"id": "1", "conversation_id": "d"}, {"id": "2", "reply-to": "1", "conversation_id": "d"}]
    folder = convokit(tmp_path / "c", rows)
    with pytest.raises(DataError, match=r"jsonl:2: utterance_id '1' is a duplicate of .*jsonl:1"):
        from_convokit(folder)
    corpus = from_convokit(folder, ids="composite")
    assert corpus.utterances["utterance_id"].tolist() == ["c:1", "d:1", "d:2"]
    assert corpus.utterances["reply_to"].tolist() == ["", "", "d:1"]
    with pytest.raises(DataError, match=r"jsonl:1: conversation_id must be a string or an integer, got None"):
        from_convokit(convokit(tmp_path / "n", [{"id": "1", "conversation_id": None}]))


@pytest.mark.oracle
def test_empty_utterances_are_kept_and_marked(tmp_path: Path, reports: dict) -> None:
    assert reports["BR128"]["input"] == "empty utterances"
    rows = [{"id": "a", "text": ""}, {"id": "b", "text": " \u3000\n"}, {"id": "c", "text": None}, {"id": "d"}]
    corpus = from_convokit(convokit(tmp_path / "c", rows))
    assert corpus.utterances["status"].tolist() == ["empty", "empty", "empty", "ok"]
    assert corpus.report.empty_texts == 3


def test_convokit_metadata_labels_and_splits(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "meta": {"act": ["ask", "thank"], "text": "raw", "score": 2}},
        {"id": "b", "meta": {"act": "ask"}, "user": "bob", "reply-to": "a"},
        {"id": "c", "meta": {"act": None}},
    ]
    folder = convokit(tmp_path / "mine", rows, {"c": {"meta": {"split": "test", "topic": "tea"}}})
    corpus = from_convokit(folder, labels={"act": "act"})
    assert corpus.name == "mine"
    assert corpus.label_names("act") == ("ask", "thank")
    rows = corpus.labelled("act")[["split", "ask", "thank"]].values.tolist()
    assert rows == [["test", True, True], ["test", True, False]]
    assert corpus.utterances["meta_text"].tolist()[0] == "raw"
    assert corpus.dialogues.loc[0, "topic"] == "tea"
    assert load_corpus(folder).report.utterances == 3
    with pytest.raises(InputError, match="has any of the meta keys 'acts'"):
        from_convokit(folder, labels={"act": "acts"})
    with pytest.raises(InputError, match="scheme must be one of 'act', got 'deed'"):
        corpus.labelled("deed")


def test_tables_with_columns_of_ones_own(tmp_path: Path) -> None:
    text = 'conv,n,who,said,tags,part\nx,1,ann,"Hi, you",greet,train\ny,2,bob,Bye,"greet, close,",test\nx,3,bob,"Two\nlines",,train\n'
    columns = {"text": "said", "dialogue_id": "conv", "utterance_id": "n", "speaker": "who", "split": "part"}
    corpus = from_table(table(tmp_path / "t.csv", text), **columns, labels={"tag": "tags"}, label_separator=",")
    assert corpus.utterances[["utterance_id", "dialogue_id", "turn", "text", "reply_to"]].values.tolist() == [
        ["1", "x", 0, "Hi, you", ""],
        ["3", "x", 1, "Two\nlines", "1"],
        ["2", "y", 0, "Bye", ""],
    ]
    rows = corpus.labelled("tag")[["split", "close", "greet"]].values.tolist()
    assert rows == [["train", False, True], ["test", True, True]]
    assert corpus.report.stray_commas == 1


def test_json_lines_with_fields_of_ones_own(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.jsonl",
        '{"id": 7, "text": "NA", "tags": ["b", "a"], "x": 1.5}\n\n{"id": "007", "text": "b", "tags": []}\n',
    )
    corpus = from_table(path, utterance_id="id", labels={"tag": "tags"})
    assert corpus.utterances["utterance_id"].tolist() == ["7", "007"]
    assert corpus.label_names("tag") == ("a", "b")
    assert corpus.utterances["x"].tolist()[0] == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,words\n1,a\n", r"t\.csv:1: lacks the field 'text'; it has 'id', 'words'"),
        ("id,text\n1,a,b\n", r"t\.csv:2: 3 cells where the header has 2"),
        ("id,text\n1\n", r"t\.csv:2: 1 cells where the header has 2"),
        ("id,text\n1,a\n1,b\n", r"t\.csv:3: utterance_id '1' is a duplicate of .*t\.csv:2"),
        ("id,text\n,a\n", r"t\.csv:2: utterance_id must be a non-empty string, got ''"),
        ("id,text,id\n1,a,2\n", r"t\.csv:1: more than one column 'id'"),
        ('id,text\n1,"a\n2,b\n', r"t\.csv:3: not a table .*quotation mark may be unpaired"),
        ("", r"t\.csv:1: lacks the fields 'text', 'id'; it has none"),
        ("id,text\n", r"t\.csv: holds no row"),
    ],
)
def test_bad_tables_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_table(table(tmp_path / "t.csv", text), utterance_id="id")


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "text\na\n")
    with pytest.raises(InputError, match="delimiter must be one character"):
        from_table(path, delimiter="ab")
    with pytest.raises(InputError, match="label_separator must be a str that is not empty, got ''"):
        from_table(path, label_separator="")
    with pytest.raises(InputError, match="labels must name a field by scheme"):
        from_table(path, labels=["text"])  # type: ignore[arg-type]


def test_a_long_cell_is_no_mistake(tmp_path: Path) -> None:
    usual = csv.field_size_limit()
    path = table(tmp_path / "t.csv", "text\n" + "w" * (usual + 1) + "\n")
    assert len(from_table(path).utterances["text"][0]) == usual + 1
    assert csv.field_size_limit() == usual


def test_a_dialogue_in_two_splits_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "d,text,part\nx,a,train\nx,b,test\n")
    with pytest.raises(DataError, match=r"t\.csv:3: part is 'test', but 'train' in the same dialogue \(.*t\.csv:2\)"):
        from_table(path, dialogue_id="d", split="part")


@pytest.mark.parametrize(
    ("rows", "conversations", "message"),
    [
        ([{"id": "a", "meta": "x"}], None, r"utterances\.jsonl:1: meta: must be a JSON object, got 'x'"),
        ([{"id": "a"}], [1], r"conversations\.json: must be a JSON object"),
        ([{"id": "a"}], {"c": {"meta": [1]}}, r"conversations\.json: c, meta: must be a JSON object"),
    ],
)
def test_bad_metadata_is_named(tmp_path: Path, rows: list, conversations: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_convokit(convokit(tmp_path / "c", rows, conversations))


def test_metadata_may_be_null(tmp_path: Path) -> None:
    corpus = from_convokit(convokit(tmp_path / "c", [{"id": "a", "meta": None}], {"c": {"meta": None}}))
    assert corpus.utterances["utterance_id"].tolist() == ["a"]


def test_bad_json_lines_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"t\.jsonl:2: corrupt JSON line"):
        from_table(table(tmp_path / "t.jsonl", '{"text": "a"}\n{"text": "b\n'))
    with pytest.raises(DataError, match=r"t\.jsonl:1: text must be a string, got 3"):
        from_table(table(tmp_path / "t.jsonl", '{"text": 3}\n'))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\0"), max_size=12),
        min_size=1,
        max_size=6,
    )
)
def test_every_text_survives_a_table(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerows([["text", "n"], *([text, str(i)] for i, text in enumerate(texts))])
    corpus = from_table(path)
    assert corpus.utterances["text"].tolist() == texts
    assert corpus.report.empty_texts == sum(not text.strip() for text in texts)


def test_rows_without_a_label_are_examples_of_none_when_all_were_annotated(tmp_path):
    path = tmp_path / "chats.csv"
    path.write_text("text,codes\nhello,greet\nfine,\n")
    some = from_table(path, labels={"move": "codes"})
    every = from_table(path, labels={"move": "codes"}, all_annotated=True)
    assert some.labelled("move")["greet"].tolist() == [True]
    assert every.labelled("move")["greet"].tolist() == [True, False]


@pytest.mark.parametrize("name", ["place", "self", "kind", "speaker", "dialogue_id", "columns"])
def test_a_column_may_have_any_name(tmp_path: Path, name: str) -> None:
    corpus = from_table(table(tmp_path / "a.csv", f"text,{name}\nHi,Berlin\n"))
    shown = f"meta_{name}" if name in ("kind", "speaker", "dialogue_id") else name
    assert corpus.utterances[shown].tolist() == ["Berlin"]
    rows = [{"id": "a", "meta": {name: "Berlin"}}]
    corpus = from_convokit(convokit(tmp_path / "c", rows, {"c": {"meta": {name: "Rome"}}}))
    assert corpus.utterances[shown].tolist() == ["Berlin"]
    assert corpus.dialogues["meta_dialogue_id" if name == "dialogue_id" else name].tolist() == ["Rome"]


def test_no_metadata_are_lost_to_a_prefix(tmp_path: Path) -> None:
    told = [{"text": "a", "meta_text": "b", "meta_meta_text": "c", "meta_mood": "d"}, {"meta_text": "e"}]
    corpus = from_convokit(convokit(tmp_path / "c", [{"id": str(k), "meta": meta} for k, meta in enumerate(told)]))
    names = ["text", "meta_text", "meta_meta_text", "meta_meta_meta_text", "meta_mood"]
    found = corpus.utterances[names].fillna("").values.tolist()
    assert found == [["Hello", "a", "b", "c", "d"], ["Hello", "", "e", "", ""]]


@pytest.mark.parametrize("text", [0, 0.0, False, [], {}, 5])
def test_a_text_that_is_none_is_refused(tmp_path: Path, text: object) -> None:
    with pytest.raises(DataError, match=r"utterances\.jsonl:1: text must be a string, got"):
        from_convokit(convokit(tmp_path / "c", [{"id": "a", "text": text}]))


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    twice = r":2: the name 'text' stands twice in one object: rename or remove one"
    lines = '{"text": "a"}\n{"text": "b", "text": "c"}\n'
    with pytest.raises(DataError, match=r"t\.jsonl" + twice):
        from_table(table(tmp_path / "t.jsonl", lines))
    folder = convokit(tmp_path / "c", [{"id": "a"}], {"c": {}})
    (folder / "conversations.json").write_text('{"c": {"meta": {}}, "c": {"meta": {"x": 1}}}')
    with pytest.raises(DataError, match=r"conversations\.json: not a JSON file \(the name 'c' stands twice"):
        from_convokit(folder)
    (folder / "utterances.jsonl").write_text(
        '{"id": "a", "text": "", "conversation_id": "c", "meta": {"x": 1, "x": 2}}'
    )
    with pytest.raises(DataError, match=r"utterances\.jsonl:1: the name 'x' stands twice"):
        from_convokit(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": None}, "text must be the name of a column, got None"),
        ({"speaker": 3}, "speaker must be the name of a column, got 3"),
        ({"labels": {"act": 3}}, "labels must name a field by scheme"),
        ({"label_separator": 5}, "label_separator must be a str that is not empty, got 5"),
        ({"all_annotated": "false"}, "all_annotated must be True or False, got str 'false'"),
        ({"path": None}, "path must be"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_table(**{"path": table(tmp_path / "t.csv", "text\na\n")} | options)
    with pytest.raises(InputError, match="folder must be"):
        from_convokit(None)  # type: ignore[arg-type]
