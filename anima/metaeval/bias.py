"""Probes for a judge's biases: order of presentation, length of the answer, favour for its own family.

Without data a bias is undefined, never 0; and "no bias seen" is a statement about the interval, not about the judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.checks import require_floats
from anima.errors import InputError
from anima.metaeval.join import Accounting
from anima.metaeval.tables import Table, mean_estimate, read_table, refuse_repeats, t_estimate
from anima.stats.agreement import share_estimate
from anima.stats.correlation import correlation, t_p_value
from anima.stats.estimate import Estimate, Presentable
from anima.stats.weighted import Floats, is_constant, midranks, normal_quantile, pearson_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class BiasProbe(Presentable):
    """What a probe found: the bias (undefined without data), estimates beside it, and what became of each item.

    ``settled`` (:func:`order_flips` only): the verdict of each pair that was asked in both orders.
    """

    estimate: Estimate
    details: tuple[Estimate, ...]
    accounting: Accounting
    settled: Mapping[str, str] | None = None
    also = ("biased",)

    @property
    def biased(self) -> bool | None:
        """Whether the interval excludes 0; None if there is none: unknown is not unbiased."""
        if not self.estimate.has_interval:
            return None
        return not self.estimate.low <= 0 <= self.estimate.high

    def summary(self) -> str:
        """Return one sentence."""
        said = {True: "Bias.", False: "No bias seen.", None: "Unknown."}[self.biased]
        return f"{self.estimate.summary()} {said} {self.accounting.summary()}"

    def _rows(self) -> list[Estimate]:
        return [self.estimate, *self.details]


def positional_bias(scores: Table, *, level: float = 0.95) -> BiasProbe:
    """Return how much higher a judge scores the same item when it stands first: mean of first − second, paired t
    interval.

    Parameters
    ----------
    scores
        ``item_id``, ``score`` and ``position_of_a_input`` (or ``position``): "first" or "second". Items scored in both
        positions count; two scores in one position are refused.
    """
    aliases = {"position_of_a_input": "position"}
    frame = read_table(scores, ["item_id", "score", "position"], "scores", aliases=aliases)
    odd = frame[~frame["position"].isin(["first", "second"])]
    if len(odd):
        raise InputError(f"scores: position must be 'first' or 'second', got {odd['position'].iloc[0]!r}")
    refuse_repeats(frame, ["item_id", "position"], "scores")
    frame["score"] = require_floats(frame["score"], "scores['score']")
    wide = frame.pivot(index="item_id", columns="position", values="score")
    wide = wide.reindex(columns=["first", "second"])
    both = wide.dropna()
    delta = (both["first"] - both["second"]).to_numpy(dtype=np.float64)
    losses = {"one_position_only": len(wide) - len(both)}
    estimate = mean_estimate(delta, "mean of first − second", level=level, n_dropped=len(wide) - len(both))
    higher = share_estimate((delta > 0).sum(), (delta != 0).sum(), "share higher when first, ties apart", level)
    return BiasProbe(estimate, (higher,), Accounting(len(wide), len(both), losses, "items"))


def order_flips(verdicts: Table, *, level: float = 0.95) -> BiasProbe:
    """Return how often a pairwise verdict flips with the order, and the verdicts settled.

    Parameters
    ----------
    verdicts
        ``item_id``, ``order`` ("AB" or "BA": which answer was shown first) and ``winner`` ("A", "B" or "tie"). A pair
        counts when it was asked in both orders.

    Returns
    -------
    BiasProbe
        Among the pairs whose winner flipped, the excess of the answer shown first over the one shown second, in shares
        from −1 to 1, with Wilson's interval and the exact binomial p-value; ``details``: the flip rate. ``settled``:
        the winner if both orders name it, else "tie".
    """
    frame = read_table(verdicts, ["item_id", "order", "winner"], "verdicts")
    for column, known in (("order", ["AB", "BA"]), ("winner", ["A", "B", "tie"])):
        odd = frame[frame[column].notna() & ~frame[column].isin(known)]
        if len(odd) or (column == "order" and frame[column].isna().any()):
            shown = repr(odd[column].iloc[0]) if len(odd) else "nothing"
            raise InputError(f"verdicts: {column} must be one of {', '.join(known)}, got {shown}")
    refuse_repeats(frame, ["item_id", "order"], "verdicts")
    wide = frame.pivot(index="item_id", columns="order", values="winner").reindex(columns=["AB", "BA"])
    both = wide.dropna()
    same = (both["AB"] == both["BA"]).to_numpy(dtype=bool)
    settled = {str(item): str(w) if ok else "tie" for item, w, ok in zip(both.index, both["AB"], same, strict=True)}
    first = int(((both["AB"] == "A") & (both["BA"] == "B")).sum())  # the answer shown first won both times
    second = int(((both["AB"] == "B") & (both["BA"] == "A")).sum())
    rate = share_estimate(int((~same).sum()), len(both), "flip rate", level)
    estimate = _excess(first, second, level)
    losses = {"one_order_only": len(wide) - len(both)}
    return BiasProbe(estimate, (rate,), Accounting(len(wide), len(both), losses, "pairs"), settled)


def verbosity_bias(
    samples: Table,
    *,
    method: Literal["spearman", "pearson"] = "spearman",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> BiasProbe:
    """Return how a judge's score goes with the length of the answer.

    Parameters
    ----------
    samples
        ``output_len``, ``score`` and, if known, ``quality``, a judgement independent of the judge: longer answers may
        be better, and only the partial correlation, what remains at equal quality, is bias.
    method
        Lengths are skewed: Spearman by default.
    clusters
        Cluster of each sample; not with ``quality``.
    """
    frame = read_table(samples, ["output_len", "score"], "samples")
    length, score = (require_floats(frame[name], f"samples[{name!r}]") for name in ("output_len", "score"))
    plain = correlation(length, score, method=method, clusters=clusters, level=level, name="length and score")
    lost = {"incomplete": plain.n_dropped}
    if "quality" not in frame.columns:
        return BiasProbe(plain, (), Accounting(len(frame), plain.n, lost, "samples"))
    if clusters is not None:
        raise InputError("clusters: the partial correlation given quality supposes independent samples, leave one out")
    quality = require_floats(frame["quality"], "samples['quality']")
    table = np.array([length, score, quality])
    keep = ~np.isnan(table).any(axis=0)
    partial = _partial(table[:, keep], method, level, int((~keep).sum()))
    losses = {"incomplete": partial.n_dropped}
    return BiasProbe(partial, (plain,), Accounting(len(frame), partial.n, losses, "samples"))


def self_preference(samples: Table, *, level: float = 0.95) -> BiasProbe:
    """Return how much higher a judge scores answers of its own family of models: in − out, with Welch's interval.

    Parameters
    ----------
    samples
        ``score``, ``in_family`` (booleans) and, if known, ``quality``, e.g. a human score of the same scale: the family
        may be better, and only the excess of the judge over it, the difference of (score − quality), is favour.
    """
    frame = read_table(samples, ["score", "in_family"], "samples")
    score = require_floats(frame["score"], "samples['score']")
    family = require_floats(frame["in_family"].to_numpy(), "samples['in_family']")
    if len(odd := family[~np.isin(family, (0, 1)) & ~np.isnan(family)]):
        raise InputError(f"samples: in_family must be true or false, got {odd[0]:g}")
    given = "quality" in frame.columns
    response = score - require_floats(frame["quality"], "samples['quality']") if given else score
    keep = ~(np.isnan(response) | np.isnan(family))
    inside, outside = keep & (family == 1), keep & (family == 0)
    means = (
        mean_estimate(score[inside], "mean score in family", level=level),
        mean_estimate(score[outside], "mean score out of family", level=level),
    )
    raw = _welch(score[inside], score[outside], "in − out of family", level)
    accounting = Accounting(len(frame), int(keep.sum()), {"incomplete": int((~keep).sum())}, "samples")
    if not given:
        return BiasProbe(raw, means, accounting)
    excess = _welch(response[inside], response[outside], "in − out of family, beyond quality", level)
    return BiasProbe(excess, (raw, *means), accounting)


def _excess(first: int, second: int, level: float) -> Estimate:
    from scipy.stats import binomtest

    name = "excess of the answer shown first"
    n = first + second
    if not n:
        return Estimate.undefined(name, "no verdict flipped from one answer to the other", level=level)
    share, p = share_estimate(first, n, name, level), float(binomtest(first, n).pvalue)
    return replace(share, value=(first - second) / n, low=2 * share.low - 1, high=2 * share.high - 1, p_value=p)


def _partial(columns: Floats, method: str, level: float, dropped: int) -> Estimate:
    name, n = "length and score, given quality", len(columns[0])
    common: dict[str, Any] = {"level": level, "n": n, "n_dropped": dropped}
    if n < 5 or any(map(is_constant, columns)):
        reason = f"{n} complete samples, at least 5 are needed" if n < 5 else "one of the columns is constant"
        return Estimate.undefined(name, reason, **common)
    a, b, q = (midranks(v) for v in columns) if method == "spearman" else columns
    ab, aq, bq = pearson_value(a, b), pearson_value(a, q), pearson_value(b, q)
    rest = (1 - aq**2) * (1 - bq**2)
    if rest < 1e-12:
        return Estimate.undefined(name, "quality explains one of the others completely", **common)
    value = float(np.clip((ab - aq * bq) / math.sqrt(rest), -1, 1))
    p = t_p_value(value, n - 3)
    # One pair fewer for the variable held fixed; Bonett and Wright's variance for ranks.
    error = math.sqrt((1 + value**2 / 2 if method == "spearman" else 1) / (n - 4))
    z, half = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, value))), normal_quantile(level) * error
    return Estimate(name, value, math.tanh(z - half), math.tanh(z + half), method="Fisher z", p_value=p, **common)


def _welch(a: Floats, b: Floats, name: str, level: float) -> Estimate:
    common: dict[str, Any] = {"level": level, "n": len(a) + len(b)}
    if not len(a) or not len(b):
        return Estimate.undefined(name, f"{len(a)} samples in and {len(b)} out of family: both are needed", **common)
    value = float(a.mean() - b.mean())
    parts = [float(v.var(ddof=1)) / len(v) if len(v) > 1 else math.nan for v in (a, b)]
    if not sum(parts) > 0:
        reason = (
            "no spread within the groups: no interval" if sum(parts) == 0 else "one sample has no spread: no interval"
        )
        return Estimate(name, value, status="unreliable", reason=reason, **common)
    error = math.sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(part**2 / (len(v) - 1) for part, v in zip(parts, (a, b), strict=True))
    return t_estimate(name, value, error, df, method="Welch t", **common)
