"""Phrases that tell a label: shown, searched, scored, written as TOML and read back after editing."""

from __future__ import annotations

import html
import json
import tomllib
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anima.checks import require_columns, require_texts, show
from anima.errors import DataError, InputError
from anima.lexicon.categories import Trigger
from anima.lexicon.scan import Hit, Scanner, words_of
from anima.stats import Estimate, Presentable, bootstrap_sums, cohen_kappa, confusion_terms
from anima.text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

    from anima.stats.weighted import Flags


@dataclass(frozen=True, slots=True)
class Phrase:
    """A learnt phrase: its words, and on the training dialogues the utterances with it (``n``) and those with the
    label among them (``hits``).
    """

    phrase: str
    n: int = 0
    hits: int = 0
    note: str = ""


@dataclass(frozen=True)
class Scores(Presentable):
    """What predictions are worth: precision, recall, F1 and kappa of a label, with intervals by dialogue."""

    label: str
    held_out: bool
    precision: Estimate
    recall: Estimate
    f1: Estimate
    kappa: Estimate

    def summary(self) -> str:
        """Return one sentence."""
        how = "held out by dialogue" if self.held_out else "on the utterances given"
        numbers = ", ".join(f"{name} {getattr(self, name).value:.3f}" for name in ("precision", "recall", "f1"))
        return f"{self.label}, {how}: {numbers}. {self.kappa.summary()}"


