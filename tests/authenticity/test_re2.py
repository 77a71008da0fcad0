from __future__ import annotations

import re

import pytest

from anima.authenticity.re2 import translate


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"\w+", "año", ["a", "o"]),
        (r"\W", "añ", ["ñ"]),
        (r"\d+", "1٣2", ["1", "2"]),
        (r"\s", "a\u00a0b\x0bc d", [" "]),
        (r"\S+", "a\u00a0b c", ["a\u00a0b", "c"]),
        (r"[^\W\d]+", "ab1ñ", ["ab"]),
        (r"[\s\D]+", "1 a2", [" a"]),
        (r"\bb", "áb b", ["b", "b"]),
        (r"(?i)\bs", "ſs s", ["s", "s"]),
        (r"a\B", "ab a", ["a"]),
        (r"a$", "a\n", []),
        (r"(?m)a$", "a\na", ["a", "a"]),
        (r"a\z", "a\n", []),
        (r"\p{So}+", "a©🤔", ["©🤔"]),
        (r"\p{Sk}", "^`é", ["^", "`"]),
        (r"[\p{L}-]+", "año-x 1", ["año-x"]),
        (r"\P{L}+", "a12ñ", ["12"]),
        (r"\pN", "a1", ["1"]),
        (r"\p{^L}", "a1", ["1"]),
        (r"[[:alpha:]]+", "ab1é", ["ab"]),
        (r"[]a]+", "x]a", ["]a"]),
        (r"\Qa.b\E+", "a.bb axb", ["a.bb"]),
        (r"\x{f1}", "año", ["ñ"]),
        (r"(?P<n>a)(?i:B)", "ab", ["a"]),
        (r"(?<n>a)", "a", ["a"]),
        (r"(?i)É", "é É", ["é", "É"]),
        (r"\*\.\-", "*.-", ["*.-"]),
        (r"[a&&b]+", "a&b", ["a&b"]),
    ],
)
def test_translated_patterns_match_as_re2_does(pattern: str, text: str, expected: list[str]) -> None:
    assert re.findall(translate(pattern), text) == expected


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?!a)", "(?<=a)", r"(a)\1", "(?U)a*", "a(?i)b", "[a", "a\\", r"\p", r"\p{Zzz}", r"\p{XX}", "[[:foo:]]", r"\i", "(?>a)", "(?#x)"],
)  # fmt: skip
def test_what_re2_has_not_or_python_cannot_say_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        translate(pattern)
