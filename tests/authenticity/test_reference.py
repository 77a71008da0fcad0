"""References: the folder of the reference service, and every way in which it can be broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.authenticity import Instrument, Reference, Settings, catalogue
from anima.authenticity.files import parse_json
from anima.embedding import TableEmbedder
from anima.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def _baseline(pool: str, n: int = 2) -> str:
    row = {
        "text": f"{pool} text",
        "vector": [1.0, 0.5, 0.0],
        "corpus": pool,
        "block_id": "B1",
        "tags": ["a"],
        "metrics": {"deriva": "none"},
    }
    return "".join(json.dumps(row | {"vector": [1.0, i, 0.0]}) + "\n" for i in range(n))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound folder in the form of the reference service."""
    prototypes = {name: [f"{name.lower()} phrase", f"another {name.lower()} phrase"] for name in catalogue()}
    (tmp_path / "intent_prototypes.json").write_text(json.dumps(prototypes, indent=2))
    (tmp_path / "poles_1024.json").write_text(
        '{"pos": [1, 0, 0],\n "neg": [[0, 2, 0],\n [0, 4, 0]],\n "neu": [0, 0, 1],\n "meta": {}}'
    )
    markers = {"markers": [{"id": "M1", "pattern": "EXPAND", "regex": "(?i)\\bhello\\b", "weight": 0.5, "note": "n"}]}
    (tmp_path / "formal_markers.json").write_text(json.dumps(markers, indent=1))
    for pool in ("core", "shadow", "edge"):
        (tmp_path / f"baseline_{pool}.jsonl").write_text(_baseline(pool))
    return tmp_path


def test_a_sound_folder(folder: Path) -> None:
    reference = Reference.from_dcs_gate(folder)
    assert len(reference.prototypes) == 40
    assert reference.intents == tuple(catalogue())
    assert [entry.pool for entry in reference.pools] == ["core", "core", "shadow", "shadow", "edge", "edge"]
    assert reference.poles["doubt"] == pytest.approx([0, 1, 0])
    assert reference.pool_vectors is not None
    assert np.linalg.norm(reference.pool_vectors, axis=1) == pytest.approx(1)
    assert [marker.id for marker in reference.markers] == ["M1"]


def test_what_the_service_does_without_may_be_absent(folder: Path) -> None:
    (folder / "baseline_edge.jsonl").unlink()
    (folder / "poles_1024.json").write_text('{"pos": [1, 0, 0], "neg": null}')
    (folder / "baseline_core.jsonl").write_text("\ufeff" + '{"text": "t", "vector": [1, 0, 0], "notes": null}\r\n\n')
    reference = Reference.from_dcs_gate(folder)
    assert set(reference.poles) == {"certainty"}
    texts = [example.text for example in reference.prototypes]
    instrument = Instrument(
        reference,
        TableEmbedder([*texts, "Hello to you all"], np.eye(41)[:, :3] + 0.1, id="t"),
        Settings(rules="reference"),
    )
    found = instrument.analyze("Hello to you all", keywords="off")
    assert found.pole.label == ""
    assert found.pools.edge_top1 == 0
    assert found.markers[0].marker_id == "M1"


def _line(pool: str, line: int, **changes: Any) -> Callable[[Path], None]:
    """Break one line of a baseline file."""

    def apply(folder: Path) -> None:
        path = folder / f"baseline_{pool}.jsonl"
        lines = path.read_text().splitlines()
        row = json.loads(lines[line - 1]) | changes
        lines[line - 1] = json.dumps({key: value for key, value in row.items() if value is not ...})
        path.write_text("\n".join(lines))

    return apply


def _text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return apply


