"""What a change of mind is in DeliData: four definitions, the words that may announce one, and what happens before it.

Everything is counted in one pass over the messages and submissions of each group; masked cards are never read back.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from anima.findings.shares import counted
from anima.lexicon import Phrase, PhraseLexicon, scan_many
from anima.settings import data_path
from anima.stats import adjust_p, bootstrap_sums, cohen_kappa, confusion_terms, mantel_haenszel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from anima.corpora import Corpus

    Flags = NDArray[np.bool_]

DATA: Final = "findings/delidata_changes.toml"
#: The category of the written lexicon that should tell a change of mind.
CATEGORY: Final = "self-correction"
#: Definitions by name: the column that holds them. The first was claimed; the last is one of submissions, not of messages.
DEFINITIONS: Final[Mapping[str, str]] = {
    "names a card": "mention",
    "tracked state changed": "changed",
    "complete proposal differs": "new_proposal",
    "submission differs": "changed",
}
SUBMISSION: Final = "submission differs"
TARGETS: Final = ("Reasoning", "Solution", "Agree", "Disagree", "Moderation")
#: What a reader of the chat sees before a repeated proposal: turns so far, turns since the speaker's previous one, and
#: proposals of others since then that differ from it or equal it.
CONTEXT: Final = ("turns so far", "turns since", "others' sets that differ", "others' sets that agree")
#: More messages than this since the last submission share one stratum.
MOST_MESSAGES: Final = 15


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(data_path(DATA).read_text(encoding="utf-8"))


def earlier() -> pd.DataFrame:
    """Return what an earlier lexicon scored on the same messages, as written down with its source in the data file."""
    return pd.DataFrame(_data()["earlier"]["rows"]).assign(words=_data()["earlier"]["name"])


def word_lists() -> tuple[str, ...]:
    """Return the names of the lists that are compared, the written lexicon's category first."""
    return (CATEGORY, *_data()["lists"])


def flag_words(texts: Sequence[str]) -> dict[str, Flags]:
    """Return for each list which texts have a hit; hits of the written lexicon that are negated do not count."""
    hits = scan_many(texts, "en")
    own = [any(hit.category == CATEGORY and hit.polarity != "negated" for hit in found) for found in hits]
    flags = {CATEGORY: np.array(own, dtype=bool)}
    for name, words in _data()["lists"].items():
        flags[name] = PhraseLexicon(name, tuple(Phrase(word) for word in words), {}).predict(texts)
    return flags


@dataclass(frozen=True)
class Changes:
    """Every message, repeated proposal and submission of a corpus, with what changed at it.

    Parameters
    ----------
    messages
        One row per chat message: ids, ``masked`` text, one column for each list of words, one for each target label and
        ``Probing``; ``mention`` (names a card), ``first_mention`` (of its speaker), ``moved`` (the speaker's tracked state
        is another one after it), ``changed`` (moved, and there was a state before), ``proposal`` (annotated as a complete
        solution, with cards found in it), ``repeated`` (the speaker made one before), ``new_proposal`` (and it differs).
    proposals
        The repeated ones, with what a reader of the chat sees before them: see :data:`CONTEXT`.
    submissions
        One row per submission whose participant had a set before: ``changed``, ``first``, and counts since the
        participant's previous submission: ``own messages``, ``others' messages``, and ``own X``, ``others' X`` of each list
        and label X; ``others' sets that differ``: proposals of others that are not the participant's previous set.
    unknown
        Submissions left out because the participant had no set before.
    """

    messages: pd.DataFrame = field(repr=False)
    proposals: pd.DataFrame = field(repr=False)
    submissions: pd.DataFrame = field(repr=False)
    unknown: int = 0

    def unit(self, definition: str) -> tuple[pd.DataFrame, Flags]:
        """Return the units of a definition (messages or submissions) and which of them are changes."""
        frame = self.submissions if definition == SUBMISSION else self.messages
        return frame, frame[DEFINITIONS[definition]].to_numpy(dtype=bool)

    def counts(self, *, n_resamples: int = 2000, seed: int = 7) -> pd.DataFrame:
        """Return each definition with its number of changes and of units, and the base rate with its interval by group."""
        rows = []
        for name in DEFINITIONS:
            frame, changes = self.unit(name)
            unit = "submissions" if name == SUBMISSION else "messages"
            rate = bootstrap_sums(
                lambda s: s[:, 0] / s[:, 1], np.column_stack([changes, np.ones(len(frame))]), clusters=frame["dialogue_id"],
                n_resamples=n_resamples, rng=seed, name=f"base rate: {name}",
            )  # fmt: skip
            rows.append((name, int(changes.sum()), len(frame), unit, rate))
        return pd.DataFrame(rows, columns=["definition", "changes", "of", "unit", "rate"])

    def mentions(self) -> pd.DataFrame:
        """Return what the messages that name a card are: how many leave the state as it was, are the speaker's first, ask."""
        told = self.messages[self.messages["mention"]]
        kinds = {
            "leave the tracked state as it was": ~told["moved"], "are the speaker's first": told["first_mention"],
            "sit in Probing messages": told["Probing"], "change a state that was there": told["changed"],
        }  # fmt: skip
        rows = [(name, int(flag.sum()), flag.mean()) for name, flag in kinds.items()]
        return pd.DataFrame(rows, columns=["messages that name a card and …", "n", "share"])


