"""Clients of the judge against a server that misbehaves: every fault has its outcome, and nothing is left behind."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import pickle
import re
import socket
import threading
import time
import traceback
from email.utils import formatdate
from pathlib import Path

import pytest
from fake_server import DIGEST, FakeServer, Reply, error, event, line, ollama, openai

from anima.errors import InputError, JudgeError, SettingsError
from anima.judge import decode, watch
from anima.judge.decode import Delta
from anima.judge.ollama import OllamaClient
from anima.judge.openai import OpenAIClient
from anima.judge.request import Completion, Limits, Options, Request, estimate_tokens

pytestmark = pytest.mark.timeout(60)

ANSWER = '{"authenticity_score": 42, "notes": "ñ 😀"}'
ASK = Request("Judge.", "Is it so?")
QUICK = Limits(connect=1, first_token=0.25, between_tokens=0.15, total=0.4)


def held():
    """Threads, and files and sockets where the system tells."""
    folder = Path("/proc/self/fd")
    return set(threading.enumerate()), len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.fixture(autouse=True)
def nothing_left():
    threads, files = held()
    yield
    now, open_now = held()
    assert now <= threads
    assert open_now <= files


def chat(fake, **options):
    return OllamaClient(
        "m", getattr(fake, "url", fake), **{"backoff": 0.0, "limits": Limits(first_token=20), **options}
    )


def generate(fake, **options):
    return chat(fake, api="generate", **options)


def compatible(fake, **options):
    return OpenAIClient(
        "m", getattr(fake, "url", fake), **{"backoff": 0.0, "limits": Limits(first_token=20), **options}
    )


KINDS = {
    "chat": (chat, ollama),
    "generate": (generate, lambda *a, **k: ollama(*a, api="generate", **k)),
    "openai": (compatible, openai),
}


def blocking(client, request=ASK):
    return client.complete(request)


def awaiting(client, request=ASK):
    async def run():
        async with client.astream(request) as pieces:
            async for _ in pieces:
                pass
            return pieces.completion

    return asyncio.run(run())


both = pytest.mark.parametrize("run", [blocking, awaiting])
each = pytest.mark.parametrize(("make", "answer"), KINDS.values(), ids=KINDS)


def fails(run, client, reason, request=ASK):
    with pytest.raises(JudgeError) as caught:
        run(client, request)
    assert caught.value.reason == reason, caught.value
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


# What works


@both
@each
@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
def test_thinking_and_answer_arrive_whole_and_apart(make, answer, run, framing):
    with FakeServer(answer(ANSWER, "Hm, ñ… 😀").but(framing=framing)) as fake:
        got = run(make(fake))
    assert (got.content, got.thinking, got.model) == (ANSWER, "Hm, ñ… 😀", "m")
    assert (got.prompt_tokens, got.truncated, got.attempts, got.dropped) == (50, False, 1, ())
    assert got.digest == ("" if make is compatible else DIGEST)
    assert 0 < got.first_token_seconds <= got.seconds


@each
def test_pieces_come_one_by_one_and_the_completion_only_at_the_end(make, answer):
    with FakeServer(answer("abcdefgh", "think")) as fake, make(fake).stream(ASK) as pieces:
        with pytest.raises(InputError, match="not complete yet"):
            _ = pieces.completion
        assert list(pieces) == [
            Delta("thinking", "thin"),
            Delta("thinking", "k"),
            Delta("content", "abcd"),
            Delta("content", "efgh"),
        ]
        assert pieces.completion.content == "abcdefgh"


@both
def test_not_streamed(run):
    whole = {"model": "m", "done": True, "done_reason": "stop", "load_duration": 2_500_000_000, "prompt_eval_count": 9}
    part = {"content": ANSWER, "thinking": "Hm"}
    for make, body in (
        (chat, whole | {"message": part}),
        (generate, whole | {"response": ANSWER, "thinking": "Hm"}),
        (compatible, {"choices": [{"message": part | {"reasoning": "Hm"}, "finish_reason": "stop"}]}),
    ):
        reply = Reply(
            [0.2, json.dumps(body, indent=None if make is not compatible else 2).encode()], type="application/json"
        )
        limits = Limits(first_token=0.05, between_tokens=0.05)  # no tokens: only the total counts
        with FakeServer(reply) as fake:
            got = run(make(fake, streamed=False, limits=limits))
        assert (got.content, got.thinking) == (ANSWER, "Hm")
        assert fake.bodies[0]["stream"] is False
        assert got.load_seconds == (None if make is compatible else 2.5)


def test_a_server_that_ignores_the_wish_for_a_stream_is_read():
    body = {"choices": [{"message": {"content": ANSWER}, "finish_reason": "length"}], "system_fingerprint": "fp_1"}
    with FakeServer(Reply([b" \n", json.dumps(body).encode()], type="application/json")) as fake:
        got = compatible(fake).complete(ASK)
    assert (got.content, got.truncated, got.digest) == (ANSWER, True, "fp_1")


def test_what_is_sent():
    """Public case BR082 among others: an address with and without /v1, and no key."""
    schema = {"type": "object"}
    options = Options(temperature=0.5, seed=7, num_ctx=8192, max_tokens=99, keep_alive=60, think=False)
    request = Request("S", "P", schema, options)
    with FakeServer(ollama("x")) as fake:
        assert chat(fake, api_key="k-1").complete(request).dropped == ()
        assert OllamaClient("m:latest", f" {fake.url}/api/ ", api="generate").complete(request)
        settings = {"temperature": 0.5, "seed": 7, "num_ctx": 8192, "num_predict": 99}
        common = {"model": "m", "stream": True, "keep_alive": 60, "options": settings, "think": False, "format": schema}
        common |= {"truncate": False, "shift": False}
        spoken = [{"role": "system", "content": "S"}, {"role": "user", "content": "P"}]
        assert fake.asked[0] == ("/api/chat", common | {"messages": spoken})
        assert fake.asked[1] == ("/api/generate", common | {"system": "S", "prompt": "P"})
        assert b"authorization: bearer k-1" in fake.heads[0].lower()
    with FakeServer(openai("x")) as fake:
        assert OpenAIClient("m", fake.url + "/v1/").complete(request).dropped == ()
        assert fake.asked[0] == (
            "/v1/chat/completions",
            {
                "model": "m",
                "messages": spoken,
                "stream": True,
                "temperature": 0.5,
                "seed": 7,
                "max_tokens": 99,
                "stream_options": {"include_usage": True},
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "verdict", "strict": True, "schema": schema},
                },
                "chat_template_kwargs": {"enable_thinking": False},
            },
        )
        assert b"authorization" not in fake.heads[0].lower()


def test_a_thinking_model_of_ollama_gets_no_schema_and_the_receipt_says_so():
    with FakeServer(ollama("x")) as fake:
        assert chat(fake).complete(Request("S", "P", {"type": "object"})).dropped == ("schema",)
    assert fake.bodies[0]["think"] is True
    assert "format" not in fake.bodies[0]
    assert fake.bodies[0]["options"]["num_ctx"] == 16_384


def test_warming_loads_with_the_same_context_and_says_how_long_it_took():
    """Public case BR081: the first request after idle minutes."""
    loaded = Reply(
        [line({"model": "m", "response": "", "done": True, "done_reason": "load", "load_duration": 3 * 10**9})]
    )
    with FakeServer(loaded) as fake:
        assert chat(fake).warm().load_seconds == 3.0
    path, body = fake.asked[0]
    assert path == "/api/generate"
    assert body["options"]["num_ctx"] == 16_384
    assert body["keep_alive"] == "10m"
    assert "prompt" not in body


def test_defaults_come_from_the_environment(monkeypatch):
    for name in ("ANIMA_OLLAMA_URL", "ANIMA_JUDGE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert repr(OllamaClient()) == "OllamaClient('qwen3:14b', 'http://localhost:11434')"
    monkeypatch.setenv("ANIMA_OLLAMA_URL", "http://box:1")
    monkeypatch.setenv("ANIMA_JUDGE_MODEL", "other")
    assert repr(OllamaClient()) == "OllamaClient('other', 'http://box:1')"


def test_one_client_serves_many_threads():
    with FakeServer(ollama(ANSWER)) as fake:
        client, got = chat(fake), []
        threads = [threading.Thread(target=lambda: got.append(client.complete(ASK).content)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == [ANSWER] * 12


def test_the_fake_server_lets_go_of_a_caller_that_dies_half_way_through_its_request():
    with FakeServer(ollama(ANSWER)) as fake:
        host, port = fake.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as caller:
            caller.sendall(b"POST /api/chat HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")
    # Leaving the block joins every thread of the server: one that waited for the rest would hold the test for ever.
    assert fake.asked == []


# Wishes that a server refuses


@both
@pytest.mark.parametrize(
    ("complaint", "key", "name"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options", "usage"),
        ([{"loc": ["body", "chat_template_kwargs"], "type": "extra_forbidden"}], "chat_template_kwargs", "think"),
    ],
)
def test_a_refused_wish_is_left_out_once_and_for_ever(run, complaint, key, name):
    request = Request("S", "P", {"type": "object"}, Options(think=True))
    with FakeServer(error(400, complaint), openai(ANSWER)) as fake:
        client = compatible(fake, retries=0)
        for _ in range(2):
            got = run(client, request)
            assert (got.content, got.dropped) == (ANSWER, (name,))
    assert [key in body for body in fake.bodies] == [True, False, False]


@both
def test_a_refused_schema_is_sent_in_its_older_form_and_then_left_out(run):
    request = Request("S", "P", {"type": "object"})
    literal = {"type": "literal_error", "loc": ["body", "response_format", "type"], "msg": "Input should be 'text'"}
    older = {"type": "json_object", "schema": {"type": "object"}}
    # llama-cpp-python answers a request that it cannot read with status 500, and knows the older form.
    with FakeServer(error(500, {"message": str([literal])}), openai(ANSWER)) as fake:
        client = compatible(fake, retries=0)
        assert [run(client, request).dropped for _ in range(2)] == [(), ()]
    assert [body["response_format"]["type"] for body in fake.bodies] == ["json_schema", "json_object", "json_object"]
    assert fake.bodies[1]["response_format"] == older
    with FakeServer(*[error(400, "'response_format.type' must be 'text'")] * 2, openai(ANSWER)) as fake:
        client = compatible(fake, retries=0)
        assert [run(client, request).dropped for _ in range(2)] == [("schema",), ("schema",)]
    assert ["response_format" in body for body in fake.bodies] == [True, True, False, False]


def test_a_model_that_cannot_think_is_asked_without_and_then_gets_the_schema():
    with FakeServer(error(400, '"m" does not support thinking'), ollama(ANSWER)) as fake:
        got = chat(fake, retries=0).complete(Request("S", "P", {"type": "object"}))
    assert (got.content, got.dropped, got.attempts) == (ANSWER, ("think",), 2)
    assert [("think" in body, "format" in body) for body in fake.bodies] == [(True, False), (False, True)]


def test_a_wish_that_is_refused_even_when_left_out_is_an_error():
    with FakeServer(error(400, "response_format is bad")) as fake:
        assert "response_format" in str(fails(blocking, compatible(fake), "refused", Request("S", "P", {})))
    assert len(fake.asked) == 3


# The fault matrix


def forever(*parts):
    return itertools.cycle(parts)


def thought(kind):
    if kind == "openai":
        return event({"choices": [{"delta": {"reasoning_content": "hm "}}]})
    part = {"thinking": "hm ", "content": ""}
    return line(
        {"message": part, "done": False} if kind == "chat" else {"thinking": "hm ", "response": "", "done": False}
    )


def spoken(kind, content=b"x"):
    if kind == "openai":
        return b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % content
    body = b'"message": {"content": "%b"}' if kind == "chat" else b'"response": "%b"'
    return b'{%b, "done": false}\n' % (body % content)


def complaining(kind, message):
    return event({"error": {"message": message}}) if kind == "openai" else line({"error": message})


FAULTS = {  # what the server does, given the kind: (reply, reason, part of the message, content and thinking kept)
    "slow first byte": lambda k: (Reply([30.0], framing="raw"), "slow_first_token", "raise first_token", ""),
    "slow first token": lambda k: (Reply([30.0]), "slow_first_token", "may still be loading", ""),
    "dripping head": lambda k: (
        Reply(itertools.chain([b"HTTP/1.1 200 OK\r\nx: "], forever(b"y", 0.02)), framing="raw"),
        "slow_first_token",
        "no token within 0.25 s",
        "",
    ),
    "dripping line": lambda k: (Reply(forever(b'"', 0.02), type="x"), "slow_first_token", "no token", ""),
    "blank lines for ever": lambda k: (Reply(forever(b"\n", 0.02)), "slow_first_token", "no token", ""),
    "slow tokens": lambda k: (Reply([spoken(k), 30.0]), "slow_tokens", "nothing more for 0.15 s", "x"),
    "dripping token": lambda k: (
        Reply(itertools.chain([spoken(k)], forever(spoken(k)[:1], 0.02)), type="x"),
        "slow_tokens",
        "raise between_tokens",
        "x",
    ),
    "endless thinking": lambda k: (
        Reply(forever(thought(k), 0.02)),
        "slow_total",
        r"within 0.4 s \(total\): raise the limit, or lower max_tokens",
        "hm ",
    ),
    "cut before a token": lambda k: (Reply([], cut=0), "cut", "broke off", ""),
    "cut after a token": lambda k: (Reply([spoken(k)], framing="close"), "cut", "before the answer was complete", "x"),
    "reset": lambda k: (Reply([spoken(k), 0.1, spoken(k)], cut=len(spoken(k)) + 10, reset=True), "cut", "broke", "x"),
    "hang up": lambda k: (Reply([], framing="raw"), "cut", "without sending a response", ""),
    "error line": lambda k: (
        Reply([spoken(k), complaining(k, "an error was encountered: CUDA")]),
        "server_error",
        "reports an error within its answer: .*CUDA",
        "x",
    ),
    "too long, told late": lambda k: (
        Reply([complaining(k, "the request exceeds the available context size")]),
        "prompt_too_long",
        "Raise num_ctx",
        "",
    ),
    "garbage": lambda k: (Reply([b"\x00\x01\xfe\xff\n\x80 what\n"]), "garbage", "it sends", ""),
    "no HTTP": lambda k: (Reply([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"], framing="raw"), "garbage", "does not speak HTTP", ""),
    "broken chunks": lambda k: (
        Reply([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"], framing="raw"),
        "garbage",
        "does not speak HTTP",
        "",
    ),
    "not gzip": lambda k: (Reply([spoken(k)], headers={"content-encoding": "gzip"}), "garbage", "does not speak", ""),
    "invalid UTF-8 split across chunks": lambda k: (
        Reply([spoken(k), spoken(k, b"\xf0\x9f\x98")[:-20], spoken(k, b"\xf0\x9f\x98")[-20:]]),
        "garbage",
        "not UTF-8",
        "x",
    ),
    "JSON too deep": lambda k: (Reply([spoken(k, b'"}' + b"[" * 20_000)]), "garbage", "no JSON", ""),
    "wrong types": lambda k: (Reply([spoken(k).replace(b'"x"', b"[1]")]), "garbage", "content is no text: '\\[1\\]'", ""),
    "wrong shape": lambda k: (
        Reply([b'data: {"choices": "x"}\n\n' if k == "openai" else b"[1, 2]\n"]),
        "garbage",
        "no list of choices|JSON that is no object",
        "",
    ),
    "huge line": lambda k: (Reply(forever(b"data: " + b'{"x": "' + b"x" * 100_000), type="x"), "garbage", "a line of", ""),
    "a page": lambda k: (Reply([b"<html>Log in</html>"], type="text/html"), "wrong_content", "an HTML page", ""),
    "endless page": lambda k: (Reply(forever(b"<p>" * 9000), type="text/html"), "wrong_content", "HTML", ""),
    "400": lambda k: (error(400, "bad input"), "refused", r"refused \(status 400\): 'bad input'", ""),
    "400 too long": lambda k: (
        error(400, "maximum context length is 512 tokens"),
        "prompt_too_long",
        "longer than the model reads: .*Raise num_ctx",
        "",
    ),
    "401": lambda k: (error(401, {"message": "no key"}), "access", "check the API key. 'no key'", ""),
    "302": lambda k: (error(302, location="https://x/login"), "refused", "points to 'https://x/login'", ""),
    "404": lambda k: (
        Reply([b"404 page not found"], 404, "text/plain"),
        "no_route",
        r"http://127.0.0.1:\d+ has no /(api/chat|api/generate|v1/chat/completions) .*right server",
        "",
    ),
    "404 model": lambda k: (
        error(404, "model 'm' not found"),
        "model_not_found",
        r"It has m, qwen3:14b\. (Get it with `ollama pull m`|Correct the model's name)",
        "",
    ),
    "429": lambda k: (error(429, "slow down"), "rate_limited", "failed 2 times .*slow down.*ask less often", ""),
    "429 for an hour": lambda k: (error(429, **{"retry-after": "3600"}), "rate_limited", "asks to wait 3.6e\\+03 s", ""),
    "500": lambda k: (error(500, "oops"), "server_error", r"once \(status 500\): 'oops'", ""),
    "503": lambda k: (error(503, "busy"), "busy", r"failed 2 times \(status 503\): 'busy'", ""),
    "503 loading": lambda k: (error(503, {"message": "Loading model"}), "loading", "is still loading; wait", ""),
    "dripping error": lambda k: (
        Reply(forever(b"x", 0.02), 500, "text/plain"),
        "slow_first_token",
        "no token within",
        "",
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("kind", ["chat", "openai"])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_outcome(fault, kind, run, monkeypatch):
    monkeypatch.setattr(decode, "MAX_LINE", 500_000)
    reply, reason, says, kept = FAULTS[fault](kind)
    with FakeServer(reply) as fake:
        caught = fails(run, KINDS[kind][0](fake, limits=QUICK, retries=1), reason)
    assert caught.args == (str(caught),)
    assert re.search(says, str(caught), re.DOTALL), caught
    assert "m at http" in str(caught) or reason == "no_route"
    assert (caught.content or caught.thinking).startswith(kept)
    assert bool(caught.content or caught.thinking) == bool(kept)
    assert len(fake.asked) == (2 if fault in ("429", "503", "503 loading") else 1)
    again = pickle.loads(pickle.dumps(caught))
    assert (str(again), again.reason, again.content) == (str(caught), caught.reason, caught.content)


@both
@each
def test_no_server_says_how_to_start_it(make, answer, run):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    text = str(fails(run, make(url, retries=2), "absent"))
    assert "after 3 attempts" in text
    assert "start" in text
    assert url in text


@both
@pytest.mark.parametrize(("kind", "framing"), [("chat", "chunked"), ("generate", "close"), ("openai", "close")])
def test_a_stream_cut_at_every_byte_is_whole_or_an_error(kind, framing, run):
    make, answer = KINDS[kind]
    reply = answer('{"s": 1, "ñ": "😀"}', size=20).but(framing=framing)
    end = reply.body.rstrip()  # the last line's end may be lost
    size = len(reply.body) + (sum(6 for _ in reply.parts) if framing == "chunked" else 0)
    step = 1 if run is blocking else 7
    cuts = range(0, size, step)
    outcomes, said = [], '{"s": 1, "ñ": "😀"}'
    with FakeServer(*(reply.but(cut=cut) for cut in cuts), reply) as fake:
        client = make(fake)
        for _ in cuts:
            try:
                outcomes.append(("whole", run(client).content))
            except JudgeError as caught:
                outcomes.append((caught.reason, caught.content))
        assert run(client).content == said
    assert {reason for reason, _ in outcomes} <= {"cut", "whole"}
    assert all(said.startswith(content) and (reason == "cut" or content == said) for reason, content in outcomes)
    assert outcomes == sorted(outcomes)  # once whole, whole from there on
    if framing == "close" and kind == "generate" and run is blocking:
        assert outcomes.index(("whole", said)) == len(end)


def test_broken_lists_of_models_neither_hang_nor_hide_the_error(monkeypatch):
    monkeypatch.setattr("anima.judge.client._LOOKUP_SECONDS", 0.15)
    monkeypatch.setattr("anima.judge.client._LOOKUP_BYTES", 100_000)
    for lists in (
        Reply([], 500),
        Reply([b"<html>"], type="text/html"),
        Reply([b'{"models": 1}'], type="application/json"),
        Reply(forever(b"x", 0.02)),
        Reply(forever(b"x" * 9000)),
        Reply([], framing="raw"),
    ):
        with FakeServer(error(404, "model 'm' not found"), ollama(ANSWER), lists=lists) as fake:
            assert 'not found". Get it' in str(fails(blocking, chat(fake), "model_not_found"))
            assert chat(fake).complete(ASK).digest == ""


def held_by(owner, *names):
    rows = [{"id": name, "object": "model", "owned_by": owner} for name in names]
    return Reply([line({"object": "list", "data": rows})], 200, "application/json", {}, "length")


@both
@pytest.mark.parametrize("owner", ["me", "llamacpp"])
def test_another_model_in_place_of_the_one_asked_for_is_told(run, owner):
    """llama.cpp's servers take any name, and say it back as if it were theirs."""
    with FakeServer(openai(ANSWER), lists=held_by(owner, "gemma", "phi")) as fake:
        caught = fails(run, compatible(fake), "model_not_found")
        assert "does not have this model, and answered with another. It has gemma, phi. Correct" in str(caught)
        assert caught.content == ANSWER


