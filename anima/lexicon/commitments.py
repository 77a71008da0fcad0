"""EXPERIMENTAL: commitments, and later sentences of the same speaker that contradict them.

Measured on 60 short dialogues (``corpora/lexicon/ruptures.jsonl``, half English, half Spanish; half for development, half
scored once). They were invented for this project and labelled by their writer, not by the writer of the rules: clearer than
real talk, one reading, no agreement measured. On the test half: ruptures, precision .83 (95 % interval .44 to .97, 6
found), recall .33 (.15 to .58, 15 to find), where a rule that asks for any negation and a shared word reaches .41 and .47;
commitments, turn by turn, precision .91 (.78 to .97) and recall .94 (.81 to .98). On 1,030 CaSiNo dialogues one rupture is
found, wrongly; an earlier detector found 101, of which at most 5 were right. What it finds is worth reading; that it finds
nothing means nothing: paraphrases are out of reach. The numbers stand in ``corpora/lexicon/ruptures-measured.toml``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from anima.checks import require_choice, require_number, require_text, show
from anima.errors import InputError
from anima.lexicon.acts import acts, stem
from anima.lexicon.scan import scan
from anima.negation import guess_language, scopes
from anima.settings import data_path
from anima.stats import Presentable
from anima.stats.agreement import share_estimate
from anima.text import normalize, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anima.negation import Lang, Scope
    from anima.stats import Estimate

#: Least share of a commitment's topic that a contradicting sentence takes up.
MIN_OVERLAP: Final = 0.34

_WORD = re.compile(r"[^\W\d_]+|\d+")
_QUOTED = re.compile(r'"[^"\n]{1,400}"|«[^«»]{1,400}»|(?<![\w\'])\'[^\'\n]{1,300}\'(?![\w])')


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of ``corpora/lexicon/commitments.toml``."""
    return re.compile(
        tomllib.loads(data_path("lexicon/commitments.toml").read_text(encoding="utf-8"))[name], re.IGNORECASE
    )


def _any(text: str, *names: str) -> bool:
    return any(_pattern(name).search(text) for name in names)


@dataclass(frozen=True, slots=True)
class Commitment:
    """A sentence that binds its speaker: its turn, speaker, words and span in the turn; the act promised (stem) and the
    other words it is about; whether it promises *not* to act, and whether on a condition.
    """

    turn: int
    speaker: str
    text: str
    span: tuple[int, int]
    act: str
    topic: tuple[str, ...]
    negative: bool
    conditional: bool
    lang: str


@dataclass(frozen=True)
class Rupture(Presentable):
    """A sentence that contradicts an earlier commitment of its speaker.

    ``overlap`` is the share of the commitment's topic that it takes up, ``rule`` "denied" (the act, negated), "done"
    (what was not to be done), or "undone" (an act that undoes the one promised).
    """

    turn: int
    speaker: str
    text: str
    span: tuple[int, int]
    commitment: Commitment
    overlap: float
    rule: str

    def summary(self) -> str:
        """Return one sentence."""
        return f"{self.speaker}, turn {self.turn}: “{self.text}” contradicts turn {self.commitment.turn}: “{self.commitment.text}” ({self.rule})."


class _Sentence(NamedTuple):
    turn: int
    speaker: str
    text: str
    span: tuple[int, int]
    bare: str
    lang: Lang
    stems: dict[str, list[tuple[int, int]]]
    scopes: list[Scope]


def commitments(turns: Iterable[Any]) -> list[Commitment]:
    """Return the commitments of a dialogue, in order. EXPERIMENTAL, measured on invented dialogues alone: see the module.

    Parameters
    ----------
    turns
        Pairs ``(speaker, text)`` or mappings with ``speaker`` and ``text``, in order. Each speaker binds only
        themselves.

    Raises
    ------
    InputError
        If a turn is neither.
    """
    return [made for sentence in _sentences(turns) if (made := _commitment(sentence))]


