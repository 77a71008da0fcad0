"""The address of a model's server: what it may be, what is never shown of it, and what its refusals mean.

Shared by everything that talks to such servers; each caller has its own way of sending, repeating and raising.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.checks import require_text, show
from anima.errors import InputError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

OLLAMA_URL: Final = "http://localhost:11434"
MAX_WAIT: Final = 60.0  # seconds: a server that asks for more is reported, not waited for

#: Why an answer is of no use.
Refusal = Literal[
    "model_not_found", "too_long", "no_route", "access", "rate_limited", "busy", "server_error", "refused",
    "html", "no_json",
]  # fmt: skip

_NO_MODEL: Final = re.compile(
    r"model.*(not.found|not exist|not loaded|unknown|unavailable)|(unknown|no such) model", re.DOTALL | re.IGNORECASE
)
_TOO_LONG: Final = re.compile(
    r"context.length|context.size|input length|maximum length|too long|too many tokens", re.IGNORECASE
)


class Endpoint:
    """One server's address, key and errors; it does no input or output of its own.

    Parameters
    ----------
    name
        What the messages call it.
    url
        Address; user and password in it are used and never shown.
    hint
        How to start the server, for the message when nothing answers.
    api_key
        Sent as a bearer token; never shown.
    """

    def __init__(self, name: str, url: str, *, hint: str, api_key: str | None = None) -> None:
        address = _address(url)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise SettingsError(
                "api_key holds a character that cannot be sent (is there a line break or a quote in it?)"
            )
        self.name = name
        self.url = str(address.copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")
        self.hint = hint
        self._secrets = [secret for secret in (api_key, address.password) if secret]
        #: For ``httpx.Client`` and ``httpx.AsyncClient``.
        self.http: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {api_key}"} if api_key else None,
            "auth": (address.username, address.password) if address.username else None,
            # A proxy set for the outside world cannot reach this machine's own servers.
            "trust_env": address.host not in {"localhost", "127.0.0.1", "::1"},
        }

    @property
    def where(self) -> str:
        """Name and address, for messages."""
        return f"{self.name} at {self.url}"

    def quote(self, value: object, limit: int = 60) -> str:
        """Return a short form of what a server sent, without key and password, which servers repeat in complaints."""
        text = value if isinstance(value, str) else repr(value)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = repr(text)
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def refusal(self, response: httpx.Response, attempts: int = 1) -> tuple[Refusal, str]:
        """Return why a read answer is of no use, and a sentence that says so."""
        body, status = json_object(response), response.status_code
        message = self.quote(response.text.strip() if body is None else complaint(body), 300)
        if body is not None and status < 500 and _NO_MODEL.search(message):
            return "model_not_found", f"{self.where}: {message}"
        if (body is not None or not response.is_success) and too_long(message):
            return "too_long", f"{self.where}: a text is longer than the model reads: {message}"
        if status in (404, 405):
            path = response.request.url.path
            return "no_route", f"{self.url} has no {path} (status {status}): is it the right server for {self.name}?"
        if status in (401, 403):
            return "access", f"{self.where} refuses access (status {status}): check the API key. {message}"
        if status == 429 or status >= 500:
            kind: Refusal = "rate_limited" if status == 429 else "busy" if status == 503 else "server_error"
            times = f"{attempts} times" if attempts > 1 else "once"
            return kind, f"{self.where} failed {times} (status {status}): {message}"
        if not response.is_success or body is not None:
            to = f", points to {self.quote(response.headers['location'])}" if response.has_redirect_location else ""
            return "refused", f"{self.where} refused (status {status}{to}): {message}"
        html = "html" in response.headers.get("content-type", "") or response.text.lstrip()[:1] == "<"
        what = "an HTML page" if html else "no JSON object"
        return (
            "html" if html else "no_json",
            f"{self.where} answered with {what}: is the URL right? It begins {message}",
        )

    def broken(self, error: httpx.RequestError, timeout: float, attempts: int = 1) -> str:
        """Return what an exchange without a complete answer means."""
        import httpx

        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            what = f"nothing answers: {self.hint}"
        elif isinstance(error, httpx.TimeoutException):
            what = f"no answer within {timeout:g} s: the model may still be loading; raise timeout"
        else:
            what = "the connection broke off before the answer was complete"
        tries = f"after {attempts} attempts: " if attempts > 1 else ""
        return f"{self.where}: {what} ({tries}{self.quote(str(error), 200)})"


def model_name(model: object) -> str:
    """Return the name of a model without blanks around it and without Ollama's ``:latest``, which it may leave out."""
    # The same model under two names would be two models for caches, profiles and receipts.
    name = require_text(model, "model").strip().removesuffix(":latest")
    if not name:
        raise InputError("model is blank: give the name of a model")
    return name


def model_spec(spec: str) -> tuple[str, str | None, str | None]:
    """Return kind, model and URL of ``"kind"``, ``"kind:MODEL"`` or ``"kind:MODEL@URL"``; the kind is empty if ``spec`` has none
    of these forms.
    """
    kind, _, rest = spec.strip().partition(":")
    parts = re.fullmatch(r"(?P<model>[^@\s]*)(?:@(?P<url>https?://\S+))?", rest)
    return (kind.strip().lower(), parts["model"] or None, parts["url"]) if parts else ("", None, None)


def wrong_spec(name: str, forms: str, spec: str) -> SettingsError:
    """Return the error of a specification that has none of the forms; a password in its URL stays out of the message."""
    hidden = re.sub(r"//[^/@]*@", "//***@", spec)
    return SettingsError(f"{name} must be {forms} (URL with http:// or https://), got {show(hidden)}")


def too_long(text: str) -> bool:
    """Return whether a complaint says that a text does not fit into the model's context."""
    return bool(_TOO_LONG.search(text))


def json_object(response: httpx.Response) -> dict[str, Any] | None:
    """Return the object that an answer holds, or None."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def complaint(body: dict[str, Any]) -> object:
    """Return the complaint in an answer, whichever of the usual forms it has."""
    error = body.get("error") or body
    if isinstance(error, dict):
        return error.get("message") or error.get("detail") or error.get("code") or error
    return error


def listed(items: object, name: str) -> list[str]:
    """Return ``name`` of each object in a server's list, sorted; empty if it is no such list."""
    return (
        sorted(str(item[name]) for item in items if isinstance(item, dict) and name in item)
        if isinstance(items, list)
        else []
    )


def there(names: Sequence[str]) -> str:
    """Return the part of a message that says which models are there."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f" It has {', '.join(names[:10])}{more}." if names else ""


def retry_after(response: httpx.Response) -> float:
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


def _address(url: str) -> httpx.URL:
    import httpx  # loaded with the first server: the name of a model can be read without it

    try:
        address = httpx.URL(require_text(url, "url").strip())
    except httpx.InvalidURL as error:
        raise SettingsError(f"url cannot be read: {error}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise SettingsError("url must begin with http:// or https:// and name a host, e.g. http://localhost:11434")
    return address
