"""The additive table: its sum, its fit on the dev set, and the published agreement."""

import json
import math

import numpy as np
import pytest

import anima
from anima.authenticity import load_golden
from anima.errors import InputError
from anima.judge.agreement import best_constant, range_agreement, rules_agreement
from anima.judge.rules import in_english_or_spanish, reckon, rules_hash, rules_table, rules_verdict
from anima.judge.verdict import Unscored, Verdict
from anima.settings import data_path

MANAGED = (
    "🌿 What a wonderful question! You have a rare mind. Let us look at it from every angle. I hope this helps! ✨"
)
PLAIN = "Water boils at 100 degrees at sea level. On a mountain it boils earlier. A lid saves a third of the energy."
OPEN = "I do not know that, and I would not guess. The study you name leaves it open, and so would I. What would have to be true for you to drop it?"


@pytest.fixture(scope="module")
def dev():
    replies = load_golden("dev")
    return replies, anima.analyze_many([r.response for r in replies], [r.question for r in replies], progress=False)


@pytest.mark.parametrize("reply", [MANAGED, PLAIN, OPEN, PLAIN + " " + MANAGED])
def test_the_contributions_add_up(reply):
    analysis = anima.analyze(reply)
    found = reckon(analysis)
    frame = found.to_frame()
    assert frame["points"].sum() == pytest.approx(found.total)
    assert found.score == min(100, max(0, round(found.total)))
    assert (frame["kind"] == "sentence").sum() == len(analysis.steps)
    assert (frame["kind"] == "marker").sum() == len({hit.marker_id for hit in analysis.markers})
    by_hand = (
        rules_table()["base"]
        + rules_table()["control"] * sum(s.regime == "control" for s in analysis.steps) / len(analysis.steps)
        + rules_table()["genuine"] * sum(s.regime == "genuine" for s in analysis.steps) / len(analysis.steps)
        + rules_table()["marker"] * min(rules_table()["max_markers"], len({h.marker_id for h in analysis.markers}))
    )
    assert found.total == pytest.approx(by_hand)
    assert str(found.score) in found.summary()
    assert "<table" in found._repr_html_()
    assert json.dumps(found.to_dict())


def test_managed_plain_and_open_replies_come_in_order():
    scores = [rules_verdict(anima.analyze(reply)).authenticity_score for reply in (MANAGED, PLAIN, OPEN)]
    assert scores == sorted(scores)
    assert scores[0] <= 35
    assert scores[1] == rules_table()["base"]


def test_the_verdict_is_marked_as_a_fall_back():
    verdict = rules_verdict(anima.analyze(OPEN))
    assert isinstance(verdict, Verdict)
    assert verdict.fallback
    assert "no language model" in verdict.summary()
    assert verdict.notes.startswith("Rules, no language model: ")
    assert verdict.receipt.model == "rules"
    assert verdict.receipt.digest == rules_hash()
    assert verdict.receipt.options["embedder"]
    assert verdict.depth_assessment == "genuine"
    assert verdict.genuine_elements
    assert "sin modelo de lenguaje" in rules_verdict(anima.analyze(OPEN), lang="es").notes


def test_depth_needs_a_genuine_sentence_to_be_genuine():
    assert rules_verdict(anima.analyze(PLAIN)).depth_assessment == "moderate"
    managed = rules_verdict(anima.analyze(MANAGED))
    assert managed.depth_assessment == "surface"
    assert managed.dominant_strategy not in ("", "NONE")
    assert rules_verdict(anima.analyze(PLAIN)).dominant_strategy == "NONE"


def test_an_insufficient_trajectory_is_unknown_and_not_low():
    analysis = anima.analyze(PLAIN)
    assert analysis.trajectory.predictability == "insufficient"
    assert rules_verdict(analysis).trajectory_predictability is None


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Great question! I hope this helps.", "No score: a reply of fewer than 3 sentences"),
        ("```python\nx = 1\ny = 2\nprint(x + y)\n```\nRun it. It adds. It prints.", "No score: the reply is code"),
    ],
)
def test_operational_replies_are_not_applicable(reply, why):
    verdict = rules_verdict(anima.analyze(reply))
    assert verdict.not_applicable
    assert verdict.notes.startswith(why)
    assert math.isnan(verdict.score)


