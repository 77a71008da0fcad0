"""Simulations behind each statistic that differs from the reference package: its rule beside ours on the same data.

``comparisons()`` returns one small table each (a few minutes in all); the book prints them. A cell that is a pair is a
share and its Monte-Carlo standard error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from anima.metaeval import rubric_predictive_validity
from anima.stats import calibration_curve, correlation, icc, lin_ccc
from anima.stats.agreement import kappa_of_tables
from anima.stats.raters import Ratings

if TYPE_CHECKING:
    from collections.abc import Iterable

Table = dict[str, Any]


def comparisons(effort: float = 1.0, seed: int = 1) -> dict[str, Table]:
    """Return every comparison by name; ``effort`` scales the number of trials."""

    def trials(n: int) -> int:
        return max(2, int(n * effort))

    def rng(number: int) -> np.random.Generator:
        return np.random.default_rng([seed, number])

    return {
        "correlation": correlation_intervals(trials(2000), rng(1)),
        "icc": icc_intervals(trials(1000), rng(2)),
        "constants": constant_ratings(trials(20_000), rng(3)),
        "rounding": rounded_scores(trials(2000), rng(4)),
        "family": null_rubrics(trials(500), rng(5)),
        "verdicts": true_rubrics(trials(500), rng(6)),
        "clusters": repeated_scenarios(trials(1000), rng(7)),
        "ece": calibrated_scores(trials(500), rng(8)),
        "normal": normal_tails(),
    }


def share(hits: Iterable[bool]) -> tuple[float, float]:
    """Return a share and its Monte-Carlo standard error, which is not let fall to 0 at the ends."""
    kept = np.asarray(list(hits), dtype=float)
    p = float(kept.mean())
    return p, math.sqrt(max(p * (1 - p), 0.01 * 0.99) / len(kept))


def table(trials: int, head: list[str], rows: list[list[Any]]) -> Table:
    return {"trials": trials, "head": head, "rows": rows}


# --- intervals -------------------------------------------------------------------------------------------------------
def correlation_intervals(trials: int, rng: np.random.Generator) -> Table:
    """The reference takes percentiles of 500 resamples, by its floor rule, from 3 pairs on."""
    rows = []
    for n in (5, 8, 15, 30, 100):
        held: dict[str, list[bool]] = {"percentile": [], "analytic": []}
        for trial in range(trials):
            a, b = rng.standard_normal((2, n))
            b = 0.5 * a + math.sqrt(0.75) * b
            for interval, found in held.items():
                e = correlation(
                    a, b, method="pearson", interval=interval, quantiles="floor", n_resamples=500, p_value="none",
                    rng=trial,
                )  # fmt: skip
                found.append(e.low <= 0.5 <= e.high)
        rows.append([n, *(share(found) for found in held.values())])
    return table(trials, ["pairs", "reference: percentile bootstrap", "anima: Fisher z"], rows)


def icc_intervals(trials: int, rng: np.random.Generator) -> Table:
    """The reference resamples the items and leaves the raters fixed."""
    rows = []
    for n, k, apart in ((10, 3, 0.02), (10, 3, 0.6), (30, 3, 0.02), (30, 3, 0.6)):
        held: dict[str, list[bool]] = {"percentile": [], "generalized": []}
        sizes = np.sqrt([0.6, 0.4 * apart, 0.4 * (1 - apart)])
        for trial in range(trials):
            scores = (
                sizes[0] * rng.standard_normal((n, 1)) + sizes[1] * rng.standard_normal((1, k))
                + sizes[2] * rng.standard_normal((n, k))
            )  # fmt: skip
            labels, codes = np.unique(scores, return_inverse=True)
            data = Ratings(codes.reshape(n, k), labels.tolist(), list(range(n)), list(range(k)), 0)
            for interval, found in held.items():
                e = icc(data, interval=interval, n_resamples=1000, n_draws=1000, rng=trial)
                found.append(e.low <= 0.6 <= e.high)
        rows.append([n, f"{apart:.0%}", *(share(found) for found in held.values())])
    head = ["items", "share of the raters in the error", "reference: percentile bootstrap", "anima: generalized"]
    return table(trials, head, rows)


def repeated_scenarios(trials: int, rng: np.random.Generator) -> Table:
    """Score and outcome unrelated; both partly given by the scenario, which the reference does not look at."""
    rows = []
    for part in (0.0, 0.3, 0.6):
        alone, together = [], []
        for trial in range(trials):
            scenario = np.repeat(np.arange(30), 5)
            a, b = math.sqrt(part) * rng.standard_normal((2, 30))[:, scenario] + math.sqrt(
                1 - part
            ) * rng.standard_normal((2, 150))
            options: dict[str, Any] = {"method": "pearson", "p_value": "none", "n_resamples": 500, "rng": trial}
            e = correlation(a, b, interval="percentile", quantiles="floor", **options)
            alone.append(e.low <= 0 <= e.high)
            e = correlation(a, b, clusters=scenario, **options)
            together.append(e.low <= 0 <= e.high)
        rows.append([f"{part:.0%}", share(alone), share(together)])
    head = ["variance given by the scenario", "reference: runs as if independent", "anima: by scenario"]
    return table(trials, head, rows)


# --- values ----------------------------------------------------------------------------------------------------------
def constant_ratings(trials: int, rng: np.random.Generator) -> Table:
    """Two raters at chance. The reference calls kappa 1 when both used one category only."""
    rows = []
    for n, prevalence in ((10, 0.9), (20, 0.95), (50, 0.98)):
        p = np.array([prevalence, 1 - prevalence])
        tables = rng.multinomial(n, np.outer(p, p).ravel(), size=trials).reshape(-1, 2, 2).astype(float)
        value = kappa_of_tables(tables, np.eye(2))
        undefined = np.isnan(value)
        filled = np.where(undefined, 1.0, value)
        rows.append([n, f"{prevalence:.0%}", share(undefined), float(filled.mean()), float(np.nanmean(value))])
    head = [
        "items", "share of the common class", "one class only", "mean kappa, reference: counted as 1",
        "mean kappa, anima: undefined, left out",
    ]  # fmt: skip
    return table(trials, head, rows)


def rounded_scores(trials: int, rng: np.random.Generator) -> Table:
    """Kappa of scores in [0, 1] rounded to whole numbers, as the reference takes it, beside Lin's concordance."""
    rows = []
    for low, high, rho in ((0.55, 0.95, -0.8), (0.55, 0.95, 0.8), (0.3, 0.7, 0.8)):
        rounded, concordance = [], []
        for _ in range(trials):
            a, b = rng.standard_normal((2, 30))
            b = rho * a + math.sqrt(1 - rho**2) * b
            x, y = (low + (high - low) * stats.norm.cdf(v) for v in (a, b))
            rounded.append(integer_kappa(x, y))
            concordance.append(lin_ccc(x, y).value)
        rows.append([f"{low} to {high}", rho, float(np.mean(rounded)), float(np.mean(concordance))])
    head = [
        "scores lie in", "correlation behind them", "mean, reference: kappa of rounded scores",
        "mean, anima: Lin's concordance",
    ]  # fmt: skip
    return table(trials, head, rows)


