"""One call of a judge over HTTP: time limits that hold, repeats that are safe, and a stop that stops.

The drivers at the end only move bytes, once blocking and once async; :class:`Call` decides for both.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from anima.endpoint import MAX_WAIT, retry_after, there, too_long
from anima.errors import InputError, JudgeError
from anima.judge.decode import Decoder, Delta, Fault
from anima.judge.request import Completion, Reason, Request, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Iterator

    from anima.judge.client import HTTPClient
    from anima.judge.watch import Watch

T = TypeVar("T")

_LOADING: Final = re.compile(r"(?<!error )(?<!failed )loading model|(still|is) loading|runner to start", re.IGNORECASE)
_REASONS: Final = {
    "too_long": "prompt_too_long",
    "html": "wrong_content",
    "no_json": "wrong_content",
}  # else the same word
_CLOSED: Final = re.compile("disconnected|closed", re.IGNORECASE)
_MAX_BODY: Final = 2**18  # bytes read of an answer that is none
_LONGER: Final = "Raise num_ctx (or the server's own context length), or judge a shorter reply"


class Call:
    """One call's state and decisions: what to send, how long to wait, whether to ask again, what an outcome means."""

    decoder: Decoder

    def __init__(self, client: HTTPClient, request: Request) -> None:
        self.client, self.request, self.limits = client, request, client.limits
        self.path, self.payload = client._ask(request, frozenset())
        self._wished = {name for name, (key, _) in client._optional.items() if key in self.payload}
        if request.schema is not None:
            self._wished.add("schema")
        self.over = self.again = False
        self._lacks: set[str] = set()
        self._says_its_end = False
        self._attempt = self._requests = 0
        self._done: Completion | None = None
        self._start = self._total_end = self._phase_end = self._seconds = 0.0
        self._phase: Reason = "slow_first_token"
        self._first: float | None = None

    def begin(self) -> None:
        """Prepare an attempt."""
        now = time.monotonic()
        if not self._requests:
            self._start, self._total_end = now, now + self.limits.total
        self._attempt += 1
        self._requests += 1
        self.decoder = self.client._decoder()
        self.over = self.again = False
        self.path, self.payload = self.client._ask(self.request, frozenset(self.client._refused | self._lacks))
        # An answer in one piece has no first token; the limit for the whole holds.
        self._phase_end = now + (self.limits.first_token if self.payload.get("stream") else self.limits.total)

    @property
    def url(self) -> str:
        """Where to send it."""
        return f"{self.client.url}{self.path}"

    @property
    def timeout(self) -> httpx.Timeout:
        """Limits that the transport keeps by itself."""
        # Reading is limited by the deadline instead: one read's limit says nothing about a server that drips.
        left = max(self.deadline - time.monotonic(), 0.001)
        return httpx.Timeout(self.limits.total, connect=min(self.limits.connect, left), write=left)

    @property
    def deadline(self) -> float:
        """When the present phase must have ended, by the monotonic clock."""
        return min(self._phase_end, self._total_end)

    def held(self, seconds: float) -> None:
        """Leave out time that the caller took."""
        self._phase_end += seconds
        self._total_end += seconds
        self._start += seconds

    def accepts(self, response: httpx.Response) -> bool:
        """Return whether an answer, of which only the head is known, is one to decode."""
        kind = response.headers.get("content-type", "")
        self._says_its_end = "event-stream" in kind and "transfer-encoding" in response.headers
        return response.is_success and "html" not in kind

    def take(self, piece: bytes | httpx.RequestError | None) -> list[Delta]:
        """Return what a piece of the answer holds; None is its end, and an error an end that was not meant.

        :attr:`over` then says whether the answer has come to its end, and :attr:`again` whether to ask for it in one
        piece. One that was complete before the connection broke is good.
        """
        try:
            if isinstance(piece, bytes):
                deltas = list(self.decoder.feed(piece))
                self.over = self.decoder.done
            else:
                deltas = list(self.decoder.end())
                self.over = True
                self.again = not self.decoder.complete and self._ask_whole(piece)
                if not self.decoder.complete and not self.again:
                    raise self._ended_by(piece or httpx.RemoteProtocolError("closed early"))
        except Fault as fault:
            raise self._fault(fault) from None
        now = time.monotonic()
        self._seconds = now - self._start
        if deltas:
            if self._first is None:
                self._first = self._seconds
            self._phase, self._phase_end = "slow_tokens", now + self.limits.between_tokens
        return deltas

    def refused(self, response: httpx.Response, body: bytes) -> float:
        """Return the seconds to wait before the next attempt, or raise if there should be none."""
        client, status = self.client, response.status_code
        heads = {key: response.headers.get(key, "") for key in ("content-type", "location", "retry-after")}
        shaped = httpx.Response(
            status,
            headers={key: value for key, value in heads.items() if value},
            content=body,
            request=response.request,
        )
        if status in (400, 422, 500):
            for name, (key, pattern) in client._optional.items():
                if key in self.payload and pattern.search(shaped.text):
                    client._leave_out(name, self.payload)
                    self._attempt -= 1  # another question, not the same again
                    return 0.0
        kind, message = client._endpoint.refusal(shaped, self._attempt)
        if kind == "model_not_found":
            message += f".{there(client.models())} {client._missing_hint.format(client.model)}"
        elif kind == "too_long":
            message += f". {_LONGER}"
        loading = kind in ("busy", "server_error") and _LOADING.search(message)
        reason = "loading" if loading else _REASONS.get(kind, kind)
        if loading:
            message += ": the model is still loading; wait, or allow more retries"
        elif kind == "rate_limited":
            message += ": ask less often, or allow more retries"
        asked = retry_after(response)
        if status not in (429, 503) or self._attempt > client._retries:
            raise self._error(reason, message)
        pause = max(self._backoff(), asked)
        if asked > MAX_WAIT or time.monotonic() + pause >= self._total_end:
            raise self._error(reason, f"{message} It asks to wait {pause:.3g} s: try again later")
        return pause

    def broke(self, error: httpx.RequestError) -> float:
        """Return the seconds to wait before the next attempt, or raise if there should be none.

        Only a request that nobody received is sent again: one that broke off may still keep the server busy.
        """
        pause = self._backoff()
        connecting = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if connecting and self._attempt <= self.client._retries and time.monotonic() + pause < self._total_end:
            return pause
        raise self._ended_by(error)

    def _ended_by(self, error: httpx.RequestError) -> JudgeError:
        reason: Reason = "cut"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            reason = "absent"
        elif isinstance(error, httpx.TimeoutException):
            return self.late()
        elif isinstance(error, httpx.DecodingError) or (
            isinstance(error, httpx.RemoteProtocolError) and not _CLOSED.search(str(error))
        ):
            text = f"it does not speak HTTP: {self.client._endpoint.quote(str(error), 200)}"
            return self._error("garbage", f"{self._where}: {text}")
        return self._error(reason, self.client._endpoint.broken(error, self.limits.total, self._attempt))

    def _ask_whole(self, piece: httpx.RequestError | None) -> bool:
        """Return whether to ask once more, without a stream: after its head a server can only end it, and not say why.

        llama-cpp-python does so before the first word when a prompt is too long.
        """
        hung_up = piece is None or (isinstance(piece, httpx.RemoteProtocolError) and _CLOSED.search(str(piece)))
        if not (hung_up and self._says_its_end and self._first is None) or self._lacks:
            return False
        self._lacks.add("stream")
        self._wished.discard("usage")  # such an answer counts its tokens unasked
        self._attempt -= 1
        return True

    def late(self) -> JudgeError:
        """Return the error for a deadline that has passed."""
        limits = self.limits
        if self._total_end <= self._phase_end:
            what = f"no complete answer within {limits.total:g} s (total): raise the limit, or lower max_tokens"
            return self._error("slow_total", f"{self._where}: {what}")
        what = f"no token within {limits.first_token:g} s: the model may still be loading; raise first_token"
        if self._phase == "slow_tokens":
            what = f"nothing more for {limits.between_tokens:g} s in the midst of the answer; raise between_tokens"
        return self._error(self._phase, f"{self._where}: {what}")

    def cancelled(self) -> JudgeError:
        """Return the error for a call that was told to stop."""
        return self._error("cancelled", f"{self._where}: the call was cancelled")

    def finish(self) -> None:
        """Check and keep the complete answer; looks the model's digest up."""
        decoder = self.decoder
        self._check_prompt()
        if others := self.client._others():
            what = f"it does not have this model, and answered with another.{there(others)}"
            hint = self.client._missing_hint.format(self.client.model)
            raise self._error("model_not_found", f"{self._where}: {what} {hint}")
        self._done = Completion(
            content=decoder.content,
            thinking=decoder.thinking,
            model=decoder.model or self.client.model,
            digest=self.client._digest() or decoder.fingerprint,
            prompt_tokens=decoder.prompt_tokens,
            output_tokens=decoder.output_tokens,
            truncated=decoder.finish == "length",
            seconds=self._seconds,
            first_token_seconds=self._first,
            load_seconds=decoder.load_seconds,
            attempts=self._requests,
            dropped=tuple(sorted(name for name in self._wished if self.client._optional[name][0] not in self.payload)),
        )

    @property
    def completion(self) -> Completion:
        """The whole answer."""
        if self._done is None:
            raise InputError("the answer is not complete yet: fetch all pieces of the stream first")
        return self._done

    def _check_prompt(self) -> None:
        """Raise if the server read less than it was sent, which servers do not tell.

        Ollama keeps half of the context when a prompt does not fit into it, and counts what it kept.
        """
        read, context = self.decoder.prompt_tokens, self.client._context(self.request)
        if not read:
            return
        sent = estimate_tokens(self.request.system) + estimate_tokens(self.request.prompt)
        full = context is not None and read >= context
        half = context is not None and abs(read - context / 2) <= 8 and sent > 0.6 * context
        if full or half or sent > max(1.5 * read, read + 200):
            room = f" of a context of {context:,}" if context else ""
            raise self._error(
                "prompt_too_long",
                f"{self._where} read {read:,} tokens{room}, but was sent about {sent:,}: the prompt was cut. {_LONGER}",
            )

    @property
    def _where(self) -> str:
        return self.client._endpoint.where

    def _backoff(self) -> float:
        return self.client._backoff * 2.0 ** (self._attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311 - spreads callers

    def _fault(self, fault: Fault) -> JudgeError:
        sample = "" if fault.sample is None else f": {self.client._endpoint.quote(fault.sample, 300)}"
        message = f"{self._where}: {fault}{sample}"
        if fault.reason != "error_line":
            return self._error(fault.reason, message)
        if too_long(sample):
            return self._error("prompt_too_long", f"{message}. {_LONGER}")
        return self._error("loading" if _LOADING.search(sample) else "server_error", message)

    def _error(self, reason: str, message: str) -> JudgeError:
        decoder = getattr(self, "decoder", None)
        return JudgeError(
            message,
            reason,
            content=decoder.content if decoder else "",
            thinking=decoder.thinking if decoder else "",
        )


def drive(call: Call, watch: Watch) -> Generator[Delta, None, None]:
    """Do a call, blocking."""
    try:
        while True:
            watch.check(call)
            call.begin()
            watch.arm(call.deadline)
            trouble = None
            try:
                with httpx.Client(**call.client._http, timeout=call.timeout) as http:
                    sent = http.build_request("POST", call.url, json=call.payload, extensions={"trace": watch.trace})
                    with closing(http.send(sent, stream=True)) as response:
                        chunks = response.iter_bytes()
                        if call.accepts(response):
                            while not call.over:
                                watch.arm(call.deadline)
                                piece = _next(chunks)
                                watch.arm()
                                watch.check(call)
                                deltas = call.take(piece)
                                since = time.monotonic()
                                yield from deltas
                                call.held(time.monotonic() - since)
                            if call.again:
                                continue
                            break
                        body = b""
                        while len(body) <= _MAX_BODY and (chunk := next(chunks, None)) is not None:
                            body += chunk
            except httpx.RequestError as error:  # holds the request and its key: never the context of what is raised
                trouble = error
            watch.check(call)
            watch.sleep(call.refused(response, body) if trouble is None else call.broke(trouble))
        call.finish()
    finally:
        watch.close()


async def adrive(call: Call) -> AsyncGenerator[Delta, None]:
    """Do a call under asyncio."""
    while True:
        call.begin()
        trouble = None
        try:
            async with httpx.AsyncClient(**call.client._http, timeout=call.timeout) as http:
                sent = http.build_request("POST", call.url, json=call.payload)
                async with aclosing(await _within(call, http.send(sent, stream=True))) as response:
                    chunks = response.aiter_bytes()
                    if call.accepts(response):
                        while not call.over:
                            deltas = call.take(await _within(call, _anext(chunks)))
                            since = time.monotonic()
                            for delta in deltas:
                                yield delta
                            call.held(time.monotonic() - since)
                        if call.again:
                            continue
                        break
                    body = b""
                    while len(body) <= _MAX_BODY and (chunk := await _within(call, anext(chunks, None))) is not None:
                        body += chunk
        except httpx.RequestError as error:
            trouble = error
        # What a refusal looks up, it looks up blocking.
        pause = await asyncio.to_thread(call.refused, response, body) if trouble is None else call.broke(trouble)
        await asyncio.sleep(pause)
    await asyncio.to_thread(call.finish)


def _next(chunks: Iterator[bytes]) -> bytes | httpx.RequestError | None:
    try:
        return next(chunks, None)
    except httpx.RequestError as error:
        return error


async def _anext(chunks: AsyncIterator[bytes]) -> bytes | httpx.RequestError | None:
    try:
        return await anext(chunks, None)
    except httpx.RequestError as error:
        return error


async def _within(call: Call, step: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(call.deadline - time.monotonic()):
            return await step
    except TimeoutError:
        raise call.late() from None
