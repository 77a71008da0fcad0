"""The record a finding leaves behind: claims, measurements, limits, and what they were computed from.

A notebook computes its measurements, gathers them in a :class:`Finding` and writes it to ``results/<name>.json``. The
capability card, the book's opening boxes and the sentinel read these files and nothing else, so that no number is typed.
"""

from __future__ import annotations

import html
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from anima.checks import show
from anima.corpora import load_corpus
from anima.errors import DataError, InputError
from anima.files import write_whole
from anima.findings.receipt import Receipt, make_receipt
from anima.findings.shares import widened
from anima.settings import data_path, results_dir
from anima.stats import Estimate, Presentable
from anima.stats.estimate import json_ready

if TYPE_CHECKING:
    import pandas as pd

    from anima.corpora import Corpus

SCHEMA_VERSION: Final = 1
#: Decimals kept in a written record: enough to read, few enough to be the same on every run of one machine.
DIGITS: Final = 6

#: Note on what was fitted on other items, by a design that was not blind to these.
DESIGN: Final = "Design chosen with this corpus in view."

Evidence = Literal["measured", "spot-checked", "constructed", "refuted"]
Verdict = Literal["holds", "fails", "undecided", "not measured"]


@dataclass(frozen=True)
class Measurement:
    """One number of a finding, with what a reader needs to weigh it.

    Parameters
    ----------
    key
        Stable name inside the finding, e.g. ``"elicit-pref/learnt phrases/kappa"``; later runs are compared by it.
    capability
        What is detected or predicted, as a user would say it.
    estimate
        The number with its interval.
    baseline
        The same statistic of a trivial rival on the same items; None where chance is known without measuring.
    held_out
        Whether nothing was fitted on the items it is computed on; folds that keep dialogues whole count. Where the design
        (grids, word lists) was chosen with the corpus in view, ``note`` says so.
    evidence
        ``measured`` on labels of others, ``spot-checked`` by reading some hits, ``constructed`` (written examples only),
        ``refuted`` (a claim that did not stand).
    language, genre
        Of the material, e.g. ``"en"`` and ``"negotiation chat"``: the number says nothing about others.
    tolerance
        How far the value may lie from the published one on another machine.
    unit
        What ``n`` of the estimate counts, the denominator of the statistic, e.g. ``"sentences with a scope"``.
    note
        What a reader must know beside the number, e.g. :data:`DESIGN`.
    """

    key: str
    capability: str
    estimate: Estimate
    baseline: Estimate | None = None
    held_out: bool = False
    evidence: Evidence = "measured"
    language: str = "en"
    genre: str = ""
    tolerance: float = 0.01
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence that an interval decides.

    The claim *holds* when the whole interval of the measurement ``by`` lies on the expected side of ``against``, *fails*
    when it lies on the other side, and is *undecided* when it straddles the value. ``basis`` says where a value other than
    that of no effect comes from.
    """

    text: str
    by: str
    against: float
    expects: Literal["above", "below"] = "above"
    basis: str = ""

    def verdict(self, measurements: Mapping[str, Measurement]) -> Verdict:
        """Return what the measurement says of the claim."""
        if (found := measurements.get(self.by)) is None:
            return "not measured"
        estimate = found.estimate
        if not estimate.has_interval:
            return "undecided"
        above, below = estimate.low > self.against, estimate.high < self.against
        if not (above or below):
            return "undecided"
        return "holds" if above == (self.expects == "above") else "fails"


@dataclass(frozen=True)
class Material:
    """A corpus as a finding used it; ``hash`` is that of its files."""

    name: str
    hash: str
    sample: bool
    version: str = ""
    licence: str = ""
    dialogues: int = 0
    utterances: int = 0

    @classmethod
    def of(cls, corpus: Corpus) -> Material:
        """Return what a record keeps of a corpus."""
        of, size = corpus.provenance, (len(corpus.dialogues), len(corpus.utterances))
        return cls(corpus.name, corpus.hash, corpus.sample, of.version, of.licence, *size)


class Stated(NamedTuple):
    """What a finding says in words: see :func:`stated`."""

    title: str
    limits: tuple[str, ...]
    claims: tuple[Claim, ...]


def stated(name: str) -> Stated:
    """Return the headline, limits and claims of a finding from ``corpora/findings/<name>.toml``."""
    raw = tomllib.loads(data_path(f"findings/{name}.toml").read_text(encoding="utf-8"))
    return Stated(raw["title"], tuple(raw["limits"]), tuple(Claim(**item) for item in raw.get("claims", ())))


def load_materials(corpus: str, *names: str) -> list[Corpus]:
    """Load the corpora of a finding, as its notebook's parameter ``corpus`` says.

    "auto" takes each where it is installed, else its sample; "sample" the samples; anything else is the folder of the
    corpus itself where there is one name, else a folder that holds one for each name.
    """
    if corpus in ("auto", "sample"):
        return [load_corpus(name, sample=True if corpus == "sample" else None) for name in names]
    folder = Path(corpus).expanduser()
    if not folder.is_dir():
        raise InputError(f"corpus must be 'auto', 'sample' or a folder that is there, got {show(corpus)}")
    return [load_corpus(folder / name if len(names) > 1 else folder) for name in names]


@dataclass(frozen=True)
class Finding(Presentable):
    """What one notebook found.

    Parameters
    ----------
    name, title
        Name of the notebook without its number, and its headline.
    answer
        One or two sentences, the finding as a person would tell it.
    claims
        Sentences decided by intervals.
    measurements
        The numbers; :meth:`measurement` finds one by its key.
    limits
        What the numbers do not say.
    materials
        Corpora used; one sample among them makes the whole finding a sample.
    parameters
        The notebook's parameters, with which the numbers come out again.
    records
        Small tables that other pages need, by name, as lists of rows.
    receipt
        Content hashes of inputs, code, parameters and outputs.
    """

    name: str
    title: str
    answer: str
    claims: tuple[Claim, ...]
    measurements: tuple[Measurement, ...]
    limits: tuple[str, ...]
    materials: tuple[Material, ...]
    parameters: Mapping[str, Any]
    receipt: Receipt
    records: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    schema: int = SCHEMA_VERSION

    @classmethod
    def make(
        cls,
        name: str,
        *,
        title: str,
        answer: str,
        measurements: Iterable[Measurement],
        limits: Iterable[str],
        parameters: Mapping[str, Any],
        materials: Iterable[Material] = (),
        claims: Iterable[Claim] = (),
        data: tuple[str, ...] = (),
        embedder: str = "",
        records: Mapping[str, Any] | None = None,
    ) -> Finding:
        """Gather a finding and make out its receipt.

        Parameters
        ----------
        data
            Data files of the package it rests on, relative to ``corpora/``, e.g. ``("lexicon/lexicon.toml",)``.
        embedder
            Model and version behind the vectors, where there are any.

        Raises
        ------
        InputError
            Two measurements share a key, or a claim names one that is not there.
        """
        measurements = tuple(replace(item, estimate=widened(item.estimate)) for item in measurements)
        materials, claims = tuple(materials), tuple(claims)
        keys = [item.key for item in measurements]
        if len(set(keys)) < len(keys):
            raise InputError(f"measurements of {name!r}: key {max(keys, key=keys.count)!r} appears twice")
        for claim in claims:
            if claim.by not in keys:
                raise InputError(
                    f"claim {claim.text!r} is decided by {claim.by!r}, which is not among the measurements"
                )
        tables = {key: _rounded(json_ready(table)) for key, table in (records or {}).items()}
        receipt = make_receipt(
            f"anima.findings.{name}",
            inputs={item.name: item.hash for item in materials} | ({"embedder": embedder} if embedder else {}),
            data=data,
            parameters=parameters,
            outputs=_outputs(measurements, tables),
        )
        told = (name, title, answer, claims, measurements, tuple(limits), materials)
        return cls(*told, dict(parameters), receipt, tables)

    @property
    def sample(self) -> bool:
        """Whether any corpus was a written sample: then no number says anything about people."""
        return any(item.sample for item in self.materials)

    @property
    def outputs(self) -> list[Any]:
        """What the receipt's hash of outputs is taken of: the numbers as they are written."""
        return _outputs(self.measurements, self.records)

    def measurement(self, key: str) -> Measurement:
        """Return the measurement called ``key``."""
        known = {item.key: item for item in self.measurements}
        if key not in known:
            raise InputError(f"finding {self.name!r} has no measurement {key!r}; it has {list(known)}")
        return known[key]

    def verdicts(self) -> pd.DataFrame:
        """Return one row per claim: the sentence, the number that decides it, and the verdict."""
        import pandas as pd

        known = {item.key: item for item in self.measurements}
        rows = []
        for claim in self.claims:
            number = known[claim.by].estimate if claim.by in known else Estimate.undefined(claim.by, "not measured")
            told = f"{number.name} {_span(number)}, expected {claim.expects} {claim.against:g}"
            told += f" ({claim.basis})" if claim.basis else ""
            rows.append((claim.text, claim.verdict(known), told))
        return pd.DataFrame(rows, columns=["claim", "verdict", "decided by"])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per measurement."""
        import pandas as pd

        return pd.DataFrame([
            {
                "key": item.key, "capability": item.capability, "statistic": item.estimate.name, "value": item.estimate.value,
                "low": item.estimate.low, "high": item.estimate.high, "n": item.estimate.n,
                "of": item.unit, "baseline": item.baseline.value if item.baseline else math.nan, "held out": item.held_out,
                "evidence": item.evidence, "sample": self.sample,
            }
            for item in self.measurements
        ])  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the record as it is written, numbers rounded."""
        return {"schema": self.schema, "sample": self.sample} | {
            item.name: _rounded(json_ready(getattr(self, item.name))) for item in fields(self) if item.name != "schema"
        }

    def summary(self) -> str:
        """Return the answer, marked when it was computed on a sample."""
        return ("SAMPLE, not a finding: " if self.sample else "") + self.answer

    def write(self, folder: str | Path = "results") -> Path:
        """Write ``<folder>/<name>.json`` whole or not at all, and return its path."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1)
        return write_whole(Path(folder) / f"{self.name}.json", text + "\n")

    def _repr_html_(self) -> str:
        title = ("SAMPLE: " if self.sample else "") + self.title
        head = f"<p><b>{html.escape(title)}</b></p><p>{html.escape(self.summary())}</p>"
        claims = self.verdicts().to_html(index=False) if self.claims else ""
        return head + claims + self.to_frame().drop(columns=["capability", "sample"]).round(3).to_html(index=False)


def read_finding(path: str | Path) -> Finding:
    """Read a written finding.

    Raises
    ------
    DataError
        Not JSON, another schema version, or a field missing; the message names file and field.
    """
    path = Path(path)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: not a finding ({error})") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA_VERSION:
        found = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
        raise DataError(f"{path}: field 'schema' must be {SCHEMA_VERSION}, got {found!r}; rerun the notebook")
    try:
        told = (raw["name"], raw["title"], raw["answer"], tuple(Claim(**item) for item in raw["claims"]))
        numbers, limits = tuple(_measurement(item) for item in raw["measurements"]), tuple(raw["limits"])
        materials = tuple(Material(**item) for item in raw["materials"])
        return Finding(*told, numbers, limits, materials, raw["parameters"], Receipt(**raw["receipt"]), raw["records"])
    except KeyError as error:
        raise DataError(f"{path}: field {error} is missing; rerun the notebook") from error
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error


def published(name: str) -> Finding | None:
    """Return the published full-corpus result of a finding; None where none was published."""
    folder = results_dir()
    path = folder / f"{name}.json" if folder else None
    return read_finding(path) if path is not None and path.is_file() else None


def published_findings(folder: Path | None = None) -> dict[str, Finding]:
    """Return every published finding by name; ``folder`` stands for that of this installation."""
    folder = folder or results_dir()
    paths = sorted(folder.glob("*.json")) if folder else []
    # Other measurements (costs, coverage) lie beside the findings; a finding says its schema.
    return {path.stem: read_finding(path) for path in paths if '"schema"' in path.read_text(encoding="utf-8")[:40]}


def _measurement(raw: dict[str, Any]) -> Measurement:
    if not isinstance(raw, dict):
        raise TypeError(f"measurements must be objects, got {raw!r}")
    return Measurement(**raw | {key: _estimate(raw[key]) for key in ("estimate", "baseline")})


def _estimate(raw: dict[str, Any] | None) -> Any:
    if raw is None:
        return None
    return Estimate(**raw | {key: math.nan for key in ("value", "low", "high", "p_value") if raw[key] is None})


def _span(number: Estimate) -> str:
    if not number.defined:
        return "undefined"
    return f"{number.value:.3f} [{number.low:.3f}, {number.high:.3f}]" if number.has_interval else f"{number.value:.3f}"


def _outputs(measurements: Iterable[Measurement], records: Mapping[str, Any]) -> list[Any]:
    return [_rounded(json_ready(item)) for item in measurements] + [records]


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return round(value, DIGITS) + 0.0 if isinstance(value, float) else value