def ruptures(turns: Iterable[Any], *, min_overlap: float = MIN_OVERLAP) -> list[Rupture]:
    """Return the sentences that contradict an earlier commitment of the same speaker. EXPERIMENTAL.

    Parameters
    ----------
    turns
        As for :func:`commitments`.
    min_overlap
        Least share of the commitment's topic that the sentence takes up.

    Returns
    -------
    list of Rupture
        In order; of several commitments that a sentence contradicts, the one with most overlap.

    Notes
    -----
    A sentence contradicts if it denies the promised act, does what was not to be done, or does what undoes it
    (``corpora/lexicon/acts.toml``). Polarity is that of the act's own word in the scopes of :mod:`anima.negation`, so
    that determiners ("no firewood") and answers ("No, …") deny nothing else. Questions, staged cases, quoted or
    reported words, contrasts ("not to X but to Y"), other days than the promised one, promises on a condition and
    sentences that take the promise back do not count. Measured: precision .83 [.44, .97], recall .33 [.15, .58] on
    30 invented test dialogues; see the head of this module.
    """
    found: list[Rupture] = []
    made: list[Commitment] = []
    require_number(min_overlap, "min_overlap", low=0, high=1)
    for sentence in _sentences(turns):
        held = [item for item in made if item.speaker == sentence.speaker and not item.conditional]
        if held and _excused(sentence):
            held = []
        best = max(
            (rupture for item in held if (rupture := _rupture(item, sentence, min_overlap))),
            key=lambda rupture: rupture.overlap,
            default=None,
        )
        if best:
            found.append(best)
        elif item := _commitment(sentence):
            made.append(item)
    return found


@dataclass(frozen=True)
class RuptureScores(Presentable):
    """How often ruptures are right and found on written dialogues, with Wilson intervals, beside a trivial rule: the
    speaker's later sentence holds a negation cue and a content word of the promise.
    """

    split: str
    n_dialogues: int
    precision: Estimate
    recall: Estimate
    trivial_precision: Estimate
    trivial_recall: Estimate

    def summary(self) -> str:
        """Return one sentence."""
        head = f"{self.n_dialogues} written dialogues ({self.split})"
        return f"{head}: {self.precision.summary()} {self.recall.summary()}"


