"""The card on a page, in a notebook, in a terminal; on each all tables have one form, blind spots as prominent as strengths.

Markdown has a column for each thing (:data:`HEAD`), what is drawn puts them together (:data:`WIDE`).
"""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anima.card.model import NOT_MEASURED, Card, Row, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from anima.stats import Estimate

HEAD: Final = ("What", "Estimate [95 % interval]", "n", "Trivial rule", "Against it", "Evidence", "Material", "Date")
WIDE: Final = ("What", "Estimate [95 % interval]", "Against the trivial rule", "Evidence and material")
_SIGNS: Final = {"better": "✓", "worse": "✗", "fails": "✗", "not shown": "?", "undecided": "?"}
_KINDS: Final = {"better": "good", "worse": "bad", "fails": "bad", "": "none"}
_LOW, _HIGH, _WIDTH = -0.2, 1.0, 130
_LIMITS: Final = "Limits that the findings state"
_RECEIPT: Final = (
    "Hashes of everything the card was made from; the same content gives the same card. "
    "<code>anima health --strict</code> compares them with what is here."
)


def card_markdown(card: Card) -> str:
    """Return the card as plain Markdown."""
    boxes = [f"**{title}**\n\n{_items(items)}" for title, _, items in _boxes(card)]
    said = [f"**Deployment.** {card.stance}", f"**Health: {card.stamp.health}.** {_cell(card.health)}", f"*{card.reading}*"]  # fmt: skip
    return _document(card, [*boxes, *said], _markdown)


def card_page(card: Card) -> str:
    """Return the page of the book: headings in Markdown, tables as HTML with their bars."""
    return _document(
        card,
        [_raw(f"<style>{_css()}</style>{_head(card)}")],
        lambda section: _raw(f'<div class="anima-card">{_table(section)}</div>'),
    )


def _document(card: Card, head: list[str], table: Callable[[Section], str]) -> str:
    parts = [f"# {card.title}", card.purpose, *head]
    for section in card.sections:
        parts += [f"## {section.title}", section.text, table(section)]
    parts += [f"## {_LIMITS}", *(f"### {_cell(title)}\n\n{_items(items)}" for title, items in card.limits.items())]
    hashes = [f"| {_cell(name)} | `{value}` |" for name, value in _hashes(card)]
    receipt = _RECEIPT.replace("<code>", "`").replace("</code>", "`")
    return "\n\n".join([*parts, "## Receipt", receipt, "\n".join(["| input | hash |", "|---|---|", *hashes])]) + "\n"


def card_fragment(card: Card) -> str:
    """Return the card as a block of HTML for a notebook: no script, no request, everything escaped."""
    e = html.escape
    sections = "".join(f"<h2>{e(s.title)}</h2><p>{e(s.text)}</p>{_table(s)}" for s in card.sections)
    limits = "".join(f"<h3>{e(title)}</h3>{_list(items)}" for title, items in card.limits.items())
    hashes = "".join(f"<tr><td>{e(name)}</td><td><code>{e(value)}</code></td></tr>" for name, value in _hashes(card))
    return (
        f'<style>{_css()}</style><div class="anima-card"><h1>{e(card.title)}</h1><p class="purpose">{e(card.purpose)}</p></div>'
        f'{_head(card)}<div class="anima-card">{sections}<h2>{_LIMITS}</h2>{limits}'
        f'<h2>Receipt</h2><p>{_RECEIPT}</p><table class="hashes"><tbody>{hashes}</tbody></table></div>'
    )


def card_html(card: Card) -> str:
    """Return the card as a page of its own, for screens dark and light and for print."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(card.title)}</title><style>body{{margin:0 auto;max-width:66rem;padding:1.5rem;background:Canvas}}"
        ":root{color-scheme:light dark}</style></head>"
        f"<body>{card_fragment(card)}</body></html>\n"
    )


def card_rich(card: Card) -> Any:
    """Return the card for a terminal (a rich renderable)."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def listed(title: str, items: Iterable[str]) -> Any:
        rows = Table(
            title=f"\n{title}", title_justify="left", title_style="bold", box=None, padding=0, show_header=False
        )
        rows.add_column(width=2)
        rows.add_column(overflow="fold")
        for item in items:
            rows.add_row("•", Text(item))
        return rows

    health = Text(f"\nHealth: {card.stamp.health}. {card.health}")
    parts: list[Any] = [Text(card.title, style="bold"), Text(card.purpose)]
    parts += [listed(title, items) for title, _, items in _boxes(card)]
    parts += [health, Text(card.stance, style="italic"), Text(card.reading, style="dim")]
    for section in card.sections:
        table = Table(title=f"\n{section.title}", title_justify="left", title_style="bold", box=None, padding=(0, 1))
        for name, ratio in zip(WIDE, (5, 4, 4, 3), strict=True):
            table.add_column(name, ratio=ratio, overflow="fold")
        for heading, row in _grouped(section):
            if heading:
                table.add_row(Text(heading, style="bold dim"))
            number, n, rival, verdict, grade, material, _ = _cells(row)
            number += f", n = {n}" if row.estimate.defined else ""
            table.add_row(*map(Text, (row.title, number, f"{verdict}\n{rival}", f"{grade}\n{material}")))
        parts.append(table)
    parts.append(Text(f"\n{_LIMITS}", style="bold"))
    parts += [listed(title, items) for title, items in card.limits.items()]
    return Group(*parts, Text(f"\nCard {card.content}"))


def _boxes(card: Card) -> list[tuple[str, str, tuple[str, ...]]]:
    boxes = [("Use it for", "yes", card.uses), ("Do not use it for", "no", card.avoid)]
    return [*boxes, ("Seen so far on", "seen", card.coverage)] if card.coverage else boxes


