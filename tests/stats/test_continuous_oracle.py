"""Continuous agreement as the reference package computes it, from our building blocks and its resampling stream."""

import math

import numpy as np
import pytest
from scipy import stats

from anima.stats.intraclass import concordance_terms, icc_of_sums, mean_concordance, mean_linear_agreement
from anima.stats.resampling import resample_counts

# Cases in which the reference package maps degenerate data to 0 or 1; ours are undefined.
DEGENERATE = {"all-equal-0.1", "constant-columns-differ", "one-constant-column", "n0", "one-rater"}


def agreement(scores, counts, weights):
    k = scores.shape[1]
    # A power of two and the mean keep the digits of the squares.
    sums = counts @ concordance_terms(scores - scores.mean())
    kappa = mean_concordance(sums, k) if weights == "quadratic" else mean_linear_agreement(counts, scores)
    return kappa, icc_of_sums(sums, k)


@pytest.mark.oracle
def test_reference_outputs(oracle_cases, mulberry32):
    compared = 0
    for case in oracle_cases("agreement"):
        if case["function"] != "continuousAgreement" or DEGENERATE & set(case["tags"]):
            continue
        options, rows = case["input"].get("options") or {}, case["input"]["scores"]
        rows = [row for row in rows if len(row) >= 2 and all(math.isfinite(v) for v in row)]
        rows = [row for row in rows if len(row) == len(rows[0])]
        scores, out = np.array(rows, dtype=float), case["output"]
        n, weights = len(scores), options.get("weights", "quadratic")
        kappa, intraclass = agreement(scores, np.ones((1, n)), weights)
        assert kappa[0] == pytest.approx(out["weightedKappa"], abs=1e-9), case["id"]
        assert intraclass[0] == pytest.approx(out["icc"], abs=1e-9), case["id"]
        draws = options.get("bootstrap", 1000)
        if draws <= 0:
            continue
        stream = mulberry32(options.get("seed", 0xC0FFEE))
        counts = np.concatenate(list(resample_counts(n, draws, stream)))
        level = options.get("ciLevel", 0.95)
        tails = [(1 - level) / 2, 1 - (1 - level) / 2]
        degenerate = False
        for values, key in zip(agreement(scores, counts, weights), ("weightedKappa", "icc"), strict=True):
            # There a resample of one item gives 0 or 1, here it is undefined: such intervals differ on purpose.
            degenerate |= bool(np.isnan(values).any())
            if not degenerate:
                ours = np.quantile(values[np.isfinite(values)], tails)
                assert ours == pytest.approx(out["ci"][key], abs=1e-9), (case["id"], key)
                compared += 1
    assert compared >= 20


def test_linear_agreement_agrees_with_the_definition():
    rng = np.random.default_rng(1)
    scores = np.round(rng.normal(size=(30, 3)), 1)
    rows = rng.integers(0, 30, (5, 30))
    counts = np.array([np.bincount(row, minlength=30) for row in rows], dtype=float)
    expected = []
    for row in rows:
        pairs = [(scores[row, i], scores[row, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        expected.append(np.mean([1 - np.abs(a - b).mean() / np.abs(a[:, None] - b).mean() for a, b in pairs]))
    assert mean_linear_agreement(counts, scores) == pytest.approx(expected)
    assert np.isnan(mean_linear_agreement(np.ones((1, 4)), np.ones((4, 2)))).all()


def test_stacked_concordance_agrees_with_pearson_when_moments_match():
    rng = np.random.default_rng(4)
    a, b = stats.zscore(rng.normal(size=50)), stats.zscore(rng.normal(size=50))
    sums = concordance_terms(np.column_stack([a, b])).sum(axis=0)[None]
    assert mean_concordance(sums, 2)[0] == pytest.approx(stats.pearsonr(a, b).statistic)
