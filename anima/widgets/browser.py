"""Look into a corpus: dialogues by label, and by where a detector agrees with people or errs; then their text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import ipywidgets as w

from anima.checks import require_choice, require_instance, require_text
from anima.corpora.base import Corpus
from anima.detectors import CrossValidation
from anima.errors import InputError
from anima.widgets.static import block, bundle, lines, table

if TYPE_CHECKING:
    import pandas as pd

Show = Literal["all", "agreements", "errors", "misses", "false alarms"]
SHOWS: Final[tuple[Show, ...]] = ("all", "agreements", "errors", "misses", "false alarms")
_BOTH: Final = ("miss", "false alarm")
_KINDS: Final = {"misses": ("miss",), "false alarms": ("false alarm",)}
_ANY: Final = "(any)"
_STYLE: Final = """<style>
.anima .ab-turns { margin: 8px 0 0 !important; padding: 0 !important; list-style: none; }
.anima .ab-turns li { margin: 0 0 4px; padding: 3px 10px; border-left: 4px solid transparent; overflow-wrap: anywhere; }
.anima .ab-turns li.ab-hit { border-left-color: #0780c9; background: var(--an-fill); border-radius: 0 4px 4px 0; }
.anima .ab-who { color: var(--an-soft); font-weight: 600; font-size: 0.86em; margin-right: 0.5em; }
.anima .ab-wrong { margin: 0 0 0 0.5em; font-size: 0.86em; border-bottom: 2px dotted #dc4c15; }
</style>"""


def filter_utterances(
    corpus: Corpus,
    *,
    scheme: str,
    label: str | None = None,
    crossval: CrossValidation | None = None,
    detector: str | None = None,
    show: Show = "all",
    query: str = "",
) -> pd.DataFrame:
    """Return the annotated utterances that fit all conditions, as ``corpus.labelled`` gives them.

    Parameters
    ----------
    scheme, label
        The labels to look at, and the one that an utterance must have; None for any or none. With a detector the label
        is what it is compared on (None: each of its labels), and utterances without it count too: else a false alarm
        could not be seen.
    crossval, detector, show
        Held-out predictions, one of their detectors, and which of its decisions to see: ``"agreements"`` with people
        (both see the label; without a label, all labels right), ``"errors"``, or one kind of them.
    query
        Words that the text must hold, in any case.
    """
    require_choice(show, "show", SHOWS)
    found = corpus.labelled(scheme)
    if label is not None:
        require_choice(label, "label", corpus.label_names(scheme))
    if show == "all":
        keep = found[label] if label is not None else found["text"].notna()
    else:
        if crossval is None or detector is None:
            raise InputError(f"show={show!r} needs crossval and detector: there is nothing to compare people with")
        errors = [crossval.errors(detector, one) for one in (crossval.labels if label is None else (label,))]
        wrong = {key for frame in errors for key in frame.loc[frame["error"].isin(_KINDS.get(show, _BOTH)), "id"]}
        keep = found["utterance_id"].isin(wrong)
        if show == "agreements":
            keep = ~keep & found["utterance_id"].isin(crossval.rows["id"])
            keep &= found[label] if label is not None else True
    for word in require_text(query, "query").split():
        keep = keep & found["text"].str.contains(word, case=False, regex=False)
    return found[keep].reset_index(drop=True)


class Browser:
    """Dialogues of a corpus under a filter, and the text of the one chosen; made by :func:`browse`.

    Attributes
    ----------
    found
        The utterances that fit, as :func:`filter_utterances` returns them.
    scheme, label, detector, show, query, dialogue
        The controls (ipywidgets): set their ``value`` to steer from code.

    Notes
    -----
    Where no kernel runs, the dialogues found are listed by id; text is shown of written samples only, as that of an
    external corpus is not ours to publish.
    """

    def __init__(self, corpus: Corpus, crossval: CrossValidation | None = None) -> None:
        self.corpus = require_instance(corpus, "corpus", Corpus)
        self.crossval = None if crossval is None else require_instance(crossval, "crossval", CrossValidation)
        schemes = list(corpus.schemes)
        if not schemes:
            raise InputError(f"corpus {corpus.name!r} has no labels to browse by")
        if crossval is not None:
            schemes = [name for name in schemes if set(crossval.labels) <= set(corpus.label_names(name))]
            if not schemes:
                names = ", ".join(crossval.labels)
                raise InputError(f"crossval is about {names}, which is no scheme of {corpus.name!r}")
        wide, style = w.Layout(width="auto"), {"description_width": "6rem"}
        self.scheme = w.Dropdown(options=schemes, description="Scheme", style=style)
        self.label = w.Dropdown(description="Label", style=style)
        detectors = crossval.detectors if crossval is not None else ()
        self.detector = w.Dropdown(options=detectors, description="Detector", style=style)
        self.show = w.Dropdown(options=SHOWS if crossval is not None else SHOWS[:1], description="Show", style=style)
        self.query = w.Text(description="Words", placeholder="all of them must occur", style=style)
        self.dialogue = w.Select(description="Dialogues", rows=9, style=style, layout=wide)
        self._status, self._text = w.HTML(layout=wide), w.HTML(layout=wide)
        filters = [self.scheme, self.label, *((self.detector, self.show) if crossval is not None else ()), self.query]
        self.screen = w.VBox(
            [w.HBox(filters, layout=w.Layout(flex_flow="row wrap")), self._status, self.dialogue, self._text],
            layout=w.Layout(max_width="62rem"),
        )
        self._labels()
        self.scheme.observe(lambda _: self._labels(), "value")
        for control in (self.label, self.detector, self.show, self.query):
            control.observe(lambda _: self.update(), "value")
        self.dialogue.observe(lambda _: self._draw(), "value")
        self.update()

    def update(self) -> None:
        """Filter anew, now; the dialogue chosen stays if it still fits."""
        self.found = filter_utterances(
            self.corpus, scheme=self.scheme.value, label=self._chosen, crossval=self.crossval, detector=self.detector.value,
            show=self.show.value, query=self.query.value,
        )  # fmt: skip
        self._status.value = f'<p role="status">{escape(self.summary())}</p>'
        before, rows = self.dialogue.value, self._rows()
        self.dialogue.options = [(f"{key} — {hits} of {n} utterances", key) for key, hits, n in rows]
        kept = before if any(key == before for key, *_ in rows) else None
        self.dialogue.value = kept or (rows[0][0] if rows else None)
        self._draw()

    def summary(self) -> str:
        """Return one sentence."""
        mark = "SAMPLE, " if self.corpus.sample else ""
        hits, n = len(self.found), self.found["dialogue_id"].nunique()
        found = f"{hits:,} utterance{'s' * (hits != 1)} in {n:,} of {len(self.corpus.dialogues):,} dialogues"
        return f"{mark}{self.corpus.name}: {found}."

    def _labels(self) -> None:
        names = self.crossval.labels if self.crossval is not None else self.corpus.label_names(self.scheme.value)
        self.label.options = [_ANY, *names]
        self.label.value = _ANY

    @property
    def _chosen(self) -> str | None:
        return None if self.label.value in (None, _ANY) else str(self.label.value)

    def _rows(self) -> list[tuple[str, int, int]]:
        """Return id, utterances that fit, and utterances, of each dialogue with some."""
        hits = self.found["dialogue_id"].value_counts(sort=False)
        frame = self.corpus.dialogues
        lengths = zip(frame["dialogue_id"], frame["n_utterances"], strict=True)
        return [(key, int(hits[key]), int(n)) for key, n in lengths if key in hits]

    def _draw(self) -> None:
        self._text.value = self._dialogue_html()

    def _dialogue_html(self) -> str:
        """Return the chosen dialogue: every utterance with its labels, and what the detector got wrong."""
        key = self.dialogue.value
        if key is None:
            return ""
        rows = self.corpus.utterances[self.corpus.utterances["dialogue_id"] == key]
        labels = self.corpus.labels
        given = labels[(labels["dialogue_id"] == key) & (labels["scheme"] == self.scheme.value)]
        names = given.groupby("utterance_id")["label"].unique()
        narrowed = len(self.found) < self.corpus.utterances["annotated"].sum()  # else a mark on every line
        hits, wrong = set(self.found["utterance_id"]) if narrowed else set(), self._wrong(key)
        turns = []
        for row in rows.itertuples():
            one, hit = row.utterance_id, row.utterance_id in hits
            chips = "".join(f'<span class="an-chip an-plain">{escape(name)}</span>' for name in names.get(one, ()))
            errors = "".join(f'<span class="ab-wrong">{escape(words)}</span>' for words in wrong.get(one, ()))
            turns.append(
                f"<li{' class=ab-hit' if hit else ''}>{'<span class=an-sr>fits the filter: </span>' if hit else ''}"
                f'<span class="ab-who">{escape(str(row.speaker))}</span>'
                f'<span dir="auto" title="{escape(one)}">{escape(row.text)}</span>{chips}{errors}</li>'
            )
        keys = [*(["blue bar: fits the filter"] if narrowed else []), *(["dotted: the detector errs"] if wrong else [])]
        head = f'<p class="an-head">Dialogue {escape(key)}</p><p class="an-small">{"; ".join(keys)}</p>'
        return block(f"Dialogue {key}", f'{_STYLE}{head}<ol class="ab-turns">{"".join(turns)}</ol>')

    def _wrong(self, key: str) -> dict[str, list[str]]:
        """Return in words what the detector got wrong in a dialogue, by utterance."""
        found: dict[str, list[str]] = {}
        if self.crossval is None:
            return found
        detector, chosen = self.detector.value, self._chosen
        for name in self.crossval.labels if chosen is None else (chosen,):
            errors = self.crossval.errors(detector, name)
            for row in errors[errors["group"] == key].itertuples():
                found.setdefault(str(row.id), []).append(f"{detector}: {row.error}, {name}")
        return found

    def _repr_html_(self) -> str:
        rows = [(key, str(hits), str(n)) for key, hits, n in self._rows()[:50]]
        more = f" The first {len(rows)} are listed." if self.found["dialogue_id"].nunique() > len(rows) else ""
        body = table("Dialogues found", ("dialogue", "utterances that fit", "utterances"), rows)
        listed = f"<details><summary>Dialogues found</summary>{body}</details>"
        page = block("Corpus browser", lines([self.summary() + more]) + listed)
        return page + (self._dialogue_html() if self.corpus.sample else "")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return bundle(self.screen, self._repr_html_(), self.summary(), **options)


def browse(corpus: Corpus, crossval: CrossValidation | None = None) -> Browser:
    """Return a browser of a corpus.

    Parameters
    ----------
    corpus
        As from :func:`anima.corpora.load_corpus`, a sample too.
    crossval
        Held-out predictions on one of its schemes, from :func:`anima.detectors.cross_validate`: then dialogues can be
        filtered by where a detector agrees or errs.
    """
    return Browser(corpus, crossval)
