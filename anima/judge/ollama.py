"""A judge on an Ollama server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.checks import require_choice
from anima.endpoint import OLLAMA_URL, Endpoint, model_name
from anima.judge.client import HTTPClient
from anima.judge.decode import Decoder, Delta, count
from anima.judge.request import Completion, Limits, Options, Request
from anima.settings import env

if TYPE_CHECKING:
    from collections.abc import Iterator

OLLAMA_MODEL: Final = "qwen3:14b"
_NUM_CTX: Final = 16_384  # the server's own default of 4,096 would cut a judge's prompt


class OllamaClient(HTTPClient):
    """Asks a model of an Ollama server.

    Parameters
    ----------
    model
        Name as in ``ollama list``; default ``ANIMA_JUDGE_MODEL``, else qwen3:14b.
    url
        Address of the server; default ``ANIMA_OLLAMA_URL``, else http://localhost:11434.
    api
        Door of the server: ``/api/chat`` or ``/api/generate``; the answers are read alike.
    api_key
        For a server that wants one; never shown.
    streamed
        Whether the answer comes in pieces. If not, only the limit for the whole holds.
    limits, retries, backoff
        Time limits; repeats of a request that was not received or was answered with 429 or 503, and seconds before the
        first of them, doubled each time. ``Retry-After`` is respected up to a minute and the total limit.

    Notes
    -----
    A model reasons first unless ``think=False`` or it cannot. While it does, no schema is sent: servers then leave out
    the reasoning or put the answer into it (ollama#11545, harper#1805); ``dropped`` says so.
    """

    _missing_hint = "Get it with `ollama pull {}`"
    _list = ("/api/tags", "models", "name")
    _optional = {  # noqa: RUF012 - a constant of the class
        "think": ("think", re.compile(r"think", re.IGNORECASE)),
        "schema": ("format", re.compile(r"\bformat\b|grammar|schema", re.IGNORECASE)),
    }

    def __init__(
        self,
        model: str | None = None,
        url: str | None = None,
        *,
        api: Literal["chat", "generate"] = "chat",
        api_key: str | None = None,
        streamed: bool = True,
        limits: Limits | None = None,
        retries: int = 2,
        backoff: float = 0.5,
    ) -> None:
        name = model_name(model or env("JUDGE_MODEL", OLLAMA_MODEL))
        address = (url or env("OLLAMA_URL", OLLAMA_URL)).strip().rstrip("/").removesuffix("/api")
        hint = "start it with `ollama serve`, or correct the URL"
        endpoint = Endpoint(f"ollama:{name}", address, hint=hint, api_key=api_key)
        super().__init__(name, endpoint, streamed=streamed, limits=limits, retries=retries, backoff=backoff)
        self._api = require_choice(api, "api", ("chat", "generate"))

    def warm(self, options: Options | None = None) -> Completion:
        """Load the model, with the context that later calls use, so that the first of them does not wait for it."""
        return self.complete(Request("", "", options=options or Options()))

    def _ask(self, request: Request, refused: frozenset[str]) -> tuple[str, dict[str, Any]]:
        options = request.options
        settings = {
            "temperature": options.temperature,
            "seed": options.seed,
            "num_ctx": self._context(request),
            "num_predict": options.max_tokens,
        }
        body: dict[str, Any] = {
            "model": self.model,
            "stream": self.streamed,
            "keep_alive": options.keep_alive,
            "options": {key: value for key, value in settings.items() if value is not None},
        }
        if not request.system and not request.prompt:
            return "/api/generate", body  # only loads the model
        body |= {"truncate": False, "shift": False}  # newer servers then refuse what does not fit, older ones cut it
        think = True if options.think is None else options.think
        if "think" not in refused:
            body["think"] = think
        if request.schema is not None and "schema" not in refused and not body.get("think"):
            body["format"] = dict(request.schema)
        if self._api == "generate":
            return "/api/generate", body | {"system": request.system, "prompt": request.prompt}
        return "/api/chat", body | {"messages": messages(request)}

    def _decoder(self) -> Decoder:
        return _Lines(whole=not self.streamed)

    def _context(self, request: Request) -> int:
        return request.options.num_ctx or _NUM_CTX

    def _digest(self) -> str:
        models = self._look_up("/api/tags").get("models")
        for item in models if isinstance(models, list) else ():
            if isinstance(item, dict) and str(item.get("name")).removesuffix(":latest") == self.model:
                return str(item.get("digest") or "")
        return ""


def messages(request: Request) -> list[dict[str, str]]:
    """Return a request as the messages of a chat."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, {"role": "user", "content": request.prompt}]


class _Lines(Decoder):
    """One JSON object a line, of either door."""

    _opening = b"{"

    def _line(self, line: bytes) -> Iterator[Delta]:
        if not line.strip():
            return
        value = self._object(line)
        part = self._part(value, "message") or value
        yield from self._say("thinking", part.get("thinking"))
        yield from self._say("content", part.get("content", part.get("response")))
        if value.get("done") is True:
            self.complete = self.done = True
            self.finish = str(value.get("done_reason") or "stop")
            self.prompt_tokens = count(value.get("prompt_eval_count"))
            self.output_tokens = count(value.get("eval_count"))
            loading = count(value.get("load_duration"))
            self.load_seconds = None if loading is None else loading / 1e9
