"""``rules="reference"`` against outputs of the reference service: numbers to 1e-6, labels exact, differences on purpose in one table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from anima.authenticity import Instrument, Reference, Settings, assess, chain_match, lcs_length
from anima.authenticity.evaluate import marker_coverage
from anima.authenticity.intents import pattern_for_intent
from anima.authenticity.neighbours import CrossPool, Neighbourhood, PoolEntry, cross_pool, texture
from anima.authenticity.poles import Poles, score_pole
from anima.authenticity.rules import round3
from anima.authenticity.trajectory import transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.oracle

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Seen:
    """One place where the two outputs differ. What a side leaves out is None: the service omits empty fields, we never do."""

    field: str
    theirs: Any
    ours: Any
    case: Case


@dataclass(frozen=True)
class Difference:
    """A difference on purpose: where, why, and exactly when."""

    fields: tuple[str, ...]
    reason: str
    holds: Callable[[Seen], bool]


def _added(seen: Seen) -> bool:
    return seen.theirs is None and seen.ours is not None


def _wordless(seen: Seen) -> bool:
    return not seen.case.ours["intent_chain"]


def _tied(seen: Seen) -> bool:
    """Tell whether only the order among equal scores differs, or which of two copies of a block stands at the cut."""

    def groups(rows: list[dict[str, Any]]) -> list[tuple[float, Counter[str]]]:
        found: dict[float, Counter[str]] = {}
        for row in rows:
            last = row["score"] == rows[-1]["score"]
            content = row["block_id"] if last else json.dumps(row | {"rank": 0, "score": 0}, sort_keys=True)
            found.setdefault(row["score"], Counter())[content] += 1
        return list(found.items())

    return groups(seen.theirs) == groups(seen.ours)


#: Everything in which we differ from the service under ``rules="reference"``. Nothing else may, and each of these must.
DIFFERENCES = (
    Difference(
        ("intent_chain.margin", "intent_chain.runner_up", "intent_chain.scores", "intent_chain.span"),
        "Ours: how sure a label is, and where its sentence stands.",
        _added,
    ),
    Difference(
        ("markers.span", "markers.suppressed", "markers.reason"),
        "Ours: where a marker stands and why it counts.",
        _added,
    ),
    Difference(
        (
            "trajectory.rule",
            "trajectory.control_density",
            "trajectory.control_density_all",
            "trajectory.genuine_density",
            "trajectory.plain_share",
        ),
        "Ours: the id of the deciding rule, and densities with and without UNCLASSIFIED.",
        lambda seen: seen.theirs is None,
    ),
    Difference(("cross_corpus.textura_t",), "Ours: a texture that moves; theirs cannot fall below 0.888.", _added),
    Difference(
        (
            "intent_chain.morphology",
            "intent_chain.reinforces",
            "intent_chain.infers",
            "intent_chain.controls",
            "markers.reinforces",
            "markers.infers",
            "markers.controls",
        ),
        "Decoration of theirs on which no number depends.",
        lambda seen: seen.ours is None and bool(seen.theirs),
    ),
    Difference(
        (
            "intent_chain.predicted_next",
            "intent_chain.actual_next",
            "intent_chain.deviation",
            "trajectory.break_positions",
            "trajectory.control_density_before_break",
            "trajectory.control_density_after_break",
        ),
        "They omit what is empty, false or zero, so that zero and absent look alike; we always show it.",
        lambda seen: seen.theirs is None and seen.ours in ("", False, 0, []),
    ),
    Difference(
        ("trajectory.reason",),
        "Our words; the rules behind them map one to one (tested below).",
        lambda seen: bool(seen.theirs and seen.ours),
    ),
    Difference(
        ("top_k",),
        "Order among exactly equal scores: theirs follows the layout of a heap, ours the place in the corpus.",
        _tied,
    ),
    Difference(
        ("trajectory.predictability", "trajectory.reason"),
        "A reply without a word: theirs leaves the verdict blank here, and answers low where it is asked for an empty chain; ours says low in both.",
        lambda seen: _wordless(seen) and seen.theirs == "",
    ),
    Difference(
        ("trajectory.chain",),
        "A reply without a word: theirs is null, ours an empty list, as every list that is empty.",
        lambda seen: _wordless(seen) and seen.theirs is None and seen.ours == [],
    ),
    Difference(
        ("pole_score.raw", "pole_score.sim_pos", "pole_score.sim_neg", "baseline.cosine_top1"),
        "A reply without a word is compared with nothing: theirs is 0, ours null.",
        lambda seen: _wordless(seen) and seen.theirs == 0 and seen.ours is None,
    ),
    Difference(
        ("markers",),
        "Markers need no word: ours are reported for a reply of emoji alone, theirs skips it.",
        lambda seen: (
            _wordless(seen)
            and seen.theirs == []
            and all(hit["extra"]["marker_id"].endswith("_EMOJI") for hit in seen.ours)
        ),
    ),
)


@dataclass(frozen=True)
class Case:
    """One answer of the service beside ours."""

    name: str
    theirs: dict[str, Any]
    ours: dict[str, Any]


_LISTS = ("intent_chain", "markers", "top_k")


def differing(case: Case) -> Iterator[Seen]:
    """Yield every field that differs; a list of other length, and a list of neighbours, as a whole."""
    for part in case.theirs:
        theirs, ours = case.theirs[part], case.ours[part]
        if part not in _LISTS:
            yield from _fields(part, theirs, ours, case)
        elif len(theirs) != len(ours):
            yield Seen(part, theirs, ours, case)
        elif part == "top_k":
            if any(True for a, b in zip(theirs, ours, strict=True) for _ in _fields(part, a, b, case)):
                yield Seen(part, theirs, ours, case)
        else:
            for a, b in zip(theirs, ours, strict=True):
                yield from _fields(part, a, b, case)


def _fields(part: str, theirs: dict[str, Any] | None, ours: dict[str, Any] | None, case: Case) -> Iterator[Seen]:
    theirs, ours = theirs or {}, ours or {}
    for name in sorted({*theirs, *ours}):
        a, b = theirs.get(name), ours.get(name)
        if not _same(a, b):
            yield Seen(f"{part}.{name}", a, b, case)


def _same(a: Any, b: Any) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))
    return abs(a - b) <= TOLERANCE if numbers else type(a) is type(b) and a == b


RUNS = {
    "A": ("data", Settings(rules="reference")),
    "B": ("data_poolpoles", Settings(rules="reference", intent_threshold=0.2, pole_low=-0.02, pole_high=0.02)),
}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _pre_analyses(service: Path, run: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, reply and pre-analysis of every record that has one."""
    for path in sorted(service.glob(f"{run}_*.jsonl")):
        for record in _lines(path):
            found: dict[str, Any] | None = None
            if record.get("events"):
                found = next((e["data"] for e in record["events"] if e["event"] == "pre_analysis"), None)
            elif isinstance(record.get("response"), dict):
                found = record["response"] | {"cross_corpus": record["response"]["baseline"].get("cross_corpus")}
            if found is None:
                continue
            # As the service does: the first JSON value counts, and keys in any case.
            request = {key.lower(): value for key, value in json.JSONDecoder().raw_decode(record["request"])[0].items()}
            if request.get("mode") != "refine":
                yield f"{path.stem}:{record['id']}", request["response"], found


