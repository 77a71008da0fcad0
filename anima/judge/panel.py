"""Many judgements: several judges, repeats, a file that a killed run goes on from, and the way into ``anima.metaeval``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from anima.checks import show
from anima.errors import DataError, InputError
from anima.jsonl import Line, read_record
from anima.judge.verdict import Receipt, Unscored, Verdict
from anima.stats import Estimate, Presentable, bootstrap, json_ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from anima.metaeval import CorpusAgreement, IntraJudgeReliability, JudgeScoresRecord

DIMENSION: Final = "authenticity"
_SCHEMA: Final = "anima-panel/1"


@dataclass(frozen=True)
class Judgement:
    """One outcome; ``repeat`` counts from 0, ``input_hash`` stands for everything that the judge was given."""

    item_id: str
    judge: str
    repeat: int
    input_hash: str
    outcome: Verdict | Unscored

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What a repeated run knows it by."""
        return self.item_id, self.judge, self.repeat, self.input_hash

    @property
    def failed(self) -> bool:
        """Whether no answer arrived: nothing was judged yet."""
        return isinstance(self.outcome, Unscored) and self.outcome.kind == "call_failed"

    def to_dict(self) -> dict[str, Any]:
        """Return the judgement as a line of the run's file."""
        names = [one.name for one in fields(self.outcome)]
        outcome = {name: json_ready(getattr(self.outcome, name)) for name in names}
        return {
            "schema": _SCHEMA,
            "item_id": self.item_id,
            "judge": self.judge,
            "repeat": self.repeat,
            "input_hash": self.input_hash,
            "status": self.outcome.status,
            "outcome": outcome,
        }

    @classmethod
    def from_line(cls, line: Line) -> Judgement:
        """Return the judgement of a line."""
        row = read_record(line)
        try:
            if row["schema"] != _SCHEMA:
                raise ValueError(f"schema is {show(row['schema'])}, not {_SCHEMA}")
            given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row["outcome"].items()}
            if given["receipt"] is not None:
                given["receipt"] = Receipt(**given["receipt"])
            kind = Unscored if row["status"] == "unscored" else Verdict
            outcome: Verdict | Unscored = kind(**given)
            return cls(row["item_id"], row["judge"], row["repeat"], row["input_hash"], outcome)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{line.place}: no judgement of a panel ({type(error).__name__}: {error})") from None


