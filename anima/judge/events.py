"""What a stream is made of: its events, and the judge's words as they may be shown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from anima.authenticity.analysis import Analysis
from anima.judge.parse import THINKING_TAG
from anima.judge.refine import Refinement
from anima.judge.sanitize import StreamSanitizer
from anima.judge.verdict import Unscored, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anima.judge.decode import Delta, Kind

EventName = Literal[
    "pre_analysis", "judge_loading", "thinking_chunk", "thinking_complete", "analysis_chunk", "complete", "parse_error",
    "error", "refine_loading", "refine_complete",
]  # fmt: skip
Result: TypeAlias = Analysis | Verdict | Unscored | Refinement

_LONGEST_TAG: Final = 64
_MARK = re.compile(r'[<\[{}"\\]')
_HALF_TAG = re.compile(rf"(?:<[^<>]{{0,{_LONGEST_TAG - 1}}}|\[/?(?:T(?:H(?:I(?:NK?)?)?)?)?)\Z")


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Parameters
    ----------
    name
        ``pre_analysis`` → ``judge_loading`` → ``thinking_chunk``* → ``thinking_complete`` → ``analysis_chunk``* →
        ``complete``, ``parse_error`` or ``error``; then ``refine_loading`` → ``refine_complete``.
    data
        The fields of the reference service, JSON-ready and fit to be shown. ``pre_analysis``: baseline_top1, cross_corpus,
        intent_chain, markers, pole_score, top_k, trajectory, note. ``judge_loading``, ``refine_loading``: status, model.
        ``thinking_chunk``: chunk, cumulative_chars, seq. ``thinking_complete``: total_chars, seq. ``analysis_chunk``:
        chunk, seq. ``complete``: the verdict. ``parse_error``: thinking, raw_response, kind, reason. ``error``: stage
        (``"pre_analysis"`` or ``"judge_call"``), message. ``refine_complete``: the refinement. Characters are counted, not
        bytes; ``seq`` runs through all chunks from 1.
    result
        The object behind ``pre_analysis``, ``refine_complete`` and whichever event ends the judgement; not sanitised.
    """

    name: EventName
    data: Mapping[str, Any]
    result: Result | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return name and data."""
        return {"event": self.name, "data": dict(self.data)}

    def sse(self) -> bytes:
        """Return the event as a frame of server-sent events."""
        return f"event: {self.name}\ndata: {json.dumps(self.data, ensure_ascii=False, allow_nan=False)}\n\n".encode()


class Shown:
    """Makes events of the pieces of an answer."""

    def __init__(self) -> None:
        self._split = Splitter()
        self._thinking, self._answer = StreamSanitizer(), StreamSanitizer()
        self._seq = self._chars = 0
        self._answering = False
        self._blank = ""

    def take(self, delta: Delta) -> Iterator[Event]:
        """Yield what the next piece shows."""
        if delta.kind == "thinking":
            yield from self._think(self._thinking.feed(delta.text))
            return
        for kind, text in self._split.feed(delta.text):
            yield from self._show(kind, text)

    def end(self) -> Iterator[Event]:
        """Yield what was held back."""
        for kind, text in self._split.close():
            yield from self._show(kind, text)
        yield from self._think(self._thinking.close())
        yield from self._say(self._answer.close())

    def _show(self, kind: Kind, text: str) -> Iterator[Event]:
        if kind == "thinking":
            yield from self._think(self._thinking.feed(text))
            return
        text, self._blank = self._blank + text, ""
        if not self._answering:
            if text.isspace():  # the line breaks between reasoning and answer begin no answer
                self._blank = text
                return
            yield from self._think(self._thinking.close())
            self._answering = True
            yield Event("thinking_complete", {"total_chars": self._chars, "seq": self._next()})
        yield from self._say(self._answer.feed(text))

    def _think(self, text: str) -> Iterator[Event]:
        if text:
            self._chars += len(text)
            yield Event("thinking_chunk", {"chunk": text, "cumulative_chars": self._chars, "seq": self._next()})

    def _say(self, text: str) -> Iterator[Event]:
        if text:
            yield Event("analysis_chunk", {"chunk": text, "seq": self._next()})

    def _next(self) -> int:
        self._seq += 1
        return self._seq


class Splitter:
    """Tells reasoning in tags from the answer as they come; the same however the text is cut.

    A tag inside braces is text of the answer, as in a complete object for
    :func:`~anima.judge.parse.split_thinking`, and so is one of more than 64 characters.
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside = self._quoted = False
        self._depth = 0

    def feed(self, text: str) -> list[tuple[Kind, str]]:
        """Take a piece and return what is certain, by kind."""
        return self._cut(text, last=False)

    def close(self) -> list[tuple[Kind, str]]:
        """Return what was held back."""
        return self._cut("", last=True)

    def _cut(self, text: str, *, last: bool) -> list[tuple[Kind, str]]:
        held = self._held + text
        parts: list[tuple[Kind, str]] = []
        start, pos, end = 0, 0, len(held)
        while mark := _MARK.search(held, pos):
            at, pos = mark.span()
            if mark[0] in "<[" and (self._inside or not self._depth):
                tag = THINKING_TAG.match(held, at)
                if tag and tag.end() - at <= _LONGEST_TAG:
                    pos = tag.end()
                    if not self._inside or tag["close"]:  # an opening tag within reasoning is part of it
                        parts.append((self._kind, held[start:at]))
                        self._inside, start = not tag["close"], pos
                elif not last and _HALF_TAG.match(held, at):
                    end = at
                    break
            elif not self._inside and not self._braces(mark[0]):
                if pos == len(held) and not last:
                    end = at
                    break
                pos += 1
        parts.append((self._kind, held[start:end]))
        self._held = held[end:]
        return [(kind, part) for kind, part in parts if part]

    @property
    def _kind(self) -> Kind:
        return "thinking" if self._inside else "content"

    def _braces(self, sign: str) -> bool:
        """Take note of braces and quotes; return False where the next character does not count."""
        if sign == "\\":
            return not self._quoted
        if sign == '"':
            self._quoted = bool(self._depth) and not self._quoted
        elif not self._quoted and sign in "{}":
            self._depth = max(0, self._depth + (1 if sign == "{" else -1))
        return True
