"""Laws that every detector keeps, whatever texts and labels it is given; and what sets each of them apart."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima.detectors import (
    EmbeddingHead,
    FewShotCentroids,
    HandLexicon,
    LearntPhrases,
    Majority,
    StackedHead,
    Texts,
    TfidfHead,
    cross_validate,
    label_frame,
    with_context,
)
from anima.errors import InputError


def a_question(text: str) -> float:
    return float(text.count("?") + text.startswith("what"))


ALL = [
    Majority(),
    HandLexicon({"ask": ["opening"], "thank": a_question}),
    LearntPhrases(min_support=2),
    FewShotCentroids(3),
    EmbeddingHead(),
    TfidfHead(),
    StackedHead(),
    StackedHead(context=True),
    TfidfHead(context=True),
]
LABELS = ["ask", "thank", "offer"]
WORDS = st.sampled_from(["what", "do", "you", "need", "thanks", "take", "?", "—", "ñandú", "🙂", "no", "deal", "it's"])
TEXT = st.lists(WORDS, max_size=6).map(" ".join)
ROW = st.tuples(TEXT, st.lists(st.booleans(), min_size=3, max_size=3), st.integers(0, 3))


@pytest.mark.parametrize("detector", ALL, ids=lambda d: d.name)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW, min_size=4, max_size=14), st.booleans())
def test_laws(detector, embedder, rows, exclusive):
    texts = [text for text, _, _ in rows] + ["what do you need now", "many thanks to you", "what do you need now"]
    flags = np.array([flag for _, flag, _ in rows] + [[True, False, False], [False, True, False], [True, False, False]])
    if exclusive:
        flags = np.eye(3, dtype=bool)[flags @ [1, 2, 4] % 3]
    n = len(texts)
    labels = label_frame(pd.DataFrame(flags, columns=LABELS), exclusive=exclusive)
    context = {"previous": ["", *texts[:-1]], "same_speaker": np.arange(n) % 3 == 0, "turn": np.arange(n)}
    known = Texts(texts, groups=[g for _, _, g in rows] + [4, 5, 6], context=context, embedder=embedder)
    fitted = copy.deepcopy(detector).fit(known, labels)
    scores = fitted.scores(known)
    found = fitted.predict(known).to_numpy()
    assert scores.shape == (n, 3)
    assert list(scores.columns) == LABELS
    assert np.isfinite(scores.to_numpy()).all()
    if exclusive:
        assert (found.sum(axis=1) == 1).all()
        assert np.array_equal(found.argmax(axis=1), scores.to_numpy().argmax(axis=1))
    else:
        assert np.array_equal(found, scores.to_numpy() >= 0)
    # The same text has the same margin alone and in a batch, and with features computed anew.
    i = n // 2
    alone = Texts([texts[i]], context={k: np.asarray(v)[[i]] for k, v in context.items()}, embedder=embedder)
    assert np.allclose(fitted.scores(alone), scores.iloc[[i]], atol=1e-9)
    for label in LABELS:
        why = fitted.explain(known.take(np.array([i])), label)
        assert why.score == pytest.approx(scores.loc[i, label], abs=1e-9)
        assert why.parts["contribution"].sum() == pytest.approx(why.score, abs=1e-9)
        assert why.label == label
        assert label in why.summary()
    again = copy.deepcopy(detector).fit(known, labels)
    assert np.array_equal(again.scores(known), scores)


def test_scores_keep_the_index_of_a_series(frame, names):
    texts = frame["text"].set_axis(frame["utterance_id"])
    assert list(Majority().fit(texts, frame[names].set_axis(texts.index)).scores(texts).index) == list(texts.index)


def test_majority_says_the_commonest_label_and_only_it():
    labels = pd.DataFrame({"a": [True, False, True, False], "b": [True, True, True, False], "c": [False] * 4})
    found = Majority().fit(list("wxyz"), labels).predict(["new"])
    assert found.iloc[0].to_dict() == {"a": False, "b": True, "c": False}
    tied = Majority().fit(list("wx"), pd.DataFrame({"a": [True, False], "b": [False, True]}))
    assert tied.predict(["new"]).to_numpy().tolist() == [[True, False]]


def test_hand_lexicon_follows_polarity_and_names_what_it_found():
    labels = label_frame(pd.DataFrame({"closing": [True, False], "asks": [False, True]}), exclusive=False)
    detector = HandLexicon({"closing": "closing", "asks": lambda text: text.count("?")})
    detector.fit(["We have a deal.", "And you?"], labels)
    found = detector.predict(["We have a deal.", "We don't have a deal.", "Really??"])
    assert found.to_numpy().tolist() == [[True, False], [False, False], [False, True]]
    assert detector.explain("Really??", "asks").score == 2
    assert "We have a deal" in detector.explain("We have a deal.", "closing").parts["feature"].tolist()
    with pytest.raises(InputError, match=r"rules\['closing'\] must be one of"):
        HandLexicon({"closing": "cierre total"})
    with pytest.raises(InputError, match=r"'closng'.*labels lack"):
        HandLexicon({"closng": "closing"}).fit(["a", "b"], labels)


def test_learnt_phrases_are_readable_and_found_again(frame, names):
    detector = LearntPhrases().fit(frame["text"], frame[names], groups=frame["dialogue_id"])
    phrases = {p.phrase for p in detector.lexicons["ask"].phrases}
    assert phrases & {"do", "would", "what", "need", "you need", "what do you need"}
    assert all(word not in phrase for phrase in phrases for word in ("thank", "kind", "mine"))
    # The lexicon that is printed decides as the detector does.
    for name in names:
        assert np.array_equal(detector.lexicons[name].predict(frame["text"]), detector.predict(frame["text"])[name])


def test_learnt_phrases_decide_as_the_lexicon_engine(frame, names):
    from anima.lexicon import learn

    detector = LearntPhrases(folds=2, seed=0).fit(frame["text"], frame[names], groups=frame["dialogue_id"])
    alone = learn(frame, "thank", folds=0)
    assert detector.lexicons["thank"].phrases == alone.phrases


def test_centroids_take_k_examples_and_more_help(embedder, single, names):
    texts = Texts(single["text"].tolist(), embedder=embedder)
    right = []
    for k in (1, 32):
        detector = FewShotCentroids(k).fit(texts, single[names])
        assert len(detector.explain(texts.take(np.array([0])), "ask").parts) == k + 1
        right.append((detector.predict(texts).to_numpy() == single[names].to_numpy()).all(axis=1).mean())
    assert right[1] > max(right[0], 0.8)


def test_context_is_used_only_when_asked_for(make, embedder):
    frame = make(n_dialogues=20)
    # The label is what the utterance before was, so that only context can tell it.
    lagged = with_context(frame)
    labels = pd.DataFrame(
        {name: lagged["previous"].str.contains(word) for name, word in (("t", "thank"), ("w", "water"))}
    )
    context = {name: lagged[name] for name in ("previous", "same_speaker", "turn")}
    texts = Texts(lagged["text"].tolist(), groups=lagged["dialogue_id"], context=context, embedder=embedder)
    with_it, without = (
        (EmbeddingHead(context=c).fit(texts, labels).predict(texts).to_numpy() == labels.to_numpy()).mean()
        for c in (True, False)
    )
    assert with_it > without + 0.1
    with pytest.raises(InputError, match="context lacks"):
        TfidfHead(context=True).fit(["one two", "one two"], pd.DataFrame({"x": [True, False]}))


def test_with_context_looks_at_the_whole_dialogue_and_never_ahead():
    every = pd.DataFrame(
        {
            "dialogue_id": ["a", "a", "a", "b"],
            "turn": [0, 1, 2, 0],
            "speaker": ["x", "x", "y", "y"],
            "text": ["1", "2", "3", "4"],
        }
    )
    found = with_context(every.iloc[[3, 2, 1]], every)
    assert found["previous"].tolist() == ["", "2", "1"]
    assert found["same_speaker"].tolist() == [False, False, True]
    assert found.index.tolist() == [3, 2, 1]
    with pytest.raises(InputError, match="lacks the turn of row 1"):
        with_context(every, every.iloc[[0]])
    with pytest.raises(InputError, match="two rows for one turn"):
        with_context(every.iloc[[0, 0]])


def test_label_frames():
    frame = pd.DataFrame({"kind": ["q", "a", "q"], "x": [True, False, True], "y": [False, True, True]})
    one = label_frame("kind", frame)
    assert list(one.columns) == ["a", "q"]
    assert one.attrs["exclusive"] is True
    assert label_frame(["x", "y"], frame).attrs["exclusive"] is False
    assert label_frame(frame[["x", "y"]].iloc[:2]).attrs["exclusive"] is True
    assert label_frame(frame[["x", "y"]].iloc[:2], exclusive=False).attrs["exclusive"] is False
    with pytest.raises(InputError, match="row 2 has not exactly one"):
        label_frame(frame[["x", "y"]], exclusive=True)
    with pytest.raises(InputError, match="column 'z' must hold True and False only"):
        label_frame(pd.DataFrame({"z": [0, 1]}))
    with pytest.raises(InputError, match="no class in row 1"):
        label_frame(pd.Series(["a", None]))
    with pytest.raises(InputError, match="lacks the column 'w'"):
        label_frame("w", frame)


def test_misuse_is_named(frame, names):
    with pytest.raises(InputError, match="call fit"):
        TfidfHead().predict(["a"])
    with pytest.raises(InputError, match="same rows, got 1 and 2"):
        Majority().fit(["a"], pd.DataFrame({"x": [True, False]}))
    fitted = Majority().fit(frame["text"], frame[names])
    with pytest.raises(InputError, match="label must be one of 'ask'"):
        fitted.explain("hello", "aks")
    assert fitted.scores([]).shape == (0, 3)
    with pytest.raises(InputError, match="no words to count"):
        TfidfHead().fit(["🙂", "?"], pd.DataFrame({"x": [True, False]}))
    with pytest.raises(InputError, match="one per text"):
        Texts(["a", "b"], context={"previous": ["x"]})


@pytest.mark.parametrize("make", [TfidfHead, StackedHead, LearntPhrases])
def test_a_training_part_without_repeats_is_learnt_from(make, embedder):
    texts = Texts(["water please", "nothing else"], groups=["a", "b"], embedder=embedder)
    fitted = make().fit(texts, pd.DataFrame({"x": [True, False], "y": [False, True]}))
    assert fitted.predict(texts).shape == (2, 2)
    assert np.isfinite(fitted.scores(texts).to_numpy()).all()


def test_the_hand_lexicon_takes_spanish_aliases():
    labels = pd.DataFrame({"deal": [True, False]})
    alias, name = (HandLexicon({"deal": rule}).fit(["Deal!", "no"], labels) for rule in ("cierre", "closing"))
    for detector in (alias, name):
        assert detector.predict(["We have a deal", "rain"])["deal"].tolist() == [True, False]


def test_empty_choices_are_named(frame):
    with pytest.raises(InputError, match="strength must hold one value"):
        TfidfHead(strength=[])
    with pytest.raises(InputError, match="labels has no column"):
        cross_validate([Majority()], frame, [])
    with pytest.raises(InputError, match=r"detectors must be of anima\.detectors, got 5"):
        cross_validate([5], frame, [])


def test_what_has_an_index_belongs_together_by_it():
    texts = pd.Series(["yes a", "no b", "yes c", "no d"], index=list("wxyz"))
    labels = pd.DataFrame({"yes": [True, False, True, False]}, index=texts.index)
    found = TfidfHead(tune=False).fit(texts, labels.iloc[::-1], groups=pd.Series([2, 2, 1, 1], index=list("zyxw")))
    same = TfidfHead(tune=False).fit(texts, labels, groups=[1, 1, 2, 2])
    assert found.scores(texts).equals(same.scores(texts))
    assert Texts(texts, groups=pd.Series([2, 1, 1, 2], index=list("zxwy"))).groups.tolist() == [0, 0, 1, 1]
    turns = pd.Series([4, 3, 2, 1], index=list("zyxw"))
    assert Texts(texts, context={"turn": turns}).context("turn").tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match=r"labels must have the index of texts: row 0 of labels is not in texts"):
        Majority().fit(texts, labels.reset_index(drop=True))
    with pytest.raises(InputError, match=r"groups must have the index of texts: .*groups\.set_axis\(texts\.index\)"):
        Texts(texts, groups=pd.Series([1, 1, 2, 2]))
