"""Panels: nothing is judged twice, nothing is lost, and what fails is counted."""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from fake_server import FakeServer, Reply, line, ollama

import anima
from anima.errors import DataError, InputError, JudgeError
from anima.judge.decode import Delta
from anima.judge.ollama import OllamaClient
from anima.judge.request import Completion, Options
from anima.judge.rules import rules_verdict
from anima.judge.run import judge_panel
from anima.judge.verdict import Unscored, Verdict
from anima.metaeval import fallback_signal

REPLIES = [
    "Great question! Water boils at 100 degrees. I hope this helps you. Anything else you would like?",
    "I do not know. What did you measure at the summit? I said 100 degrees before, and that was wrong.",
    "On the one hand it rises. On the other hand it falls. Both have their merits, as you rightly say.",
]


class Judge:
    """Scores by a rule of the test; keeps what it was asked and how many calls ran at once."""

    def __init__(self, model, score, wait=0.0):
        self.model, self.score, self.wait = model, score, wait
        self.seeds, self.running, self.most = [], 0, 0
        self.lock = threading.Lock()

    def stream(self, request):
        return _Answer(self, request)

    complete = stream


class _Answer:
    def __init__(self, judge, request):
        self.judge, self.request, self.said = judge, request, False

    def __iter__(self):
        return self

    def __next__(self):
        if self.said:
            raise StopIteration
        self.said = True
        judge = self.judge
        with judge.lock:
            judge.seeds.append(self.request.options.seed)
            judge.running += 1
            judge.most = max(judge.most, judge.running)
        time.sleep(judge.wait)
        with judge.lock:
            judge.running -= 1
        number = next(i for i, reply in enumerate(REPLIES) if reply in self.request.prompt)
        self.text = judge.score(number, self.request.options.seed)
        return Delta("content", self.text)

    @property
    def completion(self):
        return Completion(content=self.text, model=self.judge.model, prompt_tokens=1000, output_tokens=100, seconds=1.5)

    def cancel(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def scored(value):
    return json.dumps({"authenticity_score": value})


@pytest.fixture(scope="module")
def analyses():
    found = anima.analyze_many(REPLIES, progress=False)
    return {f"r{i}": analysis for i, analysis in enumerate(found)}


def test_one_judge(analyses):
    panel = judge_panel(
        analyses, Judge("a:1b", lambda i, _: scored(20 * i)), progress=False, prices={"a:1b": (1.0, 10.0)}
    )
    frame = panel.to_frame()
    assert frame["item_id"].tolist() == ["r0", "r1", "r2"]
    assert frame["score"].tolist() == [0, 20, 40]
    assert not frame["fallback"].any()
    assert panel.mean("a:1b").value == 20
    assert (panel.unscored().value, panel.unscored("a:1b").n) == (0, 3)
    totals = panel.totals().iloc[0]
    assert (totals["prompt_tokens"], totals["output_tokens"], totals["seconds"]) == (3000, 300, 4.5)
    assert totals["usd"] == pytest.approx(3 * (1000 * 1 + 100 * 10) / 1e6)
    assert panel.summary() == "3 judgements of 3 replies by a:1b: 0 unscored (0.0%), 3,300 tokens, 0.01 US dollars."
    by_rules = judge_panel(analyses, "rules", progress=False).summary()
    assert "tokens not counted" in by_rules
    assert "0 tokens" not in by_rules
    one = judge_panel({"r0": analyses["r0"]}, "rules", progress=False).summary()
    assert one.startswith("1 judgement of 1 reply by the rules")
    assert json.dumps(panel.to_dict())
    assert "mean authenticity" in panel._repr_html_()


def test_repeats_have_seeds_of_their_own_and_feed_reliability(analyses):
    judge = Judge("a:1b", lambda i, seed: scored(20 * i + seed % 3))
    panel = judge_panel(analyses, judge, repeats=3, options=Options(seed=7), progress=False)
    assert Counter(judge.seeds) == {7: 3, 8: 3, 9: 3}
    assert sorted(set(panel.to_frame()["seed"])) == [7, 8, 9]
    found = panel.reliability("a:1b")
    assert found.noise == pytest.approx(1.0)
    assert found.reliability.value > 0.9
    assert panel.judge_scores()["r1"].per_judge == {"a:1b": {"authenticity": 21.0}}


def test_failed_judges_are_named_and_the_unscored_share_stands_beside_the_mean(analyses):
    """Public case BR064: what cannot be read is left out of the mean and counted beside it."""
    bad = Judge("bad:1b", lambda i, _: "no answer" if i == 1 else scored(60))
    panel = judge_panel(analyses, {"good": Judge("a:1b", lambda i, _: scored(20 * i)), "bad": bad}, progress=False)
    record = panel.judge_scores()["r1"]
    assert record.to_dict() == {
        "perJudge": {"good": {"authenticity": 20}},
        "perDimMean": {"authenticity": 20},
        "composite": 20,
        "failedJudges": ["bad"],
    }
    assert panel.judge_scores()["r2"].composite == 50
    assert panel.unscored("bad").value == pytest.approx(1 / 3)
    assert (panel.mean("bad").n, panel.mean("bad").n_dropped) == (2, 1)
    assert panel.failed()[["item_id", "judge", "kind"]].to_dict("records") == [
        {"item_id": "r1", "judge": "bad", "kind": "no_object"}
    ]
    agreement = panel.agreement()
    assert agreement.judges == ("good", "bad")
    assert agreement.per_dimension["authenticity"].accounting.n_used == 2


def test_an_item_that_nobody_scored_has_no_record(analyses):
    panel = judge_panel(analyses, Judge("a:1b", lambda i, _: "?" if i else scored(5)), progress=False)
    assert list(panel.judge_scores()) == ["r0"]
    nobody = judge_panel({"r1": analyses["r1"]}, Judge("a:1b", lambda *_: "?"), progress=False)
    assert nobody.judge_scores() == {}
    assert not nobody.mean("a:1b").defined


def test_rules_judge_alone_and_marked(analyses):
    panel = judge_panel(list(analyses.values()), "rules", progress=False)
    assert panel.fallback
    assert panel.to_frame()["fallback"].all()
    assert "fall-back" in panel.summary()
    assert "fallback" in panel.judge_scores()["0"].notes
    assert panel.judgements[1].outcome == rules_verdict(analyses["r1"])
    assert fallback_signal(panel.to_frame()).state == "alarm"
    with pytest.raises(InputError, match="judge alone"):
        judge_panel(analyses, {"x": "rules", "y": Judge("a:1b", None)})
    with pytest.raises(InputError, match='only the rules may be named "rules"'):
        judge_panel(analyses, {"rules": Judge("a:1b", None)})


def test_bad_arguments(analyses):
    judge = Judge("a:1b", None)
    for call, message in (
        (lambda: judge_panel({}, judge), "analyses is empty"),
        (lambda: judge_panel(["a reply"], judge), "analyses.*must be"),
        (lambda: judge_panel(analyses, []), "judges is empty"),
        (lambda: judge_panel(analyses, [judge, judge]), "two of one name"),
        (lambda: judge_panel(analyses, judge, repeats=0), "repeats"),
        (lambda: judge_panel(analyses, judge, prices={"b": (1, 1)}), "no judge of this panel"),
        (lambda: judge_panel(analyses, "rules", progress=False).mean("b"), "judge must be one of"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_as_many_calls_at_once_as_wanted(analyses):
    judge = Judge("a:1b", lambda i, _: scored(i), wait=0.02)
    judge_panel(analyses, judge, repeats=6, workers=3, progress=False)
    assert judge.most == 3


def test_a_run_goes_on_from_its_file(analyses, tmp_path):
    path = tmp_path / "runs" / "panel.jsonl"
    some = {name: analyses[name] for name in ("r0", "r1")}
    first = judge_panel(some, Judge("a:1b", lambda i, _: scored(i)), path=path, progress=False)
    judge = Judge("a:1b", lambda i, _: scored(90 + i))
    second = judge_panel(analyses, judge, path=path, progress=False)
    assert len(judge.seeds) == 1
    assert second.to_frame()["score"].tolist() == [0, 1, 92]
    assert second.judgements[:2] == first.judgements  # receipts and all
    # Another option is another question.
    third = Judge("a:1b", lambda i, _: scored(50 + i))
    judge_panel(some, third, path=path, options=Options(temperature=0.7), progress=False)
    assert len(third.seeds) == 2


def test_calls_that_failed_are_made_again_and_answers_without_a_score_are_not(analyses, tmp_path):
    def broken(i, _):
        if i == 0:
            raise JudgeError("it broke", "cut")
        return "no answer" if i == 1 else scored(3)

    path = tmp_path / "panel.jsonl"
    first = judge_panel(analyses, Judge("a:1b", broken), path=path, progress=False)
    assert first.to_frame()["kind"].tolist() == ["call_failed", "no_object", ""]
    judge = Judge("a:1b", lambda i, _: scored(40 + i))
    second = judge_panel(analyses, judge, path=path, progress=False)
    assert second.to_frame()["kind"].tolist() == ["", "no_object", ""]
    assert [one.outcome.status for one in second.judgements] == ["scored", "unscored", "scored"]
    assert isinstance(second.judgements[1].outcome, Unscored)
    assert isinstance(second.judgements[0].outcome, Verdict)


def test_a_strange_line_is_an_error_with_its_place(analyses, tmp_path):
    path = tmp_path / "panel.jsonl"
    path.write_text('{"schema": "other"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"panel\.jsonl:1: no judgement"):
        judge_panel(analyses, "rules", path=path, progress=False)


def test_an_interrupt_stops_the_calls_that_run(analyses):
    word = line({"message": {"content": "", "thinking": "Hm"}, "done": False})
    with FakeServer(Reply([word, 60.0, word])) as fake:

        def interrupt():
            until = time.monotonic() + 20
            while len(fake.asked) < 3 and time.monotonic() < until:
                time.sleep(0.01)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        waiting = threading.Thread(target=interrupt)
        waiting.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            judge_panel(analyses, OllamaClient("m", fake.url), progress=False)
        waiting.join()
        assert time.monotonic() - start < 50  # not the minute that the server takes
        assert fake.gone.wait(5)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("anima-judge")]


RUN = textwrap.dedent(
    """
    import dataclasses, pickle, sys
    from anima.judge.ollama import OllamaClient
    from anima.judge.run import judge_panel

    url, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    one = pickle.load(open(sys.argv[4], "rb"))
    items = {f"r{i}": dataclasses.replace(one, question=f"Number {i}?") for i in range(n)}
    panel = judge_panel(items, OllamaClient("m", url), path=path, workers=4, progress=False)
    print(len(panel.judgements), int(panel.to_frame()["score"].notna().sum()))
    """
)


@pytest.mark.parametrize("n", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_where_it_stopped(analyses, tmp_path, n):
    path, script = tmp_path / "panel.jsonl", tmp_path / "run.py"
    script.write_text(RUN, encoding="utf-8")
    (tmp_path / "analysis").write_bytes(pickle.dumps(analyses["r0"]))  # so that the runs need no model
    environment = os.environ | {"PYTHONPATH": str(Path(anima.__file__).parent.parent)}

    def lines():
        return path.read_bytes().count(b"\n") if path.exists() else 0

    good = ollama(scored(44), prompt_eval_count=4000)
    with FakeServer(good) as fake:
        command = [sys.executable, str(script), fake.url, str(path), str(n), str(tmp_path / "analysis")]
        for stop in (n // 10, n // 2):
            if n < 1000:  # the long run is killed at a place that nobody chose, the short one would be over by then
                # Some more than needed: a call of the killed run may still arrive and take one.
                fake.replies = [good] * (stop - lines() + 8) + [good.but(parts=[60.0, *good.parts])]
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while lines() < stop and process.poll() is None:
                time.sleep(0.01)
            assert process.poll() is None, process.communicate()
            process.kill()
            process.communicate()
        before, fake.replies = lines(), [good]
        last = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert last.stdout.split() == [str(n), str(n)]
        asked = Counter(body["messages"][-1]["content"] for body in fake.bodies)
    records = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    assert Counter(record["item_id"] for record in records) == {f"r{i}": 1 for i in range(n)}
    assert n // 2 <= before < n
    # Nothing that was written is asked again; at a kill, two calls per worker were on their way or waited to be written.
    assert len(asked) == n
    assert sum(asked.values()) - n <= 2 * 2 * 4
    assert math.isclose(sum(record["outcome"]["authenticity_score"] for record in records), 44 * n)
