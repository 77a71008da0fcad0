"""CaSiNo: two campsite neighbours negotiate for food, water and firewood (Chawla et al. 2021).

Three JSON files, one per split. 396 of the 1,030 dialogues carry strategy labels, given as texts that are aligned here
with the rows of the chat. Three annotators labelled them; agreement was measured on ten dialogues, and the authors left
*promote-coordination* and *showing-empathy* out of their own analysis because it was low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anima.checks import show
from anima.corpora.build import as_id, require_fields
from anima.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from anima.corpora.build import Builder, Kind
    from anima.corpora.files import Files

SPLITS: Final = ("train", "valid", "test")
_BUTTONS: Final = {"Submit-Deal", "Accept-Deal", "Reject-Deal", "Walk-Away"}
_SATISFACTION: Final = (
    "Extremely dissatisfied",
    "Slightly dissatisfied",
    "Undecided",
    "Slightly satisfied",
    "Extremely satisfied",
)
_LIKENESS: Final = ("Extremely dislike", "Slightly dislike", "Undecided", "Slightly like", "Extremely like")
_SCALES: Final = {"satisfaction": _SATISFACTION, "opponent_likeness": _LIKENESS}


def read(files: Files, builder: Builder) -> None:
    """Read the split files of a folder.

    Outcomes per participant: ``points``, and ``satisfaction`` and ``opponent_likeness`` from 1 to 5. Speakers: what
    they value (``high``, ``medium``, ``low``) and why, demographics, social value orientation and the Big Five.
    """
    for split in SPLITS:
        path = files.folder / f"casino_{split}.json"
        records = files.json(path)
        if not isinstance(records, list):
            raise DataError(f"{path}: must hold a list of dialogues, got {show(records)}")
        for number, record in enumerate(records):
            _dialogue(record, path, number, split, builder)


def _dialogue(record: Any, path: Path, number: int, split: str, builder: Builder) -> None:
    place = f"{path}: record {number}"
    fields = require_fields(record, ("dialogue_id", "chat_logs", "participant_info", "annotations"), place)
    key = as_id(fields["dialogue_id"], "dialogue_id", place)
    record_place, place = place, f"{path}: dialogue {key}"
    for name, shape in (("chat_logs", list), ("participant_info", dict), ("annotations", list)):
        if not isinstance(fields[name], shape):
            raise DataError(f"{place}: {name} must be a {shape.__name__}, got {show(fields[name])}")
    annotated = bool(fields["annotations"])
    builder.dialogue(key, record_place, split=split, annotated=annotated)
    pending = [
        _annotation(pair, f"{place}, annotation {row}") for row, pair in enumerate(fields["annotations"])
    ]  # in the order of the chat, which has rows more
    next_one = 0
    for turn, row in enumerate(fields["chat_logs"]):
        spot = f"{place}, chat row {turn}"
        row = require_fields(row, ("text", "task_data", "id"), spot)
        button = isinstance(row["text"], str) and row["text"] in _BUTTONS
        kind: Kind = "button" if button else "message"
        builder.utterance(f"{key}:{turn}", row["id"], row["text"], spot, kind=kind, task_data=row["task_data"] or None)
        if next_one < len(pending) and row["text"] == pending[next_one][0]:
            for label in builder.split_labels(pending[next_one][1]):
                builder.label("strategy", label, f"{place}, annotation {next_one}")
            next_one += 1
        elif annotated and not button:
            builder.dropped["messages of annotated dialogues have no annotation and count as not annotated"] += 1
    if next_one < len(pending):
        raise DataError(
            f"{place}, annotation {next_one}: its text {show(pending[next_one][0])} is in no later chat row: "
            "annotations must repeat the texts of the chat in their order"
        )
    for speaker, info in fields["participant_info"].items():
        _participant(speaker, info, f"{place}, participant {speaker}", builder)


def _annotation(pair: Any, place: str) -> tuple[str, str]:
    if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair):
        return pair[0], pair[1]
    raise DataError(f"{place}: must be a pair of text and labels, got {show(pair)}")


def _participant(speaker: str, info: Any, place: str, builder: Builder) -> None:
    fields = require_fields(info, ("value2issue", "value2reason", "outcomes", "demographics", "personality"), place)
    outcomes = require_fields(fields["outcomes"], ("points_scored", *_SCALES), f"{place}, outcomes")
    points = outcomes["points_scored"]
    if isinstance(points, bool) or not isinstance(points, int | float):
        raise DataError(f"{place}, outcomes: points_scored must be a number, got {show(points)}")
    builder.outcome("points", points, speaker=speaker)
    for name, scale in _SCALES.items():
        if outcomes[name] not in scale:
            raise DataError(
                f"{place}, outcomes: {name} has the unknown value {show(outcomes[name])}: use one of {', '.join(scale)}"
            )
        builder.outcome(name, scale.index(outcomes[name]) + 1, speaker=speaker)
    levels = ("High", "Medium", "Low")
    issues = require_fields(fields["value2issue"], levels, f"{place}, value2issue")
    reasons = require_fields(fields["value2reason"], levels, f"{place}, value2reason")
    personality = require_fields(fields["personality"], ("svo", "big-five"), f"{place}, personality")
    five = require_fields(personality["big-five"], (), f"{place}, big-five")
    columns = {
        **{level.lower(): issues[level] for level in levels},
        **{f"reason_{level.lower()}": reasons[level] for level in levels},
        "svo": personality["svo"],
        **{trait.replace("-", "_"): value for trait, value in five.items()},
    }
    about = require_fields(fields["demographics"], (), f"{place}, demographics")
    if clash := sorted({"dialogue_id", "speaker", *columns} & about.keys()):
        raise DataError(f"{place}, demographics: {clash[0]!r} is a column of another field: rename it")
    builder.speaker(speaker, **about, **columns)
