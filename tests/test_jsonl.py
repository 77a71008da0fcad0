"""Append-only JSON lines: round trips, faults of writers and disks, reading what others append."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anima import jsonl, locks
from anima.errors import DataError, DataWarning, InputError
from anima.jsonl import JsonlFile, JsonlReader, Line, dumps, loads, read_record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)
slow_tmp = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(source: Path | JsonlFile, **options: str) -> list[dict]:
    file = source if isinstance(source, JsonlFile) else JsonlFile(source)
    return [record for _, record in JsonlReader(file, read_record, **options).refresh()[1]]


# --- values ---------------------------------------------------------------------------------------------------------


@given(RECORDS)
def test_a_record_survives_the_line(record):
    data = dumps(record)
    assert b"\n" not in data
    assert loads(Line(None, 1, data)) == record


def test_numbers_are_written_as_javascript_writes_them():
    record = {"a": 1.0, "b": math.nan, "c": np.float32(0.5), "d": np.int64(3), "e": np.array([1.5, 2.0]), "f": -0.0}
    assert dumps(record) == b'{"a":1,"b":null,"c":0.5,"d":3,"e":[1.5,2],"f":0}'


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"m": {"r": math.inf}}, r"record\.m\.r is inf"),
        ({"m": [object()]}, r"record\.m\[0\] is a object"),
        ({"t": "\ud83d"}, "lone surrogate"),
        # a conversation id of None breaks the JSON of ConvoKit (CornellNLP/ConvoKit PR #178)
        ({"m": {None: 1}}, r"record\.m has the key None"),
        ([1], "must be a mapping"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(tmp_path, record, problem):
    with pytest.raises(InputError, match=problem):
        JsonlFile(tmp_path / "a.jsonl").extend([{"fine": 1}, record])
    assert not (tmp_path / "a.jsonl").exists()


def test_a_record_that_holds_itself_is_refused():
    record = {}
    record["me"] = record
    with pytest.raises(InputError, match="nested too deeply"):
        dumps(record)


def test_half_an_emoji_is_mended_and_deep_or_foreign_lines_are_refused(tmp_path):
    assert loads(Line(tmp_path, 1, rb'{"t":["a\ud83d","\ud83d\ude00"]}')) == {"t": ["a\ufffd", "\U0001f600"]}
    for data in (b"[" * 100_000, '{"a":1}'.encode("utf-16"), b'{"a":"\xff"}', b'{"a":1}{"b":2}'):
        with pytest.raises(DataError, match=":7: corrupt JSON line"):
            loads(Line(tmp_path, 7, data))


def test_integers_beyond_53_bits_keep_their_digits(tmp_path):
    # pandas turns such ids into floats (pandas-dev/pandas#52505)
    file = JsonlFile(tmp_path / "a.jsonl")
    file.append({"id": 72057594038135102, "text": "NA", "zeros": "007"})
    assert read(file) == [{"id": 72057594038135102, "text": "NA", "zeros": "007"}]


# --- reading --------------------------------------------------------------------------------------------------------


def test_a_byte_order_mark_crlf_and_blank_lines_are_read_over(tmp_path):
    # with a naive reader the first name becomes '\ufeffid' (Meaningful-Data/vtlengine#653)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id":1}\r\n\r\n  \n{"id":2}\r\n{bad\n')
    with pytest.raises(DataError, match=r"a\.jsonl:5: corrupt JSON line .*\{bad"):
        read(path)
    with pytest.warns(DataWarning, match=r"1 corrupt line left out, the first: .*a\.jsonl:5"):
        assert read(path, on_corrupt="quarantine") == [{"id": 1}, {"id": 2}]
    path.write_bytes(b'\xef\xbb\xbf{"id":1}')
    assert read(path) == [{"id": 1}]
    path.write_bytes(b"\xef\xbb\xbf")
    assert read(path) == []
    JsonlFile(path).append({"id": 2})
    assert read(path) == [{"id": 2}]


def test_nothing_is_made_by_reading(tmp_path):
    assert read(tmp_path / "no" / "a.jsonl") == read(tmp_path / "a.jsonl") == []
    assert list(tmp_path.iterdir()) == []


def test_an_error_comes_again_at_every_reading(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n[2]\n')
    reader = JsonlReader(JsonlFile(path), read_record)
    for _ in range(2):
        with pytest.raises(DataError, match=r"a\.jsonl:2: must be a JSON object, got \[2\]"):
            reader.refresh()
    path.write_bytes(b'{"a":1}\n{"a":2}\n')
    assert [item for _, item in reader.refresh()[1]] == [{"a": 1}, {"a": 2}]


def test_a_reader_gives_only_what_is_new(tmp_path):
    writer = JsonlFile(tmp_path / "a.jsonl", max_bytes=30)
    reader = JsonlReader(JsonlFile(tmp_path / "a.jsonl", max_bytes=30), read_record)
    assert reader.refresh() == (True, [])
    got = []
    for i in range(20):
        writer.append({"i": i})
        if i % 3 == 0:
            anew, items = reader.refresh()
            assert not anew
            got += items
    got += reader.refresh()[1]
    assert len(writer.files()) > 3
    assert [item["i"] for _, item in got] == list(range(20))
    fresh = JsonlReader(writer, read_record).refresh()[1]
    assert [line.number for line, _ in fresh] == [line.number for line, _ in got]
    writer.files()[0].unlink()
    anew, items = reader.refresh()
    assert anew
    assert [item for _, item in items] == read(writer)


def test_a_last_record_without_its_line_end_counts_once(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"i":0}\n{"i":1}')
    reader = JsonlReader(JsonlFile(path), read_record)
    assert [item["i"] for _, item in reader.refresh()[1]] == [0, 1]
    assert reader.refresh() == (False, [])
    JsonlFile(path).append({"i": 2})
    anew, items = reader.refresh()
    assert anew
    assert [item["i"] for _, item in items] == [0, 1, 2]


def test_a_record_in_flight_is_reported_once_and_read_when_complete(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"i":0}\n{"i":')
    reader = JsonlReader(JsonlFile(path), read_record)
    with pytest.warns(DataWarning, match=r"a\.jsonl:2: the last record is incomplete"):
        assert [item["i"] for _, item in reader.refresh()[1]] == [0]
    assert reader.torn.line == 2
    assert reader.refresh() == (False, [])
    with path.open("ab") as other:
        other.write(b"1}\n")
    assert [item["i"] for _, item in reader.refresh()[1]] == [1]
    assert reader.torn is None


def test_quarantined_lines_are_counted_through_refreshes(tmp_path):
    file = JsonlFile(tmp_path / "a.jsonl")
    file.append({"i": 0})
    with file.path.open("ab") as other:
        other.write(b"oops\n")
    reader = JsonlReader(file, read_record, on_corrupt="quarantine")
    with pytest.warns(DataWarning):
        reader.refresh()
    file.append({"i": 1})
    with file.path.open("ab") as other:
        other.write(b"again\n")
    with pytest.warns(DataWarning):
        assert [item for _, item in reader.refresh()[1]] == [{"i": 1}]
    assert [(bad.line, bad.text) for bad in reader.bad] == [(2, "oops"), (4, "again")]


# --- writers that stop ----------------------------------------------------------------------------------------------


@slow_tmp
@given(st.lists(RECORDS, min_size=1, max_size=4), RECORDS, st.floats(0, 1, exclude_max=True))
def test_a_torn_record_is_set_aside_and_never_joined_to_the_next(tmp_path_factory, records, late, where):
    # appended records glued onto a torn line: elizaOS/eliza#30878; torn inside a character: Tracer-Cloud/opensre#6356
    path = tmp_path_factory.mktemp("torn") / "a.jsonl"
    file = JsonlFile(path, durability="batch")
    file.extend(records)
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    cut = start + int(where * (len(whole) - 1 - start))
    path.write_bytes(whole[:cut])
    torn = whole[start:cut].strip() != b""
    if torn:
        with pytest.warns(DataWarning, match="incomplete"):
            assert read(file) == records[:-1]
        with pytest.warns(DataWarning, match=f"{cut - start} bytes were moved to"):
            file.append(late)
        assert (path.parent / "a.jsonl.torn").read_bytes() == whole[start:cut] + b"\n"
    else:
        file.append(late)
    assert read(file) == [*records[:-1], late]


def test_a_record_that_lacks_only_its_line_end_is_kept(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"i":0}')
    JsonlFile(path).append({"i": 1})
    assert path.read_bytes() == b'{"i":0}\n{"i":1}\n'
    assert not (tmp_path / "a.jsonl.torn").exists()


def test_a_long_torn_record_is_found_whole(tmp_path):
    # appendFile of Node writes more than 512 KiB in several pieces (Prism-Shadow/penguin-harness PR #249)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"i":0}\n{"image":"' + b"x" * 700_000)
    with pytest.warns(DataWarning, match="700010 bytes were moved to"):
        JsonlFile(path).append({"i": 1})
    assert read(path) == [{"i": 0}, {"i": 1}]


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_takes_the_half_written_record_back(tmp_path):
    program = """
