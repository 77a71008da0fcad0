"""Race the robust rule against pysbd and blingfire, where installed: python tests/benchmarks/bench_segment.py.

Speed on 500 replies of about 100 words; accuracy on the written cases of tests/text, ends of sentences compared. The
cases were written for this project and include lists, code and chat, which the peers were not made for: read the peers'
accuracy as a description, their speed as the race. The robust rule was developed on these cases.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path

from anima.text import BoundaryScores, boundary_scores, segment, sentences

ROOT = Path(__file__).parents[1]
N_TEXTS, WORDS, REPEATS = 500, 100, 5
Splitter = Callable[[str, str], list[str]]


def peers() -> dict[str, Splitter]:
    found: dict[str, Splitter] = {}
    if importlib.util.find_spec("pysbd"):
        import pysbd

        splitters = {lang: pysbd.Segmenter(language=lang, clean=False) for lang in ("en", "es", "zh", "ja", "hi", "ar")}
        found["pysbd"] = lambda text, lang: splitters[lang].segment(text)
    if importlib.util.find_spec("blingfire"):
        import blingfire

        found["blingfire"] = lambda text, lang: blingfire.text_to_sentences(text).split("\n")
    return found


def ends(text: str, pieces: list[str]) -> list[tuple[int, int]]:
    """Locate pieces by their letters and digits, since a peer may change white space; give ends after the last one."""
    places = [i for i, char in enumerate(text) if char.isalnum()]
    spans, done = [], 0
    for piece in pieces:
        n = sum(map(str.isalnum, piece))
        if n and done + n <= len(places):
            spans.append((places[done], places[done + n - 1] + 1))
        done += n
    return spans


def replies(cases: list[dict]) -> list[tuple[str, str]]:
    """Return texts of about 100 words made of the written cases, one language each."""
    texts = []
    pools = {
        lang: [case["text"] for case in cases if case["lang"] == lang and "```" not in case["text"]]
        for lang in ("en", "es")
    }
    for i in range(N_TEXTS):
        lang = ("en", "es")[i % 2]
        pool, k, parts, n = pools[lang], i * 7, [], 0
        while n < WORDS:
            parts.append(pool[k % len(pool)])
            n += len(parts[-1].split())
            k += 1
        texts.append((" ".join(parts), lang))
    return texts


def main() -> None:
    cases = [
        json.loads(line) for line in (ROOT / "text" / "segment_cases.jsonl").read_text("utf-8").split("\n") if line
    ]
    texts = replies(cases)
    n_words = sum(len(text.split()) for text, _ in texts)
    runs: dict[str, Splitter] = {
        "anima robust": lambda text, _: [piece.text for piece in segment(text)],
        "anima reference": lambda text, _: [piece.text for piece in segment(text, "reference")],
        **peers(),
    }
    best = dict.fromkeys(runs, float("inf"))
    for repeat in range(REPEATS):  # turn by turn, so that all meet the same noise
        for name, run in runs.items():
            if name == "pysbd" and repeat > 0:
                continue  # it is slow enough for one round to tell
            start = time.process_time()
            for text, lang in texts:
                run(text, lang)
            best[name] = min(best[name], time.process_time() - start)
    print(f"{N_TEXTS} texts, {n_words / N_TEXTS:.0f} words on average, one thread, best of {REPEATS}")
    for name, seconds in best.items():
        ratio = seconds / best["anima robust"]
        print(f"  {name:16} {seconds * 1000:8.1f} ms  {seconds / n_words * 1e5:7.3f} ms per 100 words  {ratio:7.2f} x")

    runs["anima robust"] = lambda text, _: [piece.text for piece in sentences(text)]
    print(f"sentence ends of {len(cases)} written cases")
    for name, run in runs.items():
        total, whole = BoundaryScores(0, 0, 0), 0
        for case in cases:
            gold = ends(case["text"], case["sentences"])
            found = ends(case["text"], run(case["text"], case["lang"]))
            scores = boundary_scores(gold, found)
            total += scores
            whole += scores.n_matched == scores.n_gold == scores.n_found
        print(
            f"  {name:16} P {total.precision:.3f}  R {total.recall:.3f}  F1 {total.f1:.3f}  cases right {whole / len(cases):.3f}"
        )
        if name == "anima robust":
            assert whole == len(cases), "the robust rule fails a written case: run tests/text"
    for name in {"pysbd", "blingfire"} - set(runs):
        print(f"  {name} is not installed: skipped")


if __name__ == "__main__":
    main()
