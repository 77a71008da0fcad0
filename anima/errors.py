"""Every exception and warning that anima raises on purpose.

All errors derive from :class:`AnimaError`; those about arguments are also
:class:`ValueError`, so that callers who know nothing of anima still catch them.
A message names the argument, the value, the place and the fix.
"""

from __future__ import annotations


class AnimaError(Exception):
    """Base of every error raised on purpose."""


class InputError(AnimaError, ValueError):
    """An argument has a value that cannot be used."""


class DataError(AnimaError, ValueError):
    """A file of data cannot be read: the message names file, line and field."""


class RecordError(DataError):
    """A record breaks a rule of its format; ``path`` names the field, empty for the record as a whole."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{message} (at {path})" if path else message)
        self.path = path


class CorpusMissingError(DataError):
    """An external corpus is not on this machine; the message says how to get it."""


class SettingsError(AnimaError, ValueError):
    """A setting has a value that cannot be used."""


class MissingDependencyError(AnimaError, ImportError):
    """An optional part of the installation is needed and absent."""


class EmbeddingError(AnimaError):
    """Text could not be turned into vectors."""


class ServerUnavailableError(EmbeddingError):
    """Nothing answers at the address, or it does not answer in time."""


class ModelNotFoundError(EmbeddingError):
    """The server is there; the model is not."""


class BadEmbeddingError(EmbeddingError):
    """The server answered with something that is not a usable vector."""


class JudgeError(AnimaError):
    """The judge's server gave no complete answer.

    ``reason`` is one word, for tables (:data:`anima.judge.client.Reason`); ``content`` and ``thinking`` are what had
    come until then.
    """

    def __init__(self, message: str, reason: str, *, content: str = "", thinking: str = "") -> None:
        super().__init__(message)
        self.reason, self.content, self.thinking = reason, content, thinking

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.reason), {"content": self.content, "thinking": self.thinking}


class AnimaWarning(UserWarning):
    """Base of every warning issued on purpose."""


class CacheWarning(AnimaWarning):
    """A cache file was set aside or could not be used; results are unaffected."""


class DataWarning(AnimaWarning):
    """A file of data was mended, or a part of it was left out; the message says what and where."""


class TruncationWarning(AnimaWarning):
    """A text is longer than the embedder reads: its vector stands for the beginning only."""


class CalibrationWarning(AnimaWarning):
    """Thresholds in use were not calibrated for this embedder."""


class DegenerateDataWarning(AnimaWarning):
    """A statistic is undefined or unreliable on these data."""
