"""Every default interval covers what it promises; the settings are in ``coverage_table.py``."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def table():
    path = Path(__file__).with_name("coverage_table.py")
    spec = importlib.util.spec_from_file_location("coverage_table", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["coverage_table"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "rows"),
    [
        ("pearson", 26), ("spearman", 14), ("kappa", 150), ("ICC(2,1)", 18), ("ECE", 12), ("Lin", 4), ("Kripp", 4),
        ("Gwet", 4),
    ],
)  # fmt: skip
def test_promised_coverage_is_kept(table, statistic, rows):
    frame = table.coverage_frame(trials=1000, statistic=statistic)
    promised = frame[frame["promised_low"].notna()]
    assert len(promised) == rows
    broken = promised[~promised["kept"].astype(bool)]
    assert broken.empty, broken[["data", "n", "truth", "coverage", "mc_error"]].to_string()


@pytest.mark.slow
def test_what_fails_is_announced(table):
    """Intervals that promise nothing are there to show why: they under-cover, or the result says 'unreliable'."""
    kappa = table.coverage_frame(trials=300, statistic="kappa")
    ruled = kappa[kappa["data"].str.endswith("prevalence 0.9") & (kappa["n"] == 30)]
    assert (ruled["unreliable"] > 0.7).all()
    pearson = table.coverage_frame(trials=300, statistic="pearson")
    small = pearson[(pearson["interval"] == "percentile") & (pearson["n"] == 10)]
    assert (small["coverage"] < 0.94).all()
    assert (small["unreliable"] == 1).all()
    heavy = pearson[pearson["data"].str.startswith("t(3)") & (pearson["n"] == 100)]
    assert (heavy["unreliable"] > 0.8).all()
    icc = table.coverage_frame(trials=300, statistic="ICC")
    assert icc.loc[icc["interval"] == "McGraw–Wong", "coverage"].min() < 0.88


def test_true_values_agree_with_large_samples(table):
    """The exact truths of the table, on one large sample each; quick, so it runs always."""
    import numpy as np

    from anima.stats import correlation

    rng = np.random.default_rng(1)
    for method in ("pearson", "spearman"):
        for x, y, rho in table.CORRELATION:
            if rho and not (method == "spearman" and "binary" in y):
                a, b = table.draw_pair(rng, 60_000, x, y, rho)
                value = correlation(a, b, method=method, p_value="none").value
                assert value == pytest.approx(table.true_correlation(method, x, y, rho), abs=0.015)
