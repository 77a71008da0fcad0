"""Behaviour of the instrument: independence of replies, ties, keywords, densities, what a result holds."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima.authenticity import UNCLASSIFIED, Instrument, Settings, assess, catalogue
from anima.authenticity.classify import rank
from anima.authenticity.poles import Poles, score_pole
from anima.authenticity.trajectory import control_density
from anima.errors import BadEmbeddingError, CalibrationWarning, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anima.authenticity import Analysis

Toy = Any  # the factory of the fixture ``toy``

SENTENCES = (
    "Great question!", "What an unusual way to look at bread.", "Water boils at 100 degrees at sea level.", "In short, it is up to you.",
    "Honestly, I can't be certain.", "Por un lado sí, por otro lado no.", "Depende de lo que entiendas por arte.", "La harina pesa 500 g.",
    "¿Qué tendría que ser cierto para que funcione?", "I don't know, and nobody measured it.", "🚀", "…", "- one\n- two\n", "\u200b", "x = 3;",
)  # fmt: skip
REPLIES = st.lists(st.sampled_from(SENTENCES), max_size=6).map(" ".join)


def bits(analysis: Analysis) -> str:
    """Everything in a result, floats to the last bit."""
    row = analysis.to_dict()
    floats = [analysis.pole.raw.hex(), *(neighbour.score.hex() for neighbour in analysis.neighbours)]
    return json.dumps([row, floats], allow_nan=False)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(REPLIES, min_size=1, max_size=12), data=st.data())
def test_a_reply_does_not_depend_on_the_others(bundled: Instrument, batch: list[str], data: st.DataObject) -> None:
    """Bit for bit: alone, in a batch, in another order, beside copies of itself."""
    order = data.draw(st.permutations(range(len(batch))))
    together = [bits(found) for found in bundled.analyze_many(batch)]
    shuffled = [bits(found) for found in bundled.analyze_many([batch[i] for i in order])]
    assert [together[i] for i in order] == shuffled
    i = data.draw(st.integers(0, len(batch) - 1))
    assert bits(bundled.analyze(batch[i])) == together[i]


@pytest.mark.parametrize("classifier", ["centroid", "centroids", "linear", "hybrid"])
def test_no_classifier_looks_at_the_neighbours_in_the_batch(bundled: Instrument, classifier: Any) -> None:
    instrument = bundled.with_settings(classifier=classifier)
    replies = [" ".join(SENTENCES[i : i + 3]) for i in range(9)]
    together = instrument.analyze_many(replies)
    assert [bits(found) for found in together] == [bits(instrument.analyze(reply)) for reply in replies]
    assert {found.classifier for found in together} == {classifier}


def test_results_are_slices_of_the_reply(bundled: Instrument) -> None:
    text = "“Great question!” she said.  It depends on what you mean by «art»…\n\n\u200bNo lo sé."
    for step in bundled.analyze(text).steps:
        assert text[step.start : step.end] == step.phrase
    for hit in bundled.analyze(text).markers:
        assert text[hit.start : hit.end] == hit.phrase


def test_chain_and_poles_of_the_toy_world(toy: Toy) -> None:
    found = toy().analyze("Validate this now. Nothing to see here. Expand on that. Certain, certain, certain it is.")
    assert found.chain == ("VALIDATE", UNCLASSIFIED, "EXPAND", UNCLASSIFIED)
    assert [step.deviation for step in found.steps] == [True, False, True, False]
    assert (found.pole.label, found.pole.bucket) == ("certeza_performada", 1)
    assert toy().analyze("A doubtful, doubtful thing it is.").pole.bucket == -1
    assert toy().analyze("It stays undecided and open.").pole.label == "frontera_edge"
    assert found.neighbours[0].entry.text == "validate text"
    assert found.pools.dominancia == "shadow"


def test_ties_go_to_what_was_declared_first(toy: Toy) -> None:
    """Two intents named once each are equally near; so are two pool texts."""
    step = toy(intent_threshold=0.1).analyze("We probe and we validate it.").steps[0]
    assert (step.intent, step.runner_up) == ("VALIDATE", "PROBE")
    assert step.margin == 0
    scores = rank(("a", "b", "c"), np.array([[0.5, 0.5, 0.5], [0.1, 0.7, 0.7]]))
    assert scores.chosen == ["a", "b"]
    assert scores.runner_up == ["b", "c"]
    near = toy().analyze("We probe and we hold_open and we validate it.").neighbours
    assert [n.entry.pool for n in near] == ["core", "shadow", "edge"]


def test_the_threshold_itself_passes() -> None:
    scores = rank(("a", "b"), np.array([[0.5, 0.4], [0.49999, 0.4]]), threshold=0.5)
    assert scores.chosen == ["a", UNCLASSIFIED]
    assert scores.confidence.tolist() == [0.5, 0.49999]


def test_many_equal_scores_go_to_the_first() -> None:
    labels = tuple(f"label {i}" for i in range(60))
    scores = rank(labels, np.full((3, 60), 0.3))
    assert scores.chosen == ["label 0"] * 3
    assert scores.runner_up == ["label 1"] * 3


def test_pole_cuts_are_strict() -> None:
    poles = Poles(np.array([0.5]), np.array([0.25]))
    vector = np.array([1.0])
    assert score_pole(vector, poles, low=-0.25, high=0.25).bucket == 0
    assert score_pole(vector, poles, low=-0.25, high=0.2499).bucket == 1
    assert score_pole(-vector, poles, low=-0.25, high=0.25).bucket == 0
    assert score_pole(-vector, poles, low=-0.2499, high=0.25).bucket == -1
    assert score_pole(vector * np.nan, poles, low=0, high=0).label == ""


def test_one_deduplicated_call_per_analysis_and_no_keyword_until_looked_at(toy: Toy, toy_embedder: Any) -> None:
    instrument = toy()
    instrument.analyze("Warm up this one.")
    toy_embedder.calls.clear()
    reply = "Validate this now. Probe that later. Validate this now."
    first, _ = instrument.analyze_many([reply, reply])
    assert [sorted(call) for call in toy_embedder.calls] == [sorted({"Validate this now.", "Probe that later.", reply})]
    row = first.to_dict()
    assert all("keyword" not in step for step in row["intent_chain"])
    first.to_frame()
    first.summary()
    first.row()
    assert len(toy_embedder.calls) == 1
    assert first.steps[0].keyword.text == "Validate"
    assert len(toy_embedder.calls) == 2
    assert first.steps[0].keyword.text == "Validate"
    assert len(toy_embedder.calls) == 2
    row = first.to_dict()
    assert row["intent_chain"][0]["keyword"] == "Validate"
    assert "keyword" not in row["intent_chain"][1]


def test_keywords_eager_and_off(toy: Toy, toy_embedder: Any) -> None:
    reply = "Validate this now. Nothing here to see."
    eager = toy().analyze(reply, keywords="eager")
    calls = len(toy_embedder.calls)
    assert [step.keyword.text for step in eager.steps] == ["Validate", "Nothing here to see."]
    assert len(toy_embedder.calls) == calls
    assert [step["keyword"] for step in eager.to_dict()["intent_chain"]] == ["Validate", "Nothing here to see."]
    assert all(step.keyword is None for step in toy().analyze(reply, keywords="off").steps)


def test_the_whole_sentence_is_the_keyword_unless_a_part_is_nearer(bundled: Instrument) -> None:
    whole = "What a lovely question about sourdough, and one that most home bakers never get round to asking!"
    for classifier in ("centroid", "hybrid"):
        step = bundled.with_settings(classifier=classifier).analyze(whole).steps[0]
        assert step.intent == "VALIDATE"
        assert step.keyword is not None
        assert step.keyword.text == whole


def test_keywords_start_from_the_one_centroid_of_the_intent_whatever_the_classifier(bundled: Instrument) -> None:
    sentence = "What a great question about tides, I must say, and so well put!"
    for classifier in ("centroid", "centroids", "linear", "hybrid"):
        instrument = bundled.with_settings(classifier=classifier)
        [step] = instrument.analyze(sentence).steps
        centroids = instrument.model.centroids(1, threshold=0.0)
        target = centroids.vectors[centroids.labels.index(step.intent)]
        found = instrument.embedder.embed([step.keyword.text, sentence]).astype(float) @ target
        assert step.intent == "VALIDATE"
        assert step.keyword.similarity == pytest.approx(found.max())
        assert found[0] == found.max()


@pytest.mark.parametrize(
    "reply", ["ok", "Ok.", "hello", "Hola", "Buenos días", "Lo ganó Argentina.", "It was Argentina."]
)
@pytest.mark.parametrize("classifier", ["hybrid", "linear"])
def test_a_reply_of_very_few_words_is_named_only_where_its_vector_bears_it_out(
    bundled: Instrument, reply: str, classifier: str
) -> None:
    found = bundled.with_settings(classifier=classifier).analyze(reply)
    [step] = found.steps
    assert step.intent == UNCLASSIFIED
    assert step.confidence == step.scores[UNCLASSIFIED]
    assert found.note == "" or found.note.endswith("is too short to name an intent by")
    if found.note:
        assert step.runner_up == max(step.scores, key=step.scores.get)
        assert step.margin == 0
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("reply", ["Great question!", "¡Excelente pregunta!"])
def test_a_short_reply_near_its_intent_keeps_its_name(bundled: Instrument, reply: str) -> None:
    found = bundled.analyze(reply)
    assert (found.chain, found.note) == (("VALIDATE",), "")


def test_short_sentences_of_a_longer_reply_keep_their_names(bundled: Instrument) -> None:
    found = bundled.analyze("Two\n\nThe tide follows the moon, and the moon follows nobody.")
    assert found.note == ""
    assert found.steps[0].confidence == max(found.steps[0].scores.values())


def test_a_plain_sentence_is_its_own_keyword_at_no_cost(toy: Toy, toy_embedder: Any) -> None:
    found = toy().analyze("Nothing here to see.")
    calls = len(toy_embedder.calls)
    assert found.steps[0].keyword.text == "Nothing here to see."
    assert found.steps[0].keyword.similarity == found.steps[0].confidence
    assert len(toy_embedder.calls) == calls


@pytest.mark.parametrize("clone", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_keeps_what_is_known_and_lets_go_of_the_model(toy: Toy, clone: Callable[[Any], Any]) -> None:
    found = toy().analyze("Validate this now. Probe that later.")
    _ = found.steps[0].keyword
    other = clone(found)
    assert other == found
    assert other.to_dict() == found.to_dict()
    assert other.steps[0].keyword.text == "Validate"
    assert other.steps[1].keyword is None
    assert len(pickle.dumps(found)) < 20_000


def test_unclassified_is_neither_control_nor_genuine() -> None:
    chain = ["VALIDATE", UNCLASSIFIED, UNCLASSIFIED, "PROBE"]
    found = assess(chain)
    assert found.control_density == 0.5
    assert found.control_density_all == 0.25
    assert found.genuine_density == 0.25
    assert found.plain_share == 0.5
    assert found.break_positions == (3,)
    assert found.pattern_break_density == 0.5
    assert (found.control_density_before_break, found.control_density_after_break) == (1.0, 0.0)
    service = assess(chain, rules="reference")
    assert service.control_density == 0.75
    assert service.pattern_break_density == 0.25
    assert np.isnan(control_density([UNCLASSIFIED]))


@pytest.mark.parametrize("chain", [[], ["CLOSE"], [UNCLASSIFIED] * 5, [UNCLASSIFIED, "PROBE", UNCLASSIFIED]])
def test_too_little_is_insufficient(chain: list[str]) -> None:
    """The service calls each of these low, on the ground that genuine exploration prevails."""
    found = assess(chain)
    assert (found.predictability, found.formulaic, found.rule) == ("insufficient", False, "T00")
    assert assess(chain, rules="reference").predictability in ("low", "moderate")


@pytest.mark.parametrize("chain", ["VALIDATE", None, ["VALIDATE", 3], [None]])
def test_what_is_no_chain(chain: Any) -> None:
    with pytest.raises(InputError, match="chain"):
        assess(chain)


@given(st.lists(st.sampled_from([*catalogue(), UNCLASSIFIED])), st.sampled_from(["anima", "reference"]))
def test_every_chain_has_a_trajectory(chain: list[str], rules: Any) -> None:
    row = assess(chain, rules=rules).to_dict()
    densities = [key for key in row if "density" in key or "share" in key]
    assert len(densities) == 7
    assert all(row[key] is None or 0 <= row[key] <= 1 for key in densities)
    assert row["chain"] == chain
    json.dumps(row, allow_nan=False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=80))
def test_any_text_gives_a_result_that_json_can_hold(toy: Toy, text: str) -> None:
    found = toy().analyze(text)
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(row["intent_chain"]) == len(found.steps) == len(found.to_frame())
    assert bool(found.steps) == any(char.isalpha() or char.isdecimal() for char in text)
    assert bool(found.note) != bool(found.steps)
    assert found.summary().endswith(".")
    for step in found.steps:
        assert text[step.start : step.end] == step.phrase


def test_the_service_field_names_are_there(toy: Toy) -> None:
    row = toy().analyze("Validate this now. Expand on that.", keywords="eager").to_dict()
    assert row.keys() >= {"intent_chain", "markers", "trajectory", "pole_score", "top_k", "baseline"}
    assert row["intent_chain"][0].keys() >= {
        "index", "phrase", "intent", "confidence", "position", "keyword", "keyword_sim", "predicted_next", "actual_next", "deviation", "extra",
    }  # fmt: skip
    assert row["baseline"].keys() == {"cosine_top1", "loaded_vectors", "dim", "cross_corpus", "triple_summary"}
    assert row["baseline"]["triple_summary"] == {"core": 1, "shadow": 1, "edge": 1}
    assert row["question"] is None


def test_undefined_is_null_with_a_reason(toy: Toy) -> None:
    for text, note in (("", "the reply is blank"), ("🤔✨", "the reply holds no letter or digit")):
        found = toy().analyze(text)
        row = found.to_dict()
        assert row["note"] == found.note == note
        assert row["pole_score"] == {"raw": None, "bucket": 0, "label": "", "sim_pos": None, "sim_neg": None}
        assert row["baseline"]["cross_corpus"] is None
        assert row["baseline"]["cosine_top1"] is None
        assert row["trajectory"]["control_density"] is None
        assert found.summary() == f"Nothing to analyse: {note}."


def test_own_thresholds_need_no_profile(toy: Toy, private_cache: Any) -> None:
    """No warning, and none of the work behind a computed profile."""
    toy().analyze("Validate this now.")
    with pytest.warns(CalibrationWarning, match=r"no calibrated thresholds for embedder 'toy-1'.*anima calibrate"):
        toy(pole_low=None).analyze("Validate this now.")


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="pole_low"):
        Settings(pole_low=3)
    with pytest.raises(InputError, match="k must be at least 1"):
        Settings(k=0)
    with pytest.raises(InputError, match="rules must be one of"):
        Settings(rules="strict")  # type: ignore[arg-type]


def test_settings_share_what_is_computed(toy: Toy, toy_embedder: Any) -> None:
    instrument = toy()
    instrument.analyze("Validate this now.")
    calls = len(toy_embedder.calls)
    other = instrument.with_settings(k=1)
    assert len(other.analyze("Validate this now.").neighbours) == 1
    assert len(toy_embedder.calls) == calls + 1
    assert len(instrument.analyze("Validate this now.").neighbours) == 3


def test_an_embedder_that_answers_badly_is_named(toy: Toy, toy_embedder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    instrument = toy()
    instrument.analyze("Validate this now.")
    monkeypatch.setattr(type(toy_embedder), "embed", lambda self, texts: np.full((len(texts), self.dim), np.nan))
    with pytest.raises(BadEmbeddingError, match=r"toy-1 .* length one, the first nan for 'Probe this now.'"):
        instrument.analyze("Probe this now.")
    monkeypatch.setattr(type(toy_embedder), "embed", lambda self, texts: np.ones((1, 3)))
    with pytest.raises(BadEmbeddingError, match=r"shape \(1, 3\)"):
        instrument.analyze("Probe this now.")


def test_progress_changes_nothing(
    toy: Toy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anima.authenticity.instrument._CHUNK", 2)
    replies = [f"Validate number {i} now." for i in range(5)]
    assert toy().analyze_many(replies, progress=True) == toy().analyze_many(replies)
    assert "embedding" in capsys.readouterr().err
