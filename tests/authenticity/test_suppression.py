from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.authenticity.suppression import enclosing, negation_of, quoted_spans, reported


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('He said "stop it" twice.', ['"stop it"']),
        ("Don't say 'it isn't so' to the dogs' owner.", ["'it isn't so'"]),
        ("In the '90s they sang 'em all.", []),
        ("«uno» y «dos»", ["«uno»", "«dos»"]),
        ("Use `a b` or ``` c", ["`a b`", "`` c"][:1]),
        ("A 5\" pipe and a 6\" one.", []),
        ('An "open quotation.\n\nNext "paragraph" here.', ['"paragraph"']),
        ("x\n```\n# code\n```\ny", ["```\n# code\n```"]),
        ('"a \'b\' c"', ['"a \'b\' c"']),
        ("", []),
    ],
)  # fmt: skip
def test_quotations(text: str, quoted: list[str]) -> None:
    assert [text[start:end] for start, end in quoted_spans(text)] == quoted


@given(st.text(alphabet="ab \n\"'«»`~.", max_size=60))
def test_spans_are_disjoint_and_found_again(text: str) -> None:
    spans = quoted_spans(text)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    for position in range(len(text)):
        held = [span for span in spans if span[0] <= position < span[1]]
        assert enclosing(spans, position) == (held[0] if held else None)


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("this is not a [gem]", "not"),
        ("nobody would call it a [gem]", "nobody"),
        ("it isn't a [gem]", "isn't"),
        ("no diría que sea una [joya]", "no"),
        ("lejos de ser una [joya]", "lejos de"),
        ("una [joya] no es", "no"),
        ("a [gem] it isn't", "isn't"),
        ("this is not hard; it is a [gem]", ""),
        ("not hard, it is a [gem]", ""),
        ("it is not hard but a [gem]", ""),
        ("no es difícil sino una [joya]", ""),
        ("nothing less than a [gem]", ""),
        ("sin duda una [joya]", ""),
        ("ni más ni menos que una [joya]", ""),
        ("it can't help being a [gem]", ""),
        ("one two three, not four five six seven eight nine ten eleven twelve thirteen fourteen [gem]", ""),
    ],
)
def test_negation_in_the_same_clause(text: str, cue: str) -> None:
    start, end = text.index("["), text.index("]") - 1
    assert negation_of(text.replace("[", "").replace("]", ""), start, end) == cue


def test_reported_words() -> None:
    assert reported("You called it a gem", 14)
    assert not reported("I call it a gem", 12)
