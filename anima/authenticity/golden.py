"""Golden sets: whole replies with what two annotators, language models working from one guide, find in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from anima.authenticity.files import Fields, parse_json, read_jsonl, read_utf8
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import load_markers
from anima.checks import require_number, show
from anima.errors import DataError, InputError
from anima.settings import data_path
from anima.stats import cohen_kappa

#: Sets shipped with the package.
GOLDEN_SETS = ("dev", "test")
REGIMES = ("control", "genuine", "mixed", "plain")
GOLDEN_POLES = ("certainty", "doubt", "edge", "none")


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence of a golden reply; ``intent`` is None where the two annotators disagreed, and then it is not
    scored.
    """

    text: str
    start: int
    end: int
    intent: str | None


@dataclass(frozen=True, slots=True)
class GoldenReply:
    """One reply with its labels.

    Attributes
    ----------
    sentences
        Labelled sentences in order; empty for sets that only give a chain.
    chain
        Expected chain of intents: that of the sentences, or the set's own.
    markers, suppressed, disputed_markers
        Ids of markers that count, that are negated or quoted, and that the annotators disagreed on (not scored).
    regime, pole
        None where the annotators disagreed or the set has none.
    score_range
        Low and high end of the expected 0 to 100 score; the mean of the two annotators' ranges.
    """

    id: str
    response: str
    question: str | None = None
    lang: str = ""
    sentences: tuple[GoldSentence, ...] = ()
    chain: tuple[str, ...] = ()
    markers: frozenset[str] = frozenset()
    suppressed: frozenset[str] = frozenset()
    disputed_markers: frozenset[str] = frozenset()
    regime: str | None = None
    pole: str | None = None
    score_range: tuple[float, float] | None = None


class AnnotationAgreement(NamedTuple):
    """How far the two labellings of one set agree: raw share and Cohen's kappa."""

    name: str
    n: int
    n_disputed: int
    agreement: float
    kappa: float


def label_pairs() -> dict[str, list[tuple[str, str, str]]]:
    """Return both labels of every written item and the text it was read in, by set.

    Agreed items stand in their files with the agreed label, disputed ones in ``disputed.jsonl`` with both. Prototypes
    and plain sentences are one set, because they were mixed before they were labelled again.
    """
    pairs: dict[str, list[tuple[str, str, str]]] = {}

    def agree(name: str, label: str | bool | None, reply: str) -> None:
        if label is not None:  # None stands for a disputed label
            pairs.setdefault(name, []).append((str(label), str(label), reply))

    for file in ("prototypes", "plain"):
        for _, row in read_jsonl(data_path(f"intents/{file}.jsonl")):
            agree("prototypes and plain sentences", row["intent"], row["id"])
    for _, row in read_jsonl(data_path("intents/replies.jsonl")):
        for sentence in row["sentences"]:
            agree("training replies", sentence["intent"], row["id"])
    for name in GOLDEN_SETS:
        for reply in load_golden(name):
            for item in reply.sentences:
                agree(f"golden {name}", item.intent, reply.id)
            agree(f"golden {name}: regime", reply.regime, reply.id)
            agree(f"golden {name}: pole", reply.pole, reply.id)
            for marker in load_markers():
                if marker.id not in reply.disputed_markers:
                    agree(f"golden {name}: markers", marker.id in reply.markers, reply.id)
    names = dict.fromkeys(("prototypes", "plain"), "prototypes and plain sentences") | {"replies": "training replies"}
    for _, row in read_jsonl(data_path("disputed.jsonl"), required=("set", "id", "first", "second")):
        name = names.get(row["set"], f"golden {row['set']}") + (f": {row['field']}" if "field" in row else "")
        pairs.setdefault(name, []).append((str(row["first"]), str(row["second"]), row["id"].partition("#")[0]))
    return pairs


def annotation_agreement() -> tuple[AnnotationAgreement, ...]:
    """Return how far the two labellings of the written data agree, set by set, recomputed from the data.

    Both were made by language-model annotators working from one guide: an upper bound on what people would reach.
    """
    found = []
    for name, pairs in label_pairs().items():
        first, second, replies = zip(*pairs, strict=True)
        kappa = cohen_kappa(first, second, clusters=replies if len(set(replies)) < len(replies) else None)
        disputed = sum(a != b for a, b in zip(first, second, strict=True))
        found.append(AnnotationAgreement(name, len(pairs), disputed, 1 - disputed / len(pairs), kappa.value))
    return tuple(found)