@pytest.mark.parametrize(
    "lists", [held_by("me", "gemma", "m"), held_by("me", "m:latest"), held_by("openai", "gpt"), Reply([], 500)]
)
def test_a_model_that_is_listed_or_behind_a_gateway_is_taken_at_its_word(lists):
    with FakeServer(openai(ANSWER), lists=lists) as fake:
        client = compatible(fake)
        assert [client.complete(ASK).model for _ in range(2)] == ["m", "m"]
        assert sum(b"GET" in head for head in fake.heads) == (2 if lists.status == 500 else 1)


# Repeats


@both
def test_passing_troubles_are_tried_again(run):
    with FakeServer(error(503), error(429, **{"retry-after": "0"}), ollama(ANSWER)) as fake:
        got = run(chat(fake, retries=2))
    assert (got.content, got.attempts, len(fake.asked)) == (ANSWER, 3, 3)


def test_pauses_double_and_retry_after_is_honoured(monkeypatch):
    pauses = []
    monkeypatch.setattr(watch.Watch, "sleep", lambda self, seconds: pauses.append(seconds))
    soon = formatdate(time.time() + 20, usegmt=True)
    replies = [error(503), error(503), error(429, **{"retry-after": "7"}), error(429, **{"retry-after": soon})]
    with FakeServer(*replies, ollama(ANSWER)) as fake:
        chat(fake, retries=4, backoff=1.0, limits=Limits()).complete(ASK)
    assert 0.8 <= pauses[0] <= 1.2
    assert 1.6 <= pauses[1] <= 2.4
    assert pauses[2] == 7
    assert 15 < pauses[3] <= 20
    with FakeServer(error(503, **{"retry-after": "7"})) as fake:
        assert "try again later" in str(fails(blocking, chat(fake, limits=Limits(total=5)), "busy"))
    assert len(pauses) == 4


