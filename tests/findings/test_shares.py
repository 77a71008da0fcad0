"""Denominators as n, and intervals where no resample differs."""

from __future__ import annotations

import numpy as np
import pytest

from anima.findings import Finding, Measurement
from anima.findings.shares import counted, of_label, widened
from anima.stats import Estimate, wilson_interval

LABEL = {"statistic": "recall", "support": 40, "predicted": 25}


def _flat(value: float, *, name: str = "share", n: int = 18, n_clusters: int | None = None) -> Estimate:
    return Estimate(name, value, value, value, n=n, n_clusters=n_clusters)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_or_none_have_wilsons_interval(value: float) -> None:
    found = widened(_flat(value))
    assert [found.low, found.high] == pytest.approx(np.array(wilson_interval(18 * value, 18)))
    assert "Wilson" in found.method
    if not value:
        assert found.high == pytest.approx(0.176, abs=1e-3)
    # Whole clusters were resampled: fewer of them know less.
    assert widened(_flat(value, n=180, n_clusters=18)).low == pytest.approx(found.low)


def test_a_difference_of_nothing_is_not_known_exactly_either() -> None:
    found = widened(_flat(0.0, name="recall less nothing"))
    assert found.low == -found.high < 0


def test_other_intervals_stay() -> None:
    for same in (_flat(0.4), Estimate("share", 0.0, 0.0, 0.1, n=18), Estimate("share", 0.0)):
        assert widened(same) is same


def test_a_constant_answer_has_no_interval() -> None:
    assert not widened(_flat(0.0, name="macro-kappa, majority")).has_interval


@pytest.mark.parametrize(
    ("statistic", "n", "unit"),
    [
        ("recall", 40, "messages with the label"),
        ("f1", 40, "messages with the label"),
        ("precision", 25, "messages given the label"),
        ("kappa", 900, "messages"),
    ],
)
def test_what_a_number_of_a_label_is_a_share_of(statistic: str, n: int, unit: str) -> None:
    number = Estimate(statistic, 0.5, 0.4, 0.6, n=900, n_clusters=30, extra=LABEL | {"statistic": statistic})
    found, told = of_label(number)
    assert (found.n, found.n_clusters, told) == (n, 30, unit)


def test_a_mean_over_labels_counts_messages() -> None:
    number = Estimate("macro-F1", 0.5, 0.4, 0.6, n=900, extra={"statistic": "f1"})
    assert of_label(number) == (number, "messages")


def test_units_are_named_where_rows_were_resampled() -> None:
    assert counted(Estimate("x", 0.5, 0.4, 0.6, n=64), 110, units=64).n_clusters == 64
    assert counted(Estimate("x", 0.5, 0.4, 0.6, n=64, n_clusters=9), 110, units=64).n_clusters == 9


def test_no_measurement_of_a_finding_claims_to_know_a_share() -> None:
    made = Finding.make(
        "record", title="t", answer="a", measurements=[Measurement("x", "x", _flat(0.0))], limits=[], parameters={}
    )  # fmt: skip
    assert made.measurement("x").estimate.high > 0.1
