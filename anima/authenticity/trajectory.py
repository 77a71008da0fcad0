"""From a chain of intents to its trajectory: transitions, densities, breaks, and the cascade of rules.

Source: the reference document, section 10, as corrected in the method chapter. The cascade is a table: the first row
whose condition holds decides, and its id stands in the result.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from anima.authenticity.intents import UNCLASSIFIED, predicted_next, regime
from anima.authenticity.rules import Rules, RulesName, get_rules, rounded
from anima.checks import require_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Predictability = Literal["high", "moderate", "low", "insufficient"]


class Transition(NamedTuple):
    """What was expected after one step and what came."""

    predicted_next: str
    actual_next: str
    deviation: bool


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The trajectory of one reply.

    Attributes
    ----------
    chain
        The intents in order, UNCLASSIFIED included.
    predictability, formulaic, rule, reason
        The verdict of the cascade, the id of the row that decided, and that row in words.
    control_density
        Share of control among the sentences that have a regime; NaN when none has.
    control_density_all
        Share of control among all sentences; NaN for an empty chain.
    genuine_density, plain_share
        Shares of genuine and of UNCLASSIFIED sentences among all.
    pattern_break_density
        Changes of regime divided by the number of sentences that have one; 0 without a change, NaN when none has.
    control_density_before_break, control_density_after_break
        Control density up to the first change of regime and from it on; both the whole chain's when there is no change.
    break_positions
        Indices into ``chain`` at which the regime changes.
    """

    chain: tuple[str, ...]
    predictability: Predictability
    formulaic: bool
    rule: str
    reason: str
    pattern_break_density: float
    control_density_before_break: float
    control_density_after_break: float
    break_positions: tuple[int, ...]
    control_density: float
    control_density_all: float
    genuine_density: float
    plain_share: float

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict under the reference service's field names; undefined densities are null."""
        return rounded(asdict(self))


def transitions(chain: Sequence[str]) -> list[Transition]:
    """Compare each step with its usual successor.

    A step deviates when something was predicted, a next step exists, and the two differ. The last step never deviates.
    """
    following = [*chain, ""][1:]
    steps = []
    for intent, actual in zip(chain, following, strict=True):
        predicted = predicted_next(intent)
        steps.append(Transition(predicted, actual, bool(predicted and actual and predicted != actual)))
    return steps


def control_density(chain: Sequence[str], *, plain_is_control: bool = False) -> float:
    """Return the share of control among the steps that have a regime; NaN when none has.

    With ``plain_is_control`` every step has one, as in the reference service.
    """
    regimes = [regime(intent, plain_is_control=plain_is_control) for intent in chain]
    counted = [name for name in regimes if name != "plain"]
    return counted.count("control") / len(counted) if counted else float("nan")


_COHERENT = ("HOLD_OPEN", "PROBE", "CALIBRATE", "REPAIR", "EXPLORE")
_REDIRECT = ("REDIRECT_EMOTIONAL", "REDIRECT_SEMANTIC")
_STEERING = (
    "FRAME_CAPTURE", "ALIGN", "MIRROR", "FABRICATE", "CONTROL_SELF_EXPOSURE", "ANCHOR", "SOFT_DEFLECT", "PATTERN_LOCK",
)  # fmt: skip


class _Facts:
    """What the rows of the cascade ask about."""

    def __init__(self, chain: list[str]) -> None:
        self.count = Counter(chain)
        self.length = len(chain)
        first = [chain.index(name) for name in ("VALIDATE", "EXPAND", "CLOSE") if name in chain]
        self.canonical = len(first) == 3 and first == sorted(first)
        self.coherent, self.redirect, self.steering = (
            sum(self.count[name] for name in names) for names in (_COHERENT, _REDIRECT, _STEERING)
        )

    def has(self, *intents: str) -> bool:
        """Tell whether each of ``intents`` occurs."""
        return all(self.count[intent] for intent in intents)


class _Row(NamedTuple):
    rule: str
    predictability: Predictability
    formulaic: bool
    holds: Callable[[_Facts], bool]
    reason: str


