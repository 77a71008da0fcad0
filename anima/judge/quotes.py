"""The objects of the texts a judge was given, and whether an answer is a copy of one."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from anima.judge.scanner import BLANK, TOKEN, decoded, plain, scan, unwrap

if TYPE_CHECKING:
    from collections.abc import Iterable

COPIED: Final = 0.5
"""Share of an object's own words that must stand in the text for them to be copied; see :meth:`Quotes.copied`."""
LONG: Final = 40
"""From so many letters on, copied words make a copy whatever labels stand beside them."""
GRAM: Final = 5

_LOOSE = re.compile(rf"[{BLANK}\\\"'“”„‘’`>_-]+|,(?=[{BLANK}]*[}}\]])")
_NO_LETTERS = re.compile(r"[\W_]+")
_NOTHING: Final = {"", "false", "none", "null"}
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class Quotes:
    """What the texts say in objects with the key of an answer, and what is left of the texts without these objects.

    Parameters
    ----------
    texts
        What the judge was given; only texts with a brace and the key matter, and none are the usual case.
    key
        The field that marks an object as an answer, in its letters only.
    """

    def __init__(self, texts: Iterable[str], key: str) -> None:
        texts = [one for one in texts if "{" in one and key in plain(_unescaped(one))]
        self._key, self._texts = key, list(map(_loose, texts))
        if not texts:
            return
        self._labels: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)  # by the value of the key
        self._grams: defaultdict[str, set[str]] = defaultdict(set)
        self._rests: list[str] = []
        self._tails: list[str] = []
        self._held: dict[str, bool] = {}
        for text in texts:
            rest = text
            for form in dict.fromkeys((text, text.replace("\\", ""))):
                pieces, done = [], 0
                for one in scan(form, nested=True).objects:
                    with suppress(ValueError, RecursionError):
                        if self._learn(decoded(one, form)[0]) and one.start >= done:
                            pieces.append(form[done : one.start])
                            done = one.end
                rest = min(rest, "\x00".join((*pieces, form[done:])), key=len)
                if (broken := scan(form, mark=key).broken) and broken[-1].open:
                    self._tails.append(_loose(form[broken[-1].start :]))
            self._rests.append(rest)
        self._loose_rests = list(map(_loose, self._rests))
        self._rest_letters = "\x00".join(map(_letters, self._rests))
        self._rest_grams: set[str] = set()

    def hold(self, source: str) -> bool:
        """Return whether an object stands in a text at least up to the value of the key; for one that breaks off."""
        if not self._texts or (head := self._head(source)) is None:
            return False
        if head not in self._held:
            pattern = re.compile(re.escape(head) + r"(?![\d.])")
            self._held[head] = any(map(pattern.search, self._texts))
        return self._held[head]

    def copied(self, value: dict[str, Any], source: str) -> bool:
        """Return whether an object is a quotation.

        A score counts as the judge's own if it is not given in a text, or if something beside it is the judge's own: many
        judgements share a number and a few labels, none shares its reasons. So an object is a copy if an object of a text
        has the same value of the key and

        - each label (number, flag, single word) that says something is found beside that value, in any spelling, and no
          words stand beside them, or at least half of these are copied; or
        - words of at least 40 letters stand beside the value, and at least half of them are copied, or half of one such text
          among them, whatever the labels: a model that echoes an object and turns a label has judged nothing.

        Words are compared by their runs of five letters, without case, blanks and marks, wherever they stand in the
        object: another order, another field, a typing error or a sentence left out or put before changes little. No two of
        the 120 notes in ``corpora/pools.jsonl`` share more than 0.27 of their runs; with one word in ten replaced a note
        keeps 0.7 or more of its own, with one in five half or more in 99 of 100 (``test_notes_are_told_from_copies``).
        Another score beside copied words is no copy, since the number is what is taken from the object.

        An object that the text leaves open, or that cannot be read there, is compared with the whole text that is left.
        The time is linear in texts and answer: what several objects say beside one value is pooled.
        """
        if not self._texts:
            return False
        labels, words = _parts(value, self._key)
        given = labels.pop(self._key, "")
        pattern = re.compile(f"{self._key}:{re.escape(given)}" + r"(?:\.0*)?(?!\d)")
        in_rest = any(map(pattern.search, self._loose_rests))
        if given not in self._labels and not in_rest:
            return False
        if in_rest and self._goes_on(source):
            return True
        runs = list(map(_runs, words))
        if runs:
            if in_rest and not self._rest_grams:
                self._rest_grams = {run for text in self._rests for run in _runs(_letters(text))}
            said, left = self._grams.get(given, set()), self._rest_grams if in_rest else set()
            copied = [sum(run in said or run in left for run in text) for text in runs]
            # All words together, and each text alone: a copy does not become another's by what is put beside it.
            counts = [(sum(copied), sum(map(len, runs))), *zip(copied, map(len, runs), strict=True)]
            if any(n >= COPIED * of and of > LONG - GRAM for n, of in counts):
                return True
            if counts[0][0] < COPIED * counts[0][1]:
                return False
        return all(
            label in self._labels.get(given, ()) or (in_rest and "".join(label) in self._rest_letters)
            for label in labels.items()
        )

    def _learn(self, value: dict[str, Any]) -> bool:
        """Note what an object says beside the key; return whether it has it."""
        labels, words = _parts(value, self._key)
        given = labels.pop(self._key, None)
        if given is not None:
            self._labels[given].update(labels.items())
            self._grams[given].update(run for text in words for run in _runs(text))
        return given is not None

    def _goes_on(self, source: str) -> bool:
        """Return whether an object begins as one that a text leaves open, and goes on behind the value of the key."""
        head, whole = self._head(source) or "", _loose(source)
        return any(len(tail) > len(head) + 1 and whole.startswith(tail) for tail in self._tails)

    def _head(self, source: str) -> str | None:
        """Return an object, loosened, from its innermost brace to the value of the key; None without the key."""
        head = find_head(source, self._key)
        return None if head is None else _loose(head)


