"""The record of the embedding pipeline: its numbers are those of the evaluation."""

import pytest
from statsmodels.stats.proportion import proportion_confint

import anima
from anima.authenticity import load_golden
from anima.authenticity.evaluate import evaluate, with_width
from anima.findings.embedding_scores import intent_f1, record
from anima.stats import Estimate


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
    # The first three replies have 21 sentences: 3 are CLOSE, 2 VALIDATE, 1 MIRROR, none ANCHOR.
    few = intent_f1(golden[:3], analyses[:3], n_resamples=50).set_index("intent")["baseline"]
    always = {"CLOSE": 6 / 24, "VALIDATE": 4 / 23, "MIRROR": 2 / 22, "ANCHOR": 0}
    assert {intent: few[intent].value for intent in always} == pytest.approx(always)


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
    over_all = finding.measurement("markers/F1 less every marker").estimate
    markers = finding.measurement("markers/F1")
    assert over_all.value == pytest.approx(markers.estimate.value - markers.baseline.value)
    over_shuffled = finding.measurement("intents/macro-F1 less shuffled labels").estimate
    intents = finding.measurement("intents/macro-F1")
    assert over_shuffled.value == pytest.approx(intents.estimate.value - intents.baseline.value, abs=0.01)
    assert [claim.against for claim in finding.claims] == [0.0, 0.0, 0.0]
    assert all(item.held_out and item.evidence == "constructed" for item in finding.measurements)
    assert 0 < finding.measurement("intents/kappa").estimate.value < 1


def test_no_interval_has_no_width(measured):
    golden, analyses, evaluation = measured
    shares = (
        "marker precision",
        "marker recall",
        "marker F1",
        "marker suppression",
        "suppression seen",
        "pole accuracy",
    )
    estimates = [evaluation.estimates[name] for name in shares]
    estimates += [row for row in intent_f1(golden, analyses, n_resamples=50)["estimate"] if row.defined]
    assert any(one.method == "Wilson" for one in estimates)
    assert all(one.low < one.high for one in estimates)


def test_all_right_gives_the_interval_of_wilson():
    same = Estimate("F1", 1.0, 1.0, 1.0, status="unreliable", reason="no width")
    low, high = proportion_confint(12, 12, method="wilson")
    assert (with_width(same, 12, 12).low, high) == (pytest.approx(low), pytest.approx(1))
    assert with_width(same, 12, 12, f1=True).low == pytest.approx(2 * low / (1 + low))
    assert with_width(same, 12, 12).status == "ok"
    wide = Estimate("F1", 0.5, 0.4, 0.6)
    assert with_width(wide, 6, 12) is wide