import resource, signal, sys
from anima.jsonl import JsonlFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
file = JsonlFile(sys.argv[1])
file.append({"text": "a" * 50})
for record in ({"text": "b" * 80}, {"text": "c" * 200}):
    try:
        file.append(record)
    except OSError:
        print("refused")
file.append({"d": 1})
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a.jsonl"], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["refused", "refused"], done.stderr
    assert read(tmp_path / "a.jsonl") == [{"text": "a" * 50}, {"d": 1}]


# --- several writers, rotation, locks -------------------------------------------------------------------------------


def test_stamps_strictly_increase_within_one_millisecond(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl.time, "time_ns", lambda: 1_700_000_000_000_000_000)
    for i in range(5):
        JsonlFile(tmp_path / "a.ndjson", max_bytes=1).append({"i": i})  # each as if in a process of its own
    file = JsonlFile(tmp_path / "a.ndjson", max_bytes=1)
    assert [path.name for path in file.files()] == [
        *(f"a.{1_700_000_000_000 + i}.ndjson" for i in range(4)),
        "a.ndjson",
    ]
    assert [record["i"] for record in read(file)] == list(range(5))


def test_stamps_sort_as_numbers_and_strange_names_are_not_read_in_silence(tmp_path):
    for name, i in (("a.9.ndjson", 0), ("a.10.ndjson", 1), ("a.ndjson", 2), ("b.ndjson", 7), ("a.backup.ndjson", 8)):
        (tmp_path / name).write_text(f'{{"i":{i}}}\n')
    with pytest.warns(DataWarning, match=r"a\.backup\.ndjson is not read"):
        assert [record["i"] for record in read(JsonlFile(tmp_path / "a.ndjson", max_bytes=99))] == [0, 1, 2]


