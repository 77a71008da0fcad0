"""Normalisation and its map back to the original."""

from __future__ import annotations

import itertools
import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anima.errors import InputError
from anima.text import normalize

# Letters and marks that compose, reorder, vanish or change, so that short examples meet the hard cases.
HARD = st.sampled_from(
    [
        *"aAeEoniÉéñ .,'\"“”‘’«»…\n\r\t\0",
        *"\u0301\u0323\u0302\u0327\u0345\u0f71\u3099\u0338",  # marks of several classes
        *"\u1100\u1161\u11a8\uac00\uac01",  # Hangul
        *"\u09c7\u09be\u0cc6\u0cc2\u0cd5\u0915\u093c\u0958",  # Bengali, Kannada, Devanagari
        *"\u200b\u200d\ufeff\u00ad\u2028\u0085\u00a0\u3000\u000b\ufe0f",
        *"👩🇪🇸👍🏽\u212b\u2126\u037eİß中",
    ]
)
TEXT = st.one_of(st.text(HARD, max_size=40), st.text(max_size=40))
UNICODE_15_FORMAT = range(0x13439, 0x13440)  # unassigned in older interpreters


def by_the_book(text: str) -> str:
    """The same normal form, straight from its definition and without a map."""
    text = text.replace("\r\n", "\n") if "\r\n" in text else text
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if char in "\r\u0085\u2028\u2029":
            kept.append("\n")
        elif char in "\n\t":
            kept.append(char)
        elif category == "Cf" or ord(char) in UNICODE_15_FORMAT:
            continue
        elif category in ("Zs", "Cc"):
            kept.append(" ")
        elif char in "‘’‚‛ʼ′´\u1ffd":
            kept.append("'")
        elif char in "“”„‟″":
            kept.append('"')
        else:
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


@given(TEXT)
@example("")
@example("\r\n\r\r\n")
@example("e\u200b\u0301")
@example("it´s it\u1ffds")
@example("a" + "\u0301\u0323" * 50 + "b")
def test_the_text_is_the_normal_form(text):
    assert normalize(text).text == by_the_book(text)


@given(TEXT)
@example("\u0cc6\u0cc2\u0cd5" * 3)
@example("\u1100\u1161\u11a8\u11a8")
@example("\u0301" * 70 + "\u0323" * 70)
def test_the_map_is_exact(text):
    normal = normalize(text)
    spans = [normal.span(i, i + 1) for i in range(len(normal.text))]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    for (low, high), (start, end) in itertools.pairwise(spans):
        assert (low, high) == (start, end) or high <= start
    at = 0
    for (start, end), group in itertools.groupby(spans):
        n = len(list(group))
        assert normalize(text[start:end]).text == normal.text[at : at + n]
        at += n
    covered = {i for start, end in spans for i in range(start, end)}
    lost = "".join(char for i, char in enumerate(text) if i not in covered)
    assert normalize(lost).text.strip("\n") == ""  # nothing but dropped characters, and CR of CRLF


@given(TEXT)
def test_normalising_twice_changes_nothing(text):
    once = normalize(text).text
    again = normalize(once)
    assert again.text == once
    assert again.starts is None
    assert again.ends is None


@given(TEXT, st.data())
def test_slices_are_verbatim_and_in_order(text, data):
    normal = normalize(text)
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(normal.text))] * 2)))
    low, high = normal.span(a, b)
    assert 0 <= low <= high <= len(text)
    assert normal.slice(a, b) == text[low:high]
    if a < b:
        assert normal.text[a:b] in normalize(text[low:high]).text


def test_the_written_classes_are_those_of_the_interpreter():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        category = unicodedata.category(char)
        bulk = category in ("Cs", "Cn", "Co") or (category == "Lo" and code > 0x3400)
        if bulk or code in UNICODE_15_FORMAT:
            continue
        got = normalize(f".{char}.").text[1:-1]
        if category == "Cf":
            assert got == "", hex(code)
        elif category == "Zs" or (category == "Cc" and char not in "\t\n\r\u0085"):
            assert got == " ", hex(code)
        elif category in ("Cc", "Zl", "Zp"):
            assert got in ("\n", "\t"), hex(code)
        else:
            assert got.strip(), hex(code)


