"""The labelling session: whatever happens, the state is what the file says."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import warnings
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.errors import DataError, DataWarning, InputError
from anima.metaeval import validate_judge
from anima.stats import cohen_kappa
from anima.widgets import LabellingSession

ITEMS = {f"r{i}": f"Reply {i}." for i in range(5)}
LABELS = ("plain", "flattery", "evasion")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def start(path: Path, annotator: str = "ana", items=ITEMS, labels=LABELS, **options) -> LabellingSession:
    return LabellingSession(items, labels, path, annotator=annotator, **options)


def state(session: LabellingSession) -> tuple:
    return session.labelled(), session.pending, session.last


def finish(session: LabellingSession, labels: list[str]) -> None:
    for label in labels:
        session.label(label)


# Any sequence of steps


class Model:
    """What a session should hold, kept in the plainest way: every state so far on a pile."""

    def __init__(self) -> None:
        self.pile: list[tuple[dict, tuple]] = [({}, tuple(ITEMS))]

    def step(self, label: str | None) -> None:
        labels, queue = self.pile[-1]
        if not queue:
            return
        first, *rest = queue
        self.pile.append(({**labels, first: label}, tuple(rest)) if label else (labels, (*rest, first)))

    def undo(self) -> None:
        if len(self.pile) > 1:
            self.pile.pop()


STEP = st.one_of(
    st.sampled_from(LABELS), st.sampled_from(["skip", "undo", "reload", "crash", "disk full", "other window"])
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["ana", "ben"]), STEP), max_size=25))
def test_any_sequence_equals_a_replay_of_the_file(steps: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        path = Path(folder) / "labels.jsonl"
        sessions = {name: start(path, name) for name in ("ana", "ben")}
        models = {name: Model() for name in sessions}
        for name, step in steps:
            session, model = sessions[name], models[name]
            if step == "reload":
                sessions[name] = start(path, name)
            elif step == "crash":  # a writer killed within a record, and the kernel with it
                with path.open("ab") as file:
                    file.write(b'{"kind":"label","annotator":"' + name.encode())
                sessions[name] = start(path, name)
            elif step == "disk full":
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("anima.jsonl._write", full)
                    if session.current is not None:
                        with pytest.raises(OSError, match="No space"):
                            session.label("plain")
            elif step == "undo":
                session.undo()
                model.undo()
            elif session.current is not None:
                window = start(path, name) if step == "other window" else session
                window.skip() if step == "skip" else window.label("plain" if step == "other window" else step)
                model.step(None if step == "skip" else "plain" if step == "other window" else step)
                session.refresh()
            assert state(sessions[name]) == state(start(path, name))
        for name, model in models.items():
            sessions[name].refresh()
            assert (sessions[name].labelled(), tuple(sessions[name].pending)) == model.pile[-1]


def full(handle, data: bytes, size: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


# Single rules


def test_undo_skip_and_order(path: Path) -> None:
    session = start(path)
    assert session.undo() is None
    assert not path.exists(), "nothing was done, nothing is written"
    assert session.skip() == "r1"
    assert session.label("flattery", "r1") == "r2"
    assert session.undo().label == "flattery"
    assert session.undo().kind == "skip"
    assert session.current == "r0"
    session.skip()
    finish(session, ["plain"] * 4)
    assert session.current == "r0"
    assert session.skip() == "r0", "the only one left comes back at once"
    session.label("evasion")
    assert session.current is None
    with pytest.raises(InputError, match=r"every item has a label of ana: undo\(\)"):
        session.label("plain")
    with pytest.raises(InputError, match="label must be one of"):
        session.label("Plain")


def test_a_label_is_for_the_item_that_was_seen(path: Path) -> None:
    here, there = start(path), start(path)
    there.label("plain")
    with pytest.raises(InputError, match="'r0' is not the current one, 'r1'"):
        here.label("flattery", "r0")
    assert here.labelled() == {"r0": "plain"}


def test_other_items_or_labels_are_refused(path: Path) -> None:
    start(path).label("plain")
    before = path.read_bytes()
    for items, labels in (({**ITEMS, "r0": "Changed."}, LABELS), ({"r0": "Reply 0."}, LABELS), (ITEMS, LABELS[:2])):
        with pytest.raises(InputError, match=r"labels\.jsonl:1: this file belongs to other items or labels"):
            start(path, items=items, labels=labels)
    assert path.read_bytes() == before
    assert start(path, seed=3).labelled() == {"r0": "plain"}, "another order of the same items is the same set"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"kind":"label","annotator":"ana","item":"r9","label":"plain"}', "not a step of this labelling session"),
        ('{"kind":"label","annotator":"ana","item":"r1","label":"nice"}', "not a step"),
        ('{"kind":"skip","annotator":"ana","item":"r1","label":"plain"}', "not a step"),
        ('{"kind":"label","annotator":7,"item":"r1","label":"plain"}', "not a step"),
        ('{"kind":"undo","annotator":"ana","item":"r3"}', "nothing of ana to undo at item 'r3'"),
        ('{"kind":"label","annotator":"ana","item":"r0","label":"plain"}', "has a label of ana already"),
        ("[1]", "must be a JSON object"),
    ],
)
def test_a_line_that_does_not_fit_is_named(path: Path, line: str, message: str) -> None:
    start(path).label("plain")
    with path.open("a") as file:
        file.write(line + "\n")
    for _ in range(2):
        with pytest.raises(DataError, match=rf"labels\.jsonl:3: .*{message}"):
            start(path)


def test_a_foreign_file_is_refused(path: Path) -> None:
    path.write_text('{"kind":"label","annotator":"ana","item":"r0","label":"plain"}\n')
    with pytest.raises(DataError, match="does not begin with the record of a labelling session"):
        start(path)


def test_a_record_cut_short_costs_one_label_and_is_said(path: Path) -> None:
    finish(start(path), ["plain", "evasion"])
    os.truncate(path, path.stat().st_size - 9)
    with pytest.warns(DataWarning, match="the last record is incomplete"):
        session = start(path)
    assert session.labelled() == {"r0": "plain"}
    with pytest.warns(DataWarning, match="moved to"):
        session.label("flattery", "r1")
    assert start(path).labelled() == {"r0": "plain", "r1": "flattery"}


def test_a_file_cut_down_is_read_anew(path: Path) -> None:
    session = start(path)
    finish(session, ["plain", "evasion"])
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    session.refresh()
    assert session.labelled() == {"r0": "plain"}
    path.unlink()
    session.refresh()
    assert session.label("plain") == "r1"
    assert start(path).labelled() == {"r0": "plain"}


def test_only_ids_texts_and_clusters_enter(path: Path) -> None:
    frame = pd.DataFrame({
        "utterance_id": ["a", "b"], "text": ["One.", "Two."], "dialogue_id": ["d", "e"], "gold": ["secret", "secret"],
        "score": [0.987654, 0.1],
    })  # fmt: skip
    session = start(path, items=frame)
    session.label("plain")
    assert session.clusters == {"a": "d", "b": "e"}
    assert "secret" not in repr(vars(session)) + path.read_text()
    assert "One." not in path.read_text() + json.dumps(session.to_dict()), "texts stay where they are"
    assert session.to_frame().to_dict("list") == {"item": ["a", "b"], "cluster": ["d", "e"], "ana": ["plain", None]}


def test_keys() -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = [f"label {i}" for i in range(20)]
        keys = start(Path(folder) / "a.jsonl", labels=names).keys
        assert list(keys)[:11] == [*"123456789", "a", "b"]
        assert not {"u", "s"} & set(keys)
        assert start(Path(folder) / "b.jsonl", labels={"Y": "yes", "n": "no"}).keys == {"y": "yes", "n": "no"}
        for labels, message in (
            ({"u": "yes", "n": "no"}, "u \\(undo\\)"), ({"ab": "yes", "n": "no"}, "one letter or digit"), (["a"], "two different"),
            (["a", "a"], "two different"),
            ({"A": "yes", "a": "no"}, "a key twice, in capitals and not"), ("ab", "one str"), ([str(i) for i in range(40)], "only 33 keys"),
        ):  # fmt: skip
            with pytest.raises(InputError, match=message):
                start(Path(folder) / "c.jsonl", labels=labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotator": "  "}, "annotator is blank"),
        ({"items": {}}, "nothing to label"),
        ({"items": {"a": None}}, "texts of items .*None"),
        ({"items": pd.DataFrame({"utterance_id": ["a", "a"], "text": ["x", "y"]})}, "the id 'a' twice"),
        ({"items": pd.DataFrame({"id": ["a"], "text": ["x"]})}, "lacks the column 'utterance_id'"),
        ({"detectors": {"ana": {}}}, "the annotator's name 'ana', .*rename the detector"),
        ({"detectors": ["d"]}, r"detectors must be .*got list \['d'\]: write \{name: \{item: label\}\}"),
        ({"detectors": {"d": "x"}}, r"detectors\['d'\] must be labels by item, .*got str 'x'"),
        (
            {"detectors": {"d": pd.Series(["plain", "plain"], ["r0", "r0"])}},
            r"detectors\['d'\] has the item 'r0' twice",
        ),
        ({"detectors": {"d": {"r0": ["plain"]}}}, r"item 'r0' has \['plain'\]"),
        ({"detectors": {"lexicon": {"r0": "praise"}}}, r"detectors\['lexicon'\]: item 'r0' has 'praise'"),
    ],
)
def test_bad_input_is_named(path: Path, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        start(path, **options)


# Agreement


def test_a_detector_with_the_name_of_an_annotator_is_refused_whenever_they_came(path: Path) -> None:
    start(path, "bob").label("plain")
    with pytest.raises(
        InputError, match=r"the annotator's name 'bob', who labels in .*labels\.jsonl: rename the detector"
    ):
        start(path, detectors={"bob": {"r0": "evasion"}})
    session = start(path, detectors={"zoe": {"r0": "evasion"}})
    assert [estimate.name for estimate in session.agreements()] == ["kappa of ana and bob", "kappa of ana and zoe"]
    start(path, "zoe").label("plain")
    assert session.label("plain") == "r1", "what others do keeps nobody from labelling"
    assert session.undo().label == "plain"
    for ask in (
        session.refresh, session.agreements, lambda: session.agreement("zoe"), session.to_frame, session.to_dict,
        lambda: session.validate({}),
    ):  # fmt: skip
        with pytest.raises(InputError, match="the annotator's name 'zoe'"):
            ask()


def test_results_are_those_of_the_file_as_it_is_now(path: Path) -> None:
    ana = start(path)
    finish(ana, ["plain", "evasion"] * 2)
    bob = ana.as_annotator("bob")
    finish(bob, ["plain", "evasion"] * 2)
    assert ana.agreement("bob").value == 1.0, "bob began after ana's last reading"
    for _ in range(4):
        bob.undo()
    finish(bob, ["evasion", "plain"] * 2)
    assert ana.agreement("bob").value == -1.0
    bob.undo()
    assert [estimate.n for estimate in ana.agreements()] == [3]
    bob.undo()
    assert ana.to_frame()["bob"].tolist() == ["evasion", "plain", None, None, None]
    bob.undo()
    assert ana.validate(dict.fromkeys(ITEMS, "evasion"), annotator="bob").n == 1
    bob.undo()
    assert ana.to_dict()["labelled"]["bob"] == {}


def test_missing_labels_of_a_judge_are_missing_and_what_is_no_labels_is_refused(path: Path) -> None:
    session = start(path)
    finish(session, ["plain"] * 4)
    judge = pd.Series([None, float("nan"), pd.NA, "plain", "odd"], ["r0", "r1", "r2", "r3", "elsewhere"], dtype=object)
    assert session.validate(judge).n == 1
    for given_, got in ((None, "NoneType None"), (["plain"], r"list \['plain'\]"), ("plain", "str 'plain'")):
        with pytest.raises(
            InputError, match=rf"judge_scores must be labels by item, .*got {got}: write {{item: label}}"
        ):
            session.validate(given_)


def test_agreement_is_that_of_stats(path: Path) -> None:
    items = {f"r{i:02}": f"Reply {i}." for i in range(30)}
    ana = [LABELS[i % 3] for i in range(30)]
    ben = [LABELS[(i + (i % 7 == 0)) % 3] for i in range(24)]
    found: dict[str, str | None] = dict(zip(items, [LABELS[i % 2] for i in range(30)], strict=True)) | {"r03": None}
    finish(start(path, "ben", items), ben)
    session = start(path, "ana", items, detectors={"lexicon": found})
    finish(session, ana)
    want = cohen_kappa(ana[:24], ben, categories=LABELS)
    got = session.agreement("ben")
    assert (got.value, got.low, got.high, got.n) == (want.value, want.low, want.high, 24)
    kept = [i for i in range(30) if i != 3]
    other = cohen_kappa([ana[i] for i in kept], [found[f"r{i:02}"] for i in kept], categories=LABELS)
    assert [e.value for e in session.agreements()] == [want.value, other.value]
    with pytest.raises(InputError, match="other must be one of 'ben', 'ana', 'lexicon'"):
        session.agreement("zoe")


def test_agreement_of_nothing_is_undefined(path: Path) -> None:
    start(path, "ben").label("plain")
    session = start(path)
    assert not session.agreement("ben").defined
    session.label("plain")
    assert "only 'plain'" in session.agreement("ben").reason


def test_intervals_and_validation_go_by_cluster(path: Path) -> None:
    n = 40
    frame = pd.DataFrame({
        "utterance_id": [f"u{i}" for i in range(n)], "text": ["x"] * n, "dialogue_id": [f"d{i // 4}" for i in range(n)],
    })  # fmt: skip
    session = start(path, items=frame, detectors={"lexicon": {}})
    people = [LABELS[i % 3] for i in range(n - 1)]
    finish(session, people)
    judge = {f"u{i}": LABELS[(i + (i % 5 == 0)) % 3] for i in range(1, n)} | {"elsewhere": "whatever"}
    other = session.as_annotator("ben")
    assert other.clusters == session.clusters
    assert session.hash == other.hash
    result = session.validate(judge)
    ids = frame["utterance_id"].tolist()
    want = validate_judge(
        {i: judge.get(i) for i in ids}, {**dict(zip(ids, people, strict=False)), "u39": None}, scale="nominal", categories=LABELS,
        clusters=session.clusters,
    )  # fmt: skip
    assert result.to_dict() == want.to_dict()
    assert result.agreement.n_clusters == 10
    assert result.accounting.losses == {"unlabelled": 1, "unscored": 1}
    assert session.validate(pd.Series(judge)).to_dict() == result.to_dict()
    assert session.validate(judge, scale="ordinal").scale == "ordinal"
    assert other.validate(judge).n == 0
    for ask in (lambda: session.validate(judge, annotator="nobody"), lambda: session.agreement("ana", "nobody")):
        with pytest.raises(InputError, match="annotator must be one of 'ana', got 'nobody'"):
            ask()
    with pytest.raises(InputError, match="other must be one of 'ana', 'lexicon', got 'nobody'"):
        session.agreement("nobody")
    with pytest.raises(InputError, match="judge_scores: item 'u1' has 1"):
        session.validate({"u1": 1})
