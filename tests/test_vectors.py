"""Vectors: against scikit-learn, against a full sort, and against themselves in other batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from anima import vectors
from anima.errors import InputError
from anima.vectors import centroid, cosine, top_k, unit


def full_sort(queries, items, k):
    """The definition: all cosines, score falling, index rising."""
    scores = cosine(queries, items)
    usable = np.flatnonzero(np.asarray(items).any(axis=1) & ~np.isnan(np.asarray(items, dtype=float)).any(axis=1))
    order = [[int(i) for i in sorted(usable, key=lambda j: (-row[j], j))[:k]] for row in scores]
    index = np.asarray(order, dtype=np.int64).reshape(len(scores), min(k, len(usable)))
    return index, np.take_along_axis(scores, index, axis=1)


# unit


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_unit_agrees_with_scikit_learn(dtype):
    x = (np.random.default_rng(0).normal(size=(50, 7)) * 10).astype(dtype)
    assert np.allclose(unit(x), normalize(x.astype(float)), rtol=1e-15, atol=1e-15)
    assert unit(x).dtype == np.float64
    assert np.array_equal(unit(x)[3], unit(x[3]))


def test_unit_leaves_its_argument_and_zero_and_nan_rows():
    x = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0]])
    before = x.copy()
    got = unit(x)
    assert np.array_equal(got[:2], [[0.6, 0.8], [0.0, 0.0]])
    assert np.isnan(got[2]).all()
    assert np.array_equal(x, before, equal_nan=True)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_unit_of_numbers_whose_squares_leave_float64(scale):
    x = np.array([[3.0, -4.0], [1.0, 1.0]]) * scale
    assert np.allclose(unit(x), [[0.6, -0.8], [2**-0.5, 2**-0.5]], rtol=1e-3 if scale < 1e-300 else 1e-14)


def test_unit_of_nothing():
    assert unit(np.empty((0, 5))).shape == (0, 5)
    assert unit(np.empty((3, 0))).shape == (3, 0)


# centroid


def test_centroid_is_the_direction_of_the_mean_direction():
    # Lengths do not weigh: (10, 0) counts as much as (0, 1).
    assert np.allclose(centroid([[10, 0], [0, 1]]), [2**-0.5, 2**-0.5])
    x = np.random.default_rng(1).normal(size=(20, 6))
    assert np.allclose(centroid(x), normalize(normalize(x).mean(axis=0)[None])[0])


def test_centroid_leaves_out_rows_without_a_vector():
    assert np.array_equal(centroid([[1.0, 0.0], [np.nan, np.nan]]), [1.0, 0.0])
    assert np.isnan(centroid([[np.nan, np.nan]])).all()
    assert np.isnan(centroid(np.empty((0, 3)))).all()
    assert np.array_equal(centroid([[1.0, 0.0], [-1.0, 0.0]]), [0.0, 0.0])


# cosine


def test_cosine_agrees_with_scikit_learn():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(30, 512)).astype(np.float32), rng.normal(size=(9, 512)).astype(np.float32)
    assert np.abs(cosine(a, b) - cosine_similarity(a.astype(float), b.astype(float))).max() < 1e-14
    assert np.array_equal(cosine(a, b), cosine(b, a).T)


def test_cosine_of_rows_without_direction():
    got = cosine([[1.0, 0.0], [0.0, 0.0], [np.nan, 0.0]], [[2.0, 0.0]])
    assert np.array_equal(got, [[1.0], [0.0], [np.nan]], equal_nan=True)


@given(st.integers(1, 70), st.integers(1, 40), st.integers(1, 600), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_cosine_of_a_pair_has_the_same_bits_in_any_batch(n, m, d, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(m, d))
    whole = cosine(a, b)
    i, j, order = int(rng.integers(n)), int(rng.integers(m)), rng.permutation(n)
    assert cosine(a[i : i + 1], b[j : j + 1])[0, 0] == whole[i, j]
    assert np.array_equal(cosine(a[order], b), whole[order])
    assert np.array_equal(cosine(a[: n // 2], b), whole[: n // 2])


# top_k


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_top_k_is_the_full_sort(data):
    """Small whole numbers make exact ties between items that are not equal, beside duplicates and rows of zeros."""
    d = data.draw(st.integers(1, 6))
    row = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    items = np.array(data.draw(st.lists(row, min_size=1, max_size=40)), dtype=data.draw(st.sampled_from(["f4", "f8"])))
    queries = np.array(data.draw(st.lists(row.filter(any), min_size=1, max_size=5)), dtype=float)
    k = data.draw(st.integers(1, 45))
    index, scores = top_k(queries, items, k)
    expected_index, expected_scores = full_sort(queries, items, k)
    assert np.array_equal(index, expected_index)
    assert np.array_equal(scores, expected_scores)


@given(st.integers(0, 2**32 - 1), st.floats(0, 1e-6))
@settings(max_examples=25, deadline=None)
def test_top_k_tells_apart_what_float32_cannot(seed, noise):
    """Items differ by less than float32 resolves; order is still that of the float64 scores."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=64)
    items = base + rng.normal(size=(300, 64)) * noise
    queries = base + rng.normal(size=(4, 64)) * 0.1
    index, scores = top_k(queries, items, 7)
    expected_index, expected_scores = full_sort(queries, items, 7)
    assert np.array_equal(index, expected_index)
    assert np.array_equal(scores, expected_scores)


