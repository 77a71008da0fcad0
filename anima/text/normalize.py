"""Normalisation that never loses the way back to the original text.

Patterns and sentence rules read normalised text; everything shown to a person is a slice of the original.
:class:`Normalized` keeps, for every character of the normalised text, the span of the original it came from.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from anima.checks import require_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Classes are written out as of Unicode 15, so that results do not depend on the interpreter's Unicode version.
#: Category Cf: zero-width characters, BOM, soft hyphen, marks of direction, tags.
_FORMAT = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_LINE_ENDS = "\r\u0085\u2028\u2029"
#: Typographic quotes that have a straight twin, and the acute typed for one (U+1FFD composes to it). Guillemets stay: they are directional and unambiguous.
_SINGLE, _DOUBLE = "‘’‚‛ʼ′´\u1ffd", "“”„‟″"
#: Categories Zs and Cc, without the line ends and the tabulator.
_BLANKS = "\0-\b\v\f\x0e-\x1f\x7f-\x84\x86-\x9f\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"

_DROPPED = re.compile(rf"\r(?=\n)|[{_FORMAT}]")
_REPLACED = re.compile(rf"(?P<line>[{_LINE_ENDS}])|(?P<single>[{_SINGLE}])|(?P<double>[{_DOUBLE}])|[{_BLANKS}]")
_CHANGED = re.compile(f"[{_FORMAT}{_LINE_ENDS}{_SINGLE}{_DOUBLE}{_BLANKS}]")
_TWIN = {"line": "\n", "single": "'", "double": '"', None: " "}
#: Longer pieces are put into canonical order here: the interpreter's own sort takes quadratic time.
_LONG_PIECE = 64


@dataclass(frozen=True, slots=True)
class Normalized:
    """A normalised text and its map back to the original.

    Attributes
    ----------
    original, text
        The text as given, and its normalised form.
    starts, ends
        Arrays of shape ``(len(text),)``: character ``i`` of ``text`` stems from ``original[starts[i]:ends[i]]``.
        Both are None when every character stands where it stood.
    """

    original: str
    text: str
    starts: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)
    ends: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in ``original`` of the slice ``text[start:end]``, bounds of which lie inside ``text``."""
        if self.starts is None or self.ends is None:
            return start, end
        if start >= end:
            at = int(self.starts[start]) if start < len(self.text) else len(self.original)
            return at, at
        return int(self.starts[start]), int(self.ends[end - 1])

    def slice(self, start: int, end: int) -> str:
        """Return the verbatim slice of ``original`` behind ``text[start:end]``."""
        low, high = self.span(start, end)
        return self.original[low:high]


def normalize(text: str) -> Normalized:
    r"""Normalise ``text`` for matching.

    NFC; straight quotes; every kind of space a space; every kind of line end ``\n``; format characters (zero-width,
    BOM, soft hyphen, bidirectional marks) dropped; other control characters, NUL included, a space. Tabulators stay.

    Parameters
    ----------
    text
        Any str without lone surrogates; may be empty.

    Returns
    -------
    Normalized
        ``len(result.text)`` may differ from ``len(text)``; use :meth:`Normalized.span` to go back.

    Raises
    ------
    InputError
        If ``text`` is not a usable str.

    Notes
    -----
    Time is linear in the length. The map is proved by ``tests/text/test_normalize.py``: spans stay inside the original,
    in order; each character is the normal form of its span; normalising twice changes nothing.
    """
    require_text(text)
    starts: NDArray[np.int64] | None = None
    ends: NDArray[np.int64] | None = None
    new = text
    if _CHANGED.search(text):
        dropped = [match.start() for match in _DROPPED.finditer(text)]
        if dropped:
            new = _DROPPED.sub("", text)
            starts = np.delete(np.arange(len(text), dtype=np.int64), dropped)
            ends = starts + 1
        new = _REPLACED.sub(lambda match: _TWIN[match.lastgroup], new)
    if not new.isascii() and not unicodedata.is_normalized("NFC", new):
        new, sources = _compose(new)
        low, high = sources[:, 0], sources[:, 1]
        starts, ends = (low, high) if starts is None or ends is None else (starts[low], ends[high - 1])
    return Normalized(text, new, starts, ends)


def _compose(text: str) -> tuple[str, NDArray[np.int64]]:
    """Bring ``text`` to NFC piece by piece; return it with the span, in ``text``, behind each character."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    low = 0
    for high in range(1, len(text) + 1):
        if high < len(text) and not _boundary(text, low, high):
            continue
        piece = _nfc(text[low:high])
        pieces.append(piece)
        spans += [(low, high)] * len(piece)
        low = high
    return "".join(pieces), np.array(spans, dtype=np.int64).reshape(-1, 2)


def _boundary(text: str, low: int, high: int) -> bool:
    """Tell whether ``text[high]`` neither composes with nor is reordered before what stands in ``text[low:high]``."""
    char = text[high]
    if char < "\u0300":
        return True  # below the first combining mark nothing composes to the left
    if unicodedata.combining(char):
        return False
    # Hangul and some Indic vowels compose although their combining class is 0. They do so with the character right
    # before them, itself composed from at most a few: looking back further would only cost time in runs of marks.
    return _stands_alone(text[max(low, high - 4) : high], char)


@lru_cache(maxsize=4096)
def _stands_alone(left: str, char: str) -> bool:
    together = unicodedata.normalize("NFC", left + char)
    return together == unicodedata.normalize("NFC", left) + unicodedata.normalize("NFC", char)


def _nfc(piece: str) -> str:
    if len(piece) > _LONG_PIECE:
        ordered: list[str] = []
        run: list[str] = []
        for char in "".join(unicodedata.normalize("NFD", char) for char in piece):
            if unicodedata.combining(char):
                run.append(char)
            else:
                ordered += sorted(run, key=unicodedata.combining)
                ordered.append(char)
                run.clear()
        piece = "".join(ordered + sorted(run, key=unicodedata.combining))
    return unicodedata.normalize("NFC", piece)