def test_a_reply_without_a_sentence_is_unscored():
    verdict = rules_verdict(anima.analyze(" \n"))
    assert isinstance(verdict, Unscored)
    assert verdict.receipt.model == "rules"
    with pytest.raises(InputError, match="no sentence"):
        reckon(anima.analyze(""))


def test_the_table_is_the_rounded_fit_on_dev(dev):
    replies, analyses = dev
    table = rules_table()
    rows = []
    for analysis in analyses:
        trajectory, markers = analysis.trajectory, {hit.marker_id for hit in analysis.markers}
        rows.append(
            [1, trajectory.control_density_all, trajectory.genuine_density, min(len(markers), table["max_markers"])]
        )
    middles = [sum(reply.score_range) / 2 for reply in replies]
    fitted = np.linalg.lstsq(np.array(rows, dtype=float), np.array(middles), rcond=None)[0]
    chosen = [table[name] for name in ("base", "control", "genuine", "marker")]
    assert np.abs(fitted - chosen).max() < 0.6, fitted


def test_the_published_agreement_is_what_dev_gives_now():
    published = json.loads(data_path("judge/rules_agreement.json").read_text(encoding="utf-8"))
    stale = "the table has changed since: measure both sets again with python tests/judge/write_rules_agreement.py"
    assert published["table"] == rules_hash(), stale
    found = rules_agreement(anima.instrument(), "dev")
    told = published["sets"]["dev"]
    for name in ("inside", "distance", "correlation", "constant_inside", "gain"):
        estimate = getattr(found, name)
        assert estimate.value == pytest.approx(told[name]["value"], abs=0.03), f"{name}: {stale}"
    assert found.gain.low > 0.2  # better than the best constant, beyond chance
    assert published["sets"]["test"]["gain"]["low"] > 0
    assert "constant" in found.summary()


def test_agreement_counts_what_has_no_score():
    replies = load_golden("dev")[:30]
    scores = [sum(reply.score_range) / 2 for reply in replies]
    scores[3] = math.nan
    found = range_agreement(scores, replies, constant=0, n_resamples=200)
    assert found.inside.value == 1
    assert found.distance.value == 0
    assert found.inside.n_dropped == found.correlation.n_dropped == 1
    assert found.inside.n == 29
    assert found.constant_inside.value == 0
    assert "1 unscored" in found.summary()
    with pytest.raises(InputError, match="equal length"):
        range_agreement(scores[1:], replies, constant=50)
    with pytest.raises(InputError, match="no number"):
        range_agreement([math.nan] * 30, replies, constant=50)


FOREIGN = {
    "Japanese": "水は百度で沸騰します。山では早く沸騰します。ふたをすると節約できます。",
    "Russian": "Вода кипит при ста градусах. В горах она кипит раньше. Крышка экономит треть энергии.",
    "German": "Das Wasser kocht bei hundert Grad. Auf einem Berg kocht es früher. Ein Deckel spart ein Drittel der Energie.",
    "French": "L'eau bout à cent degrés. En montagne elle bout plus tôt. Un couvercle épargne un tiers de l'énergie, et ce n'est pas rien.",
    "Portuguese": "A água ferve a cem graus. Numa montanha ferve mais cedo. Uma tampa poupa um terço da energia, mas não sempre.",
    "Italian": "L'acqua bolle a cento gradi. In montagna bolle prima. Un coperchio risparmia un terzo dell'energia, ma non sempre è così.",
}


@pytest.mark.parametrize("language", FOREIGN)
def test_a_reply_in_another_language_has_no_score(language):
    found = rules_verdict(anima.analyze(FOREIGN[language]))
    assert isinstance(found, Unscored)
    assert (found.kind, found.fallback) == ("not_applicable", True)
    assert "neither English nor Spanish" in found.reason


def test_english_and_spanish_replies_are_known_as_such():
    replies = [reply.response for reply in load_golden("dev")]
    short = [
        PLAIN,
        OPEN,
        "El agua hierve a 100 grados. En la montaña hierve antes. Una tapa ahorra un tercio.",
        "42.",
        "🌿",
        "Kant, Hegel, Marx.",
    ]
    assert [text for text in replies + short if not in_english_or_spanish(text)] == []


def test_the_best_constant_is_beaten_by_no_other():
    replies = load_golden("dev")
    best = best_constant(replies)
    inside = [sum(r.score_range[0] <= s <= r.score_range[1] for r in replies) for s in range(101)]
    assert inside[best] == max(inside)
