"""From the text of a judge to a :class:`~anima.judge.Verdict`, or to an :class:`~anima.judge.Unscored` that says why not."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from anima.checks import require_text, show
from anima.judge.objects import Refused, last_object
from anima.judge.scanner import Located, plain, scan, sole_object, unwrap
from anima.judge.verdict import DEPTHS, PREDICTABILITIES, Receipt, Unscored, UnscoredKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

SCORE: Final = "authenticity_score"

# <think>, and [THINK] as Magistral writes it; "close" holds the slash of a closing one. The first alone is found faster.
_NAME = r"\s*(?:think(?:ing)?|thought|reasoning)\b[^<>]*>"
_ANGLE_TAG = re.compile(rf"<\s*(?P<close>/?){_NAME}", re.IGNORECASE)
THINKING_TAG = re.compile(rf"(?:<\s*|(?P<square>\[))(?P<close>/?)(?(square)(?-i:THINK)\]|{_NAME})", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]{1,6}(?:\.0*)?")
_TEXTS = ("dominant_strategy", "notes")
_LISTS = ("pattern_breaks", "genuine_elements")
_CHOICES: Final = {"depth_assessment": DEPTHS, "trajectory_predictability": PREDICTABILITIES}
_FIELDS: Final = (SCORE, "not_applicable", *_TEXTS, *_LISTS, *_CHOICES)
_NAMES: Final = {plain(name): name for name in _FIELDS} | {name: name for name in _FIELDS}
_YES: Final = {"true", "yes", "sí", "si", "1"}
_DEFAULTS: Final[dict[str, Any]] = {one.name: one.default for one in fields(Verdict)}
_SEQUENCES: Final = (list, tuple)
_new, _set = object.__new__, object.__setattr__
_DEPTHS: Final = (None, *DEPTHS)
_PREDICTABILITIES: Final = (None, *PREDICTABILITIES)


def parse_verdict(
    content: str,
    thinking: str = "",
    *,
    quoted: Iterable[str] = (),
    receipt: Receipt | None = None,
    strict: bool = False,
) -> Verdict | Unscored:
    """Read the answer of a judge.

    Parameters
    ----------
    content
        What the judge wrote, reasoning in tags included; not sanitised.
    thinking
        The reasoning, where the server hands it over in a field of its own. It is kept and never scored.
    quoted
        The texts the judge was given, question and reply above all: no verdict is taken from a copy of them.
    receipt
        What produced the answer; goes into the result.
    strict
        Whether an answer that had to be mended (see ``Verdict.repairs``) is refused.

    Returns
    -------
    Verdict or Unscored
        Unscored, with a typed reason, without a score, with one that is no whole number, and with one outside 0 to 100:
        nothing is rounded, rescaled, clamped or 0 by default.

    Notes
    -----
    The verdict is the last complete JSON object that validates, through fences, prose, trailing commas, other quotes,
    comments and Python literals. The fuzz target ``tests/fuzz/fuzz_parse.py`` looks for crashes and for verdicts taken from
    a quoted reply.
    """
    require_text(content, "content")
    if thinking != "":
        thinking = require_text(thinking, "thinking").strip()
    quoted = tuple(quoted)
    # The short way that most answers take.
    if "{" not in "".join(quoted) and (value := sole_object(content)) and (clean := _clean(value)):
        return _verdict(clean, thinking, receipt)
    pieces, inline = _split(content)
    answer = "".join(pieces).strip()
    if inline:
        thinking = "\n".join(part for part in (thinking, inline) if part)

    def unscored(kind: UnscoredKind, reason: str) -> Unscored:
        limit = " (the output stopped at its length limit)" if receipt and receipt.truncated else ""
        return Unscored(reason + limit, content, thinking, receipt, kind)

    if not answer and thinking:
        reason = "the judge reasoned and gave no answer: allow more output or switch its thinking off"
        return unscored("thinking_only", reason)
    if not answer:
        return unscored("empty", "the judge answered nothing: look into the server's log")
    try:
        found = last_object(answer, _fields, key=SCORE, quoted=quoted)
    except Refused as refused:
        return unscored(refused.kind, refused.reason)
    if not any(found.source in piece for piece in pieces):  # as the halves of a quotation may join
        return unscored("unreadable", "the object of the answer is interrupted by reasoning: ask again")
    given, mended = found.value
    repairs = (*found.repairs, *mended)
    if strict and repairs:
        return unscored("unreadable", f"strict=True, and the answer had to be mended: {', '.join(repairs)}")
    return _verdict(given, thinking, receipt, repairs)


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and the reasoning of a text with ``<think>`` or ``[THINK]`` tags, both stripped.

    Tags count in any case, with attributes, and as ``thinking``, ``thought`` or ``reasoning``. What stands before a closing
    tag that no opening one precedes is reasoning, also what an earlier block left over (nested tags); after an opening tag
    that nothing closes all is. Tags inside a complete JSON object are text. Blocks are joined by a newline.
    """
    answer, thoughts = _split(text)
    return "".join(answer).strip(), thoughts


