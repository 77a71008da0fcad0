"""Definitions of a change on hand-made groups, counts on the full corpus, and the whole finding on the sample."""

from __future__ import annotations

import csv
import math
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from anima.corpora import load_corpus
from anima.findings import delidata_ceiling as ceiling
from anima.findings import delidata_changes as changes
from anima.findings import delidata_gain as gain
from anima.stats import correlation

if TYPE_CHECKING:
    from pathlib import Path


def _group(rows: list[tuple], labels: list[tuple[str, str]] = ()) -> SimpleNamespace:
    """Write a group: speaker, kind, text, cards, tracked state of each row."""
    names = ["speaker", "kind", "text", "solution", "state"]
    frame = pd.DataFrame(rows, columns=names)
    frame["utterance_id"] = [f"u{i}" for i in range(len(frame))]
    frame["dialogue_id"], frame["turn"], frame["clean_text"] = "g", range(len(frame)), frame["text"]
    return SimpleNamespace(utterances=frame, labels=pd.DataFrame(labels, columns=["utterance_id", "label"]))


GROUP = _group(
    [
        ("SYSTEM", "initial", "", (), {"Ann": ("A",), "Bob": ()}),
        ("Ann", "message", "I take A and 7", ("A", "7"), {"Ann": ("A", "7"), "Bob": ()}),  # u1: changed, first proposal
        ("Bob", "message", "Why A?", ("A",), {"Ann": ("A", "7"), "Bob": ("A",)}),  # u2: moved, but nothing before
        ("Ann", "message", "7 and A I say", ("7", "A"), {"Ann": ("A", "7"), "Bob": ("A",)}),  # u3: repeated, the same set
        ("Bob", "message", "A and 2", ("A", "2"), {"Ann": ("A", "7"), "Bob": ("A", "2")}),  # u4: changed, Bob's first proposal
        ("Ann", "message", "Oh wait, I was wrong, only A", ("A",), {"Ann": ("A",), "Bob": ("A", "2")}),  # u5: new proposal
        ("Ann", "submit", "A", ("A",), {"Ann": ("A",), "Bob": ("A", "2")}),  # as at the start: unchanged
        ("Bob", "submit", "A,2", ("A", "2"), {"Ann": ("A",), "Bob": ("A", "2")}),  # nothing before: unknown
        ("Ann", "submit", "A,7", ("A", "7"), {"Ann": ("A", "7"), "Bob": ("A", "2")}),  # changed, wrote nothing since
    ],
    [("u2", "Probing"), ("u1", "complete_solution"), ("u3", "complete_solution"), ("u4", "complete_solution"),
     ("u5", "complete_solution"), ("u4", "Solution")],
)  # fmt: skip


def test_definitions_on_a_written_group() -> None:
    traced = changes.trace(GROUP)
    table = traced.messages.set_index("utterance_id")
    assert table["mention"].all()
    assert table["first_mention"].tolist() == [True, True, False, False, False]
    assert table["moved"].tolist() == [True, True, False, True, True]
    assert table["changed"].tolist() == [True, False, False, True, True]
    assert table["repeated"].tolist() == [False, False, True, False, True]
    assert table["new_proposal"].tolist() == [False, False, False, False, True]
    assert table["self-correction"].tolist() == [False, False, False, False, True]
    assert dict(traced.mentions().iloc[:, :2].itertuples(index=False)) == {
        "leave the tracked state as it was": 1, "are the speaker's first": 2, "sit in Probing messages": 1, "change a state that was there": 3,
    }  # fmt: skip


def test_what_went_before_a_proposal_looks_at_nothing_later() -> None:
    proposals = changes.trace(GROUP).proposals.set_index("utterance_id")
    assert list(proposals.index) == ["u3", "u5"]
    assert proposals.loc["u3", list(changes.CONTEXT)].tolist() == [3, 2, 0, 0]
    assert proposals.loc["u5", list(changes.CONTEXT)].tolist() == [5, 2, 1, 0]  # Bob's A and 2 in between


def test_submissions_count_since_the_previous_one() -> None:
    traced = changes.trace(GROUP)
    frame = traced.submissions
    assert traced.unknown == 1
    assert frame["changed"].tolist() == [False, True]
    assert frame["first"].tolist() == [True, False]
    assert frame["own messages"].tolist() == [3, 0]
    assert frame["others' messages"].tolist() == [2, 0]
    assert frame["own self-correction"].tolist() == [1, 0]
    assert frame["others' Solution"].tolist() == [1, 0]
    assert frame["others' sets that differ"].tolist() == [1, 0]


def test_word_lists_are_nested_and_negation_is_heeded() -> None:
    texts = ["Wait, I was wrong", "hmmm", "that is right", "I was not wrong", "Oops, sorry"]
    flags = changes.flag_words(texts)
    assert flags["four words"].tolist() == [True, True, False, False, False]
    assert (flags["wide list"] | ~flags["four words"]).all()
    assert flags["wide list"][4]
    assert flags["self-correction"].tolist() == [True, False, False, False, False]


