"""Stores: the reference package's files and answers, what we do better, and the frames."""

from __future__ import annotations

import json
import pickle
import time
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from anima.errors import DataError, DataWarning, InputError
from anima.metaeval import (
    DeploymentOutcome,
    JsonlOutcomeStore,
    JsonlSentinelStore,
    JsonlTraceStore,
    MemoryOutcomeStore,
    MemorySentinelStore,
    MemoryTraceStore,
    Run,
    RunResult,
    SentinelSnapshot,
    Span,
)

_PART = ("outcome_store", "sentinel_shape", "sentinel_store", "trace_store")
DIFFERENCES = {
    case: entry
    for case, entry in tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8")).items()
    if case.rsplit("-", 1)[0] in _PART
}
RUN = {"runId": "1", "scenarioId": "s", "startedAt": 10, "status": "completed"}
SPAN = {"spanId": "a", "runId": "1", "kind": "llm", "name": "n", "startedAt": 1}
SNAPSHOT = {"at": "2026-01-01T00:00:00Z", "judgeId": "J", "judgeModel": "m@1", "metrics": {"irr": 0.8}}


def outcome(run_id: str = "a", **metrics: float) -> dict:
    return {"runId": run_id, "capturedAt": 1, "metrics": metrics}


def dicts(records: list) -> list[dict]:
    return [record.to_dict() for record in records]


def defined(value: object) -> object:
    """Leave out what is undefined, as JSON does."""
    if isinstance(value, dict):
        return {k: defined(v) for k, v in value.items() if v != {"$undefined": True}}
    return [defined(item) for item in value] if isinstance(value, list) else value


def place_of(message: str) -> str:
    """Return ``file line`` of an error of either package."""
    words = message.replace(":", " ").replace(".at", " ").replace(".metrics", " ").split()
    return next((word for word in words if word.isdigit()), "")