@dataclass(frozen=True)
class PhraseLexicon(Presentable):
    """Phrases that stand for a label.

    Attributes
    ----------
    label, phrases
        The label, and its phrases in the order they were taken.
    settings
        How they were learnt: bars, folds, seed, sizes; empty where written by hand.
    held_out
        What the way of learning is worth on dialogues it did not see; None where written by hand or edited.
    """

    label: str
    phrases: tuple[Phrase, ...]
    settings: dict[str, Any]
    held_out: Scores | None = None
    tables: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return len(self.phrases)

    def __str__(self) -> str:
        lines = [f"{item.phrase:<40} {item.hits:>4} of {item.n}" for item in self.phrases]
        return "\n".join([self.summary(), *lines])

    def summary(self) -> str:
        """Return one sentence."""
        told = f"; {self.held_out.kappa.summary()}" if self.held_out else ", not measured on held-out dialogues."
        return f"{len(self)} phrases for {self.label}{told}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per phrase: ``phrase, n, hits, note``."""
        import pandas as pd

        return pd.DataFrame([asdict(item) for item in self.phrases], columns=[field.name for field in fields(Phrase)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        phrases = [asdict(item) for item in self.phrases]
        held_out = self.held_out.to_dict() if self.held_out else None
        return {"label": self.label, "phrases": phrases, "settings": dict(self.settings), "held_out": held_out}

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(p.phrase)}</td><td>{p.hits}</td><td>{p.n}</td></tr>" for p in self.phrases
        )
        head = "<tr><th>phrase</th><th>with the label</th><th>utterances</th></tr>"
        return f"<p>{html.escape(self.summary())}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    @cached_property
    def _scanner(self) -> Scanner:
        evidence = "measured held-out" if self.held_out else "constructed"
        return Scanner(Trigger(item.phrase, self.label, "learnt", "", evidence) for item in self.phrases)

    def scan(self, texts: Iterable[str]) -> list[list[Hit]]:
        """Return the phrases found in each text; polarity is not judged: it was learnt with the words."""
        return [self._scanner.scan(text, polarity=False) for text in require_texts(texts)]

    def predict(self, texts: Iterable[str]) -> Flags:
        """Return for each text whether a phrase stands in it."""
        found = (self._scanner.spans(words_of(normalize(text).text)) for text in require_texts(texts))
        return np.array([bool(spans) for spans in found], dtype=bool)

    def score(
        self,
        utterances: pd.DataFrame,
        *,
        text: str = "text",
        groups: str = "dialogue_id",
        n_resamples: int = 2000,
        rng: int | None = None,
    ) -> Scores:
        """Return what the phrases are worth on labelled utterances (columns as for :func:`anima.lexicon.learn`).

        Only utterances that the phrases were not learnt from tell anything.
        """
        require_columns(utterances, [text, self.label, groups], "utterances")
        truth, predicted = flags_of(utterances, self.label), self.predict(utterances[text])
        return scores_of(self.label, truth, predicted, utterances[groups].to_numpy(), False, n_resamples, rng)

    def to_toml(self, path: str | Path | None = None) -> str:
        """Return the phrases as TOML, to be read and edited by hand; also write them to ``path`` if given."""
        lines = [
            *(f"# {line}" for line in self.summary().splitlines()),
            "# One line a phrase; delete, add or comment freely. Trigger syntax as in the written lexicon: (a|b) [c] ? ! ^ $;",
            "# a capital makes its word cased.",
            *("", f"label = {_toml(self.label)}", "", "[settings]"),
            *(f"{key} = {_toml(value)}" for key, value in self.settings.items()),
            *("", "[phrases]"),
        ]
        for item in self.phrases:
            note = f", note = {_toml(item.note)}" if item.note else ""
            lines.append(f"{_toml(item.phrase)} = {{ hits = {item.hits}, n = {item.n}{note} }}")
        text = "\n".join(lines) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_toml(cls, source: str | Path) -> PhraseLexicon:
        """Read what :meth:`to_toml` wrote: a path, or the text itself if it holds a line end.

        Raises
        ------
        DataError
            Names the file and the field. An edited file has no held-out score: it must be scored anew.
        """
        inline = isinstance(source, str) and "\n" in source
        where = "phrases" if inline else str(source)
        try:
            raw = tomllib.loads(str(source) if inline else Path(source).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise DataError(f"{where}: cannot be read ({error.strerror})") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{where}: not TOML in UTF-8: {error}") from None
        label, table = raw.get("label"), raw.get("phrases")
        if unknown := sorted(raw.keys() - {"label", "phrases", "settings"}):
            raise DataError(f"{where}: unknown field {unknown[0]!r}; known are label, settings, phrases")
        if not isinstance(raw.get("settings", {}), dict):
            raise DataError(f"{where}: field 'settings' must be a table, got {show(raw['settings'])}")
        if not isinstance(label, str) or not label or not isinstance(table, dict):
            raise DataError(f"{where}: needs a field 'label' with a name and a table [phrases]")
        phrases = []
        for phrase, item in table.items():
            place = f'{where}: phrases."{phrase}"'
            try:
                found = Phrase(phrase, **item)
            except TypeError:
                raise DataError(f"{place} must be {{ hits = …, n = … }}, got {show(item)}") from None
            whole = type(found.hits) is type(found.n) is int and 0 <= found.hits <= found.n
            if not whole or not isinstance(found.note, str):
                fix = "hits and n must be whole numbers with 0 ≤ hits ≤ n, and note a text"
                raise DataError(f"{place}: {fix}, got {show(item)}")
            phrases.append(found)
        made = cls(label, tuple(phrases), raw.get("settings", {}))
        try:
            _ = made._scanner
        except InputError as error:
            raise DataError(f"{where}: {error}") from None
        return made


def _toml(value: Any) -> str:
    """Return a scalar or a list as TOML: its strings, numbers and booleans are written as in JSON."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def flags_of(utterances: pd.DataFrame, label: str) -> Flags:
    """Return a column of labels as booleans; anything else is refused."""
    values = utterances[label]
    if values.isna().any() or not set(values.unique()) <= {True, False}:
        raise InputError(
            f"utterances: column {label!r} must hold True and False only, got {show(values.unique().tolist())}"
        )
    return values.to_numpy(dtype=bool)


def scores_of(
    label: str,
    truth: Flags,
    predicted: Flags,
    clusters: NDArray[Any],
    held_out: bool,
    n_resamples: int,
    rng: int | None,
) -> Scores:
    """Return the estimates of predictions, resampled by cluster."""
    terms = confusion_terms(truth.astype(int), predicted.astype(int), 2)
    options: dict[str, Any] = {"clusters": clusters, "n_resamples": n_resamples, "rng": rng}

    def share(name: str, *weights: float) -> Estimate:
        # Columns are true negatives, false alarms, misses, hits; 0/0 is NaN, undefined.
        return bootstrap_sums(
            lambda sums: sums[:, 3] / (sums @ np.asarray(weights)), terms, name=f"{name} of {label}", **options
        )

    kappa = cohen_kappa(truth, predicted, categories=[False, True], name=f"Cohen's kappa of {label}", **options)
    shares = share("precision", 0, 1, 0, 1), share("recall", 0, 0, 1, 1), share("F1", 0, 0.5, 0.5, 1)
    return Scores(label, held_out, *shares, kappa)
