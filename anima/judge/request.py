"""What a judge is asked, how long it may take, and what comes back."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from anima.checks import require_choice, require_int, require_number, require_text

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What went wrong with a call of the judge, as one word.
Reason = Literal[
    "absent",  # nothing answers at the address
    "no_route",  # something answers, but no judge
    "access",  # the key is missing or wrong
    "model_not_found",
    "loading",  # the model is not ready yet
    "busy",
    "rate_limited",
    "prompt_too_long",
    "refused",
    "server_error",  # a status of 5xx, or an error in the midst of the answer
    "wrong_content",  # a page instead of an answer
    "garbage",  # bytes that the protocol does not know
    "cut",  # the connection broke off
    "slow_first_token",
    "slow_tokens",
    "slow_total",
    "cancelled",
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the model is to answer; None leaves a setting to the server.

    Parameters
    ----------
    temperature, seed
        0 and a fixed seed by default, so that a repeated call repeats its answer where the server allows it.
    num_ctx
        Tokens that prompt and answer share (Ollama; 16,384 there by default). Elsewhere it is not sent, but the check
        for cut prompts uses it.
    max_tokens
        Most tokens of reasoning and answer: what ends a model that never stops thinking.
    keep_alive
        How long Ollama keeps the model in memory afterwards: loading takes longer than judging.
    think
        Whether the model reasons first, or how much ("low", "medium", "high"). None: it does where it can.
    """

    temperature: float | None = 0.0
    seed: int | None = 0
    num_ctx: int | None = None
    max_tokens: int | None = 8192
    keep_alive: str | int = "10m"
    think: bool | Literal["low", "medium", "high"] | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None:
            require_number(self.temperature, "temperature", low=0)
        for name, low in (("seed", None), ("num_ctx", 1), ("max_tokens", 1)):
            if getattr(self, name) is not None:
                require_int(getattr(self, name), name, low=low)
        if self.think is not None and not isinstance(self.think, bool):
            require_choice(self.think, "think", ("low", "medium", "high"))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, JSON-ready, as a receipt lists them."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds that each phase of a call may take; repeats and pauses count towards ``total``.

    What the caller does between two pieces of a stream is not counted.
    """

    connect: float = 5.0
    first_token: float = 300.0  # a model may have to be loaded, and a long prompt read
    between_tokens: float = 60.0
    total: float = 900.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_number(value, name, low=0, open_low=True)


@dataclass(frozen=True)
class Request:
    """What a judge is asked: its instructions, the case, and a JSON schema of the answer where the server takes one."""

    system: str
    prompt: str
    schema: Mapping[str, Any] | None = None
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        require_text(self.system, "system")
        require_text(self.prompt, "prompt")


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A complete answer and its circumstances.

    Attributes
    ----------
    content, thinking
        The answer, and the reasoning that the server keeps apart from it; reasoning in tags is still in ``content``.
        An answer that is only reasoning has an empty ``content`` and is no verdict.
    model, digest
        Model as the server names it, and what identifies its weights ("" if unknown).
    prompt_tokens, output_tokens
        As counted by the server; None if it does not tell.
    truncated
        The output reached its limit.
    seconds, first_token_seconds, load_seconds
        For the whole call, until the first token, and (Ollama) for loading the model.
    attempts
        Requests that it took.
    dropped
        Wishes that the server refused and the answer came without, e.g. ``("schema",)``.
    """

    content: str
    thinking: str = ""
    model: str = ""
    digest: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    truncated: bool = False
    seconds: float = 0.0
    first_token_seconds: float | None = None
    load_seconds: float | None = None
    attempts: int = 1
    dropped: tuple[str, ...] = ()


_RUN: Final = re.compile(r"(.)\1{3,}", re.DOTALL)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: 20 % too many for English prose, up to 40 % too few for dense JSON.

    Long runs of one character, which tokenisers join, count as four.
    """
    return len(_RUN.sub(r"\1\1\1\1", text).encode("utf-8", "replace")) // 4
