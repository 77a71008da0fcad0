"""Scores of sentence ends, and what the two rules reach on sentences cut by people."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import InputError
from anima.settings import data_path
from anima.text import BoundaryScores, boundary_scores, segment

SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair))))


def test_by_hand():
    scores = boundary_scores([(0, 5), (6, 10), (11, 20)], [(0, 10), (11, 15), (15, 20), (20, 20)])
    assert (scores.n_gold, scores.n_found, scores.n_matched) == (3, 3, 2)
    assert scores.precision == pytest.approx(2 / 3)
    assert scores.recall == pytest.approx(2 / 3)
    assert scores.f1 == pytest.approx(2 / 3)


def test_where_a_sentence_starts_does_not_count():
    assert boundary_scores([(0, 5), (6, 10)], [(2, 5), (8, 10)]).f1 == 1


@given(SPANS, SPANS)
def test_scores_are_symmetric_and_f1_is_the_harmonic_mean(gold, found):
    scores, swapped = boundary_scores(gold, found), boundary_scores(found, gold)
    assert scores.n_matched == swapped.n_matched
    if scores.n_matched:
        assert scores.precision == swapped.recall
        assert scores.f1 == pytest.approx(2 / (1 / scores.precision + 1 / scores.recall))
    assert scores.n_matched <= min(scores.n_gold, scores.n_found)


def test_texts_add_up():
    total = boundary_scores([(0, 5)], [(0, 5)]) + boundary_scores([(0, 5), (6, 9)], [(0, 9)])
    assert total == BoundaryScores(3, 2, 2)
    with pytest.raises(TypeError):
        total + 1


def test_undefined_scores_say_so():
    nothing = boundary_scores([], [])
    assert math.isnan(nothing.precision)
    assert math.isnan(nothing.recall)
    assert math.isnan(nothing.f1)
    assert "undefined" in nothing.summary()
    assert json.loads(json.dumps(nothing.to_dict()))["f1"] is None
    lost = boundary_scores([(0, 5)], [])
    assert math.isnan(lost.precision)
    assert lost.recall == lost.f1 == 0


def test_the_result_shows_itself():
    scores = boundary_scores([(0, 5), (6, 9)], [(0, 5)])
    assert scores.to_frame().loc[0, ["precision", "recall", "n_found"]].tolist() == [1.0, 0.5, 1]
    assert scores.summary() in scores._repr_html_()
    assert "1 of 2 gold" in scores.summary()
    assert boundary_scores([], []).to_frame()["f1"].isna().all()


@pytest.mark.parametrize("bad", [(1,), (2, 1), (-1, 3), ("a", "b"), 5, (0, 1.5), None])
def test_a_bad_span_is_named(bad):
    with pytest.raises(InputError, match="found_spans item 1"):
        boundary_scores([(0, 1)], [(0, 1), bad])


def golden_scores(**options) -> BoundaryScores:
    total = BoundaryScores(0, 0, 0)
    for line in data_path("golden/dev.jsonl").read_text(encoding="utf-8").split("\n"):
        if not line:
            continue
        row = json.loads(line)
        at, gold = 0, []
        for sentence in row["sentences"]:
            start = row["response"].index(sentence["text"], at)
            at = start + len(sentence["text"])
            gold.append((start, at))
        total += boundary_scores(gold, [(piece.start, piece.end) for piece in segment(row["response"], **options)])
    return total


def test_the_default_is_the_rule_that_scores_better_on_the_development_set():
    default, robust, reference = golden_scores(), golden_scores(rule="robust"), golden_scores(rule="reference")
    assert default == robust
    assert default.n_gold > 400
    assert default.f1 > 0.99
    assert default.f1 > reference.f1 + 0.05


def test_spans_are_a_list():
    with pytest.raises(InputError, match=r"gold_spans must be a list of spans \(start, end\), got None"):
        boundary_scores(None, [])