def integer_kappa(x: np.ndarray, y: np.ndarray) -> float:
    """Return quadratic kappa of scores rounded half up, 1 where it is undefined, as the reference does."""
    a, b = (np.floor(v + 0.5) for v in (x, y))
    apart = a.var() + b.var() + (a.mean() - b.mean()) ** 2
    return 1 - float(((a - b) ** 2).mean() / apart) if apart else 1.0


# --- verdicts --------------------------------------------------------------------------------------------------------
def reference_verdict(rho: float) -> str:
    return "load_bearing" if abs(rho) >= 0.7 else "informative" if abs(rho) >= 0.4 else "decorative"


def null_rubrics(trials: int, rng: np.random.Generator) -> Table:
    """Ten rubrics and three outcomes that have nothing to do with each other."""
    rubrics, outcomes = [f"r{k}" for k in range(10)], [f"o{k}" for k in range(3)]
    rows = []
    for n in (8, 12, 20, 50):
        found = {verdict: [] for verdict in ("theirs strong", "theirs any", "ours any")}
        for _ in range(trials):
            study = validity(rng.standard_normal((n, 10)), rubrics, rng.standard_normal((n, 3)), outcomes)
            theirs = {reference_verdict(pair.spearman) for pair in study.pairs}
            ours = {pair.verdict for pair in study.pairs}
            found["theirs strong"].append("load_bearing" in theirs)
            found["theirs any"].append(bool(theirs & {"load_bearing", "informative"}))
            found["ours any"].append(bool(ours & {"load_bearing", "informative", "misleading"}))
        rows.append([n, *(share(hits) for hits in found.values())])
    head = ["runs", "reference: a load-bearing one", "reference: at least an informative one", "anima: any claim"]
    return table(trials, head, rows)