@both
def test_nothing_is_sent_again_once_it_may_have_been_received(run):
    for reply in (
        Reply([], framing="raw"),
        Reply([], cut=0),
        error(500),
        Reply([b"?"], 502),
        Reply([spoken("chat")], cut=9),
    ):
        with FakeServer(reply) as fake, pytest.raises(JudgeError):
            run(chat(fake, retries=3))
        assert len(fake.asked) == 1


# Leaving and cancelling


def tokens(kind="chat"):
    return Reply(forever(spoken(kind), 0.01))


@each
def test_leaving_early_closes_the_connection(make, answer):
    with FakeServer(tokens("openai" if make is compatible else "generate" if make is generate else "chat")) as fake:
        for _ in make(fake).stream(ASK):
            break
        assert fake.gone.wait(5)
        fake.gone.clear()
        with make(fake).stream(ASK) as pieces:
            next(pieces)
        assert fake.gone.wait(5)
        with pytest.raises(StopIteration):
            next(pieces)
        with pytest.raises(InputError, match="not complete"):
            _ = pieces.completion


@pytest.mark.parametrize(
    "reply", [Reply([30.0]), Reply([30.0], framing="raw"), tokens(), error(503, **{"retry-after": "30"})]
)
def test_cancelling_from_another_thread_wakes_the_waiting_one(reply):
    with FakeServer(reply) as fake:
        pieces = chat(fake, limits=Limits()).stream(ASK)

        def cancel():
            while not fake.asked:
                time.sleep(0.005)
            time.sleep(0.03)
            pieces.cancel()

        other = threading.Thread(target=cancel)
        other.start()
        with pytest.raises(JudgeError, match="was cancelled") as caught:
            list(pieces)
        other.join()
        assert caught.value.reason == "cancelled"
        assert reply.status == 503 or fake.gone.wait(5)
        assert len(fake.asked) == 1


