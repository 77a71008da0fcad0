"""Folds that keep a dialogue, scenario or run whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anima.checks import require_int
from anima.errors import InputError
from anima.stats.resampling import cluster_codes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def grouped_folds(groups: ArrayLike, folds: int = 5, *, seed: int = 0) -> NDArray[np.intp]:
    """Return the fold ``0 … folds - 1`` of each row; rows of one group share theirs.

    Parameters
    ----------
    groups
        ``(n,)`` group of each row, e.g. ``dialogue_id``.
    folds
        At least 2. Their numbers of groups differ by at most one; their numbers of rows may differ more.
    seed
        Seed of the shuffling of groups.

    Raises
    ------
    InputError
        If there are fewer groups than folds, or a group is missing.

    Examples
    --------
    >>> fold = grouped_folds(["a", "a", "b", "c"], 3)
    >>> bool(fold[0] == fold[1]), sorted({int(f) for f in fold})
    (True, [0, 1, 2])
    """
    require_int(folds, "folds", low=2)
    labels = np.asarray(groups)
    codes = cluster_codes(labels, len(labels), "groups")
    n_groups = int(codes.max(initial=-1)) + 1
    if n_groups < folds:
        raise InputError(f"groups holds {n_groups} different values, fewer than folds = {folds}: lower folds")
    order = np.random.default_rng(require_int(seed, "seed", low=0)).permutation(n_groups)
    return np.asarray(order % folds, dtype=np.intp)[codes]