# --- parity ---------------------------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_outcome_stores_answer_as_the_reference_package(oracle_cases, tmp_path):
    names = {"runIds": "run_ids", "label": "labels"}
    for case in oracle_cases("outcome_store"):
        given = defined(case["input"])
        if case["function"].startswith("InMemory"):
            store = MemoryOutcomeStore(given["items"])
            if "runId" in given:
                got = store.for_run(given["runId"])
            else:
                filters = {names.get(k, k): v for k, v in given["filter"].items()}
                if label := filters.get("labels"):
                    filters["labels"] = {label["key"]: label["value"]}
                got = store.outcomes(**filters)
            assert dicts(got) == case["output"], case["id"]
            continue
        folder = tmp_path / case["id"]
        folder.mkdir()
        for name, text in (given["initialFiles"] or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        limit = {"max_bytes": given["options"]["maxBytes"]} if "maxBytes" in given["options"] else {}
        store = JsonlOutcomeStore(folder, **limit)
        for step, theirs in zip(given["ops"], case["output"]["results"], strict=True):
            try:
                match step["op"]:
                    case "append":
                        store.append(step["arg"])
                        continue
                    case "sleep":
                        continue
                    case "files":
                        names_there = sorted(path.name for path in folder.glob("*.ndjson"))
                        assert len(names_there) == len(theirs["ok"]), case["id"]
                        assert names_there[-1] == theirs["ok"][-1] == "outcomes.ndjson"
                        continue
                    case "forRun":
                        got = dicts(store.for_run(step["arg"]))
                    case "list":
                        got = dicts(store.outcomes())
                    case "reopen-list":
                        got = dicts(JsonlOutcomeStore(folder).outcomes())
                    case other:
                        raise NotImplementedError(other)
            except DataError:
                got = "error"
            if case["id"] in DIFFERENCES:
                ids = got if got == "error" else [record["runId"] for record in got]
                assert ids == DIFFERENCES[case["id"]]["result"], case["id"]
                assert got != theirs["ok"], f"{case['id']} is no difference"
            else:
                assert got == theirs["ok"], case["id"]


@pytest.mark.oracle
def test_trace_stores_answer_as_the_reference_package(oracle_cases, tmp_path):
    snake = {
        "scenarioId": "scenario_id", "variantId": "variant_id", "parentRunId": "parent_run_id", "chatId": "chat_id",
        "projectId": "project_id", "tag": "tags", "runId": "run_id", "parentSpanId": "parent_span_id",
        "toolName": "tool_name", "judgeId": "judge_id", "spanId": "span_id",
    }  # fmt: skip
    for case in oracle_cases("trace_store"):
        given, function = case["input"], case["function"]
        store = MemoryTraceStore()
        try:
            if function in {"InMemoryTraceStore.listRuns", "InMemoryTraceStore.spans"}:
                filters = {snake.get(k, k): v for k, v in given["filter"].items()}
                if tag := filters.get("tags"):
                    filters["tags"] = {tag["key"]: tag["value"]}
                store.extend("runs", given.get("runs", []))
                store.extend("spans", given.get("spans", []))
                got = dicts((store.runs if "runs" in given else store.spans)(**filters))
            elif function == "InMemoryTraceStore.appendRun":
                store.extend("runs", given["runs"])
                got = None
            elif function == "InMemoryTraceStore.updateSpan":
                store.update_span(given["spanId"], {})
                got = None
            elif function == "InMemoryTraceStore.updateRun":
                for run in [given["run"]] if "run" in given else []:
                    store.append_run(run)
                store.update_run(given.get("runId", "1"), given.get("patch", {}))
                got = store.get_run("1").to_dict()
            elif function == "FileSystemTraceStore":
                folder = tmp_path / case["id"]
                for name, text in (given["initialFiles"] or {}).items():
                    folder.mkdir(exist_ok=True)
                    (folder / name).write_text(text, encoding="utf-8")
                store = JsonlTraceStore(folder)
                if given["call"].startswith("appendRun"):
                    store.append_run(RUN | {"tags": {"a": "x"}, "projectId": "P", "layer": "builder"})
                    store.update_run("1", {"status": "failed"})
                    store = JsonlTraceStore(folder)
                got = store.get_run("1").to_dict() if given["call"] == "getRun(1)" else dicts(store.runs())
            else:
                raise NotImplementedError(function)
        except (InputError, DataError) as problem:
            got = str(problem)
        if "error" in case:
            theirs = case["error"]["message"]
            if "corrupt NDJSON" in theirs:  # the tail is the parser's own
                assert "runs.ndjson:2: corrupt JSON line" in got
                assert got.endswith("{bad")
            else:
                assert theirs in got, case["id"]
            continue
        theirs = case["output"]
        if case["id"] in DIFFERENCES:
            assert DIFFERENCES[case["id"]]["result"] == "without _update"
            assert got != theirs
            theirs = [{k: v for k, v in run.items() if k != "_update"} for run in np.atleast_1d(theirs)]
            assert np.atleast_1d(got).tolist() == theirs
        else:
            assert got == theirs, case["id"]


@pytest.mark.oracle
def test_sentinel_stores_answer_as_the_reference_package(oracle_cases, tmp_path):
    for case in oracle_cases("sentinel_store"):
        given = defined(case["input"])
        if case["function"] == "inMemorySentinelStore":
            if "error" in case:
                with pytest.raises(DataError) as caught:
                    MemorySentinelStore(given["initial"])
                assert str(caught.value).startswith(case["error"]["message"])
            continue
        path = tmp_path / f"{case['id']}.jsonl"
        if given["initialFile"] is not None:
            path.write_bytes(given["initialFile"].encode())
        store = JsonlSentinelStore(path)
        results = []
        for step in given["ops"]:
            try:
                if step["op"] == "append":
                    store.append(step["arg"])
                    results.append({"ok": {"$undefined": True}})
                elif case["id"] == "sentinel_store-005":
                    with pytest.warns(DataWarning, match="incomplete"):
                        results.append({"ok": dicts(store.history())})
                else:
                    results.append({"ok": dicts(store.history(step.get("arg")))})
            except DataError as problem:
                results.append({"error": str(problem)})
        text = path.read_bytes().decode() if path.exists() else None
        if case["id"] in DIFFERENCES:
            short = ["ok" if isinstance(r["ok"], dict) else len(r["ok"]) for r in results]
            assert short == DIFFERENCES[case["id"]]["result"]
            assert any("error" in r for r in case["output"]["results"]), f"{case['id']} is no difference"
            continue
        assert text == case["output"]["file"], case["id"]
        for ours, theirs in zip(results, case["output"]["results"], strict=True):
            if "error" in theirs:
                assert place_of(ours["error"].replace(str(path), "")) == place_of(
                    theirs["error"]["message"].replace("<PATH>", "")
                ), case["id"]
            else:
                assert ours == theirs, case["id"]


# --- outcomes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (outcome(csat="5"), r"outcome: metrics\.csat: .*valid number, got '5'"),
        (outcome(csat=True), r"metrics\.csat"),
        (outcome(csat=float("inf")), r"outcome\.metrics\.csat is inf"),
        ({"runId": "", "capturedAt": 1, "metrics": {}}, "runId: String should have at least 1 character"),
        ({"capturedAt": 1, "metrics": {}}, "runId: Field required"),
        ({"runId": 72057594038135102, "capturedAt": 1, "metrics": {}}, "runId: Input should be a valid string"),
        ([1], "must be a DeploymentOutcome or a mapping"),
    ],
)
def test_a_bad_outcome_is_refused_and_leaves_no_trace(tmp_path, given, problem):
    for store in (MemoryOutcomeStore(), JsonlOutcomeStore(tmp_path / "s")):
        with pytest.raises(InputError, match=problem):
            store.append(given)
        assert store.outcomes() == []


