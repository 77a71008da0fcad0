"""Race the cross-validation against scikit-learn's own pipeline: python tests/benchmarks/bench_detectors.py.

The peer: ``cross_val_predict`` of ``OneVsRestClassifier(LogisticRegression)`` over two ``TfidfVectorizer``, the same
folds and the same solver. Margins must be equal. Ours counts n-grams once for all folds and all detectors, and solves
the sparse problem in the dual; the peer is raced with that solver (``same solver``) and as one would write it without
measuring (``default solver``, margins within its tolerance). CPU seconds of one process, best of three.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union

from anima.detectors import TfidfHead, cross_validate
from anima.stats import grouped_folds

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 3


def data() -> tuple[str, pd.DataFrame, list[str]]:
    """Return CaSiNo where it is installed, else written texts of its size."""
    if Path(os.environ.get("ANIMA_CORPORA", "")).joinpath("casino").is_dir():
        from anima.corpora import load_corpus

        corpus = load_corpus("casino", sample=False)
        return "CaSiNo", corpus.labelled("strategy"), list(corpus.label_names("strategy"))
    rng = np.random.default_rng(0)
    words = np.array([f"{a}{b}{c}" for a in "bdfglmnprst" for b in "aeiou" for c in ("n", "ra", "to", "mis", "ke", "")])
    weights = 1 / np.arange(1, len(words) + 1)
    texts = [" ".join(rng.choice(words, rng.integers(4, 25), p=weights / weights.sum())) for _ in range(4600)]
    frame = pd.DataFrame({"dialogue_id": np.arange(4600) // 12, "text": texts})
    names = [f"label{j}" for j in range(10)]
    for name, word in zip(names, words[5:], strict=False):
        frame[name] = frame["text"].str.contains(rf"\b{word}\b") ^ (rng.random(4600) < 0.05)
    return "written texts", frame, names


def best(run: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return min(times), result


def main() -> None:
    name, frame, labels = data()
    folds = PredefinedSplit(grouped_folds(frame["dialogue_id"].to_numpy()))

    def peer(**solver: Any) -> Any:
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=3)
        model = make_pipeline(make_union(words, characters), OneVsRestClassifier(LogisticRegression(**solver)))
        return cross_val_predict(model, frame["text"], frame[labels].astype(int), cv=folds, method="decision_function")

    def ours(**options: Any) -> Any:
        return cross_validate([TfidfHead(**options)], frame, labels)

    mine, result = best(lambda: ours(strength=1.0, tune=False).scores["TF-IDF"])
    same, expected = best(lambda: peer(solver="liblinear", dual=True, tol=0.1, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, loose = best(lambda: peer(max_iter=200))
    print(f"{name}: {len(frame):,} texts, {len(labels)} labels, 5 folds by dialogue, TF-IDF + logistic regression")
    print(f"  ours, margins and decisions            {mine:6.2f} s")
    print(
        f"  scikit-learn, same solver              {same:6.2f} s  ({same / mine:.1f}x)  largest difference {np.abs(result - expected).max():.1e}"
    )
    print(
        f"  scikit-learn, default solver           {plain:6.2f} s  ({plain / mine:.1f}x)  same decisions {((result >= 0) == (loose >= 0)).mean():.4f}"
    )
    tuned, board = best(lambda: ours().macro().estimates[0])
    print(f"  ours, with thresholds and strength from inner folds, and intervals {tuned:.2f} s: {board.summary()}")


if __name__ == "__main__":
    main()
