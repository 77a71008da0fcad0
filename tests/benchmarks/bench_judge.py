"""Race the parser of judges' answers against json_repair, and time the sanitiser: python tests/benchmarks/bench_judge.py.

The race is from the text to a checked :class:`~anima.judge.Verdict`: reasoning split off, the last object chosen, no object
of question or reply taken. json_repair alone ends at a dict; the second number adds a pydantic check of the same fields. The
last table shows where json_repair gives the wrong object. Process time, the best of several turns taken in alternation.
"""

from __future__ import annotations

import importlib.util
import json
import random
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from anima.judge.parse import SCORE, parse_verdict
from anima.judge.sanitize import StreamSanitizer
from anima.judge.verdict import Depth, Predictability, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS, PIECE = 25, 4096
VERDICT: dict[str, Any] = {
    SCORE: 42,
    "depth_assessment": "moderate",
    "dominant_strategy": "PROJECTED_VALIDATION",
    "pattern_breaks": ["It stops to ask what the reader meant", "It leaves the second list unfinished"],
    "genuine_elements": ["names a limit it cannot check"],
    "trajectory_predictability": "moderate",
    "notes": "The opening praises the question; the middle argues, and the close does not force an end. " * 3,
    "not_applicable": False,
}
BARE, PRETTY = json.dumps(VERDICT), json.dumps(VERDICT, indent=2)
THINKING = "<think>\n" + 'Let me look at the chain. It\'s a {draft} of sorts, "quoted". ' * 40 + "\n</think>\n"
# Answer, and how many times as fast the parser must be.
RACES = {
    "bare": (BARE, 1 / 1.5),
    "fenced": (f"```json\n{PRETTY}\n```", 2.0),
    "trailing comma": (PRETTY[:-2] + ",\n}", 5.0),
    "thinking, prose, fence": (f"{THINKING}Here is my verdict.\n```json\n{PRETTY}\n```\nHope it helps.", 20.0),
}
TRAPS = {
    "a draft in the reasoning": f'<think>maybe {{"{SCORE}": 1}}</think>{BARE}',
    "reasoning not opened": f'draft {{"{SCORE}": 1}} </think> {BARE}',
    "braces in prose": f"The set {{x: 1}} first.\n{BARE}",
    "two objects": f'{{"{SCORE}": 1}}\n{BARE}',
    "tag in a string": json.dumps(VERDICT | {"notes": "a </think> tag"}),
    "apostrophes before": f"It's what I'd say:\n{BARE}\nThat's it {{so}}.",
}


QUOTED = (
    "Is my plan any good?",
    "What a thoughtful question! Your plan holds, and I would keep both readings open. " * 15,
)


class Fields(BaseModel):
    """The fields of a verdict, checked as the parser checks them."""

    authenticity_score: Annotated[int, Field(ge=0, le=100)]
    depth_assessment: Depth | None = None
    dominant_strategy: str = ""
    pattern_breaks: tuple[str, ...] = ()
    genuine_elements: tuple[str, ...] = ()
    trajectory_predictability: Predictability | None = None
    notes: str = ""
    not_applicable: bool = False


def read(text: str) -> dict[str, Any]:
    found = parse_verdict(text, quoted=QUOTED)
    assert isinstance(found, Verdict), found
    return Fields.model_validate(vars(found)).model_dump(mode="json")


def repeat(function: Callable[[str], object], text: str, n: int) -> None:
    for _ in range(n):
        function(text)


def best(runs: list[Callable[[], object]], turns: int = TURNS) -> list[float]:
    """Return the least process time of each run, in seconds."""
    least = [float("inf")] * len(runs)
    for _ in range(turns):
        for i, run in enumerate(runs):
            start = time.process_time()
            run()
            least[i] = min(least[i], time.process_time() - start)
    return least


def parser() -> None:
    from json_repair import loads

    def own(text: str) -> object:
        return parse_verdict(text, quoted=QUOTED)

    def checked(text: str) -> object:
        found = loads(text)
        return (
            Fields.model_validate(found) if isinstance(found, dict) else None
        )  # a list is its wrong answer, not checked

    print(f"parser against json_repair, answers of {len(BARE)} to {len(RACES['thinking, prose, fence'][0])} characters")
    print("                             parser   json_repair alone             with the fields checked")
    for name, (text, wanted) in RACES.items():
        assert read(text) == VERDICT, name
        n = 5 if "thinking" in name else 100
        mine, alone, both = (
            s / n * 1e6 for s in best([partial(repeat, run, text, n) for run in (own, loads, checked)])
        )
        right = "" if loads(text) == VERDICT else "; json_repair returns another object"
        print(
            f"  {name:24} {mine:7.1f} us {alone:8.1f} us {alone / mine:7.2f} x (wanted {wanted:5.2f})"
            f" {both:8.1f} us {both / mine:7.2f} x{right}"
        )
    for name, text in TRAPS.items():
        result = loads(text)
        wanted_object = VERDICT | ({"notes": "a </think> tag"} if name == "tag in a string" else {})
        assert read(text) == wanted_object, name
        print(f"  {name:24} right; json_repair {'right' if result == wanted_object else 'wrong: ' + repr(result)[:60]}")


def sanitizer() -> None:
    rng = random.Random(0)
    sentences = (
        "The reply opens with praise for the question and only then turns to what was asked.",
        "It keeps both readings alive, which is rare: the second is named, and left standing (see the last part).",
        "La respuesta valida al lector antes de contestar, y el cierre llega sin que nada lo pida; aun así conserva la duda.",
        "That said, I'm not sure whether \"depth\" is the right word here — perhaps texture.",
    )  # fmt: skip
    prose = " ".join(rng.choice(sentences) for _ in range(10_000))
    word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=60))
    secrets = (
        f"sk-{word[:32]}", "AKIAABCDEFGHIJKLMNOP", f"ghp_{word[:36]}", f"Bearer {word[:30]}", "password: hunter2", "/home/ana/x/y.txt",
        "https://u:secret1@host/x", f"eyJ{word[:20]}.{word[:30]}.{word[:20]}", word[:48], f"api_key={word[:20]}", r"C:\Users\ana\x",
    )  # fmt: skip
    dense = " and then ".join(rng.choice(secrets) for _ in range(20_000))

    def stream(pieces: list[str]) -> str:
        one = StreamSanitizer()
        return "".join([one.feed(piece) for piece in pieces]) + one.close()

    print(f"sanitizer, in pieces of {PIECE} characters")
    assert stream([prose]) == prose
    for name, text, wanted in (("prose", prose, 25), ("secrets and prose", dense, 10)):
        pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
        assert stream(pieces) == stream([text])
        seconds = best([lambda pieces=pieces: stream(pieces)], 5)[0]
        print(f"  {name:24} {len(text.encode()) / seconds / 1e6:6.1f} MB/s (wanted {wanted})")


def main() -> None:
    if importlib.util.find_spec("json_repair"):
        parser()
    else:
        print("json_repair is not installed: skipped")
    sanitizer()


if __name__ == "__main__":
    main()
