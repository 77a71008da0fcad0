"""The robust rule: written cases in both languages, public reports of splitters gone wrong, and properties."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anima.errors import InputError
from anima.settings import data_path
from anima.text import normalize, segment, sentences
from anima.text.ends import _KINDS, candidates

CASES_FILE = Path(__file__).parent / "segment_cases.jsonl"
CASES = [json.loads(line) for line in CASES_FILE.read_text(encoding="utf-8").split("\n") if line]
PIECES = st.sampled_from(
    [
        *(
            "Dr.",
            "e.g.",
            "etc.",
            "No.",
            "EE.",
            "UU.",
            "J.",
            "a.m.",
            "U.S.",
            "plan",
            "B",
            "3.14",
            "42",
            "https://x.org/a.b?c",
        ),
        *(
            "Hello",
            "world",
            "sí",
            "no",
            "Luego",
            "iPhone",
            "x",
            "I",
            "你好",
            "我",
            "한국어",
            "e\u0301",
            "½",
            "٣",
            "a@b.co",
        ),
        *(".!?…;:,\"'()[]{}«»“”‘’`*_#>-—•|~=¿¡。！？」「"),
        *(
            "...",
            "?!",
            "```",
            "~~~",
            "``",
            "\n",
            "\n\n",
            "\r\n",
            "\t",
            "  ",
            "🎉",
            "👩\u200d🚀",
            "\u200b",
            "\ufeff",
            "\0",
            "\u2028",
        ),
        *("- ", "1. ", "a) ", "## ", "> ", "[ ] ", "[1]", ":)", "1️⃣ "),
    ]
)
TEXT = st.one_of(
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(PIECES, max_size=40).map(" ".join),
    st.text(max_size=60),
)


def is_word(char: str) -> bool:
    return char.isalpha() or char.isdecimal()


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in sentences(text)]


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['topic'].replace(' ', '_')}" for i, case in enumerate(CASES)])
def test_written_cases(case):
    assert texts(case["text"]) == case["sentences"]


def test_the_written_cases_are_many_and_in_both_languages():
    for lang in ("en", "es"):
        assert sum(case["lang"] == lang for case in CASES) >= 80
    assert len({case["text"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES[::3], ids=range(len(CASES[::3])))
def test_decomposed_text_is_cut_alike(case):
    decomposed = unicodedata.normalize("NFD", case["text"])
    assert [unicodedata.normalize("NFC", text) for text in texts(decomposed)] == [
        unicodedata.normalize("NFC", sentence) for sentence in case["sentences"]
    ]


# Properties


def is_list_mark(text: str, i: int) -> bool:
    """Tell whether the letter or digit at ``i`` is part of the label of a list item: "1.2.", "a)", "(iv)", "[x]", "1️⃣"."""
    start = max(map(text.rfind, "\n\r\u0085\u2028\u2029", [0] * 5, [i] * 5)) + 1
    label = re.match(
        r"[\W_]*?((?:\d{1,3}(?:\.\d{1,3}){0,3}|[ivxIVX]{2,5}|[a-zA-Z])[.)\]]|\d\ufe0f?\u20e3)",
        normalize(text[start:]).text,
    )
    return bool(label) and text[i] in label[1]


def check(text, pieces):
    at = 0
    for piece in pieces:
        assert at <= piece.start < piece.end <= len(text)
        assert text[piece.start : piece.end] == piece.text
        assert any(map(is_word, piece.text))
        at = piece.end
    inside = {i for piece in pieces for i in range(piece.start, piece.end)}
    assert [
        text[i:] for i, char in enumerate(text) if is_word(char) and i not in inside and not is_list_mark(text, i)
    ] == []


@given(TEXT)
@example("")
@example("\ufeff\u200b")
@example("[x] ")
@example("A. ")
@example("1️⃣ ")
@example("- [ ] ")
def test_sentences_are_slices_in_order_and_lose_no_letter(text):
    check(text, sentences(text))


@given(TEXT, st.integers(1, 6))
@example("```\na\n```\nb c", 2)
@example("… a. … b. …", 3)
def test_segments_are_slices_in_order_and_lose_no_letter(text, min_words):
    pieces = segment(text, min_words=min_words)
    check(text, pieces)
    ends = [sentence.end for sentence in sentences(text)]
    assert len(pieces) <= len(ends)


@given(TEXT)
def test_a_sentence_ends_at_a_mark_or_a_line_end(text):
    normal = normalize(text).text
    for left, right in itertools.pairwise(sentences(normal)):
        heading = left.text.startswith(("**", "__")) and left.text.endswith(("**", "__"))
        if "\n" not in normal[left.end : right.start] and not heading:
            assert any(match.end() == left.end for match in candidates(normal, left.start, len(normal))), left.text


def test_nothing_to_read_gives_nothing():
    for text in ("", " ", "\n \n", "🎉🎉", "… !! ---", "\0\0", "\u200b\ufeff", "½", "・゛", "\U0002a6e0"):
        assert sentences(text) == []
        assert segment(text) == []
        assert segment(text, "reference") == []


# Short sentences are merged, never dropped


@pytest.mark.parametrize(
    ("text", "min_words", "expected"),
    [
        ("Yes. I can do that.", 1, ["Yes.", "I can do that."]),
        ("Yes. I can do that.", 2, ["Yes. I can do that."]),
        ("I can do that. Yes.", 2, ["I can do that. Yes."]),
        ("No. No. No. No.", 2, ["No. No.", "No. No."]),
        ("No. No. No.", 2, ["No. No. No."]),
        ("Sí. Claro. Ya te lo explico.", 3, ["Sí. Claro. Ya te lo explico."]),
        ("Summary\nAll is well.", 2, ["Summary\nAll is well."]),
        ("Summary\n\nAll is well.", 2, ["Summary", "All is well."]),
        ("Yes.\n\nNo.", 2, ["Yes.", "No."]),
        ("Summary\n-------\nAll is well.", 2, ["Summary", "All is well."]),
        ("Done. 🎉 Good work, all.", 2, ["Done. 🎉 Good work, all."]),
        ("It is so. … And more of it.", 2, ["It is so. …", "And more of it."]),
        ("It is so. 🎉🎉\n\n… And more of it.", 2, ["It is so. 🎉🎉", "… And more of it."]),
        ("Run:\n```\nx = 1\n```\nThen stop it.", 2, ["Run:", "```\nx = 1\n```", "Then stop it."]),
        ("Ok", 5, ["Ok"]),
        ("你好。我们走吧。", 2, ["你好。", "我们走吧。"]),
        ("你好。我们走吧。", 3, ["你好。我们走吧。"]),
    ],
)
def test_short_sentences_join_a_neighbour(text, min_words, expected):
    assert [piece.text for piece in segment(text, min_words=min_words)] == expected


@given(TEXT, st.integers(1, 5))
@example("No.\n½", 2)
def test_joining_only_takes_cuts_away(text, min_words):
    fine = {piece.end for piece in segment(text, min_words=1)}
    assert {piece.end for piece in segment(text, min_words=min_words)} <= fine


# Public reports of sentence splitters gone wrong, each with its source


def test_an_abbreviated_title_does_not_end_a_sentence():
    # a pattern that cuts after every full stop and space
    assert texts("Prof. Ferro sat down. Nobody spoke.") == ["Prof. Ferro sat down.", "Nobody spoke."]


def test_list_numbers_are_no_sentences():
    # regular expressions, blingfire and spaCy emit "1." alone
    assert texts("1. Boil water.\n2. Add salt.") == ["Boil water.", "Add salt."]


def test_spanish_openers_stay_with_their_own_sentence():
    # explosion/spaCy#6919: "¿" ends up at the end of the sentence before
    assert texts("¡Qué bien! ¿Vienes? Claro.") == ["¡Qué bien!", "¿Vienes?", "Claro."]


def test_a_quotation_is_kept_whole():
    # nipunsadvilkar/pySBD#118, nipunsadvilkar/pySBD#45
    text = 'They shouted "run. Quick." and hid.'
    assert texts(text) == [text]


def test_blank_text_has_no_sentences():
    # blingfire and regular expressions return [""], spaCy a sentence of white space
    assert texts("") == []
    assert texts("  \n ") == []


def test_combined_marks_and_the_one_character_ellipsis():
    # wuisabel-gif/Cadence#10
    assert texts("Now?! Hmm… perhaps later.") == ["Now?!", "Hmm… perhaps later."]


@pytest.mark.oracle
def test_every_public_report_about_segmentation(oracle):
    expected = {"BR088": 2, "BR093": 2, "BR094": 3, "BR096": 1, "BR098": 0, "BR099": 2}
    lines = (oracle / "cases" / "public_bug_reports.jsonl").read_text(encoding="utf-8").split("\n")
    reports = {report["id"]: report for report in map(json.loads, filter(None, lines)) if report["area"] == "segment"}
    assert set(reports) == set(expected)
    for name, count in expected.items():
        text = reports[name]["input"].replace("\\n", "\n") if count else "  \n "
        assert len(sentences(text)) == count, name


# Arguments and data


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": None}, "text is None"),
        ({"text": b"a"}, "decode"),
        ({"text": 3}, "int 3"),
        ({"text": "\udc80"}, "lone surrogate"),
        ({"text": "a", "rule": "best"}, "'reference', 'robust'"),
        ({"text": "a", "min_words": 0}, "at least 1"),
        ({"text": "a", "min_words": 1.5}, "integer"),
        ({"text": "a", "min_words": True}, "integer"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        segment(**arguments)
    if set(arguments) == {"text"}:
        with pytest.raises(InputError, match=words):
            segment(rule="reference", **arguments)
        with pytest.raises(InputError, match=words):
            sentences(**arguments)


def test_the_abbreviations_are_well_formed():
    table = tomllib.loads(data_path("abbreviations.toml").read_text(encoding="utf-8"))
    assert set(table) == {*_KINDS, "doubled", "letter_labels", "sentence_openers"}
    entries = [word for kind in _KINDS for word in table[kind]]
    assert len(entries) == len(set(entries))
    for word in entries + table["letter_labels"] + table["sentence_openers"]:
        assert word == unicodedata.normalize("NFC", word).strip()
        assert not word.endswith(".")
        assert word[1:] == word[1:].lower()
    for pair in table["doubled"]:
        assert len(pair) == 2
        assert all(part == part.lower() for part in pair)
