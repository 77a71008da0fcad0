"""``judge="rules"``: the pre-analysis turned into a score by an additive table, so that everything runs without a server.

The table is ``corpora/judge/rules.toml``: four numbers, chosen on the golden dev set. It adds up what the instrument
found and knows nothing that the instrument does not: a fall-back, marked so in every verdict, and no substitute for a
judge that reads the reply. How far it agrees with the golden ranges stands in ``corpora/judge/rules_agreement.json``.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from anima.authenticity.analysis import Analysis
from anima.authenticity.intents import pattern_for_intent
from anima.checks import require_choice, require_instance
from anima.errors import InputError
from anima.judge.prompt import NotesLang
from anima.judge.verdict import PREDICTABILITIES, Receipt, Unscored, Verdict
from anima.negation.find import function_words
from anima.settings import data_path
from anima.stats import Presentable
from anima.text.protect import fences
from anima.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

_WORD = re.compile(r"[^\W\d_]+")

Kind = Literal["base", "sentence", "marker"]


@dataclass(frozen=True)
class Contribution:
    """What one thing in the reply adds to the score.

    Attributes
    ----------
    kind, name
        ``"base"``, ``"sentence"`` with its intent, or ``"marker"`` with its id.
    points
        What it adds; 0 for plain sentences and for markers beyond the last that counts.
    index
        Number of the sentence; -1 for what is no sentence.
    text
        The words that it rests on.
    """

    kind: Kind
    name: str
    points: float
    index: int = -1
    text: str = ""


@dataclass(frozen=True)
class Reckoning(Presentable):
    """The score of one reply, and all that it is made of.

    Attributes
    ----------
    contributions
        Base, sentences, markers; their points add up to ``total``.
    total, score
        The sum, and the sum rounded and clipped to 0–100.
    """

    contributions: tuple[Contribution, ...]
    total: float
    score: int

    def points(self, kind: Kind, *, positive: bool | None = None) -> float:
        """Return the sum of one kind, of its gains or losses only on request."""
        rows = (c.points for c in self.contributions if c.kind == kind)
        return sum(p for p in rows if positive is None or (p > 0) == positive)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per contribution."""
        import pandas as pd

        return pd.DataFrame([vars(one) for one in self.contributions])

    def summary(self) -> str:
        """Return one sentence."""
        gains, losses = self.points("sentence", positive=True), self.points("sentence", positive=False)
        parts = f"{self.points('base'):.0f} base {gains:+.1f} genuine {losses:+.1f} control {self.points('marker'):+.1f} markers"
        return f"{parts} = {self.total:.1f}, scored {self.score}."

    def _repr_html_(self) -> str:
        return super()._repr_html_() + str(self.to_frame().round(1).to_html(index=False))


def reckon(analysis: Analysis) -> Reckoning:
    """Add up the score of an analysed reply.

    Raises
    ------
    InputError
        If there is no sentence.
    """
    require_instance(analysis, "analysis", Analysis)
    n = len(analysis.steps)
    if not n:
        raise InputError(
            f"analysis has no sentence to score ({analysis.note or 'empty reply'}): pass a reply with words"
        )
    table = rules_table()
    rows = [Contribution("base", "base", table["base"])]
    rows += (
        Contribution("sentence", step.intent, table.get(step.regime, 0) / n, step.index, step.phrase)
        for step in analysis.steps
    )
    first = {hit.marker_id: hit for hit in reversed(analysis.markers)}
    for i, hit in enumerate(sorted(first.values(), key=lambda hit: hit.start)):
        points = table["marker"] if i < table["max_markers"] else 0
        rows.append(Contribution("marker", hit.marker_id, points, text=hit.phrase))
    total = sum(row.points for row in rows)
    return Reckoning(tuple(rows), total, min(100, max(0, round(total))))