def test_outcomes_take_either_spelling_and_numpy_and_nan():
    store = MemoryOutcomeStore()
    store.append(DeploymentOutcome(run_id="a", captured_at=1, metrics={"csat": 4.5}))
    store.append({"run_id": "a", "captured_at": np.int64(2), "metrics": {"csat": np.float32(0.5), "r": np.nan}})
    assert dicts(store.outcomes())[1] == {"runId": "a", "capturedAt": 2, "metrics": {"csat": 0.5, "r": None}}
    with pytest.raises(InputError, match=r"write \['a'\]"):
        store.outcomes(run_ids="a")


def test_records_cannot_be_changed_behind_the_store_s_back(tmp_path):
    metrics = {"csat": 1.0}
    for store in (MemoryOutcomeStore(), JsonlOutcomeStore(tmp_path)):
        store.append({"runId": "a", "capturedAt": 1, "metrics": metrics})
        metrics["csat"] = 1.0
        record = store.outcomes()[0]
        with pytest.raises(TypeError, match="cannot be changed"):
            record.metrics["csat"] = 2.0
        with pytest.raises(ValidationError):
            record.run_id = "b"
        store.outcomes().clear()
        assert store.outcomes() == [record] == [pickle.loads(pickle.dumps(record))]


def test_outcomes_of_other_processes_are_seen_and_foreign_shapes_named(tmp_path):
    ours, theirs = JsonlOutcomeStore(tmp_path, max_bytes=100), JsonlOutcomeStore(tmp_path, max_bytes=100)
    for i in range(10):
        (ours, theirs)[i % 2].append(outcome(str(i), r=i))
        assert [o.run_id for o in ours.outcomes()] == [str(k) for k in range(i + 1)]
    assert len(list(tmp_path.glob("outcomes.*.ndjson"))) >= 3
    with (tmp_path / "outcomes.ndjson").open("a") as file:
        file.write('{"foo":1}\n')
    with pytest.raises(DataError, match=r"outcomes\.ndjson:\d+: runId: Field required"):
        theirs.outcomes()
    kept = JsonlOutcomeStore(tmp_path, on_corrupt="quarantine")
    with pytest.warns(DataWarning, match="1 corrupt line left out"):
        assert len(kept.outcomes()) == 10
    assert [bad.text for bad in kept.problems()] == ['{"foo":1}']


def test_text_that_was_cut_inside_an_emoji_is_read(tmp_path):
    (tmp_path / "outcomes.ndjson").write_text('{"runId":"a","capturedAt":1,"metrics":{},"source":"x\\ud83d"}\n')
    assert JsonlOutcomeStore(tmp_path).outcomes()[0].source == "x\ufffd"


