"""From the bytes of a model's answer to its words; no input or output, so that blocking and async callers share it.

A decoder is fed with whatever pieces the network delivers and may cut anywhere: inside a line, a character or a
surrogate pair.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.endpoint import complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE: Final = 4 * 2**20  # bytes; the longest honest line is a whole answer that was not streamed
MAX_BYTES: Final = 64 * 2**20

Kind = Literal["thinking", "content"]


@dataclass(frozen=True)
class Delta:
    """A piece of the model's reasoning or of its answer."""

    kind: Kind
    text: str


class Fault(Exception):  # noqa: N818 - never leaves the package: the client makes it a JudgeError
    """An answer went wrong; ``reason`` as in :class:`~anima.errors.JudgeError`, ``sample`` what the server sent.

    The sample is not part of the message, so that nobody shows it before secrets are taken out.
    """

    def __init__(self, reason: str, text: str, sample: object = None) -> None:
        super().__init__(text)
        self.reason, self.sample = reason, sample


class Decoder(ABC):
    """What both protocols share: lines, limits, and the words so far.

    Attributes
    ----------
    complete
        The model has ended its answer; a connection that breaks now takes nothing away.
    done
        Nothing more can come.
    finish
        Why the model ended: "stop", "length" (its output was cut), …
    """

    _opening: bytes  # how a line begins

    def __init__(self, *, whole: bool = False) -> None:
        self.complete = self.done = False
        self.model = self.finish = self.fingerprint = ""
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.load_seconds: float | None = None
        self._whole = whole
        self._start: bytes | None = b""
        self._buffer = bytearray()
        self._received = 0
        self._words: dict[Kind, list[str]] = {"thinking": [], "content": []}
        self._half: defaultdict[Kind, str] = defaultdict(str)

    @property
    def content(self) -> str:
        """The answer so far."""
        return "".join(self._words["content"])

    @property
    def thinking(self) -> str:
        """The reasoning so far that the server keeps apart from the answer."""
        return "".join(self._words["thinking"])

    def feed(self, data: bytes) -> Iterator[Delta]:
        """Yield what the next bytes of the answer hold.

        Raises
        ------
        Fault
            If the server reports an error, or this is no answer of its protocol.
        """
        if self._start is not None:  # a byte order mark is no part of the answer; it may come in pieces
            data = self._start + data
            if len(data) < len(BOM_UTF8) and BOM_UTF8.startswith(data):
                self._start = data
                return
            self._start, data = None, data.removeprefix(BOM_UTF8)
        yield from self._take(data)

    def _take(self, data: bytes) -> Iterator[Delta]:
        seen = len(self._buffer)  # holds no line end: a huge line is searched only once
        self._buffer += data
        self._received += len(data)
        while not self.done and not self._whole and (end := self._buffer.find(b"\n", seen)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            seen = 0
            yield from self._line(line.rstrip(b"\r"))
        if len(self._buffer) > MAX_LINE or self._received > MAX_BYTES:
            what = f"a line of more than {MAX_LINE:,}" if self._received <= MAX_BYTES else f"more than {MAX_BYTES:,}"
            raise Fault("garbage", f"it sends {what} bytes, which is no judge's answer")

    def end(self) -> Iterator[Delta]:
        """Yield what the last bytes hold, when no more come; :attr:`complete` then says whether the answer is whole."""
        rest = ((self._start or b"") + self._buffer).strip()
        self._buffer.clear()
        if not self.done and not self.complete:
            try:
                yield from self._rest(rest)
            except Fault as fault:
                # The beginning of a line is what a cut leaves.
                opening = rest[: len(self._opening)]
                if fault.reason != "garbage" or not self._opening.startswith(opening):
                    raise

    def _rest(self, rest: bytes) -> Iterator[Delta]:
        return self._line(rest)

    @abstractmethod
    def _line(self, line: bytes) -> Iterator[Delta]:
        """Read one line without its end."""

    def _object(self, raw: bytes) -> dict[str, Any]:
        sample = raw[:2000].decode("utf-8", "replace")
        try:
            value = json.loads(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise Fault(
                "garbage", f"it sends bytes that are not UTF-8 (byte {error.start} of a line)", sample
            ) from None
        except (ValueError, RecursionError):
            raise Fault("garbage", "it sends no JSON", sample) from None
        if not isinstance(value, dict):
            raise Fault("garbage", "it sends JSON that is no object", value)
        if value.get("error"):
            raise Fault("error_line", "it reports an error within its answer", complaint(value))
        self.model = str(value.get("model") or self.model)
        return value

    def _part(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        """Return the object under ``key``; empty if absent."""
        part = value.get(key)
        if part is not None and not isinstance(part, dict):
            raise Fault("garbage", f"{key} is no object", part)
        return part or {}

    def _say(self, kind: Kind, text: object) -> Iterator[Delta]:
        if text is None or text == "":
            return
        if not isinstance(text, str):
            raise Fault("garbage", f"{kind} is no text", text)
        text, self._half[kind] = self._half[kind] + text, ""
        if "\ud800" <= text[-1] <= "\udbff":  # half of a character; the other half comes with the next token
            text, self._half[kind] = text[:-1], text[-1]
        if not text.isascii():
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if text:
            self._words[kind].append(text)
            yield Delta(kind, text)


def count(value: object) -> int | None:
    """Return a number of tokens, or None where a server sends something else."""
    return value if type(value) is int and value >= 0 else None
