"""Streams: any cut of any answer ends in the unstreamed verdict, nothing secret is shown, and closing stops the judge."""

import asyncio
import functools
import json
import threading
from contextlib import suppress
from itertools import pairwise

import pytest
from fake_server import FakeServer, Reply, line, ollama, openai
from hypothesis import given, settings
from hypothesis import strategies as st

import anima
from anima.errors import EmbeddingError, InputError, JudgeError, SettingsError
from anima.judge.ask import judge_analysis
from anima.judge.decode import Delta
from anima.judge.events import Splitter
from anima.judge.ollama import OllamaClient
from anima.judge.openai import OpenAIClient
from anima.judge.parse import split_thinking
from anima.judge.refine import refine
from anima.judge.request import Completion, Limits
from anima.judge.resolve import get_judge, give_verdict
from anima.judge.sanitize import sanitize
from anima.judge.stream import astream, collect, stream
from anima.judge.verdict import Unscored, Verdict

REPLY = "Great question! Water boils at 100 degrees. I do not know about the summit."
SECRET = "sk-ABCDEFGHIJKLMNOPQRSTUVWX"
ANSWER = {
    "authenticity_score": 31,
    "depth_assessment": "surface",
    "pattern_breaks": ["sentence <2>, {so}"],
    "notes": f"token: x, then <think>no</think> and {SECRET}",
    "not_applicable": False,
}
REFINED = {"refined_question": "At which pressure?", "refinement_reasoning": "opens it", "patterns_blocked": ["X"]}
BIG = {"prompt_eval_count": 4000}  # as a server that read the whole prompt


class Said:
    """A client that says given pieces; the parts of ``error`` end them."""

    model = "said:1b"

    def __init__(self, pieces, error=None, refined=None):
        self.pieces, self.error, self.refined = pieces, error, refined
        self.closed = 0

    def stream(self, request):
        refining = self.refined is not None and "QUESTION" in request.prompt and "REPLY" not in request.prompt
        return _Pieces(self, [Delta("content", self.refined)] if refining else self.pieces)

    def complete(self, request):
        with self.stream(request) as pieces:
            for _ in pieces:
                pass
            return pieces.completion


class _Pieces:
    def __init__(self, client, pieces):
        self.client, self.pieces = client, iter(pieces)
        self.words = {"thinking": "", "content": ""}

    def __iter__(self):
        return self

    def __next__(self):
        piece = next(self.pieces, None)
        if piece is None:
            if self.client.error:
                raise self.client.error
            raise StopIteration
        self.words[piece.kind] += piece.text
        return piece

    @property
    def completion(self):
        return Completion(**self.words, model="said:1b")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.closed += 1


@functools.cache
def analysed():
    return anima.analyze(REPLY, "When?")


class Analysed:
    """An instrument that need not work: the judge is what is tested."""

    def analyze(self, *_):
        return analysed()


@pytest.fixture
def analysis():
    return analysed()


def shown(events, name):
    return "".join(event.data["chunk"] for event in events if event.name == name)


def names(events):
    found = [event.name for event in events]
    return [name for i, name in enumerate(found) if i == 0 or name != found[i - 1]]


WORDS = st.sampled_from(
    [
        "<think>", "</think>", "<Thinking a='1'>", "< / THOUGHT >", "<th", "ink>", "<", ">", "{", "}", '"', "\\", "\n", " ",
        "plain words ", "Ñandú 🤔", "```json\n", "```", f" {SECRET}", "Bearer ", json.dumps(ANSWER), '{"authenticity_score": 250}',
        '{"notes": "a {b", "authenticity_score": "40"}', "</", "<think" + "x" * 70 + ">", "token", ": ", "é", "{{",
    ]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=12).map("".join), st.lists(WORDS, max_size=4).map("".join), st.data())