def test_outcome_frame(tmp_path):
    store = JsonlOutcomeStore(tmp_path)
    assert list(store.to_frame().columns) == ["run_id", "captured_at", "metrics"]
    store.extend([outcome("a", r=1, csat=2.5) | {"labels": {"cohort": "x"}, "source": "p"}, outcome("b", r=None)])
    frame = store.to_frame()
    assert frame["run_id"].tolist() == ["a", "b"]
    assert frame["metrics.csat"].tolist()[0] == 2.5
    assert frame["metrics.r"].isna().tolist() == [False, True]
    assert frame["labels.cohort"].isna().tolist() == [False, True]
    assert DeploymentOutcome.model_validate(outcome(r=1)).to_frame()["metrics.r"].tolist() == [1]


def test_stores_travel_to_other_processes(tmp_path):
    for store in (JsonlOutcomeStore(tmp_path), JsonlTraceStore(tmp_path), JsonlSentinelStore(tmp_path / "h.jsonl")):
        assert repr(pickle.loads(pickle.dumps(store))) == repr(store)
    JsonlOutcomeStore(tmp_path).append(outcome())
    assert len(pickle.loads(pickle.dumps(JsonlOutcomeStore(tmp_path))).outcomes()) == 1


# --- traces ---------------------------------------------------------------------------------------------------------


def fill(store: MemoryTraceStore | JsonlTraceStore) -> None:
    store.append_run(RUN)
    store.append_run(Run(run_id="2", scenario_id="t", started_at=20, status="aborted"))
    store.append_span(SPAN | {"inputTokens": 5})
    store.append_span(Span(span_id="b", run_id="1", kind="tool", name="t", started_at=2, tool_name="T", args={"x": 1}))
    store.append_span(SPAN | {"runId": "2"})  # the same id again: both stay, the first is patched
    store.append_event({"eventId": "e", "runId": "1", "kind": "log", "timestamp": 5, "payload": {"a": None}})
    store.append_artifact({"artifactId": "f", "runId": "1", "contentType": "t", "sizeBytes": 3, "hash": "h"})
    store.append_budget_entry(
        {
            "runId": "1",
            "dimension": "usd",
            "limit": 1,
            "consumed": 0.5,
            "remaining": 0.5,
            "timestamp": 3,
            "breached": False,
        }
    )
    store.update_run("1", {"outcome": RunResult(score=0.5, passed=False), "ended_at": np.float64(15)})
    store.update_run("1", {"status": "failed"})
    store.update_span("a", {"status": "error", "endedAt": 9})


def test_both_trace_stores_tell_the_same(tmp_path):
    memory, disk = MemoryTraceStore(), JsonlTraceStore(tmp_path)
    fill(memory)
    fill(disk)
    for store in (memory, disk, JsonlTraceStore(tmp_path)):
        run = store.get_run("1")
        assert run.to_dict() == RUN | {"status": "failed", "endedAt": 15, "outcome": {"score": 0.5, "pass": False}}
        assert (run.failure_class, store.get_run("2").failure_class) == ("unknown", "budget_exceeded")
        assert [(s.span_id, s.run_id, s.status) for s in store.spans()] == [
            ("a", "1", "error"), ("b", "1", None), ("a", "2", None),
        ]  # fmt: skip
        assert [s.span_id for s in store.spans(tool_name="T")] == ["b"]
        assert store.spans(tool_name="T", kind="llm") == store.spans(judge_id="T") == []
        assert [e.payload for e in store.events(run_id="1", since=5, until=5)] == [{"a": None}]
        assert store.events(span_id="zz") == store.events(kind="error") == store.artifacts("2") == []
        assert (store.artifacts("1")[0].size_bytes, store.budget("1")[0].limit) == (3, 1)
        assert [r.run_id for r in store.runs(since=11)] == ["2"]
        assert store.to_frame()["outcome.score"].isna().tolist() == [False, True]
        assert store.to_frame("spans")["args"].tolist()[1] == {"x": 1}
        assert len(store.to_frame("budget")) == 1
        assert store.get_run("9") is None
        with pytest.raises(InputError, match=r"filter must be one of 'run_id', 'scenario_id'.*got 'scenario'"):
            store.runs(scenario="s")
    names = sorted(path.name for path in tmp_path.glob("*.ndjson"))
    assert names == ["artifacts.ndjson", "budget.ndjson", "events.ndjson", "runs.ndjson", "spans.ndjson"]
    lines = [json.loads(line) for line in (tmp_path / "runs.ndjson").read_text().splitlines()]
    assert lines[0] == RUN
    assert lines[-1] == {"runId": "1", "status": "failed", "_update": True}


