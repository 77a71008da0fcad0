"""What an embedder is, a table of known vectors, and how one is chosen by name."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from anima.checks import require_texts, show
from anima.endpoint import model_spec, wrong_spec
from anima.errors import BadEmbeddingError, EmbeddingError, InputError
from anima.settings import env
from anima.vectors import unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

FORMS: Final = '"bundled", "ollama", "ollama:MODEL", "ollama:MODEL@URL" or "openai:MODEL@URL"'
_UNIT: Final = 1e-3  # how far from one a length may be: half-precision models are off by a few 1e-4
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


class Embedder(Protocol):
    """Anything that turns texts into unit vectors.

    Implementations must return the same vector for the same text whatever else is in the batch, up to rounding; the
    bundled one does so bit for bit.
    """

    @property
    def id(self) -> str:
        """Name of the model and its version: vectors under one id may be compared and cached together."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, shape (n, dim).

        Rows have length one. A blank text has no vector: its row is NaN (see :func:`has_vector`).
        """


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the rows of texts that are not blank, of whatever embedder, once they keep the promises of the protocol.

    Raises
    ------
    BadEmbeddingError
        The answer is no array of numbers of shape (n, dim), or a row has not length one: cosines would be wrong.
    """
    answer = embedder.embed(texts)
    try:
        rows = np.asarray(answer)
        if rows.dtype.kind not in "fiu":
            raise ValueError(f"it holds {rows.dtype}")
    except ValueError as error:  # numpy's own for rows of several lengths
        raise BadEmbeddingError(
            f"{embedder.id} gave no array of real numbers for {len(texts)} texts: {error}"
        ) from None
    if rows.shape != (len(texts), embedder.dim):
        raise BadEmbeddingError(
            f"{embedder.id} gave an array of shape {rows.shape} for {len(texts)} texts of {embedder.dim} numbers"
        )
    rows = rows.astype(np.float32, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    bad = ~(np.abs(lengths - 1) < _UNIT)  # true for NaN
    if bad.any():
        i = int(bad.argmax())
        raise BadEmbeddingError(
            f"{embedder.id} gave {int(bad.sum())} of {len(texts)} rows that have not length one, the first {lengths[i]:g} "
            f"for {show(texts[i])}: divide each row by its length"
        )
    return rows


def has_vector(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Say of each text whether it has a vector: False where nothing but white space and invisible characters stand.

    Models return some vector for an empty string, and it is as near to a sentence as another sentence is; embedders
    here return a row of NaN instead, and callers skip it.
    """
    return np.fromiter((first_visible(text) < len(text) for text in texts), dtype=np.bool_, count=len(texts))


def first_visible(text: str) -> int:
    """Return the place of the first character that shows; the length of ``text`` if none does."""
    return next((i for i, c in enumerate(text) if c.isalnum() or unicodedata.category(c) not in _INVISIBLE), len(text))


class TableEmbedder:
    """Vectors computed before, looked up by text.

    Parameters
    ----------
    texts, vectors
        n texts and an array of shape (n, dim); rows are brought to unit length.
    id
        Name of the model that made the vectors.

    Raises
    ------
    InputError
        If the numbers of texts and rows differ, a text occurs twice with different rows, or a row has no direction.
    """

    def __init__(self, texts: Sequence[str], vectors: ArrayLike, id: str = "table") -> None:  # noqa: A002
        names = require_texts(texts)
        # Rounded once to float32, like every embedder's answer.
        rows = unit(vectors).astype(np.float32)
        if rows.ndim != 2 or len(rows) != len(names):
            raise InputError(f"vectors must have shape ({len(names)}, dim), one row per text, got {rows.shape}")
        bad = ~rows.any(axis=1) | np.isnan(rows).any(axis=1)
        if bad.any():
            raise InputError(f"vectors has no direction in row {int(bad.argmax())} (all zero or NaN)")
        self.id = id
        self.dim = int(rows.shape[1])
        self._rows = rows
        self._index: dict[str, int] = {}
        for i, text in enumerate(names):
            first = self._index.setdefault(text, i)
            if not np.array_equal(rows[first], rows[i]):
                raise InputError(f"texts holds {show(text)} twice, at {first} and {i}, with different vectors")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the stored rows; a text that the table lacks raises :class:`EmbeddingError`."""
        texts = require_texts(texts)
        out = np.full((len(texts), self.dim), np.nan, dtype=np.float32)
        for i in np.flatnonzero(has_vector(texts)):
            row = self._index.get(texts[i])
            if row is None:
                raise EmbeddingError(f"{self.id}: no vector for {show(texts[i])} (item {i} of texts)")
            out[i] = self._rows[row]
        return out

    def __repr__(self) -> str:
        return f"TableEmbedder({len(self._index)} texts, id={self.id!r}, dim={self.dim})"


def get_embedder(spec: str | Embedder | None = None) -> Embedder:
    """Return the embedder that ``spec`` names; nothing is loaded or asked over the network yet.

    Parameters
    ----------
    spec
        ``"bundled"`` (the model that comes with the package), ``"ollama"`` or ``"ollama:MODEL[@URL]"``,
        ``"openai:MODEL@URL"`` for any server with that interface, or an embedder, which is returned as it is.
        None reads ``ANIMA_EMBEDDER``, else means ``"bundled"``.

    Raises
    ------
    SettingsError
        If the text has none of these forms.
    """
    if spec is None:
        spec = env("EMBEDDER", "bundled")
    if not isinstance(spec, str):
        name = getattr(spec, "id", None)
        known = not isinstance(spec, type) and callable(getattr(spec, "embed", None))
        if known and isinstance(name, str) and name:  # not hasattr dim: that may ask a server
            return spec
        raise InputError(f"embedder must be {FORMS}, or have id, dim and embed; got {type(spec).__name__} {show(spec)}")
    kind, model, url = model_spec(spec)
    if kind == "bundled" and not model and not url:
        from anima.embedding.bundled import BundledEmbedder

        return BundledEmbedder()
    if kind == "ollama":
        from anima.embedding.remote import OllamaEmbedder

        return OllamaEmbedder(model, url)
    if kind == "openai" and model and url:
        from anima.embedding.remote import OpenAIEmbedder

        return OpenAIEmbedder(model, url)
    raise wrong_spec("embedder", FORMS, spec)