def test_top_k_does_not_depend_on_blocks_batch_or_order(monkeypatch):
    rng = np.random.default_rng(3)
    items = rng.normal(size=(503, 33)).astype(np.float32)
    items[400:450] = items[:50]  # duplicates far apart
    queries = rng.normal(size=(41, 33)).astype(np.float32)
    index, scores = top_k(queries, items, 60)
    assert (np.diff(scores, axis=1) <= 0).all()
    ties = np.diff(scores, axis=1) == 0
    assert ties.sum() > 20
    assert (np.diff(index, axis=1)[ties] > 0).all()
    alone = [top_k(query[None], items, 60) for query in queries]
    assert np.array_equal(np.concatenate([i for i, _ in alone]), index)
    assert np.array_equal(np.concatenate([s for _, s in alone]), scores)
    monkeypatch.setattr(vectors, "_ROWS", 50)
    monkeypatch.setattr(vectors, "_SCORES", 1100)
    small_index, small_scores = top_k(queries, items, 60)
    assert np.array_equal(small_index, index)
    assert np.array_equal(small_scores, scores)
    order = rng.permutation(len(items))
    shuffled_scores = top_k(queries, items[order], 60)[1]
    assert np.array_equal(shuffled_scores, scores)


def test_top_k_never_returns_an_item_without_direction():
    # A published bug of several libraries: the zero row came first, with a score of NaN.
    index, scores = top_k([[1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]], 2)
    assert np.array_equal(index, [[0, 1]])
    assert np.allclose(scores, [[1.0, 2**-0.5]])
    index, _ = top_k([[1.0, 0.0]], [[0.0, 0.0], [np.nan, 1.0], [-1.0, 0.0]], 3)
    assert np.array_equal(index, [[2]])


def test_top_k_of_queries_without_direction():
    index, scores = top_k([[0.0, 0.0], [1.0, 0.0], [np.nan, 1.0]], [[1.0, 1.0], [1.0, 0.0]], 1)
    assert np.array_equal(index, [[-1], [1], [-1]])
    assert np.array_equal(scores, [[np.nan], [1.0], [np.nan]], equal_nan=True)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_top_k_of_items_of_any_length(scale):
    items = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 0.0]]) * [[1.0], [scale], [1 / scale]]
    assert np.array_equal(top_k([[1.0, 0.1]], items, 3)[0], [[2, 1, 0]])


def test_top_k_of_nothing():
    assert top_k(np.empty((0, 3)), np.ones((4, 3)), 2)[0].shape == (0, 2)
    assert top_k(np.ones((2, 3)), np.empty((0, 3)), 2)[0].shape == (2, 0)


@pytest.mark.oracle
def test_top_k_agrees_with_the_reference_service(oracle):
    """Scores of all 400 cases; which of several equal items is meant differs on purpose (lowest index here)."""
    lines = (oracle / "oracle/authenticity/unit_numeric.jsonl").read_text(encoding="utf-8").strip().split("\n")
    cases = [case for case in map(json.loads, lines) if case["kind"] == "topk" and len(case["scores"])]
    assert len(cases) > 150
    exact = 0
    for case in cases:
        scores = np.array(case["scores"])
        items = np.column_stack([scores, np.sqrt(1 - scores**2)])
        index, got = top_k([[1.0, 0.0]], items, case["k"])
        assert np.allclose(got[0], sorted(scores, reverse=True)[: case["k"]], atol=1e-12)
        exact += [int(i) for i in case["order"]] == index[0].tolist()
        if len(set(scores)) == len(scores):
            assert [int(i) for i in case["order"]] == index[0].tolist()
    assert exact < len(cases)


# refusals


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: unit([["a"]]), "rows must hold real numbers"),
        (lambda: unit([[1.0], [1.0, 2.0]]), "rows of one length"),
        (lambda: unit(np.ones((2, 2, 2))), r"shape \(n, d\) or \(d,\), got \(2, 2, 2\)"),
        (lambda: unit([[1.0, 2.0], [np.inf, 0.0]]), "infinite value in row 1"),
        (lambda: unit([[True, False]]), "array of bool"),
        (lambda: unit([[None, 1.0]]), "array of object"),
        (
            lambda: centroid([1.0, 2.0]),
            r"rows must have shape \(n, d\), got \(2,\): for one vector write rows\[None, :\]",
        ),
        (
            lambda: cosine(np.ones((2, 3)), np.ones((2, 4))),
            r"shapes \(2, 3\) and \(2, 4\): were they made by different",
        ),
        (lambda: cosine([1.0], [[1.0]]), "a must have shape"),
        (lambda: top_k(np.ones((2, 3)), np.ones((2, 3)), 0), "k must be at least 1, got 0"),
        (lambda: top_k(np.ones((2, 3)), np.ones((2, 3)), 1.5), "k must be an integer"),
        (lambda: top_k(np.ones((2, 3)), np.full((2, 3), -np.inf), 1), "items holds an infinite value in row 0"),
        (lambda: top_k(np.ones((2, 3)), np.ones(3), 1), "items must have shape"),
    ],
)
def test_refusals_name_argument_value_and_fix(call, says):
    with pytest.raises(InputError, match=says):
        call()