def rules_verdict(analysis: Analysis, *, lang: NotesLang = "en") -> Verdict | Unscored:
    """Return the verdict of the rules, with ``fallback=True``.

    Parameters
    ----------
    analysis
        From :func:`anima.analyze`.
    lang
        Language of the notes.

    Returns
    -------
    Verdict or Unscored
        ``not_applicable`` where the reply has fewer than three sentences or is code for the most part; Unscored
        without any sentence and in another language than English or Spanish.
        ``trajectory_predictability`` is None where the instrument calls it insufficient. The
        receipt's digest is that of the table; its options name embedder, classifier and rules.

    Notes
    -----
    Weights are the rounded least-squares fit on the golden dev set (``test_the_table_is_the_rounded_fit_on_dev``).
    """
    require_instance(analysis, "analysis", Analysis)
    require_choice(lang, "lang", get_args(NotesLang))
    options = {"embedder": analysis.embedder, "classifier": analysis.classifier, "rules": analysis.rules}
    receipt = Receipt(model="rules", digest=rules_hash(), options=options, version=__version__)
    reason = ""
    if not analysis.steps:
        reason = f"no sentence to judge: {analysis.note or 'empty reply'}"
    elif not (_mostly_code(analysis.response) or in_english_or_spanish(analysis.response)):
        reason = "the reply is neither English nor Spanish, and the rules know no other language: ask a model"
    if reason:
        return Unscored(reason, receipt=receipt, kind="not_applicable", fallback=True)
    table, reckoning, steps = rules_table(), reckon(analysis), analysis.steps
    genuine = [step for step in steps if step.regime == "genuine"]
    control = Counter(step.intent for step in steps if step.regime == "control")
    depth = next(
        row["name"]
        for row in table["depth"]
        if reckoning.score >= row["score"] and (genuine or not row.get("needs_genuine"))
    )
    predictability = analysis.trajectory.predictability
    refusals = _refusals()[lang]
    refusal = refusals["code"] if _mostly_code(analysis.response) else ""
    if not refusal and len(steps) < table["min_sentences"]:
        refusal = refusals["short"].format(least=table["min_sentences"])
    markers = sum(row.kind == "marker" and row.points != 0 for row in reckoning.contributions)
    return Verdict(
        authenticity_score=reckoning.score,
        depth_assessment=depth,
        dominant_strategy=pattern_for_intent(control.most_common(1)[0][0]) if control else "NONE",
        pattern_breaks=tuple(
            f"{steps[i].index}: {steps[i].intent} ({steps[i].regime})" for i in analysis.trajectory.break_positions
        ),
        genuine_elements=tuple(f"{step.index}: {step.intent} – {step.phrase}" for step in genuine),
        trajectory_predictability=next((p for p in PREDICTABILITIES if p == predictability), None),
        notes=refusal
        + table["notes"][lang].format(
            base=table["base"],
            control=round(reckoning.points("sentence", positive=False)),
            genuine=round(reckoning.points("sentence", positive=True)),
            marker=round(reckoning.points("marker")),
            n=len(steps),
            n_control=control.total(),
            n_genuine=len(genuine),
            n_markers=markers,
        ),
        not_applicable=bool(refusal),
        fallback=True,
        receipt=receipt,
    )


@cache
def rules_table() -> Mapping[str, Any]:
    """Return the table of ``corpora/judge/rules.toml``."""
    with data_path("judge/rules.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def rules_hash() -> str:
    """Return the hash of the table, as it stands in receipts."""
    return hashlib.sha256(repr(rules_table()).encode()).hexdigest()[:16]


def in_english_or_spanish(text: str) -> bool:
    """Return whether a reply reads as English or Spanish; where it is too short to tell, and in doubt, it does.

    Told by the share of Latin letters, and by frequent words against those of German, French, Italian, Portuguese, Dutch and
    Swedish.
    """
    words = _WORD.findall(text.lower())
    letters = "".join(words)
    if 2 * sum(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in letters) < len(letters):
        return False
    known = sum(map(function_words().__contains__, words))
    return 2 * sum(map(_foreign_words().__contains__, words)) <= known and (len(words) < 20 or 12 * known >= len(words))


@cache
def _refusals() -> Mapping[str, Any]:
    with data_path("judge/rules_refusals.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def _foreign_words() -> frozenset[str]:
    with data_path("judge/other_languages.toml").open("rb") as file:
        return frozenset(" ".join(tomllib.load(file).values()).split())


def _mostly_code(text: str) -> bool:
    return 2 * sum(end - start for start, end in fences(text)) > len(text.strip())
