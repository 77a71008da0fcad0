"""Words, as the reference service counts them."""

from __future__ import annotations

import re

from anima.checks import require_text

#: Unicode White_Space. ``str.strip()`` would also take U+001C to U+001F, which are not white space there.
WHITE_SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_FIELD = re.compile(f"[^{re.escape(WHITE_SPACE)}]+")
_RUN = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Return the maximal runs of Unicode letters and decimal digits (categories L* and Nd).

    Apostrophes, hyphens, underscores and combining marks end a word: ``"don't"`` is two words, and so is a decomposed
    ``"canción"``. Normalise first where that matters.
    """
    found: list[str] = []
    if not isinstance(text, str):
        require_text(text)  # which says what is wrong; lone surrogates are no words and do no harm here
    for run in _RUN.findall(text):
        if run.isascii() or run.isalpha():
            found.append(run)
        else:  # ``\w`` also takes numerals that are no decimal digits, such as "½" and "²"
            found += "".join(char if char.isalpha() or char.isdecimal() else " " for char in run).split()
    return found


def count_words(text: str) -> int:
    """Return the number of :func:`words`."""
    return len(words(text))


def fields(text: str) -> list[str]:
    """Split at Unicode white space; punctuation stays with its word."""
    return _FIELD.findall(text if isinstance(text, str) else require_text(text))
