"""Look for secrets let through and for cuts that change the result: python tests/fuzz/fuzz_sanitize.py 100000 [seed]."""

from __future__ import annotations

import random
import string
import sys
import time

from anima.judge.sanitize import REDACTED, StreamSanitizer, sanitize

ALNUM = string.ascii_letters + string.digits
URL_SAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
PROSE = (
    "the reply opens with praise", "valida al lector,", "¿y el cierre?", "(a token of trust)", "la palabra clave", "risk-averse", "keys:",
    "see /var/log and /rooted", "http://example.org/a:b", "读者 还在", "🤔", "—", "C:\\Program Files\\x", "a bearer of news", "-----", "{\"notes\":",
    "Authorization", "secret", "token: ", "password", "bearer", "-----BEGIN RSA ", "=", ":", "\"", "\n\n", "\t", "e.g.", "0.5", "x" * 39,
)  # fmt: skip
# The parts of secrets and what they are made of, to be cut and joined at random.
PARTS = (
    *PROSE,
    " ",
    "  ",
    "\n",
    "sk-",
    "AKIA",
    "ghp_",
    "eyJ",
    ".",
    "@",
    "://",
    "/home/",
    "/Users/",
    "李雷/x",
    " López/x",
    "🔑",
    "'",
    '\\"',
    "PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
)


def run(rng: random.Random, alphabet: str, n: int) -> str:
    """Return characters of an alphabet, a letter at both ends and a digit within."""
    middle = "".join(rng.choices(alphabet, k=n - 3))
    return f"a{middle}7Z"


def secret(rng: random.Random) -> tuple[str, str]:
    """Return a secret as it stands in a text, and the part that must not be shown."""
    word = run(rng, ALNUM, rng.randint(8, 30))
    long = run(rng, URL_SAFE, rng.randint(24, 90))
    name = run(rng, string.ascii_lowercase, rng.randint(5, 9))
    is_ = rng.choice((":", "=", ": ", " = ", " : ", ":\n  "))
    quote = rng.choice(("", '"', "'"))
    key = rng.choice(
        ("password", "Passwd", "passphrase", "client_secret", "token", "api_key", "API-KEY", "apikey", "access_key", "aws_secret_access_key",
         "auth_token", "private_key", "contraseña", "CONTRASEÑA", "contrasena", "contrasen\u0303a", "clave", "Clave")
    )  # fmt: skip
    upper = "".join(rng.choices(string.ascii_uppercase + string.digits, k=16))
    aws = run(rng, BASE64, 39) + rng.choice(ALNUM)
    body = "\n".join(run(rng, BASE64, 64) for _ in range(rng.randint(1, 4)))
    kind = rng.choice(("RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""))
    path = rng.choice(("", "/x.txt", "/a/b"))
    back = rng.choice(("\\", "\\\\"))
    return rng.choice(
        (
            *((f"{prefix}{long}", long) for prefix in ("sk-", "sk-proj-", "sk-ant-", "glpat-")),
            (f"sk_live_{word}x2", word), (f"AKIA{upper}", upper), (f"ASIA{upper}", upper), (f"AIza{run(rng, URL_SAFE, 35)}", "AIza"),
            (f"ya29.{word}", word), *((f"gh{one}_{word}{upper}", word) for one in "oprsu"), (f"github_pat_{word}_{upper}", word),
            (f"hf_{word}{upper}{upper}", word), (f"npm_{word}{upper}{upper}", word), (f"xox{rng.choice('abprs')}-1-{word}", word),
            (f"Bearer {word}", word), (f"bearer {word}", word), (f"BEARER\n{word}", word), (f"bearer {name}.{word}", word),
            (f"Authorization: Basic {word}", word), (f"authorization{is_}{quote}bearer {word}{quote}", word),
            (f"{quote}{key}{quote}{is_}{quote}{word}{quote}", word), (f"{key}{is_}🔑{word}", word), (f"{key}{is_}пароль{word}", word),
            (f'"{key}": "two {word}"', word), (f"/Users/李雷{name}/x", name), (f"/home/Ana López {word.title()}/x", "López"),
            (f"eyJ{word}.eyJ{word}.{long}", long), (f"eyJ{word}.{word}", word),
            (f"postgres://user:{word}@db.example:5432/x", word), (f"https://:{word}@h", word), (f"https://u:p@{word}@h", word),
            (f"/home/{name}{path}", name), (f"/Users/{name}{path}", name), (f"C:{back}Users{back}{name}{back}x.txt", name),
            (f"c:/users/{name}/x", name), (f"/root/{word}", word), (f"/var/lib/{word}", word), (f"/kaggle/working/{word}", word),
            (long + upper, long), (aws, aws), (run(rng, BASE64, 43) + "=", "7Z="),
            (f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----", body[:20]),
            (f'"private_key": "-----BEGIN {kind}PRIVATE KEY-----\\n{body}', body[-20:]),
            (f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}\n-----END PGP PRIVATE KEY BLOCK-----", body[-20:]),
            (run(rng, string.punctuation + ALNUM, 2500), "7Z"),
        )
    )  # fmt: skip


def cut(rng: random.Random, text: str) -> list[str]:
    """Return a text in pieces, some of them empty."""
    places = sorted(rng.randint(0, len(text)) for _ in range(rng.choice((1, 2, 5, 20, len(text)))))
    return [text[low:high] for low, high in zip([0, *places], [*places, len(text)], strict=True)]


def streamed(pieces: list[str]) -> str:
    stream = StreamSanitizer()
    return "".join(map(stream.feed, pieces)) + stream.close()


def check(rng: random.Random) -> None:
    """Check one text with a secret, and one of parts of secrets."""
    kept, hidden = secret(rng)
    before = " ".join(rng.choices(PROSE[:12], k=rng.randint(0, 4))) + rng.choice((" ", "\n", ' "', " (", " `", "\t"))
    after = rng.choice((" ", "\n", '" ', ") ", ", ", ". ")) + " ".join(rng.choices(PROSE[:12], k=rng.randint(0, 3)))
    text = before + kept + after
    shown = sanitize(text)
    assert REDACTED in shown, text
    assert hidden not in shown[len(before) - 1 : len(shown) - len(after)], (text, shown)
    assert shown.startswith(before.rstrip(' \n\t"(`')), (text, shown)
    for one in (text, "".join(rng.choices(PARTS, k=rng.randint(1, 25)))):
        pieces = cut(rng, one)
        assert streamed(pieces) == sanitize(one), pieces


def main() -> None:
    n, seed = map(int, [*sys.argv[1:], *("1000", "0")[len(sys.argv) - 1 :]])
    start = time.perf_counter()
    for case in range(n):
        try:
            check(random.Random(f"{seed}:{case}"))
        except BaseException:
            print(f"case {case} of seed {seed}")
            raise
    print(f"sanitizer: {n} cases, no secret let through, no cut that matters ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