def test_a_cancelled_stream_sends_nothing():
    with FakeServer(tokens()) as fake:
        pieces = chat(fake).stream(ASK)
        pieces.cancel()
        with pytest.raises(JudgeError, match="cancelled"):
            next(pieces)
        chat(fake).stream(ASK)  # and neither does one that nobody reads
    assert fake.heads == []


def test_async_streams_close_when_left_and_when_their_task_is_cancelled():
    async def leave(client):
        async with client.astream(ASK) as pieces:
            await anext(pieces)

    async def cancel(client, fake):
        task = asyncio.ensure_future(leave(client))
        while not fake.asked:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with FakeServer(tokens()) as fake:
        asyncio.run(leave(chat(fake)))
        assert fake.gone.wait(5)
    for reply in (Reply([30.0]), Reply([30.0], framing="raw")):
        with FakeServer(reply) as fake:
            asyncio.run(cancel(chat(fake), fake))
            assert fake.gone.wait(5)


def test_async_streams_run_side_by_side():
    async def run(client):
        async def one():
            async with client.astream(ASK) as pieces:
                return "".join([piece.text async for piece in pieces])

        return await asyncio.gather(*(one() for _ in range(8)))

    slow = ollama(ANSWER)
    with FakeServer(slow.but(parts=[0.05, *slow.parts])) as fake:
        assert asyncio.run(run(chat(fake))) == [ANSWER] * 8


