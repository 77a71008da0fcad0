"""Try a reply: how it is read, and which sentences flip under another threshold, classifier or embedder."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Final

import ipywidgets as w

from anima import api
from anima.authenticity.classify import CLASSIFIERS
from anima.authenticity.render import analysis_html
from anima.authenticity.render.pieces import label, number, shorten
from anima.checks import require_text
from anima.errors import AnimaError
from anima.stats import Presentable
from anima.widgets.static import block, bundle, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from anima.authenticity.analysis import Analysis
    from anima.authenticity.instrument import Instrument
    from anima.embedding import Embedder

#: Seconds without a change before a reply is read again.
_PAUSE: Final = 0.25
_STEP: Final = 0.01
_FIGURES: Final = {
    "predictability": "predictability", "rule": "rule", "formulaic": "formulaic", "pole_label": "pole",
    "nearest_pool": "nearest pool", "dominancia": "leading pool", "markers": "markers",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Flips(Presentable):
    """What differs between two readings of one reply; made by :func:`compare`.

    Parameters
    ----------
    n
        Sentences.
    sentences, figures
        Sentences whose intent differs, numbered from 1, with their scores; figures of the whole reply that differ.
    """

    n: int
    sentences: pd.DataFrame = field(repr=False)
    figures: pd.DataFrame = field(repr=False)
    tables: ClassVar[tuple[str, ...]] = ("sentences", "figures")

    def summary(self) -> str:
        """Return one sentence."""
        if not self.n:
            return "There is no sentence to read."
        if not len(self.sentences) and not len(self.figures):
            read = f"all {self.n} sentences are" if self.n > 1 else "the sentence is"
            return f"Nothing flips: {read} read as by default."
        pairs = zip(self.sentences["before"], self.sentences["after"], strict=True)
        ways = Counter(f"{label(before)} → {label(after)}" for before, after in pairs)
        found = [f"{way} ({count})" if count > 1 else way for way, count in ways.most_common()]
        found += [f"{row.figure} {row.before} → {row.after}" for row in self.figures.itertuples()]
        return f"{len(self.sentences)} of {self.n} sentences flip: {'; '.join(found)}."

    def to_frame(self) -> pd.DataFrame:
        """Return the sentences that flip."""
        return self.sentences


def compare(before: Analysis, after: Analysis) -> Flips:
    """Return what flips between two readings of the same reply, by instruments that cut sentences alike."""
    import pandas as pd

    rows = [
        (one.index + 1, one.phrase, one.intent, other.intent, one.confidence, other.confidence)
        for one, other in zip(before.steps, after.steps, strict=True)
        if one.intent != other.intent
    ]
    names = ["sentence", "phrase", "before", "after", "score_before", "score_after"]
    old, new = ({**one.row(), "pole_label": one.pole.words} for one in (before, after))
    figures = [(words, old[key], new[key]) for key, words in _FIGURES.items() if old[key] != new[key]]
    return Flips(
        len(before.steps),
        pd.DataFrame(rows, columns=names),
        pd.DataFrame(figures, columns=["figure", "before", "after"]),
    )


class Explorer:
    """Type or pick a reply; chain, markers, poles and neighbours follow, and what flips against the default.

    Parameters
    ----------
    reply
        The first reply; None for the first of ``replies``.
    replies
        Replies to pick from, by name; None for written ones of the development set.
    instrument
        The default that flips are counted against; None for :func:`anima.api.instrument`.
    embedders
        Others to choose from, as :func:`anima.api.instrument` takes them; loaded when chosen.

    Attributes
    ----------
    analysis, flips
        What is shown; ``flips`` is None if the reply could not be read.
    reply, classifier, embedder, threshold
        The controls (ipywidgets): set their ``value`` to steer from code.

    Notes
    -----
    The threshold belongs to the centroid classifiers and is switched off with the others, whose heads learnt to reject.
    A change is taken up after a quarter of a second of rest while an event loop runs, else at once.
    """

    def __init__(
        self,
        reply: str | None = None,
        *,
        replies: Mapping[str, str] | None = None,
        instrument: Instrument | None = None,
        embedders: Sequence[str | Embedder] = (),
    ) -> None:
        self.default = instrument or api.instrument()
        self.replies = dict(_written() if replies is None else replies)
        self._made: dict[Any, Instrument] = {"": self.default}
        self._timer: asyncio.TimerHandle | None = None
        self.analysis: Analysis | None = None
        self.flips: Flips | None = None
        first = next(iter(self.replies.values()), "") if reply is None else require_text(reply, "reply")
        style = {"description_width": "7.5rem"}
        options = [("(typed)", ""), *((f"{name}: {shorten(one, 60)}", one) for name, one in self.replies.items())]
        wide, row = w.Layout(width="auto"), w.Layout(flex_flow="row wrap")
        self.pick = w.Dropdown(options=options, description="Pick a reply", style=style, layout=wide)
        self.pick.value = first if first in self.replies.values() else ""
        self.reply = w.Textarea(value=first, description="or type one", rows=5, style=style, layout=wide)
        own = self.default.classifier.name
        self.classifier = w.Dropdown(options=CLASSIFIERS, value=own, description="Classifier", style=style)
        chosen = [(f"{self.default.embedder.id} (default)", ""), *((getattr(one, "id", one), one) for one in embedders)]
        self.embedder = w.Dropdown(options=chosen, description="Embedder", style=style, disabled=not embedders)
        cut = self.default.with_settings(classifier="centroid").intent_threshold
        bounds = {"value": cut, "min": 0, "max": 1, "step": _STEP}
        self.threshold = w.FloatSlider(**bounds, readout=False, layout=w.Layout(flex="1 1 12rem"))
        # The handle of a slider has no name that a screen reader could say; this field has, and is the same number.
        narrow = w.Layout(width="13rem")
        self._number = w.BoundedFloatText(**bounds, description="Threshold", style=style, layout=narrow)
        self._link = w.jslink((self.threshold, "value"), (self._number, "value"))
        self.reset = w.Button(description="Back to the default", icon="undo", layout=wide)
        self._status, self._shown = w.HTML(layout=wide), w.HTML(layout=wide)
        self.screen = w.VBox([
            self.pick, self.reply, w.HBox([self.classifier, self.embedder], layout=row),
            w.HBox([self._number, self.threshold, self.reset], layout=row), self._status, self._shown,
        ], layout=w.Layout(max_width="62rem"))  # fmt: skip
        self._start = {"classifier": own, "embedder": "", "threshold": cut}
        self.pick.observe(self._picked, "value")
        self.reset.on_click(lambda _: self._back())
        for control in (self.reply, self.classifier, self.embedder, self.threshold):
            control.observe(self._later, "value")
        self.update()

    @property
    def instrument(self) -> Instrument:
        """The instrument as the controls say; a control that was not moved leaves the default's own value."""
        chosen = self.embedder.value
        if chosen not in self._made:
            made = api.instrument(embedder=chosen, reference=self.default.reference)
            # A threshold that the default's own classifier does not use still holds for another one chosen here.
            self._made[chosen] = made.with_settings(**asdict(self.default.settings))
        changes: dict[str, Any] = {}
        if self.classifier.value != self._start["classifier"]:
            changes["classifier"] = self.classifier.value
        if self._cuts and abs(self.threshold.value - self._start["threshold"]) > _STEP / 2:
            changes["intent_threshold"] = self.threshold.value
        return self._made[chosen].with_settings(**changes) if changes else self._made[chosen]

    def update(self) -> None:
        """Read the reply anew, now."""
        self._timer = None
        self.threshold.disabled = self._number.disabled = not self._cuts
        try:
            self.analysis = self.instrument.analyze(self.reply.value)
            self.flips = compare(self.default.analyze(self.reply.value), self.analysis)
        except AnimaError as error:  # a server that is away, a reply that is no text: said where the reader looks
            self.analysis = self.flips = None
            self._status.value = f'<p role="alert"><b>Not read:</b> {escape(str(error))}</p>'
            self._shown.value = ""
            return
        self._status.value = f'<p role="status">{escape(self.flips.summary())}</p>'
        self._shown.value = self._repr_html_()

    @property
    def _cuts(self) -> bool:
        return str(self.classifier.value).startswith("centroid")

    def _later(self, _: Any = None) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.update()
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(_PAUSE, self.update)

    def _picked(self, change: Any) -> None:
        if change["new"]:
            self.reply.value = change["new"]

    def _back(self) -> None:
        for name, value in self._start.items():
            getattr(self, name).value = value

    def _flipped(self) -> str:
        if self.flips is None or not (len(self.flips.sentences) or len(self.flips.figures)):
            return ""
        rows = [
            (str(place), shorten(phrase, 90), label(old), label(new), number(was), number(now))
            for place, phrase, old, new, was, now in self.flips.sentences.values.tolist()  # noqa: PD011
        ]
        figures = [[str(value) or "–" for value in row[1:]] for row in self.flips.figures.itertuples()]
        head = ("#", "sentence", "default", "now", "score, default", "score, now")
        title = "What flips against the default"
        parts = [f'<p class="an-head">{title}</p>']
        if rows:
            parts.append(table("Sentences that flip", head, rows))
        if figures:
            changes = table("Figures that change", ("figure", "default", "now"), figures)
            parts.append(f"<section>{changes}</section>")
        return f'<div style="margin-bottom:10px">{block(title, "".join(parts))}</div>'

    def _repr_html_(self) -> str:
        return "" if self.analysis is None else self._flipped() + analysis_html(self.analysis)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        said = "Not read." if self.analysis is None else self.analysis.summary()
        return bundle(self.screen, self._repr_html_(), said, **options)


def _written() -> dict[str, str]:
    from anima.authenticity.golden import load_golden

    golden = {lang: [reply for reply in load_golden("dev") if reply.lang == lang] for lang in ("en", "es")}
    return {reply.id: reply.response for replies in golden.values() for reply in replies[:10]}
