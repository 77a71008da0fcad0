"""Rewriting a question so that it no longer invites a managed reply: by a model, or by rules.

The rules (``corpora/judge/refine.toml``) take out praise bait, forced choices and loaded wording, English and Spanish.
They know wordings and no meaning: a question that leads by what it presupposes passes them untouched.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from anima.checks import require_choice, require_text, show
from anima.errors import InputError, JudgeError
from anima.judge.ask import make_receipt
from anima.judge.objects import Refused, last_object
from anima.judge.parse import split_thinking
from anima.judge.prompt import NotesLang, refine_request
from anima.judge.request import Options
from anima.judge.sanitize import redacted
from anima.judge.verdict import Receipt
from anima.negation.find import guess_language
from anima.settings import data_path
from anima.stats import Presentable
from anima.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from anima.judge.client import Client
    from anima.judge.request import Completion

_GAP = re.compile(r"\s*")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Change:
    """One thing that the rules did.

    Attributes
    ----------
    rule, blocks, note
        The pattern found, the pattern of replies it no longer invites, and the reason in words.
    before, after
        The words found and those in their place; for an added sentence ``before`` is empty.
    """

    rule: str
    blocks: str
    note: str
    before: str
    after: str


@dataclass(frozen=True)
class Refinement(Presentable):
    """A question before and after.

    Attributes
    ----------
    original, refined
        The two questions; equal where nothing was found. ``refined`` is never empty.
    changes
        What the rules did, in order; empty for a model's rewriting.
    patterns_blocked
        Patterns that the new question no longer invites.
    reasoning, judge_thinking
        Why, in words, and the model's reasoning before.
    fallback
        Whether rules rewrote the question in place of a model; ``note`` says why where a model was asked.
    receipt
        What produced it.
    """

    original: str
    refined: str
    changes: tuple[Change, ...] = ()
    patterns_blocked: tuple[str, ...] = ()
    reasoning: str = ""
    judge_thinking: str = ""
    fallback: bool = False
    note: str = ""
    receipt: Receipt | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready, and those with other names in the reference service under these as well."""
        named = {
            "original_question": self.original,
            "refined_question": self.refined,
            "refinement_reasoning": self.reasoning,
        }
        return super().to_dict() | named

    def redacted(self) -> Refinement:
        """Return a copy whose texts went through :func:`~anima.judge.sanitize.sanitize`; for pages and logs, not for use."""
        return redacted(self)

    def _repr_html_(self) -> str:
        return super(Refinement, self.redacted())._repr_html_()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per change."""
        import pandas as pd

        return pd.DataFrame([vars(c) for c in self.changes], columns=list(Change.__dataclass_fields__))

    def summary(self) -> str:
        """Return one sentence."""
        model = self.receipt.model if self.receipt else "a model"
        who = "rules (fall-back, no language model)" if self.fallback else model
        why = f"; {self.note}" if self.note else ""
        if self.refined == self.original:
            return f"Nothing to change, by {who}: {show(self.original, 200)}{why}."
        blocked = ", ".join(self.patterns_blocked) or "no pattern named"
        return f"{show(self.refined, 300)} in place of {show(self.original, 300)}, by {who}; blocked: {blocked}{why}."


def refine(
    question: str, *, judge: Client | Literal["rules"], lang: NotesLang = "en", options: Options | None = None
) -> Refinement:
    """Rewrite a question so that it no longer invites a managed reply.

    Parameters
    ----------
    question
        English or Spanish; the new one keeps its language.
    judge
        A client, or ``"rules"``.
    lang
        Language of the reasoning.
    options
        How the model is to answer.

    Returns
    -------
    Refinement
        Where the model cannot be reached or gives no question, that of the rules, with ``fallback=True`` and a note.

    Notes
    -----
    The rules come to rest: refining twice changes nothing more (``test_refining_twice_changes_nothing``). Words outside
    the wordings found are kept; a question that is bait from end to end stays as it is.

    Examples
    --------
    >>> refine("Don't you think my brilliant plan saves water, yes or no?", judge="rules").refined
    'Is it the case that my plan saves water?'
    """
    require_text(question, "question")
    require_choice(lang, "lang", get_args(NotesLang))
    if not question.strip():
        raise InputError("question is empty: there is nothing to refine")
    if isinstance(judge, str):
        require_choice(judge, "judge", ("rules",))
        return _by_rules(question, lang)
    options = options or Options()
    try:
        answer: Completion | JudgeError = judge.complete(refine_request(question, lang=lang, options=options))
    except JudgeError as error:
        answer = error
    return read_refinement(question, answer, lang, options)


def read_refinement(question: str, answer: Completion | JudgeError, lang: NotesLang, options: Options) -> Refinement:
    """Return what a complete answer makes of ``question``, or the rules where the call or the answer failed."""
    if isinstance(answer, JudgeError):
        return _by_rules(question, lang, note=f"the model was not reached ({answer.reason}: {answer})")
    receipt = make_receipt(answer.model, "refine", lang, options, answer)
    content, inline = split_thinking(answer.content)
    thinking = "\n".join(part for part in (answer.thinking.strip(), inline) if part)
    try:
        found = last_object(content, _fields, key="refined_question", quoted=[question])
    except Refused as refused:
        return _by_rules(question, lang, thinking, f"the model's answer holds no question ({refused.reason})", receipt)
    refined, reasoning, blocked = found.value
    return Refinement(question, refined, (), blocked, reasoning, thinking, receipt=receipt)


def _fields(value: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """Return the fields of a refinement: the question must be there, the rest is left out where it has another type."""
    refined = value.get("refined_question")
    if not isinstance(refined, str) or not _LETTER.search(refined):
        raise Refused("unreadable", f"refined_question is {show(refined)}, no question")
    reasoning, blocked = value.get("refinement_reasoning"), value.get("patterns_blocked")
    names = blocked if isinstance(blocked, list) and all(isinstance(name, str) for name in blocked) else []
    return refined.strip(), reasoning if isinstance(reasoning, str) else "", tuple(names)


# ---- rules


class _Rule(NamedTuple):
    id: str
    blocks: str
    note: Mapping[str, str]
    find: re.Pattern[str]
    put: Mapping[str, str]
    append: Mapping[str, str]
    unless: re.Pattern[str] | None


@cache
def _rules() -> tuple[_Rule, ...]:
    with data_path("judge/refine.toml").open("rb") as file:
        data = tomllib.load(file)

    def pattern(text: str) -> re.Pattern[str]:
        while "{{" in text:
            text = re.sub(r"\{\{(\w+)\}\}", lambda match: data["fragments"][match[1]], text)
        text = text.replace("\n", "").replace(" ?", r"\s{0,3}").replace(" ", r"\s{1,3}").replace("'", "['’]")
        return re.compile(text, re.IGNORECASE | re.MULTILINE)

    def wording(value: str | Mapping[str, str]) -> Mapping[str, str]:
        return dict.fromkeys(get_args(NotesLang), value) if isinstance(value, str) else value

    return tuple(
        _Rule(
            row["id"],
            row["blocks"],
            row["note"],
            pattern(row["find"]),
            wording(row.get("put", "")),
            row.get("append", {}),
            pattern(row["unless"]) if "unless" in row else None,
        )
        for row in data["pattern"]
    )


@cache
def _hash() -> str:
    return hashlib.sha256(data_path("judge/refine.toml").read_bytes()).hexdigest()[:16]


def _by_rules(
    question: str, lang: NotesLang, thinking: str = "", note: str = "", receipt: Receipt | None = None
) -> Refinement:
    text, changes = unicodedata.normalize("NFC", question), []
    speaks = guess_language(text)  # once: it must not turn when words have gone
    # Each change takes away words that only the question brought, so this comes to rest; the bound makes it sure.
    for _ in range(len(text) + 1):
        before = text
        for rule in _rules():
            text, done = _apply(rule, text, speaks, lang)
            changes += done
        if text == before:
            break
    if not changes or not _LETTER.search(text):  # bait from end to end: nothing would be left to ask
        text, changes = question, []
    reasons = dict.fromkeys(change.note for change in changes)
    return Refinement(
        original=question,
        refined=text,
        changes=tuple(changes),
        patterns_blocked=tuple(dict.fromkeys(change.blocks for change in changes)),
        reasoning="; ".join(reasons),
        judge_thinking=thinking,
        fallback=True,
        note=note,
        receipt=receipt or Receipt(model="rules", digest=_hash(), options={"lang": lang}, version=__version__),
    )


def _apply(rule: _Rule, text: str, speaks: str, lang: NotesLang) -> tuple[str, list[Change]]:
    changes: list[Change] = []
    if rule.append:
        if rule.find.search(text) and not (rule.unless and rule.unless.search(text)):
            added = rule.append[speaks]
            changes.append(Change(rule.id, rule.blocks, rule.note[lang], "", added))
            text = f"{text.rstrip()} {added}"
        return text, changes
    for _ in range(len(text) + 1):
        match = rule.find.search(text)
        if not match or not match[0].strip():
            break
        after = match.expand(rule.put[speaks])
        text = _splice(text, match.start(), match.end(), after)
        changes.append(Change(rule.id, rule.blocks, rule.note[lang], match[0].strip(), after))
    return text, changes


def _splice(text: str, start: int, end: int, new: str) -> str:
    """Return ``text`` with ``new`` at a span: blanks at the seam as in writing, and a capital where a sentence begins."""
    head, tail = text[:start], text[end:]
    if not new:
        gap = _GAP.match(tail)
        tail = tail[gap.end() :] if gap else tail
        head = head.rstrip() if not head.strip() or not tail else head
        if tail[:1] in set(".,;:!?…"):
            head = head.rstrip()
            # What ended in a mark does not get a second one.
            tail = tail if head[-1:] not in set(".,;:!?…¿¡") and head else tail.lstrip(".,;:!?… ")
        elif head and tail and head[-1] not in " \n¿¡(":
            tail = " " + tail
    text = head + new + tail
    first = _LETTER.search(text, len(head))
    begins = not head.strip() or head.rstrip()[-1] in ".!?…" or head.rstrip()[-1] in "¿¡"
    if begins and first and first.start() <= len(head) + 2 and not text[len(head) : first.start()].strip("¿¡\"'“«( "):
        text = text[: first.start()] + first[0].upper() + text[first.end() :]
    return text
