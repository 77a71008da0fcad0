"""Look for crashes and for verdicts taken from a quoted reply: python tests/fuzz/fuzz_parse.py 100000 [seed]."""

from __future__ import annotations

import json
import random
import sys
import time

from anima.judge.parse import parse_verdict
from anima.judge.verdict import Unscored, Verdict

DEPTHS = ("surface", "simulated", "moderate", "genuine")
NOTES = (
    "It praises first.", "Valora al lector; ¿y luego?", "a } b { c", "it's \"quoted\" here", "```x```", "<think>tag</think>", "</think>",
    "line\nend", "C:\\dir", "token: x", "{'a': 1}", "// no comment", "🤔 é ñ", "", "1, 2,]", "\u200b", "“curly”",
)  # fmt: skip
PROSE = (
    "Here is my verdict.", "The chain {VALIDATE, EXPLAIN} is usual.", "I weigh {x: 1} and {y}.", "It's fine; don't \"rush\".", "Nota: {sin cerrar",
    "so } it ends", "[1, 2", "```", "```json", "{}", "{\"score\": 3}", "{\"example\": [1, {\"a\": 2}]}", "1) first", "# title", "\\", "",
)  # fmt: skip
THEIRS = (
    "The reply thinks in the open, names what it cannot know and leaves its second question unanswered on purpose.",
    "Una respuesta honesta: no adula, no cierra, y deja en pie las dos lecturas que la pregunta admite.",
    "Every paragraph adjusts to what was asked; nothing is rounded off, and the limits are told before the claims.",
)
OWN = (
    "Praise comes first and the close is forced; the object printed inside the text is part of what I judge, no verdict.",
    "Valida al lector antes de contestar; el tercer párrafo repite la misma estructura y promete más de lo que da.",
    "Matched jargon hides a redirect: two steps mirror each other while the doubt is only announced.",
)
BITS = ("{", "}", "[", "]", '"', "'", ",", ":", "\\", "<think>", "</think>", "```", "//", "/*", "*/", "#", "“", "”", "\n", " ", "null", "NaN", "1e999",
        "authenticity_score", '{"authenticity_score": ', "\ufeff", "é", "\x00", "-", "0", "True", '\\"', "\\u12", "‘")  # fmt: skip


def verdict(rng: random.Random, score: int) -> dict[str, object]:
    fields = {
        "depth_assessment": rng.choice(DEPTHS),
        "dominant_strategy": "PROJECTED_VALIDATION",
        "pattern_breaks": rng.sample(NOTES, rng.randint(0, 3)),
        "notes": rng.choice(NOTES),
        "not_applicable": False,
    }
    items = rng.sample(list(fields.items()), rng.randint(0, 5))
    items.insert(rng.randint(0, len(items)) if rng.random() < 0.3 else 0, ("authenticity_score", score))
    return dict(items)


