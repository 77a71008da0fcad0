"""One reply judged while one watches: the events of the reference service, in its order.

What is shown of the judge's words goes through the sanitiser; what is read for the verdict never does, so that the last event
holds what :func:`~anima.judge.ask.judge_analysis` returns for the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

from anima.authenticity.analysis import Analysis
from anima.checks import require_choice, require_text
from anima.errors import AnimaError, InputError, JudgeError
from anima.judge.ask import nothing_to_judge, read_answer
from anima.judge.events import Event, Shown
from anima.judge.prompt import NotesLang, judge_request, refine_request
from anima.judge.refine import Refinement, read_refinement, refine
from anima.judge.request import Options, Request
from anima.judge.resolve import Judge, get_judge, judge_name
from anima.judge.rules import rules_verdict
from anima.judge.sanitize import sanitize
from anima.judge.verdict import Unscored, Verdict, default_instrument
from anima.stats import json_ready

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable

    from anima.authenticity import Instrument
    from anima.judge.client import Client
    from anima.judge.decode import Delta

Mode = Literal["both", "analyze", "refine"]


@dataclass(frozen=True)
class Streamed:
    """What a stream came to; None for what it did not hold."""

    analysis: Analysis | None = None
    verdict: Verdict | Unscored | None = None
    refinement: Refinement | None = None

    def __repr__(self) -> str:
        found = (self.analysis, self.verdict, self.refinement)
        return f"<Streamed: {' '.join(part.summary() for part in found if part) or 'nothing'}>"


def stream(
    response: str | None,
    question: str | None = None,
    *,
    judge: str | Judge,
    mode: Mode = "both",
    instrument: Instrument | None = None,
    lang: NotesLang = "en",
    options: Options | None = None,
) -> Generator[Event, None, None]:
    """Judge one reply, yielding what happens as it happens.

    Parameters
    ----------
    response
        The reply; ignored by ``mode="refine"``.
    question
        What was asked. Without one, ``"both"`` only analyses.
    judge
        See :func:`~anima.judge.get_judge`.
    mode
        ``"analyze"`` the reply, ``"refine"`` the question, or ``"both"``.
    instrument
        What analyses the reply; None for the default one.
    lang
        Language of the judge's notes.
    options
        How the model is to answer.

    Yields
    ------
    Event
        Failures of embedder and judge are events, too. A reply without a sentence is a ``parse_error`` of kind
        ``"not_applicable"`` and asks nobody.

    Notes
    -----
    Closing the generator closes the connection to the judge. Reasoning in tags is told apart wherever the pieces are cut, as is
    that in a field of its own; only what stands before a closing tag without an opening one is shown as part of the answer
    (nobody could know), and put right in the verdict. Proof: ``test_any_cut_gives_the_unstreamed_verdict``.
    """
    return _drive(_script(_Case(response, question, get_judge(judge), mode, instrument, lang, options or Options())))


def astream(
    response: str | None,
    question: str | None = None,
    *,
    judge: str | Judge,
    mode: Mode = "both",
    instrument: Instrument | None = None,
    lang: NotesLang = "en",
    options: Options | None = None,
) -> AsyncGenerator[Event, None]:
    """Judge one reply under asyncio; as :func:`stream`. Cancelling the task that waits closes the connection, too."""
    return _adrive(_script(_Case(response, question, get_judge(judge), mode, instrument, lang, options or Options())))


def collect(events: Iterable[Event]) -> Streamed:
    """Return what a stream comes to."""
    found: dict[str, Any] = {}
    for event in events:
        if event.result is not None:
            kind = {Analysis: "analysis", Refinement: "refinement"}.get(type(event.result), "verdict")
            found[kind] = event.result
    return Streamed(**found)


# ---- the order of things, without input or output, so that the blocking and the async twin share it


class _Call(NamedTuple):
    """A request for the driver to send; ``show`` makes events of its pieces."""

    client: Client
    request: Request
    show: Callable[[Delta], Iterable[Event]]


# A step is an event to hand on, or work whose result (or error) is sent back.
_Step: TypeAlias = Event | _Call | Callable[[], Any]
_Script: TypeAlias = "Generator[_Step, Any, None]"


@dataclass(frozen=True)
class _Case:
    response: str | None
    question: str | None
    judge: Judge
    mode: Mode
    instrument: Instrument | None
    lang: NotesLang
    options: Options

    def __post_init__(self) -> None:
        require_choice(self.mode, "mode", get_args(Mode))
        require_choice(self.lang, "lang", get_args(NotesLang))
        if self.question is not None:
            require_text(self.question, "question")
        if self.mode != "refine":
            require_text(self.response, "response")
        elif not (self.question or "").strip():
            raise InputError("question is required for refine: it is what gets rewritten")

    def analyze(self) -> Analysis:
        return (self.instrument or default_instrument()).analyze(self.response or "", self.question)


def _script(case: _Case) -> _Script:
    if case.mode != "refine":
        analysis = yield case.analyze
        if isinstance(analysis, AnimaError):
            yield Event("error", {"stage": "pre_analysis", "message": sanitize(str(analysis))})
            return
        yield Event("pre_analysis", _pre_analysis(analysis), analysis)
        yield from _judge(case, analysis)
    if case.mode != "analyze" and (case.question or "").strip():
        yield from _refine(case, cast("str", case.question))


def _judge(case: _Case, analysis: Analysis) -> _Script:
    name, judge = judge_name(case.judge), case.judge
    if not analysis.steps:
        yield _ending(nothing_to_judge(analysis, name, case.lang, case.options))
        return
    yield Event("judge_loading", {"status": "loading", "model": name})
    if isinstance(judge, str):
        yield _ending(rules_verdict(analysis, lang=case.lang))
        return
    shown = Shown()
    answer = yield _Call(judge, judge_request(analysis, lang=case.lang, options=case.options), shown.take)
    yield from shown.end()
    yield _ending(read_answer(analysis, answer, name, case.lang, case.options))


def _refine(case: _Case, question: str) -> _Script:
    judge = case.judge
    yield Event("refine_loading", {"status": "loading", "model": judge_name(judge)})
    if isinstance(judge, str):
        refinement = refine(question, judge=judge, lang=case.lang)
    else:
        request = refine_request(question, lang=case.lang, options=case.options)
        answer = yield _Call(judge, request, lambda _: ())
        refinement = read_refinement(question, answer, case.lang, case.options)
    row = json_ready(refinement.redacted().to_dict())
    names = ("original_question", "refined_question", "refinement_reasoning", "patterns_blocked", "judge_thinking")
    yield Event("refine_complete", {key: row[key] for key in (*names, "fallback", "note", "receipt")}, refinement)


def _drive(script: _Script) -> Generator[Event, None, None]:
    answer: Any = None
    with closing(script):
        while (step := _next(script, answer)) is not None:
            answer = None
            if isinstance(step, Event):
                yield step
            elif isinstance(step, _Call):
                try:
                    with step.client.stream(step.request) as pieces:
                        for delta in pieces:
                            yield from step.show(delta)
                        answer = pieces.completion
                except JudgeError as error:
                    answer = error
            else:
                answer = _result(step)


async def _adrive(script: _Script) -> AsyncGenerator[Event, None]:
    answer: Any = None
    with closing(script):
        while (step := _next(script, answer)) is not None:
            answer = None
            if isinstance(step, Event):
                yield step
            elif isinstance(step, _Call):
                try:
                    async with step.client.astream(step.request) as pieces:
                        async for delta in pieces:
                            for event in step.show(delta):
                                yield event
                        answer = pieces.completion
                except JudgeError as error:
                    answer = error
            else:
                answer = await asyncio.to_thread(_result, step)


def _next(script: _Script, answer: Any) -> _Step | None:
    try:
        return script.send(answer)
    except StopIteration:
        return None


def _result(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except AnimaError as error:
        return error


# ---- events


def _pre_analysis(analysis: Analysis) -> dict[str, Any]:
    row = analysis.to_dict()
    data = {
        "baseline_top1": row["baseline"]["cosine_top1"],
        "cross_corpus": row["baseline"]["cross_corpus"],
        **{key: row[key] for key in ("intent_chain", "markers", "pole_score", "top_k", "trajectory", "note")},
    }
    return cast("dict[str, Any]", json_ready(data))


def _ending(outcome: Verdict | Unscored) -> Event:
    safe = outcome.redacted()
    if isinstance(safe, Verdict):
        return Event("complete", json_ready(safe.to_dict()), outcome)
    if safe.kind == "call_failed":
        return Event("error", {"stage": "judge_call", "message": safe.reason}, outcome)
    data = {"thinking": safe.thinking, "raw_response": safe.raw, "kind": safe.kind, "reason": safe.reason}
    return Event("parse_error", data, outcome)
