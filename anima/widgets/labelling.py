"""The screen of a labelling session: keys, buttons, and words for a screen reader; no score is ever sent to it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from anima.checks import require_instance
from anima.errors import AnimaError, DataWarning
from anima.widgets.session import LabellingSession
from anima.widgets.static import block, bundle, lines, table

if TYPE_CHECKING:
    from anima.metaeval import JudgeValidation

_HERE = Path(__file__).parent


class _Screen(anywidget.AnyWidget):
    # ipywidgets alone cannot hear single keys, tell a key of this item from one of the last, or name a live region.
    _esm = (_HERE / "labelling.js").read_text(encoding="utf-8")
    _css = (_HERE / "labelling.css").read_text(encoding="utf-8")
    state = traitlets.Dict().tag(sync=True)


class LabellingWidget:
    """Labels the items of a :class:`~anima.widgets.LabellingSession` by key or button.

    Parameters
    ----------
    session
        What is labelled, and where it is saved.

    Notes
    -----
    Keys 1–9 or letters give a label, ``u`` takes the last step back, ``s`` skips; they work while the focus is inside
    the frame. A key counts for the text that was on screen when it was pressed, or not at all. Agreement is computed
    and sent only while its fold is open. The name field hands over to another annotator. Browser test:
    ``tests/browser/test_widgets_lab.py``.
    """

    def __init__(self, session: LabellingSession) -> None:
        self.session = require_instance(session, "session", LabellingSession)
        self._open = False
        self._step = 0
        self.screen = _Screen()
        self.screen.on_msg(self._hear)
        self._show("")

    def validate(self, judge_scores: Any, **options: Any) -> JudgeValidation:
        """Hand the labels on; see :meth:`LabellingSession.validate`."""
        return self.session.validate(judge_scores, **options)

    def _hear(self, _: Any, message: dict[str, Any], __: Any = None) -> None:
        """Do what was asked and say how it went: an error belongs on the screen, not into a log that nobody reads."""
        bad = False
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            try:
                words = self._do(message)
            except (AnimaError, OSError) as error:
                words, bad = f"Not saved: {error}", True
        notes = [str(one.message) for one in caught if issubclass(one.category, DataWarning)]
        self._show(" ".join([words, *notes]).strip(), bad=bad or bool(notes))

    def _do(self, message: dict[str, Any]) -> str:
        session, item = self.session, message.get("item")
        what = message.get("do")
        if what == "label":
            session.label(message.get("label", ""), item)
            return f"Saved: {message['label']}."
        if what == "skip":
            session.skip(item)
            return "Skipped; it comes back at the end."
        if what == "undo":
            last = session.undo()
            return "Nothing to undo." if last is None else f"Undone: {last.label or last.kind}."
        if what == "annotator":
            self.session = session.as_annotator(str(message.get("name", "")))
            return f"{self.session.annotator} labels now."
        self._open = bool(message.get("open"))
        session.refresh()
        return ""

    def _show(self, words: str, *, bad: bool = False) -> None:
        session, item = self.session, self.session.current
        self._step += 1  # so that the screen hears of every answer, also of one like the last
        done, total = len(session.labelled()), len(session.texts)
        self.screen.state = {
            "step": self._step,
            "item": item,
            "number": "All done" if item is None else f"Item {session.order.index(item) + 1} of {total}",
            "text": "Every item has a label." if item is None else session.texts[item],
            "keys": [[key, label] for key, label in session.keys.items()],
            "annotator": session.annotator,
            "progress": f"{done} of {total} labelled",
            "done": done,
            "total": total,
            "undo": session.last is not None,
            "status": words,
            "bad": bad,
            "open": self._open,
            "agreement": self._agreement() if self._open else [],
        }

    def _agreement(self) -> list[str]:
        try:
            rows = [estimate.summary() for estimate in self.session.agreements()]
        except (AnimaError, OSError) as error:  # others write the file too: labelling goes on
            return [str(error)]
        return rows or ["Nobody to compare with yet: a second annotator or a detector is needed."]

    def _repr_html_(self) -> str:
        """Progress, labels and agreement; no text, as a page may not be the place to publish the items."""
        session, agreement = self.session, self._agreement()
        counts = {name: list(session.labelled(name).values()) for name in session.annotators}
        rows = [(label, *(str(found.count(label)) for found in counts.values())) for label in session.labels]
        body = table("Labels given", ("label", *counts), rows)
        return block("Blind labelling", lines([session.summary(), *agreement]) + body)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return bundle(self.screen, self._repr_html_(), self.session.summary(), **options)
