"""Load 100,000 deployment outcomes, validated, against bare json.loads: python tests/benchmarks/bench_stores.py."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from anima.metaeval import JsonlOutcomeStore

if TYPE_CHECKING:
    from collections.abc import Callable

N, REPEATS, APPENDS, TARGET = 100_000, 5, 2_000, 1.5


def main() -> None:
    rng = random.Random(0)
    rows = [
        {
            "runId": f"run-{i // 3}",
            "capturedAt": 1_700_000_000_000 + i,
            "metrics": {"csat": 5 * rng.random(), "retained": i % 2, "revenue": 100 * rng.random()},
            "labels": {"cohort": "ab"[i % 2]},
            "source": "telemetry",
        }
        for i in range(N)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = JsonlOutcomeStore(folder)
        store.extend(rows)
        path = Path(folder) / "outcomes.ndjson"
        runs: dict[str, Callable[[], Any]] = {
            "anima": lambda: JsonlOutcomeStore(folder).outcomes(),
            "json.loads": lambda: [json.loads(line) for line in path.read_bytes().splitlines()],
        }
        best = dict.fromkeys(runs, float("inf"))
        results: dict[str, Any] = {}
        for _ in range(REPEATS):  # turn by turn, so that both meet the same noise
            for name, run in runs.items():
                start = time.process_time()
                results[name] = run()
                best[name] = min(best[name], time.process_time() - start)
        assert results["json.loads"] == rows == [record.to_dict() for record in results["anima"]]
        results.clear()
        start = time.process_time()
        frame = JsonlOutcomeStore(folder).to_frame()
        seconds = time.process_time() - start
        assert frame["metrics.csat"].equals(pd.Series([row["metrics"]["csat"] for row in rows]))
        print(f"{N:,} outcomes, {path.stat().st_size / 1e6:.0f} MB, CPU seconds on one core, best of {REPEATS}")
        print(
            f"  anima, every field checked  {best['anima']:.2f} s (target {TARGET} s); as a DataFrame {seconds:.2f} s"
        )
        print(f"  json.loads, nothing checked {best['json.loads']:.2f} s")
        print(f"  ratio anima / json.loads: {best['anima'] / best['json.loads']:.2f}; the records are equal")
    with tempfile.TemporaryDirectory() as folder:
        for durability in ("record", "batch"):
            with JsonlOutcomeStore(Path(folder) / durability, durability=durability) as store:  # type: ignore[arg-type]
                start = time.perf_counter()
                for row in rows[:APPENDS]:
                    store.append(row)
                each = (time.perf_counter() - start) / APPENDS
            print(f"  one append, durability={durability!r}: {each * 1e6:.0f} µs")


if __name__ == "__main__":
    main()
