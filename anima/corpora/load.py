"""Loading a corpus by name, from a folder of its format, or its written sample."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from anima.checks import require_bool, require_choice, show
from anima.corpora import casino, delidata, generic, negation
from anima.corpora.base import FRAMES
from anima.corpora.build import Builder
from anima.corpora.files import Files
from anima.corpora.registry import Entry, entry, hash_files, registry
from anima.errors import CorpusMissingError, DataError, DataWarning, InputError
from anima.jsonl import no_collection
from anima.settings import data_path

if TYPE_CHECKING:
    from anima.corpora.base import Corpus

Read = Callable[[Files, Builder], None]
#: Corpora read last, so that asking again costs no reading.
_KEPT: Final = 4
_read: dict[Hashable, Corpus] = {}
WRITTEN: Final = "negation"
_WRITTEN_SCHEMES: Final[Mapping[str, Sequence[str]]] = {"cue": ("negation",), "scope": ("negation",)}


class _Format(NamedTuple):
    read: Read
    matches: Callable[[Path], bool]
    read_sample: Read


_ENGLISH, _SPANISH = (partial(negation.read_written, lang=lang) for lang in ("en", "es"))
_FORMATS: Final = {
    "casino": _Format(casino.read, lambda folder: any(folder.glob("casino_*.json")), casino.read),
    "delidata": _Format(delidata.read, lambda folder: bool(delidata.group_files(folder)), delidata.read),
    "cd-sco": _Format(negation.read_cd_sco, lambda folder: bool(negation.cd_sco_files(folder)), _ENGLISH),
    "nubes": _Format(negation.read_nubes, lambda folder: next(folder.rglob("*.ann"), None) is not None, _SPANISH),
}


def load_corpus(name: str | os.PathLike[str], *, sample: bool | None = None) -> Corpus:
    """Load a corpus.

    Parameters
    ----------
    name
        ``"casino"``, ``"delidata"``, ``"cd-sco"`` or ``"nubes"``; ``"negation"`` for the sentences written for this
        project, English and Spanish; or the path of a folder in the format of one of them or of ConvoKit, whose
        hashes are then not compared with registered ones.
    sample
        True for the invented sample of the same format, False to demand the corpus; None takes the corpus when it is
        on this machine, else the sample with a :class:`~anima.errors.DataWarning`.

    Raises
    ------
    CorpusMissingError
        If the corpus is demanded and absent.
    DataError
        If its files are damaged, or differ from the registered ones; the message names file, place, field and fix.

    Notes
    -----
    Counts and outcomes are shown equal to independent ones by ``tests/corpora``.
    """
    if not isinstance(name, str | os.PathLike):
        raise InputError(f"name must be a name or the path of a folder, got {show(name)}")
    if sample is not None:
        sample = require_bool(sample, "sample")
    if isinstance(name, os.PathLike) or os.sep in name:
        if sample is not None:
            where = f"leave it out when loading the folder {os.fspath(name)!r}"
            raise InputError(f"sample is for registered corpora: {where}")
        with _readable(Path(name).expanduser()) as folder:
            return _load_folder(folder)
    require_choice(name, "name", (*registry(), WRITTEN))
    if name == WRITTEN:
        if sample is False:
            raise InputError(f"sample must not be False for {WRITTEN!r}: it is written for this project")
        return _build(WRITTEN, data_path("samples/negation"), negation.read_written, _WRITTEN_SCHEMES, None)
    item = entry(name)
    if sample is None and not item.present:
        warnings.warn(
            f"{name}: the corpus is not in {item.folder}; its SAMPLE, invented for this project, is loaded instead. {_get(item)}",
            DataWarning,
            stacklevel=2,
        )
        sample = True
    if sample:
        schemes = _WRITTEN_SCHEMES if item.sample == "samples/negation" else item.schemes
        return _build(name, data_path(item.sample), _FORMATS[name].read_sample, schemes, None)
    if not item.present:
        raise CorpusMissingError(f"{name}: the corpus is not in {item.folder}. {_get(item)}")
    try:
        corpus = _build(name, item.folder, _FORMATS[name].read, item.schemes, item)
    except DataError as error:
        # Why a file cannot be read is told by its hash, where it stops making sense by the error.
        if problems := item.problems(hash_files(item, item.folder)):
            raise _differs(item, f"{problems[0]}; reading stopped at {error}") from None
        raise
    if problems := item.problems(corpus.provenance.files):
        raise _differs(item, problems[0])
    return corpus


def _differs(item: Entry, problem: str) -> DataError:
    return DataError(
        f"{item.folder}: {problem}: run `anima corpora fetch --force {item.name}`, or load the folder by its path "
        "if it is meant to differ"
    )


def _get(item: Entry) -> str:
    return item.manual or f"Run `anima corpora fetch {item.name}` to get it."


@contextmanager
def _readable(folder: Path) -> Iterator[Path]:
    """Name what cannot be read inside a folder."""
    try:
        yield folder
    except OSError as error:
        what = f"{error.filename or folder}: cannot be read ({error.strerror})"
        raise DataError(f"{what}: give a folder that holds nothing but the corpus, all of it yours to read") from error


def _load_folder(folder: Path) -> Corpus:
    if not folder.is_dir():
        raise CorpusMissingError(f"{folder}: no such folder: give a folder, or one of {', '.join(registry())}")
    if generic.is_convokit(folder):
        return generic.from_convokit(folder)
    found = [name for name, form in _FORMATS.items() if form.matches(folder)]
    if len(found) != 1:
        what = " and ".join(found) if found else "no known corpus"
        raise DataError(
            f"{folder}: looks like {what}: give a folder that holds one of {', '.join(_FORMATS)} or a ConvoKit corpus; "
            "for a table use anima.corpora.from_table"
        )
    item = entry(found[0])
    return _build(item.name, folder, _FORMATS[item.name].read, item.schemes, item, False)


def _build(
    name: str,
    folder: Path,
    read: Read,
    schemes: Mapping[str, Sequence[str]],
    item: Entry | None,
    registered: bool = True,
) -> Corpus:
    """Return a corpus, or without ``item`` a sample, as read from a folder or as kept from the last time."""
    with _readable(folder):
        key = (name, read, item is None, registered, _signature(folder))
    if (known := _read.pop(key, None)) is None:
        files = Files(folder)
        builder = Builder(files, schemes)
        with no_collection():
            read(files, builder)
            if item is None:
                title = f"SAMPLE for {name}: invented for this project, in the format of the corpus"
                known = builder.build(name, sample=True, title=title, source="written for this project", licence="MIT")
            else:
                known = builder.build(
                    name, title=item.title, source=item.homepage, licence=item.licence, citation=item.citation,
                    version=item.version if registered else "", verified=registered and not item.problems(files.hashes),
                )  # fmt: skip
        while len(_read) >= _KEPT:
            del _read[next(iter(_read))]
    _read[key] = known
    # The frames are the caller's to change; those kept here are not.
    return replace(known, **{part: getattr(known, part).copy() for part in FRAMES})


def _signature(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return path, size and time of change of every file, by which a folder that was read before is known again."""
    found = ((str(path), path.stat()) for path in sorted(folder.rglob("*")) if path.is_file())
    return tuple((path, status.st_size, status.st_mtime_ns) for path, status in found)
