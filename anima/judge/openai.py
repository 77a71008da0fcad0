"""A judge on any server that speaks OpenAI's ``/v1/chat/completions``: OpenAI, vLLM, llama.cpp, LM Studio and others."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

from anima.checks import require_text
from anima.endpoint import Endpoint, complaint, listed, model_name
from anima.judge.client import HTTPClient
from anima.judge.decode import Decoder, Delta, Fault, count
from anima.judge.ollama import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anima.judge.request import Limits, Request

_ANY_NAME: Final = {"llamacpp", "me"}  # owners in the lists of llama.cpp and llama-cpp-python
_BROKEN_OFF: Final = (
    "it broke the answer off, as llama-cpp-python does when another request comes in: start that with "
    "--interrupt_requests False, or ask one at a time"
)


class OpenAIClient(HTTPClient):
    """Asks through ``/v1/chat/completions``.

    Parameters
    ----------
    model
        Name of the model on the server.
    url
        Address of the server, with or without ``/v1``.
    api_key
        Default ``OPENAI_API_KEY``; never shown. Local servers need none.
    streamed, limits, retries, backoff
        As for :class:`~anima.judge.ollama.OllamaClient`.

    Notes
    -----
    A schema, the count of tokens in a stream, and ``think`` (which only vLLM, llama.cpp and their like know) are sent
    until the server refuses them; the refused one is left out from then on, and ``dropped`` says so. A schema is first
    put into its older form (``json_object`` with a schema), the only one that some servers know.

    llama.cpp's servers answer to any name with the model that they hold. Once per client their list is compared, so
    that no verdict bears the name of a model that did not give it.
    """

    _missing_hint = "Correct the model's name, or load it on the server"
    _list = ("/v1/models", "data", "id")
    _optional = {  # noqa: RUF012 - a constant of the class
        "schema": ("response_format", re.compile(r"response.?format|json.?schema|grammar|structured", re.IGNORECASE)),
        "usage": ("stream_options", re.compile(r"stream.?options|include.?usage", re.IGNORECASE)),
        "think": ("chat_template_kwargs", re.compile(r"chat_template_kwargs|enable_thinking", re.IGNORECASE)),
    }

    def __init__(
        self,
        model: str,
        url: str,
        *,
        api_key: str | None = None,
        streamed: bool = True,
        limits: Limits | None = None,
        retries: int = 2,
        backoff: float = 0.5,
    ) -> None:
        name = model_name(model)
        key = (api_key or os.environ.get("OPENAI_API_KEY", "")).strip() or None
        address = require_text(url, "url").strip().rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
        endpoint = Endpoint(f"openai:{name}", address, hint="start the server, or correct the URL", api_key=key)
        super().__init__(name, endpoint, streamed=streamed, limits=limits, retries=retries, backoff=backoff)
        self._is_listed = False

    def _ask(self, request: Request, refused: frozenset[str]) -> tuple[str, dict[str, Any]]:
        options = request.options
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages(request),
            "stream": self.streamed and "stream" not in refused,
            "temperature": options.temperature,
            "seed": options.seed,
            "max_tokens": options.max_tokens,
        }
        if body["stream"] and "usage" not in refused:
            body["stream_options"] = {"include_usage": True}
        if request.schema is not None and "schema" not in refused:
            schema = dict(request.schema)
            body["response_format"] = (
                {"type": "json_object", "schema": schema}
                if "json_schema" in refused
                else {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
            )
        if options.think is not None and "think" not in refused:
            body["chat_template_kwargs"] = {"enable_thinking": bool(options.think)}
        return "/v1/chat/completions", {key: value for key, value in body.items() if value is not None}

    def _leave_out(self, name: str, payload: dict[str, Any]) -> None:
        newer = name == "schema" and payload["response_format"]["type"] == "json_schema"
        super()._leave_out("json_schema" if newer else name, payload)

    def _others(self) -> list[str]:
        if self._is_listed:
            return []
        path, key, name = self._list
        models = self._look_up(path).get(key)
        names, owners = listed(models, name), set(listed(models, "owned_by"))
        self._is_listed = self.model in {one.removesuffix(":latest") for one in names} or (
            bool(names) and not (owners and owners <= _ANY_NAME)
        )
        return [] if self._is_listed else names

    def _decoder(self) -> Decoder:
        return _Events(whole=not self.streamed)


class _Events(Decoder):
    """Server-sent events, or one JSON object from a server that does not stream."""

    _opening = b"data:"

    def __init__(self, *, whole: bool = False) -> None:
        super().__init__(whole=whole)
        self._data: list[bytes] = []
        self._event = b""
        self._begun = False

    def _take(self, data: bytes) -> Iterator[Delta]:
        if not self._begun and (head := data.lstrip()):
            self._begun = True
            self._whole |= head.startswith(b"{")
        return super()._take(data)

    def _rest(self, rest: bytes) -> Iterator[Delta]:
        if self._whole:
            self._opening = b"{"
            yield from self._choice(self._object(rest), "message")
            self.complete = self.done = True
        else:
            yield from self._line(rest)
            yield from self._line(b"")  # an event at the very end may lack its blank line

    def _line(self, line: bytes) -> Iterator[Delta]:
        line = line.rstrip()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name in (b"event", b"error"):
            self._event = name if name == b"error" else value
            self._data += [value] if name == b"error" else []
        elif line and name not in (b"", b"id", b"retry"):  # a line that begins with a colon is a comment
            raise Fault("garbage", "it sends no server-sent events", line[:2000].decode("utf-8", "replace"))
        elif not line and self._data:
            data, event = b"\n".join(self._data), self._event
            self._data, self._event = [], b""
            yield from self._dispatch(data.strip(), event)

    def _dispatch(self, data: bytes, event: bytes) -> Iterator[Delta]:
        if data == b"[DONE]":
            if not self.complete:  # no choice said why it ended
                raise Fault("cut", _BROKEN_OFF)
            self.done = True
        elif data:
            value = self._object(data)
            if event == b"error":
                raise Fault("error_line", "it reports an error within its answer", complaint(value))
            yield from self._choice(value, "delta")

    def _choice(self, value: dict[str, Any], key: str) -> Iterator[Delta]:
        usage = self._part(value, "usage")
        self.prompt_tokens = count(usage.get("prompt_tokens", self.prompt_tokens))
        self.output_tokens = count(usage.get("completion_tokens", self.output_tokens))
        self.fingerprint = str(value.get("system_fingerprint") or self.fingerprint)
        choices = value.get("choices", [] if key == "delta" else None)
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise Fault("garbage", "it sends no list of choices", value)
        for choice in choices[:1]:
            part = self._part(choice, key)
            yield from self._say("thinking", part.get("reasoning_content") or part.get("reasoning"))
            yield from self._say("content", part.get("content"))
            if finish := choice.get("finish_reason"):
                if finish in ("content_filter", "error"):
                    raise Fault("error_line", "it ended the answer", finish)
                self.complete, self.finish = True, str(finish)