class _Group:
    """What is known of a group's participants while its messages pass by."""

    def __init__(self, state: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
        self.state = {speaker: frozenset(cards) for speaker, cards in state.items()}
        self.held = dict(self.state)
        self.names = names
        self.spoken: set[str] = set()
        self.proposed: dict[str, tuple[frozenset[str], int]] = {}
        self.submitted: dict[str, int] = {}
        self.log: list[tuple[str, frozenset[str], int]] = []
        self.marks: list[tuple[str, NDArray[np.float64]]] = []
        self.begin: dict[str, int] = {}

    def message(
        self, row: Any, complete: bool, marks: NDArray[np.float64]
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the columns of a message, and those of a repeated proposal."""
        before, cards = self.state.get(row.speaker, frozenset()), frozenset(row.solution)
        after = {speaker: frozenset(held) for speaker, held in row.state.items()}
        found = {
            "mention": bool(cards), "first_mention": bool(cards) and row.speaker not in self.spoken,
            "moved": bool(cards) and after.get(row.speaker, frozenset()) != before,
            "proposal": complete and bool(cards), "repeated": False, "new_proposal": False,
        }  # fmt: skip
        found["changed"] = found["moved"] and bool(before)
        again = None
        if found["proposal"]:
            if row.speaker in self.proposed:
                last, turn = self.proposed[row.speaker]
                found |= {"repeated": True, "new_proposal": cards != last}
                again = {"utterance_id": row.utterance_id, "new_proposal": cards != last} | self._since(row, last, turn)
            self.proposed[row.speaker] = (cards, row.turn)
            self.log.append((row.speaker, cards, row.turn))
        if cards:
            self.spoken.add(row.speaker)
        self.state = after
        self.marks.append((row.speaker, marks))
        return found, again

    def _since(self, row: Any, last: frozenset[str], turn: int) -> dict[str, float]:
        """Return what went before a repeated proposal, without a look at the proposal itself."""
        others = [cards for speaker, cards, at in self.log if at > turn and speaker != row.speaker]
        differ = sum(cards != last for cards in others)
        return dict(zip(CONTEXT, (row.turn, row.turn - turn, differ, len(others) - differ), strict=True))

    def submit(self, row: Any) -> dict[str, Any] | None:
        """Return the columns of a submission; None where the participant had no set before."""
        cards, before = frozenset(row.solution), self.held.get(row.speaker, frozenset())
        start = self.begin.get(row.speaker, 0)
        since = self.marks[start:]
        own = sum((marks for speaker, marks in since if speaker == row.speaker), np.zeros(len(self.names)))
        rest = sum((marks for speaker, marks in since if speaker != row.speaker), np.zeros(len(self.names)))
        turn = self.submitted.get(row.speaker, -1)
        differ = sum(other != before for speaker, other, at in self.log if at > turn and speaker != row.speaker)
        first = row.speaker not in self.submitted
        found: dict[str, Any] = {"changed": cards != before, "first": first, "others' sets that differ": differ}
        for side, counts in (("own", own), ("others'", rest)):
            found |= {f"{side} {name}": value for name, value in zip(self.names, counts, strict=True)}
        self.held[row.speaker] = cards
        self.begin[row.speaker], self.submitted[row.speaker] = len(self.marks), row.turn
        self.state = {speaker: frozenset(held) for speaker, held in row.state.items()}
        return found if before else None


def trace(corpus: Corpus) -> Changes:
    """Return what changed at each message, proposal and submission of DeliData.

    "Names a card" is a message in which the corpus' tracker found one; the tracked state is what its README calls an
    approximation of each participant's mind, and a submission is what the participant handed in.
    """
    frame = corpus.utterances
    chat = frame[frame["kind"] == "message"].reset_index(drop=True)
    table = chat[["utterance_id", "dialogue_id", "speaker", "turn", "text"]].assign(masked=chat["clean_text"])
    ids = {key: row for row, key in enumerate(chat["utterance_id"])}
    labels = {name: np.zeros(len(chat), dtype=bool) for name in ("Probing", *TARGETS, "complete_solution")}
    for key, label in zip(corpus.labels["utterance_id"], corpus.labels["label"], strict=True):
        if label in labels:
            labels[label][ids[key]] = True
    complete = labels.pop("complete_solution")
    flags = flag_words(chat["text"].tolist()) | labels
    names = ("messages", *flags)
    marks = np.column_stack([np.ones(len(chat)), *flags.values()])
    rows, proposals, submissions, unknown = [], [], [], 0
    group: _Group | None = None
    item: Any
    for item in frame.itertuples():
        if item.kind == "initial" or group is None:
            group = _Group(item.state, names)
        if item.kind == "message":
            row = ids[item.utterance_id]
            found, again = group.message(item, bool(complete[row]), marks[row])
            rows.append(found)
            if again is not None:
                proposals.append({"dialogue_id": item.dialogue_id, "masked": item.clean_text} | again)
        elif item.kind == "submit":
            own = group.submit(item)
            unknown += own is None
            if own is not None:
                key = {"utterance_id": item.utterance_id, "dialogue_id": item.dialogue_id, "speaker": item.speaker}
                submissions.append(key | own)
    return Changes(
        pd.concat([table, pd.DataFrame(flags), pd.DataFrame(rows)], axis=1), pd.DataFrame(proposals),
        pd.DataFrame(submissions), unknown,
    )  # fmt: skip


STATISTICS: Final = ("precision", "recall", "lift", "kappa")
#: What each is a share of, in words.
UNITS: Final = {"precision": "with a hit", "lift": "with a hit", "recall": "that changed", "kappa": ""}


def score_words(changes: Changes, *, n_resamples: int = 2000, seed: int = 7) -> pd.DataFrame:
    """Compare each list of words with each definition.

    Of submissions a list "fires" where one of the participant's messages since their previous submission has a hit.

    Returns
    -------
    DataFrame
        One row per definition, list and statistic, with the ``estimate`` (interval by group), how often the list
        ``fires`` and ``hits``. Lift is precision over base rate. ``n`` of an estimate: units with a hit (precision, lift),
        changes (recall), all units (kappa); see :data:`UNITS`.
    """
    rows = []
    for definition in DEFINITIONS:
        frame, truth = changes.unit(definition)
        for words in word_lists():
            fires = (frame[f"own {words}"] if definition == SUBMISSION else frame[words]).to_numpy() > 0
            options: dict[str, Any] = {"clusters": frame["dialogue_id"], "n_resamples": n_resamples, "rng": seed}
            terms = confusion_terms(truth.astype(int), fires.astype(int), 2)
            for statistic in STATISTICS:
                name = f"{statistic} of {words}: {definition}"
                if statistic == "kappa":
                    own = cohen_kappa(truth, fires, categories=[False, True], name=name, **options)
                else:
                    own = bootstrap_sums(_SHARES[statistic], terms, name=name, **options)
                    own = counted(own, truth.sum() if statistic == "recall" else fires.sum())
                rows.append((definition, words, int(fires.sum()), int((fires & truth).sum()), statistic, own))
    return pd.DataFrame(rows, columns=["definition", "words", "fires", "hits", "statistic", "estimate"])


# Columns: neither, fires alone, change alone, both.
_SHARES: Final[Mapping[str, Any]] = {
    "precision": lambda s: s[:, 3] / (s[:, 1] + s[:, 3]),
    "recall": lambda s: s[:, 3] / (s[:, 2] + s[:, 3]),
    "lift": lambda s: s[:, 3] / (s[:, 1] + s[:, 3]) * s.sum(axis=1) / (s[:, 2] + s[:, 3]),
}


def before_submission(changes: Changes, *, n_resamples: int = 2000, seed: int = 7) -> pd.DataFrame:
    """Compare what happened before changed and unchanged submissions.

    Each event is compared among submissions with the same number of messages of the same side since the participant's
    previous submission (more than 15 count as one), first submissions apart from later ones. Intervals resample groups;
    p-values are Holm's over all events.

    Returns
    -------
    DataFrame
        One row per event: share of changed and of unchanged submissions with it, ``estimate`` (Mantel–Haenszel odds
        ratio) and ``plain`` (strata of the messages alone), ``p`` and ``holm``.
    """
    frame = changes.submissions
    lists, rows = word_lists(), []
    events = [(side, name) for side in ("own", "others'") for name in (*lists, "Probing", *TARGETS)]
    events += [("others'", "messages"), ("others'", "sets that differ")]
    for side, name in events:
        # Whether others wrote at all is compared among participants who wrote equally much themselves.
        among = "own" if name == "messages" else side
        strata = frame[f"{among} messages"].clip(upper=MOST_MESSAGES).astype(int).astype(str)
        event = f"{side} {name}"
        found, plain = (
            mantel_haenszel(
                frame[event].to_numpy() > 0, frame["changed"], of, clusters=frame["dialogue_id"], n_resamples=n_resamples,
                rng=seed, name=f"{event}: odds ratio of a change",
            )
            for of in (strata + frame["first"].astype(str), strata)
        )  # fmt: skip
        shares = (found.extra.get(f"{which}_outcome", math.nan) for which in ("with", "without"))
        rows.append((event, *shares, found, plain, found.p_value))
    table = pd.DataFrame(rows, columns=["event", "changed", "unchanged", "estimate", "plain", "p"])
    return table.assign(holm=adjust_p(table["p"]))
