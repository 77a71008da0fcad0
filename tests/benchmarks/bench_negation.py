"""Race the negation scopes against negspaCy on a blank pipeline, where installed: python tests/benchmarks/bench_negation.py.

Three tasks: 10,000 sentences each with a cue (the target is 0.8 s on one core); mixed text, half of it without a cue,
for both; and adversarial texts without punctuation, eight times as long as each other, to show that time is linear.
negspaCy judges entities, so every word is made one by a rule; its agreement with the expected scopes is printed beside
ours. Times are CPU seconds of one process, the best of several runs.
"""

from __future__ import annotations

import importlib.util
import time
from typing import TYPE_CHECKING

from anima.negation import scopes

if TYPE_CHECKING:
    from collections.abc import Callable

N, REPEATS = 10_000, 5
TARGET = 0.8
#: Sentence and the words that are denied.
WITH_CUE = [
    (
        "I do not think that we need any extra firewood, but you can take two packages of water.",
        "think that we need any extra firewood",
    ),
    ("The clerk never signed our form because nobody asked him to.", "signed our form asked him to"),
    ("She left without paying the bill and took the last train.", "paying the bill"),
    ("There is no water in the well, so we must walk on.", "water in the well"),
    ("You can't open the cellar tonight, however you may try tomorrow.", "open the cellar tonight"),
    ("They did not lock the shed and the neighbours noticed it.", "lock the shed"),
]
SPANISH = [
    ("No quiero darte ninguno de los tres paquetes de agua que me quedan para mañana.", ""),
    ("La jefa nunca leyó nuestra carta, pero pagó la factura sin protestar.", ""),
]
WITHOUT = [
    "We will take three packages of food and two of water, if that is fine with you.",
    "The neighbours rented a canoe and spent the whole day on the lake.",
]


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def ours(text: str) -> str:
    spans = sorted({span for scope in scopes(text, "en") for span in scope.tokens})
    return " ".join(text[low:high] for low, high in spans)


def peer() -> Callable[[list[str]], list[str]] | None:
    if not importlib.util.find_spec("negspacy"):
        return None
    import spacy
    from negspacy.negation import Negex  # noqa: F401  # registers the component

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "WORD", "pattern": [{"IS_ALPHA": True}]}])
    nlp.add_pipe("negex")
    return lambda texts: [" ".join(ent.text for ent in doc.ents if ent._.negex) for doc in nlp.pipe(texts)]


def main() -> None:
    english = [WITH_CUE[i % len(WITH_CUE)][0] for i in range(N)]
    spanish = [SPANISH[i % len(SPANISH)][0] for i in range(N)]
    for name, texts in (
        ("English", english),
        ("Spanish", spanish),
        ("half each, language guessed", english[::2] + spanish[::2]),
    ):
        lang = {"English": "en", "Spanish": "es"}.get(name)
        seconds = best(lambda texts=texts, lang=lang: [scopes(text, lang) for text in texts])
        print(
            f"{N:,} sentences with a cue, {name}: {seconds:.2f} s ({'within' if seconds < TARGET else 'OVER'} {TARGET} s)"
        )

    right = sum(ours(text) == expected for text, expected in WITH_CUE)
    print(f"scopes as expected: ours {right} of {len(WITH_CUE)}")
    mixed = [text for pair in zip(english[: N // 10], WITHOUT * (N // 20), strict=True) for text in pair]
    mine = best(lambda: [scopes(text, "en") for text in mixed])
    if run := peer():
        answers = run([text for text, _ in WITH_CUE])
        agreed = sum(answer == expected for answer, (_, expected) in zip(answers, WITH_CUE, strict=True))
        theirs = best(lambda: run(mixed))
        print(f"scopes as expected: negspaCy {agreed} of {len(WITH_CUE)}")
        print(
            f"mixed text, {len(mixed):,} sentences: ours {mine:.3f} s, negspaCy {theirs:.3f} s, {theirs / mine:.1f} times as long"
        )
    else:
        print(f"mixed text, {len(mixed):,} sentences: ours {mine:.3f} s (negspaCy is not installed)")

    for piece in ("not a ", "no b, ", "don't you ", "no: ", "if he had not ", "ni uno ", "sin x, "):
        short, long = (best(lambda n=n, piece=piece: scopes(piece * n, view="full")) for n in (400, 3200))
        print(f"eight times the text {piece!r}: {long / max(short, 1e-9):.1f} times as long ({long:.3f} s)")


if __name__ == "__main__":
    main()
