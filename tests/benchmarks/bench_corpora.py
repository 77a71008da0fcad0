"""Time the loading of each corpus: python tests/benchmarks/bench_corpora.py (ANIMA_CORPORA names their folder).

The target is 0.3 s a corpus without any cache, reading, checks and hashes included. The peer is the shortest way with
pandas: read_csv of the 500 DeliData files and concat, which checks nothing, keeps the quotes of the texts and turns the
word "None" into a missing value unless told not to. CPU seconds of one process, the best of several runs; absent
corpora are loaded as samples and say so.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import pandas as pd

from anima.corpora import load_corpus, registry
from anima.corpora.delidata import group_files
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS, TARGET = 5, 0.3


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    warnings.simplefilter("ignore")
    for name in registry():
        corpus = load_corpus(name)
        seconds = best(lambda name=name: load_corpus(name))
        mark = "SAMPLE " if corpus.sample else ""
        print(f"{mark}{name}: {seconds:.3f} s for {len(corpus.utterances):,} utterances (target {TARGET} s)")
    item = registry()["delidata"]
    files = group_files(item.folder if item.present else data_path(item.sample))

    def peer() -> pd.DataFrame:
        frames = [pd.read_csv(path, sep="\t", quotechar="'", keep_default_na=False, dtype=str) for path in files]
        return pd.concat(frames, ignore_index=True)

    rows, ours = peer(), load_corpus("delidata").utterances
    assert rows["original_text"].tolist() == ours["text"].tolist()
    assert rows["team_performance"].astype(float).tolist() == ours["team_performance"].tolist()
    theirs, own = best(peer), best(lambda: load_corpus("delidata"))
    print(f"delidata by pandas alone: {theirs:.3f} s, {theirs / own:.1f} times ours; same texts and values")


if __name__ == "__main__":
    main()
