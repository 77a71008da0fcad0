"""Answers of judges kept in a file and given again: reruns without a server, and pages that build offline."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self

from anima.errors import DataError, InputError, JudgeError
from anima.jsonl import JsonlFile, JsonlReader, Line, read_record
from anima.judge.client import AsyncStream, Stream
from anima.judge.decode import Delta
from anima.judge.request import Completion, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from anima.judge.client import Client

_SCHEMA: Final = "anima-recording/1"
_WORDS: Final = ("content", "thinking")  # of a completion: what the pieces add up to


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One answer, or the failure of one call.

    Parameters
    ----------
    deltas
        Its pieces in the order in which they came.
    completion
        Its circumstances: the fields of :class:`~anima.judge.request.Completion` but for the words.
    request
        Hash of the request that it answered; "" for an answer that was written, which answers by the next two.
    where, seed
        Words that the prompt must hold, and the seed that must be asked for; "" and None: any.
    about
        Where it comes from, in words.
    error
        Reason and message of a call that failed, after the pieces; None if none did.
    """

    deltas: tuple[Delta, ...]
    completion: dict[str, Any]
    request: str = ""
    where: str = ""
    seed: int | None = None
    about: str = ""
    error: tuple[str, str] | None = None

    @classmethod
    def written(
        cls, content: str, thinking: str = "", *, model: str = "written", truncated: bool = False, **more: Any
    ) -> Self:
        """Return an answer written by hand; ``more`` are fields of the recording."""
        deltas = tuple(Delta(kind, text) for kind, text in (("thinking", thinking), ("content", content)) if text)  # type: ignore[arg-type]
        return cls(deltas=deltas, completion={"model": model, "truncated": truncated}, **more)

    @classmethod
    def from_line(cls, line: Line) -> Self:
        """Return the recording of a line."""
        row = read_record(line)
        try:
            if row.pop("schema") != _SCHEMA:
                raise ValueError(f"its schema is not {_SCHEMA}")
            row["deltas"] = tuple(Delta(kind, text) for kind, text in row["deltas"])
            row["error"] = tuple(row["error"]) if row.get("error") else None
            row["completion"] = {k: tuple(v) if isinstance(v, list) else v for k, v in row["completion"].items()}
            recording = cls(**row)
            recording.complete()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{line.place}: no recording ({type(error).__name__}: {error})") from None
        return recording

    def to_dict(self) -> dict[str, Any]:
        """Return the recording as a line of its file."""
        row = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"schema": _SCHEMA} | row | {"deltas": [[delta.kind, delta.text] for delta in self.deltas]}

    def complete(self) -> Completion:
        """Return the whole answer."""
        content, thinking = ("".join(one.text for one in self.deltas if one.kind == kind) for kind in _WORDS)
        return Completion(content=content, thinking=thinking, **self.completion)

    def replay(self) -> Generator[Delta, None, Completion]:
        """Yield the pieces and return the whole, or fail as the call did."""
        yield from self.deltas
        whole = self.complete()
        if self.error:
            reason, message = self.error
            raise JudgeError(message, reason, content=whole.content, thinking=whole.thinking)
        return whole


class _Local:
    """A client whose answers come through this process: two of its three ways of asking are made of the first."""

    def stream(self, request: Request) -> Stream:
        raise NotImplementedError

    def complete(self, request: Request) -> Completion:
        """Ask, and return the whole answer."""
        with self.stream(request) as pieces:
            return pieces.drain()

    def astream(self, request: Request) -> AsyncStream:
        """Ask under asyncio; as :meth:`stream`."""
        return _AsyncPieces(self.stream(request))


