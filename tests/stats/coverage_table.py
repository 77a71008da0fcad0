"""Coverage of every default interval, by simulation: the settings in one table, the results as a DataFrame.

``coverage_frame()`` reruns everything (about a minute); the book prints it. A row says which statistic and interval on
which data, the true value, how often the interval held it, the Monte-Carlo error of that share, how often the statistic
was undefined or marked unreliable, and the range promised (None: shown for comparison, nothing promised).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from anima.stats import calibration_curve, cohen_kappa, correlation, gwet_ac, icc, krippendorff_alpha, lin_ccc
from anima.stats.agreement import RULING_SHARE, agreement_weights, kappa_intervals, kappa_of_tables
from anima.stats.raters import Ratings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JACKKNIFE = "jackknife, Fisher z, t"
LIKERT, SKEWED = (-1.2, -0.4, 0.4, 1.2), (-1.8, -1.2, -0.6, 0.2)
CUTS = {"normal": None, "Likert": LIKERT, "skewed Likert": SKEWED, "binary .5": (0.0,), "binary .7": (-0.5244,)}


@dataclass(frozen=True)
class Setting:
    statistic: str
    data: str
    n: int
    truth: float
    interval: str
    promised: tuple[float, float] | None
    run: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]  # lows, highs, unreliable


def settings() -> Iterator[Setting]:
    """Yield every setting of the table."""
    yield from correlation_settings()
    yield from kappa_settings()
    yield from icc_settings()
    yield from ece_settings()
    yield from other_settings()


# --- correlation -----------------------------------------------------------------------------------------------------
CORRELATION = [
    # x, y, latent rho
    *[("normal", "normal", rho) for rho in (0.0, 0.5, 0.8)],
    *[("Likert", "Likert", rho) for rho in (0.0, 0.5, 0.8)],
    ("skewed Likert", "skewed Likert", 0.5),
    *[("normal", y, rho) for y in ("binary .5", "binary .7") for rho in (0.0, 0.5)],
    *[("binary .5", "binary .5", rho) for rho in (0.3, 0.6)],
]


def correlation_settings() -> Iterator[Setting]:
    for n in (10, 30):
        for method in ("pearson", "spearman"):
            for x, y, rho in CORRELATION:
                if method == "spearman" and "binary" in y:
                    continue
                yield Setting(
                    method, f"{x} × {y}, latent {rho}", n, true_correlation(method, x, y, rho), "analytic",
                    (0.93, 0.98),
                    run_correlation(method, x, y, rho, n, "analytic"),
                )  # fmt: skip
            yield Setting(
                method, "normal × normal, latent 0.5", n, true_correlation(method, "normal", "normal", 0.5),
                "percentile", None, run_correlation(method, "normal", "normal", 0.5, n, "percentile"),
            )  # fmt: skip
    for n in (30, 100):
        yield Setting(
            "pearson", "t(3) × t(3), common scale, 0.5", n, 0.5, "analytic", None,
            run_correlation("pearson", "t3", "t3", 0.5, n, "analytic"),
        )  # fmt: skip


def draw_pair(rng: np.random.Generator, n: int, x: str, y: str, rho: float) -> tuple[np.ndarray, np.ndarray]:
    a, b = rng.standard_normal((2, n))
    b = rho * a + math.sqrt(1 - rho**2) * b
    if x == "t3":
        scale = np.sqrt(rng.chisquare(3, n) / 3)
        return a / scale, b / scale
    return tuple(v if CUTS[kind] is None else np.digitize(v, CUTS[kind]).astype(float) for v, kind in ((a, x), (b, y)))


def run_correlation(method, x, y, rho, n, interval):
    def run(rng, trials):
        if interval == "percentile":
            trials = min(trials, 1000)
        out = []
        for trial in range(trials):
            a, b = draw_pair(rng, n, x, y, rho)
            out.append(correlation(a, b, method=method, interval=interval, p_value="none", n_resamples=600, rng=trial))
        return collect(out)

    return run


@cache
def cells(x: str, y: str, rho: float) -> np.ndarray:
    """Return the exact cell probabilities of two cut normals."""
    edges = [np.array([-9.0, *CUTS[kind], 9.0]) for kind in (x, y)]
    grid = np.array([[(a, b) for b in edges[1]] for a in edges[0]])
    cdf = stats.multivariate_normal.cdf(grid, mean=[0, 0], cov=[[1, rho], [rho, 1]], allow_singular=True)
    return np.clip(np.diff(np.diff(cdf, axis=0), axis=1), 0, None)


def true_correlation(method: str, x: str, y: str, rho: float) -> float:
    if x == y == "normal":
        return rho if method == "pearson" else 6 / math.pi * math.asin(rho / 2)
    if x == "normal":
        cut = CUTS[y][0]
        p = stats.norm.sf(cut)
        return rho * stats.norm.pdf(cut) / math.sqrt(p * (1 - p))
    p = cells(x, y, rho)
    p = p / p.sum()
    margins = [p.sum(axis=1), p.sum(axis=0)]
    values = [np.arange(len(m)) if method == "pearson" else np.cumsum(m) - m / 2 for m in margins]
    centred = [v - (v * m).sum() for v, m in zip(values, margins, strict=True)]
    spread = [math.sqrt((c**2 * m).sum()) for c, m in zip(centred, margins, strict=True)]
    return float(centred[0] @ p @ centred[1] / (spread[0] * spread[1]))


# --- kappa -----------------------------------------------------------------------------------------------------------
def kappa_settings() -> Iterator[Setting]:
    for n, floor in ((10, 0.92), (30, 0.93)):
        for prevalence in (0.5, 0.7, 0.8, 0.9):
            for kappa in (0.0, 0.3, 0.6, 0.8, 0.9):
                p = np.array([prevalence, 1 - prevalence])
                table = np.outer(p, p) * (1 - kappa) + np.diag(p) * kappa
                promised = (floor, 1.0) if prevalence <= 0.8 else None
                yield Setting(
                    "kappa", f"2 categories, prevalence {prevalence}", n, kappa, "score, t", promised,
                    run_kappa(table, np.eye(2), n),
                )  # fmt: skip
        for size, cuts in ((3, (-0.6, 0.6)), (3, (-1.2, 0.0)), (4, (-1.0, 0.0, 1.0)), (5, LIKERT), (5, SKEWED)):
            for weights in ("nominal", "linear", "quadratic"):
                for rho in (0.0, 0.5, 0.8, 0.95):
                    CUTS["rating"] = cuts
                    table = cells.__wrapped__("rating", "rating", rho)
                    table = table / table.sum()
                    weight = agreement_weights(range(size), weights)
                    yield Setting(
                        "kappa", f"{size} categories at {cuts}, {weights}, latent {rho}", n,
                        float(kappa_of_tables(table[None], weight)[0]), "Fisher z, pseudo-observation, t", (floor, 1.0),
                        run_kappa(table, weight, n),
                    )  # fmt: skip

        table = cells.__wrapped__("rating", "rating", 0.8)
        yield Setting(
            "kappa", "5 categories, skewed, latent 0.8", n, float(kappa_of_tables(table[None], np.eye(5))[0]),
            "percentile", None, run_kappa_bootstrap(table / table.sum(), n),
        )  # fmt: skip


def run_kappa_bootstrap(table, n):
    def run(rng, trials):
        out = []
        for trial in range(min(trials, 500)):
            pairs = rng.choice(table.size, n, p=table.ravel())
            out.append(cohen_kappa(*divmod(pairs, len(table)), interval="percentile", n_resamples=600, rng=trial))
        return collect(out)

    return run


def run_kappa(table, weight, n):
    def run(rng, trials):
        k = len(table)
        drawn = rng.multinomial(n, table.ravel(), size=10 * trials)  # cheap, and one row lies close to its promise
        drawn = drawn.reshape(-1, k, k).astype(float)
        low, high = kappa_intervals(drawn, weight)
        undefined = np.isnan(kappa_of_tables(drawn, weight))
        share = ((drawn.sum(axis=1) + drawn.sum(axis=2)) / (2 * n)).max(axis=1)
        return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high), share > RULING_SHARE

    return run


# --- intraclass correlation ------------------------------------------------------------------------------------------
def icc_settings() -> Iterator[Setting]:
    for n, k in ((10, 3), (30, 2), (30, 5)):
        for truth in (0.3, 0.6, 0.9):
            for share in (0.02, 0.6):
                data = f"{k} raters, their share of the rest {share}"
                yield Setting("ICC(2,1)", data, n, truth, "generalized", (0.93, 0.975), run_icc(n, k, truth, share))
                if share > 0.5:
                    run = run_icc(n, k, truth, share, "mcgraw-wong")
                    yield Setting("ICC(2,1)", data, n, truth, "McGraw–Wong", None, run)


def run_icc(n, k, truth, share, interval="generalized"):
    def run(rng, trials):
        sizes = np.sqrt([truth, (1 - truth) * share, (1 - truth) * (1 - share)])
        out = []
        for trial in range(min(trials, 1000)):
            scores = (
                sizes[0] * rng.standard_normal((n, 1)) + sizes[1] * rng.standard_normal((1, k))
                + sizes[2] * rng.standard_normal((n, k))
            )  # fmt: skip
            out.append(icc(as_ratings(scores), interval=interval, n_draws=1000, rng=trial))
        return collect(out)

    return run


def as_ratings(scores: np.ndarray) -> Ratings:
    labels, codes = np.unique(scores, return_inverse=True)
    n, k = scores.shape
    return Ratings(codes.reshape(n, k), labels.tolist(), list(range(n)), list(range(k)), 0)


# --- calibration -----------------------------------------------------------------------------------------------------
CURVES = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: 0.5 + 0.6 * (p - 0.5),
    "shifted": lambda p: np.clip(p - 0.15, 0, 1),
    "reversed": lambda p: 1 - p,
}


def ece_settings() -> Iterator[Setting]:
    for name, curve in CURVES.items():
        grid = (np.arange(1_000_000) + 0.5) / 1_000_000
        place = np.minimum((grid * 10).astype(int), 9)
        truth = float(np.abs(np.bincount(place, weights=curve(grid) - grid)).sum() / len(grid))
        for n in (20, 100, 500):
            yield Setting("ECE, 10 bins", name, n, truth, "conservative", (0.95, 1.0), run_ece(curve, n))


def run_ece(curve, n):
    def run(rng, trials):
        out = []
        for _ in range(min(trials, 400)):
            p = rng.random(n)
            out.append(calibration_curve(p, rng.random(n) < curve(p), n_null=0).debiased)
        return collect(out)

    return run


# --- the rest --------------------------------------------------------------------------------------------------------
def other_settings() -> Iterator[Setting]:
    for n in (10, 30):
        for rho in (0.3, 0.8):
            truth = 2 * rho / (2 + 0.3**2)
            yield Setting(
                "Lin's concordance", f"normal, bias 0.3, latent {rho}", n, truth, JACKKNIFE, (0.92, 0.99),
                run_others(lambda rng, n, rho=rho: lin_ccc(*shifted(rng, n, rho)), n),
            )  # fmt: skip
        for agree in (0.3, 0.7):
            # Each of three raters copies the item's true class with chance sqrt(agree), else draws at random: pairs
            # agree beyond chance with chance `agree`, so alpha and AC1 of equal shares are both `agree`.
            for title, coefficient in (("Krippendorff's alpha", krippendorff_alpha), ("Gwet's AC1", gwet_ac)):
                yield Setting(
                    title, f"3 raters, 4 equal classes, {agree}", n, agree, JACKKNIFE, (0.92, 0.99),
                    run_others(lambda rng, n, a=agree, f=coefficient: f(copying(rng, n, a)), n),
                )  # fmt: skip


def shifted(rng, n, rho):
    a, b = draw_pair(rng, n, "normal", "normal", rho)
    return a, b + 0.3


def copying(rng, n, agree):
    truth = rng.integers(0, 4, (n, 1))
    codes = np.where(rng.random((n, 3)) < math.sqrt(agree), truth, rng.integers(0, 4, (n, 3)))
    return Ratings(codes, [0, 1, 2, 3], list(range(n)), [0, 1, 2], 0, declared=True)


def run_others(estimate, n):
    def run(rng, trials):
        return collect([estimate(rng, n) for _ in range(min(trials, 1000))])

    return run


# --- running ---------------------------------------------------------------------------------------------------------
def collect(estimates):
    return (
        np.array([e.low for e in estimates]), np.array([e.high for e in estimates]),
        np.array([e.status == "unreliable" for e in estimates]),
    )  # fmt: skip


def coverage_frame(trials: int = 2000, seed: int = 1, statistic: str | None = None) -> pd.DataFrame:
    """Return the table; ``statistic`` keeps the rows whose statistic starts with it."""
    rows = []
    for number, setting in enumerate(settings()):
        if statistic and not setting.statistic.startswith(statistic):
            continue
        low, high, unreliable = setting.run(np.random.default_rng([seed, number]), trials)
        defined = ~np.isnan(low)
        held = (low[defined] <= setting.truth + 1e-12) & (setting.truth - 1e-12 <= high[defined])
        coverage = float(held.mean())
        error = math.sqrt(max(coverage * (1 - coverage), 0.01 * 0.99) / len(held))
        lowest, highest = setting.promised or (math.nan, math.nan)
        kept = coverage + 2 * error >= lowest and coverage - 2 * error <= highest if setting.promised else None
        rows.append({
            "statistic": setting.statistic, "data": setting.data, "n": setting.n, "truth": setting.truth,
            "interval": setting.interval, "trials": len(low), "coverage": coverage, "mc_error": error,
            "undefined": float(1 - defined.mean()), "unreliable": float(unreliable.mean()),
            "promised_low": lowest, "promised_high": highest, "kept": kept,
        })  # fmt: skip
    return pd.DataFrame(rows)


if __name__ == "__main__":
    pd.set_option("display.width", 220, "display.max_rows", 500, "display.max_colwidth", 60)
    print(coverage_frame().round(3).drop(columns=["promised_low", "promised_high"]).to_string())