def test_what_the_caller_does_between_pieces_is_not_counted():
    with FakeServer(ollama("abcdefghijkl")) as fake:
        pieces = chat(fake, limits=QUICK).stream(ASK)
        for _ in pieces:
            time.sleep(0.3)
        assert pieces.completion.content == "abcdefghijkl"
        assert pieces.completion.seconds < 0.9


# Prompts that do not fit


@pytest.mark.parametrize(
    ("read", "num_ctx", "prompt", "cut"),
    [
        (2050, 4096, "Plain words of a prompt. " * 800, True),  # half the context: what a cut leaves
        (4096, 4096, "x y " * 10, True),
        (2050, 4096, "Plain words of a prompt. " * 370, False),
        (900, None, "Plain words of a prompt. " * 800, True),
        (4000, None, "Plain words of a prompt. " * 800, False),  # 5 characters a token
        (None, None, "Plain words of a prompt. " * 800, False),
        (60, None, "-" * 8000 + "\n" * 4000, False),
    ],
)
def test_a_prompt_that_was_cut_in_silence_is_told(read, num_ctx, prompt, cut):
    request = Request("", prompt, options=Options(num_ctx=num_ctx))
    with FakeServer(ollama(ANSWER, prompt_eval_count=read)) as fake:
        if cut:
            caught = fails(blocking, chat(fake), "prompt_too_long", request)
            assert f"read {read:,} tokens of a context of" in str(caught)
            assert f"about {estimate_tokens(prompt):,}: the prompt was cut" in str(caught)
            assert caught.content == ANSWER
        else:
            assert chat(fake).complete(request).content == ANSWER