def test_any_cut_gives_the_unstreamed_verdict(content, thinking, data):
    def cut(kind, text):
        places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
        return [Delta(kind, text[a:b]) for a, b in pairwise(places)]

    client = Said(cut("thinking", thinking) + cut("content", content))
    whole = Said([Delta("thinking", thinking), Delta("content", content)])
    events = list(stream(REPLY, "When?", judge=client, mode="analyze", instrument=Analysed()))
    verdict = collect(events).verdict
    assert verdict == judge_analysis(analysed(), whole)
    assert [events[0].name, events[1].name] == ["pre_analysis", "judge_loading"]
    assert events[-1].name == ("complete" if isinstance(verdict, Verdict) else "parse_error")
    numbered = [event.data["seq"] for event in events if "seq" in event.data]
    assert numbered == list(range(1, len(numbered) + 1))
    # What is shown does not depend on the cuts, and holds no secret.
    uncut = list(stream(REPLY, "When?", judge=whole, mode="analyze", instrument=Analysed()))
    for name in ("thinking_chunk", "analysis_chunk"):
        assert shown(events, name) == shown(uncut, name)
    assert SECRET not in "".join(event.sse().decode() for event in events)
    counted = [event.data["cumulative_chars"] for event in events if event.name == "thinking_chunk"]
    assert (counted or [0])[-1] == len(shown(events, "thinking_chunk"))
    assert sum(event.name == "thinking_complete" for event in events) <= 1


@given(st.lists(WORDS, max_size=10).map("".join), st.lists(st.integers(0, 200), max_size=6))
def test_the_splitter_is_the_same_however_cut(text, places):
    def joined(parts):
        found = {"thinking": "", "content": ""}
        for kind, part in parts:
            found[kind] += part
        return found

    edges = sorted({0, len(text), *[place for place in places if place < len(text)]})
    splitter, parts = Splitter(), []
    for a, b in pairwise(edges):
        parts += splitter.feed(text[a:b])
    whole = Splitter()
    assert joined(parts + splitter.close()) == joined(whole.feed(text) + whole.close())


@pytest.mark.parametrize("before", ["", "\n", "Well: "])
@pytest.mark.parametrize("thought", ["Hm, {so}.", "a < b", '"quoted', "[a"])
@pytest.mark.parametrize("tags", ["<Think>|</think>", "[THINK]|[/THINK]"])
def test_tags_are_read_as_the_parser_reads_them(before, thought, tags):
    text = f"{before}{tags.replace('|', thought)}\n\n{json.dumps(ANSWER)}"
    splitter = Splitter()
    parts = [part for sign in text for part in splitter.feed(sign)] + splitter.close()
    found = {kind: "".join(text for k, text in parts if k == kind) for kind in ("content", "thinking")}
    assert (found["content"].strip(), found["thinking"]) == split_thinking(text)


def test_events_have_the_documented_order_and_fields():
    client = Said(
        [Delta("thinking", "Hm. "), Delta("content", "\n"), Delta("content", json.dumps(ANSWER))],
        refined=json.dumps(REFINED),
    )
    events = list(stream(REPLY, "When?", judge=client))
    assert names(events) == [
        "pre_analysis", "judge_loading", "thinking_chunk", "thinking_complete", "analysis_chunk", "complete",
        "refine_loading", "refine_complete",
    ]  # fmt: skip
    by_name = {event.name: event.data for event in events}
    assert by_name["pre_analysis"].keys() >= {
        "baseline_top1", "cross_corpus", "intent_chain", "markers", "pole_score", "top_k", "trajectory",
    }  # fmt: skip
    assert by_name["judge_loading"] == by_name["refine_loading"] == {"status": "loading", "model": "said:1b"}
    assert by_name["thinking_chunk"].keys() == {"chunk", "cumulative_chars", "seq"}
    assert by_name["thinking_complete"] == {"total_chars": 4, "seq": 2}
    assert by_name["analysis_chunk"].keys() == {"chunk", "seq"}
    assert by_name["complete"]["authenticity_score"] == 31
    assert by_name["refine_complete"]["refined_question"] == "At which pressure?"
    found = collect(events)
    # The secret is in what is analysed and not in what is shown.
    assert SECRET in found.verdict.notes
    assert by_name["complete"]["notes"] == sanitize(ANSWER["notes"])
    assert found.refinement == refine("When?", judge=client)
    assert "Authenticity 31" in repr(found)
    for event in events:
        head, body, *rest = event.sse().decode().split("\n")
        assert (head, rest) == (f"event: {event.name}", ["", ""])
        assert json.loads(body.removeprefix("data: ")) == event.to_dict()["data"]


