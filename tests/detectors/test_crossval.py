"""Nothing leaks, numbers are scikit-learn's, intervals cover, differences are paired."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from anima.detectors import (
    CrossValidation,
    Detector,
    EmbeddingHead,
    LearntPhrases,
    Majority,
    TfidfHead,
    cross_validate,
    learning_curve,
)
from anima.errors import InputError
from anima.stats import bootstrap_sums, confusion_terms


class Spy(Detector):
    """Records which dialogues it was fitted on and asked about."""

    name = "spy"
    seen: list = []  # noqa: RUF012

    def _fit(self, texts, truth):
        self.known = set(texts.groups)

    def _scores(self, texts):
        Spy.seen.append((self.known, set(texts.groups), len(texts)))
        return np.zeros((len(texts), len(self.labels)))

    def _parts(self, text, place):
        return []


@pytest.fixture(scope="module")
def cv(frame, names, embedder):
    return cross_validate([Majority(), TfidfHead(), EmbeddingHead()], frame, names, embedder=embedder, n_resamples=400)


def test_no_dialogue_is_in_both_parts_and_every_text_is_held_out_once(frame, names):
    Spy.seen.clear()
    cross_validate([Spy()], frame, names, n_resamples=10)
    assert all(not known & asked for known, asked, _ in Spy.seen)
    assert sum(n for _, _, n in Spy.seen) == len(frame)


def test_what_only_names_the_dialogue_tells_nothing():
    rng = np.random.default_rng(0)
    # Every text of a dialogue has its own word and its own label: folds by row would reach kappa 1.
    d = np.repeat(np.arange(60), 6)
    texts = [f"topic{i} said word{rng.integers(9)}" for i in d]
    frame = pd.DataFrame({"dialogue_id": d, "text": texts, "x": (rng.random(60) < 0.5)[d]})
    result = cross_validate([TfidfHead(), LearntPhrases()], frame, ["x"], n_resamples=200)
    for name in result.detectors:
        kappa = result.per_class(name)[f"kappa of x, {name}"]
        assert kappa.low < 0.1
        assert abs(kappa.value) < 0.3


def test_shuffled_labels_give_chance(make, names):
    frame = make(n_dialogues=50, seed=2)
    shuffled = frame[names].sample(frac=1, random_state=0).reset_index(drop=True)
    result = cross_validate([TfidfHead(), LearntPhrases()], frame, shuffled, n_resamples=200)
    for estimate in result.macro().estimates[1::2]:
        assert estimate.low < 0.05
        assert estimate.value < 0.1
    honest = cross_validate([TfidfHead()], frame, names, n_resamples=200)
    assert honest.macro().estimates[1].low > 0.8


def test_numbers_are_scikit_learns(cv, names):
    for name in cv.detectors:
        board = cv.per_class(name)
        p, r, f, _ = precision_recall_fscore_support(cv.truth, cv.predicted[name], zero_division=np.nan)
        for j, label in enumerate(names):
            kappa = cohen_kappa_score(cv.truth[:, j], cv.predicted[name][:, j])
            expected = {"precision": p[j], "recall": r[j], "F1": f[j], "kappa": kappa}
            for statistic, value in expected.items():
                estimate = board[f"{statistic} of {label}, {name}"]
                assert estimate.value == pytest.approx(value, nan_ok=True)
                assert estimate.defined == (not math.isnan(value))
        macro = cv.macro()
        assert macro[f"macro-F1, {name}"].value == pytest.approx(np.mean(f))


def test_intervals_are_those_of_bootstrap_sums(cv, names):
    name, j = "TF-IDF", 1
    terms = confusion_terms(cv.truth[:, j].astype(int), cv.predicted[name][:, j].astype(int), 2)
    for statistic, weights in (("precision", [0, 1, 0, 1]), ("F1", [0, 0.5, 0.5, 1])):
        expected = bootstrap_sums(
            lambda s, w=weights: s[:, 3] / (s @ np.array(w)),
            terms,
            clusters=cv.rows["group"],
            n_resamples=400,
            rng=cv.seed,
        )
        found = cv.per_class()[f"{statistic} of {names[j]}, {name}"]
        assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
        assert found.n_clusters == expected.n_clusters == 30
        assert found.method == expected.method


def test_never_predicted_is_undefined_with_a_reason(cv):
    rare = [e for e in cv.per_class("majority").estimates if e.extra["predicted"] == 0]
    kinds = {e.extra["statistic"]: e for e in rare}
    assert not kinds["precision"].defined
    assert kinds["precision"].reason == "the label is never predicted"
    assert kinds["recall"].value == kinds["f1"].value == kinds["kappa"].value == 0
    assert cv.macro()["macro-F1, majority"].defined


def test_differences_are_paired(cv):
    found = cv.difference("TF-IDF", "majority")
    a, b = cv.macro()["macro-F1, TF-IDF"], cv.macro()["macro-F1, majority"]
    assert found.value == pytest.approx(a.value - b.value)
    assert found.low > 0
    itself = cv.difference("TF-IDF", "TF-IDF", "kappa", "ask")
    assert itself.value == itself.low == itself.high == 0


def test_errors_by_id_without_text(cv, frame, names):
    errors = cv.errors("majority", names[0])
    wrong = cv.predicted["majority"][:, 0] != cv.truth[:, 0]
    assert set(errors["id"]) == set(frame["utterance_id"][wrong])
    assert list(errors.columns) == ["id", "group", "fold", "error", "margin"]
    assert errors["margin"].abs().is_monotonic_decreasing
    misses = errors[errors["error"] == "miss"]["id"]
    assert frame.set_index("utterance_id").loc[misses, names[0]].all()


def test_results_show_themselves_and_repeat(cv, frame, names, embedder):
    again = cross_validate([Majority(), TfidfHead(), EmbeddingHead()], frame, names, embedder=embedder, n_resamples=400)
    assert again.to_dict() == cv.to_dict()
    report = json.loads(json.dumps(cv.to_dict(), allow_nan=False))
    assert report["n_groups"] == 30
    assert len(cv.to_frame()) == 9
    assert "best, macro-F1" in cv.summary()
    assert "majority" in cv._repr_html_()
    assert {"detector", "label", "statistic"} <= set(cv.per_class().to_frame())
    assert "highest" in cv.macro().summary()
    with pytest.raises(InputError, match="has no 'kappa of x'"):
        cv.macro()["kappa of x"]


def test_exclusive_tasks_choose_one(single, names):
    result = cross_validate([TfidfHead()], single, names, n_resamples=50)
    assert result.exclusive
    assert (result.predicted["TF-IDF"].sum(axis=1) == 1).all()
    as_classes = single.assign(kind=np.array(names)[single[names].to_numpy().argmax(axis=1)])
    other = cross_validate([TfidfHead()], as_classes, "kind", n_resamples=50)
    assert other.labels == tuple(sorted(names))
    assert other.macro().estimates[0].value == pytest.approx(result.macro().estimates[0].value, abs=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"detectors": [Majority(), Majority()]}, "different names"),
        ({"detectors": []}, "detectors must be some"),
        ({"groups": "dialog"}, "lacks the column 'dialog'"),
        ({"labels": ["ask", "nope"]}, "lacks the column 'nope'"),
        ({"labels": pd.DataFrame({"x": [True]})}, "rows of frame"),
        ({"folds": 99}, "fewer than folds"),
        ({"level": 95}, "level must lie in"),
    ],
)
def test_misuse_is_named(frame, names, change, message):
    options = {"detectors": [Majority()], "frame": frame, "labels": names} | change
    with pytest.raises(InputError, match=message):
        cross_validate(**options)


def test_interval_of_macro_f1_covers(names):
    rng = np.random.default_rng(5)

    def draw(dialogues):
        # Dialogues differ in how common labels are and in how often the detector errs: rows of one are alike.
        d = np.repeat(np.arange(dialogues), 8)
        rate, slip = rng.beta(2, 3, (dialogues, 3)), rng.beta(1, 5, (dialogues, 1))
        truth = rng.random((len(d), 3)) < rate[d]
        return d, truth, truth ^ (rng.random(truth.shape) < slip[d])

    def board(d, truth, found, n_resamples):
        rows = pd.DataFrame({"id": np.arange(len(d)), "group": d, "fold": 0})
        scores = {"x": np.zeros(truth.shape)}
        return (
            CrossValidation(tuple(names), False, rows, truth, {"x": found}, scores, 0, n_resamples, 0.95)
            .macro()
            .estimates
        )

    target = [e.value for e in board(*draw(40_000), 1)]
    hits = np.array(
        [[e.low <= t <= e.high for e, t in zip(board(*draw(60), 300), target, strict=True)] for _ in range(300)]
    )
    # Binomial error of 300 runs is .013; percentile intervals of 60 units run a little narrow.
    assert (np.abs(hits.mean(axis=0) - 0.94) < 0.045).all(), hits.mean(axis=0)


def test_learning_curve_rises_to_the_full_score(make, names):
    frame = make(n_dialogues=40, seed=4)
    curve = learning_curve([TfidfHead(), Majority()], frame, names, n_resamples=100)
    rows = curve.points[curve.points["detector"] == "TF-IDF"]
    assert rows["dialogues"].tolist() == [4, 8, 16, 32]
    assert rows["f1"].iloc[-1] > rows["f1"].iloc[0]
    full = cross_validate([TfidfHead()], frame, names, n_resamples=100).macro().estimates[0]
    assert rows["f1"].iloc[-1] == full.value
    assert rows["texts"].iloc[0] == 32
    assert "TF-IDF" in curve.summary()
    assert curve.plot(title="t").to_dict()["title"] == "t"
    json.dumps(curve.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="more than the 32 groups"):
        learning_curve([Majority()], frame, names, sizes=[33])


def test_labels_belong_to_texts_by_their_index():
    frame = pd.DataFrame(
        {"dialogue_id": np.arange(60) // 3, "text": [("good", "bad")[i % 2] + " thing" for i in range(60)]}
    )
    labels = pd.Series([("p", "n")[i % 2] for i in range(60)])
    mixed = labels.sample(frac=1, random_state=3)
    for given in (labels, mixed, pd.get_dummies(mixed, dtype=bool), labels.tolist()):
        if isinstance(given, list):
            with pytest.raises(InputError, match="frame lacks the columns"):
                cross_validate([TfidfHead()], frame, given)
        else:
            found = cross_validate([TfidfHead()], frame, given, n_resamples=20)
            assert found.macro()["macro-F1, TF-IDF"].value == 1
    curve = learning_curve([TfidfHead()], frame, mixed, sizes=[8], n_resamples=20)
    assert curve.points["f1"].tolist() == [1]
    with pytest.raises(InputError, match=r"row 100 of labels is not in frame; .*labels\.set_axis\(frame\.index\)"):
        cross_validate([TfidfHead()], frame, labels.set_axis(range(100, 160)))
    twice = labels.set_axis([0, *range(59)])
    with pytest.raises(InputError, match="rows of one name cannot be told apart"):
        cross_validate([TfidfHead()], frame, twice)
    with pytest.raises(InputError, match=r"detectors must be a list, got .*: write \[detector\]"):
        cross_validate(TfidfHead(), frame, labels)
    with pytest.raises(InputError, match="labels must be a table, a Series or names of columns, got 5"):
        cross_validate([TfidfHead()], frame, 5)
    with pytest.raises(InputError, match="exclusive must be True or False, got str 'no'"):
        cross_validate([TfidfHead()], frame, labels, exclusive="no")
