"""Words as the reference service counts them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import InputError
from anima.text import count_words, fields, words
from anima.text.tokens import WHITE_SPACE


def by_definition(text: str) -> list[str]:
    groups = itertools.groupby(text, key=lambda char: char.isalpha() or char.isdecimal())
    return ["".join(group) for inside, group in groups if inside]


@given(st.one_of(st.text(), st.text(st.sampled_from("aZñ9 _-'.½²Ⅷ٣中\u0301\u0903"))))
def test_words_are_maximal_runs_of_letters_and_decimal_digits(text):
    assert words(text) == by_definition(text)
    assert count_words(text) == len(words(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("don't", ["don", "t"]),
        ("well-known snake_case", ["well", "known", "snake", "case"]),
        ("cancio\u0301n", ["cancio", "n"]),
        ("m² 3½ Ⅷ", ["m", "3"]),
        ("a²b", ["a", "b"]),
        ("٣٤ 12", ["٣٤", "12"]),
        ("नमस्ते", ["नमस", "त"]),
        ("你好, amigo", ["你好", "amigo"]),
        ("🙂 … —", []),
    ],
)
def test_known_words(text, expected):
    assert words(text) == expected


@given(st.text(st.sampled_from("ab.," + WHITE_SPACE + "\x1c\u200b")))
def test_fields_are_what_stands_between_white_space(text):
    spaced = "".join(" " if char in WHITE_SPACE else char for char in text)
    assert fields(text) == [piece for piece in spaced.split(" ") if piece]


def test_white_space_is_the_unicode_property():
    # U+001C to U+001F are split by str.split(), but are no White_Space; neither are zero-width characters
    assert {char for char in map(chr, range(0x3001)) if char.isspace()} - set(WHITE_SPACE) == set("\x1c\x1d\x1e\x1f")
    assert fields("a\x1cb \u200bc\ufeff") == ["a\x1cb", "\u200bc\ufeff"]


@pytest.mark.parametrize("value", [None, 5, [], b"a"])
def test_what_is_no_text_is_named(value):
    for function in (words, count_words, fields):
        with pytest.raises(InputError, match=r"^text (is|must be)"):
            function(value)