def test_bad_appends_and_patches_never_reach_the_file(tmp_path):
    for store in (MemoryTraceStore(), JsonlTraceStore(tmp_path)):
        store.append_run(RUN)
        before = [(path, path.read_bytes()) for path in tmp_path.glob("*.ndjson")]
        with pytest.raises(InputError, match="run 1 already exists: change it with update_run"):
            store.append_run(RUN)
        with pytest.raises(InputError, match="run 2 already exists"):
            store.extend("runs", [RUN | {"runId": "2"}, RUN | {"runId": "2"}])
        with pytest.raises(InputError, match="run 9 not found"):
            store.update_run("9", {"status": "failed"})
        with pytest.raises(InputError, match="run 1: status: Input should be 'running'"):
            store.update_run("1", {"status": "bad"})
        with pytest.raises(InputError, match="patch must be a mapping"):
            store.update_run("1", "failed")
        with pytest.raises(InputError, match="kind must be one of"):
            store.extend("walks", [])
        assert before == [(path, path.read_bytes()) for path in tmp_path.glob("*.ndjson")]


def test_a_repeated_row_is_merged_and_patches_come_last_whenever_it_is_read(tmp_path):
    file = tmp_path / "runs.ndjson"
    rows = [
        {"runId": "1", "status": "failed", "_update": True},
        RUN | {"tags": {"a": "x"}},
        {"runId": "1", "status": "aborted", "_update": True},
        RUN | {"startedAt": 99},
    ]
    early = JsonlTraceStore(tmp_path, on_corrupt="quarantine")
    for i, row in enumerate(rows):
        with file.open("a") as handle:
            handle.write(json.dumps(row) + "\n")
        if i == 0:
            with pytest.warns(DataWarning, match="run 1 not found"):
                early.runs()
        early.runs()
    late = JsonlTraceStore(tmp_path)
    expected = RUN | {"tags": {"a": "x"}, "startedAt": 99, "status": "aborted"}
    assert dicts(late.runs()) == dicts(early.runs()) == [expected]
    assert [bad.line for bad in early.problems()] == [1]


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_an_update_cannot_give_another_id(tmp_path, kind):
    """On disk it would be an update of a run that is nowhere, and the store could never be read again."""
    store = MemoryTraceStore() if kind == "memory" else JsonlTraceStore(tmp_path)
    store.append_run(RUN)
    for name in ("runId", "run_id"):
        with pytest.raises(InputError, match="run 1: runId cannot be changed"):
            store.update_run("1", {name: "2"})
    store.update_run("1", {"runId": "1", "status": "failed"})
    assert [(run.run_id, run.status) for run in store.runs()] == [("1", "failed")]


def test_an_update_without_its_record_is_an_error_that_repeats(tmp_path):
    (tmp_path / "spans.ndjson").write_text('{"spanId":"a","status":"ok","_update":true}\n')
    store = JsonlTraceStore(tmp_path)
    for _ in range(2):
        with pytest.raises(DataError, match=r"spans\.ndjson:1: span a not found"):
            store.spans()
    store.append_event({"eventId": "e", "runId": "1", "kind": "log", "timestamp": 5, "payload": {}})
    assert len(store.events()) == 1


# --- judge health ---------------------------------------------------------------------------------------------------


