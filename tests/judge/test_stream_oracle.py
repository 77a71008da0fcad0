"""Recorded streams of the reference service, played to our client: the same events, but for the differences of the table."""

from __future__ import annotations

import json
import tomllib
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from fake_server import FakeServer, Reply, line

from anima.authenticity import Instrument, Reference, Settings
from anima.embedding import TableEmbedder
from anima.judge.ollama import OllamaClient
from anima.judge.parse import split_thinking
from anima.judge.stream import stream

pytestmark = pytest.mark.oracle

TABLE = tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8"))
RUNS = {
    "A": ("data", Settings(rules="reference")),
    "B": ("data_poolpoles", Settings(rules="reference", intent_threshold=0.2, pole_low=-0.02, pole_high=0.02)),
}
VERDICT = (
    "authenticity_score", "dominant_strategy", "depth_assessment", "trajectory_predictability", "pattern_breaks",
    "genuine_elements", "notes",
)  # fmt: skip
REFINED = ("original_question", "refined_question", "refinement_reasoning", "patterns_blocked", "judge_thinking")


@pytest.fixture(scope="module", params=RUNS)
def run(request, oracle):
    folder = oracle / "oracle" / "authenticity"
    with np.load(folder / "embeddings.npz", allow_pickle=False) as table:
        embedder = TableEmbedder([json.loads(text) for text in table["texts"]], table["vectors"], id="table")
    data, settings = RUNS[request.param]
    instrument = Instrument(Reference.from_dcs_gate(folder / data), embedder, settings)
    text = (folder / f"{request.param}_stream.jsonl").read_text(encoding="utf-8")
    return instrument, [json.loads(row) for row in text.split("\n") if row]


def replies(case):
    """The judge's answers that led to a recorded stream, as a server sends them."""
    parts = []
    for event in case["events"]:
        if event["event"] in ("thinking_chunk", "analysis_chunk"):
            key = "thinking" if event["event"] == "thinking_chunk" else "response"
            parts.append(line({"model": "m", key: event["data"]["chunk"], "done": False}))
    done = line({"model": "m", "done": True, "prompt_eval_count": 5000})
    if case["id"] == "s_junk":
        parts.insert(2, b"no line of the protocol\n")
    if case["id"] != "s_nodone":
        parts.append(done)
    refined = [event["data"] for event in case["events"] if event["event"] == "refine_complete"]
    answers = [Reply(parts)] if any(event["event"] == "judge_loading" for event in case["events"]) else []
    for data in refined:
        # Where the reasoning was kept apart from the answer is not recorded.
        said = {"thinking": data.get("judge_thinking", ""), "response": json.dumps(data)}
        answers.append(Reply([line({"model": "m", **said, "done": False}), done]))
    return answers


def looked_at(events):
    """What of a stream is compared."""
    names = [event["event"] for event in events]
    texts = {
        name: "".join(event["data"]["chunk"] for event in events if event["event"] == f"{kind}_chunk")
        for name, kind in (("thinking", "thinking"), ("answer", "analysis"))
    }
    data = {event["event"]: event["data"] for event in events}
    ending = {key: data["complete"].get(key) for key in VERDICT} if "complete" in data else None
    if ending is not None:
        ending["judge_thinking"] = data["complete"].get("judge_thinking", "").strip()
    refined = {key: data["refine_complete"].get(key) for key in REFINED} if "refine_complete" in data else None
    return {"order": " ".join(name for name, _ in groupby(names)), **texts, "ending": ending, "refined": refined}


def test_streams(run):
    instrument, cases = run
    assert len(cases) == 13
    differing = {}
    for case in cases:
        asked = json.loads(case["request"])
        mode = "analyze" if case["path"] == "/analyze/stream" else asked.get("mode") or "both"
        with FakeServer(*replies(case)) as fake:
            client = OllamaClient("m", fake.url, api="generate", retries=0)
            found = stream(asked.get("response"), asked["question"], judge=client, mode=mode, instrument=instrument)
            events = [event.to_dict() for event in found]
        ours, theirs = looked_at(events), looked_at(case["events"])
        fields = [name for name in theirs if ours[name] != theirs[name]]
        if fields:
            differing[f"stream-{case['id']}"] = {"result": ours["order"], "fields": fields}
        data, recorded = ({e["event"]: e["data"] for e in found} for found in (events, case["events"]))
        if "pre_analysis" in data:
            assert data["pre_analysis"].keys() >= recorded["pre_analysis"].keys()
            chains = [[step["intent"] for step in d["pre_analysis"]["intent_chain"] or []] for d in (data, recorded)]
            assert chains[0] == chains[1]
            assert (data["pre_analysis"]["baseline_top1"] or 0) == recorded["pre_analysis"]["baseline_top1"]
            assert data["pre_analysis"]["pole_score"]["bucket"] == recorded["pre_analysis"]["pole_score"]["bucket"]
        if "complete" in data:
            # They count bytes, we count characters; they keep the blanks around the reasoning of a field of its own.
            assert recorded["thinking_complete"]["total_chars"] == len(theirs["thinking"].encode())
            assert data["thinking_complete"]["total_chars"] == len(ours["thinking"])
        if case["id"] == "s_inline":
            answer, thinking = split_thinking(theirs["answer"])
            assert (ours["answer"].strip(), ours["thinking"].strip()) == (answer, thinking)
    expected = {
        name: {key: entry[key] for key in ("result", "fields")}
        for name, entry in TABLE.items()
        if name.startswith("stream-")
    }
    assert differing == expected
