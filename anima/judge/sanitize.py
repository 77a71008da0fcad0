"""Secrets taken out of what is shown or logged; never applied to a text that will still be parsed.

One regular expression finds every kind of secret. A text that comes in pieces gives the same result however it is cut: what
a later piece could still turn into a secret is held back, never more than some 4,000 characters. Of two readings the safer
one is taken: ``clave: el tono`` loses a word, since ``clave`` is also a password.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final, TypeVar

T = TypeVar("T")

REDACTED: Final = "[REDACTED]"
LONGEST_WORD: Final = 2048
"""A run of this many characters without a blank is taken out whole."""

# What ends a word: blanks, and all from the CJK blocks on (emoji too), so that text written without blanks flows on.
_WORD = r"[^\s\u2e80-\U0010ffff]"
_KEYS = (
    "passw(?:or)?d", "passphrase", "secret", "token", "api[_-]?key", "access[_-]?key", "private[_-]?key", "secret[_-]?key",
    "auth[_-]?token", "contrase(?:ñ|n\u0303|n)a", r"c(?<![A-Za-z\u00c0-\u024f]c)lave",
)  # fmt: skip
_AROUND = r"[\"'`*\\\]]{0,3}"  # quotes and Markdown between a key and its sign
_KEY = rf"(?=[PpSsTtAaCc])(?i:{'|'.join(_KEYS)}){_AROUND}"
_LOGIN = rf"[Aa](?i:uthorization){_AROUND}"
_SCHEME = r"(?:(?i:basic|bearer|digest|token)\s{1,8})?"
_SIGN = r"[:=][*`]{0,3}\s{0,8}"
_IS = rf"\s{{0,8}}{_SIGN}"
_PEM = r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}"
_PEM_END = r"-----END [A-Z0-9 ]{1,80}-----"
_NAME = r"[^\s\"'`<>|,;:)\]}\\/\u2e80-\U0010ffff]"  # of a file or a user
_PATH = rf"(?:[\\/]+{_NAME}*)*"
# Values and names in any script. They are bounded, since a stream holds them back until they end.
_VALUE = r"[^\s\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]"
_QUOTED = r"(?P<{0}>\\?[\"'])(?:(?!(?P={0}))(?:\\.|[^\\\n])){{1,200}}(?P={0})(?![A-Za-z])"
_WIDE_NAME = r"[^\s\"'`<>|,;:)\]}\\/\u3001\u3002\uff0c]"
_WIDE = r"[^\s\"'`<>|,;:)\]}\u3001\u3002\uff0c]"  # and what parts them
_WIDE_PATH = rf"(?=[^\s\"'`<>|,;:)\]}}\u2e80-\U0010ffff]{{0,200}}+[\u2e80-\U0010ffff]){_WIDE}{{1,300}}{_WORD}*"
_WORDS = rf"{_WIDE_NAME}{{1,40}}+(?:\\?\x20(?![a-z]){_WIDE_NAME}{{1,40}}+)"  # a name with blanks, so many as follow
_HOME = r"(?:/(?:home|Users)/|[A-Za-z]:[\\/]{1,4}(?i:users)[\\/]{1,4})"
_SYSTEM = r"(?:/kaggle/working|/root|/var/lib)(?![A-Za-z0-9_-])"
_TOKENS = (
    "sk-[A-Za-z0-9_-]{20,}", "sk_(?:live|test)_[A-Za-z0-9]{10,}", "rk_(?:live|test)_[A-Za-z0-9]{10,}", "AKIA[A-Z0-9]{16,}",
    "ASIA[A-Z0-9]{16,}", "AIza[A-Za-z0-9_-]{35,}", r"ya29\.[A-Za-z0-9._-]+", "gh[oprsu]_[A-Za-z0-9]{20,}",
    "github_pat_[A-Za-z0-9_]{20,}", "glpat-[A-Za-z0-9_-]{20,}", "hf_[A-Za-z0-9]{30,}", "npm_[A-Za-z0-9]{30,}",
    "xox[abeoprs]-[A-Za-z0-9-]+", r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
)  # fmt: skip

# Nothing here reaches over a blank or into another script but what _PENDING knows; nothing that begins in a word ends before a secret of it does.
_SECRET = re.compile(
    "|".join(
        (
            rf"(?<!{_WORD}){_WORD}{{{LONGEST_WORD},}}",
            rf"{_KEY}{_IS}(?![\"'\\]{{0,2}}-----BEGIN )(?:{_QUOTED.format('quote')}{_WORD}*|{_VALUE}{{1,200}}{_WORD}*)",
            rf"{_LOGIN}{_IS}(?:{_QUOTED.format('mark')}{_WORD}*|[\"']?{_SCHEME}{_VALUE}{{1,200}}{_WORD}*)",
            rf"B(?:earer|EARER)\s{{1,8}}{_WORD}+",
            # "the bearer of news" is none: a token has a digit, an inner sign, or is long.
            rf"bearer\s{{1,8}}(?={_WORD}*[0-9]|[A-Za-z]+[._~+/=][A-Za-z0-9]|[A-Za-z]{{20}}){_WORD}+",
            rf"(?P<pem>{_PEM}PRIVATE KEY(?: BLOCK)?-----)(?s:.*?)(?:{_PEM_END}{_WORD}*|(?P<open>\Z))",
            r"(?P<keep>://)[^\s/@:\"'<>\u2e80-\U0010ffff]{0,128}:[^\s/\"'<>\u2e80-\U0010ffff]{1,256}(?=@)",
            rf"(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})",
            # In an answer that is shown before it is read, the letter of an escape may stand before a token.
            rf"(?P<escape>\\(?:[bfnrt]|u[0-9A-Fa-f]{{4}}))(?:{'|'.join(_TOKENS)})",
            r"(?<![A-Za-z0-9_])[A-Za-z0-9_][A-Za-z0-9_-]{38,}[A-Za-z0-9_](?:[+=][A-Za-z0-9+/=]*|/[A-Za-z0-9+/]*=+)?",
            # Base64 with its padding, or of the length of an AWS secret: a path of such a length has no mix of all kinds.
            r"(?<![A-Za-z0-9/+])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])(?=[A-Za-z+/]*[0-9])"
            r"(?:[A-Za-z0-9+/]{40}|[A-Za-z0-9+/]{38,}={1,2})(?![A-Za-z0-9+/=]|\.[A-Za-z0-9])",
            rf"{_HOME}(?:{_WORDS}{{1,3}}(?=[\\/]){_WIDE}{{1,300}}{_WORD}*|{_WIDE_PATH}|{_NAME}+{_PATH})",
            rf"{_SYSTEM}(?:(?=[\\/]){_WIDE_PATH}|{_PATH})",
        )
    )
)

# What the casefolded text of every secret but the long runs holds: a sign, a fixed string, and an expression. In that order
# they are looked for, since most text has no secret, and each is far cheaper than the next.
_NAMED = ("passw", "passphrase", "secret", "token", "key", "contrase", "clave", "authorization")
_ASSIGNED = re.compile("|".join(rf"{key}{_AROUND}\s{{0,8}}[:=]" for key in (*_KEYS, "authorization")))
_TOKEN = re.compile("|".join((*(token.casefold() for token in _TOKENS), r"bearer\s", "-----begin ")))
_PLACE = re.compile(
    r"://[^\s/@:]{0,128}:[^\s/]{1,256}@|/home/|/users/|/kaggle/working|/root|/var/lib|:[\\/]+users[\\/]"
)
_HINTS = (
    ("", ("bearer", "akia", "asia", "aiza", "ya29.", "eyj"), _TOKEN),
    ("-", ("sk-", "glpat-", "xox", "-----begin "), _TOKEN),
    ("_", ("sk_", "rk_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "hf_", "npm_"), _TOKEN),
    (":", _NAMED, _ASSIGNED),
    ("=", _NAMED, _ASSIGNED),
    ("/", ("://", "/home/", "/users/", "/kaggle/working", "/root", "/var/lib"), _PLACE),
    ("\\", ("users",), _PLACE),
)
_RUN = re.compile(rf"[A-Za-z0-9_+/=-]{{40}}|{_WORD}{{{LONGEST_WORD}}}")

# What stands before a blank, or ends in a script without blanks, and waits for what comes after it.
_OPEN = rf"(?:\\?[\"'][^\n]{{0,410}}|[\"']?{_SCHEME}{_VALUE}{{0,200}})"
_PENDING = re.compile(
    rf"(?:{_KEY}\s{{0,8}}(?:{_SIGN}(?![\"'\\]{{0,2}}-----BEGIN ){_OPEN})?|{_LOGIN}\s{{0,8}}(?:{_SIGN}{_OPEN})?|(?i:bearer)\s{{1,8}}|{_PEM}"
    rf"|{_HOME}(?:{_WORDS}{{0,3}}(?:\\?\x20)?|{_WORDS}{{1,3}}{_WIDE}{{0,300}}|{_WIDE}{{0,300}})"
    rf"|{_SYSTEM}{_WIDE}{{0,300}})\Z"
)
_LONGEST_PENDING = 200  # without a quote or another script
_LONGEST_OPEN = 640
_WORD_RUN = re.compile(f"{_WORD}*")
_END = re.compile(_PEM_END)
_LONGEST_END = 96


def sanitize(text: str) -> str:
    """Return a text with every secret replaced by ``[REDACTED]``.

    Known are keys of OpenAI, Anthropic, AWS, Google, GitHub, GitLab, Slack, Stripe, Hugging Face and npm, JWTs, bearer and
    basic logins, private keys, what follows ``password:``, ``token=``, ``contraseña:`` and the like, user and password in
    a URL, home and system folders, and unbroken runs of 40 letters and digits.

    Notes
    -----
    The fuzz target ``tests/fuzz/fuzz_sanitize.py`` looks for secrets let through and for cuts that change the result.
    """
    return _SECRET.sub(_replace, text) if _suspicious(text) else text


def redacted(one: T) -> T:
    """Return a copy of a dataclass, its texts and those in its tuples sanitised; for pages and logs, not for analysis."""
    changes: dict[str, Any] = {}
    for name, value in vars(one).items():
        if isinstance(value, str):
            changes[name] = sanitize(value)
        elif isinstance(value, tuple):
            changes[name] = tuple(sanitize(part) if isinstance(part, str) else redacted(part) for part in value)
    return replace(one, **changes)  # type: ignore[type-var]  # it is a dataclass


class StreamSanitizer:
    """:func:`sanitize` for a text that comes in pieces: what is given out, joined, is the sanitised whole.

    Examples
    --------
    >>> stream = StreamSanitizer()
    >>> stream.feed("the key is sk-ABCDEFGHIJ") + stream.feed("KLMNOPQRSTUVWXYZ, ") + stream.close()
    'the key is [REDACTED], '
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside: re.Pattern[str] | None = None  # a secret already given out as redacted goes on until this

    def feed(self, chunk: str) -> str:
        """Take a piece and return what can be shown; the rest is held back."""
        text = self._skip(self._held + chunk)
        if self._inside is not None:
            self._held = text
            return ""
        # The last word may grow, and what is pending before it may need it.
        n_word = _length(text, len(text))
        cut = len(text)
        if n_word < LONGEST_WORD:
            cut -= n_word
            if (before := text[cut - 1 : cut]).isspace() or before >= "\u2e80":
                cut = _before_pending(text, cut)
        self._held = text[cut:]
        shown = text[:cut]
        if not _suspicious(shown):
            return shown
        if n_word == LONGEST_WORD:
            self._inside = _WORD_RUN
        if "PRIVATE KEY" in shown:
            for match in _SECRET.finditer(shown):
                if match["open"] is not None:
                    self._inside, self._held = _END, shown[match.end("pem") :] + self._held
                    self._held = self._skip(self._held)
        return _SECRET.sub(_replace, shown)

    def close(self) -> str:
        """Return what was held back, sanitised; the stream can then be used again."""
        text, self._held, self._inside = ("" if self._inside is _END else self._held), "", None
        return sanitize(text)

    def _skip(self, text: str) -> str:
        """Return what is left of a text after the secret it begins in; inside it still, what may be part of its end."""
        if self._inside is _END:
            end = _END.search(text)
            if end is None:
                return text[-_LONGEST_END:]
            self._inside, text = _WORD_RUN, text[end.end() :]
        if self._inside is _WORD_RUN:
            n = _WORD_RUN.match(text).end()  # type: ignore[union-attr]  # it matches everywhere
            if n == len(text):
                return ""
            self._inside, text = None, text[n:]
        return text