@pytest.mark.parametrize(
    ("text", "normal", "spans"),
    [
        ("e\u0301a", "éa", [(0, 2), (2, 3)]),
        ("cancio\u0301n", "canción", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 8)]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글", [(0, 3), (3, 6)]),
        ("e\u0323\u0302", "ệ", [(0, 3)]),
        ("e\u0302\u0323", "ệ", [(0, 3)]),
        ("\u0995\u09c7\u09be", "\u0995\u09cb", [(0, 1), (1, 3)]),
        ("\u0cc6\u0cc2\u0cd5", "\u0ccb", [(0, 3)]),
        ("\u0915\u093c", "\u0915\u093c", [(0, 1), (1, 2)]),  # excluded from composition, hence unchanged
        ("\u0301a", "\u0301a", [(0, 1), (1, 2)]),
        ("a\r\nb", "a\nb", [(0, 1), (2, 3), (3, 4)]),
        ("\ufeffHi", "Hi", [(1, 2), (2, 3)]),
        ("no\u200bt", "not", [(0, 1), (1, 2), (3, 4)]),
        ("a\0b", "a b", [(0, 1), (1, 2), (2, 3)]),
        ("👩\u200d🚀!", "👩🚀!", [(0, 1), (2, 3), (3, 4)]),
        ("“¿sí?”", '"¿sí?"', [(i, i + 1) for i in range(6)]),
        ("\u212bx", "Åx", [(0, 1), (1, 2)]),
    ],
)
def test_offsets_of_known_texts(text, normal, spans):
    got = normalize(text)
    assert got.text == normal
    assert [got.span(i, i + 1) for i in range(len(normal))] == spans


def test_a_text_in_normal_form_needs_no_map():
    for text in ("", "plain", "línea\n\tdos", "“rizadas”", "x\u00a0y"):
        normal = normalize(text)
        assert normal.starts is None
        assert normal.span(0, len(text)) == (0, len(text))
    assert normalize("plain").text is normalize("plain").original


def test_empty_spans_point_into_the_original():
    normal = normalize("\ufeffa\r\nb")
    assert normal.span(0, 0) == (1, 1)
    assert normal.span(2, 2) == (4, 4)
    assert normal.span(3, 3) == (5, 5)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"a", "decode"),
        (None, "None"),
        (3, "int 3"),
        (float("nan"), "nan"),
        (["a"], "list"),
        ("a\ud800b", "character 1"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(value, words):
    with pytest.raises(InputError, match=words):
        normalize(value)


# Public reports of pattern matching gone wrong on such text, each with its source.


def test_word_characters_match_decomposed_accents():
    # python/cpython#101421: \w+ stops inside a decomposed word
    text = "co\u0301mo"
    assert re.fullmatch(r"\w+", text) is None
    normal = normalize(text)
    match = re.fullmatch(r"\w+", normal.text)
    assert match is not None
    assert normal.slice(*match.span()) == text


@pytest.mark.parametrize(("word", "pattern"), [("así", r"as\b"), ("fünacht", r"\bnacht")])
def test_word_edges_know_accents(word, pattern):
    # google/re2#433, google/re2#344, parsedatetime#197: an ASCII \b falls inside the word
    assert re.search(pattern, word, re.ASCII)
    for text in (word, unicodedata.normalize("NFD", word)):
        assert re.search(pattern, normalize(text).text) is None


def test_hidden_characters_do_not_hide_a_marker():
    # zero-width space inside a word, no-break space between words
    for text, phrase in (("I'm no\u200bt sure", "not sure"), ("no\u00a0doubt", "no doubt")):
        assert phrase not in text
        normal = normalize(text)
        at = normal.text.index(phrase)
        low, high = normal.span(at, at + len(phrase))
        assert normalize(text[low:high]).text == phrase


def test_case_is_left_to_the_pattern():
    # "İ".lower() has two characters: offsets taken after lowering are shifted
    text = "İİ Certainly!"
    assert text.lower().index("certainly") != 3
    normal = normalize(text)
    match = re.search("certainly", normal.text, re.IGNORECASE)
    assert match is not None
    assert normal.slice(*match.span()) == "Certainly"
