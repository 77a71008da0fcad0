"""A model server that misbehaves on demand: raw sockets, so that every byte and every pause is the test's own.

>>> with FakeServer(ollama("Hello", thinking="Hm")) as fake:  # doctest: +SKIP
...     OllamaClient("m", fake.url).complete(Request("", "Hi"))
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

DIGEST = "sha256:0123456789abcdef"


@dataclass(frozen=True)
class Reply:
    """One answer: parts are bytes to send (each a chunk of its own) and numbers of seconds to wait.

    ``framing``: "chunked", "length" (of bytes parts), "close" (until the connection ends), "raw" (no HTTP head).
    ``cut``: after so many bytes of the body, as they go over the wire, the connection closes; with ``reset`` it breaks.
    """

    parts: Iterable[bytes | float]
    status: int = 200
    type: str = "application/x-ndjson"
    headers: dict[str, str] = field(default_factory=dict)
    framing: str = "chunked"
    cut: int | None = None
    reset: bool = False

    def but(self, **changes: Any) -> Reply:
        return replace(self, **changes)

    @property
    def body(self) -> bytes:
        return b"".join(part for part in self.parts if isinstance(part, bytes))


def line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else line(value).rstrip()) + b"\n\n"


def pieces(text: str, size: int = 4) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def ollama(content: str, thinking: str = "", *, api: str = "chat", size: int = 4, **end: Any) -> Reply:
    """A streamed answer of Ollama; ``end`` goes into the last line."""

    def one(kind: str, text: str) -> dict[str, Any]:
        if api == "chat":
            message = {"role": "assistant", "content": text if kind == "content" else ""}
            return {"message": message | ({"thinking": text} if kind == "thinking" else {})}
        return {"response": text if kind == "content" else ""} | ({"thinking": text} if kind == "thinking" else {})

    words = [one("thinking", t) for t in pieces(thinking, size)] + [one("content", c) for c in pieces(content, size)]
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 50, "eval_count": len(words)} | end
    return Reply(
        [line({"model": "m", "done": False} | word) for word in words]
        + [line({"model": "m"} | one("content", "") | last)]
    )


def openai(content: str, thinking: str = "", *, key: str = "reasoning_content", size: int = 4, **end: Any) -> Reply:
    """A streamed answer of an OpenAI-compatible server; ``end`` goes into the last choice."""

    def chunk(delta: dict[str, Any], **more: Any) -> bytes:
        return event({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None} | more]})

    words = [{key: t} for t in pieces(thinking, size)] + [{"content": c} for c in pieces(content, size)]
    usage = {"prompt_tokens": 50, "completion_tokens": len(words)}
    parts = [
        chunk({"role": "assistant", "content": ""}),
        *map(chunk, words),
        chunk({}, **{"finish_reason": "stop"} | end),
    ]
    parts += [event({"model": "m", "choices": [], "usage": usage}), event(b"[DONE]")]
    return Reply(parts, type="text/event-stream")


def error(status: int, message: Any = "no", **headers: str) -> Reply:
    return Reply([line({"error": message})], status, "application/json", headers, "length")


class FakeServer:
    """Gives its replies in their order, the last one for ever; keeps what it was asked.

    Attributes
    ----------
    asked
        Path and JSON body of each POST.
    heads
        Raw head of each request.
    gone
        Set when a client leaves before the end of a reply.
    """

    def __init__(self, *replies: Reply, models: Iterable[str] = ("m", "qwen3:14b"), lists: Reply | None = None) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, Any]] = []
        self.heads: list[bytes] = []
        self.gone = threading.Event()
        named = [{"name": name, "id": name, "digest": DIGEST} for name in models]
        self.lists = lists or Reply([line({"models": named, "data": named})], 200, "application/json", {}, "length")
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._door.getsockname()[1]}"

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body in self.asked]

    def __enter__(self) -> FakeServer:
        self._door = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for thread in self._threads:
            thread.join()

    def _start(self, work: Any, *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, name="fake-server", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._door.accept()
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)
        try:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                data = b""
                while b"\r\n\r\n" not in data:
                    if not (more := connection.recv(65536)):
                        return
                    data += more
                head, _, body = data.partition(b"\r\n\r\n")
                length = [int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length")]
                while length and len(body) < length[0]:
                    if not (more := connection.recv(65536)):  # a client killed half-way through its request
                        return
                    body += more
                with self._lock:
                    self.heads.append(head)
                    method, path, _ = head.decode().split(" ", 2)
                    if method == "POST":
                        self.asked.append((path, json.loads(body)))
                        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                    else:
                        reply = self.lists
                self._answer(connection, reply)
        except OSError:
            self.gone.set()
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _answer(self, connection: socket.socket, reply: Reply) -> None:
        headers = {"content-type": reply.type, **reply.headers}
        if reply.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif reply.framing == "length":
            headers["content-length"] = str(len(reply.body))
        text = "".join(f"{key}: {value}\r\n" for key, value in headers.items() if value)
        if reply.framing != "raw":
            connection.sendall(f"HTTP/1.1 {reply.status} X\r\nconnection: close\r\n{text}\r\n".encode())
        left = reply.cut
        for part in [*reply.parts, b""] if isinstance(reply.parts, list) else reply.parts:
            if not isinstance(part, bytes):
                self._wait(connection, part)
                continue
            if reply.framing == "chunked":
                part = b"%x\r\n%b\r\n" % (len(part), part)  # the last, empty one ends the body
            connection.sendall(part if left is None else part[:left])
            if left is not None and (left := left - len(part)) <= 0:
                if reply.reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return

    def _wait(self, connection: socket.socket, seconds: float) -> None:
        """Wait, but notice a client that leaves."""
        connection.settimeout(seconds)
        try:
            if not connection.recv(1):
                raise ConnectionResetError
        except TimeoutError:
            pass
        finally:
            connection.settimeout(None)
        if self._stop.is_set():
            raise ConnectionAbortedError