@dataclass(frozen=True)
class Panel(Presentable):
    """Judgements of one or several judges on the same items; made by :func:`~anima.judge.judge_panel`.

    Parameters
    ----------
    judgements
        Ordered by item, judge, repeat.
    items, judges
        Their names, in the order given.
    repeats
        Judgements by each judge of each item.
    prices
        US dollars per million prompt and output tokens, by judge; costs are NaN where there is no price.
    """

    judgements: tuple[Judgement, ...]
    items: tuple[str, ...]
    judges: tuple[str, ...]
    repeats: int = 1
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    _frame: pd.DataFrame = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        import pandas as pd

        object.__setattr__(self, "_frame", pd.DataFrame([self._row(one) for one in self.judgements]))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per judgement; ``score`` is NaN where there is none, ``fallback`` marks verdicts of the rules."""
        return self._frame.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        judgements = [one.to_dict() for one in self.judgements]
        return {
            "judgements": judgements,
            "fallback": self.fallback,
            "totals": json_ready(self.totals().to_dict("records")),
        }

    @property
    def fallback(self) -> bool:
        """Whether the scores are those of the rules."""
        return self.judges == ("rules",)

    def unscored(self, judge: str | None = None, *, level: float = 0.95, rng: int | None = None) -> Estimate:
        """Return the share of judgements without a score, resampled by item; of one judge or of all.

        A reply that the judge held to be no case counts as unscored: it is missing from every mean.
        """
        frame = self._frame if judge is None else self._frame[self._frame["judge"] == self._known(judge)]
        name = "unscored share" + (f", {judge}" if judge else "")
        missing = frame["score"].isna().to_numpy(float)
        return bootstrap(lambda x: x.mean(), missing, clusters=frame["item_id"], level=level, rng=rng, name=name)

    def mean(self, judge: str, *, level: float = 0.95, rng: int | None = None) -> Estimate:
        """Return a judge's mean score with an interval by item; what is unscored is counted as dropped."""
        frame = self._frame[self._frame["judge"] == self._known(judge)]
        kept = frame[frame["score"].notna()]
        name, lost = f"mean authenticity, {judge}", len(frame) - len(kept)
        if kept.empty:
            return Estimate.undefined(name, "the judge scored nothing", level=level, n_dropped=lost)
        scores = kept["score"].to_numpy(float)
        found = bootstrap(lambda x: x.mean(), scores, clusters=kept["item_id"], level=level, rng=rng, name=name)
        return replace(found, n_dropped=lost)

    def failed(self) -> pd.DataFrame:
        """Return the judgements without a score: item, judge, repeat, kind, reason."""
        rows = self._frame[self._frame["status"] == "unscored"]
        return rows[["item_id", "judge", "repeat", "kind", "reason"]].reset_index(drop=True)

    def reliability(self, judge: str, *, level: float = 0.95) -> IntraJudgeReliability:
        """Return how well a judge agrees with itself; see :func:`anima.metaeval.intra_judge_reliability`."""
        from anima.metaeval import intra_judge_reliability

        frame = self._frame[self._frame["judge"] == self._known(judge)]
        return intra_judge_reliability(frame[["item_id", "score"]], scale="interval", level=level)

    def agreement(self, **options: Any) -> CorpusAgreement:
        """Return how well the judges agree on their means over repeats; see :func:`anima.metaeval.corpus_agreement`."""
        from anima.metaeval import corpus_agreement

        means = self._frame.groupby(["item_id", "judge"], sort=False)["score"].mean().reset_index()
        means = means.rename(columns={"judge": "judge_name"}).assign(dimension=DIMENSION)
        return corpus_agreement(means, judges=self.judges, **options)

    def judge_scores(self) -> dict[str, JudgeScoresRecord]:
        """Return each item's scores as :class:`anima.metaeval.JudgeScoresRecord`, for the ``outcome`` of a run record.

        Scores are means over repeats, 0–100. A judge without any score of an item stands in ``failed_judges``; an item
        that no judge scored has no composite and is left out. ``notes`` marks scores of the rules.
        """
        from anima.metaeval import JudgeScoresRecord

        records = {}
        for item, rows in self._frame.groupby("item_id", sort=False):
            means = rows.groupby("judge", sort=False)["score"].mean()
            scored = means.dropna()
            if len(scored):
                records[str(item)] = JudgeScoresRecord(
                    per_judge={str(name): {DIMENSION: float(value)} for name, value in scored.items()},
                    per_dim_mean={DIMENSION: float(scored.mean())},
                    composite=float(scored.mean()),
                    failed_judges=[str(name) for name in means.index[means.isna()]] or None,
                    notes="fallback: scores of rules, no language model" if self.fallback else None,
                )
        return records

    def totals(self) -> pd.DataFrame:
        """Return one row per judge: judgements, unscored, tokens, seconds, and US dollars (NaN without a price)."""
        groups = self._frame.groupby("judge", sort=False)
        table = groups[["prompt_tokens", "output_tokens", "seconds"]].sum(min_count=1)
        table.insert(0, "judgements", groups.size())
        table.insert(1, "unscored", groups["score"].agg(lambda scores: int(scores.isna().sum())))
        # One call whose tokens nobody counted makes the sum unknown, not smaller.
        return table.assign(usd=groups["usd"].agg(lambda costs: costs.sum(skipna=False))).reset_index()

    def summary(self) -> str:
        """Return one sentence."""
        totals = self.totals()
        n, items, lost = len(self.judgements), len(self.items), int(totals["unscored"].sum())
        tokens = totals[["prompt_tokens", "output_tokens"]].sum(min_count=1).sum(min_count=1)
        usd = totals["usd"].sum(skipna=False)
        who = "the rules (fall-back, no language model)" if self.fallback else ", ".join(self.judges)
        counted = "tokens not counted" if math.isnan(tokens) else f"{int(tokens):,} tokens"
        cost = "" if math.isnan(usd) else f", {usd:.2f} US dollars"
        return (
            f"{n} judgement{'s' * (n != 1)} of {items} {'reply' if items == 1 else 'replies'} by {who}"
            f"{f', {self.repeats} times each' if self.repeats > 1 else ''}: {lost} unscored "
            f"({100 * lost / n:.1f}%), {counted}{cost}."
        )

    def _rows(self) -> list[Estimate]:
        return [estimate for judge in self.judges for estimate in (self.mean(judge), self.unscored(judge))]

    def _repr_html_(self) -> str:
        return super()._repr_html_() + str(self.totals().round(2).to_html(index=False))

    def _known(self, judge: str) -> str:
        if judge not in self.judges:
            raise InputError(f"judge must be one of {', '.join(map(repr, self.judges))}, got {show(judge)}")
        return judge

    def _row(self, one: Judgement) -> dict[str, Any]:
        outcome, receipt = one.outcome, one.outcome.receipt or Receipt()
        tokens = [math.nan if n is None else float(n) for n in (receipt.prompt_tokens, receipt.output_tokens)]
        price = self.prices.get(one.judge, (math.nan, math.nan))
        return {
            "item_id": one.item_id,
            "judge": one.judge,
            "repeat": one.repeat,
            "score": outcome.score,
            "status": outcome.status,
            # Verdicts have no kind and reason, failures no depth.
            "kind": getattr(outcome, "kind", ""),
            "reason": getattr(outcome, "reason", ""),
            "fallback": one.judge == "rules",
            "depth_assessment": getattr(outcome, "depth_assessment", None),
            "model": receipt.model,
            "seed": receipt.seed,
            "prompt_tokens": tokens[0],
            "output_tokens": tokens[1],
            "seconds": receipt.times.get("total", math.nan),
            "usd": sum(n * usd / 1e6 for n, usd in zip(tokens, price, strict=True)),
        }