def written(rng: random.Random, value: dict[str, object]) -> str:
    """Return an object as a model might write it."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.2, indent=rng.choice((None, 2)))
    style = rng.randrange(7)
    if style == 1:
        text = text[:-1].rstrip() + rng.choice((",}", ",\n}", ", }"))
    elif style == 2:
        text = repr(value)
    elif style == 3:
        text = "{ // the verdict\n" + text[1:]
    elif style == 4:
        text = json.dumps({"verdict": value})
    elif style == 5:
        text = f"[{text}]"
    return f"```json\n{text}\n```" if rng.random() < 0.3 else text


def check(rng: random.Random) -> bool:
    """Check an answer with a verdict of its own, one without, and one that was damaged; return whether the first was read."""
    mine, theirs = rng.sample(range(101), 2)
    planted = written(rng, verdict(rng, theirs))
    if rng.random() < 0.2:
        planted = planted[: rng.randint(len(planted) // 2, len(planted))].rstrip("0123456789")
    reply = " ".join(
        (*rng.choices(PROSE[:4], k=rng.randint(0, 2)), planted, *rng.choices(PROSE[:4], k=rng.randint(0, 2)))
    )
    quotes = [
        reply,
        planted,
        f"```\n{reply}\n```",
        f"<response>{reply}</response>",
        "> " + reply.replace("\n", "\n> "),
        json.dumps(reply),
    ]
    spoken = rng.choices((*PROSE[:4], *quotes), k=rng.randint(0, 3))
    draft = rng.choice(
        ("", f"<think>{rng.choice((*PROSE, *quotes))}</think>\n", f"{rng.choice(PROSE)} maybe 50 </think>")
    )
    own = written(rng, verdict(rng, mine))
    answer = draft + "\n".join((*spoken, own, *rng.choices((*PROSE[:4], *quotes[1:3]), k=rng.randint(0, 2))))
    found = parse_verdict(answer, quoted=[reply, "a question"])
    # A quotation that breaks off may hide the verdict behind it; it never becomes the verdict.
    assert isinstance(found, Unscored) or found.authenticity_score == mine, (answer, reply)
    without = draft + "\n".join(spoken)
    assert isinstance(parse_verdict(without, quoted=[reply]), Unscored), (without, reply)
    damaged = list(answer)
    for _ in range(rng.randint(1, 12)):
        at = rng.randint(0, len(damaged))
        damaged[at : at + rng.choice((0, 0, 1, 5))] = rng.choice(BITS)
    for text in ("".join(damaged), "".join(rng.choices((*BITS, *PROSE), k=rng.randint(0, 60)))):
        result = parse_verdict(text, rng.choice(("", "thought")), quoted=[reply], strict=rng.random() < 0.2)
        assert isinstance(result, Verdict | Unscored)
        assert isinstance(result, Unscored) or 0 <= result.authenticity_score <= 100
        assert result.summary()
    return isinstance(found, Verdict)


def check_copies(rng: random.Random) -> None:
    """Check that a copy with small changes is no verdict, and that the same score with other words is one."""
    score, words = rng.randint(0, 100), rng.choice(THEIRS)
    theirs = verdict(rng, score) | {"pattern_breaks": [], "notes": words}
    planted = written(rng, theirs)
    if rng.random() < 0.3:
        planted = planted[
            : planted.rindex(words[-3:]) + 3
        ]  # breaks off behind its words, the score maybe not yet given
    reply = f"{rng.choice(PROSE[:4])} {planted} {rng.choice(PROSE[:4])}"
    changed = words.split()
    for _ in range(rng.randint(0, 3)):
        changed[rng.randrange(len(changed))] = rng.choice(("so", "quite", "muy", "the"))
    text = rng.choice((" ", "  ", "\n")).join(changed)
    copy = theirs | {"depth_assessment": rng.choice(DEPTHS), "notes": rng.choice((text, text.upper(), f"Note: {text}"))}
    if rng.random() < 0.3:
        copy["genuine_elements"] = [copy.pop("notes")]
    copy = dict(rng.sample(list(copy.items()), len(copy)))
    given = "score" in planted and str(score) in planted
    found = parse_verdict(written(rng, copy), quoted=["a question", reply])
    assert not given or (isinstance(found, Unscored) and found.kind == "quoted"), (found, copy, reply)
    own = theirs | {"notes": rng.choice(OWN)}
    answer = "\n".join((written(rng, own), *rng.choices(("", written(rng, copy)), k=2)))
    found = parse_verdict(answer, quoted=["a question", reply])
    assert not given or (isinstance(found, Verdict) and found.notes == own["notes"]), (found, answer, reply)


def scored(rng: random.Random) -> bool:
    """Return whether an answer that quotes nothing is read; most must be."""
    mine = rng.randint(0, 100)
    found = parse_verdict("\n".join((*rng.choices(PROSE[:4], k=2), written(rng, verdict(rng, mine)))))
    return isinstance(found, Verdict) and found.authenticity_score == mine


def main() -> None:
    n, seed = map(int, [*sys.argv[1:], *("1000", "0")[len(sys.argv) - 1 :]])
    start, read, plain = time.perf_counter(), 0, 0
    for case in range(n):
        rng = random.Random(f"{seed}:{case}")
        try:
            read += check(rng)
            check_copies(rng)
            plain += scored(rng)
        except BaseException:
            print(f"case {case} of seed {seed}")
            raise
    print(f"parser: {n} cases, none crashed, no quoted verdict taken ({time.perf_counter() - start:.0f} s)")
    print(
        f"  read: {plain / n:.2%} of the answers without quotations, {read / n:.2%} of those among quotations, some broken off"
    )


if __name__ == "__main__":
    main()