def find_head(source: str, mark: str) -> str | None:
    """Return the source of an object from its innermost brace to the value of the key; None without the key."""
    start, seen = 0, False
    for token in TOKEN.finditer(source):
        if token[1] == "{":
            start, seen = token.end() - 1, False
        elif seen and token[1] != ":":
            return source[start : token.end()]
        elif (token[2] or token[3]) and plain(_unescaped(token[token.lastindex or 0])) == mark:
            seen = True
    return source[start:] if seen else None


def _parts(value: dict[str, Any], key: str) -> tuple[dict[str, str], list[str]]:
    """Return what an object says: its labels by plain name, and the letters of each text of several words."""
    labels: dict[str, str] = {}
    words: list[str] = []
    for name, item in unwrap(value).items():
        name = plain(name)
        if name == key:
            labels[name] = _number(item) or _loose(str(item))
        elif isinstance(item, list | dict) or (isinstance(item, str) and len(item.split(maxsplit=1)) > 1):
            words += [
                letters for one in (item if isinstance(item, list) else [item]) if (letters := _letters(str(one)))
            ]
        elif (text := _number(item) or _letters(str(item))) not in _NOTHING:
            labels[name] = text
    return labels, words


def _number(item: object) -> str:
    """Return a number so that 42, 42.0 and "42" are one, or an empty text."""
    with suppress(ValueError, OverflowError):
        return f"{float(str(item)):g}"
    return ""


def _runs(letters: str) -> list[str]:
    """Return each run of five letters, or the whole of a shorter text."""
    return [letters[i : i + GRAM] for i in range(max(1, len(letters) - GRAM + 1))]


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", _unescaped(text)).casefold()


def _loose(text: str) -> str:
    """Return a text without what a copy may change: escapes, blanks, quotes, backslashes, underscores, last commas, case."""
    return _LOOSE.sub("", _unescaped(text)).casefold()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
