"""Grouped folds: a group never in two folds, sizes even, refusals named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import InputError
from anima.stats import grouped_folds


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(2, 6), st.integers(0, 5))
def test_groups_stay_whole_and_folds_are_even(groups, folds, seed):
    if len(set(groups)) < folds:
        with pytest.raises(InputError, match="fewer than folds"):
            grouped_folds(groups, folds, seed=seed)
        return
    fold = grouped_folds(groups, folds, seed=seed)
    of_group = {g: {int(f) for f, h in zip(fold, groups, strict=True) if h == g} for g in set(groups)}
    assert all(len(found) == 1 for found in of_group.values())
    sizes = np.bincount([next(iter(found)) for found in of_group.values()], minlength=folds)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(fold, grouped_folds(groups, folds, seed=seed))


def test_seed_shuffles_and_a_missing_group_is_named():
    groups = np.repeat(np.arange(40), 2)
    assert not np.array_equal(grouped_folds(groups, seed=0), grouped_folds(groups, seed=1))
    with pytest.raises(InputError, match="missing at row 1"):
        grouped_folds(["a", None, "b"], 2)
