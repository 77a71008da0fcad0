"""Races of the statistics against named peers: same data, same run, results compared before times are.

Run with one BLAS thread: ``OMP_NUM_THREADS=1 python tests/benchmarks/bench_stats.py``. Ratios above 1 mean that anima
is faster. Times are medians of several runs; every line states the largest difference between the two results.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy
import sklearn
from scipy import stats
from sklearn.calibration import calibration_curve as sklearn_curve
from sklearn.metrics import cohen_kappa_score

from anima.stats import correlation, icc, krippendorff_alpha, weighted_kappa
from anima.stats.calibration import bin_edges, expected_calibration_error
from anima.stats.intraclass import concordance_terms, icc_of_sums, mean_concordance, quadratic_kappa_value
from anima.stats.resampling import resample_counts, resample_indices
from anima.stats.weighted import weighted_correlation

if TYPE_CHECKING:
    from collections.abc import Callable


def milliseconds(run: Callable[[], object], repeats: int = 7) -> float:
    """Return the median time of a call after one warm-up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def report(race: str, ours: float, peers: dict[str, tuple[float, float]], difference: float) -> None:
    """Print one line per peer: times, ratio, the ratio aimed at and the difference of results."""
    for peer, (theirs, aim) in peers.items():
        mark = "" if not aim else f"aim {aim:g}x {'met' if theirs / ours >= aim else 'MISSED'}"
        print(
            f"{race:<44} {ours:9.3f} ms   {peer:<40} {theirs:9.3f} ms  {theirs / ours:8.1f}x  {mark:<14} "
            f"largest difference {difference:.1e}"
        )