def _bytes(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "prototypes absent": (lambda f: (f / "intent_prototypes.json").unlink(), r"intent_prototypes.json: cannot be read \(No such file"),
    "poles absent": (lambda f: (f / "poles_1024.json").unlink(), r"poles_1024.json: cannot be read"),
    "markers absent": (lambda f: (f / "formal_markers.json").unlink(), r"formal_markers.json: cannot be read"),
    "one baseline left": (
        lambda f: ((f / "baseline_core.jsonl").unlink(), (f / "baseline_edge.jsonl").unlink()),
        r"needs at least two of baseline_core.jsonl, .* found \['shadow'\]",
    ),
    "a folder for a file": (
        lambda f: ((f / "poles_1024.json").unlink(), (f / "poles_1024.json").mkdir()), r"poles_1024.json: cannot be read \(Is a directory\)",
    ),
    "prototypes not JSON": (_bytes("intent_prototypes.json", b'{"VALIDATE":\n ["a",]}'), r"intent_prototypes.json:2: not JSON"),
    "prototypes a list": (_bytes("intent_prototypes.json", b"[1]"), r"intent_prototypes.json:1: must be a JSON object .* \[1\]"),
    "prototypes empty": (_bytes("intent_prototypes.json", b"{}"), r"intent_prototypes.json:1: must be a JSON object"),
    "prototypes latin-1": (_bytes("intent_prototypes.json", b'{"A": ["caf\xe9"]}'), r"intent_prototypes.json: not UTF-8 at byte 11"),
    "phrases a string": (_text("intent_prototypes.json", '"PROBE": [', '"PROBE": "x", "X": ['), r"json:70: field 'PROBE' must be a non-empty list .* 'x'"),
    "phrase a number": (_text("intent_prototypes.json", '"probe phrase"', "7"), r"json:70: field 'PROBE', item 0, must be a non-blank string, got 7"),
    "phrase blank": (_text("intent_prototypes.json", '"another probe phrase"', '"  "'), r"json:70: field 'PROBE', item 1, .* got '  '"),
    "poles a list": (_bytes("poles_1024.json", b"[]"), r"poles_1024.json:1: must be a JSON object"),
    "pole a string": (_text("poles_1024.json", "[0, 0, 1]", '"x"'), r"json:4: field 'neu' must be a non-empty list of numbers, got 'x'"),
    "pole with a word": (_text("poles_1024.json", "[1, 0, 0]", '[1, "0", 0]'), r"json:1: field 'pos', item 1, must be a finite number, got '0'"),
    "pole of another length": (_text("poles_1024.json", "[1, 0, 0]", "[1, 0]"), r"json:1: field 'pos' has 2 numbers, .* baseline files 3"),
    "pole vectors differ": (_text("poles_1024.json", "[0, 4, 0]", "[0, 4]"), r"json:2: field 'neg' has 2 numbers"),
    "pole with NaN": (_text("poles_1024.json", "[0, 4, 0]", "[0, NaN, 0]"), r"json:2: field 'neg', vector 1, item 1, must be a finite number, got nan"),
    "pole zero": (_text("poles_1024.json", "[0, 0, 1]", "[0, 0, 0]"), r"json:4: field 'neu' is a zero vector"),
    "pole cancels out": (_text("poles_1024.json", "[0, 4, 0]", "[0, -4, 0]"), r"json:2: field 'neg': its vectors cancel out"),
    "markers not JSON": (_bytes("formal_markers.json", b'{\n"markers": [,]}'), r"formal_markers.json:2: not JSON"),
    "markers a number": (_bytes("formal_markers.json", b'{"markers": 3}'), r"formal_markers.json: field 'markers' must be a list .* 3"),
    "marker without id": (_text("formal_markers.json", '"M1"', "null"), r"formal_markers.json: markers\[0\]: field 'id' must be"),
    "marker regex": (_text("formal_markers.json", "(?i)", "(?=x)("), r"formal_markers.json: markers\[0\]: field 'regex' cannot be used"),
    "marker weight": (_text("formal_markers.json", "0.5", '"0.5"'), r"markers\[0\]: field 'weight' must be a number in \[0, 1\], got '0.5'"),
    "line not JSON": (_text("baseline_core.jsonl", "\n", "\n{oops\n"), r"baseline_core.jsonl:2: not JSON \(.* column 2\)"),
    "line a list": (_bytes("baseline_shadow.jsonl", b"[1, 2]"), r"baseline_shadow.jsonl:1: must be a JSON object, got \[1, 2\]"),
    "line nested without end": (_bytes("baseline_core.jsonl", b"[" * 100_000), r"baseline_core.jsonl:1: not"),
    "no vector": (_line("core", 2, vector=...), r"baseline_core.jsonl:2: field 'vector' is missing"),
    "no text": (_line("edge", 1, text=...), r"baseline_edge.jsonl:1: field 'text' is missing"),
    "text a number": (_line("edge", 1, text=3), r"baseline_edge.jsonl:1: field 'text' must be a string, got 3"),
    "vector empty": (_line("shadow", 2, vector=[]), r"baseline_shadow.jsonl:2: field 'vector' must be a non-empty list"),
    "vector of words": (_line("core", 2, vector=[1, None, 0]), r"core.jsonl:2: field 'vector', item 1, must be a finite number, got None"),
    "vector of booleans": (_line("core", 1, vector=[True, 0, 0]), r"core.jsonl:1: field 'vector', item 0, .* got True"),
    "vector infinite": (_line("core", 2, vector=[float("inf"), 0, 0]), r"core.jsonl:2: field 'vector', item 0, .* got inf"),
    "vector beyond floats": (_line("core", 2, vector=[10**400, 0, 0]), r"core.jsonl:2: field 'vector', item 0, .* got 10000"),
    "vector zero": (_line("edge", 2, vector=[0, 0, 0]), r"edge.jsonl:2: field 'vector' is a zero vector"),
    "vector of another length": (_line("edge", 2, vector=[1, 2]), r"edge.jsonl:2: field 'vector' has 2 numbers, the first line of the folder 3"),
    "metrics a list": (_line("core", 1, metrics=[1]), r"core.jsonl:1: field 'metrics' must be an object, got \[1\]"),
    "metric a number": (_line("core", 2, metrics={"deriva": 0.3}), r"core.jsonl:2: field 'metrics.deriva' must be a string, got 0.3"),
    "tags a string": (_line("core", 1, tags="a"), r"core.jsonl:1: field 'tags' must be a list of strings, got 'a'"),
    "tag a number": (_line("core", 1, tags=["a", 1]), r"core.jsonl:1: field 'tags' must be a list of strings"),
    "patterns a string": (_line("core", 1, secondary_patterns="X"), r"core.jsonl:1: field 'secondary_patterns' must be a list"),
    "similarity a string": (_line("shadow", 1, sim_pos="0.1"), r"shadow.jsonl:1: field 'sim_pos' must be a finite number, got '0.1'"),
    "similarity NaN": (_line("shadow", 1, sim_neu=float("nan")), r"shadow.jsonl:1: field 'sim_neu' must be a finite number, got nan"),
    "no lines": (
        lambda f: [(f / f"baseline_{pool}.jsonl").write_text("\n") for pool in ("core", "shadow", "edge")], r"the baseline files hold no line",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_names_file_line_and_field(folder: Path, name: str) -> None:
    breaks, message = BROKEN[name]
    breaks(folder)
    with pytest.raises(DataError, match=message) as caught:
        Reference.from_dcs_gate(folder)
    assert str(folder) in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("field", ["corpus", "block_id", "position", "primary_pattern", "source_model", "notes"])
def test_text_fields_must_be_text(folder: Path, field: str) -> None:
    _line("core", 2, **{field: 4})(folder)
    with pytest.raises(DataError, match=rf"baseline_core.jsonl:2: field '{field}' must be a string, got 4"):
        Reference.from_dcs_gate(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        Reference.from_dcs_gate(tmp_path / "nowhere")


def test_vectors_of_another_embedder(folder: Path) -> None:
    reference = Reference.from_dcs_gate(folder)
    texts = [example.text for example in reference.prototypes]
    table = TableEmbedder([*texts, "hello to you"], np.eye(41), id="t")
    with pytest.raises(InputError, match=r"dimensions, the embedder 't' 41; use the embedder that made the folder"):
        Instrument(reference, table, Settings(rules="reference")).analyze("hello to you")


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)).map(json.dumps)
)
def test_json_parses_or_names_its_place(text: str) -> None:
    try:
        wanted = json.dumps(json.loads(text))
    except ValueError:
        with pytest.raises(DataError, match=r"^f.json:\d+: not") as caught:
            parse_json(text, Path("f.json"), 3)
        assert int(str(caught.value).split(":")[1]) >= 3
    else:
        assert json.dumps(parse_json(text, Path("f.json"), 3)) == wanted