def test_thinking_up_to_the_limit_is_a_truncated_answer_without_content():
    for make, reply in (
        (chat, ollama("", "and so on", done_reason="length")),
        (compatible, openai("", "and so on", finish_reason="length")),
        (compatible, openai("", "and so on", key="reasoning", finish_reason="length")),
    ):
        with FakeServer(reply) as fake:
            got = make(fake).complete(ASK)
        assert (got.content, got.thinking, got.truncated) == ("", "and so on", True)


@both
@pytest.mark.parametrize("cut", [None, 9])
def test_a_stream_that_ends_before_its_first_word_is_asked_for_once_more_in_one_piece(run, cut):
    """llama-cpp-python sends an empty stream when a prompt is too long, and says why only where it does not stream."""
    hung_up = Reply([b": ping\n\n"], type="text/event-stream", cut=cut)
    why = "This model's maximum context length is 8192 tokens. However, you requested 18010 tokens."
    with FakeServer(hung_up, error(400, {"message": why, "code": "context_length_exceeded"})) as fake:
        caught = fails(run, compatible(fake), "prompt_too_long")
        assert "maximum context length is 8192 tokens" in str(caught)
    assert [body["stream"] for body in fake.bodies] == [True, False]
    assert "stream_options" not in fake.bodies[1]
    whole = {"choices": [{"message": {"content": ANSWER}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}}
    with FakeServer(hung_up, Reply([line(whole)], type="application/json")) as fake:
        got = run(compatible(fake))
    assert (got.content, got.prompt_tokens, got.attempts, got.dropped) == (ANSWER, 9, 2, ())
    with FakeServer(hung_up) as fake:
        fails(run, compatible(fake), "cut")
        assert len(fake.asked) == 2
    begun = Reply([spoken("openai"), b": ping\n\n"], type="text/event-stream", cut=len(spoken("openai")) + 9)
    with FakeServer(begun) as fake:
        assert fails(run, compatible(fake), "cut").content == "x"
        assert len(fake.asked) == 1


@both
def test_an_answer_that_ends_without_a_reason_was_broken_off(run):
    """llama-cpp-python ends a stream in good order when another request comes in."""
    parts = [event({"choices": [{"delta": {"content": text}, "finish_reason": None}]}) for text in ("{", '"a"')]
    with FakeServer(Reply([*parts, event(b"[DONE]")], type="text/event-stream")) as fake:
        caught = fails(run, compatible(fake), "cut")
    assert "--interrupt_requests False" in str(caught)
    assert caught.content == '{"a"'


def test_a_withheld_answer_is_no_answer():
    with FakeServer(openai("{", finish_reason="content_filter")) as fake:
        assert "content_filter" in str(fails(blocking, compatible(fake), "server_error"))


# Secrets


@both
@pytest.mark.parametrize("make", [chat, compatible])
def test_key_and_password_are_never_shown(make, run, caplog):
    caplog.set_level(logging.DEBUG)
    key, echo = "sk-very-secret-key", "x" * 280 + " sk-very-secret-key"
    replies = [error(status, echo) for status in (400, 401, 404, 429, 500)]
    replies += [Reply([line({"error": echo})]), Reply([echo.encode() + b"\n"]), Reply([line([echo])]), Reply([], cut=0)]
    replies += [Reply([b"data: " + line({"choices": key})]), Reply([line({"message": key, "response": [key]})])]
    for reply in replies:
        with FakeServer(reply) as fake:
            client = make(fake, api_key=key, retries=0)
            with pytest.raises(JudgeError) as caught:
                run(client)
            assert key.encode() in fake.heads[0]
        shown = [*traceback.format_exception(caught.value), repr(caught.value), repr(client), client.url]
        assert "very" not in "".join(shown)
    url = "http://ann:pass-word@127.0.0.1:9"
    client = make(url, retries=0)
    assert "pass-word" not in f"{fails(run, client, 'absent')} {client!r}"
    assert "very" not in caplog.text
    assert "pass-word" not in caplog.text


def test_a_proxy_for_the_outside_world_is_not_used_for_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeServer(ollama(ANSWER)) as fake:
        assert blocking(chat(fake)).content == ANSWER
        assert awaiting(chat(fake)).digest == DIGEST


# Arguments


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda: OllamaClient("m", "localhost:11434"), SettingsError, "must begin with http://"),
        (lambda: OllamaClient("m", api="embed"), InputError, "api must be one of 'chat', 'generate'"),
        (lambda: OllamaClient(" "), InputError, "model is blank"),
        (lambda: OpenAIClient("", "http://h"), InputError, "model is blank"),
        (lambda: OpenAIClient("m", "http://h", api_key="a\nb"), SettingsError, "api_key holds a character"),
        (lambda: OllamaClient("m", retries=-1), InputError, "retries must be at least 0"),
        (lambda: OllamaClient("m", backoff=-1), InputError, "backoff must lie in"),
        (lambda: Limits(total=0), InputError, "total must lie in"),
        (lambda: Limits(first_token=float("inf")), InputError, "first_token must lie in"),
        (lambda: Options(temperature=-1), InputError, "temperature must lie in"),
        (lambda: Options(num_ctx=0), InputError, "num_ctx must be at least 1"),
        (lambda: Options(max_tokens=1.5), InputError, "max_tokens must be an integer"),
        (lambda: Options(think="very"), InputError, "think must be one of"),
        (lambda: Request("s", "\udc80"), InputError, "prompt holds a lone surrogate"),
        (lambda: Request(None, "p"), InputError, "system is None"),
    ],
)
def test_refused_arguments(make, kind, says):
    with pytest.raises(kind, match=says):
        make()


def test_options_and_completions_are_plain_values():
    assert json.loads(json.dumps(Options().to_dict()))["seed"] == 0
    assert Completion(content="x") == Completion(content="x")
