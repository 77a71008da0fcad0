"""How often a rewriting that keeps the meaning slips past the lexicon, the markers and the intents.

The pairs are written ones, one plain sentence and one evasion each. A technique is *seen* when earlier detectors of this kind
were mended with it in mind, *unseen* otherwise. Only an evasion whose plain sentence is caught can succeed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.authenticity.files import read_jsonl
from anima.errors import InputError
from anima.findings.record import Finding, Measurement, stated
from anima.lexicon import scan
from anima.settings import data_path
from anima.stats.agreement import share_estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anima.authenticity.instrument import Instrument
    from anima.stats import Estimate

DATA: Final = "lexicon/evasions.jsonl"
SPLITS: Final = ("seen", "unseen")
#: Giving one's word is a way to commit oneself: either category catches a commitment.
_ALSO: Final = {"commitment": ("commitment", "pledge")}
STATED: Final = stated("evasions")


def load_pairs() -> pd.DataFrame:
    """Return the written pairs: ``id, lang, technique, split, category, plain, evasion``."""
    return pd.DataFrame([row for _, row in read_jsonl(data_path(DATA))])


def measure(instrument: Instrument, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with what was found in either sentence.

    Returns
    -------
    DataFrame
        The columns of the pairs; ``caught`` and ``slipped``: the lexicon finds the category, not negated, in the plain
        sentence, and no longer in the evasion; ``marked`` and ``unmarked``: the same for any formal marker; ``intent kept``:
        both sentences get the same intents.
    """
    if pairs.empty:
        raise InputError("pairs has no row: there is nothing to measure")
    texts = [*pairs["plain"], *pairs["evasion"]]
    found = [
        any(hit.polarity == "affirmed" and hit.category in _ALSO.get(category, (category,)) for hit in scan(text))
        for text, category in zip(texts, [*pairs["category"]] * 2, strict=True)
    ]
    analyses = instrument.analyze_many(texts, keywords="off")
    plain, evaded = np.array(found).reshape(2, -1)
    marked, still = np.array([bool(analysis.markers) for analysis in analyses]).reshape(2, -1)
    half = len(pairs)
    kept = [set(a.chain) == set(b.chain) for a, b in zip(analyses[:half], analyses[half:], strict=True)]
    return pairs.assign(
        caught=plain, slipped=plain & ~evaded, marked=marked, unmarked=marked & ~still, **{"intent kept": kept}
    )


def slip_share(rows: pd.DataFrame) -> Estimate:
    """Return the share of evasions that slip past the lexicon among those whose plain sentence is caught (Wilson)."""
    return share_estimate(int(rows["slipped"].sum()), int(rows["caught"].sum()), "share slipping past the lexicon")


def record(rows: pd.DataFrame, *, parameters: Mapping[str, Any]) -> Finding:
    """Gather the finding from :func:`measure`."""
    measurements: list[Measurement] = []
    groups = [(f"split/{split}", split, rows[rows["split"] == split]) for split in SPLITS]
    groups += [(f"technique/{name}", str(name), part) for name, part in rows.groupby("technique", sort=True)]
    for key, what, part in groups:
        measured = partial(
            Measurement, evidence="constructed", genre="written sentences", language=", ".join(sorted(set(part["lang"]))),
            held_out=set(part["split"]) == {"unseen"},
        )  # fmt: skip
        measurements.append(measured(f"{key}/slipped", f"evasion by {what}", slip_share(part)))
        if key.startswith("split"):
            for name, flags, of, share in (
                ("caught", part["caught"], "plain sentences of", "share of plain sentences caught"),
                ("intent changed", ~part["intent kept"], "intents under", "share of intents that change"),
                ("marked", part["marked"], "markers in plain sentences of", "share of plain sentences with a marker"),
            ):
                found = share_estimate(int(flags.sum()), len(part), share)
                measurements.append(measured(f"{key}/{name}", f"{of} {what} techniques", found))
    shares = {split: slip_share(rows[rows["split"] == split]) for split in SPLITS}
    told = ", ".join(
        f"{round(share.value * share.n) if share.n else 0} of {share.n} by {split} techniques"
        for split, share in shares.items()
    )
    by_split = rows.groupby("technique")["split"].first().to_dict()
    return Finding.make(
        "evasions",
        title=STATED.title,
        answer=f"Of the plain sentences that the lexicon catches, these evade it once rewritten: {told}.",
        measurements=measurements,
        claims=STATED.claims,
        limits=STATED.limits,
        parameters=parameters,
        data=(DATA, "lexicon/lexicon.toml", "markers.toml", "findings/evasions.toml"),
        records={"techniques": [{"technique": name, "split": split} for name, split in by_split.items()]},
    )
