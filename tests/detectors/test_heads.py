"""The heads against scikit-learn's own pipelines, and thresholds against trying them all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union

from anima.detectors import EmbeddingHead, StackedHead, Texts, TfidfHead, cross_validate
from anima.detectors.base import decide
from anima.detectors.thresholds import macro_f1, thresholds_of
from anima.stats import grouped_folds


def test_tfidf_head_equals_scikit_learns_pipeline_on_the_same_folds(frame, names):
    cv = cross_validate([TfidfHead(strength=1.0, tune=False)], frame, names, n_resamples=50)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=3)
    model = LogisticRegression(solver="liblinear", dual=True, tol=0.1, random_state=0)
    pipeline = make_pipeline(make_union(words, characters), OneVsRestClassifier(model))
    folds = PredefinedSplit(grouped_folds(frame["dialogue_id"].to_numpy()))
    expected = cross_val_predict(
        pipeline, frame["text"], frame[names].astype(int), cv=folds, method="decision_function"
    )
    assert np.allclose(cv.scores["TF-IDF"], expected, atol=1e-9)
    assert np.array_equal(cv.predicted["TF-IDF"], expected >= 0)


def test_embedding_head_equals_scikit_learns_regression(frame, names, embedder):
    head = EmbeddingHead(strength=2.0, tune=False)
    known = Texts(frame["text"].tolist(), embedder=embedder)
    scores = head.fit(known, frame[names]).scores(known)
    for name in names:
        model = LogisticRegression(C=2.0, max_iter=500).fit(known.vectors(), frame[name])
        assert np.allclose(scores[name], model.decision_function(known.vectors()), atol=1e-6)


def test_new_texts_get_the_scores_that_shared_features_give(frame, names, embedder):
    known = Texts(frame["text"].tolist(), groups=frame["dialogue_id"].to_numpy(), embedder=embedder)
    head = StackedHead().fit(known.take(np.arange(150)), frame[names].iloc[:150])
    shared = head.scores(known.take(np.arange(150, 240)))
    anew = head.scores(Texts(frame["text"].iloc[150:240].tolist(), embedder=embedder))
    assert np.allclose(shared, anew, atol=1e-12)


def test_tuning_helps_a_rare_label(make):
    frame = make(n_dialogues=40, seed=3)
    rng = np.random.default_rng(0)
    labels = pd.DataFrame({"rare": frame["text"].str.contains("kind") & (rng.random(len(frame)) < 0.7)})
    f1 = [
        cross_validate([TfidfHead(tune=t)], frame, labels, n_resamples=50).macro().estimates[0].value
        for t in (True, False)
    ]
    assert f1[0] > f1[1]


def test_strength_is_chosen_among_those_given(frame, names):
    head = TfidfHead(strength=(1e-4, 1.0)).fit(frame["text"], frame[names], groups=frame["dialogue_id"])
    assert head.chosen_strength == 1.0
    assert "intercept less threshold" in set(head.explain("what do you need", "ask").parts["feature"])


SCORES = st.lists(st.tuples(*[st.integers(-3, 3)] * 3, st.integers(0, 7)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_thresholds_are_the_best_of_all(rows):
    scores = np.array([row[:3] for row in rows], dtype=float)
    truth = (np.array([row[3] for row in rows])[:, None] >> np.arange(3)) % 2 == 1
    cuts = thresholds_of(scores, truth, exclusive=False)
    for j in range(3):
        if not truth[:, j].any():
            assert cuts[j] == 0
            continue
        best = max(f1_score(truth[:, j], scores[:, j] >= cut, zero_division=0) for cut in np.arange(-3.5, 4))
        assert f1_score(truth[:, j], scores[:, j] >= cuts[j]) == pytest.approx(best)
    single = np.eye(3, dtype=bool)[truth @ [1, 2, 4] % 3]
    handicap = thresholds_of(scores, single, exclusive=True)
    assert macro_f1(scores - handicap, single, True) >= macro_f1(scores, single, True) - 1e-12


@given(SCORES)
def test_macro_f1_is_scikit_learns(rows):
    scores = np.array([row[:3] for row in rows], dtype=float)
    single = np.eye(3, dtype=bool)[[row[3] % 3 for row in rows]]
    present = np.flatnonzero(single.any(axis=0))
    expected = f1_score(
        single.argmax(axis=1), decide(scores, True).argmax(axis=1), labels=present, average="macro", zero_division=0
    )
    assert macro_f1(scores, single, True) == pytest.approx(expected)
