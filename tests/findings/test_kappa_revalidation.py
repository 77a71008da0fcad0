"""Detectors as raters: coefficients by hand, versions, the sentinel's view, and the run on written samples."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import anima
from anima.authenticity import load_golden
from anima.detectors import HandLexicon
from anima.findings import kappa_readings as readings
from anima.findings import kappa_revalidation as kappa
from anima.findings import kappa_watch as watch
from anima.findings import read_finding
from anima.metaeval import JsonlSentinelStore
from anima.stats import bootstrap, cohen_kappa, gwet_ac

if TYPE_CHECKING:
    from pathlib import Path


def _reading(
    agree: float = 0.9, *, n: int = 400, rate: float = 0.3, seed: int = 1, **options: object
) -> readings.Reading:
    """Return a reading of two raters: the detector repeats the label with probability ``agree``, else it draws one."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < rate).astype(np.intp)
    said = np.where(rng.random(n) < agree, truth, rng.random(n) < rate).astype(np.intp)
    given = {"source": "made", "label": "x", "detector": "d", "truth": truth, "said": said}
    groups = np.arange(n) // 10
    return readings.Reading(**(given | {"groups": groups, "batch": groups % 5} | options))  # type: ignore[arg-type]


def test_coefficients_are_those_of_the_library() -> None:
    one = _reading()
    rater = readings.rate(one, n_resamples=200)
    found = cohen_kappa(one.truth, one.said)
    assert rater.kappa.value == pytest.approx(found.value)
    assert (rater.human, rater.said) == pytest.approx((one.truth.mean(), one.said.mean()))
    assert rater.agreement == pytest.approx(found.extra["percent_agreement"])
    assert rater.majority == pytest.approx(found.extra["majority_baseline"])
    long = pd.DataFrame({"item": np.tile(np.arange(400), 2), "rater": np.repeat(["h", "d"], 400)})
    long["value"] = np.concatenate([one.truth, one.said])
    assert rater.ac1.value == pytest.approx(gwet_ac(long, categories=[0, 1]).value)


def test_several_classes_and_kappa_by_hand() -> None:
    truth, said = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 1, 2, 0])
    rater = readings.rate(
        _reading(n=6, classes=3, truth=truth, said=said, groups=np.arange(6), batch=np.zeros(6, int)), n_resamples=50
    )
    # Agreement 4/6; chance (2·2 + 2·3 + 2·1)/36 = 1/3; AC1's chance Σ p(1 - p) / 2 with p = 4/12, 5/12, 3/12.
    assert rater.kappa.value == pytest.approx((4 / 6 - 1 / 3) / (1 - 1 / 3))
    chance = sum(p * (1 - p) for p in (4 / 12, 5 / 12, 3 / 12)) / 2
    assert rater.ac1.value == pytest.approx((4 / 6 - chance) / (1 - chance))
    assert math.isnan(rater.human)
    assert math.isnan(rater.needed)


def test_a_silent_detector_has_no_kappa_and_a_flattering_ac1() -> None:
    one = _reading(rate=0.03)
    rater = readings.rate(replace(one, said=np.zeros_like(one.said)), n_resamples=100)
    assert rater.kappa.value == 0
    assert rater.ac1.value > 0.9


def test_full_agreement_is_not_known_exactly() -> None:
    one = _reading()
    rater = readings.rate(replace(one, said=one.truth), n_resamples=100)
    alone = cohen_kappa(one.truth, one.truth)
    assert (rater.kappa.value, rater.kappa.high, rater.kappa.low) == (1, 1, alone.low)
    assert alone.low < 1


def test_whole_groups_are_resampled() -> None:
    one = _reading(0.5)
    again = replace(one, **{name: np.tile(getattr(one, name), 4) for name in ("truth", "said", "groups", "batch")})
    # Four copies of each dialogue inside that dialogue are no new evidence.
    first, second = readings.rate(one, n_resamples=300), readings.rate(again, n_resamples=300)
    assert (first.kappa.low, first.kappa.high) == pytest.approx((second.kappa.low, second.kappa.high))
    assert second.kappa.n_clusters == 40
    assert second.design == pytest.approx(4 * first.design, rel=0.3)


def test_the_difference_is_paired() -> None:
    old, new = _reading(0.6), _reading(0.6, detector="new")
    same = readings.difference(new, old, n_resamples=100)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    better = replace(new, said=old.truth)
    found = readings.difference(better, old, n_resamples=300, seed=3)
    assert found.value == pytest.approx(1 - cohen_kappa(old.truth, old.said).value)

    def gap(truth: np.ndarray, one: np.ndarray, two: np.ndarray) -> float:
        return cohen_kappa(truth, one, interval="analytic").value - cohen_kappa(truth, two, interval="analytic").value

    slow = bootstrap(gap, old.truth, better.said, old.said, clusters=old.groups, n_resamples=300, rng=3)
    assert (found.low, found.high) == pytest.approx((slow.low, slow.high))


def test_doubt_and_what_would_settle_it() -> None:
    near, far = readings.rate(_reading(0.5, n=60)), readings.rate(_reading(0.95, n=400))
    assert near.doubtful
    assert not far.doubtful
    assert near.needed > 60
    assert far.needed < 400
    exact = replace(near, kappa=replace(near.kappa, value=readings.FLOOR))
    assert exact.needed == math.inf
    assert replace(near, design=3.0).needed == pytest.approx(3 / near.design * near.needed, rel=0.05)


