"""Judges behind a server: what can be asked of every client, and what those over HTTP share."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

import httpx

from anima.checks import require_int, require_number
from anima.endpoint import Endpoint, json_object, listed
from anima.judge.call import Call, adrive, drive
from anima.judge.request import Limits
from anima.judge.watch import Watch

if TYPE_CHECKING:
    import re
    import ssl
    from types import TracebackType

    from anima.judge.decode import Decoder, Delta
    from anima.judge.request import Completion, Request

_LOOKUP_SECONDS: Final = 2.0  # for what only adorns an answer or an error: lists of models
_LOOKUP_BYTES: Final = 4 * 2**20


class Client(Protocol):
    """Whatever can be asked as a judge. Errors are :class:`~anima.errors.JudgeError`."""

    @property
    def model(self) -> str:
        """Name of the model."""

    def stream(self, request: Request) -> Stream:
        """Ask, and return the answer's pieces as they come."""

    def complete(self, request: Request) -> Completion:
        """Ask, and return the whole answer."""

    def astream(self, request: Request) -> AsyncStream:
        """Ask under asyncio; as :meth:`stream`."""


class HTTPClient:
    """What both kinds of server share; see :class:`~anima.judge.ollama.OllamaClient` for the parameters.

    A client holds no connection between calls, and may be used by several threads at once.
    """

    _missing_hint: ClassVar[str]
    _list: ClassVar[tuple[str, str, str]]  # path, key and name of the list of models
    #: Fields that a request can do without, and how a refusal names them.
    _optional: ClassVar[dict[str, tuple[str, re.Pattern[str]]]]

    def __init__(
        self, model: str, endpoint: Endpoint, *, streamed: bool, limits: Limits | None, retries: int, backoff: float
    ) -> None:
        self.model = model
        self.limits = limits or Limits()
        self._endpoint = endpoint
        self.streamed = streamed
        self._retries = require_int(retries, "retries", low=0)
        self._backoff = require_number(backoff, "backoff", low=0)
        self._refused: set[str] = set()

    @property
    def url(self) -> str:
        """Address of the server, without user and password."""
        return self._endpoint.url

    def stream(self, request: Request) -> Stream:
        """Ask, and return the answer's pieces as they come; nothing is sent before the first is fetched."""
        return Stream(Call(self, request))

    def complete(self, request: Request) -> Completion:
        """Ask, and return the whole answer.

        Raises
        ------
        JudgeError
            If there is none; see :data:`Reason`.
        """
        with self.stream(request) as pieces:
            return pieces.drain()

    def astream(self, request: Request) -> AsyncStream:
        """Ask under asyncio; as :meth:`stream`."""
        return AsyncStream(Call(self, request))

    def models(self) -> list[str]:
        """Return the names of the models that the server has; empty if it does not tell."""
        path, key, name = self._list
        return listed(self._look_up(path).get(key), name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {self.url!r})"

    def _ask(self, request: Request, refused: frozenset[str]) -> tuple[str, dict[str, Any]]:
        """Return path and body of a request, without the optional fields that were refused before."""
        raise NotImplementedError

    def _decoder(self) -> Decoder:
        raise NotImplementedError

    def _digest(self) -> str:
        return ""

    def _leave_out(self, name: str, _payload: dict[str, Any]) -> None:
        """Note that the server refused an optional field of what it was sent."""
        self._refused.add(name)

    def _others(self) -> list[str]:
        """Return the models that the server has, if it answered with one of them in place of the one asked for."""
        return []

    def _context(self, request: Request) -> int | None:
        """Return the tokens that the server was told to read at most."""
        return request.options.num_ctx

    @property
    def _http(self) -> dict[str, Any]:
        return {**self._endpoint.http, "verify": _certificates()}

    def _look_up(self, path: str) -> dict[str, Any]:
        """Return the JSON object at ``path``; empty when there is none within a short time."""
        with closing(Watch()) as watch, suppress(httpx.RequestError):
            watch.arm(time.monotonic() + _LOOKUP_SECONDS)
            with httpx.Client(**self._http, timeout=_LOOKUP_SECONDS) as http:
                sent = http.build_request("GET", f"{self.url}{path}", extensions={"trace": watch.trace})
                with closing(http.send(sent, stream=True)) as response:
                    body = b""
                    for chunk in response.iter_bytes():
                        body += chunk
                        if len(body) > _LOOKUP_BYTES:
                            break
                    if response.is_success and not watch.late:
                        return json_object(httpx.Response(200, content=body)) or {}
        return {}


@cache
def _certificates() -> ssl.SSLContext:
    # Reading them takes longer than all the rest of a call's preparation.
    return httpx.create_ssl_context()


class Stream:
    """An answer as it comes: iterate for the pieces, then read :attr:`completion`.

    Leaving it early, closing it, or :meth:`cancel` from another thread closes the connection.
    """

    def __init__(self, call: Call) -> None:
        self._call, self._watch = call, Watch()
        self._pieces = drive(call, self._watch)

    @property
    def completion(self) -> Completion:
        """The whole answer, once the pieces have come to their end."""
        return self._call.completion

    def drain(self) -> Completion:
        """Fetch the pieces that are left, and return the whole answer."""
        for _ in self:
            pass
        return self.completion

    def cancel(self) -> None:
        """Stop now, from any thread; who is waiting for the next piece gets a ``JudgeError`` ("cancelled")."""
        self._watch.cancel()

    def close(self) -> None:
        """Stop, in the thread that iterates."""
        self._pieces.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delta:
        return next(self._pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncStream:
    """As :class:`Stream`, under asyncio; cancelling the task that waits closes the connection, too."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._pieces = adrive(call)

    @property
    def completion(self) -> Completion:
        """The whole answer, once the pieces have come to their end."""
        return self._call.completion

    async def aclose(self) -> None:
        """Stop."""
        await self._pieces.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        return await anext(self._pieces)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
