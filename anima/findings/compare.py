"""What differs between the published run of a finding and another one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anima.stats import Presentable

if TYPE_CHECKING:
    import pandas as pd

    from anima.findings.record import Finding


@dataclass(frozen=True)
class Difference:
    """One measurement in two runs; ``within`` says whether it reproduces to its stated tolerance."""

    key: str
    published: float
    rerun: float
    tolerance: float

    @property
    def within(self) -> bool:
        """Whether the two values are equal to the tolerance; undefined equals undefined."""
        both_undefined = math.isnan(self.published) and math.isnan(self.rerun)
        return both_undefined or abs(self.published - self.rerun) <= self.tolerance


@dataclass(frozen=True)
class Comparison(Presentable):
    """A rerun beside the published run.

    Parameters
    ----------
    name
        The finding.
    changed
        What the receipts say differs: inputs, code, parameters, results; in words.
    differences
        Measurements that both runs have.
    missing, added
        Keys only the published run has, and only the rerun.
    sample
        Whether the rerun used a written sample, which is never expected to reproduce anything.
    """

    name: str
    changed: tuple[str, ...]
    differences: tuple[Difference, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    sample: bool

    @property
    def reproduces(self) -> bool:
        """Whether every published number came out again within its tolerance."""
        return not self.missing and all(item.within for item in self.differences)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per measurement of both runs."""
        import pandas as pd

        rows = [(item.key, item.published, item.rerun, item.within) for item in self.differences]
        return pd.DataFrame(rows, columns=["key", "published", "rerun", "within"])

    def summary(self) -> str:
        """Return in one or two sentences what differs."""
        if self.sample:
            return f"{self.name}: rerun on a written SAMPLE; nothing in it is comparable with the published run."
        if not self.changed and not self.missing and not self.added:
            return f"{self.name}: identical with the published run."
        off = [item for item in self.differences if not item.within]
        size = len(self.differences)
        parts = [
            f"differs from the published run in {', '.join(self.changed) or 'nothing but its measurements'}",
            f"{size - len(off)} of {size} numbers are equal within tolerance",
        ]
        if off:
            worst = max(off, key=lambda item: abs(item.published - item.rerun))
            parts.append(f"farthest is {worst.key}: {worst.published:.3f} published, {worst.rerun:.3f} now")
        parts += [f"missing: {', '.join(self.missing)}"] if self.missing else []
        parts += [f"new: {', '.join(self.added)}"] if self.added else []
        return f"{self.name}: {'; '.join(parts)}."


def compare_findings(published: Finding, rerun: Finding) -> Comparison:
    """Compare two runs of one finding, number by number and receipt by receipt."""
    old, new = ({item.key: item for item in run.measurements} for run in (published, rerun))
    both = (
        Difference(key, old[key].estimate.value, new[key].estimate.value, old[key].tolerance)
        for key in old
        if key in new
    )
    missing, added = tuple(key for key in old if key not in new), tuple(key for key in new if key not in old)
    changed = tuple(published.receipt.differences(rerun.receipt))
    return Comparison(published.name, changed, tuple(both), missing, added, rerun.sample)
