"""An optional HTTP door: the endpoints and the event stream of the reference service, over the same functions.

Made for one machine: it listens on the loopback interface, knows no users, and answers only requests that name it by a
loopback host, so that a web page open in a browser cannot use it under another name.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from anima.authenticity.calibrate import calibrate
from anima.authenticity.evaluate import evaluate
from anima.authenticity.golden import load_golden
from anima.checks import require_choice, require_int, require_number, require_texts, show
from anima.embedding import CachedEmbedder
from anima.errors import AnimaError, InputError, MissingDependencyError
from anima.judge.events import Event
from anima.judge.prompt import NotesLang
from anima.judge.resolve import Judge, get_judge, judge_name
from anima.judge.stream import Mode, Streamed, astream, collect
from anima.judge.verdict import default_instrument
from anima.stats import json_ready
from anima.version import __version__

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError as missing:
    raise MissingDependencyError(f"the server needs {missing.name}: pip install '.[serve]' in the checkout") from None

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from starlette.requests import Request

    from anima.authenticity import Instrument
    from anima.judge.request import Options

HOSTS: Final = ("localhost", "127.0.0.1", "::1", "[::1]")
PORT: Final = 8081
#: As browsers and callers send them; what is written otherwise would never match.
_ORIGIN: Final = re.compile(r"\*|[a-z][a-z0-9+.-]*://(?:[^\s/?#@:A-Z\[\]]+|\[[0-9a-f:.]+\])(?::\d+)?")
_HOST: Final = re.compile(r"\*|(?:\*\.)?[^\s/?#@:*\[\]]+|\[[0-9a-fA-F:.]+\]|[0-9a-fA-F:.]+")
_BODY_SECONDS: Final = 30.0
_CALLS: Final = 32  # connections at once; more get 503
_STREAM_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def create_app(
    judge: str | Judge = "ollama",
    *,
    instrument: Instrument | None = None,
    lang: NotesLang = "en",
    options: Options | None = None,
    max_body: int = 2**20,
    time_limit: float = 900.0,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = HOSTS,
) -> Starlette:
    """Return the application.

    Parameters
    ----------
    judge, instrument, lang, options
        As for :func:`~anima.judge.stream.stream`.
    max_body
        Bytes that a request may have; more is refused with 413.
    time_limit
        Seconds for one request; then 504, or an ``error`` event with stage ``"time_limit"``, and the judge is stopped.
    origins
        Web origins whose pages may call the server (CORS); none by default.
    hosts
        Names by which the server may be called (``Host`` header); others are refused with 400.

    Notes
    -----
    ``POST /auth`` (``{question?, response?, mode?}``), ``/auth/stream``, ``/analyze/stream``, ``/refine/stream``,
    ``/calibrate`` (``{thresholds?}``), and ``GET /evaluate``, ``/health``, ``/metrics``, ``/``, ``/stream-demo``. Bad input gets
    4xx and a reason as text. A judge that fails is no error of the request: its outcome says why there is no score.
    """
    require_choice(lang, "lang", get_args(NotesLang))
    for origin in (origins := require_texts(origins, "origins")):
        if not _ORIGIN.fullmatch(origin):
            raise InputError(
                f"origins: {show(origin)} is no web origin: write it as browsers do, e.g. http://localhost:3000"
            )
    for host in (hosts := require_texts(hosts, "hosts")):
        if not _HOST.fullmatch(host):
            raise InputError(
                f"hosts: {show(host)} is no name of a server: write it without scheme and port, e.g. example.org"
            )
    service = _Service(get_judge(judge), instrument, lang, options, max_body, time_limit)
    routes = [
        Route("/auth", service.answer(service.auth), methods=["POST"]),
        Route("/auth/stream", service.answer(service.streamer()), methods=["POST"]),
        Route("/analyze/stream", service.answer(service.streamer("analyze")), methods=["POST"]),
        Route("/refine/stream", service.answer(service.streamer("refine")), methods=["POST"]),
        Route("/calibrate", service.answer(service.calibrate), methods=["POST"]),
        Route("/evaluate", service.answer(service.evaluate), methods=["GET", "POST"]),
        Route("/health", service.answer(service.health), methods=["GET"]),
        Route("/metrics", service.answer(service.metrics), methods=["GET"]),
        Route("/", _page, methods=["GET"]),
        Route("/stream-demo", _page, methods=["GET"]),
    ]
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)]
    if origins:
        middleware.append(
            Middleware(
                CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["Content-Type"]
            )
        )
    return Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: _refused})


def serve(host: str = "127.0.0.1", port: int = PORT, judge: str | Judge = "ollama", **settings: Any) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    host, port
        Where to listen. Whoever can reach another address than the loopback one can use the judge: ``hosts`` must then
        name the server as its callers do.
    judge, settings
        As for :func:`create_app`.
    """
    require_int(port, "port", low=0, high=65535)
    if host not in HOSTS and "hosts" not in settings:
        raise InputError(
            f"host {show(host)} is not this machine alone: give the names it will be called by (--name, hosts=[…])"
        )
    app = create_app(judge, **settings)
    with _listen(host, port) as door:
        at = f"[{host}]" if ":" in host else host
        print(f"anima: serving at http://{at}:{door.getsockname()[1]}/; Ctrl+C ends it", file=sys.stderr)  # noqa: T201
        config = uvicorn.Config(app, limit_concurrency=_CALLS, log_level="warning", server_header=False)
        uvicorn.Server(config).run(sockets=[door])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(f"cannot listen on host {show(host)}, port {port}: {error}") from None