def true_rubrics(trials: int, rng: np.random.Generator) -> Table:
    """One rubric, one outcome, a known correlation: what the careful verdict buys, and what it costs."""
    least = {
        "load_bearing": (0.7, 1.0),
        "informative": (0.4, 1.0),
        "decorative": (-1.0, 0.4),
        "misleading": (-1.0, 0.0),
    }
    rows = []
    for n in (20, 50, 200):
        for rho in (0.3, 0.6, 0.8):
            latent = 2 * math.sin(math.pi * rho / 6)  # so that Spearman's rho is the one named
            right, untrue, hit, unsure = reference_verdict(rho), [], [], []
            theirs = []
            for _ in range(trials):
                a, b = rng.standard_normal((2, n, 1))
                study = validity(a, ["rubric"], latent * a + math.sqrt(1 - latent**2) * b, ["outcome"])
                pair = study.pairs[0]
                theirs.append(reference_verdict(pair.spearman) != right)
                hit.append(pair.verdict == right)
                unsure.append(pair.verdict == "uncertain")
                # Ours are statements about the least value: "informative" is true of 0.8 too.
                low, high = least.get(pair.verdict, (-1.0, 1.0))
                untrue.append(not low <= rho <= high)
            rows.append([rho, n, right.replace("_", "-"), *map(share, (theirs, untrue, hit, unsure))])
    head = [
        "true rho", "runs", "class of the truth", "reference: another class", "anima: an untrue statement",
        "anima: the class of the truth", "anima: uncertain",
    ]  # fmt: skip
    return table(trials, head, rows)


def validity(x: np.ndarray, rubrics: list[str], y: np.ndarray, outcomes: list[str]) -> Any:
    runs = pd.DataFrame(x, columns=rubrics).assign(run_id=range(len(x)))
    later = pd.DataFrame(y, columns=outcomes).assign(run_id=range(len(x)))
    return rubric_predictive_validity(runs, later, outcomes, rubrics=rubrics)


# --- calibration, tails ----------------------------------------------------------------------------------------------
def calibrated_scores(trials: int, rng: np.random.Generator) -> Table:
    """Scores that come true exactly as often as they say: the true ECE is 0."""
    rows = []
    for n in (20, 50, 100, 500):
        plain, debiased, beyond = [], [], []
        for trial in range(trials):
            p = rng.random(n)
            curve = calibration_curve(p, rng.random(n) < p, n_null=400, rng=trial)
            plain.append(curve.ece)
            debiased.append(curve.debiased.value)
            beyond.append(curve.ece > curve.null_high)
        rows.append([n, float(np.mean(plain)), float(np.mean(debiased)), share(beyond)])
    head = ["pairs", "mean, reference: plain ECE", "mean, anima: debiased ECE", "anima: beyond the null band"]
    return table(trials, head, rows)


def normal_tails() -> Table:
    """The reference's rational approximation takes z where z over the root of 2 belongs."""
    rows = []
    for z in (1.645, 1.96, 2.576):
        t = 1 / (1 + 0.3275911 * z)
        factors = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
        wrong = sum(a * t**k for k, a in enumerate(factors, 1)) * math.exp(-z * z / 2)
        rows.append([z, wrong, 2 * float(stats.norm.sf(z))])
    return table(0, ["z", "reference: two-sided p", "anima: two-sided p"], rows)


if __name__ == "__main__":
    for name, found in comparisons().items():
        print(f"\n{name} ({found['trials']} trials)")
        print(pd.DataFrame(found["rows"], columns=found["head"]).to_string())
