"""Snapshots of judges: shape, ranges, and times that mean one instant."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anima.checks import require_instant
from anima.errors import DataError, InputError
from anima.metaeval import SENTINEL_METRICS, SentinelSnapshot, validate_sentinel_snapshot

_PART = ("outcome_store", "sentinel_shape", "sentinel_store", "trace_store")
DIFFERENCES = {
    case: entry
    for case, entry in tomllib.loads((Path(__file__).parent / "differences.toml").read_text(encoding="utf-8")).items()
    if case.rsplit("-", 1)[0] in _PART
}
GOOD = {"at": "2026-01-05T10:00:00Z", "judgeId": "J", "judgeModel": "m@1", "metrics": {"irr": 0.8}}


@pytest.mark.oracle
def test_shapes_are_judged_as_by_the_reference_package(oracle_cases):
    for case in oracle_cases("sentinel_shape"):
        snapshot = case["input"]["snapshot"]
        if snapshot:
            snapshot["metrics"] = (
                {k: v for k, v in snapshot["metrics"].items() if v != {"$undefined": True}}
                if isinstance(snapshot.get("metrics"), dict)
                else snapshot.get("metrics")
            )
        try:
            validate_sentinel_snapshot(snapshot)
            ours = "ok"
        except DataError as problem:
            ours = str(problem)
        theirs = case["error"]["message"] if "error" in case else "ok"
        if case["id"] in DIFFERENCES:
            assert DIFFERENCES[case["id"]]["result"] == "error"
            assert ours.startswith("judge-sentinel: snapshot")
            assert not ours.startswith(theirs)
        else:
            assert ours.startswith(theirs), case["id"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"at": "Jan 1 2020"}, 'at is not a parseable ISO timestamp: "Jan 1 2020"; give date, time and zone'),
        ({"at": "2026-13-01T00:00:00Z"}, "snapshot.at"),
        ({"judgeModel": 3}, "snapshot.judgeModel must be a non-empty string"),
        ({"metrics": {"irr": -1.01}}, r"metrics.irr must lie in \[-1, 1\], got -1.01"),
        ({"metrics": {"sentinelPassRate": -0.1}}, r"metrics.sentinelPassRate must lie in \[0, 1\]"),
        ({"metrics": {"irr": True}}, "not a finite number: true"),
        ({"n": {"irr": 0}}, "n.irr must be a positive whole number, got 0"),
        ({"n": {"irr": 2.5}}, "n.irr must be"),
        ({"n": 5}, "n must be an object, got 5"),
        ({"interval": {"irr": [0.9, 0.1]}}, "two finite numbers"),
        ({"interval": {"irr": [0.9]}}, "two finite numbers"),
        ({"interval": {"kappa": [0, 1]}}, 'interval carries unknown key "kappa"'),
    ],
)  # fmt: skip
def test_stricter_than_the_reference_package(change, problem):
    with pytest.raises(DataError, match=problem):
        validate_sentinel_snapshot(GOOD | change)
    with pytest.raises(DataError, match=r"judge-sentinel: line 3\.at"):
        validate_sentinel_snapshot(GOOD | {"at": None}, "line 3")


def test_a_good_snapshot_reads_as_python():
    metrics = dict.fromkeys(SENTINEL_METRICS, np.float64(1 + 1e-16))
    snapshot = validate_sentinel_snapshot(GOOD | {"metrics": metrics, "n": {"irr": np.int64(5)}})
    assert snapshot.metrics.get("calibrationKappa") == snapshot.metrics.calibration_kappa == 1
    assert (snapshot.n.irr, snapshot.interval) == (5, None)
    assert snapshot.time == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert validate_sentinel_snapshot(snapshot) is snapshot
    made = SentinelSnapshot(at=GOOD["at"], judge_id="J", judge_model="m@1", metrics={"sentinel_pass_rate": 0.5})
    assert made.to_dict() == GOOD | {"metrics": {"sentinelPassRate": 0.5}}
    with pytest.raises(ValidationError, match="must lie in"):
        SentinelSnapshot(at=GOOD["at"], judge_id="J", judge_model="m@1", metrics={"irr": 2.0})


def test_instants_are_compared_and_not_their_spelling():
    # as text the second sorts before the first; cf. naive and aware times in one column (man-group/arctic#264)
    texts = ["2026-03-02T01:00:00+00:00", "2026-03-01T23:30:00-05:00"]
    assert sorted(texts, key=lambda text: require_instant(text, "at")) == texts
    with pytest.raises(InputError, match="at must be an ISO-8601 time with a zone"):
        require_instant("2026-01-05T10:00:00", "at")


def test_hour_24_is_the_next_midnight():
    # datetime.fromisoformat refuses it before Python 3.13
    assert require_instant("2026-01-05T24:00:00Z", "at") == datetime(2026, 1, 6, tzinfo=UTC)
    assert require_instant("2026-12-31T24:00-02:00", "at") == datetime(2027, 1, 1, 2, tzinfo=UTC)
    for bad in (
        "2026-01-05T24:00:01Z",
        "2026-01-05T25:00:00Z",
        "9999-12-31T24:00:00Z",
        "2026-01-05t10:00:00z",
        5,
        None,
    ):
        with pytest.raises(InputError):
            require_instant(bad, "at")


@given(st.datetimes(timezones=st.timezones()))
def test_every_aware_time_is_read_back(moment):
    try:
        utc = moment.astimezone(UTC)
    except OverflowError:
        return
    if moment.utcoffset().total_seconds() % 60 == 0:
        assert require_instant(moment.isoformat(), "at") == utc
    assert require_instant(utc.isoformat().replace("+00:00", "Z"), "at") == utc