def _hashes(card: Card) -> list[tuple[str, str]]:
    return [*card.inputs.items(), ("this card", card.content)]


def _grouped(section: Section) -> Iterator[tuple[str, Row]]:
    """Yield each row with the name of its group where that begins, else with nothing."""
    before = ""
    for row in section.rows:
        yield ("" if row.group == before else row.group), row
        before = row.group


def _markdown(section: Section) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for heading, row in _grouped(section):
        if heading:
            lines.append(f"| *{_cell(heading)}* |" + " |" * (len(HEAD) - 1))
        title = f"**{_cell(row.title)}**" + (f" {_cell(row.note)}" if row.note else "")
        lines.append(f"| {title} | " + " | ".join(_cell(text) for text in _cells(row)) + " |")
    return "\n".join(lines)


def _items(items: Iterable[str]) -> str:
    return "\n".join(f"- {_cell(item)}" for item in items)


def _raw(text: str) -> str:
    return f"``````{{raw}} html\n{text}\n``````"


def _cell(text: str) -> str:
    return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def _cells(row: Row) -> list[str]:
    """Return the cells after the first as text."""
    estimate, base = row.estimate, row.baseline
    number = f"{estimate.name} {_span(estimate)}" if estimate.defined else estimate.reason
    rival = f"{_number(base.value)} ({base.name})" if base is not None and base.defined else "–"
    verdict = f"{_SIGNS[row.verdict]} {row.verdict}" if row.verdict else "–"
    material = ", ".join(filter(None, (row.language, row.genre))) or "–"
    n = f"{estimate.n:,} {row.unit}".strip() if estimate.n else "–"
    return [number, n, rival, verdict, row.grade, material, row.date]


def _span(estimate: Estimate) -> str:
    """Return value and interval with two decimals; with three where two would show an interval without width."""
    if not estimate.has_interval:
        return _number(estimate.value)
    digits = 3 if round(estimate.low, 2) == round(estimate.high, 2) else 2
    value, low, high = (_number(x, digits) for x in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def _number(value: float, digits: int = 2) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # adding 0 makes -0 plain 0


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>"


def _head(card: Card) -> str:
    """Return what must be known before the tables: use, coverage, stance, health."""
    e = html.escape
    boxes = "".join(
        f'<div class="box {kind}"><b>{title}</b>{_list(items)}</div>' for title, kind, items in _boxes(card)
    )
    said = [*card.stamp.alarms, *card.stamp.unknown]
    alarms = f"<details><summary>All that the sentinel says</summary>{_list(said)}</details>" if said[1:] else ""
    return (
        f'<div class="anima-card"><div class="boxes">{boxes}</div>'
        f"<p><b>Deployment.</b> {e(card.stance)}</p>"
        f'<p><span class="stamp {e(card.stamp.health)}">health: {e(card.stamp.health)}</span> {e(card.health)}</p>{alarms}'
        f'<p class="small">{e(card.reading)}</p></div>'
    )


def _table(section: Section) -> str:
    """Return a table of four columns, narrow enough for the column of a book."""
    e = html.escape
    head = "".join(f'<th scope="col">{e(name)}</th>' for name in WIDE)
    body = []
    for heading, row in _grouped(section):
        if heading:
            body.append(f'<tr class="group"><th scope="rowgroup" colspan="{len(WIDE)}">{e(heading)}</th></tr>')
        number, n, _, verdict, grade, material, date = map(e, _cells(row))
        absent, rival = ' class="absent"', ""
        if row.estimate.defined:
            name = f"<small>{e(row.estimate.name)}, n&nbsp;=&nbsp;{n}</small>"
            absent, number = "", f"<b>{e(_span(row.estimate))}</b>{_bar(row)}{name}"
        if row.baseline is not None and row.baseline.defined:
            rival = f"<small>{_number(row.baseline.value)}, {e(row.baseline.name)}</small>"
        note = f"<small>{e(row.note)}</small>" if row.note else ""
        where = "<br>".join(text for text in (material, date) if text != "–")
        body.append(
            f"<tr><td>{e(row.title)}{note}</td><td{absent}>{number}</td>"
            f'<td><span class="{_KINDS.get(row.verdict, "open")}">{verdict}</span>{rival}</td>'
            f"<td{' class=absent' if row.evidence == NOT_MEASURED else ''}>{grade}<small>{where}</small></td></tr>"
        )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _bar(row: Row) -> str:
    """Return an estimate, its interval and the trivial rule as a small picture; nothing where the scale does not fit."""
    item, base = row.estimate, row.baseline
    ends = (item.low, item.high) if item.has_interval else (item.value, item.value)
    if min(*ends, item.value) < _LOW or max(*ends, item.value) > _HIGH:
        return ""

    def x(value: float) -> str:
        return f"{4 + (value - _LOW) / (_HIGH - _LOW) * (_WIDTH - 8):.1f}"

    tick = ""
    if base is not None and base.defined and _LOW <= base.value <= _HIGH:
        tick = f'<line class="tick" x1="{x(base.value)}" x2="{x(base.value)}" y1="1" y2="15"/>'
    return (
        f'<svg viewBox="0 0 {_WIDTH} 16" width="{_WIDTH}" height="16" aria-hidden="true">'
        f'<line class="axis" x1="{x(0)}" x2="{x(1)}" y1="8" y2="8"/><line class="axis" x1="{x(0)}" x2="{x(0)}" y1="4" y2="12"/>'
        f'<line class="axis" x1="{x(1)}" x2="{x(1)}" y1="4" y2="12"/>{tick}'
        f'<line class="span" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="8" y2="8"/><circle cx="{x(item.value)}" cy="8" r="3.5"/></svg>'
    )


@cache
def _css() -> str:
    return Path(__file__).with_name("card.css").read_text(encoding="utf-8").strip()