def test_a_secret_cut_in_two_is_never_shown():
    pieces = [
        Delta("thinking", f"the key is {SECRET[:9]}"),
        Delta("thinking", f"{SECRET[9:]} it is"),
        Delta("content", "{}"),
    ]
    events = list(stream(REPLY, judge=Said(pieces), mode="analyze"))
    assert shown(events, "thinking_chunk") == "the key is [REDACTED] it is"
    assert SECRET in collect(events).verdict.thinking


@pytest.mark.parametrize("mode", ["analyze", "refine", "both"])
def test_modes(mode):
    client = Said([Delta("content", json.dumps(ANSWER))], refined=json.dumps(REFINED))
    found = collect(stream(REPLY, "When?", judge=client, mode=mode))
    assert (found.analysis is None) == (found.verdict is None) == (mode == "refine")
    assert (found.refinement is None) == (mode == "analyze")
    assert collect(stream(REPLY, " ", judge=client)).refinement is None  # there is nothing to refine


def test_a_failed_call_is_an_event_and_the_refiner_still_runs():
    client = Said(
        [Delta("thinking", "Hm")], error=JudgeError("it broke sk-ABCDEFGHIJKLMNOPQRSTUVWX", "cut", thinking="Hm")
    )
    events = list(stream(REPLY, "Don't you think so?", judge=client))
    assert names(events)[2:] == ["thinking_chunk", "error", "refine_loading", "refine_complete"]
    error = next(event for event in events if event.name == "error")
    assert error.data == {"stage": "judge_call", "message": "cut: it broke [REDACTED]"}
    assert (error.result.kind, error.result.thinking) == ("call_failed", "Hm")
    assert events[-1].data["fallback"]
    assert "not reached" in events[-1].data["note"]


def test_without_a_sentence_nobody_is_asked():
    client = Said([Delta("content", json.dumps(ANSWER))])
    events = list(stream("…", judge=client, mode="analyze"))
    assert names(events) == ["pre_analysis", "parse_error"]
    assert (events[-1].data["kind"], client.closed) == ("not_applicable", 0)
    assert events[-1].result == judge_analysis(anima.analyze("…"), client)


def test_a_failing_embedder_ends_the_stream():
    class Broken:
        id, dim = "broken", 4

        def embed(self, texts):
            raise EmbeddingError("nothing answers")

    broken = anima.instrument(embedder=Broken())
    events = list(stream(REPLY, "When?", judge="rules", instrument=broken))
    assert [event.to_dict() for event in events] == [
        {"event": "error", "data": {"stage": "pre_analysis", "message": "nothing answers"}}
    ]


def test_rules_are_marked(analysis):
    events = list(stream(REPLY, "Don't you love it?", judge="rules"))
    assert names(events) == ["pre_analysis", "judge_loading", "complete", "refine_loading", "refine_complete"]
    assert events[1].data["model"] == "rules"
    assert events[2].data["fallback"]
    assert events[2].result == give_verdict(analysis, "rules")


