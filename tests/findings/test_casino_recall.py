"""The finding on CaSiNo: its definitions by hand, its counts on the corpus, and the run on written samples."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from anima.detectors import CrossValidation
from anima.findings import casino_outcomes as outcomes
from anima.findings import casino_recall as finding
from anima.lexicon import Phrase, PhraseLexicon
from anima.stats import Estimate, correlation, n_for_correlation

TRUTH = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool)
FOUND = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1]], dtype=bool)


def _recall(
    truth: np.ndarray = TRUTH, found: np.ndarray = FOUND, texts: tuple[str, ...] = ("a b", "Hi!", "hi", "c")
) -> finding.Recall:
    n = len(truth)
    ids, groups = [f"d{i}:0" for i in range(n)], [f"d{i}" for i in range(n)]
    rows = pd.DataFrame({"id": ids, "group": groups, "fold": np.arange(n) % 2})
    predicted, scores = {finding.BEST: found, finding.PHRASES: truth}, {finding.BEST: found - 0.5}
    cv = CrossValidation(("x", "y", "z"), False, rows, truth, predicted, scores, 0, 50, 0.95)
    frame = pd.DataFrame({"utterance_id": ids, "dialogue_id": groups, "speaker": "s", "text": texts})
    frame["words"], frame["place in the dialogue"] = [2.0, 30.0, 1.0, 2.0], [0.0, 0.3, 0.6, 1.0]
    return finding.Recall(None, frame, cv, None)  # type: ignore[arg-type]


def test_confusions_by_hand() -> None:
    table = finding.confusions(_recall()).set_index(["missed", "instead"])
    assert table.loc[("x", "z"), "utterances"] == 2
    assert table.loc[("x", "y"), "utterances"] == 1
    assert table.loc[("y", finding.NOTHING), "utterances"] == 1
    assert table["utterances"].sum() == 4
    assert table.loc[("x", "z"), "share"] == pytest.approx(2 / 3)


def test_bins_by_hand() -> None:
    table = finding.by_bin(_recall(), names=[finding.BEST]).set_index(["measure", "bin"])
    # One hit, two wrong and three missed among the short ones; one hit and one missed in the long one.
    assert table.loc[("words", "0–8"), "estimate"].value == pytest.approx(2 * 1 / (3 + 4))
    assert table.loc[("words", "28 and on"), "estimate"].value == pytest.approx(2 / 3)
    assert not table.loc[("words", "8–16"), "estimate"].defined
    assert list(table.loc["place in the dialogue", "n"]) == [1, 1, 1, 1]


def test_errors_are_named_by_id_only() -> None:
    table = finding.error_ids(_recall())
    assert set(table.columns) == {"label", "error", "n", "ids"}
    assert table.set_index(["label", "error"]).loc[("x", "miss"), "ids"] == ["d0:0", "d3:0"]


def test_texts_that_stand_in_two_dialogues_can_be_left_out() -> None:
    assert list(_recall().without_repeats().rows["id"]) == ["d0:0", "d3:0"]


def test_no_whole_message_and_no_long_phrase_is_printed() -> None:
    lexicon = PhraseLexicon(
        "x", (Phrase("what about you ?", 9, 5), Phrase("you need", 9, 5), Phrase("a b c d e", 3, 3)), {}
    )
    shown = finding.printable(lexicon, ["What about you?!", "Do you need it?"])
    assert list(shown["phrase"]) == ["you need"]


def test_earlier_figures() -> None:
    table = finding.earlier()
    table = table[(table["category"] == "apertura") & (table["label"] == "elicit-pref")].set_index("version")["recall"]
    assert (round(table["0.23.0"], 3), round(table["0.24.0"], 3), round(table["0.32.0"], 3)) == (0.003, 0.114, 0.114)


def test_earlier_table_is_the_reference_one(oracle: Path) -> None:
    theirs = pd.read_csv(oracle / "oracle" / "findings" / "casino_js_kappa_by_version.csv", dtype={"version": str})
    pd.testing.assert_frame_equal(finding.earlier(), theirs)


@pytest.mark.corpora
def test_counts_on_the_corpus(corpora_dir: Path, oracle: Path) -> None:
    corpus = finding.load(str(corpora_dir / "casino"))
    theirs = pd.read_csv(oracle / "oracle" / "findings" / "casino_label_counts.csv").dropna()
    ours = finding.label_counts(corpus)
    assert dict(zip(ours["label"], ours["utterances"], strict=True)) == dict(
        zip(theirs["label"], theirs["n_utterances"], strict=True)
    )
    facts = finding.structure(corpus).set_index("what")["n"].to_dict()
    assert facts == {
        "dialogues": 1030, "annotated dialogues": 396, "chat rows": 14297, "messages": 11919, "buttons: Submit-Deal": 1181,
        "buttons: Accept-Deal": 1005, "buttons: Reject-Deal": 167, "buttons: Walk-Away": 25, "annotated messages": 4615,
        "annotated messages, train": 4047, "annotated messages, valid": 76, "annotated messages, test": 492,
        "with two labels or more": 968, "distinct strings of labels": 212, "texts that stand twice or more": 93,
    }  # fmt: skip


def _speakers(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    keys = [(f"d{i}", f"s{k}") for i in range(n) for k in (1, 2)]
    return pd.DataFrame(keys, columns=["dialogue_id", "speaker"]).assign(
        messages=rng.integers(3, 12, 2 * n).astype(float), noise=rng.random(2 * n)
    )


def _corpus(table: pd.DataFrame, values: np.ndarray) -> SimpleNamespace:
    parts = [table[["dialogue_id", "speaker"]].assign(name=name, value=values) for name in outcomes.OUTCOMES]
    return SimpleNamespace(outcomes=pd.concat(parts, ignore_index=True))


def test_shares_and_lengths_by_hand() -> None:
    rows = [("d", "a", True, "deal!"), ("d", "a", False, "no way"), ("d", "b", True, "ok")]
    frame = pd.DataFrame(rows, columns=["dialogue_id", "speaker", "x", "text"])
    assert outcomes.label_shares(frame, ["x"])["x"].tolist() == [0.5, 1.0]
    assert outcomes.lengths(frame)[["messages", "words"]].to_numpy().tolist() == [[2, 3], [1, 1]]
    table = outcomes.lexicon_densities(frame)
    assert table["closing"].tolist() == [pytest.approx(100 / 3), 0]


def test_a_family_looks_at_both_speakers() -> None:
    table = _speakers()
    partner = table.groupby("dialogue_id")["noise"].transform(lambda v: v.to_numpy()[::-1])
    family = outcomes.family(
        "noise", table[["dialogue_id", "speaker", "noise"]], _corpus(table, partner.to_numpy()), n_resamples=200
    )  # type: ignore[arg-type]
    frame = family.to_frame().set_index(["whose", "outcome"])
    assert family.size == 6
    assert frame.loc[("partner", "points"), "rho"] == pytest.approx(1)
    expected = correlation(table["noise"], partner).value
    assert frame.loc[("speaker", "points"), "rho"] == pytest.approx(expected)
    assert frame.loc[("speaker", "points"), "n"] == 120


def test_holding_messages_constant_removes_what_they_explain() -> None:
    table = _speakers(200)
    density = table["messages"] + table["noise"]
    outcome = table["messages"].to_numpy() + np.random.default_rng(5).random(len(table))
    frame = table[["dialogue_id", "speaker"]].assign(density=density)
    plain, held = (
        outcomes.family("d", frame, _corpus(table, outcome), given=given, n_resamples=200)  # type: ignore[arg-type]
        .to_frame().set_index(["whose", "outcome"]).loc[("speaker", "points"), "rho"]
        for given in (None, table[["dialogue_id", "speaker", "messages"]])
    )  # fmt: skip
    assert plain > 0.9
    assert abs(held) < 0.15


@pytest.mark.parametrize(
    ("p", "size", "apart"), [(0.0004, 60, True), (0.002, 60, False), (0.04, 1, True), (0.06, 1, False)]
)
@pytest.mark.parametrize("value", [0.2, -0.2])
def test_the_simultaneous_interval_says_what_bonferroni_says(p: float, size: int, value: float, apart: bool) -> None:
    wide = outcomes.simultaneous(Estimate("rho", value, -1, 1, p_value=p, n=300, n_clusters=150), size)
    assert (wide.low > 0 or wide.high < 0) == apart == (p * size < 0.05)
    assert wide.low < value < wide.high


def test_detectable_is_the_inverse_of_the_number_needed() -> None:
    for alpha in (0.05, 0.05 / 60):
        rho = outcomes.detectable(396, alpha=alpha)
        assert n_for_correlation(rho, alpha=alpha) <= 396 < n_for_correlation(rho - 0.001, alpha=alpha)
    assert np.isnan(outcomes.detectable(3))


def test_replication_asks_only_for_what_was_found_first() -> None:
    table = _speakers(150)
    values = table["noise"].to_numpy() + np.random.default_rng(1).random(300)
    first = outcomes.family(
        "first", table[["dialogue_id", "speaker", "noise"]], _corpus(table, values), n_resamples=200
    )  # type: ignore[arg-type]
    again = outcomes.replicate(first, first)
    assert set(again["whose"]) == {"speaker"}
    assert len(again) == 3
    assert (again["p by Holm, again"] < 0.05).all()
    assert again["replicated"].all()


@pytest.fixture(scope="module")
def run() -> tuple[finding.Recall, dict[str, outcomes.Family], object]:
    found = finding.compare(finding.load("sample"), folds=3, n_resamples=50)
    families = outcomes.families(found, n_resamples=50)
    again = outcomes.replicate(families[outcomes.HUMAN], families[outcomes.HEAD])
    return found, families, finding.record(found, families, again, parameters={"n_resamples": 50})


def test_sample_run_says_so(run: tuple) -> None:
    found, _, record = run
    assert record.sample
    assert record.summary().startswith("SAMPLE")
    assert set(record.verdicts()["verdict"]) <= {"holds", "fails", "undecided"}
    held = {item.key: item.held_out for item in record.measurements}
    assert not held["elicit-pref/hand lexicon/kappa"]
    assert held["elicit-pref/learnt phrases/kappa"]
    assert "small-talk/hand lexicon/kappa" not in held
    assert len(found.held_out()) == len(found.frame)
    assert not set(found.unseen()["dialogue_id"]) & set(found.frame["dialogue_id"])


def test_the_curve_ends_at_the_cross_validation(run: tuple) -> None:
    found, _, _ = run
    table = finding.curve(found, [finding.TFIDF], parts=[4])
    best = {e.extra["detector"]: e for e in found.cv.macro().estimates if e.extra["statistic"] == "f1"}
    assert table["f1"].iloc[-1] == best[finding.TFIDF].value
    assert table["dialogues"].is_monotonic_increasing


@pytest.mark.corpora
def test_committed_notebook_holds_no_message_of_the_corpus(corpora_dir: Path) -> None:
    root = Path(__file__).parents[2]
    pages = [root / name for name in ("notebooks/03_casino_recall.ipynb", "book/results/casino_recall.json")]
    text = finding.bare(" ".join(page.read_text(encoding="utf-8") for page in pages if page.is_file()))
    assert text
    corpus = finding.load(str(corpora_dir / "casino"))
    long = {plain for item in corpus.utterances["text"] if len((plain := finding.bare(item)).split()) >= 5}
    assert [item for item in long if item in text] == []