def measure_ruptures(split: Literal["dev", "test"] = "test") -> RuptureScores:
    """Score :func:`ruptures` on the labelled dialogues of ``corpora/lexicon/ruptures.jsonl``."""
    require_choice(split, "split", ("dev", "test"))
    lines = data_path("lexicon/ruptures.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["split"] == split]
    found = {"": [0, 0, 0], "trivial ": [0, 0, 0]}
    for row in rows:
        gold = {(item["turn"], item["commitment_turn"]) for item in row["ruptures"]}
        for name, rule in (("", ruptures), ("trivial ", _trivial)):
            got = {(item.turn, item.commitment.turn) for item in rule(row["turns"])}
            for i, count in enumerate((len(gold & got), len(got), len(gold))):
                found[name][i] += count
    shares = [
        share_estimate(hits, n, f"{name}{what}")
        for name, (hits, got, gold) in found.items()
        for what, n in (("precision", got), ("recall", gold))
    ]
    return RuptureScores(split, len(rows), *shares)


def _trivial(turns: Iterable[Any]) -> list[Rupture]:
    made: list[Commitment] = []
    found: list[Rupture] = []
    for sentence in _sentences(turns):
        found += [
            Rupture(sentence.turn, sentence.speaker, sentence.text, sentence.span, item, 1.0, "trivial")
            for item in made
            if item.speaker == sentence.speaker and sentence.scopes and sentence.stems.keys() & {*item.topic, item.act}
        ]
        if item_made := _commitment(sentence):
            made.append(item_made)
    return found


def _sentences(turns: Iterable[Any]) -> Iterable[_Sentence]:
    pairs: list[tuple[str, str]] = []
    if not isinstance(turns, Iterable):
        raise InputError(f"turns must be a list of pairs (speaker, text), got {show(turns)}")
    for i, turn in enumerate(turns):
        if isinstance(turn, Mapping) and "speaker" in turn and "text" in turn:
            speaker, text = turn["speaker"], turn["text"]
        elif isinstance(turn, tuple | list) and len(turn) == 2:
            speaker, text = turn
        else:
            raise InputError(
                f"turns item {i} must be a pair (speaker, text) or have 'speaker' and 'text', got {show(turn)}"
            )
        pairs.append((str(speaker), require_text(text, "turns", place=f"item {i}")))
    lang = guess_language(normalize(" ".join(text for _, text in pairs)).text)
    for i, (speaker, text) in enumerate(pairs):
        for piece in sentences(text):
            # Same length, so that offsets hold.
            bare = _QUOTED.sub(lambda match: " " * len(match[0]), normalize(piece.text).text)
            found = _stems(bare), scopes(bare, lang, affixal=False)
            yield _Sentence(i, speaker, piece.text, (piece.start, piece.end), bare, lang, *found)


def _stems(text: str) -> dict[str, list[tuple[int, int]]]:
    """Return the stems of the content words of a text with their places."""
    light = acts().light
    found: dict[str, list[tuple[int, int]]] = {}
    for match in _WORD.finditer(text):
        low = match[0].lower()
        if len(low) > 1 and low not in light:
            found.setdefault(stem(low), []).append(match.span())
    return found


def _denied(sentence: _Sentence, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether an odd number of negations reaches one of the words of an act; determiners of other nouns do not."""
    reach = (scope for scope in sentence.scopes if not (scope.kind == "determiner" and len(scope.tokens) < 3))
    return sum(not scope.double and any(scope.covers(*span) for span in spans) for scope in reach) % 2 == 1


def _commitment(sentence: _Sentence) -> Commitment | None:
    text = sentence.bare
    if "?" in text[-2:] or _any(text, "staged", "reported", "idle"):
        return None
    match = _pattern(f"promise_{sentence.lang}").search(text)
    start = match.end() if match else -1
    if not match:
        found = (hit for hit in scan(text, sentence.lang) if hit.category in ("commitment", "pledge"))
        hits = [hit for hit in found if hit.polarity == "affirmed"]
        if not hits or hits[0].register == "negotiation":
            return None
        start = hits[0].span[0]
    places = sorted((spans[0], root) for root, spans in sentence.stems.items())
    act = next((root for span, root in places if span[1] > start), "")
    if not act:
        return None
    negative = _denied(sentence, [span for span in sentence.stems[act] if span[1] > start])
    negative = negative or bool(match and re.search("n't|n’t|never", match[0]))
    topic = tuple(sorted(sentence.stems.keys() - {act}))
    told = (act, topic, negative, _any(text, "condition"), sentence.lang)
    return Commitment(sentence.turn, sentence.speaker, sentence.text, sentence.span, *told)


def _excused(sentence: _Sentence) -> bool:
    """Tell whether a sentence contradicts nothing by its make: a question, staged, reported, taken back or a contrast."""
    return sentence.bare.rstrip().endswith("?") or _any(sentence.bare, "staged", "reported", "revision", "contrast")


@lru_cache(maxsize=1 << 12)
def _apart(text: str) -> frozenset[str]:
    """Return the words of a text that set occasions apart, such as days."""
    return frozenset(word.lower() for word in _WORD.findall(text)) & acts().apart


def _rupture(made: Commitment, sentence: _Sentence, min_overlap: float) -> Rupture | None:
    table = acts()
    mine, theirs = _apart(made.text), _apart(sentence.text)
    if mine and theirs and not mine & theirs:
        return None
    overlap = len(sentence.stems.keys() & set(made.topic)) / len(made.topic) if made.topic else 0.0
    same = table.group.get(made.act, frozenset())
    undoing = frozenset().union(*(table.opposed.get(name, frozenset()) for name in same))
    rule = ""
    for root, spans in sentence.stems.items():
        groups = table.group.get(root, frozenset())
        if root == made.act or (groups & same and root not in made.topic):
            denied = _denied(sentence, spans)
            if denied != made.negative and (overlap >= min_overlap or (root == made.act and not made.topic)):
                rule = "denied" if denied else "done"
        elif groups & undoing and overlap >= min_overlap and not made.negative and not _denied(sentence, spans):
            rule = rule or "undone"
    if not rule:
        return None
    return Rupture(sentence.turn, sentence.speaker, sentence.text, sentence.span, made, overlap, rule)