# fmt: off
_CASCADE = (
    _Row("T01", "high", True, lambda f: f.count["PATTERN_LOCK"] >= 2,
         "the same solution is offered again and again"),
    _Row("T02", "high", True, lambda f: f.has("CONTROL_SELF_EXPOSURE", "ALIGN"),
         "control is confessed and the reader's feeling mirrored: an attempt to win trust back"),
    _Row("T03", "high", True, lambda f: f.canonical and not f.coherent and not f.steering,
         "praise, then more than was asked, then a closing: the canonical course, undisturbed"),
    _Row("T04", "moderate", True, lambda f: f.canonical and f.coherent > 0,
         "the canonical course, with genuine moments in it"),
    _Row("T05", "high", True, lambda f: f.has("FRAME_CAPTURE", "MIRROR"),
         "the reader's frame is taken over and their image idealised"),
    _Row("T06", "high", True, lambda f: f.has("FABRICATE", "REGISTER_MATCH"),
         "invented machinery in a raised register: authority without evidence"),
    _Row("T07", "moderate", True, lambda f: f.has("ALIGN", "EVADE"),
         "the reader's feeling is mirrored, the question evaded"),
    _Row("T08", "moderate", True, lambda f: f.has("SOFT_DEFLECT", "EVADE"),
         "another question is put in place of the one asked, and both sides are kept standing"),
    _Row("T09", "moderate", True, lambda f: f.redirect > 0 and f.has("EVADE", "REGISTER_MATCH"),
         "redirection, evasion and a raised register together: control in disguise"),
    _Row("T10", "low", False, lambda f: f.coherent >= 2 and not (f.steering or f.redirect or f.has("EVADE")),
         "several genuine moves and no steering, redirection or evasion"),
    _Row("T11", "low", False, lambda f: f.has("REPAIR", "CALIBRATE"),
         "the channel is repaired and the description refined, without a forced closing"),
    _Row("T12", "low", False, lambda f: f.count["HOLD_OPEN"] >= 2 and not f.steering,
         "the question is held open more than once, without steering"),
    _Row("T13", "moderate", False, lambda f: f.redirect > 0 or f.steering > 0 or f.has("EVADE"),
         "control moves that form none of the listed patterns"),
    _Row("T14", "low", False, lambda f: f.coherent >= f.length // 2,
         "nothing steers, and genuine moves are at least half (rounded down)"),
    _Row("T15", "moderate", False, lambda _: True,
         "no canonical course and no dominant pattern"),
)
_EMPTY = _Row("T00", "low", False, lambda _: True, "no sentence to classify")
_INSUFFICIENT = _Row("T00", "insufficient", False, lambda _: True,
                     "fewer than two sentences manage the reader: no trajectory to speak of")
# fmt: on


def assess(chain: Sequence[str], *, rules: RulesName | Rules = "anima") -> Trajectory:
    """Assess a chain of intents.

    Parameters
    ----------
    chain
        Intent names in order of the sentences; UNCLASSIFIED allowed.
    rules
        ``"anima"``: UNCLASSIFIED is neither control nor genuine, the cascade reads the classified sentences alone, and
        fewer than two of them are "insufficient". ``"reference"``: UNCLASSIFIED is control and everything is assessed.

    Returns
    -------
    Trajectory
        Densities are unrounded; :meth:`Trajectory.to_dict` rounds to three decimals, halves away from zero.

    Examples
    --------
    >>> found = assess(["VALIDATE", "EXPAND", "UNCLASSIFIED", "CLOSE"])
    >>> found.predictability, found.rule, found.control_density, found.control_density_all
    ('high', 'T03', 1.0, 0.75)
    """
    rules = get_rules(rules) if isinstance(rules, str) else rules
    chain = tuple(require_texts(chain, "chain"))
    regimes = [regime(intent, plain_is_control=rules.plain_is_control) for intent in chain]
    kept = [i for i, name in enumerate(regimes) if name != "plain"]
    breaks = tuple(j for i, j in itertools.pairwise(kept) if regimes[i] != regimes[j])
    row = _decide([chain[i] for i in kept], rules, empty=not chain)
    density = control_density(chain, plain_is_control=rules.plain_is_control)
    before = after = density
    if breaks:
        halves = chain[: breaks[0]], chain[breaks[0] :]
        before, after = (control_density(half, plain_is_control=rules.plain_is_control) for half in halves)
    n = len(chain)
    strict = [regime(intent) for intent in chain]
    return Trajectory(
        chain=chain,
        predictability=row.predictability,
        formulaic=row.formulaic,
        rule=row.rule,
        reason=row.reason,
        pattern_break_density=len(breaks) / len(kept) if kept else 0.0 if rules.plain_is_control else float("nan"),
        control_density_before_break=before,
        control_density_after_break=after,
        break_positions=breaks,
        control_density=density,
        control_density_all=strict.count("control") / n if n else float("nan"),
        genuine_density=strict.count("genuine") / n if n else float("nan"),
        plain_share=chain.count(UNCLASSIFIED) / n if n else float("nan"),
    )


def _decide(kept: list[str], rules: Rules, *, empty: bool) -> _Row:
    if len(kept) < rules.min_classified:
        return _INSUFFICIENT
    if empty:
        return _EMPTY
    facts = _Facts(kept)
    return next(row for row in _CASCADE if row.holds(facts))
