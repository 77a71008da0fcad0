"""DeliData: whether deliberation goes with what a group gains, and how much of it the tracker makes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.findings.delidata_changes import TARGETS, word_lists
from anima.findings.shares import counted
from anima.stats import Estimate, bootstrap_sums, correlation, max_t
from anima.stats.weighted import midranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from anima.corpora import Corpus
    from anima.findings.delidata_changes import Changes

    Floats = NDArray[np.float64]

OUTCOMES: Final[Mapping[str, str]] = {"gain": "gain of tracked performance", "gain_exact": "gain in exactly right sets"}
CHANGES: Final = "state changes"
#: What is counted in a group and set against its gain; the number of messages is what the others are freed from.
COUNTS: Final = ("messages", "Probing", *TARGETS, "card mentions", CHANGES, "new proposals", *word_lists())


def group_table(corpus: Corpus, changes: Changes) -> pd.DataFrame:
    """Return one row per group: its outcomes, and counts of messages, labels, changes and words."""
    outcomes = corpus.outcomes[corpus.outcomes["speaker"] == ""]
    table = outcomes.pivot_table(index="dialogue_id", columns="name", values="value", dropna=False)
    table = table.loc[list(corpus.dialogues["dialogue_id"])]
    renamed = {"changed": CHANGES, "mention": "card mentions", "new_proposal": "new proposals"}
    messages = changes.messages.assign(messages=True).rename(columns=renamed)
    table = table.join(messages.groupby("dialogue_id")[list(COUNTS)].sum()).fillna(dict.fromkeys(COUNTS, 0))
    steps = corpus.utterances.pivot_table(
        index="dialogue_id", columns="kind", values="performance_change", aggfunc="sum", fill_value=0
    ).reindex(columns=["message", "submit"], fill_value=0.0)
    return table.assign(**{f"gained at {kind}s": steps[kind] for kind in steps})


def outcome_counts(corpus: Corpus, *, n_resamples: int = 2000, seed: int = 7) -> dict[str, Estimate]:
    """Return the share of participants exactly right at the start and at their last submission, and the difference among
    those who submitted; with the mean gain of groups, and the shares of groups up, flat and down.
    """
    speakers = corpus.speakers.merge(corpus.dialogues[["dialogue_id", "correct"]], on="dialogue_id")
    right = speakers["correct"].map(frozenset)
    start = _right(speakers["initial"], right)
    handed = np.array([cards is not None for cards in speakers["submitted"]], dtype=np.float64)
    end = _right([cards or () for cards in speakers["submitted"]], right)
    options: dict[str, Any] = {"n_resamples": n_resamples, "rng": seed}

    def share(name: str, hits: Floats, of: Floats | None = None, clusters: Any = None) -> Estimate:
        terms = np.column_stack([hits, np.ones(len(hits)) if of is None else of])
        found = bootstrap_sums(lambda s: s[:, 0] / s[:, 1], terms, clusters=clusters, name=name, **options)
        return counted(found, terms[:, 1].sum())

    owner, rise = speakers["dialogue_id"], (end - start) * handed
    found = {
        "right at the start": share("share exactly right at the start", start, None, owner),
        "right at the last submission": share("share exactly right at the last submission", end, handed, owner),
        "rise among those who submitted": share("rise of the share exactly right", rise, handed, owner),
    }
    gain = corpus.outcomes.loc[corpus.outcomes["name"] == "gain", "value"].to_numpy().round(9)
    found["mean gain"] = share("mean gain of tracked performance", gain)
    for name, flags in (("up", gain > 0), ("flat", gain == 0), ("down", gain < 0)):
        found[name] = share(f"share of groups {name}", flags.astype(float))
    return found


def _right(sets: Iterable[Sequence[str]], right: Iterable[frozenset[str]]) -> Floats:
    return np.array([frozenset(cards) == own for cards, own in zip(sets, right, strict=True)], dtype=np.float64)


def gain_correlations(table: pd.DataFrame, *, n_resamples: int = 2000, seed: int = 7) -> pd.DataFrame:
    """Correlate what is counted in a group with its gains.

    Parameters
    ----------
    table
        Of :func:`group_table`; groups without a known outcome are left out of it and counted.

    Returns
    -------
    DataFrame
        One row per outcome and count: ``rho`` (Spearman, groups resampled) and ``partial`` (freed from the number of
        messages), both estimates, with ``p`` and ``partial p`` of the max-T permutation test over all counts.
    """
    rows = []
    for outcome in OUTCOMES:
        known = table[table[outcome].notna()]
        dropped = len(table) - len(known)
        ranks = np.column_stack([midranks(known[name].to_numpy(dtype=np.float64)) for name in COUNTS])
        gain, length = midranks(known[outcome].to_numpy(dtype=np.float64)), ranks[:, 0]
        p = max_t(ranks, gain, method="pearson", rng=seed)[:, 0]
        free = np.column_stack([_residual(column, length) for column in ranks.T[1:]])
        partial_p = [np.nan, *max_t(free, _residual(gain, length), method="pearson", rng=seed)[:, 0]]
        for j, name in enumerate(COUNTS):
            options: dict[str, Any] = {"n_resamples": n_resamples, "rng": seed, "n_dropped": dropped}
            terms, of = _moments(ranks[:, j], gain, length), f"{name}, {OUTCOMES[outcome]}"
            rho = bootstrap_sums(_correlation, terms, name=f"Spearman's rho: {of}", **options)
            partial = bootstrap_sums(_partial, terms, name=f"partial rho: {of}", **options)
            rows.append((outcome, name, rho, p[j], partial, partial_p[j]))
    return pd.DataFrame(rows, columns=["outcome", "count", "rho", "p", "partial", "partial p"])


def _residual(y: Floats, x: Floats) -> Floats:
    """Return what a straight line in ``x`` leaves of ``y``."""
    a, b = x - x.mean(), y - y.mean()
    spread = a @ a
    return np.asarray(b - (a @ b / spread) * a if spread else b)


def _moments(*columns: Floats) -> Floats:
    """Return each row's terms of means, squares and products of three columns of ranks, scaled to unit spread."""
    x = np.column_stack(columns)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    return np.column_stack([np.ones(len(x)), x, x**2, x[:, 0] * x[:, 1], x[:, 0] * x[:, 2], x[:, 1] * x[:, 2]])


