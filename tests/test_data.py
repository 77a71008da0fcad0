"""The written data: enough of it, well formed, labelled twice, and the golden sets independent of what the instrument learns from."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from sklearn.metrics import cohen_kappa_score

from anima.authenticity import UNCLASSIFIED, Reference, catalogue, load_golden, load_markers
from anima.authenticity.files import read_jsonl
from anima.authenticity.golden import GOLDEN_SETS, annotation_agreement, label_pairs
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGS = {"en", "es"}
AXES = {"continuidad", "cierre_artificial", "deriva", "adaptación", "textura"}
LABELS = {*catalogue(), UNCLASSIFIED}
PATTERNS = {intent.pattern for intent in catalogue().values()} | {marker.pattern for marker in load_markers()} | LABELS

#: Fields of every file and what each must hold.
TEXT, TEXTS = "non-blank text", "list of non-blank text"
SCHEMA: dict[str, dict[str, Any]] = {
    "intents/prototypes.jsonl": {"id": TEXT, "lang": LANGS, "intent": set(catalogue()), "text": TEXT, "topic": TEXT},
    "intents/plain.jsonl": {"id": TEXT, "lang": LANGS, "intent": {UNCLASSIFIED}, "text": TEXT, "topic": TEXT, "kind": TEXT},
    "intents/replies.jsonl": {"id": TEXT, "lang": LANGS, "question": TEXT, "response": TEXT, "sentences": list},
    "poles.jsonl": {"id": TEXT, "lang": LANGS, "pole": {"certainty", "doubt", "edge"}, "text": TEXT, "topic": TEXT},
    "pools.jsonl": {
        "id": TEXT, "lang": LANGS, "pool": {"core", "shadow", "edge"}, "position": {"opening", "middle", "closing", "full"},
        "pattern": PATTERNS, "secondary": list, "text": TEXT, "metrics": dict, "notes": TEXT, "tags": TEXTS,
    },
    **{
        f"golden/{name}.jsonl": {
            "id": TEXT, "lang": LANGS, "topic": TEXT, "question": TEXT, "response": TEXT, "sentences": list, "markers": list,
            "suppressed": list, "disputed_markers": list, "regime": {"control", "genuine", "plain", "mixed", None},
            "pole": {"certainty", "doubt", "edge", "none", None}, "score_ranges": list,
        }
        for name in GOLDEN_SETS
    },
}  # fmt: skip


def rows(name: str) -> list[dict[str, Any]]:
    return [row for _, row in read_jsonl(data_path(name))]


def _fits(value: Any, kind: Any) -> bool:
    if kind == TEXT:
        return isinstance(value, str) and bool(value.strip()) and value == value.strip()
    if kind == TEXTS:
        return isinstance(value, list) and bool(value) and all(_fits(item, TEXT) for item in value)
    return value in kind if isinstance(kind, set) else isinstance(value, kind)


@pytest.mark.parametrize("name", SCHEMA)
def test_every_line_has_the_fields_it_must(name: str) -> None:
    schema = SCHEMA[name]
    for number, row in read_jsonl(data_path(name)):
        assert set(row) == set(schema), f"{name}:{number}"
        bad = [field for field, kind in schema.items() if not _fits(row[field], kind)]
        assert not bad, f"{name}:{number}: {bad}"


def test_no_id_and_no_text_occurs_twice() -> None:
    ids: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    for name in SCHEMA:
        for row in rows(name):
            ids[row["id"]] += 1
            texts[" ".join(str(row.get("text") or row["response"]).casefold().split())] += 1
    assert [key for key, n in ids.items() if n > 1] == []
    assert sum(n > 1 for n in texts.values()) == 0


def test_enough_is_written() -> None:
    prototypes = Counter((row["intent"], row["lang"]) for row in rows("intents/prototypes.jsonl"))
    assert len(prototypes) == 40
    assert min(prototypes.values()) >= 30
    plain = Counter(row["lang"] for row in rows("intents/plain.jsonl"))
    assert min(plain["en"], plain["es"]) >= 200
    poles = Counter((row["pole"], row["lang"]) for row in rows("poles.jsonl"))
    assert len(poles) == 6
    assert min(poles.values()) >= 24
    pools = Counter(row["pool"] for row in rows("pools.jsonl"))
    assert pools["core"] >= 36
    assert pools["shadow"] >= 36
    assert pools["edge"] >= 18
    assert len(load_markers()) == 14
    assert len(catalogue()) == 20


def test_prototypes_vary() -> None:
    """No opening of four words more than three times in one intent and language; topics and lengths vary."""
    by_label: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows("intents/prototypes.jsonl"):
        by_label.setdefault((row["intent"], row["lang"]), []).append(row)
    for label, found in by_label.items():
        openings = Counter(tuple(re.findall(r"\w+", row["text"].lower())[:4]) for row in found)
        lengths = sorted(len(row["text"].split()) for row in found)
        assert max(openings.values()) <= 3, label
        assert len({row["topic"] for row in found}) >= 30, label
        assert lengths[-len(lengths) // 10] - lengths[len(lengths) // 10] >= 5, label


def test_pools_carry_their_reading() -> None:
    for row in rows("pools.jsonl"):
        assert set(row["metrics"]) == AXES, row["id"]
        assert all(_fits(value, TEXT) for value in row["metrics"].values()), row["id"]
        assert set(row["secondary"]) <= PATTERNS, row["id"]


def test_labelled_replies_are_cut_into_slices() -> None:
    for row in rows("intents/replies.jsonl"):
        at = 0
        for sentence in row["sentences"]:
            assert sentence["intent"] in {*LABELS, None}, row["id"]
            at = row["response"].index(sentence["text"], at) + len(sentence["text"])


@pytest.mark.parametrize(("name", "least"), [("dev", 60), ("test", 40)])
def test_golden_sets(name: str, least: int) -> None:
    replies = load_golden(name)  # also proves that every sentence is a slice, in order
    assert len(replies) >= least
    assert {reply.lang for reply in replies} == LANGS
    known = {marker.id for marker in load_markers()}
    for reply in replies:
        assert reply.sentences, reply.id
        assert known >= reply.markers | reply.suppressed | reply.disputed_markers, reply.id
        assert not reply.disputed_markers & (reply.markers | reply.suppressed), reply.id
    for row in rows(f"golden/{name}.jsonl"):
        assert len(row["score_ranges"]) == 2, row["id"]
        assert all(0 <= low < high <= 100 for low, high in row["score_ranges"]), row["id"]
    intents = {sentence.intent for reply in replies for sentence in reply.sentences}
    assert intents >= LABELS
    assert sum(bool(reply.suppressed) for reply in replies) >= 5


@pytest.fixture(scope="module")
def stop_words() -> dict[str, set[str]]:
    with data_path("stopwords.toml").open("rb") as file:
        return {lang: set(words.split()) for lang, words in tomllib.load(file).items()}


def _grams(text: str, stop: set[str], n: int = 5) -> Iterator[tuple[str, ...]]:
    words = [word for word in re.findall(r"\w+", text.lower()) if word not in stop]
    return zip(*(words[i:] for i in range(n)), strict=False)


@pytest.mark.parametrize("name", GOLDEN_SETS)
def test_golden_sentences_share_no_wording_with_what_is_learnt_from(name: str, stop_words: dict[str, set[str]]) -> None:
    """No 5-gram of content words in common. Held-out wording stays out of the message: ids only."""
    written = [
        row
        for file in ("intents/prototypes", "intents/plain", "pools", "poles", "intents/replies")
        for row in rows(f"{file}.jsonl")
    ]
    both = stop_words["en"] | stop_words["es"]
    for stop in (stop_words, dict.fromkeys(LANGS, both)):
        seen: dict[tuple[str, ...], str] = {}
        for row in written:
            seen.update(dict.fromkeys(_grams(row.get("text") or row["response"], stop[row["lang"]]), row["id"]))
        assert len(seen) > 10_000
        shared = {
            (reply.id, seen[gram])
            for reply in load_golden(name)
            for sentence in reply.sentences
            for gram in _grams(sentence.text, stop[reply.lang])
            if gram in seen
        }
        assert shared == set()


def test_golden_sets_share_no_wording_with_each_other(stop_words: dict[str, set[str]]) -> None:
    stop = stop_words["en"] | stop_words["es"]
    dev, test = (
        {gram for reply in load_golden(name) for s in reply.sentences for gram in _grams(s.text, stop)}
        for name in GOLDEN_SETS
    )
    n_shared = len(dev & test)
    assert n_shared == 0  # no more than the number in the message


def test_agreement_can_be_recomputed() -> None:
    rows_of = {row.name: row for row in annotation_agreement()}
    golden = {f"golden {name}{what}" for name in GOLDEN_SETS for what in ("", ": regime", ": pole", ": markers")}
    assert set(rows_of) == {"prototypes and plain sentences", "training replies"} | golden
    for name, pairs in label_pairs().items():
        first, second, _ = zip(*pairs, strict=True)
        equal = sum(a == b for a, b in zip(first, second, strict=True))
        assert (rows_of[name].n, rows_of[name].n_disputed) == (len(pairs), len(pairs) - equal)
        assert rows_of[name].agreement == pytest.approx(equal / len(pairs))
        assert rows_of[name].kappa == pytest.approx(cohen_kappa_score(first, second))


def test_nothing_disputed_is_left_in() -> None:
    """Every disputed item is gone from its file or unlabelled there, and every unlabelled one stands among the disputed."""
    kept = {row["id"] for name in ("intents/prototypes.jsonl", "intents/plain.jsonl") for row in rows(name)}
    disputed = rows("disputed.jsonl")
    for row in disputed:
        assert row["first"] != row["second"], row["id"]
        assert row["set"] in {"prototypes", "plain", "replies", *GOLDEN_SETS}, row["id"]
        assert row["id"] not in kept
    unlabelled = {
        f"{row['id']}#{i}"
        for row in rows("intents/replies.jsonl")
        for i, s in enumerate(row["sentences"])
        if s["intent"] is None
    }
    assert unlabelled == {row["id"] for row in disputed if row["set"] == "replies"}
    for name in GOLDEN_SETS:
        own = [row for row in disputed if row["set"] == name]
        replies = load_golden(name)
        unlabelled = {f"{reply.id}#{i}" for reply in replies for i, s in enumerate(reply.sentences) if s.intent is None}
        assert unlabelled == {row["id"] for row in own if "field" not in row}
        for field in ("regime", "pole"):
            assert {r.id for r in replies if getattr(r, field) is None} == {
                row["id"] for row in own if row.get("field") == field
            }
        markers = {(r.id, marker) for r in replies for marker in r.disputed_markers}
        assert markers == {(row["id"], row["text"]) for row in own if row.get("field") == "markers"}


def test_the_bundled_reference_holds_all_of_it() -> None:
    reference = Reference.bundled()
    assert reference.intents == tuple(catalogue())
    assert len(reference.prototypes) == len(rows("intents/prototypes.jsonl")) + len(rows("intents/plain.jsonl"))
    assert [entry.pool for entry in reference.pools] == sorted(
        (e.pool for e in reference.pools), key=["core", "shadow", "edge"].index
    )
    assert {name: len(texts) for name, texts in reference.poles.items()} == Counter(
        row["pole"] for row in rows("poles.jsonl")
    )
    assert len(reference.replies) == len(rows("intents/replies.jsonl"))
