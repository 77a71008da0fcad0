"""Race the scanner of the lexicon against one compiled alternation of the same forms: python tests/benchmarks/bench_lexicon.py.

Texts are CaSiNo's messages where ANIMA_CORPORA names them (the target is 2 s on one core for all 11,919), else written
ones. The peer is what a lexicon usually is: for each language one regular expression of all plain forms, longest first,
between Unicode word edges. Forms with conditions (sentence edges, capitals, gaps) are left out on both sides, and the
places found are compared. Times are CPU seconds of one process.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

from anima.lexicon import load_lexicon, scan_many
from anima.lexicon.categories import Trigger, expand
from anima.lexicon.scan import Scanner, words_of
from anima.text import normalize

TARGET = 2.0
WRITTEN = [
    "I will send you two of them if that works for you.",
    "What do you need most?",
    "No, we don't have a deal yet.",
    "Te doy dos, ¿te parece bien?",
]


def messages() -> list[str]:
    folder = os.environ.get("ANIMA_CORPORA")
    if not folder:
        return [WRITTEN[i % len(WRITTEN)] for i in range(12_000)]
    parts = (
        json.loads((Path(folder) / "casino" / f"casino_{part}.json").read_text(encoding="utf-8"))
        for part in ("train", "valid", "test")
    )
    buttons = {"Submit-Deal", "Accept-Deal", "Reject-Deal", "Walk-Away"}
    return [
        turn["text"]
        for part in parts
        for dialogue in part
        for turn in dialogue["chat_logs"]
        if turn["text"] not in buttons
    ]


def main() -> None:
    texts = messages()
    start = time.process_time()
    scan_many(["deal"])
    print(f"compiling the lexicon, once: {time.process_time() - start:.2f} s")
    start = time.process_time()
    hits = sum(map(len, scan_many(texts)))
    seconds = time.process_time() - start
    print(
        f"{len(texts):,} messages, polarity included: {seconds:.2f} s, {hits:,} hits ({'within' if seconds < TARGET else 'OVER'} {TARGET} s)"
    )

    triggers = [trigger for trigger in load_lexicon().triggers if trigger.lang == "en"]
    plain = {form for trigger in triggers for form in expand(trigger.pattern) if re.fullmatch(r"[a-z' ]+", form)}
    scanner = Scanner(Trigger(form, "x", "", "", "") for form in sorted(plain))
    pattern = re.compile(
        r"(?<!\w)(?:" + "|".join(re.escape(form) for form in sorted(plain, key=len, reverse=True)) + r")(?![\w'])"
    )
    # Blanks and letters only, so that both sides read the same words.
    sample = [" ".join(re.findall(r"[a-z']+", normalize(text).text.lower())) for text in texts[:600]]
    start = time.process_time()
    mine = []
    for text in sample:
        words = words_of(text)
        mine.append({(words.starts[a], words.ends[b]) for a, b, _ in scanner.spans(words)})
    ours = time.process_time() - start
    start = time.process_time()
    theirs = [{match.span() for match in pattern.finditer(text)} for text in sample]
    peer = time.process_time() - start
    same = sum(a == b for a, b in zip(mine, theirs, strict=True))
    print(
        f"{len(plain):,} plain forms, {len(sample)} messages: tree {ours:.3f} s, one alternation {peer:.2f} s, {peer / ours:.0f} times as long"
    )
    print(f"same places in {same} of {len(sample)} messages (overlaps: longest against leftmost)")


if __name__ == "__main__":
    main()
