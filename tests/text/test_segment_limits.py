"""Long and hostile texts: work grows with the length, not with its square."""

from __future__ import annotations

import time

import pytest

from anima.text import normalize, segment, words

SMALL, FACTOR = 3_000, 16  # linear work grows 16 times, quadratic work 256 times
LIMIT = 70

HOSTILE = {
    "one long word": "a",
    "words without space": "a.",
    "marks with spaces": " .",
    "marks": "!",
    "marks and emoji": "!🎉 ",
    "one-word sentences": "A! ",
    "initials": "A. ",
    "numbers": "1. ",
    "abbreviations": "e.g. X ",
    "spaced dashes": ". - ",
    "ellipses": "... a ",
    "line ends": "\n",
    "CRLF": "a\r\n",
    "spaces": " ",
    "blanks and line ends": "\t\n",
    "bullets": "- ",
    "headings": "# ",
    "wrapped lines": "word word\nword ",
    "open guillemets": "« ",
    "open guillemets and sentences": "«a. B ",
    "open brackets": "(",
    "open brackets and sentences": "(a. B ",
    "closed brackets": ") ",
    "nested kinds": "([{«",
    "double quotes": '" ',
    "double quotes and sentences": '"a. B" ',
    "single quotes": "' ",
    "single quotes and sentences": "'a. B ",
    "apostrophes": "'a'a",
    "back quotes": "`` ` ",
    "fences": "```\n",
    "fences of two kinds": "```a\n~~~\n",
    "notes never closed": ".[1,1",
    "emphasis": ".*_",
    "opened in mid-sentence": "a ¡b! c ",
    "names with a mark": "a Yahoo! b ",
    "combining marks out of order": "\u0301\u0323",
    "decomposed letters": "e\u0301",
    "decomposed Hangul": "\u1112\u1161\u11ab",
    "Kannada vowels": "\u0cc6\u0cc2",
    "zero-width characters": "\u200b",
    "East Asian stops": "好。",
    "table": "| a. B |\n",
}


def cost(text: str, repeats: int = 2) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        segment(text)
        best = min(best, time.process_time() - start)
    return max(best, 1e-3)  # below that the clock is too coarse to compare with


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_runs_cost_linear_time(unit):
    small = (unit * SMALL)[:SMALL] + "x. B"
    assert cost(small * FACTOR) < LIMIT * cost(small)


def test_back_quotes_of_every_length_cost_little():
    text = " ".join("`" * n for n in range(1, 500))
    assert cost(text * 4) < LIMIT * cost(text[: len(text) // 8])


def test_a_million_characters():
    reply = (
        'Dr. Vidal wrote "wait. Please." at 10.30 a.m. on p. 5. It cost 3.50 € (see https://x.org/a.b?c). '
        "¿Y ahora qué? Pues nada… seguimos.\n- Uno. Dos, p. ej. así.\n\n"
    )
    once = segment(reply)
    times = 1_000_000 // len(reply) + 1
    pieces = segment(reply * times)
    assert len(pieces) == len(once) * times
    assert pieces[-1].text == once[-1].text
    assert cost(reply * times, 1) < 12 * cost(reply * (times // 4))


def test_one_sentence_of_a_million_characters():
    text = "palabra " * 125_000
    (piece,) = segment(text)
    assert piece.text == text.strip()
    assert len(words(piece.text)) == 125_000


def test_a_long_run_of_marks_is_still_in_canonical_order():
    text = "a" + "\u0301\u0323" * 100_000 + "b"
    normal = normalize(text)
    assert normal.text[:2] == "ạ\u0323"
    assert normal.text[-2:] == "\u0301b"
    assert normal.span(0, 1) == (0, len(text) - 1)
