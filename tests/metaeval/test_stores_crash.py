"""Writers that are killed, and writers that write at once: real processes, real signals."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

import pytest

from anima.errors import DataWarning
from anima.metaeval import JsonlOutcomeStore, JsonlSentinelStore, JsonlTraceStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

# Dies inside the write of its third record, with part of it in the file and the lock held.
DIES = """
import os, signal, sys
from anima import jsonl
from anima.metaeval import JsonlOutcomeStore, JsonlSentinelStore, JsonlTraceStore

kind, folder, part, durability = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
writes = []

def write(handle, data, size):
    writes.append(data)
    if len(writes) == 3:
        handle.write(data[: int(part * len(data))])
        os.kill(os.getpid(), signal.SIGKILL)
    handle.write(data)

jsonl._write = write
if kind == "outcomes":
    store = JsonlOutcomeStore(folder, durability=durability)
    for i in range(5):
        store.append({"runId": str(i), "capturedAt": i, "metrics": {"r": i}, "source": "né"})
elif kind == "runs":
    store = JsonlTraceStore(folder, durability=durability)
    for i in range(5):
        store.append_run({"runId": str(i), "scenarioId": "s", "startedAt": i, "status": "completed"})
else:
    store = JsonlSentinelStore(folder + "/snapshots.ndjson", durability=durability)
    for i in range(5):
        store.append({"at": f"2026-01-0{i + 1}T00:00:00Z", "judgeId": str(i), "judgeModel": "m", "metrics": {}})
"""

STREAM = """
import sys
from anima.metaeval import JsonlOutcomeStore

store = JsonlOutcomeStore(sys.argv[1], max_bytes=8_000_000, durability="batch")
start = int(sys.argv[2])
for i in range(start, start + 10_000):
    store.append({"runId": str(i), "capturedAt": i, "metrics": {"r": i}, "source": "x" * 1_000_000})
    print(i, flush=True)
"""

MANY = """
import sys
from anima.metaeval import JsonlOutcomeStore

store = JsonlOutcomeStore(sys.argv[1], max_bytes=200_000, durability="batch")
sys.stdin.readline()
for i in range(10_000):
    store.append({"runId": f"{sys.argv[2]}-{i}", "capturedAt": i, "metrics": {"r": i}})
store.flush()
"""


SAME = """
import sys
from anima.errors import InputError
from anima.metaeval import JsonlTraceStore

store = JsonlTraceStore(sys.argv[1], durability="batch")
sys.stdin.readline()
for i in range(60):
    try:
        store.append_run({"runId": str(i), "scenarioId": "s", "startedAt": i, "status": "running"})
        print(i)
    except InputError:
        pass
"""


def run_ids(kind: str, folder: Path) -> list[str]:
    if kind == "outcomes":
        return [record.run_id for record in JsonlOutcomeStore(folder).outcomes()]
    if kind == "runs":
        return [record.run_id for record in JsonlTraceStore(folder).runs()]
    return [record.judge_id for record in JsonlSentinelStore(folder / "snapshots.ndjson").history()]


@pytest.mark.parametrize("kind", ["outcomes", "runs", "snapshots"])
@pytest.mark.parametrize(("part", "durability"), [(0.0, "record"), (0.4, "record"), (0.9, "batch"), (1.0, "batch")])
def test_a_writer_killed_within_an_append_loses_that_record_only(tmp_path, kind, part, durability):
    command = [sys.executable, "-c", DIES, kind, str(tmp_path), str(part), durability]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    torn = 0 < part < 1
    whole = ["0", "1"] + ["2"] * (part == 1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert run_ids(kind, tmp_path) == whole
    assert [w.category for w in seen] == [DataWarning] * torn
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if kind == "outcomes":
            JsonlOutcomeStore(tmp_path).append({"runId": "late", "capturedAt": 9, "metrics": {}})
        elif kind == "runs":
            JsonlTraceStore(tmp_path).append_run(
                {"runId": "late", "scenarioId": "s", "startedAt": 9, "status": "running"}
            )
        else:
            JsonlSentinelStore(tmp_path / "snapshots.ndjson").append(
                {"at": "2026-02-01T00:00:00Z", "judgeId": "late", "judgeModel": "m", "metrics": {}}
            )
    assert any("were moved to" in str(w.message) for w in seen) is torn
    assert run_ids(kind, tmp_path) == [*whole, "late"]
    [file] = tmp_path.glob("*.ndjson")
    assert all(json.loads(line) for line in file.read_bytes().split(b"\n")[:-1])


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_loses_nothing_it_had_reported(tmp_path):
    rng = random.Random(5)
    start, reported = 0, []
    for _ in range(6):
        command = [sys.executable, "-c", STREAM, str(tmp_path), str(start)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            reported += [writer.stdout.readline().strip() for _ in range(rng.randint(1, 4))]
            writer.kill()
            reported += writer.stdout.read().split()
        start += 10_000
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            stored = [record.run_id for record in JsonlOutcomeStore(tmp_path, max_bytes=8_000_000).outcomes()]
        assert [run_id for run_id in stored if run_id in set(reported)] == reported
        assert len(stored) - len(reported) <= 1  # the one written and not yet reported
        reported = stored


@pytest.mark.slow
def test_two_processes_appending_at_once_lose_nothing(tmp_path):
    command = [sys.executable, "-c", MANY, str(tmp_path)]
    writers = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, text=True) for name in ("a", "b")]
    for writer in writers:  # both have started before either writes
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait(timeout=240) for writer in writers] == [0, 0]
    for writer in writers:
        writer.stdin.close()
    assert len(list(tmp_path.glob("outcomes.*.ndjson"))) >= 4
    stored = [record.run_id for record in JsonlOutcomeStore(tmp_path).outcomes()]
    assert len(stored) == 20_000
    for name in ("a", "b"):
        own = [run_id for run_id in stored if run_id.startswith(name)]
        assert own == [f"{name}-{i}" for i in range(10_000)]
    switches = sum(x[0] != y[0] for x, y in itertools.pairwise(stored))
    assert switches > 10, "the writers took turns too coarsely to prove anything"


def test_of_several_processes_one_adds_a_run(tmp_path):
    """Whether a run is new is checked under the same lock as it is written."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", SAME, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for writer in writers:  # all have started before one writes
        writer.stdin.write("go\n")
        writer.stdin.flush()
    added = [line for writer in writers for line in writer.communicate(timeout=240)[0].split()]
    assert sorted(added, key=int) == [str(i) for i in range(60)]
    assert len((tmp_path / "runs.ndjson").read_text().splitlines()) == 60
