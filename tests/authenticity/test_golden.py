"""Golden sets: our form, the service's form, and every way to break them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from anima.authenticity import GoldenReply, load_golden
from anima.errors import DataError, InputError

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {
    "id": "g1",
    "lang": "en",
    "question": "Why?",
    "response": "Great! Because it rains. Great!",
    "sentences": [
        {"text": "Great!", "intent": "VALIDATE"},
        {"text": "Because it rains.", "intent": None},
        {"text": "Great!", "intent": "UNCLASSIFIED"},
    ],
    "markers": ["EXCLAMATION_OPENING"],
    "suppressed": [],
    "disputed_markers": [],
    "regime": "mixed",
    "pole": None,
    "score_ranges": [[10, 30], [20, 40]],
}


def _file(folder: Path, *rows: Any, name: str = "golden.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_reply_in_our_form(tmp_path: Path) -> None:
    [reply] = load_golden(_file(tmp_path, GOOD))
    assert [(s.start, s.end) for s in reply.sentences] == [(0, 6), (7, 24), (25, 31)]
    assert reply.chain == ("VALIDATE", "UNCLASSIFIED")
    assert reply.score_range == (15, 35)
    assert (reply.regime, reply.pole, reply.question) == ("mixed", None, "Why?")
    assert load_golden(str(tmp_path / "golden.jsonl")) == load_golden([reply]) == (reply,)


def test_ids_are_unique(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"golden\.jsonl:2: field 'id': .* is also that of line 1"):
        load_golden(_file(tmp_path, GOOD, GOOD))


def test_little_is_enough(tmp_path: Path) -> None:
    [reply] = load_golden(_file(tmp_path, {"id": 7, "response": "Hm.", "sentences": []}))
    assert reply == GoldenReply("7", "Hm.", None, "", (), (), frozenset(), frozenset(), frozenset(), None, None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": ...}, "field 'id' is missing"),
        ({"sentences": ...}, "field 'sentences' is missing"),
        ({"response": 3}, "field 'response' must be a string, got 3"),
        ({"response": None, "sentences": GOOD["sentences"]}, r"sentences\[0\]': 'Great!' is no slice"),
        ({"question": 3}, "field 'question' must be a string, got 3"),
        ({"sentences": "x"}, "field 'sentences' must be a list, got 'x'"),
        ({"sentences": ["x"]}, r"field 'sentences\[0\]': must have 'text' and 'intent', got 'x'"),
        ({"sentences": [{"text": "Great!"}]}, r"field 'sentences\[0\]': must have"),
        ({"sentences": [{"text": "", "intent": None}]}, r"field 'sentences\[0\]': must have"),
        (
            {"sentences": [{"text": "Great!", "intent": "PRAISE"}]},
            r"sentences\[0\]': unknown intent 'PRAISE'; use one of VALIDATE",
        ),
        ({"sentences": [{"text": "Great!", "intent": ["PROBE"]}]}, r"sentences\[0\]': unknown intent \['PROBE'\]"),
        (
            {"sentences": GOOD["sentences"][::-1] + GOOD["sentences"][:1]},
            r"sentences\[3\]': 'Great!' is no slice of the response after",
        ),
        ({"markers": "DUAL_ANGLE"}, "field 'markers' must be a list of strings, got 'DUAL_ANGLE'"),
        ({"suppressed": [1]}, r"field 'suppressed' must be a list of strings, got \[1\]"),
        (
            {"regime": "controll"},
            "field 'regime' must be one of control, genuine, mixed, plain or null, got 'controll'",
        ),
        ({"pole": "neutral"}, "field 'pole' must be one of certainty, doubt, edge, none or null, got 'neutral'"),
        ({"response": "Great! \ud83d"}, "field 'response' holds a lone surrogate"),
        ({"regime": 1}, "field 'regime' must be a string, got 1"),
        ({"score_ranges": 4}, r"field 'score_ranges' must be a list of \[low, high\], got 4"),
        ({"score_ranges": [[10]]}, r"field 'score_ranges\[0\]' must be \[low, high\] within 0 to 100, got \[10\]"),
        ({"score_ranges": [[10, 30], [40, 20]]}, r"field 'score_ranges\[1\]' .* low end exceeds"),
        ({"score_ranges": [["a", 30]]}, r"field 'score_ranges\[0\]'"),
        ({"score_ranges": None, "score_range": [0, 101]}, r"field 'score_ranges\[0\]'"),
    ],
)
def test_a_broken_line_names_file_line_and_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    row = {key: value for key, value in (GOOD | change).items() if value is not ...}
    path = _file(tmp_path, GOOD, row)
    with pytest.raises(DataError, match=message) as caught:
        load_golden(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_a_line_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text(json.dumps(GOOD) + "\n{bad\n")
    with pytest.raises(DataError, match=r"golden.jsonl:2: not JSON"):
        load_golden(path)


@pytest.mark.parametrize("source", ["no such set", 3, [3], [{"response": "x"}], ["dev"]])
def test_what_is_no_golden_set(source: Any) -> None:
    with pytest.raises(InputError, match="golden must be one of dev, test"):
        load_golden(source)


def test_a_set_of_the_reference_service(tmp_path: Path) -> None:
    test = {
        "id": "t1", "response": "Hm.", "question": "Why?", "expected_intent_chain": ["VALIDATE", "CLOSE"], "expected_markers": ["DUAL_ANGLE"],
        "expected_authenticity_range": [10, 35], "human_notes": "",
    }  # fmt: skip
    path = tmp_path / "golden_tests.json"
    path.write_text(json.dumps({"description": "", "tests": [test, {"response": "x"}]}))
    first, second = load_golden(path)
    assert (first.chain, first.markers, first.score_range, first.sentences) == (
        ("VALIDATE", "CLOSE"),
        {"DUAL_ANGLE"},
        (10, 35),
        (),
    )
    assert (second.id, second.chain, second.score_range) == ("1", (), None)
    for broken, message in (
        ("[1]", "must be an object with a list 'tests'"),
        ('{"tests": 3}', "must be an object with a list 'tests'"),
        ('{"tests": [3]}', r"tests\[0\]: must be an object with a string 'response', got 3"),
        (
            '{"tests": [{"response": "x", "expected_markers": "M"}]}',
            r"tests\[0\]: field 'expected_markers' must be a list of strings",
        ),
        (
            '{"tests": [{"response": "x", "expected_intent_chain": [1]}]}',
            r"tests\[0\]: field 'expected_intent_chain' must be",
        ),
        (
            '{"tests": [{"response": "x", "expected_authenticity_range": [1]}]}',
            r"tests\[0\]: field 'expected_authenticity_range' must be",
        ),
        ("{", "golden_tests.json:1: not JSON"),
    ):
        path.write_text(broken)
        with pytest.raises(DataError, match=message) as caught:
            load_golden(path)
        assert str(path) in str(caught.value)