def test_sentinel_stores_keep_snapshots_apart_from_their_givers(tmp_path):
    metrics = {"irr": 0.5}
    for store in (MemorySentinelStore(), JsonlSentinelStore(tmp_path / "a" / "h.jsonl")):
        store.append(SNAPSHOT | {"metrics": metrics, "n": {"irr": 120}, "interval": {"irr": [0.4, 0.6]}, "note": "x"})
        store.append(SentinelSnapshot(at="2026-01-02T00:00:00Z", judge_id="K", judge_model="m@2", metrics={}))
        metrics["irr"] = 0.5
        [mine] = store.history("J")
        with pytest.raises(ValidationError):
            mine.metrics.irr = 1.0
        assert (mine.metrics.irr, mine.n.irr, mine.interval.irr) == (0.5, 120, (0.4, 0.6))
        assert mine.to_dict()["note"] == "x"
        frame = store.to_frame()
        assert frame["metric"].tolist()[0] == "irr"
        assert frame[["value", "n", "low", "high"]].iloc[0].tolist() == [0.5, 120, 0.4, 0.6]
        assert frame["value"].isna().tolist() == [False, True]
        assert str(frame["at"].dt.tz) == "UTC"
        with pytest.raises(DataError, match=r"snapshot\.metrics\.irr must lie in \[-1, 1\], got 1\.5"):
            store.append(SNAPSHOT | {"metrics": {"irr": 1.5}})
        assert len(store.history()) == 2


def test_every_line_is_checked_before_one_judge_is_picked(tmp_path):
    path = tmp_path / "h.jsonl"
    path.write_text(json.dumps(SNAPSHOT) + "\n" + json.dumps(SNAPSHOT | {"judgeId": ""}) + "\n")
    with pytest.raises(DataError, match=r"h\.jsonl:2\.judgeId must be a non-empty string"):
        JsonlSentinelStore(path).history("J")


@pytest.mark.parametrize("store", [JsonlOutcomeStore, JsonlTraceStore, JsonlSentinelStore])
def test_a_place_that_cannot_hold_a_store_is_named_with_what_to_do(tmp_path, store):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"lies under '.*file', which is a file: give another path"):
        store(tmp_path / "file" / "deeper")
    for place in ("", None):
        with pytest.raises(InputError, match=r"(folder|path) must (name a place|be a str or a Path)"):
            store(place)
    wrong = tmp_path if store is JsonlSentinelStore else tmp_path / "file"
    with pytest.raises(InputError, match=r"is a folder: add the name|is a file: give the folder"):
        store(wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_files_change_hands_with_the_clock_running(tmp_path):
    before = time.time_ns() // 1_000_000
    store = JsonlOutcomeStore(tmp_path, max_bytes=10, durability="batch")
    with store:
        store.extend(outcome(str(i)) for i in range(3))
    stamps = [int(path.name.split(".")[1]) for path in tmp_path.glob("outcomes.*.ndjson")]
    assert len(stamps) == 2
    assert min(stamps) >= before
    assert pd.DataFrame(dicts(store.outcomes()))["runId"].tolist() == ["0", "1", "2"]


def test_a_field_given_in_both_spellings_is_refused():
    given = {"run_id": "a", "runId": "b", "scenarioId": "s", "startedAt": 1, "status": "running"}
    with pytest.raises(ValidationError, match="'run_id' and 'runId' are the same one"):
        Run.model_validate(given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda store, runs: store.outcomes(since="x"), "since must be a time in ms.*got str 'x'"),
        (lambda store, runs: runs.spans(until=float("nan")), "until must be a time in ms"),
        (lambda store, runs: store.outcomes(labels="x"), "labels must be a mapping.*got 'x'"),
        (lambda store, runs: runs.runs(tags=["x"]), "tags must be a mapping"),
        (lambda store, runs: store.outcomes(run_ids=5), "run_ids must be a list of ids, got int 5"),
        (lambda store, runs: store.outcomes(run_ids=[["a"]]), r"run_ids \(item 0\) must be a str"),
        (lambda store, runs: store.extend(None), "outcomes must be a list of records, got NoneType"),
        (lambda store, runs: store.extend({"runId": "a"}), "outcomes must be a list of records, got dict"),
        (lambda store, runs: runs.extend("runs", 5), "runs must be a list of records, got int 5"),
        (lambda store, runs: MemorySentinelStore("x"), "snapshots must be a list of records"),
    ],
)
def test_wrong_filters_and_batches_are_refused_by_name(call, message):
    with pytest.raises(InputError, match=message):
        call(MemoryOutcomeStore(), MemoryTraceStore())
