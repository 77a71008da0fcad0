"""Servers that behave and servers that do not: no network, and a real misbehaving one on this machine."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import time
import warnings
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import numpy as np
import pytest

from anima.embedding import CachedEmbedder, OllamaEmbedder, OpenAIEmbedder, server
from anima.errors import (
    BadEmbeddingError,
    EmbeddingError,
    InputError,
    ModelNotFoundError,
    ServerUnavailableError,
    SettingsError,
    TruncationWarning,
)


def vector(text, dim=3):
    """What the made-up model says: far from unit length, different for different texts."""
    return [float(len(text)), *map(float, np.frombuffer(text.encode()[: dim - 1].ljust(dim - 1), dtype="u1"))]


def unit_rows(texts):
    rows = np.array([vector(text) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class Ollama:
    """The good server; ``asked`` is what it was sent, and a test changes what it wants to go wrong."""

    def __init__(self, answer=None):
        self.asked, self.answer, self.lock = [], answer, threading.Lock()

    def __call__(self, request):
        body = json.loads(request.content) if request.content else None
        with self.lock:
            self.asked.append((request.url.path, body))
        if self.answer and (given := self.answer(request.url.path, body)) is not None:
            return given
        if request.url.path == "/api/embed":
            return httpx.Response(200, json={"embeddings": [vector(text) for text in body["input"]]})
        if request.url.path == "/api/embeddings":
            return httpx.Response(200, json={"embedding": vector(body["prompt"])})
        if request.url.path == "/api/tags":
            return httpx.Response(
                200, json={"models": [{"name": "nomic-embed-text:latest"}, {"name": "bge-m3:latest"}]}
            )
        return httpx.Response(404, text="404 page not found")

    def paths(self):
        return Counter(path for path, _ in self.asked)


def ollama(fake, **options):
    return OllamaEmbedder("m", "http://box:1", transport=httpx.MockTransport(fake), **{"backoff": 0.0, **options})


def openai(fake, **options):
    return OpenAIEmbedder("m", "http://box:1", transport=httpx.MockTransport(fake), **{"backoff": 0.0, **options})


def always(status=200, **content):
    return lambda path, body: httpx.Response(status, **content) if body else None


# What works


def test_ollama_vectors_are_normalised_in_order_and_blank_texts_are_not_sent():
    fake = Ollama()
    with ollama(fake) as embedder:
        got = embedder.embed(["abc", " ", "de", ""])
    assert got.dtype == np.float32
    assert np.array_equal(got[[0, 2]], unit_rows(["abc", "de"]))
    assert np.isnan(got[[1, 3]]).all()
    assert fake.asked == [
        ("/api/embed", {"model": "m", "keep_alive": "10m", "input": ["abc", "de"], "truncate": False})
    ]
    assert (embedder.dim, embedder.id) == (3, "ollama:m")
    assert repr(embedder) == "OllamaEmbedder('m', 'http://box:1')"


def test_dim_is_asked_once_with_a_probe_or_given():
    fake = Ollama()
    with ollama(fake) as embedder:
        assert (embedder.dim, embedder.dim) == (3, 3)
        assert embedder.embed([]).shape == (0, 3)
    assert len(fake.asked) == 1
    fake = Ollama()
    with ollama(fake, dim=3) as embedder:
        assert embedder.embed([""]).shape == (1, 3)
    assert not fake.asked


def test_batches_are_bounded_by_count_and_characters_and_keep_their_order():
    fake = Ollama(lambda path, body: time.sleep(0.02 if "t0" in body["input"] else 0))  # the first one comes last
    texts = [f"t{i}" for i in range(10)] + ["x" * 30, "y" * 100, "z"]
    with ollama(fake, batch_size=4, batch_chars=40, parallel=3) as embedder:
        assert np.array_equal(embedder.embed(texts), unit_rows(texts))
    sent = sorted(tuple(body["input"]) for _, body in fake.asked)
    assert sent == sorted([tuple(texts[:4]), tuple(texts[4:8]), tuple(texts[8:11]), (texts[11],), (texts[12],)])


def test_parallel_requests_are_bounded():
    running, most, lock = 0, 0, threading.Lock()

    def answer(path, body):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    with ollama(Ollama(answer), batch_size=1, parallel=2) as embedder:
        embedder.embed([f"t{i}" for i in range(12)])
    assert most == 2


def test_an_old_ollama_is_asked_one_by_one():
    fake = Ollama(lambda path, body: httpx.Response(404, text="404 page not found") if path == "/api/embed" else None)
    with ollama(fake) as embedder:
        assert np.array_equal(embedder.embed(["abc", "de"]), unit_rows(["abc", "de"]))
        embedder.embed(["f"])
    assert fake.paths() == {"/api/embed": 1, "/api/embeddings": 3}


def test_openai_rows_are_put_into_order_by_their_index():
    def fake(request):
        assert request.url.path == "/v1/embeddings"
        assert request.headers["authorization"] == "Bearer sk-123456"
        texts = json.loads(request.content)["input"]
        rows = [{"index": i, "embedding": vector(text)} for i, text in enumerate(texts)]
        return httpx.Response(200, json={"object": "list", "data": rows[::-1], "error": None})

    with openai(fake, api_key="sk-123456") as embedder:
        assert np.array_equal(embedder.embed(["abc", "de", "f"]), unit_rows(["abc", "de", "f"]))
    assert embedder.id == "openai:m@box:1"


def test_works_inside_a_running_event_loop():
    async def cell():
        with ollama(Ollama(), batch_size=1) as embedder:
            return embedder.embed(["a", "b"])

    assert np.array_equal(asyncio.run(cell()), unit_rows(["a", "b"]))


def test_vectors_are_normalised_in_float64():
    tiny = [1e-200, 1e-200, 0]
    with ollama(Ollama(always(json={"embeddings": [tiny]}))) as embedder:
        assert np.array_equal(embedder.embed(["a"])[0], np.float32([0.5**0.5, 0.5**0.5, 0]))


@pytest.mark.parametrize(
    ("url", "expected"),
    [("http://h:1/", "http://h:1"), ("http://h:1/api", "http://h:1"), (" http://h/x/ ", "http://h/x")],
)
def test_ollama_addresses(url, expected):
    assert OllamaEmbedder("m:latest", url).url == expected
    assert OllamaEmbedder("m:latest", url).id == "ollama:m"


def test_openai_addresses():
    assert OpenAIEmbedder("m", "https://h/v1/").id == OpenAIEmbedder("m", "https://h").id == "openai:m@h"


# A text too long for the model


def test_only_the_long_text_is_cut_and_the_warning_names_it():
    def answer(path, body):
        if not body["truncate"] and any(len(text) > 20 for text in body["input"]):
            return httpx.Response(400, json={"error": "the input length exceeds the context length"})
        return None

    fake = Ollama(answer)
    texts = ["a", "b", "long " * 9, "c", "d"]
    with (
        ollama(fake) as embedder,
        pytest.warns(TruncationWarning, match=r"'long .*\(45 characters\) is that of its beginning") as caught,
    ):
        assert np.array_equal(embedder.embed(texts), unit_rows(texts))
    assert len(caught) == 1
    assert [body["input"] for _, body in fake.asked if body["truncate"]] == [["long " * 9]]


@pytest.mark.parametrize("status", [400, 500])
def test_a_long_text_is_an_error_where_it_cannot_be_cut_and_is_not_sent_again(status):
    fake = Ollama(always(status, json={"error": {"message": "maximum context length is 512 tokens"}}))
    with openai(fake) as embedder, pytest.raises(EmbeddingError, match=r"longer than the model reads: .*512 tokens"):
        embedder.embed(["a"])
    assert len(fake.asked) == 1


# Errors told apart


@pytest.mark.parametrize(
    ("status", "content", "error", "says"),
    [
        (200, {"json": {"embeddings": []}}, BadEmbeddingError, "gave 0 embeddings for 1 texts"),
        (200, {"json": {"embeddings": [[1.0], [2.0]]}}, BadEmbeddingError, "gave 2 embeddings for 1 texts"),
        (200, {"json": {"embeddings": [[]]}}, BadEmbeddingError, r"an empty embedding \(is it an .*\) for 'abc'"),
        (200, {"json": {"embeddings": [[1.0, None]]}}, BadEmbeddingError, "holding 'None' instead of a number"),
        (200, {"json": {"embeddings": [["1.0"]]}}, BadEmbeddingError, "holding '1.0' instead of a number"),
        (200, {"json": {"embeddings": [[True]]}}, BadEmbeddingError, "holding 'True'"),
        (200, {"json": {"embeddings": ["x"]}}, BadEmbeddingError, "gave 'x' instead of a list"),
        (200, {"content": b'{"embeddings": [[1.0, NaN]]}'}, BadEmbeddingError, "NaN or infinity, first at place 1"),
        (200, {"content": b'{"embeddings": [[-Infinity, 1]]}'}, BadEmbeddingError, "NaN or infinity, first at place 0"),
        (200, {"content": b'{"embeddings": [[1%s]]}' % (b"0" * 400)}, BadEmbeddingError, "NaN or infinity"),
        (200, {"json": {"embeddings": [[0.0, 0]]}}, BadEmbeddingError, "zeros only"),
        (200, {"json": {"embedding": [1.0]}}, BadEmbeddingError, "no list 'embeddings' among .*'embedding'"),
        (200, {"json": {"embeddings": None}}, BadEmbeddingError, "no list 'embeddings'"),
        (200, {"json": {"error": "out of memory"}}, EmbeddingError, "refused .*out of memory"),
        (200, {"json": [1.0, 2.0]}, BadEmbeddingError, r"no JSON object: is the URL right\? It begins '\[1"),
        (200, {"text": ""}, BadEmbeddingError, "no JSON object"),
        (200, {"content": b"\xff\xfe"}, BadEmbeddingError, "no JSON object"),
        (200, {"html": "<html>Log in</html>"}, BadEmbeddingError, "an HTML page: is the URL right"),
        (200, {"text": "  <!doctype html>"}, BadEmbeddingError, "an HTML page"),
        (400, {"json": {"error": "bad input"}}, EmbeddingError, r"refused \(status 400\): 'bad input'"),
        (401, {"json": {"error": {"message": "no key"}}}, EmbeddingError, "check the API key. 'no key'"),
        (302, {"headers": {"location": "https://x/login"}}, EmbeddingError, "status 302, points to 'https://x/login'"),
        (404, {"text": "404 page not found"}, ServerUnavailableError, "no /api/embeddings .*is it the right server"),
        (503, {"text": "busy"}, ServerUnavailableError, r"failed 3 times \(status 503\): 'busy'"),
        (404, {"json": {"error": 'model "m" not found, try pulling it first'}}, ModelNotFoundError, "ollama pull m"),
    ],
)
def test_each_wrong_answer_has_its_error(status, content, error, says):
    """Public cases BR074 (no embeddings, with status 200), BR076 (fewer or empty ones) and BR080 (a model not pulled)."""
    with ollama(Ollama(always(status, **content))) as embedder:
        with pytest.raises(error, match=says) as caught:
            embedder.embed(["abc"])
        assert type(caught.value) is error or error is ServerUnavailableError
        assert "ollama:m" in str(caught.value)


def test_a_missing_model_lists_those_that_are_there_and_is_asked_for_once():
    fake = Ollama(always(404, json={"error": "model 'm' not found"}))
    with ollama(fake) as embedder, pytest.raises(ModelNotFoundError) as caught:
        embedder.embed(["a"])
    assert str(caught.value) == (
        "ollama:m at http://box:1: \"model 'm' not found\". It has bge-m3:latest, nomic-embed-text:latest. "
        "Get it with `ollama pull m`"
    )
    assert fake.paths() == {"/api/embed": 1, "/api/tags": 1}


@pytest.mark.parametrize(
    "tags", [httpx.Response(500), httpx.Response(200, text="<html>"), httpx.Response(200, json={})]
)
def test_a_missing_model_is_told_even_where_no_list_is(tags):
    def answer(path, body):
        return tags if path == "/api/tags" else httpx.Response(404, json={"error": "model 'm' not found"})

    with ollama(Ollama(answer)) as embedder, pytest.raises(ModelNotFoundError, match='not found"\\. Get it with'):
        embedder.embed(["a"])


def test_a_missing_model_of_an_openai_server():
    def fake(request):
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": f"model-{i:02}"} for i in range(12)]})
        return httpx.Response(
            404, json={"error": {"message": "The model `m` does not exist.", "code": "model_not_found"}}
        )

    with openai(fake) as embedder, pytest.raises(ModelNotFoundError, match=r"model-00, .*model-09 and 2 more. Correct"):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}], r"indices '\[0, 0\]' are not 0 to 1"),
        ([{"index": None, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}], "are not 0 to 1"),
        ([{"embedding": [1.0]}, {}], "gave 'None' instead of a list"),
        ([{"embedding": [1.0]}], "1 embeddings for 2 texts"),
        ([[1.0], [2.0]], "no list 'data' of objects"),
        ({"a": 1}, "no list 'data' of objects"),
    ],
)
def test_wrong_openai_answers(data, says):
    fake = httpx.Response(200, json={"data": data})
    with openai(lambda request: fake) as embedder, pytest.raises(BadEmbeddingError, match=says):
        embedder.embed(["a", "b"])


def test_a_changed_dimension_is_noticed_within_and_between_calls():
    says = r"an embedding of 1 numbers, not 2 as expected \(changed model\?\), for 'b'"
    fake = Ollama(always(json={"embeddings": [[1.0, 2.0], [1.0]]}))
    with ollama(fake) as embedder, pytest.raises(BadEmbeddingError, match=says):
        embedder.embed(["a", "b"])
    sizes = iter((2, 3))
    with ollama(Ollama(lambda path, body: httpx.Response(200, json={"embeddings": [[1.0] * next(sizes)]}))) as embedder:
        embedder.embed(["a"])
        with pytest.raises(BadEmbeddingError, match="3 numbers, not 2"):
            embedder.embed(["b"])
    with ollama(Ollama(), dim=8) as embedder, pytest.raises(BadEmbeddingError, match="3 numbers, not 8"):
        embedder.embed(["a"])


def test_one_bad_batch_of_many_fails_the_call():
    fake = Ollama(lambda path, body: httpx.Response(400, json={"error": "no"}) if body["input"] == ["t3"] else None)
    with ollama(fake, batch_size=1, parallel=2) as embedder, pytest.raises(EmbeddingError, match="'no'"):
        embedder.embed([f"t{i}" for i in range(200)])
    assert len(fake.asked) < 200


# Repeats


@pytest.mark.parametrize(
    "trouble",
    [
        lambda: httpx.Response(429),
        lambda: httpx.Response(500, text="oops"),
        lambda: httpx.Response(503, headers={"retry-after": "soon"}),
        lambda: httpx.ConnectError("refused"),
        lambda: httpx.ConnectTimeout("slow"),
        lambda: httpx.ReadTimeout("slow"),
        lambda: httpx.RemoteProtocolError("cut"),
    ],
)
def test_passing_troubles_are_tried_again_and_no_more_often_than_said(trouble):
    def run(n_troubles):
        left = n_troubles

        def answer(path, body):
            nonlocal left
            left -= 1
            if left < 0:
                return None
            made = trouble()
            if isinstance(made, Exception):
                raise made
            return made

        fake = Ollama(answer)
        with ollama(fake, retries=2) as embedder:
            try:
                return embedder.embed(["a"]), len(fake.asked)
            except ServerUnavailableError as error:
                return error, len(fake.asked)

    got, asked = run(2)
    assert np.array_equal(got, unit_rows(["a"]))
    assert asked == 3
    error, asked = run(3)
    assert isinstance(error, ServerUnavailableError)
    assert asked == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
def test_what_a_repeat_cannot_mend_is_not_repeated(status):
    fake = Ollama(always(status, json={"error": "no"}))
    with openai(fake) as embedder, pytest.raises(EmbeddingError):
        embedder.embed(["a"])
    assert len(fake.asked) == 1


def test_retry_after_is_honoured_within_a_bound(monkeypatch):
    pauses = []
    monkeypatch.setattr(server.time, "sleep", pauses.append)
    answers = iter(["7", formatdate(time.time() + 20, usegmt=True), "-3", "nan"])

    def answer(path, body):
        value = next(answers, None)
        return httpx.Response(429, headers={"retry-after": value}) if value else None

    with ollama(Ollama(answer), retries=4, backoff=0.001) as embedder:
        embedder.embed(["a"])
    assert pauses[0] == 7
    assert 17 < pauses[1] <= 20
    assert max(pauses[2:]) < 0.02
    fake = Ollama(always(503, headers={"retry-after": "3600"}))
    with ollama(fake) as embedder, pytest.raises(ServerUnavailableError, match="asks to wait 3600 s"):
        embedder.embed(["a"])
    assert len(fake.asked) == 1


def test_pauses_double(monkeypatch):
    pauses = []
    monkeypatch.setattr(server.time, "sleep", pauses.append)
    with ollama(Ollama(always(500)), retries=3, backoff=1.0) as embedder, pytest.raises(ServerUnavailableError):
        embedder.embed(["a"])
    assert len(pauses) == 3
    assert all(0.8 * 2**i <= pause <= 1.2 * 2**i for i, pause in enumerate(pauses))


# Secrets


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
def test_the_key_is_never_shown(status, monkeypatch):
    key = "sk-very-secret-key"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    echo = "x" * 280 + f" Incorrect API key provided: {key}"  # stands where messages are cut
    seen = []

    def fake(request):
        seen.append(request.headers["authorization"])
        return httpx.Response(status, json={"error": {"message": echo, "type": key}, key: key})

    embedder = OpenAIEmbedder("m", "http://ann:pass-word@box", transport=httpx.MockTransport(fake), retries=0)
    with embedder, pytest.raises(EmbeddingError) as caught:
        embedder.embed(["a"])
    assert seen
    text = f"{caught.value!s} {caught.value!r} {embedder!r} {embedder.id} {embedder.url}"
    assert "very" not in text
    assert "pass-word" not in text
    assert caught.value.__cause__ is None


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it():
    for key in ("sk-secret\nline", "sk-secretñ"):
        with pytest.raises(SettingsError, match="api_key holds a character") as caught:
            OpenAIEmbedder("m", "http://h", api_key=key)
        assert "secret" not in str(caught.value)


def test_user_and_password_of_the_address_are_sent():
    def fake(request):
        assert request.headers["authorization"] == "Basic YW5uOnB3"
        return httpx.Response(200, json={"embeddings": [[1.0]]})

    with OllamaEmbedder("m", "http://ann:pw@h", transport=httpx.MockTransport(fake)) as embedder:
        assert embedder.embed(["a"]).tolist() == [[1.0]]


# Arguments


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: OllamaEmbedder("m", "localhost:11434"), SettingsError, "must begin with http://"),
        (lambda: OllamaEmbedder("m", "ftp://h"), SettingsError, "must begin with http://"),
        (lambda: OllamaEmbedder("m", "http://"), SettingsError, "name a host"),
        (lambda: OllamaEmbedder("m", "http://h:port"), SettingsError, "url cannot be read"),
        (lambda: OllamaEmbedder("m", timeout=0), InputError, "timeout must lie in"),
        (lambda: OllamaEmbedder("m", connect_timeout=float("nan")), InputError, "connect_timeout must lie in"),
        (lambda: OllamaEmbedder("m", retries=-1), InputError, "retries must be at least 0"),
        (lambda: OllamaEmbedder("m", batch_size=0), InputError, "batch_size must be at least 1"),
        (lambda: OllamaEmbedder("m", parallel=0), InputError, "parallel must be at least 1"),
        (lambda: OllamaEmbedder(" "), InputError, "model is blank"),
        (lambda: OpenAIEmbedder("", "http://h"), InputError, "model is blank"),
        (lambda: ollama(Ollama()).embed(["ok", None]), InputError, r"texts \(item 1\) is None"),
        (lambda: ollama(Ollama()).embed(["\udc80"]), InputError, "lone surrogate"),
    ],
)
def test_refused_arguments(make, error, says):
    with pytest.raises(error, match=says):
        make()


# A real server, misbehaving


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["input"][0]
        self.server.asked.append(text)
        if text == "slow":
            self.server.stop.wait(5)
        payload = json.dumps(
            {"embeddings": [vector(t, 4 if text == "wrong dim" else 3) for t in body["input"]]}
        ).encode()
        kind, status = "application/json", 200
        if text == "html":
            payload, kind = b"<html><body>Welcome to the proxy</body></html>", "text/html"
        if text == "no model":
            payload, status = b'{"error":"model \\"m\\" not found, try pulling it first"}', 404
        if text == "429 then ok" and len(self.server.asked) == 1:
            status = 429
        if text == "hang up":
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        if status == 429:
            self.send_header("retry-after", "0")
        self.end_headers()
        if text == "cut":
            payload, self.close_connection = payload[:10], True
        self.wfile.write(payload)

    def do_GET(self):
        payload = b'{"models": [{"name": "other"}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


@pytest.fixture
def real():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.asked, http.stop, http.daemon_threads = [], threading.Event(), True
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield http
        http.stop.set()
        http.shutdown()
        thread.join()


def at(http, **options):
    return OllamaEmbedder("m", f"http://127.0.0.1:{http.server_port}/", **{"backoff": 0.0, "retries": 1, **options})


@pytest.mark.parametrize(
    ("text", "asked", "error", "says"),
    [
        (
            "slow",
            2,
            ServerUnavailableError,
            "no answer within 0.2 s: the model may still be loading; raise timeout .after 2",
        ),
        ("cut", 2, ServerUnavailableError, "broke off before the answer was complete"),
        ("hang up", 2, ServerUnavailableError, "broke off before the answer was complete"),
        ("html", 1, BadEmbeddingError, "an HTML page"),
        ("no model", 1, ModelNotFoundError, "It has other. Get it with `ollama pull m`"),
    ],
)
def test_a_real_server_that_misbehaves(real, text, asked, error, says):
    with at(real, timeout=0.2) as embedder, pytest.raises(error, match=says):
        embedder.embed([text])
    assert len(real.asked) == asked


def test_a_real_server_that_recovers_and_one_that_changes(real):
    with at(real) as embedder:
        assert np.array_equal(embedder.embed(["429 then ok"]), unit_rows(["429 then ok"]))
        assert real.asked == ["429 then ok"] * 2
        with pytest.raises(BadEmbeddingError, match="4 numbers, not 3"):
            embedder.embed(["wrong dim"])


def test_no_server_says_how_to_start_it():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        OllamaEmbedder("m", f"http://127.0.0.1:{port}", retries=1, backoff=0.0) as embedder,
        pytest.raises(ServerUnavailableError, match=r"nothing answers: start it with `ollama serve`.*after 2 attempts"),
    ):
        embedder.embed(["a"])


def test_a_proxy_for_the_outside_world_is_not_used_for_this_machine(real, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with at(real) as embedder:
        assert embedder.embed(["a"]).shape == (1, 3)


def test_connections_are_closed_with_the_embedder_or_when_it_goes(real):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        embedder = at(real, batch_size=1)
        embedder.embed(["a", "b", "c"])
        embedder.close()
        embedder.close()
        with pytest.raises(RuntimeError, match="closed"):
            embedder.embed(["a"])
        other = at(real)
        other.embed(["a"])
        client = other._server._client
        del other
        gc.collect()
        assert client.is_closed


def test_a_cache_with_a_known_dim_answers_without_the_server(real, tmp_path):
    path = tmp_path / "vectors.sqlite"
    with at(real) as embedder:
        first = CachedEmbedder(embedder, path=path).embed(["a", "b"])
    gone = OllamaEmbedder("m", "http://127.0.0.1:9", dim=3)
    assert np.array_equal(CachedEmbedder(gone, path=path).embed(["b", "a"]), first[::-1])
