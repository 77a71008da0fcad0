"""A JSON server over HTTP: time limits, repeats that are safe, and errors that say which thing went wrong.

Plain blocking HTTP, so that it works in threads and in a notebook whose event loop is running.
"""

from __future__ import annotations

import random
import re
import time
import weakref
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from anima.checks import require_int, require_number, require_text
from anima.errors import (
    BadEmbeddingError,
    EmbeddingError,
    ModelNotFoundError,
    ServerUnavailableError,
    SettingsError,
)

_MAX_WAIT: Final = 60.0  # seconds: a server that asks for more is reported, not waited for
_NO_MODEL: Final = re.compile(
    r"model.*(not.found|not exist|not loaded|unknown|unavailable)|(unknown|no such) model", re.DOTALL | re.IGNORECASE
)
_TOO_LONG: Final = re.compile(
    r"context.length|context.size|input length|maximum length|too long|too many tokens", re.IGNORECASE
)


class TextTooLongError(EmbeddingError):
    """A text does not fit into the model's context."""


class NoRouteError(ServerUnavailableError):
    """Something answers, but it does not know the path."""


class Server:
    """One address, its connections and its errors.

    Parameters
    ----------
    name
        What the messages call it.
    url
        Address; user and password in it are used and never shown.
    hint
        How to start the server, for the message when nothing answers.
    connect_timeout, timeout
        Seconds to wait for a connection, and for each part of the answer (a model may have to be loaded first).
    retries, backoff
        Repeats of a request that failed for a passing reason, and seconds before the first of them; doubled each time.
    connections
        Most connections at once.
    api_key
        Sent as a bearer token; never shown.
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
        address = _address(url)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise SettingsError(
                "api_key holds a character that cannot be sent (is there a line break or a quote in it?)"
            )
        self.name = name
        self.url = str(address.copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")
        self._hint = hint
        self._key = api_key
        self._timeout = require_number(timeout, "timeout", low=0, open_low=True)
        self._retries = require_int(retries, "retries", low=0)
        self._backoff = require_number(backoff, "backoff", low=0)
        connect = require_number(connect_timeout, "connect_timeout", low=0, open_low=True)
        client = httpx.Client(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            auth=(address.username, address.password) if address.username else None,
            timeout=httpx.Timeout(self._timeout, connect=connect),
            limits=httpx.Limits(max_connections=connections),
            # A proxy set for the outside world cannot reach this machine's own servers.
            trust_env=address.host not in {"localhost", "127.0.0.1", "::1"},
            transport=transport,
        )
        self._client = client
        #: Closes the connections; called at the latest when the object goes.
        self.close = weakref.finalize(self, client.close)

    @property
    def _where(self) -> str:
        return f"{self.name} at {self.url}"

    def post(self, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object that the server answers with.

        Raises
        ------
        ModelNotFoundError, TextTooLongError, NoRouteError, ServerUnavailableError, BadEmbeddingError, EmbeddingError
            See their docstrings; the last one for any other refusal.
        """
        response = self._exchange("POST", path, payload)
        body, status = _json_object(response), response.status_code
        if response.is_success and body is not None and not body.get("error"):
            return body
        message = self.quote(response.text.strip() if body is None else _complaint(body), 300)
        if body is not None and status < 500 and _NO_MODEL.search(message):
            raise ModelNotFoundError(f"{self._where}: {message}")
        if _TOO_LONG.search(message) and (body is not None or not response.is_success):
            raise TextTooLongError(f"{self._where}: a text is longer than the model reads: {message}")
        if status in (404, 405):
            raise NoRouteError(f"{self.url} has no {path} (status {status}): is it the right server for {self.name}?")
        if status in (401, 403):
            raise EmbeddingError(f"{self._where} refuses access (status {status}): check the API key. {message}")
        if status == 429 or status >= 500:
            times = f"{self._retries + 1} times" if self._retries else "once"
            raise ServerUnavailableError(f"{self._where} failed {times} (status {status}): {message}")
        if not response.is_success or body is not None:
            to = f", points to {self.quote(response.headers['location'])}" if response.has_redirect_location else ""
            raise EmbeddingError(f"{self._where} refused (status {status}{to}): {message}")
        html = "html" in response.headers.get("content-type", "") or response.text.lstrip()[:1] == "<"
        what = "an HTML page" if html else "no JSON object"
        raise BadEmbeddingError(f"{self._where} answered with {what}: is the URL right? It begins {message}")

    def listed(self, path: str, key: str, name: str) -> list[str]:
        """Return ``name`` of each object in the list ``key``, for a hint within another error; empty if unknown."""
        try:
            return sorted(str(item[name]) for item in self._exchange("GET", path).raise_for_status().json()[key])
        except (EmbeddingError, httpx.HTTPError, ValueError, KeyError, TypeError):
            return []

    def quote(self, value: object, limit: int = 60) -> str:
        """Return a short form of what a server sent, without the API key, which servers repeat in complaints."""
        text = value if isinstance(value, str) else repr(value)
        text = repr(text.replace(self._key, "***") if self._key else text)
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def _exchange(self, method: str, path: str, payload: dict[str, Any] | None = None) -> httpx.Response:
        """Return the server's last answer, whatever its status.

        Embedding changes nothing on the server, so that a request may be sent again when it failed to connect, ran out
        of time, broke off, or was answered with 429 or 5xx; nothing else is.
        """
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            pause = self._backoff * 2**attempt * random.uniform(0.8, 1.2)  # noqa: S311 - spreads callers, no secret
            try:
                response = self._client.request(method, f"{self.url}{path}", json=payload)
            except httpx.RequestError as error:
                if last or isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
                    raise self._unavailable(error) from None  # the cause's request holds the key
            else:
                passing = response.status_code == 429 or (response.status_code >= 500 and response.status_code != 501)
                if last or not passing or _TOO_LONG.search(response.text):
                    return response
                asked = _retry_after(response)
                if asked > _MAX_WAIT:
                    raise ServerUnavailableError(
                        f"{self._where} asks to wait {asked:.0f} s (status {response.status_code}): try again later"
                    )
                pause = max(pause, asked)
            time.sleep(pause)
        raise ServerUnavailableError(f"{self._where}: no attempt was made")  # pragma: no cover - retries is never < 0

    def _unavailable(self, error: httpx.RequestError) -> ServerUnavailableError:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            what = f"nothing answers: {self._hint}"
        elif isinstance(error, httpx.TimeoutException):
            what = f"no answer within {self._timeout:g} s: the model may still be loading; raise timeout"
        else:
            what = "the connection broke off before the answer was complete"
        tries = f" in {self._retries + 1} attempts" if self._retries else ""
        return ServerUnavailableError(f"{self._where}: {what}{tries} [{self.quote(str(error), 200)}]")


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(require_text(url, "url").strip())
    except httpx.InvalidURL as error:
        raise SettingsError(f"url cannot be read: {error}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsError("url must begin with http:// or https:// and name a host, e.g. http://localhost:11434")
    return address


def _json_object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _complaint(body: dict[str, Any]) -> object:
    """Return the complaint in an answer, whichever of the usual forms it has."""
    error = body.get("error") or body
    if isinstance(error, dict):
        return error.get("message") or error.get("detail") or error.get("code") or error
    return error


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds that the server asks to wait; 0 if it does not say."""
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return 0.0
    return seconds if seconds > 0 else 0.0
