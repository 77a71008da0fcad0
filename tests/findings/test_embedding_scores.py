"""The record of the embedding pipeline: its numbers are those of the evaluation."""

import pytest

import anima
from anima.authenticity import load_golden
from anima.authenticity.evaluate import evaluate
from anima.findings.embedding_scores import intent_f1, record


@pytest.fixture(scope="module")
def measured():
    golden = load_golden("dev")[:30]
    instrument = anima.instrument()
    analyses = instrument.analyze_many([r.response for r in golden], [r.question for r in golden], keywords="off")
    return golden, analyses, evaluate(instrument, golden, n_resamples=50)


def test_f1_by_intent_is_that_of_the_evaluation(measured):
    golden, analyses, evaluation = measured
    known = evaluation.per_intent.set_index("intent")
    for row in intent_f1(golden, analyses, n_resamples=50).to_dict("records"):
        assert row["estimate"].value == pytest.approx(known.loc[row["intent"], "f1"], nan_ok=True)
        share = known.loc[row["intent"], "support"] / known["support"].sum()
        precision, recall = share, 1.0 if share else 0.0
        always = 2 * precision * recall / (precision + recall) if share else 0.0
        assert row["baseline"].value == pytest.approx(always)


def test_the_record_has_the_numbers_and_their_rivals(measured):
    golden, analyses, evaluation = measured
    finding = record(golden, analyses, evaluation, parameters={}, n_resamples=50)
    for key, name in (
        ("intents/macro-F1", "macro-F1"),
        ("markers/F1", "marker F1"),
        ("poles/accuracy", "pole accuracy"),
    ):
        assert finding.measurement(key).estimate == evaluation.estimates[name]
    pole = finding.measurement("poles/accuracy")
    gain = finding.measurement("poles/accuracy less the most frequent").estimate
    assert gain.value == pytest.approx(pole.estimate.value - pole.baseline.value)
    assert all(item.held_out and item.evidence == "constructed" for item in finding.measurements)
    assert 0 < finding.measurement("intents/kappa").estimate.value < 1
