"""What a widget leaves behind where no kernel runs: plain HTML in the same output."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from anima.authenticity.render import stylesheet

if TYPE_CHECKING:
    from collections.abc import Iterable


def bundle(widget: Any, page: str, summary: str, **options: Any) -> Any:
    """Return the output of a widget with ``page`` beside its view.

    JupyterLab and Notebook 7 prefer the view. nbconvert takes the page unless the state of the widget was saved with
    the notebook; the book's notebooks are committed without views.
    """
    data = widget._repr_mimebundle_(**options)
    view, *metadata = data if isinstance(data, tuple) else (data,)
    merged = {**(view or {}), "text/html": page, "text/plain": summary}
    return (merged, *metadata) if metadata else merged


def block(name: str, body: str) -> str:
    """Return HTML inside the frame that analyses have too; ``body`` is HTML already."""
    return (
        f'<div class="anima tex2jax_ignore mathjax_ignore" role="group" aria-label="{escape(name)}">'
        f"<style>{stylesheet()}</style>{body}</div>"
    )


def lines(sentences: Iterable[str]) -> str:
    """Return sentences as paragraphs, the first one set off."""
    return "".join(f'<p class="{"" if i else "an-lead"}">{escape(line)}</p>' for i, line in enumerate(sentences))


def table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return plain cells as a table; the first one of a row is its header."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>"
        + "".join(f"<{'td' if i else 'th scope=row'}>{escape(c)}</{'td' if i else 'th'}>" for i, c in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="an-scroll"><table class="an-table"><caption class="an-sr">{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
