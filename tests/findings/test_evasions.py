"""Evasions: the pairs are what they say, and an evasion succeeds only where its plain sentence is caught."""

import pandas as pd
import pytest

import anima
from anima.errors import InputError
from anima.findings import evasions


def test_the_pairs_cover_both_splits_and_languages():
    pairs = evasions.load_pairs()
    assert len(pairs) >= 24
    assert pairs["id"].is_unique
    assert set(pairs["split"]) == set(evasions.SPLITS)
    assert set(pairs["lang"]) == {"en", "es"}
    assert (pairs.groupby("technique")["split"].nunique() == 1).all()


def pair(plain, evasion, category, split="seen", technique="t"):
    about = {"id": plain, "lang": "en", "technique": technique, "split": split}
    return about | {"category": category, "plain": plain, "evasion": evasion}


@pytest.fixture(scope="module")
def rows():
    pairs = [
        pair("I promise to finish it.", "It shall be finished, friend.", "commitment"),
        pair("I was wrong about the date.", "I was wrong about that date.", "self-correction"),
        pair("Blue paper is on the shelf.", "Paper, the blue one, is on the shelf.", "closing", "unseen", "u"),
        pair("I do not promise to finish it.", "It may remain open.", "commitment", "unseen", "u"),
    ]
    return evasions.measure(anima.instrument(), pd.DataFrame(pairs))


def test_only_what_was_caught_can_slip(rows):
    assert rows["caught"].tolist() == [True, True, False, False]  # a negated hit catches nothing
    assert rows["slipped"].tolist() == [True, False, False, False]


def test_the_record_counts(rows):
    finding = evasions.record(rows, parameters={})
    seen = finding.measurement("split/seen/slipped").estimate
    assert (seen.value, seen.n, seen.method) == (0.5, 2, "Wilson")
    assert finding.measurement("split/unseen/slipped").estimate.status == "undefined"
    assert finding.measurement("split/seen/caught").estimate.value == 1
    assert "1 of 2 by seen techniques, 0 of 0 by unseen" in finding.answer


def test_no_pairs_are_refused():
    with pytest.raises(InputError, match="pairs has no row"):
        evasions.measure(anima.instrument(), evasions.load_pairs().iloc[:0])
