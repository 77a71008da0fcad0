"""Races of the studies: joins included, against the plain way with pandas and scipy, results compared first.

Run with one BLAS thread: ``OMP_NUM_THREADS=1 python tests/benchmarks/bench_studies.py``. Times are processor times, medians
of several runs; the aims are milliseconds on one idle core. Ratios above 1 mean that anima is faster.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy
from scipy import stats

from anima.metaeval import (
    MemoryOutcomeStore,
    MemoryTraceStore,
    continuous_agreement,
    correlation_study,
    rubric_predictive_validity,
)
from anima.stats.resampling import percentile_interval, resample_indices

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS, RESAMPLES, SEED = 2000, 500, 1


def milliseconds(run: Callable[[], object], repeats: int = 7) -> float:
    """Return the median processor time of a call after one warm-up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return 1000 * statistics.median(times)


def pearson_rows(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return Pearson's r along an axis: the vectorised statistic a careful user of scipy writes."""
    x, y = x - x.mean(axis=axis, keepdims=True), y - y.mean(axis=axis, keepdims=True)
    return (x * y).sum(axis=axis) / np.sqrt((x * x).sum(axis=axis) * (y * y).sum(axis=axis))


def make(n_eval: int, n_outcomes: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return runs and outcomes that have something to do with one another."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(RUNS, n_eval))
    y = 0.4 * x[:, :n_outcomes] + rng.normal(size=(RUNS, n_outcomes))
    ids = [f"run-{k}" for k in range(RUNS)]
    runs = pd.DataFrame(x, columns=[f"m{k}" for k in range(n_eval)]).assign(run_id=ids, started_at=0.0)
    outcomes = pd.DataFrame(y, columns=[f"o{k}" for k in range(n_outcomes)]).assign(run_id=ids, captured_at=5.0)
    return runs, outcomes


def plain(runs: pd.DataFrame, outcomes: pd.DataFrame, metrics: list[str], told: list[str]) -> pd.DataFrame:
    """Return the study as one writes it without a library: merge, then scipy pair by pair."""
    latest = outcomes.sort_values("captured_at", kind="stable").groupby("run_id").last()
    joined = runs.merge(latest[told], left_on="run_id", right_index=True)
    rows = []
    for metric in metrics:
        for name in told:
            x, y = joined[metric].to_numpy(), joined[name].to_numpy()
            done = stats.bootstrap(
                (x, y), pearson_rows, paired=True, vectorized=True, n_resamples=RESAMPLES, method="percentile",
                rng=np.random.default_rng(SEED),
            )  # fmt: skip
            rows.append((pearson_rows(x, y), *done.confidence_interval, stats.spearmanr(x, y).statistic))
    return pd.DataFrame(rows, columns=["pearson", "low", "high", "spearman"])


def check(study: object, runs: pd.DataFrame, outcomes: pd.DataFrame) -> float:
    """Return the largest difference to the same resamples taken row by row."""
    rows = np.concatenate(list(resample_indices(RUNS, RESAMPLES, SEED)))
    largest = 0.0
    for pair in study.pairs:
        x, y = runs[pair.eval_metric].to_numpy(), outcomes[pair.outcome_metric].to_numpy()
        ends = percentile_interval(pearson_rows(x[rows], y[rows]))
        largest = max(largest, *np.abs(np.subtract((pair.estimate.low, pair.estimate.high), ends)))
        largest = max(largest, abs(pair.spearman - stats.spearmanr(x, y).statistic))
    return largest


def report(race: str, ours: float, theirs: float, aim: float, difference: float) -> None:
    """Print one line."""
    met = "met" if ours <= aim else "MISSED"
    print(
        f"{race:<52} {ours:8.1f} ms (aim {aim:g} ms {met})   pandas + scipy {theirs:8.1f} ms {theirs / ours:7.1f}x   "
        f"largest difference {difference:.1e}"
    )


def correlation() -> None:
    """2,000 runs x 5 x 5, 500 shared resamples, percentile intervals of Pearson's r, from stores."""
    runs, outcomes = make(5, 5)
    metrics, told = [f"m{k}" for k in range(5)], [f"o{k}" for k in range(5)]
    trace = MemoryTraceStore(
        {"runId": run_id, "scenarioId": run_id, "startedAt": 0, "status": "completed"} for run_id in runs["run_id"]
    )
    store = MemoryOutcomeStore(
        {"runId": row["run_id"], "capturedAt": 5, "metrics": {name: row[name] for name in told}}
        for row in outcomes.to_dict("records")
    )
    values = {name: dict(zip(runs["run_id"], runs[name].tolist(), strict=True)) for name in metrics}
    extractors = {name: lambda run, table=values[name]: table[run.run_id] for name in metrics}

    def ours() -> object:
        return correlation_study(
            trace, store, extractors, told, method="pearson", interval="percentile", n_resamples=RESAMPLES, rng=SEED
        )

    difference = check(ours(), runs, outcomes)
    theirs = milliseconds(lambda: plain(runs, outcomes, metrics, told), 1)
    report("correlation study 2000 x 5 x 5, 500 resamples", milliseconds(ours), theirs, 50, difference)


def rubrics() -> None:
    """2,000 runs x 10 rubrics x 3 outcomes: bootstrap of Pearson's r, and the default."""
    runs, outcomes = make(10, 3)
    metrics, told = [f"m{k}" for k in range(10)], [f"o{k}" for k in range(3)]

    def ours() -> object:
        return rubric_predictive_validity(
            runs,
            outcomes,
            told,
            rubrics=metrics,
            method="pearson",
            interval="percentile",
            n_resamples=RESAMPLES,
            rng=SEED,
        )

    theirs = milliseconds(lambda: plain(runs, outcomes, metrics, told), 1)
    difference = check(ours(), runs, outcomes)
    report("rubric validity 2000 x 10 x 3, 500 resamples", milliseconds(ours), theirs, 60, difference)
    default = milliseconds(lambda: rubric_predictive_validity(runs, outcomes, told, rubrics=metrics))
    report("rubric validity, default (Spearman, analytic)", default, theirs, 60, difference)


def panel() -> None:
    """5,000 items x 3 raters, 1,000 resamples of kappa and ICC: the plain way takes minutes and is not run."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5000, 1)) + rng.normal(size=(5000, 3))
    ours = milliseconds(lambda: continuous_agreement(scores, interval="percentile", n_resamples=1000), 3)
    print(f"{'continuous agreement 5000 x 3, 1000 resamples':<52} {ours:8.1f} ms")


def main() -> None:
    """Run all races."""
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, pandas {pd.__version__}")
    correlation()
    rubrics()
    panel()


if __name__ == "__main__":
    main()