def _suspicious(text: str) -> bool:
    """Return whether a text may hold a secret; cheap where it does not."""
    # First, since on a run without an end the expressions below would begin anew at each of its characters.
    if len(max(text.split(), key=len, default="")) >= 40 and _RUN.search(text):
        return True
    folded = text.casefold()
    return any(
        sign in folded and any(hint in folded for hint in hints) and expression.search(folded)
        for sign, hints, expression in _HINTS
    )


def _replace(match: re.Match[str]) -> str:
    return (match["keep"] or match["escape"] or "") + REDACTED


def _length(text: str, end: int) -> int:
    """Return the length of the word that ends at ``end``, at most that of the longest."""
    match = _WORD_RUN.match(text[max(0, end - LONGEST_WORD) : end][::-1])
    return match.end() if match else 0


def _before_pending(text: str, cut: int) -> int:
    """Return where to cut so that nothing before it waits for what comes after ``cut``."""
    near = text[max(0, cut - _LONGEST_OPEN) : cut]
    long = not near.isascii() or '"' in near or "'" in near
    reach = _LONGEST_OPEN if long and _suspicious(near) else _LONGEST_PENDING
    if not _PENDING.search(text, max(0, cut - reach), cut):
        return cut
    # Not pending is what a secret has already taken, as the second of "token: token: ", unless it may go on itself.
    taken = 0
    for match in _SECRET.finditer(text, 0, cut):
        if _PENDING.match(text, match.start(), cut):
            break
        taken = match.end()
    pending = _PENDING.search(text, max(taken, cut - reach), cut)
    return pending.start() - _length(text, pending.start()) if pending else cut