@dataclass(frozen=True)
class _Service:
    """What the endpoints share."""

    judge: Judge
    given: Instrument | None
    lang: NotesLang
    options: Options | None
    max_body: int
    time_limit: float

    def __post_init__(self) -> None:
        require_int(self.max_body, "max_body", low=1)
        require_number(self.time_limit, "time_limit", low=0, open_low=True)

    @property
    def instrument(self) -> Instrument:
        return self.given or default_instrument()

    def answer(self, work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that ends in time, ends when its caller has gone, and turns errors into reasons."""

        async def endpoint(request: Request) -> Response:
            try:
                async with asyncio.timeout(self.time_limit):
                    return await work(request)
            except TimeoutError:
                raise HTTPException(504, f"no answer within {self.time_limit:g} s") from None
            except InputError as error:
                raise HTTPException(400, str(error)) from None
            except AnimaError as error:
                raise HTTPException(500, str(error)) from None

        return endpoint

    async def auth(self, request: Request) -> Response:
        """Answer with everything at once."""
        start = time.monotonic()
        asked = await self._asked(request)
        events = await _unless_gone(request, _all(self._events(asked, asked.get("mode"))))
        if events and events[-1].data.get("stage") == "pre_analysis":
            raise HTTPException(500, f"analyze failed: {events[-1].data['message']}")
        body = _body(events) | {"latency_ms": round(1000 * (time.monotonic() - start))}
        return JSONResponse(body)

    def streamer(self, forced: Mode | None = None) -> Callable[[Request], Awaitable[Response]]:
        """Return the work of a streaming endpoint."""

        async def work(request: Request) -> Response:
            asked = await self._asked(request)
            events = self._events(asked, forced or asked.get("mode"))
            return StreamingResponse(self._frames(events), media_type="text/event-stream", headers=_STREAM_HEADERS)

        return work

    async def calibrate(self, request: Request) -> Response:
        """Sweep the thresholds; nothing is applied."""
        grid = (await self._object(request, empty=True)).get("thresholds")
        if grid is not None and not isinstance(grid, list):
            raise HTTPException(400, f"thresholds must be a list of numbers, got {show(grid)}")
        if request.query_params.get("apply", "false") != "false":
            raise HTTPException(
                400, "apply is not offered: a running server's answers do not change; use the result at its start"
            )
        found = await asyncio.to_thread(calibrate, self.instrument, None, grid)
        return JSONResponse(json_ready(found.to_dict()))

    async def evaluate(self, request: Request) -> Response:
        """Measure the instrument on the golden set."""
        if request.query_params.get("judge", "false") != "false":
            raise HTTPException(400, "judge is not offered here: judge the golden replies with anima.judge.judge_panel")
        found = await asyncio.to_thread(evaluate, self.instrument)
        return JSONResponse(json_ready(found.to_dict()))

    async def health(self, _: Request) -> Response:
        """Say what is loaded."""
        reference = self.instrument.reference
        body = {
            "status": "ok",
            "version": __version__,
            "vectors": len(reference.pools),
            "dim": await asyncio.to_thread(lambda: self.instrument.embedder.dim),
            "intents": sorted(reference.intents),
            "poles_ok": {"certainty", "doubt"} <= set(reference.poles),
            "golden_tests": len(load_golden()),
            "formal_markers": len(reference.markers),
            "judge": judge_name(self.judge),
        }
        return JSONResponse(body)

    async def metrics(self, _: Request) -> Response:
        """Say what the cache has done."""
        embedder, reference = self.instrument.embedder, self.instrument.reference
        body: dict[str, Any] = {"vectors": len(reference.pools), "intents": len(reference.intents)}
        if isinstance(embedder, CachedEmbedder):
            info = embedder.info()
            body |= {
                "cache_size": info.size,
                "cache_hits": info.hits,
                "cache_misses": info.misses,
                "hit_ratio": info.hit_ratio,
            }
        return JSONResponse(json_ready(body))

    def _events(self, asked: dict[str, Any], mode: Any) -> AsyncIterator[Event]:
        chosen: Any = mode or "both"  # null and "" are no mode
        if chosen != "refine" and asked.get("response") in (None, ""):
            raise HTTPException(400, "response is required for analyze/both")
        return astream(
            asked.get("response"),
            asked.get("question"),
            judge=self.judge,
            mode=chosen,
            instrument=self.instrument,
            lang=self.lang,
            options=self.options,
        )

    async def _frames(self, events: Any) -> AsyncIterator[bytes]:
        deadline = asyncio.get_running_loop().time() + self.time_limit
        async with aclosing(events):
            while True:
                # Around each step, not around the whole: a limit that strikes between two of them would hit the sender.
                try:
                    async with asyncio.timeout_at(deadline):
                        event = await anext(events, None)
                except TimeoutError:
                    message = f"no answer within {self.time_limit:g} s"
                    yield Event("error", {"stage": "time_limit", "message": message}).sse()
                    return
                if event is None:
                    return
                yield event.sse()

    async def _asked(self, request: Request) -> dict[str, Any]:
        asked = await self._object(request)
        for name in ("response", "question", "mode"):
            if asked.get(name) is not None and not isinstance(asked[name], str):
                raise HTTPException(400, f"{name} must be a string, got {show(asked[name])}")
        return asked

    async def _object(self, request: Request, *, empty: bool = False) -> dict[str, Any]:
        """Return the JSON object of a request, its names in lower case."""
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json":  # a form needs no permission to be sent from a strange page
            raise HTTPException(415, f"Content-Type must be application/json, got {show(kind)}")
        too_large = HTTPException(413, f"the body has more than {self.max_body:,} bytes")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self.max_body:
            raise too_large
        body = b""
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self.max_body:
                        raise too_large
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {_BODY_SECONDS:g} s") from None
        except ClientDisconnect:
            raise HTTPException(400, "the caller has gone") from None
        if empty and not body.strip():
            return {}
        try:
            pairs = json.loads(body, object_pairs_hook=_lower, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise HTTPException(400, f"bad json: {reason}") from None
        if not isinstance(pairs, dict):
            raise HTTPException(400, f"bad json: must be an object, got {show(pairs)}")
        return pairs


def _lower(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key.lower() in found:
            raise ValueError(f"the name {key!r} stands twice")
        found[key.lower()] = value
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


async def _all(events: Any) -> list[Event]:
    async with aclosing(events):
        return [event async for event in events]


async def _unless_gone(request: Request, work: Any) -> Any:
    """Return the result of ``work``, and cancel it if the caller leaves."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait([doing, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise HTTPException(400, "the caller has gone")
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


def _body(events: Sequence[Event]) -> dict[str, Any]:
    """Return the reference service's answer: what the stream would have said, in one object."""
    found: Streamed = collect(events)
    body: dict[str, Any] = {"cached": False}
    if found.analysis is not None:
        row = found.analysis.to_dict()
        body |= {key: value for key, value in row.items() if key not in ("response", "question")}
    for event in events:
        if event.name in ("complete", "parse_error") or (event.name == "error" and found.verdict is not None):
            status = found.verdict.status if found.verdict is not None else ""
            body["analysis"] = {"authenticity_score": None, "status": status} | dict(event.data)
        elif event.name == "refine_complete":
            body["refined_question"] = dict(event.data)
    parts = (
        found.analysis,
        found.verdict and found.verdict.redacted(),
        found.refinement and found.refinement.redacted(),
    )
    body["report"] = "\n\n".join(part.summary() for part in parts if part)
    return dict(json_ready(body))


async def _page(_: Request) -> Response:
    return FileResponse(Path(__file__).with_name("demo.html"), media_type="text/html")


async def _refused(_: Request, error: Exception) -> Response:
    refusal: Any = error
    detail = "POST only" if refusal.status_code == 405 and refusal.headers == {"Allow": "POST"} else refusal.detail
    return PlainTextResponse(f"{detail}\n", status_code=refusal.status_code, headers=refusal.headers)
