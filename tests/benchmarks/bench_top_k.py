"""Race anima.vectors.top_k against scikit-learn's brute force: python tests/benchmarks/bench_top_k.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from anima.vectors import cosine, top_k

if TYPE_CHECKING:
    from collections.abc import Callable

N_ITEMS, N_QUERIES, DIM, K, REPEATS = 20_000, 256, 512, 10, 7


def main() -> None:
    rng = np.random.default_rng(0)
    items = rng.normal(size=(N_ITEMS, DIM)).astype(np.float32)
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    queries = items[rng.choice(N_ITEMS, N_QUERIES)] + rng.normal(scale=0.03, size=(N_QUERIES, DIM)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)

    peer = NearestNeighbors(n_neighbors=K, algorithm="brute", metric="cosine").fit(items)
    runs: dict[str, Callable[[], Any]] = {
        "anima": lambda: top_k(queries, items, K),
        "scikit-learn": lambda: peer.kneighbors(queries),
    }
    best = dict.fromkeys(runs, float("inf"))
    results: dict[str, Any] = {}
    with threadpool_limits(1):
        for _ in range(REPEATS):  # turn by turn, so that both meet the same noise
            for name, run in runs.items():
                start = time.process_time()
                results[name] = run()
                best[name] = min(best[name], time.process_time() - start)
        exact = -np.sort(-cosine(queries, items), axis=1)[:, :K]
    indices, scores = results["anima"]
    distances, peer_indices = results["scikit-learn"]
    assert np.array_equal(scores, exact), "top_k differs from the full sort"
    assert np.abs(scores - (1 - distances)).max() < 1e-5
    print(f"top {K} of {N_ITEMS:,} x {DIM} for {N_QUERIES} queries, one thread, CPU time, best of {REPEATS}")
    for name, seconds in best.items():
        print(f"  {name:13} {seconds * 1000:7.1f} ms")
    print(f"  ratio anima / scikit-learn: {best['anima'] / best['scikit-learn']:.2f}")
    same = np.mean(indices == peer_indices)
    print(f"  scores equal the full float64 sort bit for bit; the peer names the same item at {same:.2%} of ranks")


if __name__ == "__main__":
    main()
