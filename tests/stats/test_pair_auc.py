"""The AUC of pairs: the value of scikit-learn, an interval that resamples members, and how often that holds the truth."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from anima.errors import InputError
from anima.stats import auc
from anima.stats.separation import pair_auc


def study(rng, n=30, spread=1.0):
    """Return scores of all pairs of n members: members differ, and pairs of one class score one higher."""
    level, kind = spread * rng.normal(size=n), rng.random(n) < 0.5
    i, j = np.triu_indices(n, 1)
    same = kind[i] == kind[j]
    return level[i] + level[j] + same + rng.normal(size=len(i)), same, i, j


def test_value_is_that_of_scikit_learn_and_counts_are_of_pairs_and_members():
    scores, same, i, j = study(np.random.default_rng(1))
    found = pair_auc(scores, same, i, j, n_resamples=100)
    assert found.value == pytest.approx(roc_auc_score(same, scores))
    assert (found.n, found.n_clusters) == (435, 30)
    rival = np.random.default_rng(2).normal(size=len(scores))
    gain = pair_auc(scores, same, i, j, rival=rival, n_resamples=100)
    assert gain.value == pytest.approx(roc_auc_score(same, scores) - roc_auc_score(same, rival))


def test_a_resample_is_the_auc_of_the_pairs_of_the_members_drawn():
    scores, same, i, j = study(np.random.default_rng(4), n=6)
    drawn = np.array([0, 0, 1, 2, 3, 5])

    class Once:
        def integers(self, low, high, *, size):
            return np.tile(drawn, (size[0], 1))

    found = pair_auc(scores, same, i, j, rng=Once(), n_resamples=2)
    where = {(a, b): row for row, (a, b) in enumerate(zip(i, j, strict=True))}
    rows = [where[a, b] for x, a in enumerate(drawn) for b in drawn[x + 1 :] if a != b]
    assert found.low == found.high == pytest.approx(roc_auc_score(same[rows], scores[rows]))


def test_undefined_and_refused():
    assert pair_auc([1.0, 2.0], [1, 1], [0, 0], [1, 2]).status == "undefined"
    with pytest.raises(InputError, match="one value per pair"):
        pair_auc([1.0, 2.0], [1, 0], [0], [1])


@pytest.mark.slow
def test_by_both_members_the_interval_holds_the_truth_and_by_the_first_alone_it_does_not():
    rng = np.random.default_rng(5)
    scores, same, _, _ = study(rng, n=2500)
    truth = roc_auc_score(same, scores)
    held = np.zeros(2)
    for _ in range(200):
        scores, same, i, j = study(rng, n=40)
        both = pair_auc(scores, same, i, j, n_resamples=200)
        first = auc(scores, same.astype(float), clusters=i, interval="percentile", n_resamples=200)
        held += [one.low <= truth <= one.high for one in (both, first)]
    assert held[0] / 200 > 0.9
    assert held[1] < held[0]


def test_a_missing_score_is_refused():
    scores, same, i, j = study(np.random.default_rng(5), n=6)
    scores[2] = np.nan
    with pytest.raises(InputError, match="no missing values"):
        pair_auc(scores, same, i, j)
