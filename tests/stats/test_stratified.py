"""The Mantel–Haenszel odds ratio against statsmodels, and its behaviour at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anima.errors import InputError
from anima.stats import mantel_haenszel


def _rows(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write 2 x 2 tables (strata, event, outcome) out as rows."""
    event, outcome, strata = [], [], []
    for k, table in enumerate(tables):
        for i, e in enumerate((1, 0)):
            for j, o in enumerate((1, 0)):
                event += [e] * table[i, j]
                outcome += [o] * table[i, j]
                strata += [f"s{k}"] * table[i, j]
    return np.array(event), np.array(outcome), np.array(strata)


@pytest.mark.parametrize("seed", range(5))
def test_equal_to_statsmodels(seed: int) -> None:
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    tables = np.random.default_rng(seed).integers(1, 30, size=(4, 2, 2))
    peer = contingency.StratifiedTable([table.astype(float) for table in tables])
    ours = mantel_haenszel(*_rows(tables))
    assert ours.value == pytest.approx(peer.oddsratio_pooled)
    assert (ours.low, ours.high) == pytest.approx(peer.oddsratio_pooled_confint())
    assert ours.p_value == pytest.approx(peer.test_null_odds(correction=False).pvalue)


def test_one_stratum_is_the_plain_odds_ratio() -> None:
    event, outcome, _ = _rows(np.array([[[12, 5], [7, 20]]]))
    assert mantel_haenszel(event, outcome).value == pytest.approx(12 * 20 / (5 * 7))


def test_a_confounder_is_taken_out() -> None:
    # Within each stratum nothing is associated; pooled, the event seems to matter.
    tables = np.array([[[40, 10], [4, 1]], [[1, 4], [10, 40]]])
    event, outcome, strata = _rows(tables)
    assert mantel_haenszel(event, outcome, strata).value == pytest.approx(1.0)
    assert mantel_haenszel(event, outcome).value > 5


def test_clusters_of_copies_widen_the_interval() -> None:
    event, outcome, strata = _rows(np.random.default_rng(3).integers(4, 12, size=(2, 2, 2)))
    order = np.random.default_rng(4).permutation(len(event))
    event, outcome, strata = (np.repeat(v[order], 4) for v in (event, outcome, strata))
    copies = np.repeat(np.arange(len(order)), 4)
    free, bound = mantel_haenszel(event, outcome, strata), mantel_haenszel(event, outcome, strata, clusters=copies)
    assert bound.value == pytest.approx(free.value)
    assert bound.n_clusters == len(order)
    assert math.log(bound.high / bound.low) > 1.5 * math.log(free.high / free.low)
    assert bound.p_value > free.p_value


def test_empty_diagonals_are_undefined_and_missing_rows_counted() -> None:
    result = mantel_haenszel([1, 1, 0, 0], [1, 1, 0, 0])
    assert result.status == "undefined"
    assert "infinite" in result.reason
    for missing in (math.nan, math.inf, None):
        assert mantel_haenszel([1, 1, 0, 0, missing], [1, 0, 1, 0, 1], list("aaaab")).n_dropped == 1
    assert not mantel_haenszel([], []).defined


def test_numbers_that_are_no_flags_are_refused() -> None:
    with pytest.raises(InputError, match="event must hold 0 and 1"):
        mantel_haenszel([0, 2], [0, 1])
