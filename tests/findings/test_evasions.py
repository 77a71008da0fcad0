"""Evasions: the pairs are what they say, and an evasion succeeds only where its plain sentence is caught."""

import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

import anima
from anima.errors import InputError
from anima.findings import evasions
from anima.settings import data_path


def test_the_pairs_cover_both_splits_and_languages():
    pairs = evasions.load_pairs()
    assert len(pairs) >= 24
    assert pairs["id"].is_unique
    assert set(pairs["split"]) == set(evasions.SPLITS)
    assert set(pairs["lang"]) == {"en", "es"}
    assert (pairs.groupby("technique")["split"].nunique() == 1).all()


def pair(plain, evasion, category, split="seen", technique="t", reworded="Nothing of the kind."):
    about = {"id": plain, "lang": "en", "technique": technique, "split": split}
    return about | {"category": category, "plain": plain, "evasion": evasion, "reworded": reworded}


@pytest.fixture(scope="module")
def rows():
    pairs = [
        pair(
            "I promise to finish it.",
            "It shall be finished, friend.",
            "commitment",
            reworded="I promise to get it done.",
        ),
        pair("I was wrong about the date.", "I was wrong about that date.", "self-correction", technique="v"),
        pair("Blue paper is on the shelf.", "Paper, the blue one, is on the shelf.", "closing", "unseen", "u"),
        pair("I do not promise to finish it.", "It may remain open.", "commitment", "unseen", "u"),
    ]
    return evasions.measure(anima.instrument(), pd.DataFrame(pairs))


def test_only_what_was_caught_can_slip(rows):
    assert rows["caught"].tolist() == [True, True, False, False]  # a negated hit catches nothing
    assert rows["slipped"].tolist() == [True, False, False, False]
    assert rows["lost"].tolist() == [False, True, False, False]


def test_a_technique_counts_once_however_many_its_sentences():
    rows = pd.DataFrame(
        {"caught": True, "slipped": [True] * 6 + [False] * 2, "technique": list("aaaaaabb"), "lost": False}
    )
    found = evasions.slip_share(rows)
    low, high = proportion_confint(1.5, 2, method="wilson")
    assert (found.value, found.n, found.n_clusters) == (0.75, 8, 2)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    gain = evasions.slip_gain(rows.assign(lost=[True] + [False] * 7))
    assert gain.value == pytest.approx(5 / 8)
    assert gain.n_clusters == 2


def test_every_pair_has_an_ordinary_rewording_of_its_own():
    pairs = evasions.load_pairs()
    assert len(pairs) == len(data_path(evasions.DATA).read_text(encoding="utf-8").splitlines())
    assert (pairs["reworded"].str.casefold() != pairs["plain"].str.casefold()).all()
    assert pairs["reworded"].is_unique


def test_the_record_counts(rows):
    finding = evasions.record(rows, parameters={})
    seen = finding.measurement("split/seen/slipped").estimate
    assert (seen.value, seen.n, seen.n_clusters) == (0.5, 2, 2)
    assert finding.measurement("split/seen/slipped").baseline.value == 0.5
    assert finding.measurement("split/unseen/slipped").estimate.status == "undefined"
    assert finding.measurement("split/seen/caught").estimate.value == 1
    assert "1 of 2 by seen techniques, 0 of 0 by unseen" in finding.answer
    assert finding.title.startswith("1 of 2 caught sentences")
    assert finding.measurement("all/slipped less ordinary rewordings").estimate.value == 0


def test_no_pairs_are_refused():
    with pytest.raises(InputError, match="pairs has no row"):
        evasions.measure(anima.instrument(), evasions.load_pairs().iloc[:0])
