"""Write the coverage table and the comparisons with the reference package into the book's results (a few minutes).

``python tests/stats/write_coverage.py`` after a change of a statistic; the pages are drawn from the committed file.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "book" / "results" / "coverage.json"
COVERAGE_SEED, TRIALS = 1, 2000


def plain(value: Any) -> Any:
    """Return a value as it stands in the file: four digits say all that a simulation knows."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 4)
    return value


def sentinel() -> dict[str, Any]:
    """Return the simulation of the judge sentinel in the form of the comparisons."""
    from sentinel_table import sentinel_frame

    names = {"calibrationKappa": "κ", "sentinelPassRate": "pass rate"}
    frame = sentinel_frame()
    rows = []
    for row in frame.to_dict("records"):
        n, shares = row["histories"], (row["reference"], row["anima"])
        even = (
            "" if math.isnan(row["prevalence"]) or row["metric"] != "calibrationKappa" else f"{row['prevalence']:.0%}"
        )
        promise = (
            "" if math.isnan(row["promised"]) else f"{'≤' if row['wanted'] == 'few' else '≥'} {row['promised']:.0%}"
        )
        truth = f"{row['from']:g}" + ("" if row["from"] == row["to"] else f" to {row['to']:g}")
        errors = [math.sqrt(max(p * (1 - p), 0.01 * 0.99) / n) for p in shares]
        told = f"{even + ', ' if even else ''}{row['precision']}"
        rows.append([
            f"{names[row['metric']]} {truth}, {row['snapshots']} snapshots: {row['what']}", told,
            *map(list, zip(shares, errors, strict=True)), promise,
        ])  # fmt: skip
    head = ["history", "common class, precision told", "reference: alarmed", "anima: alarmed", "promised"]
    return {"trials": int(frame["histories"].iloc[0]), "head": head, "rows": rows}


def main() -> None:
    """Run all simulations and write the file."""
    sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "metaeval")]
    from changed_statistics import comparisons
    from coverage_table import coverage_frame

    frame = coverage_frame(TRIALS, COVERAGE_SEED)
    found = comparisons(seed=COVERAGE_SEED) | {"sentinel": sentinel()}
    lines = ["{", f'"trials": {TRIALS}, "seed": {COVERAGE_SEED},', f'"columns": {json.dumps(list(frame.columns))},']
    # One row a line, so that a change can be reviewed.
    rows = [json.dumps(plain(list(row)), ensure_ascii=False) for row in frame.itertuples(index=False)]
    lines += ['"coverage": [', ",\n".join(rows), "],", '"comparisons": {']
    tables = []
    for name, table in found.items():
        body = ",\n  ".join(json.dumps(plain(row), ensure_ascii=False) for row in table["rows"])
        head = json.dumps(table["head"], ensure_ascii=False)
        tables.append(f'"{name}": {{"trials": {table["trials"]}, "head": {head}, "rows": [\n  {body}]}}')
    lines += [",\n".join(tables), "}", "}"]
    text = "\n".join(lines) + "\n"
    json.loads(text)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
