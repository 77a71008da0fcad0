"""A stream shown in a notebook while it runs, and as plain HTML afterwards."""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any, Final

from anima.checks import require_number
from anima.judge.stream import Streamed, collect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from anima.judge.events import Event

_LIVE: Final = 4000  # characters of a running text that are sent again at each update
_PRE: Final = "<pre style='white-space:pre-wrap;max-height:24em;overflow:auto'>{}</pre>"


def display(events: Iterable[Event], *, interval: float = 0.25) -> Streamed:
    """Show a stream in a notebook: the pre-analysis at once, the judge's reasoning in a fold, the verdict when it comes.

    What stays behind is static HTML, without a script or a widget, and so are exported notebooks and built pages.
    Outside a notebook nothing is shown.

    Parameters
    ----------
    events
        From :func:`anima.stream`. Interrupting the cell closes it, and so stops the judge.
    interval
        Least seconds between two updates of the running text.

    Returns
    -------
    Streamed
        Analysis, verdict and refinement; None for what did not come.
    """
    require_number(interval, "interval", low=0)
    pane = _Pane(interval) if _in_notebook() else None
    try:
        return collect(pane.watched(events) if pane else events)
    finally:
        if pane:
            pane.stop()
        if close := getattr(events, "close", None):
            close()


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


class _Pane:
    """What stands below the cell: the analysis, and one output that is written anew."""

    def __init__(self, interval: float) -> None:
        from IPython.display import HTML
        from IPython.display import display as show

        self._interval = interval
        self._html: Any = HTML
        self._show: Any = show
        self._handle: Any = None
        self._last = 0.0
        self._status = ""
        self._texts = {"thinking": "", "answer": ""}
        self._done: list[str] = []

    def watched(self, events: Iterable[Event]) -> Iterator[Event]:
        """Hand events on, each shown before."""
        for event in events:
            self.take(event)
            yield event

    def take(self, event: Event) -> None:
        """Show an event, soon if it is one of many."""
        match event.name:
            case "pre_analysis":
                self._show(event.result)
                return
            case "judge_loading" | "refine_loading":
                what = "reads the reply" if event.name == "judge_loading" else "rewrites the question"
                self._status = f"{event.data['model']} {what} …"
            case "thinking_chunk":
                self._texts["thinking"] += event.data["chunk"]
            case "analysis_chunk":
                self._texts["answer"] += event.data["chunk"]
            case "thinking_complete":
                pass
            case _:
                self._status, self._texts = "", {"thinking": "", "answer": ""}
                message = event.data.get("message", "")
                shown = event.result._repr_html_() if event.result else f"<p>{html.escape(message)}</p>"
                self._done.append(shown)
        if event.name.endswith("chunk") and time.monotonic() - self._last < self._interval:
            return
        self._write(self._body())

    def stop(self) -> None:
        """Leave nothing behind that looks as if it were still running."""
        if self._status:
            self._status = f"Stopped before the end ({self._status.removesuffix(' …')})."
            self._write(self._body(live=False))

    def _body(self, *, live: bool = True) -> str:
        parts = list(self._done)
        if self._status:
            parts.append(f"<p><em>{html.escape(self._status)}</em></p>")
        for title, text in self._texts.items():
            if text:
                unfold = " open" if live and (title == "answer" or not self._texts["answer"]) else ""
                cut = f"… {text[-_LIVE:]}" if live and len(text) > _LIVE else text
                head = f"{title.capitalize()} of the judge ({len(text):,} characters)"
                parts.append(f"<details{unfold}><summary>{head}</summary>{_PRE.format(html.escape(cut))}</details>")
        return "".join(parts)

    def _write(self, body: str) -> None:
        page = self._html(body)
        if self._handle is None:
            self._handle = self._show(page, display_id=True)
        else:
            self._handle.update(page)
        self._last = time.monotonic()
