"""Embedding models behind a server: Ollama, and anything that speaks OpenAI's ``/v1/embeddings``."""

from __future__ import annotations

import math
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from anima.checks import require_int, require_text, require_texts, show
from anima.embedding.base import has_vector
from anima.embedding.server import NoRouteError, Server, TextTooLongError
from anima.endpoint import OLLAMA_URL, model_name, there
from anima.errors import BadEmbeddingError, ModelNotFoundError, TruncationWarning
from anima.settings import env
from anima.vectors import unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

OLLAMA_MODEL: Final = "mxbai-embed-large"


class _RemoteEmbedder:
    """What both kinds of server share: batches, threads, and the checks of every answer."""

    _missing_hint: str

    def __init__(
        self, model: str, server: Server, *, dim: int | None, batch_size: int, batch_chars: int, parallel: int
    ) -> None:
        self.model = model
        self._server = server
        self._dim = None if dim is None else require_int(dim, "dim", low=1)
        self._batch_size = require_int(batch_size, "batch_size", low=1)
        self._batch_chars = require_int(batch_chars, "batch_chars", low=1)
        self._parallel = require_int(parallel, "parallel", low=1)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Address of the server, without user and password."""
        return self._server.url

    @property
    def id(self) -> str:
        """Kind of server and model; with the address where a name does not identify the model."""
        return self._server.name

    @property
    def dim(self) -> int:
        """Length of a vector: as given, as seen in the first answer, or asked with one probe."""
        if self._dim is None:
            return int(self.embed(["dimension"]).shape[1])
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row per text, shape (n, dim), normalised in float64; NaN for a blank text.

        Raises
        ------
        InputError
            If an item is not a str or holds a lone surrogate.
        ServerUnavailableError
            If nothing answers, or not in time, or the server fails, after the repeats.
        ModelNotFoundError
            If the server lacks the model; the message lists those it has.
        BadEmbeddingError
            If the answer is no usable set of vectors: their number, length or values are wrong, or it is no JSON.
        EmbeddingError
            If the server refuses for another reason.
        """
        texts = require_texts(texts)
        wanted = np.flatnonzero(has_vector(texts))
        batches = list(self._batches([texts[i] for i in wanted]))
        if len(batches) < 2 or self._parallel == 1:
            parts = [self._embed_batch(batch) for batch in batches]
        else:
            pool = ThreadPoolExecutor(min(self._parallel, len(batches)), "anima-embed")
            failed = threading.Event()

            def work(batch: list[str]) -> Any:
                if failed.is_set():  # the call raises before this result is used
                    return None
                try:
                    return self._embed_batch(batch)
                except BaseException:
                    failed.set()
                    raise

            try:
                parts = list(pool.map(work, batches))
            finally:  # the first failure, or the user's interrupt, ends the call
                pool.shutdown(wait=False, cancel_futures=True)
        for note in (note for _, notes in parts for note in notes):
            warnings.warn(note, TruncationWarning, stacklevel=2)
        out = np.full((len(texts), self.dim), np.nan, dtype=np.float32)
        if parts:
            out[wanted] = np.concatenate([rows for rows, _ in parts])
        return out

    def close(self) -> None:
        """Close the connections; the embedder cannot be used afterwards."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {self.url!r})"

    def _ask(self, batch: list[str]) -> tuple[list[Any], list[str]]:
        """Return the raw vectors of a batch, in its order, and notes about texts that were cut."""
        raise NotImplementedError

    def _models(self) -> list[str]:
        """Return the names of the models that the server has; empty if it does not tell."""
        raise NotImplementedError

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            if batch and (len(batch) == self._batch_size or size + len(text) > self._batch_chars):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            yield batch

    def _embed_batch(self, batch: list[str]) -> tuple[NDArray[np.float32], list[str]]:
        try:
            vectors, notes = self._ask(batch)
        except ModelNotFoundError as error:
            raise ModelNotFoundError(f"{error}.{there(self._models())} {self._missing_hint}") from None
        if len(vectors) != len(batch):
            raise BadEmbeddingError(f"{self.id} at {self.url} gave {len(vectors)} embeddings for {len(batch)} texts")
        return np.stack([self._checked(v, text) for v, text in zip(vectors, batch, strict=True)]), notes

    def _checked(self, vector: Any, text: str) -> NDArray[np.float32]:
        def bad(what: str) -> BadEmbeddingError:
            return BadEmbeddingError(f"{self.id} at {self.url} gave {what} for {show(text)}")

        if not isinstance(vector, list):
            raise bad(f"{self._server.quote(vector)} instead of a list of numbers")
        if not vector:
            raise bad("an empty embedding (is it an embedding model?)")
        if odd := [x for x in vector if type(x) not in (int, float)]:
            raise bad(f"an embedding holding {self._server.quote(odd[0])} instead of a number")
        row = np.asarray([float(x) if abs(x) < 1e300 else math.inf for x in vector])
        if not np.isfinite(row).all():
            raise bad(f"an embedding with NaN or infinity, first at place {int((~np.isfinite(row)).argmax())},")
        if not row.any():
            raise bad("an embedding of zeros only")
        with self._lock:
            if self._dim is None:
                self._dim = len(row)
        if len(row) != self._dim:
            raise bad(f"an embedding of {len(row)} numbers, not {self._dim} as expected (changed model?),")
        return unit(row).astype(np.float32)


class OllamaEmbedder(_RemoteEmbedder):
    """Embeds with a model of an Ollama server.

    Parameters
    ----------
    model
        Name as in ``ollama list``; default mxbai-embed-large.
    url
        Address of the server; default ``ANIMA_OLLAMA_URL``, else http://localhost:11434.
    dim
        Length of a vector, if known: a cache over this embedder can then answer without the server.
    batch_size, batch_chars, parallel
        At most so many texts and characters in a request, and requests at once.
    **options
        ``connect_timeout``, ``timeout``, ``retries``, ``backoff``, ``transport`` of
        :class:`~anima.embedding.server.Server`.

    Notes
    -----
    A text longer than the model reads is represented by its beginning, with a
    :class:`~anima.errors.TruncationWarning`. A server too old for ``/api/embed`` is asked through ``/api/embeddings``,
    one text at a time, and does not tell when it shortens a text.
    """

    def __init__(
        self,
        model: str | None = None,
        url: str | None = None,
        *,
        dim: int | None = None,
        batch_size: int = 64,
        batch_chars: int = 100_000,
        parallel: int = 2,
        **options: Any,
    ) -> None:
        model = model_name(model or OLLAMA_MODEL)
        address = (url or env("OLLAMA_URL", OLLAMA_URL)).strip().rstrip("/").removesuffix("/api")
        hint = "start it with `ollama serve`, or correct the URL"
        server = Server(f"ollama:{model}", address, hint=hint, connections=parallel, **options)
        super().__init__(model, server, dim=dim, batch_size=batch_size, batch_chars=batch_chars, parallel=parallel)
        self._missing_hint = f"Get it with `ollama pull {model}`"
        self._old = False

    def _ask(self, batch: list[str]) -> tuple[list[Any], list[str]]:
        if not self._old:
            try:
                return self._ask_new(batch, cut=False)
            except NoRouteError:
                self._old = True
        return [self._post("/api/embeddings", "embedding", prompt=text) for text in batch], []

    def _ask_new(self, batch: list[str], *, cut: bool) -> tuple[list[Any], list[str]]:
        try:
            return self._post("/api/embed", "embeddings", input=batch, truncate=cut), []
        except TextTooLongError as error:
            if cut:
                raise
            if len(batch) == 1:
                what = f"the vector of {show(batch[0])} ({len(batch[0]):,} characters) is that of its beginning"
                return self._ask_new(batch, cut=True)[0], [f"{error}; {what}"]
        # One long text refuses the whole batch: halves find it, and the others stay whole.
        middle = len(batch) // 2
        left, right = self._ask_new(batch[:middle], cut=False), self._ask_new(batch[middle:], cut=False)
        return left[0] + right[0], left[1] + right[1]

    def _post(self, path: str, key: str, **payload: Any) -> list[Any]:
        # Kept in memory between calls: loading takes longer than embedding.
        body = self._server.post(path, {"model": self.model, "keep_alive": "10m", **payload})
        if not isinstance(body.get(key), list):
            seen = self._server.quote(sorted(body))
            raise BadEmbeddingError(f"{self.id} at {self.url}: no list {key!r} among {seen}")
        return list(body[key])

    def _models(self) -> list[str]:
        return self._server.listed("/api/tags", "models", "name")


class OpenAIEmbedder(_RemoteEmbedder):
    """Embeds through ``/v1/embeddings``: OpenAI, vLLM, llama.cpp, LM Studio and others.

    Parameters
    ----------
    model
        Name of the model on the server.
    url
        Address of the server, with or without ``/v1``.
    api_key
        Default ``OPENAI_API_KEY``; never shown. Local servers need none.
    dim, batch_size, batch_chars, parallel, **options
        As for :class:`OllamaEmbedder`. A text longer than the model reads is an error here: the interface has no way
        to ask for its beginning.
    """

    _missing_hint = "Correct the model's name, or load it on the server"

    def __init__(
        self,
        model: str,
        url: str,
        *,
        api_key: str | None = None,
        dim: int | None = None,
        batch_size: int = 64,
        batch_chars: int = 100_000,
        parallel: int = 2,
        **options: Any,
    ) -> None:
        key = (api_key or os.environ.get("OPENAI_API_KEY", "")).strip() or None
        address = require_text(url, "url").strip().rstrip("/").removesuffix("/v1")
        hint = "start the server, or correct the URL"
        model = model_name(model)
        server = Server(f"openai:{model}", address, hint=hint, connections=parallel, api_key=key, **options)
        # Servers give the same name to different models, so that the address belongs to the identity.
        server.name += f"@{server.url.partition('://')[2]}"
        super().__init__(model, server, dim=dim, batch_size=batch_size, batch_chars=batch_chars, parallel=parallel)

    def _ask(self, batch: list[str]) -> tuple[list[Any], list[str]]:
        body = self._server.post("/v1/embeddings", {"model": self.model, "input": batch})
        data = body.get("data")
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            seen = self._server.quote(sorted(body))
            raise BadEmbeddingError(f"{self.id}: no list 'data' of objects among {seen}")
        places = [item.get("index", i) for i, item in enumerate(data)]
        vectors = [item.get("embedding") for item in data]
        if len(data) != len(batch):
            return vectors, []  # the caller says how many were expected
        if any(type(place) is not int for place in places) or sorted(places) != list(range(len(batch))):
            raise BadEmbeddingError(f"{self.id}: indices {self._server.quote(places)} are not 0 to {len(batch) - 1}")
        return [vectors[places.index(i)] for i in range(len(batch))], []

    def _models(self) -> list[str]:
        return self._server.listed("/v1/models", "data", "id")
