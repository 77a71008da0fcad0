"""The segmentation rule of the reference service: its own output, and its definition written a second time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.text import count_words, segment
from anima.text.tokens import WHITE_SPACE


def cut(text: str) -> list[str]:
    return [piece.text for piece in segment(text, "reference")]


def by_definition(text: str) -> list[str]:
    """Walk the characters, as the specification tells it."""
    kept, current = [], ""
    for char in text:
        current += char
        if char in ".!?;\n":
            kept.append(current.strip(WHITE_SPACE))
            current = ""
    kept.append(current.strip(WHITE_SPACE))
    kept = [piece for piece in kept if count_words(piece) >= 3]
    whole = text.strip(WHITE_SPACE)
    return kept or ([whole] if count_words(whole) else [])


@pytest.mark.oracle
def test_segments_and_words_are_those_of_the_service(oracle):
    path = oracle / "oracle" / "authenticity" / "unit_text.jsonl"
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    assert len(cases) > 50
    assert [cut(case["text"]) for case in cases] == [case["segments"] or [] for case in cases]
    assert [count_words(case["text"]) for case in cases] == [case["words"] for case in cases]


@given(st.one_of(st.text(), st.text(st.sampled_from("ab c.!?;\n\r\u2028…¿\x1c \u0301"), max_size=60)))
def test_it_is_the_definition(text):
    pieces = segment(text, "reference")
    assert [piece.text for piece in pieces] == by_definition(text)
    at = 0
    for piece in pieces:
        assert at <= piece.start < piece.end <= len(text)
        assert text[piece.start : piece.end] == piece.text
        at = piece.end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n ", []),
        ("🤔 … !", []),
        ("Sí", ["Sí"]),
        (" Sí. No. ", ["Sí. No."]),
        ("Sí. Eso es todo.", ["Eso es todo."]),  # short units are lost
        ("It costs 3.50 in all the shops.", ["It costs 3.", "50 in all the shops."]),
        ("Well… it may be. You said: so be it", ["Well… it may be.", "You said: so be it"]),
        ("uno dos tres; cuatro cinco seis", ["uno dos tres;", "cuatro cinco seis"]),
        ('He said "it is over." Then he left.', ['He said "it is over.', '" Then he left.']),
        ("line one here\rline two here", ["line one here\rline two here"]),
        ("今天很冷。你好吗？", ["今天很冷。你好吗？"]),
    ],
)
def test_its_known_consequences(text, expected):
    assert cut(text) == expected