def test_bad_arguments_are_refused_before_anything_runs():
    with pytest.raises(InputError, match="mode must be one of"):
        stream(REPLY, judge="rules", mode="otro")
    with pytest.raises(InputError, match="question is required"):
        stream(REPLY, " ", judge="rules", mode="refine")
    with pytest.raises(InputError, match="response is None"):
        astream(None, judge="rules")
    with pytest.raises(InputError, match="judge must be"):
        stream(REPLY, judge=7)
    for spec in ("llama", "openai:gpt", "rules:x", "openai:m@http://me:pa55@host x"):
        with pytest.raises(SettingsError, match="judge must be") as caught:
            get_judge(spec)
        assert "pa55" not in str(caught.value)
    assert get_judge("ollama:qwen3:14b@http://h:1").model == "qwen3:14b"
    assert get_judge("openai:m@http://h:1/v1").url == "http://h:1"


# ---- over sockets

INLINE = f"<think>Let me see.</think>\n{json.dumps(ANSWER)}"


@pytest.mark.parametrize("where", ["field", "tags"])
@pytest.mark.parametrize("kind", ["chat", "generate", "openai"])
def test_streamed_and_not_streamed_agree_over_http(analysis, kind, where):
    content, thinking = (INLINE, "") if where == "tags" else (json.dumps(ANSWER), "Let me see.")
    if kind == "openai":
        reply = openai(content, thinking)
        reply = reply.but(
            parts=[part.replace(b'"prompt_tokens": 50', b'"prompt_tokens": 4000') for part in reply.parts]
        )
    else:
        reply = ollama(content, thinking, api=kind, **BIG)
    with FakeServer(reply) as fake:
        client = OpenAIClient("m", fake.url) if kind == "openai" else OllamaClient("m", fake.url, api=kind)

        async def watch():
            return [event async for event in astream(REPLY, "When?", judge=client, mode="analyze")]

        events = list(stream(REPLY, "When?", judge=client, mode="analyze"))
        awaited = asyncio.run(watch())
        verdict = judge_analysis(analysis, client)
    assert (verdict.authenticity_score, verdict.judge_thinking) == (31, "Let me see.")
    assert collect(events).verdict == collect(awaited).verdict == verdict
    assert shown(events, "thinking_chunk") == "Let me see."
    for name in ("thinking_chunk", "analysis_chunk"):
        assert shown(events, name) == shown(awaited, name)


def slow():
    word = line({"message": {"content": "", "thinking": "Hm, "}, "done": False})
    return Reply([word, word, 30.0, word])


def test_closing_stops_the_judge():
    with FakeServer(slow()) as fake:
        events = stream(REPLY, judge=OllamaClient("m", fake.url), mode="analyze")
        assert next(event for event in events if event.name == "thinking_chunk")
        events.close()
        assert fake.gone.wait(5)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("anima-")]


def test_cancelling_the_task_stops_the_judge():
    async def watch(fake):
        begun = asyncio.Event()

        async def read():
            async for event in astream(REPLY, judge=OllamaClient("m", fake.url), mode="analyze"):
                if event.name == "thinking_chunk":
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    with FakeServer(slow()) as fake:
        asyncio.run(watch(fake))
        assert fake.gone.wait(5)


@pytest.mark.parametrize("reply", ["cut", "slow", "absent"])
def test_faults_end_in_a_typed_outcome(reply):
    answer = ollama(json.dumps(ANSWER), "Hm", **BIG)
    answers = {"cut": answer.but(cut=300), "slow": answer.but(parts=[*answer.parts[:3], 30.0])}
    with FakeServer(answers.get(reply, answer)) as fake:
        url = "http://127.0.0.1:9" if reply == "absent" else fake.url
        client = OllamaClient("m", url, limits=Limits(between_tokens=0.3), retries=0)
        events = list(stream(REPLY, judge=client, mode="analyze"))
    assert events[-1].name == "error"
    assert isinstance(collect(events).verdict, Unscored)
    expected = {"cut": "cut", "slow": "slow_tokens", "absent": "absent"}[reply]
    assert events[-1].data["message"].startswith(f"{expected}: ")