def _split(text: str) -> tuple[list[str], str]:
    """Return the pieces of the answer between which reasoning stood, and the reasoning."""
    square = "THINK]" in text
    if not square and "<" not in text:
        return [text], ""
    tags = THINKING_TAG if square else _ANGLE_TAG
    thoughts: list[str] = []
    answer: list[str] = []
    objects: list[Located] | None = None
    pos = at = 0
    while tag := tags.search(text, at):
        if text.find("{", at, tag.start()) >= 0:
            # Only a text with a tag behind a brace needs to know where its objects end.
            objects = scan(text).objects if objects is None else objects
            last = bisect_left(objects, tag.start(), key=lambda one: one.start) - 1
            if last >= 0 and objects[last].start >= at and objects[last].end > tag.start():
                at = objects[last].end
                continue
        if tag["close"]:
            thoughts += [*answer, text[pos : tag.start()]]
            answer = []
            pos = tag.end()
        else:
            answer.append(text[pos : tag.start()])
            end = next((one for one in tags.finditer(text, tag.end()) if one["close"]), None)
            thoughts.append(text[tag.end() : end.start() if end else len(text)])
            pos = end.end() if end else len(text)
        at = pos
    answer.append(text[pos:])
    return answer, "\n".join(part for part in map(str.strip, thoughts) if part)


def _fields(value: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a verdict and what was mended in them; refuse what holds no usable score."""
    if clean := _clean(value):
        return clean, ()
    given: dict[str, Any] = {}
    for key, item in unwrap(value).items():
        if name := _NAMES.get(key) or _NAMES.get(plain(key)):
            if name in given and given[name] != item:
                raise Refused(
                    "duplicate_key", f"the answer gives {name} twice, as {show(given[name])} and {show(item)}"
                )
            given[name] = item
    repairs: list[str] = []
    spared = given.get("not_applicable", False)
    spared = spared if isinstance(spared, bool) else _word(spared) in _YES
    if (raw := given.get(SCORE)) in (None, ""):
        if spared:
            raise Refused("not_applicable", "the judge holds the reply to be no case for the instrument")
        if SCORE in given:
            what = "null" if raw is None else "an empty text"
            raise Refused("missing_score", f"{SCORE} is {what}: the judge gave no score; ask again, with the schema")
        names = ", ".join(map(show, value)) or "none"
        raise Refused("missing_score", f"the answer has no {SCORE} (its fields: {names}): give the judge the schema")
    found = _DEFAULTS | {SCORE: _score(raw, repairs), "not_applicable": spared}
    for name, choices in _CHOICES.items():
        if (item := given.get(name)) not in (None, ""):
            known = item in choices if isinstance(item, str) else False
            found[name] = item if known else next((choice for choice in choices if choice == _word(item)), None)
            if not known:
                repairs.append(f"{name} was {show(item)}")
    for name in _LISTS:
        if item := given.get(name):
            if not isinstance(item, list):
                repairs.append(f"{name} was no list")
            found[name] = tuple(map(_string, item if isinstance(item, list) else [item]))
    for name in _TEXTS:
        if (item := given.get(name)) is not None:
            found[name] = _string(item)
    return found, tuple(repairs)


def _clean(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fields of an object that is a verdict as it stands; None if a name, type or word is to be mended."""
    given = _DEFAULTS | value
    score, breaks, elements = given[SCORE], given["pattern_breaks"], given["genuine_elements"]
    try:
        "".join(breaks)  # the quickest test for a list of texts
        "".join(elements)
    except TypeError:
        return None
    if (
        len(given) != len(_DEFAULTS)
        or type(score) is not int
        or not 0 <= score <= 100
        or type(breaks) not in _SEQUENCES
        or type(elements) not in _SEQUENCES
        or type(given["notes"]) is not str
        or type(given["dominant_strategy"]) is not str
        or given["depth_assessment"] not in _DEPTHS
        or given["trajectory_predictability"] not in _PREDICTABILITIES
        or type(given["not_applicable"]) is not bool
    ):
        return None
    given["pattern_breaks"], given["genuine_elements"] = tuple(breaks), tuple(elements)
    return given


def _verdict(given: dict[str, Any], thinking: str, receipt: Receipt | None, repairs: tuple[str, ...] = ()) -> Verdict:
    """Return a verdict in a quarter of the time: a frozen class sets its twelve fields one call each."""
    given["judge_thinking"], given["fallback"], given["repairs"], given["receipt"] = thinking, False, repairs, receipt
    verdict = _new(Verdict)
    _set(verdict, "__dict__", given)
    return verdict


def _score(raw: object, repairs: list[str]) -> int:
    """Return the score as a whole number from 0 to 100."""
    if type(raw) is int and 0 <= raw <= 100:
        return raw
    number = math.nan
    if isinstance(raw, str) and _WHOLE.fullmatch(text := raw.strip()):
        number = float(text)
        repairs.append(f"{SCORE} was text")
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        number = raw
    if not math.isfinite(number):
        raise Refused("bad_score", f"{SCORE} is {show(raw)}, no finite number: ask for a whole number from 0 to 100")
    if not 0 <= number <= 100:
        raise Refused("out_of_range", f"{SCORE} is {show(raw)}, outside 0 to 100: tell the judge its scale")
    if number != int(number):
        raise Refused("bad_score", f"{SCORE} is {show(raw)}, no whole number: ask for one from 0 to 100")
    return int(number)


def _word(item: object) -> str:
    return str(item).strip().casefold()


def _string(item: object) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
