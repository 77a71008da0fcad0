"""The LLM judge: what it is asked, how it is called, and what becomes of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anima.lazy import lazy

if TYPE_CHECKING:
    from anima.judge.client import Client
    from anima.judge.decode import Delta
    from anima.judge.events import Event
    from anima.judge.notebook import display
    from anima.judge.ollama import OllamaClient
    from anima.judge.openai import OpenAIClient
    from anima.judge.panel import Panel
    from anima.judge.parse import parse_verdict, split_thinking
    from anima.judge.recorded import Recorded, Recorder, Recording
    from anima.judge.request import Completion, Limits, Options, Request
    from anima.judge.resolve import get_judge, give_verdict
    from anima.judge.run import judge_panel
    from anima.judge.sanitize import StreamSanitizer
    from anima.judge.stream import Streamed, astream, collect
    from anima.judge.verdict import Receipt, Unscored, Verdict

_HOMES = {
    "Client": "client", "Completion": "request", "Delta": "decode", "Event": "events", "Limits": "request",
    "OllamaClient": "ollama", "OpenAIClient": "openai", "Options": "request", "Panel": "panel", "Receipt": "verdict",
    "Recorded": "recorded", "Recorder": "recorded", "Recording": "recorded", "Request": "request",
    "StreamSanitizer": "sanitize", "Streamed": "stream", "Unscored": "verdict", "Verdict": "verdict", "astream": "stream",
    "collect": "stream", "display": "notebook", "get_judge": "resolve", "give_verdict": "resolve", "judge_panel": "run",
    "parse_verdict": "parse", "split_thinking": "parse",
}  # fmt: skip

__all__ = [
    "Client", "Completion", "Delta", "Event", "Limits", "OllamaClient", "OpenAIClient", "Options", "Panel", "Receipt",
    "Recorded", "Recorder", "Recording", "Request", "StreamSanitizer", "Streamed", "Unscored", "Verdict", "astream",
    "collect", "display", "get_judge", "give_verdict", "judge_panel", "parse_verdict", "split_thinking",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__, _HOMES)
