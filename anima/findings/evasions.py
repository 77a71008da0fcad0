"""How often a rewriting that keeps the meaning slips past the lexicon, the markers and the intents.

The pairs are written ones, one plain sentence and one evasion each. A technique is *seen* when earlier detectors of this kind
were mended with it in mind, *unseen* otherwise. Only an evasion whose plain sentence is caught can succeed. The trivial rival is
an ordinary rewording of the same sentence, by no technique: it says how often a lexicon loses a sentence that nobody disguises.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.authenticity.files import read_jsonl
from anima.errors import InputError
from anima.findings.record import Finding, Measurement, stated
from anima.lexicon import scan
from anima.settings import data_path
from anima.stats import bootstrap_sums
from anima.stats.agreement import share_estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anima.authenticity.instrument import Instrument
    from anima.stats import Estimate

DATA: Final = "lexicon/evasions.jsonl"
REWORDINGS: Final = "lexicon/rewordings.jsonl"
SPLITS: Final = ("seen", "unseen")
#: Giving one's word is a way to commit oneself: either category catches a commitment.
_ALSO: Final = {"commitment": ("commitment", "pledge")}
_OF: Final = "plain sentences that are caught"
STATED: Final = stated("evasions")


def load_pairs() -> pd.DataFrame:
    """Return the written pairs: ``id, lang, technique, split, category, plain, evasion, reworded``."""
    pairs, reworded = (pd.DataFrame([row for _, row in read_jsonl(data_path(name))]) for name in (DATA, REWORDINGS))
    return pairs.merge(reworded, on="id", validate="1:1")


def measure(instrument: Instrument, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with what was found in either sentence.

    Returns
    -------
    DataFrame
        The columns of the pairs; ``caught`` and ``slipped``: the lexicon finds the category, not negated, in the plain
        sentence, and no longer in the evasion; ``lost``: no longer in the ordinary rewording; ``marked`` and ``unmarked``:
        as ``caught`` and ``slipped`` for any formal marker; ``intent kept``: sentence and evasion get the same intents.
    """
    if pairs.empty:
        raise InputError("pairs has no row: there is nothing to measure")
    texts = [*pairs["plain"], *pairs["evasion"]]
    found = [
        any(hit.polarity == "affirmed" and hit.category in _ALSO.get(category, (category,)) for hit in scan(text))
        for text, category in zip([*texts, *pairs["reworded"]], [*pairs["category"]] * 3, strict=True)
    ]
    analyses = instrument.analyze_many(texts, keywords="off")
    plain, evaded, reworded = np.array(found).reshape(3, -1)
    marked, still = np.array([bool(analysis.markers) for analysis in analyses]).reshape(2, -1)
    half = len(pairs)
    kept = [set(a.chain) == set(b.chain) for a, b in zip(analyses[:half], analyses[half:], strict=True)]
    return pairs.assign(
        caught=plain, slipped=plain & ~evaded, lost=plain & ~reworded, marked=marked, unmarked=marked & ~still,
        **{"intent kept": kept},
    )  # fmt: skip


def slip_share(rows: pd.DataFrame, flag: str = "slipped") -> Estimate:
    """Return the share of evasions that slip past the lexicon among those whose plain sentence is caught.

    Two sentences rewritten by one technique are alike, so each technique counts as one item in Wilson's interval, as if the
    rest of its sentences had told nothing new. ``flag="lost"``: the same of the ordinary rewordings.
    """
    caught = rows[rows["caught"]]
    name = "share slipping past the lexicon" if flag == "slipped" else "share of ordinary rewordings that slip past"
    if caught.empty:
        return share_estimate(0, 0, name)
    techniques = caught["technique"].nunique()
    found = share_estimate(float(caught[flag].mean()) * techniques, techniques, name)
    return replace(found, n=len(caught), n_clusters=techniques, method="Wilson, one item per technique")


def slip_gain(rows: pd.DataFrame) -> Estimate:
    """Return how much more often evasions slip past than ordinary rewordings of the same sentences do."""
    caught = rows[rows["caught"]]
    terms = np.column_stack([caught["slipped"].astype(float) - caught["lost"], np.ones(len(caught))])
    name = "share of evasions that slip past less that of ordinary rewordings"
    return bootstrap_sums(lambda s: s[:, 0] / s[:, 1], terms, clusters=caught["technique"], name=name)


def record(rows: pd.DataFrame, *, parameters: Mapping[str, Any]) -> Finding:
    """Gather the finding from :func:`measure`."""
    measurements: list[Measurement] = []
    groups = [(f"split/{split}", split, rows[rows["split"] == split]) for split in SPLITS]
    groups += [(f"technique/{name}", str(name), part) for name, part in rows.groupby("technique", sort=True)]
    for key, what, part in groups:
        measured = partial(
            Measurement, evidence="constructed", genre="written sentences", language=", ".join(sorted(set(part["lang"]))),
            held_out=set(part["split"]) == {"unseen"}, unit="plain sentences",
        )  # fmt: skip
        rival = slip_share(part, "lost")
        measurements.append(
            measured(
                f"{key}/slipped", f"evasion by {what}", slip_share(part), rival if rival.defined else None, unit=_OF
            )
        )
        if key.startswith("split"):
            for name, flags, of, share in (
                ("caught", part["caught"], "plain sentences of", "share of plain sentences caught"),
                ("intent changed", ~part["intent kept"], "intents under", "share of intents that change"),
                ("marked", part["marked"], "markers in plain sentences of", "share of plain sentences with a marker"),
            ):
                found = share_estimate(int(flags.sum()), len(part), share)
                measurements.append(measured(f"{key}/{name}", f"{of} {what} techniques", found))
    shares = {split: slip_share(rows[rows["split"] == split]) for split in SPLITS}
    both = partial(Measurement, evidence="constructed", genre="written sentences", language="en, es", unit=_OF)
    ordinary = slip_share(rows, "lost")
    measurements.append(both("all/slipped", "evasion by any technique", slip_share(rows), ordinary))
    measurements.append(both("all/slipped less ordinary rewordings", "evasion by any technique", slip_gain(rows)))
    told = ", ".join(f"{_count(share)} by {split} techniques" for split, share in shares.items())
    by_split = rows.groupby("technique")["split"].first().to_dict()
    return Finding.make(
        "evasions",
        title=STATED.title.format(_count(slip_share(rows))),
        answer=f"Of the plain sentences that the lexicon catches, these evade it once rewritten: {told}. Reworded in an ordinary "
        f"way, by no technique, {_count(ordinary)} do.",
        measurements=measurements,
        claims=STATED.claims,
        limits=STATED.limits,
        parameters=parameters,
        data=(DATA, REWORDINGS, "lexicon/lexicon.toml", "markers.toml", "findings/evasions.toml"),
        records={"techniques": [{"technique": name, "split": split} for name, split in by_split.items()]},
    )


def _count(share: Estimate) -> str:
    return f"{round(share.value * share.n) if share.n else 0} of {share.n}"
