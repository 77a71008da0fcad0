"""A JSON server over HTTP: time limits, repeats that are safe, and errors that say which thing went wrong.

Plain blocking HTTP, so that it works in threads and in a notebook whose event loop is running.
"""

from __future__ import annotations

import random
import time
import weakref
from typing import Any, Final

import httpx

from anima.checks import require_int, require_number
from anima.endpoint import MAX_WAIT, Endpoint, Refusal, json_object, listed, retry_after, too_long
from anima.errors import BadEmbeddingError, EmbeddingError, ModelNotFoundError, ServerUnavailableError


class TextTooLongError(EmbeddingError):
    """A text does not fit into the model's context."""


class NoRouteError(ServerUnavailableError):
    """Something answers, but it does not know the path."""


_ERRORS: Final[dict[Refusal, type[EmbeddingError]]] = {
    "model_not_found": ModelNotFoundError,
    "too_long": TextTooLongError,
    "no_route": NoRouteError,
    "rate_limited": ServerUnavailableError,
    "busy": ServerUnavailableError,
    "server_error": ServerUnavailableError,
    "html": BadEmbeddingError,
    "no_json": BadEmbeddingError,
}


class Server(Endpoint):
    """One address, its connections and its errors.

    Parameters
    ----------
    name, url, hint, api_key
        As for :class:`~anima.endpoint.Endpoint`.
    connect_timeout, timeout
        Seconds to wait for a connection, and for each part of the answer (a model may have to be loaded first).
    retries, backoff
        Repeats of a request that failed for a passing reason, and seconds before the first of them; doubled each time.
    connections
        Most connections at once.
    transport
        For tests: an ``httpx`` transport instead of the network.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        hint: str,
        connect_timeout: float = 5.0,
        timeout: float = 120.0,
        retries: int = 2,
        backoff: float = 0.5,
        connections: int = 2,
        api_key: str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(name, url, hint=hint, api_key=api_key)
        self._timeout = require_number(timeout, "timeout", low=0, open_low=True)
        self._retries = require_int(retries, "retries", low=0)
        self._backoff = require_number(backoff, "backoff", low=0)
        connect = require_number(connect_timeout, "connect_timeout", low=0, open_low=True)
        client = httpx.Client(
            **self.http,
            timeout=httpx.Timeout(self._timeout, connect=connect),
            limits=httpx.Limits(max_connections=connections),
            transport=transport,
        )
        self._client = client
        #: Closes the connections; called at the latest when the object goes.
        self.close = weakref.finalize(self, client.close)

    def post(self, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object that the server answers with.

        Raises
        ------
        EmbeddingError
            Or the one of its kinds that fits the refusal.
        """
        response = self._exchange("POST", path, payload)
        body = json_object(response)
        if response.is_success and body is not None and not body.get("error"):
            return body
        kind, message = self.refusal(response, self._retries + 1)
        raise _ERRORS.get(kind, EmbeddingError)(message)

    def listed(self, path: str, key: str, name: str) -> list[str]:
        """Return ``name`` of each object in the list ``key``, for a hint within another error; empty if unknown."""
        try:
            response = self._exchange("GET", path)
        except EmbeddingError:
            return []
        return listed((json_object(response) or {}).get(key), name) if response.is_success else []

    def _exchange(self, method: str, path: str, payload: dict[str, Any] | None = None) -> httpx.Response:
        """Return the server's last answer, whatever its status.

        Embedding changes nothing on the server, so that a request may be sent again when it failed to connect, ran out
        of time, broke off, or was answered with 429 or 5xx; nothing else is.
        """
        attempts = self._retries + 1
        for attempt in range(attempts):
            last = attempt == self._retries
            pause = self._backoff * 2**attempt * random.uniform(0.8, 1.2)  # noqa: S311 - spreads callers, no secret
            try:
                response = self._client.request(method, f"{self.url}{path}", json=payload)
            except httpx.RequestError as error:
                if last or isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
                    # the cause's request holds the key
                    raise ServerUnavailableError(self.broken(error, self._timeout, attempts)) from None
            else:
                passing = response.status_code == 429 or (response.status_code >= 500 and response.status_code != 501)
                if last or not passing or too_long(response.text):
                    return response
                asked = retry_after(response)
                if asked > MAX_WAIT:
                    raise ServerUnavailableError(
                        f"{self.where} asks to wait {asked:.0f} s (status {response.status_code}): try again later"
                    )
                pause = max(pause, asked)
            time.sleep(pause)
        raise ServerUnavailableError(f"{self.where}: no attempt was made")  # pragma: no cover - retries is never < 0