@pytest.fixture(scope="module")
def cases(service: Path, service_embedder: Any) -> list[Case]:
    found = []
    for run, (folder, settings) in RUNS.items():
        instrument = Instrument(Reference.from_dcs_gate(service / folder), service_embedder, settings)
        names, replies, answers = zip(*_pre_analyses(service, run), strict=True)
        for name, theirs, analysis in zip(
            names, answers, instrument.analyze_many(replies, keywords="eager"), strict=True
        ):
            ours = analysis.to_dict()
            parts = {part: theirs.get(part) or [] for part in _LISTS}
            parts |= {
                "trajectory": theirs["trajectory"],
                "pole_score": theirs["pole_score"],
                "cross_corpus": theirs["cross_corpus"],
            }
            ours["cross_corpus"] = ours["baseline"].pop("cross_corpus")
            if "baseline" in theirs:
                parts["baseline"] = {key: value for key, value in theirs["baseline"].items() if key != "cross_corpus"}
            else:
                parts["baseline"] = {"cosine_top1": theirs["baseline_top1"]}
                ours["baseline"] = {"cosine_top1": ours["baseline"]["cosine_top1"]}
            found.append(Case(name, parts, ours))
    return found


def test_nothing_differs_but_what_the_table_says(cases: list[Case]) -> None:
    assert len(cases) > 100
    unexplained = [
        (case.name, seen.field, seen.theirs, seen.ours)
        for case in cases
        for seen in differing(case)
        if not any(seen.field in entry.fields and entry.holds(seen) for entry in DIFFERENCES)
    ]
    assert unexplained == []


def test_every_entry_of_the_table_differs(cases: list[Case]) -> None:
    everything = [seen for case in cases for seen in differing(case)]
    for entry in DIFFERENCES:
        for field in entry.fields:
            assert any(seen.field == field and entry.holds(seen) for seen in everything), (
                f"{field} does not differ: {entry.reason}"
            )


def test_the_cases_cover_what_they_should(cases: list[Case]) -> None:
    labels = {step["intent"] for case in cases for step in case.theirs["intent_chain"]}
    assert len(labels) >= 12
    assert {case.theirs["pole_score"]["bucket"] for case in cases} == {-1, 0, 1}
    assert any(step.get("keyword") != step["phrase"] for case in cases for step in case.theirs["intent_chain"])


