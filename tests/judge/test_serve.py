"""The HTTP door: a real server, a real client, and callers that misbehave."""

import contextlib
import importlib
import json
import socket
import sys
import threading
import time
import tomllib
from itertools import groupby
from pathlib import Path

import httpx
import pytest
from fake_server import FakeServer, Reply, line, ollama

import anima
from anima.errors import EmbeddingError, InputError, MissingDependencyError
from anima.judge.ollama import OllamaClient
from anima.judge.resolve import give_verdict

uvicorn = pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
from anima.judge.serve import create_app, serve  # noqa: E402

REPLY = "Great question! Water boils at 100 degrees. I do not know about the summit."
ANSWER = {"authenticity_score": 31, "notes": "key sk-ABCDEFGHIJKLMNOPQRSTUVWX", "not_applicable": False}
TABLE = tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8"))


@contextlib.contextmanager
def served(judge="rules", **settings):
    server = uvicorn.Server(uvicorn.Config(create_app(judge, **settings), port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def rules():
    with served() as client:
        yield client


def events(response):
    frames = response.text.split("\n\n")
    assert frames.pop() == ""
    rows = [frame.split("\n") for frame in frames]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in rows]


def order(found):
    return " ".join(name for name, _ in groupby(name for name, _ in found))


def test_everything_at_once(rules):
    answer = rules.post("/auth", json={"response": REPLY, "question": "Don't you love it?"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    body = answer.json()
    analysis = anima.analyze(REPLY, "Don't you love it?")
    assert [step["intent"] for step in body["intent_chain"]] == list(analysis.chain)
    assert body["analysis"]["authenticity_score"] == give_verdict(analysis, "rules").authenticity_score
    assert body["analysis"]["fallback"]
    assert body["refined_question"]["fallback"]
    assert body["cached"] is False
    assert body["latency_ms"] >= 0
    assert "rules" in body["report"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/auth/stream", "pre_analysis judge_loading complete refine_loading refine_complete"),
        ("/analyze/stream", "pre_analysis judge_loading complete"),
        ("/refine/stream", "refine_loading refine_complete"),
    ],
)
def test_streams(rules, path, names):
    answer = rules.post(path, json={"response": REPLY, "question": "Don't you love it?"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert order(events(answer)) == names


@pytest.mark.parametrize(
    ("status", "reason", "content"),
    [
        (400, "bad json", b""),
        (400, "bad json", b"{bad"),
        (400, "bad json: must be an object", b"[]"),
        (400, "bad json: must be an object", b"null"),
        (400, "bad json", b'{"response": "\xff"}'),
        (400, "bad json", b'{"response": NaN}'),
        (400, "stands twice", b'{"response": "a", "RESPONSE": "b"}'),
        (400, "nested too deeply", b'{"response": ' + b"[" * 100_000),
        (400, "lone surrogate", b'{"response": "\\ud800 and more"}'),
        (400, "response is required", b"{}"),
        (400, "response is required", b'{"response": null}'),
        (400, "response must be a string", b'{"response": 7}'),
        (400, "question must be a string", b'{"response": "a b c", "question": []}'),
        (400, "mode must be one of", b'{"response": "a b c", "mode": "otro"}'),
        (400, "question is required", b'{"mode": "refine", "question": " "}'),
        (413, "more than 1,048,576 bytes", b'{"response": "' + b"x" * 2**20 + b'"}'),
    ],
)
@pytest.mark.parametrize("path", ["/auth", "/auth/stream"])
def test_bad_input_is_refused_with_a_reason(rules, path, status, reason, content):
    answer = rules.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/plain")
    assert reason in answer.text
    assert answer.text.endswith("\n")


def test_what_is_announced_as_too_large_is_not_waited_for_and_leaving_is_no_error(caplog):
    head = "POST /auth HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    with served() as client, socket.create_connection((client.base_url.host, client.base_url.port), 5) as caller:
        caller.sendall(head.format(2**40).encode())
        assert b" 413 " in caller.recv(200)
        with socket.create_connection((client.base_url.host, client.base_url.port), 5) as other:
            other.sendall(head.format(9).encode() + b"{")
        assert client.get("/metrics").status_code == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_no_secret_of_the_rewriting_is_shown():
    key = "sk-ABCDEFGHIJKLMNOPQRSTUVWX"
    given = {"refined_question": f"Is {key} good?", "refinement_reasoning": key, "patterns_blocked": [key]}
    with FakeServer(ollama(json.dumps(given), key, prompt_eval_count=700)) as fake:
        with served(OllamaClient("m", fake.url)) as client:
            answer = client.post("/auth", json={"question": "Is it good, right?", "mode": "refine"})
        refined = anima.refine("Is it good, right?", judge=OllamaClient("m", fake.url))
    assert answer.json()["refined_question"]["refined_question"] == "Is [REDACTED] good?"
    assert key not in answer.text
    assert key not in refined._repr_html_()
    assert key in refined.refined


def test_strange_callers_are_refused(rules):
    body = {"response": REPLY}
    assert rules.post("/auth", data=body).status_code == 415
    assert rules.post("/auth", json=body, headers={"Host": "evil.example"}).status_code == 400
    assert rules.get("/auth").status_code == 405
    assert rules.get("/auth").text == "POST only\n"
    assert rules.get("/nothing").status_code == 404
    asked = rules.options("/auth", headers={"Origin": "http://a.example", "Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in asked.headers


def test_origins_are_allowed_on_request_only():
    with served(origins=["http://a.example"]) as client:
        for origin, allowed in (("http://a.example", "http://a.example"), ("http://b.example", None)):
            answer = client.get("/health", headers={"Origin": origin})
            assert answer.headers.get("access-control-allow-origin") == allowed


def test_what_is_loaded(rules):
    health = rules.get("/health").json()
    assert (health["status"], health["poles_ok"], health["judge"], len(health["intents"])) == ("ok", True, "rules", 20)
    assert health["vectors"] > 0 < health["golden_tests"]
    metrics = rules.get("/metrics").json()
    assert metrics["cache_size"] > 0
    assert rules.head("/health").status_code == 200
    for path in ("/", "/stream-demo"):
        page = rules.get(path)
        assert page.headers["content-type"].startswith("text/html")
        assert "<h1>anima</h1>" in page.text


def test_evaluate_and_calibrate(rules):
    assert rules.get("/evaluate").json()["total_tests"] > 0
    found = rules.post("/calibrate", json={"thresholds": [0.3, 0.5]})
    assert found.json()["target"] == "intent"
    assert rules.get("/evaluate?judge=true").status_code == 400
    assert (
        rules.post("/calibrate?apply=true", content=b"", headers={"Content-Type": "application/json"}).status_code
        == 400
    )
    for thresholds in ("x", [7], ["x"], {}):
        answer = rules.post("/calibrate", json={"thresholds": thresholds})
        assert answer.status_code == 400, answer.text


def test_a_judge_behind_it_is_shown_without_secrets():
    with (
        FakeServer(ollama(json.dumps(ANSWER), "Hm", prompt_eval_count=4000)) as fake,
        served(OllamaClient("m", fake.url)) as client,
    ):
        whole = client.post("/auth", json={"response": REPLY, "mode": "analyze"})
        parts = client.post("/auth/stream", json={"response": REPLY, "mode": "analyze"})
    assert whole.json()["analysis"]["notes"] == "key [REDACTED]"
    assert "sk-ABC" not in whole.text + parts.text
    found = dict(events(parts))
    assert found["thinking_chunk"] == {"chunk": "Hm", "cumulative_chars": 2, "seq": 1}
    assert found["complete"]["authenticity_score"] == whole.json()["analysis"]["authenticity_score"] == 31


def test_failures_are_told_apart():
    class Broken:
        id, dim = "broken", 4

        def embed(self, texts):
            raise EmbeddingError("nothing answers")

    with served(OllamaClient("m", "http://127.0.0.1:9", retries=0)) as client:
        answer = client.post("/auth", json={"response": REPLY, "question": "Why?"})
        assert answer.status_code == 200
        assert (answer.json()["analysis"]["status"], answer.json()["analysis"]["authenticity_score"]) == (
            "unscored",
            None,
        )
        assert answer.json()["refined_question"]["fallback"]
    with served(instrument=anima.instrument(embedder=Broken())) as client:
        answer = client.post("/auth", json={"response": REPLY})
        assert (answer.status_code, answer.text) == (500, "analyze failed: nothing answers\n")
        assert events(client.post("/auth/stream", json={"response": REPLY}))[0][1]["stage"] == "pre_analysis"


WORD = line({"message": {"content": "", "thinking": "Hm "}, "done": False})


def test_no_request_outlives_its_time():
    with FakeServer(Reply([WORD, 30.0, WORD])) as fake, served(OllamaClient("m", fake.url), time_limit=0.5) as client:
        assert client.post("/auth", json={"response": REPLY}).status_code == 504
        assert fake.gone.wait(5)
        fake.gone.clear()
        found = events(client.post("/auth/stream", json={"response": REPLY}))
        assert found[-1][1]["stage"] == "time_limit"
        assert fake.gone.wait(5)


@pytest.mark.parametrize("path", ["/auth", "/auth/stream"])
def test_a_caller_who_leaves_stops_the_judge(path):
    with FakeServer(Reply([WORD, 30.0, WORD])) as fake, served(OllamaClient("m", fake.url)) as client:
        body = json.dumps({"response": REPLY}).encode()
        with socket.create_connection((client.base_url.host, client.base_url.port)) as caller:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            caller.sendall(head.encode() + body)
            until = time.monotonic() + 20
            while not fake.asked and time.monotonic() < until:
                time.sleep(0.01)
        assert fake.gone.wait(5)


def test_other_addresses_need_names():
    with pytest.raises(InputError, match="give the names it will be called by"):
        serve("0.0.0.0", judge="rules")


def test_without_the_extra_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "anima.judge.serve")
    with pytest.raises(MissingDependencyError, match=r"'.\[serve\]"):
        importlib.import_module("anima.judge.serve")


@pytest.mark.oracle
def test_recorded_requests(rules, oracle):
    folder = oracle / "oracle" / "authenticity"
    rows = [json.loads(row) for row in (folder / "A_http.jsonl").read_text(encoding="utf-8").split("\n") if row]
    also = (
        "no_question",
        "no_response",
        "empty_response",
        "refine_noq",
        "empty_obj",
        "newline_only",
        "emoji_only",
        "refine_default",
    )
    more = (folder / "A_auth_cases.jsonl").read_text(encoding="utf-8").split("\n")
    rows += [case for row in more if row and ((case := json.loads(row))["id"] in also or case["id"].startswith("raw_"))]
    differing = {}
    for case in rows:
        headers = {"Content-Type": "application/json"}
        content = (case["request"] or "").encode()
        answer = rules.request(case["method"], case["path"], content=content, headers=headers)
        ours, theirs = answer.status_code, case["status"]
        if ours == theirs == 200 and "events" in case:
            # Rules say what they have to say at once.
            said = ("thinking_chunk", "thinking_complete", "analysis_chunk")
            recorded = [(event["event"], None) for event in case["events"] if event["event"] not in said]
            ours, theirs = order(events(answer)), order(recorded)
        if ours != theirs:
            differing["http-" + case["id"].strip("/").replace("/", "_")] = ours
        if theirs == 400:
            assert answer.headers["content-type"].startswith("text/plain")
    assert differing == {name: entry["result"] for name, entry in TABLE.items() if name.startswith("http-")}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lang": "fr"}, "lang must be one of 'en', 'es', got 'fr'"),
        ({"origins": ["foo"]}, "origins: 'foo' is no web origin: write it as browsers do"),
        ({"origins": ["http://a.example/"]}, "is no web origin"),
        ({"origins": ["http://A.example"]}, "is no web origin"),
        ({"origins": "http://a.example"}, "origins must be a list of str"),
        ({"hosts": ["http://a.example"]}, "hosts: 'http://a.example' is no name of a server: write it without scheme"),
        ({"hosts": ["a.example:80"]}, "is no name of a server"),
    ],
)
def test_settings_that_no_request_could_meet_are_refused_at_the_start(settings, message):
    with pytest.raises(InputError, match=message):
        create_app("rules", **settings)


def test_settings_of_every_kind_are_taken():
    create_app(
        "rules", origins=["*", "http://a.example:3000", "https://[::1]:80"], hosts=["*.a.org", "::1", "[::1]", "*"]
    )
