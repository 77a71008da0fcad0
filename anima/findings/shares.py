"""What a number is a share of: denominators as ``n``, and intervals for shares of all or none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from anima.stats import wilson_interval

if TYPE_CHECKING:
    from anima.stats import Estimate

#: Statistics of one label, by what stands in the estimate's ``extra`` for their denominator.
_COUNTED = {"precision": "predicted", "recall": "support", "f1": "support"}
#: The same in words, for :attr:`anima.findings.record.Measurement.unit`.
UNITS = {"predicted": "messages given the label", "support": "messages with the label"}


def counted(estimate: Estimate, n: float, *, units: int | None = None) -> Estimate:
    """Return an estimate with the denominator of its statistic as ``n``, its interval as in :func:`widened`.

    Parameters
    ----------
    n
        What the statistic is a share of: hits for a precision, items with the label for a recall or an F1.
    units
        What was resampled where that is neither the items of the denominator nor clusters already named.
    """
    clusters = units if estimate.n_clusters is None else estimate.n_clusters
    return widened(replace(estimate, n=round(n), n_clusters=clusters))


def of_label(estimate: Estimate) -> tuple[Estimate, str]:
    """Return precision, recall or F1 of one label with its denominator, and what that counts; others as they are."""
    kind = _COUNTED.get(str(estimate.extra.get("statistic")), "")
    if kind not in estimate.extra:
        return estimate, "messages"
    return counted(estimate, estimate.extra[kind]), UNITS[kind]


def widened(estimate: Estimate) -> Estimate:
    """Return an estimate whose interval does not claim to know the value exactly.

    Where all or none of the units count no resample differs and the bootstrap has no width. A share of 0 or 1 then has
    Wilson's interval, on clusters where there are fewer of them; a paired difference of 0 the same to both sides. A kappa
    of 0 without width is that of a constant answer, which no sampling can move: it has no interval.
    """
    if not (estimate.has_interval and estimate.low == estimate.high == estimate.value and estimate.value in (0.0, 1.0)):
        return estimate
    units = min(estimate.n, estimate.n_clusters or estimate.n)
    if not units or "kappa" in estimate.name:
        return replace(estimate, low=math.nan, high=math.nan, method="no resample differs")
    low, high = (float(end) for end in wilson_interval(estimate.value * units, units, estimate.level))
    if " less " in estimate.name:
        low = -high
    notes = "; ".join(note for note in estimate.reason.split("; ") if "no width" not in note)
    told = {"status": "unreliable" if notes else "ok", "reason": notes}
    return replace(estimate, low=low, high=high, method=f"Wilson on {units} units (no resample differs)", **told)  # type: ignore[arg-type]