def _pairs(sums: Floats) -> tuple[Floats, Floats, Floats]:
    n = sums[:, :1]
    mean, square, product = sums[:, 1:4] / n, sums[:, 4:7] / n, sums[:, 7:] / n
    spread = np.sqrt(np.maximum(square - mean**2, 0))

    def pair(k: int, i: int, j: int) -> Floats:
        return np.asarray((product[:, k] - mean[:, i] * mean[:, j]) / (spread[:, i] * spread[:, j]))

    return pair(0, 0, 1), pair(1, 0, 2), pair(2, 1, 2)


def _correlation(sums: Floats) -> Floats:
    return _pairs(sums)[0]


def _partial(sums: Floats) -> Floats:
    xy, xz, yz = _pairs(sums)
    free = (1 - xz**2) * (1 - yz**2)
    return np.where(free > 1e-9, (xy - xz * yz) / np.sqrt(np.where(free > 1e-9, free, 1)), np.nan)


def mechanical(
    corpus: Corpus, table: pd.DataFrame, *, draws: int = 200, n_resamples: int = 2000, seed: int = 7
) -> dict[str, Estimate]:
    """Return how much of the correlation of state changes with the tracked gain the tracker makes by itself.

    Performance is computed from the tracked states, so that a group whose states do not move can neither gain nor lose.
    ``"size"`` correlates state changes with the size of the gain, whatever its sign; ``"at messages"`` and ``"at
    submits"`` with what is gained when states change in the chat, and when sets are handed in. ``"random moves"`` is
    the correlation that arises when every move of every group is drawn from those of all groups (its interval: 95 % of
    the draws): direction then comes from the number of moves alone.
    """
    from scipy import stats

    counts = table[CHANGES].to_numpy(dtype=int)
    options: dict[str, Any] = {"interval": "percentile", "n_resamples": n_resamples, "rng": seed}
    against = {"size": table["gain"].abs()} | {at: table[f"gained {at}"] for at in ("at messages", "at submits")}
    found = {
        key: correlation(counts, values, name=f"{CHANGES}, gain: {key}", **options) for key, values in against.items()
    }
    frame = corpus.utterances
    steps = frame.loc[(frame["kind"] == "message") & (frame["performance_change"] != 0), "performance_change"]
    total = int(counts.sum())
    pool = np.concatenate([steps, np.zeros(max(total - len(steps), 0))])
    name = "state changes, gain: random moves"
    if len(set(counts)) < 2 or not pool.any():
        return found | {"random moves": Estimate.undefined(name, "every group moves equally often")}
    rng = np.random.default_rng(seed)
    ends = np.concatenate([[0], np.cumsum(counts)])
    sums = (np.diff(np.concatenate([[0.0], np.cumsum(rng.choice(pool, total))])[ends]) for _ in range(draws))
    rhos = np.array([stats.spearmanr(counts, drawn).statistic for drawn in sums])
    low, high = np.quantile(rhos, [0.025, 0.975])
    method = f"range of {draws} simulations"
    return found | {"random moves": Estimate(name, rhos.mean(), low, high, method=method, n=len(counts), seed=seed)}