def test_threads_lose_nothing(tmp_path):
    def write(name: int) -> None:
        file = JsonlFile(tmp_path / "a.jsonl", durability="batch", max_bytes=400)
        for i in range(50):
            file.append({"name": name, "i": i})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = read(JsonlFile(tmp_path / "a.jsonl", max_bytes=400))
    for name in range(4):
        assert [record["i"] for record in records if record["name"] == name] == list(range(50))


def test_without_system_locks_the_existence_of_a_file_is_the_lock(tmp_path, monkeypatch):
    def refuse(handle: object) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(locks, "_acquire", refuse)
    test_threads_lose_nothing(tmp_path)
    assert not list(tmp_path.glob("*-held"))
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    (tmp_path / "a.jsonl.lock-held").touch()
    with pytest.raises(DataError, match=r"a\.jsonl\.lock-held stayed for 0\.05 s: delete it"):
        JsonlFile(tmp_path / "a.jsonl").append({})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "path must name a place on the disk, got ''"),
        ("a\0.jsonl", "path must name a place on the disk"),
        (7, "path must be a str or a Path, got int 7"),
        (".", r"is a folder: add the name of a file, e\.g\. .*a\.jsonl"),
        ("file/a.jsonl", r"lies under .*, which is a file: give another path"),
        ("file/deeper/a.jsonl", r"lies under .*, which is a file: give another path"),
        ("x" * 300 + ".jsonl", "cannot be used .File name too long.*give the path of a file in a folder"),
        ("~nobody-of-this-name/a.jsonl", "write the path out"),
    ],
)
def test_a_path_that_cannot_be_used_is_refused_at_once(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=message):
        JsonlFile(path).append({})
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOENT])
def test_what_cannot_be_written_or_read_is_named_and_a_fault_of_the_machine_is_not_hidden(tmp_path, monkeypatch, code):
    file = JsonlFile(tmp_path / "deep" / "a.jsonl")
    message = rf"a\.jsonl' cannot be used \({os.strerror(code)}.*give the path of a file in a folder that you may write"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", lambda path, **_: refuse(code, path))
        with pytest.raises(InputError, match=message):
            file.append({})
    file.append({"i": 0})
    for ask in (lambda: read(file), file.flush, lambda: file.append({})):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", lambda path, *_, **__: refuse(code, path))
            with pytest.raises(InputError, match=message):
                ask()
            patch.setattr(Path, "open", lambda path, *_, **__: refuse(errno.EIO, path))
            with pytest.raises(OSError, match="Input/output"):
                ask()
    with pytest.raises(FileNotFoundError), file.held():  # what the holder does is the holder's
        refuse(errno.ENOENT, tmp_path)
    assert read(file) == [{"i": 0}]


def refuse(code: int, path: Path) -> None:
    raise OSError(code, os.strerror(code), str(path))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_can_be_read(tmp_path, monkeypatch, code):
    (tmp_path / "a.jsonl").write_text('{"i":0}\n')

    def refuse(path: Path) -> None:
        raise OSError(code, "read-only")

    monkeypatch.setattr(locks, "locked", refuse)
    assert read(tmp_path / "a.jsonl") == [{"i": 0}]


def test_options_are_checked_and_fsync_is_asked_for(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="durability must be one of"):
        JsonlFile("a", durability="maybe")
    with pytest.raises(InputError, match="max_bytes must be at least 1"):
        JsonlFile("a", max_bytes=0)
    synced = []
    real = jsonl.os.fsync
    monkeypatch.setattr(jsonl.os, "fsync", lambda fd: synced.append(fd) or real(fd))
    file = JsonlFile(tmp_path / "batch.jsonl", durability="batch")
    file.extend({"i": i} for i in range(3))
    assert not synced
    file.flush()
    assert synced
    synced.clear()
    file = JsonlFile(tmp_path / "record.jsonl")
    file.extend([])
    assert not file.path.exists()
    file.extend({"i": i} for i in range(3))
    assert len(synced) == 2  # the new name in the folder, and the records