def test_versions_follow_each_other_label_by_label() -> None:
    told = [
        _reading(detector=name, label=label, seed=seed)
        for label in "ab"
        for seed, name in enumerate(("v1", "v2", "v3"))
    ]
    steps = kappa.version_steps(told, n_resamples=20)
    assert [(old.key, new.key) for old, new, _ in steps] == [
        (f"made/{label}/{old}", f"made/{label}/{new}") for label in "ab" for old, new in (("v1", "v2"), ("v2", "v3"))
    ]


def test_an_unmeasured_swap_alarms_and_measuring_clears_it(tmp_path: Path) -> None:
    good, bad = _reading(0.9, n=1000), _reading(0.1, n=1000, detector="worse")
    stages = watch.swap(good, bad, n_resamples=100)
    kinds = [{alarm.kind for alarm in report.alarms} for _, report in stages]
    assert [report.health for _, report in stages][:2] == ["healthy", "alarmed"]
    assert kinds[1] == {"silent-upgrade"}
    assert all("silent-upgrade" not in kind for kind in (kinds[2], kinds[3], kinds[4]))
    assert "below-floor" in kinds[3]
    assert {"drifting", "drop"} <= kinds[4]
    assert len(watch.stages_frame(stages)) == 5
    # A swap for one as good is an alarm too, until it is measured; under the old name nothing can be seen.
    equal = [
        {alarm.kind for alarm in report.alarms}
        for _, report in watch.swap(good, _reading(0.9, n=1000, detector="twin"))
    ]
    assert equal == [set(), {"silent-upgrade"}, set(), set(), set()]


def test_snapshots_survive_the_store(tmp_path: Path) -> None:
    history = watch.all_snapshots([_reading(detector=name, n=1000) for name in ("v1", "v2")], n_resamples=50)
    path = tmp_path / "s.jsonl"
    JsonlSentinelStore(path).extend(history)
    assert JsonlSentinelStore(path).history() == history
    assert [item.judge_model for item in history if item.judge_id == "made/x"] == ["v1"] * 5 + ["v2"] * 5
    row = next(row for row in watch.report_on(history).rows if row.judge_id == "made/x")
    assert (row.n_snapshots, row.since) == (5, watch.day(5))
    assert watch.batches(_reading(rate=0.01, n=200), n_resamples=20) == []


def test_the_earlier_lexicon_is_as_carried() -> None:
    table = kappa.earlier_versions()
    assert table["version"].nunique() == 24
    one = table[(table["label"] == "elicit-pref")].set_index("version")["kappa"]
    change = kappa.earlier_change()["elicit-pref"]
    assert one["0.24.0"] - one["0.23.0"] == pytest.approx(change.value, abs=1e-5)
    assert (round(change.value, 3), round(change.low, 3), round(change.high, 3)) == (0.136, 0.094, 0.177)


def test_rounding_decides_about_kappa() -> None:
    rng = np.random.default_rng(0)
    human = rng.random(300)
    scores = np.clip(human + rng.normal(0, 0.1, 300), 0, 1)
    table = watch.rounding(scores, human, (2, 11, 101)).set_index(["steps", "statistic"])["estimate"]
    nominal = [table[k, "kappa, nominal"].value for k in (2, 11, 101)]
    assert nominal == sorted(nominal, reverse=True)
    assert nominal[0] - nominal[2] > 0.5
    assert table[101, "kappa, quadratic"].value == pytest.approx(table[0, "concordance"].value, abs=0.01)


def test_golden_readings_count_what_was_labelled() -> None:
    golden = load_golden("dev")[:20]
    told = {item.key: item for item in readings.golden_readings(anima.instrument(), golden)}
    whole = told[f"intents/{readings.ALL}/{readings.HYBRID}"]
    assert len(whole.truth) == sum(sentence.intent is not None for reply in golden for sentence in reply.sentences)
    marks = told[f"markers/{readings.ALL}/patterns"]
    assert marks.truth.sum() == sum(len(reply.markers - reply.disputed_markers) for reply in golden)
    for item in told.values():
        assert item.classes > 2 or item.label == readings.ALL or item.truth.sum() >= readings.FEW


@pytest.mark.slow
def test_the_sample_run(tmp_path: Path) -> None:
    sources = readings.load("sample")
    told = readings.corpus_readings(sources.casino, "strategy", folds=3)
    told += readings.corpus_readings(sources.delidata, "type", folds=3)
    raters = [readings.rate(item, n_resamples=100) for item in told]
    steps = kappa.version_steps(told, n_resamples=100)
    history = watch.all_snapshots(told, n_resamples=50)
    finding = kappa.record(sources, raters, steps, parameters={"folds": 3}, history=history)
    assert finding.sample
    assert finding.summary().startswith("SAMPLE")
    assert finding.measurement(f"casino/elicit-pref/{readings.HAND}/kappa").held_out is False
    assert {row["label"] for row in finding.records["raters"]} >= {"elicit-pref", readings.ALL}
    assert finding.records["health"]["health"] in ("healthy", "alarmed", "unknown")
    again = read_finding(finding.write(tmp_path))
    assert again.receipt == finding.receipt
    assert again.to_dict() == finding.to_dict()


@pytest.mark.corpora
def test_the_hand_lexicon_on_the_corpus(corpora_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LearntPhrases", "TfidfHead", "EmbeddingHead"):
        # The heads take a minute; a lexicon that knows nothing stands in for them.
        monkeypatch.setattr(readings, name, lambda seed, name=name: HandLexicon({}, name=name))
    told = readings.corpus_readings(readings.load("auto").casino, "strategy")
    assert {
        (item.label, len(item.truth), int(item.truth.sum())) for item in told if item.detector == readings.HAND
    } == {
        ("elicit-pref", 4615, 377),
        ("promote-coordination", 4615, 579),
    }