def pearson_rows(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return Pearson's r along an axis: the vectorised statistic a careful user of scipy writes."""
    x, y = x - x.mean(axis=axis, keepdims=True), y - y.mean(axis=axis, keepdims=True)
    return (x * y).sum(axis=axis) / np.sqrt((x * x).sum(axis=axis) * (y * y).sum(axis=axis))


def spearman_rows(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return Spearman's rho along an axis, ranked anew."""
    return pearson_rows(stats.rankdata(x, axis=axis), stats.rankdata(y, axis=axis), axis=axis)


def correlations(rng: np.random.Generator) -> None:
    """Bootstrap interval of a correlation, n = 300, 2,000 resamples."""
    x = rng.normal(size=300)
    y = 0.5 * x + rng.normal(size=300)
    rows = np.concatenate(list(resample_indices(300, 2000, 1)))
    counts = np.concatenate(list(resample_counts(300, 2000, 1)))
    for method, function, aim in (("pearson", pearson_rows, 1.8), ("spearman", spearman_rows, 4.0)):
        difference = np.abs(weighted_correlation(counts, x, y, method) - function(x[rows], y[rows])).max()

        def mine(method: str = method) -> object:
            return correlation(x, y, method=method, interval="percentile", p_value="none")

        def scipys(function: Callable[..., np.ndarray] = function) -> object:
            return stats.bootstrap(
                (x, y), function, paired=True, vectorized=True, n_resamples=2000, method="percentile", rng=1
            )

        peers = {"scipy.stats.bootstrap, vectorised": (milliseconds(scipys), aim)}
        if method == "pearson":
            result = stats.pearsonr(x, y)
            resampling = stats.BootstrapMethod(n_resamples=2000, method="percentile")
            spent = milliseconds(functools.partial(result.confidence_interval, method=resampling), 3)
            peers["pearsonr().confidence_interval"] = (spent, 4.0)
        report(f"bootstrap interval, {method}", milliseconds(mine), peers, difference)


def agreement(rng: np.random.Generator) -> None:
    """Quadratic kappa of 5,000 items; ICC and kappa of 3 x 5,000 with 1,000 resamples."""
    a = rng.integers(1, 6, 5000)
    b = np.clip(a + rng.integers(-1, 2, 5000), 1, 5)
    theirs = milliseconds(lambda: cohen_kappa_score(a, b, weights="quadratic"))
    expected = cohen_kappa_score(a, b, weights="quadratic")
    report(
        "quadratic kappa, n = 5,000, value", milliseconds(lambda: quadratic_kappa_value(a, b), 50),
        {"cohen_kappa_score": (theirs, 25)}, abs(quadratic_kappa_value(a, b) - expected),
    )  # fmt: skip
    report(
        "quadratic kappa, n = 5,000, with interval", milliseconds(lambda: weighted_kappa(a, b)),
        {"cohen_kappa_score (no interval)": (theirs, 0)}, abs(weighted_kappa(a, b).value - expected),
    )  # fmt: skip

    scores = rng.normal(size=(5000, 1)) + 0.6 * rng.normal(size=(5000, 3))

    def both() -> tuple[np.ndarray, np.ndarray]:
        terms = concordance_terms(scores - scores.mean())
        sums = np.concatenate([counts @ terms for counts in resample_counts(5000, 1000, 1)])
        return mean_concordance(sums, 3), icc_of_sums(sums, 3)

    kappas, iccs = both()
    row = next(resample_indices(5000, 1, 1))[0]
    pairs = [scores[row][:, pair] for pair in ((0, 1), (0, 2), (1, 2))]
    slow = np.mean([quadratic_kappa_value(*pair.T) for pair in pairs])
    first = icc(long(scores[row])).value
    spent = milliseconds(both, 5)
    print(
        f"{'ICC and weighted kappa, 3 x 5,000, B = 1,000':<44} {spent:9.3f} ms   aim < 150 ms "
        f"{'met' if spent < 150 else 'MISSED'}; largest difference of resample 1 from the functions "
        f"{max(abs(slow - kappas[0]), abs(first - iccs[0])):.1e}"
    )


def long(scores: np.ndarray) -> pd.DataFrame:
    """Return a matrix of scores as a long table."""
    items, raters = np.indices(scores.shape)
    return pd.DataFrame({"item": items.ravel(), "rater": raters.ravel(), "value": scores.ravel()})


def reliability(rng: np.random.Generator) -> None:
    """Coefficients of many raters against the GPL packages, where they are installed."""
    scores = rng.integers(1, 6, (200, 1)) + rng.integers(-1, 2, (200, 4))
    frame = long(scores)
    if importlib.util.find_spec("pingouin"):
        import pingouin

        def theirs() -> pd.DataFrame:
            return pingouin.intraclass_corr(frame, targets="item", raters="rater", ratings="value")

        table = theirs()
        value = float(table.loc[table["Type"] == "ICC(A,1)", "ICC"].iloc[0])
        report(
            "ICC 200 x 4, generalized interval", milliseconds(lambda: icc(frame)),
            {"pingouin.intraclass_corr": (milliseconds(theirs, 3), 0)}, abs(icc(frame).value - value),
        )  # fmt: skip
    if importlib.util.find_spec("krippendorff"):
        import krippendorff

        def alpha() -> float:
            return float(krippendorff.alpha(reliability_data=scores.T, level_of_measurement="ordinal"))

        report(
            "alpha 200 x 4 ordinal, with interval", milliseconds(lambda: krippendorff_alpha(frame, scale="ordinal")),
            {"krippendorff.alpha (no interval)": (milliseconds(alpha), 0)},
            abs(krippendorff_alpha(frame, scale="ordinal").value - alpha()),
        )  # fmt: skip


def calibration(rng: np.random.Generator) -> None:
    """Expected calibration error of 100,000 pairs in 15 bins, edges exact."""
    p = rng.random(100_000)
    y = (rng.random(100_000) < p).astype(float)
    edges = bin_edges(0, 1, 15)

    def theirs() -> float:
        true, predicted = sklearn_curve(y, p, n_bins=15)
        return float(np.abs(true - predicted) @ np.bincount(np.digitize(p, edges[1:-1])) / len(p))

    report(
        "ECE of 100,000 pairs, 15 bins", milliseconds(lambda: expected_calibration_error(p, y, edges)),
        {"sklearn calibration_curve alone": (milliseconds(lambda: sklearn_curve(y, p, n_bins=15)), 5)},
        abs(expected_calibration_error(p, y, edges) - theirs()),
    )  # fmt: skip


def main() -> None:
    """Run every race."""
    warnings.simplefilter("ignore")
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}")
    rng = np.random.default_rng(0)
    correlations(rng)
    agreement(rng)
    reliability(rng)
    calibration(rng)


if __name__ == "__main__":
    main()
