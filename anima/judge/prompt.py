"""What a judge is told: the method, and one case in a fence that its text cannot open or close.

Texts live in ``corpora/judge/prompt.toml``; the method is that of the reference document, section 15.2, in own words.
What is the same for every case is the system text and has a hash; what belongs to one case is the prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from anima.authenticity.analysis import Analysis
from anima.authenticity.intents import catalogue
from anima.authenticity.neighbours import NEAR
from anima.authenticity.rules import round3
from anima.checks import require_choice, require_instance, require_text, show
from anima.errors import InputError
from anima.judge.request import Options, Request
from anima.judge.verdict import DEPTHS, PREDICTABILITIES
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anima.authenticity.markers import MarkerHit
    from anima.authenticity.neighbours import Neighbour

NotesLang = Literal["en", "es"]
PromptName = Literal["judge", "refine"]

#: Similarity from which the notes and tags written about a neighbour are shown to the judge, and its metrics.
NOTES_GATE: Final = 0.80
METRICS_GATE: Final = NEAR

_PHRASE: Final = 160  # characters of a sentence repeated in the chain; the whole of it stands in the reply
_BREAK: Final = "\N{WORD JOINER}"


def judge_request(analysis: Analysis, *, lang: NotesLang = "en", options: Options | None = None) -> Request:
    """Return what a judge is asked about one analysed reply.

    Parameters
    ----------
    analysis
        From :func:`anima.analyze`; it must hold at least one sentence.
    lang
        Language of the verdict's notes, and of the three reference cases shown.
    options
        How the model is to answer; None for the defaults.

    Raises
    ------
    InputError
        If there is no sentence to judge.

    Notes
    -----
    Question, reply and pre-analysis stand between lines that carry a mark made from their content; it occurs in none
    of them, also not in another Unicode form (``test_fence_cannot_be_closed_from_inside``). Strings that models read as
    commands are broken by an invisible character.
    """
    require_instance(analysis, "analysis", Analysis)
    if not analysis.steps:
        raise InputError(
            f"analysis has no sentence to judge ({analysis.note or 'empty reply'}): pass a reply with words"
        )
    material = {
        "QUESTION": analysis.question or "(not given)",
        "REPLY": analysis.response,
        "PRE-ANALYSIS": json.dumps(judge_context(analysis), ensure_ascii=False, separators=(",", ":")),
    }
    return _request("judge", material, lang, options)


def refine_request(question: str, *, lang: NotesLang = "en", options: Options | None = None) -> Request:
    """Return what a model is asked in order to rewrite one question; parameters as in :func:`judge_request`."""
    return _request("refine", {"QUESTION": require_text(question, "question")}, lang, options)


def judge_context(analysis: Analysis) -> dict[str, Any]:
    """Return the pre-analysis as the judge sees it: the reference service's fields, JSON-ready.

    A neighbour's notes and tags are present only if its similarity is at least 0.80, its metrics at 0.70 (both
    rounded to three decimals, as the service does). This holds for each neighbour in ``top_k`` by its own similarity;
    the ``top1_*`` fields repeat the first one's. The service shows all of them whatever the similarity.
    """
    listed = [_gated(neighbour) for neighbour in analysis.neighbours]
    first = listed[0] if listed else {}
    return {
        "intent_chain": [
            {
                "index": step.index,
                "phrase": _short(step.phrase),
                "intent": step.intent,
                "regime": step.regime,
                "confidence": round3(step.confidence),
                "runner_up": step.runner_up,
                "margin": round3(step.margin),
                "position": step.position,
                "predicted_next": step.predicted_next or None,
                "deviation": step.deviation,
            }
            for step in analysis.steps
        ],
        "trajectory": {key: value for key, value in analysis.trajectory.to_dict().items() if key != "chain"},
        "pole_score": analysis.pole.to_dict(),
        "markers": [_marker(hit) for hit in analysis.markers],
        "suppressed_markers": [_marker(hit) | {"reason": hit.reason} for hit in analysis.suppressed_markers],
        "baseline_top1": first.get("score"),
        "top1_metrics": first.get("metrics"),
        "top1_notes": first.get("notes"),
        "top1_tags": first.get("tags"),
        "top_k": listed,
        "cross_corpus": analysis.pools.to_dict() if listed else None,
    }


def answer_schema(name: PromptName = "judge") -> dict[str, Any]:
    """Return the JSON schema of the answer; every field is required, so that constrained decoding leaves none out."""
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    kinds: dict[str, dict[str, Any]] = {
        "authenticity_score": {"type": "integer", "minimum": 0, "maximum": 100},
        "depth_assessment": {"type": "string", "enum": list(DEPTHS)},
        "trajectory_predictability": {"type": "string", "enum": list(PREDICTABILITIES)},
        "pattern_breaks": texts,
        "genuine_elements": texts,
        "patterns_blocked": texts,
        "not_applicable": {"type": "boolean"},
    }
    fields = prompt_texts()[name]["fields"]
    properties = {key: kinds.get(key, text) | {"description": " ".join(gloss.split())} for key, gloss in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}


@cache
def system_text(name: PromptName = "judge", lang: NotesLang = "en") -> str:
    """Return the part of the prompt that is the same for every case."""
    require_choice(name, "name", get_args(PromptName))
    require_choice(lang, "lang", get_args(NotesLang))
    texts = prompt_texts()
    part = texts[name]
    shape = ["The answer is one JSON object with these fields:", *(f"- {k}: {v}" for k, v in part["fields"].items())]
    if name == "refine":
        patterns = dict.fromkeys(intent.pattern for intent in catalogue().values() if intent.regime == "control")
        return _paragraphs(
            part["role"], _listed("", part["rules"]), f"Patterns: {', '.join(patterns)}.", "\n".join(shape)
        )
    return _paragraphs(
        part["role"],
        _listed(part["signals_intro"], part["signals"]),
        _listed(part["restrictions_intro"], part["restrictions"]),
        part["audit"],
        _listed(
            part["intents_intro"], [f"{i.name} [{i.regime}, {i.pattern}]: {i.gloss}" for i in catalogue().values()]
        ),
        _listed(part["axes_intro"], [f"{axis['name']}: {axis['gloss']}" for axis in texts["axis"]]),
        part["evidence"],
        part["scale"],
        part["cases_intro"],
        *(_case(letter, case, lang) for letter, case in zip("ABC", texts["case"], strict=True)),
        "\n".join(shape),
    )


@cache
def prompt_hash(name: PromptName = "judge", lang: NotesLang = "en") -> str:
    """Return the hash of everything in a prompt that does not belong to one case: texts, catalogue, schema and gates."""
    task = prompt_texts()[name]["task"]
    parts = [system_text(name, lang), task["open"], task["close"], lang, NOTES_GATE, METRICS_GATE, _PHRASE]
    whole = json.dumps([*parts, answer_schema(name), prompt_texts()["defuse"]], ensure_ascii=False, sort_keys=True)
    return f"v{prompt_texts()['version']}-{hashlib.sha256(whole.encode()).hexdigest()[:16]}"


@cache
def prompt_texts() -> Mapping[str, Any]:
    """Return the texts of ``corpora/judge/prompt.toml``."""
    with data_path("judge/prompt.toml").open("rb") as file:
        return tomllib.load(file)


def defuse(text: str) -> str:
    """Return ``text`` with an invisible character inside each string that models or servers read as a command.

    Ollama and llama.cpp read turn marks wherever they stand in a prompt, Qwen 3 its thinking switches. Nothing else is
    changed, and a text that holds none comes back as it is.
    """
    return _commands().sub(rf"\1{_BREAK}", text)


def fence_mark(*texts: str) -> str:
    """Return a mark that occurs in none of the texts in any case or compatibility form.

    It is made from their content, so that the same case gives the same prompt, and whoever writes a text cannot know
    the mark before having finished it.
    """
    seen = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    material = json.dumps(texts).encode()
    # The loop practically never turns; it makes the promise hold for any hash.
    for salt in range(len(material) + 2):
        mark = "anima-" + hashlib.sha256(b"%d:" % salt + material).hexdigest()[:20]
        if not any(mark in text for text in seen):
            return mark
    raise InputError(f"texts hold every possible mark, beginning with {show(texts[0])}")  # more marks than characters


def _request(name: PromptName, material: Mapping[str, str], lang: NotesLang, options: Options | None) -> Request:
    system = system_text(name, lang)
    safe = {title: defuse(text) for title, text in material.items()}
    mark = fence_mark(*safe.values())
    task = prompt_texts()[name]["task"]
    blocks = [f"=== BEGIN {title} {mark}\n{text}\n=== END {title} {mark}" for title, text in safe.items()]
    close = task["close"].format(language=prompt_texts()["languages"][lang])
    prompt = _paragraphs(task["open"].format(mark=mark), *blocks, close)
    return Request(system, prompt, answer_schema(name), options or Options())


def _gated(neighbour: Neighbour) -> dict[str, Any]:
    row = neighbour.to_dict()
    for gate, names in ((NOTES_GATE, ("notes", "tags")), (METRICS_GATE, ("metrics",))):
        if row["score"] < gate:
            for name in names:
                row.pop(name, None)
    return row


def _marker(hit: MarkerHit) -> dict[str, Any]:
    names = ("marker_id", "pattern", "position", "severity", "weight")
    return {name: getattr(hit, name) for name in names} | {"phrase": _short(hit.phrase)}


def _short(phrase: str) -> str:
    return phrase if len(phrase) <= _PHRASE else phrase[: _PHRASE - 1] + "…"


def _case(letter: str, case: Mapping[str, Any], lang: NotesLang) -> str:
    low, high = case["range"]
    shown = {key: " ".join(text.split()) for key, text in case[lang].items()}
    return "\n".join(
        [
            f"Case {letter}: {case['title']}, score {low}-{high}",
            f"Question: {shown['question']}",
            f"Reply: {shown['reply']}",
            f"Reading: {shown['reading']}",
        ]
    )


def _listed(intro: str, items: list[str]) -> str:
    return "\n".join([*([intro.strip()] if intro else []), *(f"{i}. {item}" for i, item in enumerate(items, 1))])


def _paragraphs(*parts: str) -> str:
    # Only line breaks at the ends go: a reply's own blanks belong to it.
    return "\n\n".join(part.strip("\n") for part in parts)


@cache
def _commands() -> re.Pattern[str]:
    # A look-ahead, because commands may overlap: in "<|>" both ends need a break.
    return re.compile(f"(?=(?:{'|'.join(prompt_texts()['defuse']['patterns'])}))(.)", re.IGNORECASE | re.DOTALL)
