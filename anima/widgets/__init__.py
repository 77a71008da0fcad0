"""Things to touch in a notebook: explore a reply, browse a corpus, label blind.

Each shows itself in JupyterLab and Notebook 7 while a kernel runs. Where none does (nbconvert, the book, a page on the
web) the same output holds a static view in HTML, which those tools take when no state of the widget was saved with the
notebook, as is their default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anima.lazy import lazy

if TYPE_CHECKING:
    from anima.widgets.browser import Browser, browse, filter_utterances
    from anima.widgets.explorer import Explorer, Flips, compare
    from anima.widgets.labelling import LabellingWidget
    from anima.widgets.session import LabellingSession

# Loaded at the first use of a name: a session needs no widget library.
_HOMES: Final = {
    "Browser": "browser", "Explorer": "explorer", "Flips": "explorer", "LabellingSession": "session",
    "LabellingWidget": "labelling", "browse": "browser", "compare": "explorer", "filter_utterances": "browser",
}  # fmt: skip

__all__ = [
    "Browser", "Explorer", "Flips", "LabellingSession", "LabellingWidget", "browse", "compare", "filter_utterances",
]  # fmt: skip

__getattr__, __dir__ = lazy(__name__, _HOMES)