class Recorded(_Local):
    """A client that gives recorded answers, and asks nobody.

    Parameters
    ----------
    source
        A file written by :class:`Recorder` or by hand, or recordings.
    model
        Name of the model; None for that of the first recording.

    Notes
    -----
    An answer is given to the very request that it was recorded for: instructions, reply, pre-analysis, schema and options. Of
    several, the last counts. Written answers stand in where there is none. A request without an answer fails as if no server
    were there ("absent"), so that a batch goes on.
    """

    def __init__(self, source: str | os.PathLike[str] | Sequence[Recording], *, model: str | None = None) -> None:
        if isinstance(source, str | os.PathLike):
            file = JsonlFile(source)
            if not file.path.is_file():
                raise DataError(f"{file.path}: there is no such recording; make one with anima.judge.Recorder")
            self._recordings: list[Recording] = [one for _, one in JsonlReader(file, Recording.from_line).refresh()[1]]
            self._source = str(file.path)
        else:
            self._recordings, self._source = list(source), "the recordings given"
        if not self._recordings:
            raise InputError(f"{self._source}: holds no recording")
        self.model: str = model or str(self._recordings[0].completion.get("model", "recorded"))

    def stream(self, request: Request) -> Stream:
        """Give the answer to a request in its pieces."""
        return _Pieces(self._replay(request))

    def __repr__(self) -> str:
        return f"Recorded({self.model!r}, {len(self._recordings)} answers)"

    def _replay(self, request: Request) -> Generator[Delta, None, Completion]:
        key = request_hash(request)
        fitting = [one for one in self._recordings if one.request == key] or [
            one
            for one in self._recordings
            if not one.request and one.where in request.prompt and one.seed in (None, request.options.seed)
        ]
        if not fitting:
            raise JudgeError(
                f"{self._source}: none of {len(self._recordings)} recordings answers this request (hash {key}); what it asks "
                "has changed since, or was never recorded: record it with anima.judge.Recorder",
                "absent",
            )
        return (yield from fitting[-1].replay())


class Recorder(_Local):
    """A client that passes everything to another one and keeps the answers for :class:`Recorded`.

    Parameters
    ----------
    client
        Who is asked.
    path
        JSON-lines file that is added to. It holds the judge's words as they came, unsanitised, and of the request the hash.
    about
        A word on where the answers come from; kept with each.

    Notes
    -----
    Failed calls are kept as failures; what was cancelled or left early is not kept.
    """

    def __init__(self, client: Client, path: str | os.PathLike[str], *, about: str = "") -> None:
        self.client, self.about, self._file = client, about, JsonlFile(path)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.client.model

    def stream(self, request: Request) -> Stream:
        """Ask, and keep what comes."""
        pieces = self.client.stream(request)
        return _Pieces(self._keeping(pieces, request), pieces.cancel)

    def _keeping(self, pieces: Stream, request: Request) -> Generator[Delta, None, Completion]:
        said: list[Delta] = []
        with pieces:
            try:
                for delta in pieces:
                    said.append(delta)
                    yield delta
                whole = pieces.completion
            except JudgeError as error:
                if error.reason != "cancelled":
                    self._keep(request, said, {"model": self.model}, (error.reason, str(error)))
                raise
        self._keep(request, said, {key: value for key, value in asdict(whole).items() if key not in _WORDS})
        return whole

    def _keep(
        self,
        request: Request,
        said: Iterable[Delta],
        completion: dict[str, Any],
        error: tuple[str, str] | None = None,
    ) -> None:
        recording = Recording(
            deltas=tuple(said), completion=completion, request=request_hash(request), about=self.about, error=error
        )
        self._file.append(recording.to_dict())


def request_hash(request: Request) -> str:
    """Return what a request is known by: 32 digits of the hash of all that is asked."""
    asked = [request.system, request.prompt, request.schema, request.options.to_dict()]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


class _Pieces(Stream):
    """A stream over a generator that returns the whole answer."""

    def __init__(
        self, pieces: Generator[Delta, None, Completion], cancel: Callable[[], None] = lambda: None
    ) -> None:  # no call, hence not that of the base class
        self._said, self._cancel = pieces, cancel
        self._whole: Completion | None = None
        self._cancelled = False

    @property
    def completion(self) -> Completion:
        if self._whole is None:
            raise InputError("the answer is not complete yet: fetch all pieces of the stream first")
        return self._whole

    def cancel(self) -> None:
        self._cancelled = True
        self._cancel()

    def close(self) -> None:
        self._said.close()

    def __next__(self) -> Delta:
        if self._cancelled:
            raise JudgeError("the call was cancelled", "cancelled")
        try:
            return next(self._said)
        except StopIteration as end:
            self._whole = self._whole or end.value
            raise


class _AsyncPieces(AsyncStream):
    """The same under asyncio: each piece is waited for in a thread."""

    def __init__(self, pieces: Stream) -> None:
        self._stream = pieces

    @property
    def completion(self) -> Completion:
        return self._stream.completion

    async def aclose(self) -> None:
        self._stream.cancel()
        with suppress(ValueError):  # a thread still waits for the last piece; it gets the cancellation, and ends
            self._stream.close()

    async def __anext__(self) -> Delta:
        piece = await asyncio.to_thread(next, self._stream, None)
        if piece is None:
            raise StopAsyncIteration
        return piece