def test_trajectories(service: Path) -> None:
    rules: dict[str, set[str]] = {}
    for record in _lines(service / "unit_trajectory.jsonl"):
        chain, theirs = record["chain"], record["trajectory"]
        ours = assess(chain, rules="reference").to_dict()
        rules.setdefault(theirs["reason"], set()).add(ours["rule"])
        assert (ours["predictability"], ours["formulaic"]) == (theirs["predictability"], theirs["formulaic"]), chain
        assert ours["chain"] == theirs["chain"]
        assert ours["pattern_break_density"] == pytest.approx(theirs["pattern_break_density"], abs=TOLERANCE)
        assert ours["break_positions"] == theirs.get("break_positions", [])
        for name in ("control_density_before_break", "control_density_after_break"):
            # On purpose: theirs omits zeros, and calls the density of nothing zero.
            assert ours[name] == (pytest.approx(theirs.get(name, 0), abs=TOLERANCE) if chain else None)
        steps = transitions(chain)
        assert [step.predicted_next for step in steps] == (record["predicted_next"] or [])
        assert [step.actual_next for step in steps] == (record["actual_next"] or [])
        assert [step.deviation for step in steps] == (record["deviation"] or [])
    # Their reasons and our rule ids map one to one.
    assert all(len(ids) == 1 for ids in rules.values()), rules
    ids = sorted(rule for found in rules.values() for rule in found)
    assert ids == [f"T{i:02}" for i in range(16)]


def test_reasons_and_rules_agree_in_the_answers(cases: list[Case], service: Path) -> None:
    known = {
        record["trajectory"]["reason"]: assess(record["chain"], rules="reference").rule
        for record in _lines(service / "unit_trajectory.jsonl")
    }
    for case in cases:
        if case.ours["intent_chain"]:
            assert case.ours["trajectory"]["rule"] == known[case.theirs["trajectory"]["reason"]], case.name


def _numeric(service: Path, kind: str) -> list[dict[str, Any]]:
    found = [record for record in _lines(service / "unit_numeric.jsonl") if record["kind"] == kind]
    assert found
    return found


def test_nearest_texts(service: Path) -> None:
    """The order differs from theirs only among equal scores, and does differ there: ours goes by place in the corpus."""
    reordered = 0
    for record in _numeric(service, "topk"):
        scores = np.array(record["scores"])
        vectors = np.column_stack([scores, np.sqrt(1 - scores**2)])  # at these cosines to the first axis
        entries = tuple(PoolEntry(str(i), "core") for i in range(len(scores)))
        [near] = Neighbourhood(entries, vectors).search(np.array([[1.0, 0.0]]), record["k"])
        found = near.neighbours
        assert [n.rank for n in found] == record["rank"]
        assert [n.to_dict()["score"] for n in found] == pytest.approx(record["rounded"], abs=TOLERANCE)
        ours, theirs = [int(n.entry.text) for n in found], [int(i) for i in record["order"]]
        assert ours == sorted(range(len(scores)), key=lambda i: (-scores[i], i))[: record["k"]]
        assert list(scores[ours]) == list(scores[theirs])
        reordered += ours != theirs
    assert reordered > 0


def test_cross_pool_figures(service: Path) -> None:
    for record in _numeric(service, "cross"):
        ours = cross_pool(dict(zip(("core", "shadow", "edge"), record["sims"], strict=True))).to_dict()
        del ours["textura_t"]
        assert ours == pytest.approx(record["out"], abs=TOLERANCE)


def test_texture(service: Path) -> None:
    for record in _numeric(service, "textura"):
        assert texture(record["in"]) == pytest.approx(record["out"], abs=1e-12)


def test_texture_with_a_temperature_moves() -> None:
    """The compatible one cannot fall below 0.8878, the value of one pool at 1 and two at 0."""
    assert texture((1, 0, 0)) == pytest.approx(0.8878, abs=5e-5)
    assert texture((1, 0, 0), 0.05) < 1e-6 < 0.99 < texture((0.5, 0.5, 0.5), 0.05)
    assert isinstance(cross_pool({}), CrossPool)


def test_pole_scores(service: Path) -> None:
    for record in _numeric(service, "pole"):
        pos, neg, neu = (np.array([value]) for value in record["in"])
        ours = score_pole(np.array([1.0]), Poles(pos, neg, neu), low=-0.25, high=0.25).to_dict()
        assert ours == pytest.approx(record["out"], abs=TOLERANCE)


def test_rounding(service: Path) -> None:
    for record in _numeric(service, "round3"):
        assert round3(record["in"]) == float(record["out"])


def test_longest_common_subsequences(service: Path) -> None:
    records = _lines(service / "unit_lcs.jsonl")
    for record in records:
        assert lcs_length(record["a"], record["b"]) == record["lcs"]
        assert chain_match(record["a"], record["b"]) == pytest.approx(record["ratio"], abs=1e-12)
        assert marker_coverage(record["a"], record["b"]) == pytest.approx(record["coverage"], abs=1e-12)
    assert len(records) > 200


def test_pattern_names(service: Path) -> None:
    for record in _lines(service / "unit_patternnames.jsonl"):
        assert pattern_for_intent(record["intent"]) == record["pattern"]