def test_full_corpus_reproduces_every_count(corpora_dir: Path, oracle: Path) -> None:
    corpus = load_corpus("delidata", sample=False)
    traced = changes.trace(corpus)
    counts = traced.counts(n_resamples=20).set_index("definition")
    assert counts["changes"].to_dict() == {
        "names a card": 6272, "tracked state changed": 4257, "complete proposal differs": 765, "submission differs": 1476,
    }  # fmt: skip
    assert counts["of"].tolist() == [14003, 14003, 14003, 3095]
    assert traced.mentions()["n"].tolist() == [2009, 1505, 765, 4257]
    folder = oracle / "oracle" / "findings"
    with (folder / "delidata_revision.csv").open(encoding="utf-8") as file:
        known = {(row["definition"][:3].rstrip("_"), row["detector"]): row for row in csv.DictReader(file)}
    scored = changes.score_words(traced, n_resamples=20)
    counted = scored[(scored["words"] == "four words") & (scored["definition"] == "complete proposal differs")]
    assert {row.statistic: row.estimate.n for row in counted.itertuples()} == {
        "precision": 224, "lift": 224, "recall": 765, "kappa": 14003,
    }  # fmt: skip
    four = scored[scored["words"] == "four words"]
    earlier = changes.earlier().set_index("definition")
    for code, name in (("D0", "names a card"), ("D1b", "tracked state changed"), ("D3", "complete proposal differs")):
        row = known[code, "narrow4(wait,actually,hmm,my bad)"]
        found = four[four["definition"] == name]
        assert (found["fires"].iloc[0], found["hits"].iloc[0]) == (int(row["fires"]), int(row["tp"]))
        for item in found.itertuples():
            assert item.estimate.value == pytest.approx(float(row[item.statistic]), abs=2e-4)
        carried = known[code, "js0.32_revision_clean"]
        assert earlier.loc[name, "hits"] == int(carried["tp"])
        assert earlier.loc[name, list(changes.STATISTICS)].tolist() == pytest.approx(
            [float(carried[s]) for s in changes.STATISTICS], abs=1e-6
        )
    table = gain.group_table(corpus, traced)
    groups = pd.read_csv(folder / "delidata_groups.csv", index_col="group_id").loc[table.index]
    for ours, theirs in (
        ("messages", "n_msg"), ("Probing", "n_probing"), ("Reasoning", "n_reasoning"), ("Agree", "n_agree"), ("Disagree", "n_disagree"),
        ("Moderation", "n_moderation"), ("Solution", "n_solution"), ("card mentions", "n_mentions"), ("new proposals", "n_complete_changes"),
        ("state changes", "n_state_changes"),
        ("gain", "gain"), ("gain_exact", "gain_exact"),
    ):  # fmt: skip
        np.testing.assert_allclose(table[ours], groups[theirs], atol=1e-9, err_msg=ours)
    signs = Counter(np.sign(table["gain"].round(9)).tolist())
    assert (signs[1], signs[0], signs[-1]) == (318, 94, 88)
    reached = gain.outcome_counts(corpus, n_resamples=20)
    assert reached["right at the start"].value == pytest.approx(0.090, abs=5e-4)
    assert reached["right at the last submission"].value == pytest.approx(0.334, abs=5e-4)


def test_partial_correlation_is_that_of_residuals() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=60)
    x, y = z + rng.normal(size=60), z + rng.normal(size=60)
    sums = gain._moments(x, y, z).sum(axis=0)[None]
    expected = np.corrcoef(gain._residual(x, z), gain._residual(y, z))[0, 1]
    assert gain._partial(sums)[0] == pytest.approx(expected)
    assert gain._correlation(sums)[0] == pytest.approx(correlation(x, y, method="pearson").value)
    assert math.isnan(gain._partial(gain._moments(x, y, x).sum(axis=0)[None])[0])


@pytest.mark.slow
def test_sample_run_makes_a_marked_record() -> None:
    corpus = ceiling.load("sample")
    traced = changes.trace(corpus)
    options = {"n_resamples": 50, "seed": 3}
    table = gain.group_table(corpus, traced)
    scores = ceiling.held_out_scores(traced, seed=3)
    again = ceiling.held_out_scores(traced, seed=3)
    pd.testing.assert_frame_equal(scores, again)
    finding = ceiling.record(
        corpus,
        traced,
        words=changes.score_words(traced, **options),
        areas=ceiling.ceiling(traced, scores, **options),
        before=changes.before_submission(traced, **options),
        outcomes=gain.outcome_counts(corpus, **options),
        gains=gain.gain_correlations(table, **options),
        labels=ceiling.detect(corpus, **options),
        parameters=options,
    )
    assert finding.sample
    assert finding.summary().startswith("SAMPLE")
    assert set(finding.verdicts()["verdict"]) <= {"holds", "fails", "undecided"}
    assert finding.measurement("target/embeddings + TF-IDF/macro-f1").baseline is not None
    parts = gain.mechanical(corpus, table, draws=20, **options)
    assert parts["random moves"].defined
    texts = {text for text in corpus.utterances["text"] if len(text) > 25}
    assert not any(text in str(finding.to_dict()) for text in texts)
