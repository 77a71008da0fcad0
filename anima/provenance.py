"""The page on status and provenance: what was published from what, by which code, with which versions, and how long it took.

Everything on it is read from the published results, the lock, the data files and the notebooks of the build.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Final, TypeAlias

from anima.errors import DataError
from anima.findings import compare_findings, published_findings, read_finding
from anima.findings.receipt import digest
from anima.settings import data_path
from anima.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ORDER: Final = ("holds", "fails", "undecided", "not measured")

Table: TypeAlias = "tuple[tuple[str, ...], Sequence[tuple[str, ...]]]"

#: Extras whose packages have a hand in the numbers and pages of the book.
_EXTRAS: Final = ("book",)
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)")


def finding_rows(folder: Path, chapters: Sequence[str]) -> Table:
    """Return one row per published finding: its claims, the corpora, and how the run of this build compares.

    Parameters
    ----------
    folder
        Source folder of the build, in which notebooks may have left the results of their run.
    chapters
        Documents of the book; a finding whose notebook is among them is linked.
    """
    rows = []
    for name, found in published_findings().items():
        chapter = next(
            (one for one in chapters if one.startswith("notebooks/") and one.split("_", 1)[-1] == name), None
        )
        title = f"{{doc}}`{chapter}`" if chapter else found.title
        verdicts = list(found.verdicts()["verdict"])
        claims = ", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts), key=_ORDER.index))
        corpora = ", ".join(item.name for item in found.materials) or "written data only"
        rerun = folder / "notebooks" / "results" / f"{name}.json"
        state = compare_findings(found, read_finding(rerun)).summary() if rerun.is_file() else "not run in this build"
        rows.append((title, claims or "no claim", corpora, state))
    return ("finding", "claims", "computed on", "the run of this build"), rows


def receipt_rows() -> Table:
    """Return one row per published finding: the hashes of its code, parameters and results."""
    rows = [
        (name, *(f"`{part}`" for part in (found.receipt.sources, found.receipt.parameters, found.receipt.outputs)))
        for name, found in published_findings().items()
    ]
    return ("finding", "code", "parameters", "results"), rows


def corpus_rows() -> Table:
    """Return one row per corpus that a published finding used."""
    used = {item.hash: item for found in published_findings().values() for item in found.materials}
    rows = [
        (
            item.name,
            f"`{item.hash[:16]}`",
            f"{item.dialogues:,} / {item.utterances:,}",
            item.version or "–",
            item.licence or "–",
        )
        for item in sorted(used.values(), key=lambda item: (item.name, item.hash))
    ]
    return ("corpus", "hash of its files", "dialogues / utterances", "version", "licence"), rows


def run_time_rows(folder: Path) -> Table:
    """Return one row per executed notebook: how long it ran, as papermill wrote it down."""
    rows = []
    for path in sorted((folder / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        seconds = notebook["metadata"].get("papermill", {}).get("duration")
        cells = sum(cell["cell_type"] == "code" for cell in notebook["cells"])
        rows.append((path.stem, "not run in this build" if seconds is None else f"{seconds:.0f}", str(cells)))
    return ("notebook", "seconds", "code cells"), rows


def version_rows(root: Path) -> Table:
    """Return the locked version of every package that the library or the book names, those of the library first."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        lock = (root / "requirements.lock").read_text(encoding="utf-8")
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{root}: versions cannot be read ({error}); build the book in a checkout") from error
    pins: dict[str, list[str]] = {}
    for line in lock.splitlines():
        if match := _PIN.match(line):  # a package may be pinned once for each Python
            pins.setdefault(_plain(match[1]), []).append(match[2])
    wanted = [("library", project["dependencies"])]
    wanted += [(extra, project["optional-dependencies"][extra]) for extra in _EXTRAS]
    rows = [("anima", __version__, "this package")]
    for use, requirements in wanted:
        names = sorted(_plain(re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]) for requirement in requirements)
        rows += [(name, " or ".join(dict.fromkeys(pins.get(name, ["not locked"]))), use) for name in names]
    return ("package", "version", "needed by"), rows


def data_rows() -> Table:
    """Return path, size and hash of every data file of the package."""
    base = data_path()
    return ("file", "size", "hash"), [
        (f"`{path.relative_to(base).as_posix()}`", _size(path.stat().st_size), f"`{digest(path.read_bytes())}`")
        for path in _files(base)
    ]


def _files(base: Path) -> Iterator[Path]:
    return (path for path in sorted(base.rglob("*")) if path.is_file() and not path.name.startswith((".", "README")))


def _size(n: int) -> str:
    return f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
