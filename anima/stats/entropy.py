"""Shannon entropy of counts or shares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from anima.checks import require_array
from anima.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def entropy(counts: ArrayLike, *, base: float = 2.0, normalized: bool = False) -> float:
    """Return the entropy of non-negative counts or shares (bits for ``base`` 2); NaN when they add up to nothing.

    An empty class adds 0 (the limit of p log p). ``normalized`` divides by the entropy of equal shares over all given
    classes: 0 to 1, NaN for a single class.
    """
    values = require_array(counts, "counts")
    if values.ndim != 1 or (values < 0).any() or not np.isfinite(values).all():
        raise InputError("counts must be one axis of finite numbers, none below 0")
    total = values.sum()
    if not total:
        return math.nan
    shares = values[values > 0] / total
    result = float(-(shares * np.log(shares)).sum() / math.log(base)) + 0.0
    if not normalized:
        return max(result, 0.0)
    return max(result, 0.0) * math.log(base) / math.log(len(values)) if len(values) > 1 else math.nan
