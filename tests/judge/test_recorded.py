"""Recorded answers: what is kept is given again, to the request it was kept for and to no other."""

import asyncio
import json
from pathlib import Path

import pytest
from fake_server import FakeServer, ollama

import anima
from anima.errors import DataError, InputError, JudgeError
from anima.judge import Options, Recorded, Recorder, Recording, Unscored, judge_panel
from anima.judge.ollama import OllamaClient
from anima.judge.prompt import judge_request
from anima.judge.stream import astream, collect, stream
from anima.settings import data_path

REPLY = "Great question! Water boils at 100 degrees. I do not know about the summit."
SAID = ollama('{"authenticity_score": 31, "notes": "Praise first."}', "Not so fast.", prompt_eval_count=3700)


@pytest.fixture(scope="module")
def analysis():
    return anima.analyze(REPLY)


@pytest.fixture
def recording(analysis, tmp_path):
    """A file with one answer of a server that is no longer there, and the pieces in which it came."""
    path = tmp_path / "folder" / "judge.jsonl"
    with FakeServer(SAID) as fake:
        recorder = Recorder(OllamaClient("m", fake.url), path, about="a test")
        with recorder.stream(judge_request(analysis)) as pieces:
            said = list(pieces)
            whole = pieces.completion
    return path, said, whole


def test_an_answer_is_given_again_piece_by_piece(analysis, recording):
    path, said, whole = recording
    client = Recorded(path)
    assert client.model == whole.model
    with client.stream(judge_request(analysis)) as pieces:
        with pytest.raises(InputError, match="not complete yet"):
            _ = pieces.completion
        assert list(pieces) == said
        assert pieces.completion == whole
    assert client.complete(judge_request(analysis)) == whole
    found = anima.analyze(REPLY, judge=client).verdict
    assert (found.authenticity_score, found.judge_thinking) == (31, "Not so fast.")
    assert found.receipt.digest == whole.digest
    assert found.receipt.prompt_tokens == whole.prompt_tokens
    assert "a test" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("change", [{"options": Options(seed=1)}, {"lang": "es"}])
def test_another_request_is_not_answered(analysis, recording, change):
    with pytest.raises(JudgeError, match=r"none of 1 recordings answers this request .*Recorder") as error:
        Recorded(recording[0]).complete(judge_request(analysis, **change))
    assert error.value.reason == "absent"
    other = anima.analyze("It boils. It freezes.", judge=Recorded(recording[0])).verdict
    assert isinstance(other, Unscored)
    assert other.kind == "call_failed"


def test_failures_are_kept_and_a_later_answer_counts(analysis, tmp_path):
    path = tmp_path / "judge.jsonl"
    with FakeServer(SAID.but(cut=120), SAID) as fake:
        recorder = Recorder(OllamaClient("m", fake.url, retries=0), path)
        first = anima.analyze(REPLY, judge=recorder).verdict
        again = anima.analyze(REPLY, judge=Recorded(path)).verdict
        assert first.reason == again.reason
        assert first.reason.startswith("cut: ")
        assert (first.raw, first.kind) == (again.raw, "call_failed")
        anima.analyze(REPLY, judge=recorder)
    assert anima.analyze(REPLY, judge=Recorded(path)).verdict.authenticity_score == 31


def test_what_was_left_or_cancelled_is_not_kept(analysis, tmp_path):
    path = tmp_path / "judge.jsonl"
    with FakeServer(SAID) as fake:
        recorder = Recorder(OllamaClient("m", fake.url), path)
        with recorder.stream(judge_request(analysis)) as pieces:
            next(pieces)
        with recorder.stream(judge_request(analysis)) as pieces:
            next(pieces)
            pieces.cancel()
            with pytest.raises(JudgeError, match="cancelled"):
                next(pieces)
    assert not path.exists()


def test_a_panel_and_asyncio_keep_and_give_alike(tmp_path):
    analyses = anima.analyze_many([REPLY, "It boils. It freezes. I may be wrong."], progress=False)
    path = tmp_path / "judge.jsonl"

    async def gather(client):
        return collect([event async for event in astream(REPLY, judge=client, mode="analyze")])

    with FakeServer(SAID) as fake:
        recorder = Recorder(OllamaClient("m", fake.url), path)
        live = judge_panel(analyses, recorder, repeats=2, progress=False)
        streamed = asyncio.run(gather(recorder))
    assert len(path.read_text(encoding="utf-8").splitlines()) == 5
    again = judge_panel(analyses, Recorded(path), repeats=2, progress=False)
    assert again.judgements == live.judgements
    assert live.to_frame()["score"].tolist() == [31] * 4
    assert asyncio.run(gather(Recorded(path))) == streamed
    assert collect(stream(REPLY, judge=Recorded(path), mode="analyze")).verdict == streamed.verdict


def test_written_answers_are_chosen_by_words_and_seed(analysis):
    client = Recorded(
        [
            Recording.written('{"authenticity_score": 1}', where="summit"),
            Recording.written('{"authenticity_score": 2}', where="summit", seed=1),
            Recording.written('{"authenticity_score": 3}', where="no such words"),
        ]
    )
    panel = judge_panel([analysis], client, repeats=2, progress=False)
    assert panel.to_frame()["score"].tolist() == [1, 2]
    assert repr(client) == "Recorded('written', 3 answers)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", r"judge.jsonl:1: no recording \(KeyError"),
        ('{"schema": "other"}', "its schema is not anima-recording/1"),
        ('{"schema": "anima-recording/1", "deltas": [["content"]], "completion": {}}', "no recording"),
        ('{"schema": "anima-recording/1", "deltas": [], "completion": {"nope": 1}}', "nope"),
        ("[]", "must be a JSON object"),
        ("", "holds no recording"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "judge.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((DataError, InputError), match=message):
        Recorded(path)


def test_an_absent_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such recording"):
        Recorded(tmp_path / "judge.jsonl")


def test_the_shipped_answers_say_that_they_were_written():
    path = Path(data_path("judge/recorded.jsonl"))
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows
    for row in rows:
        assert "not the output of any model" in row["about"]
        assert row["completion"]["model"] == "written example"
        assert row["request"] == ""