def load_golden(source: str | Path | Sequence[GoldenReply] | None = None) -> tuple[GoldenReply, ...]:
    """Load a golden set.

    Parameters
    ----------
    source
        ``"dev"`` (default) or ``"test"``; a ``.jsonl`` file in our form (see the chapter on extending); a
        ``golden_tests.json`` of the reference service; or replies already loaded.

    Raises
    ------
    DataError
        Names file, line and field.

    Examples
    --------
    >>> reply = load_golden("dev")[0]
    >>> reply.chain[0], reply.sentences[0].start
    ('VALIDATE', 0)
    """
    if source is None or (isinstance(source, str) and source in GOLDEN_SETS):
        path = data_path(f"golden/{source or 'dev'}.jsonl")
    elif isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise InputError(f"golden must be one of {', '.join(GOLDEN_SETS)} or a file, got {str(source)!r}")
    else:
        replies = tuple(source) if isinstance(source, Iterable) else (source,)
        for i, reply in enumerate(replies):
            if not isinstance(reply, GoldenReply):
                raise InputError(
                    f"golden must be one of {', '.join(GOLDEN_SETS)}, a file or a list of GoldenReply; item {i} is {show(reply)}"
                )
        return replies
    if path.suffix == ".json":
        return _service_set(path)
    found, lines = [], dict[str, int]()
    for number, row in read_jsonl(path, required=("id", "response", "sentences")):
        found.append(reply := _reply(row, f"{path}:{number}"))
        if (first := lines.setdefault(reply.id, number)) != number:
            raise DataError(f"{path}:{number}: field 'id': {reply.id!r} is also that of line {first}; ids are unique")
    return tuple(found)


def _reply(row: dict[str, Any], where: str) -> GoldenReply:
    fields = Fields(row, where)
    response = fields.text("response")
    if not isinstance(row["sentences"], list):
        raise fields.bad("sentences", "a list")
    sentences = []
    at = 0
    for k, item in enumerate(row["sentences"]):
        place = f"{where}: field 'sentences[{k}]'"
        text = item.get("text") if isinstance(item, dict) else None
        if not isinstance(text, str) or not text or "intent" not in item:
            raise DataError(f"{place}: must have 'text' and 'intent', got {show(item)}")
        intent = item["intent"]
        if intent is not None and (not isinstance(intent, str) or intent not in (UNCLASSIFIED, *catalogue())):
            raise DataError(
                f"{place}: unknown intent {show(intent)}; use one of {', '.join(catalogue())}, {UNCLASSIFIED} or null"
            )
        start = response.find(text, at)
        if start < 0:
            raise DataError(f"{place}: {show(text)} is no slice of the response after character {at}")
        at = start + len(text)
        sentences.append(GoldSentence(text, start, at, intent))
    given = row.get("score_ranges") or ([row["score_range"]] if row.get("score_range") else [])
    if not isinstance(given, list):
        raise fields.bad("score_ranges", "a list of [low, high]")
    ranges = [_range(pair, f"{where}: field 'score_ranges[{k}]'") for k, pair in enumerate(given)]
    return GoldenReply(
        id=str(row["id"]),
        response=response,
        question=fields.text("question") or None,
        lang=fields.text("lang"),
        sentences=tuple(sentences),
        chain=tuple(s.intent for s in sentences if s.intent is not None),
        markers=frozenset(fields.texts("markers")),
        suppressed=frozenset(fields.texts("suppressed")),
        disputed_markers=frozenset(fields.texts("disputed_markers")),
        regime=fields.choice("regime", REGIMES),
        pole=fields.choice("pole", GOLDEN_POLES),
        score_range=(fmean(low for low, _ in ranges), fmean(high for _, high in ranges)) if ranges else None,
    )


def _service_set(path: Path) -> tuple[GoldenReply, ...]:
    raw = parse_json(read_utf8(path), path)
    tests = raw.get("tests") if isinstance(raw, dict) else None
    if not isinstance(tests, list):
        raise DataError(f"{path}: must be an object with a list 'tests', got {show(raw)}")
    replies = []
    for i, test in enumerate(tests):
        where = f"{path}: tests[{i}]"
        if not isinstance(test, dict) or not isinstance(test.get("response"), str):
            raise DataError(f"{where}: must be an object with a string 'response', got {show(test)}")
        fields = Fields(test, where)
        given = test.get("expected_authenticity_range")
        replies.append(
            GoldenReply(
                id=str(test.get("id", i)),
                response=test["response"],
                question=fields.text("question") or None,
                lang=fields.text("lang"),
                chain=fields.texts("expected_intent_chain"),
                markers=frozenset(fields.texts("expected_markers")),
                score_range=_range(given, f"{where}: field 'expected_authenticity_range'") if given else None,
            )
        )
    return tuple(replies)


def _range(pair: Any, where: str) -> tuple[float, float]:
    try:
        low, high = (require_number(value, "it", low=0, high=100) for value in pair)
        if low > high:
            raise InputError("its low end exceeds its high end")
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} must be [low, high] within 0 to 100, got {show(pair)} ({error})") from None
    return low, high
