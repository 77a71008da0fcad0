import math

import numpy as np
import pandas as pd
import pytest

from anima.errors import InputError
from anima.stats import icc, lin_ccc, weighted_kappa
from anima.stats.intraclass import concordance_terms, icc_of_sums

RNG = np.random.default_rng(2)
SCORES = RNG.normal(size=(25, 1)) + 0.4 * RNG.normal(size=(1, 4)) + 0.6 * RNG.normal(size=(25, 4))
KINDS = {
    "1,1": "ICC(1,1)",
    "2,1": "ICC(A,1)",
    "3,1": "ICC(C,1)",
    "1,k": "ICC(1,k)",
    "2,k": "ICC(A,k)",
    "3,k": "ICC(C,k)",
}


def long(matrix):
    rows = [(i, f"r{j}", v) for i, row in enumerate(np.asarray(matrix)) for j, v in enumerate(row)]
    return pd.DataFrame(rows, columns=["item", "rater", "value"])


@pytest.mark.filterwarnings("ignore")  # pingouin's own
@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_pingouin(kind):
    pingouin = pytest.importorskip("pingouin")
    table = pingouin.intraclass_corr(long(SCORES), targets="item", raters="rater", ratings="value")
    row = table[table["Type"] == KINDS[kind]]
    assert len(row) == 1  # names changed between releases; a silent mismatch would test nothing
    ours = icc(long(SCORES), kind=kind, interval="mcgraw-wong")
    assert ours.value == pytest.approx(float(row["ICC"].iloc[0]), abs=1e-9)
    column = "CI95" if "CI95" in row else "CI95%"
    assert (ours.low, ours.high) == pytest.approx(tuple(row[column].iloc[0]), abs=6e-3)


def test_agrees_with_shrout_and_fleiss():
    # Shrout and Fleiss (1979), tables 2 and 4.
    scores = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    expected = {"1,1": 0.17, "2,1": 0.29, "3,1": 0.71, "1,k": 0.44, "2,k": 0.62, "3,k": 0.91}
    assert {kind: round(icc(long(scores), kind=kind).value, 2) for kind in expected} == expected


def test_generalized_interval_is_seeded_and_wider_with_few_raters():
    default, again = icc(long(SCORES[:, :2])), icc(long(SCORES[:, :2]))
    assert default.to_dict() == again.to_dict()
    assert default.seed is not None
    assert default.method.startswith("generalized")
    all_raters = icc(long(SCORES))
    assert default.high - default.low > all_raters.high - all_raters.low


def test_perfect_agreement_has_no_interval():
    """pingouin: F infinite and an interval of NaN."""
    result = icc(long([[1, 1], [2, 2], [3, 3]]))
    assert (result.value, result.status) == (1, "unreliable")
    assert "not estimable, zero residual variance" in result.reason
    assert icc(long([[1, 1], [2, 2], [3, 3]]), kind="1,1").value == 1


def test_negative_icc_is_reported_raw_and_flagged():
    """easystats/performance#204; pingouin printed an interval of one point at -1.57."""
    result = icc(long([[1, 3], [3, 1], [2, 2], [1, 3]]))
    assert result.value == pytest.approx(-1.571, abs=1e-3)
    assert "no reliability" in result.reason
    assert not result.has_interval or result.low <= result.value <= result.high


def test_ragged_design_is_told_what_to_do():
    """raphaelvallat/pingouin#231: one rater per item failed without a message."""
    frame = long([[1, math.nan], [math.nan, 2], [3, math.nan]])
    result = icc(frame)
    assert result.status == "undefined"
    assert "crossed design" in result.reason
    assert "krippendorff_alpha" in result.reason
    assert icc(frame, kind="1,1").reason == "0 items with two scores or more, at least 2 are needed"


def test_missing_scores_are_counted():
    scores = SCORES.copy()
    scores[3, 1] = math.nan
    result = icc(long(scores))
    assert (result.n, result.n_dropped) == (24, 1)
    assert result.value == pytest.approx(icc(long(np.delete(SCORES, 3, axis=0))).value)
    loose = icc(long(scores), kind="1,1")
    assert loose.n == 25
    assert "different numbers of ratings" in loose.reason


def test_constant_scores_are_undefined():
    for kind in ("1,1", "2,1", "3,k"):
        assert icc(long(np.ones((4, 3))), kind=kind).status == "undefined"
    assert icc(long([[1, 3], [2, 2], [3, 1]]), kind="1,k").status == "undefined"


def test_duplicates_are_refused():
    frame = long(SCORES)
    with pytest.raises(InputError, match="more than once"):
        icc(pd.concat([frame, frame]))
    with pytest.raises(InputError, match="exact F"):
        icc(frame, kind="1,1", interval="bca")


@pytest.mark.parametrize("kind", ["2,1", "3,1", "2,k"])
def test_resamples_agree_with_the_formula(kind):
    rows = RNG.integers(0, 25, (20, 25))
    counts = np.array([np.bincount(row, minlength=25) for row in rows], dtype=float)
    ours = icc_of_sums(counts @ concordance_terms(SCORES), 4, kind)
    for value, row in zip(ours, rows, strict=True):
        assert value == pytest.approx(icc(long(SCORES[row]), kind=kind).value, abs=1e-10)
    resampled = icc(long(SCORES), kind=kind, interval="percentile")
    assert resampled.low < resampled.value < resampled.high
    assert resampled.name == f"ICC({kind})"


def test_two_raters_repeat_the_message_of_quadratic_kappa():
    pair = np.round(SCORES[:, :2] * 2)
    assert icc(long(pair)).value == pytest.approx(weighted_kappa(*pair.T).value, abs=0.02)


@pytest.mark.parametrize("interval", ["auto", "percentile", "bca"])
@pytest.mark.parametrize("flat", [1, 0.1 + 0.2, 1e9])
def test_a_constant_rater_has_no_interval_of_rounding_noise(interval, flat):
    x = np.random.default_rng(0).random(30)
    frame = long(np.column_stack([x, np.full(30, flat)]))
    found = [lin_ccc(x, [flat] * 30, interval=interval), lin_ccc([flat] * 30, x, clusters=np.arange(30) // 2)]
    found += [icc(frame, kind=kind, interval=interval) for kind in ("2,1", "3,1", "2,k")]
    for one in found:
        assert (one.value, one.has_interval, one.status) == (0, False, "unreliable")
        assert one.reason == f"a rater gave one score ({flat:g}) throughout: interval not estimable"
    # Of three raters two still differ.
    assert icc(long(np.column_stack([x, x[::-1], np.ones(30)])), interval=interval).has_interval
