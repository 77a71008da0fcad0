"""An analysis as one block of HTML: no script, no request, everything escaped, readable on light and dark pages and in print.

Colour is never alone: every sentence carries the name of its intent and a shape for its regime, every marker a number that leads to the
table below the reply, and the figures that hovering shows stand in tables too.
"""

from __future__ import annotations

import html
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from anima.authenticity.intents import UNCLASSIFIED
from anima.authenticity.neighbours import NEAR, TEMPERATURE
from anima.authenticity.render import pieces
from anima.plots import POLE_COLORS, POOL_COLORS, REGIME_COLORS, REGIME_MARKS, intent_color, text_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anima.authenticity.analysis import Analysis, Step
    from anima.authenticity.markers import MarkerHit
    from anima.authenticity.poles import PoleScore

#: Sentences from which the strip leaves the names of the intents to the table.
_DENSE = 40


def analysis_html(analysis: Analysis) -> str:
    """Return ``analysis``, which may be empty, as one ``<div>`` with its own style sheet.

    Classes begin with ``an-``; there are no ids, so that many may stand on one page. Replies beyond 200 sentences or
    20,000 characters are cut and say so.
    """
    body = [
        f'<p class="an-lead">{_text(analysis.summary())}</p>',
        f'<p class="an-meta">{_text(pieces.setup(analysis))}</p>',
    ]
    if analysis.note and analysis.steps:  # without sentences the summary says it already
        body.append(f'<p class="an-note"><b>Note:</b> {_text(analysis.note)}.</p>')
    if analysis.response.strip():
        body.append(_section("Reply", _reply(analysis)))
    if hits := pieces.numbered(analysis):
        body.append(_section("Markers", _markers(hits)))
    if analysis.steps:
        body.append(_section("Trajectory", _trajectory(analysis)))
    halves = [_section("Pole", _pole(analysis.pole))] if analysis.pole.label else []
    if analysis.neighbours:
        halves.append(_section("Pools", _pools(analysis)))
    if halves:
        body.append(f'<div class="an-halves">{"".join(halves)}</div>')
    if analysis.neighbours:
        body.append(_section("Nearest reference texts", _neighbours(analysis)))
    if analysis.steps:
        name = f"All sentences as a table ({len(pieces.shown_steps(analysis))})"
        body.append(f"<details><summary>{name}</summary>{_sentences(analysis)}</details>")
    # The ignore classes keep MathJax from reading "$5 to $10" as a formula.
    return (
        '<div class="anima tex2jax_ignore mathjax_ignore" role="group" aria-label="Authenticity analysis">'
        f"<style>{stylesheet()}</style>{''.join(body)}</div>"
    )


@cache
def stylesheet() -> str:
    """Return the styles of everything inside an element of class ``anima``."""
    text = Path(__file__).with_name("analysis.css").read_text(encoding="utf-8")
    return " ".join(line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("/*"))


def _text(text: str) -> str:
    return html.escape(pieces.visible(text), quote=True)


def _section(name: str, content: str) -> str:
    return f'<section aria-label="{name}"><p class="an-head">{name}</p>{content}</section>'


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """Return a table whose cells are HTML already; a first cell is the header of its row."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    return (
        f'<div class="an-scroll"><table class="an-table"><caption class="an-sr">{caption}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _chip(text: str, color: str, mark: str = "") -> str:
    shape = f'<span aria-hidden="true">{mark}</span> ' if mark else ""
    style = f' style="background-color:{color};color:{text_on(color)}"' if color else ""
    # The word joiner keeps a chip on the line of the word before it.
    return f'<span class="an-chip{"" if color else " an-plain"}"{style}>&#8288;{shape}{_text(text)}</span>'


def _intent_chip(step: Step) -> str:
    color = "" if step.intent == UNCLASSIFIED else intent_color(step.intent, step.regime)
    return _chip(pieces.label(step.intent), color, REGIME_MARKS[step.regime])


def _code(name: str) -> str:
    return f'<span class="an-code">{_text(name).replace("_", "_<wbr>") or "–"}</span>'


# The reply


def _reply(analysis: Analysis) -> str:
    asked = (
        f'<p class="an-asked"><b>Asked:</b> {_text(pieces.shorten(analysis.question, 400))}</p>'
        if analysis.question
        else ""
    )
    text = "".join(_piece(piece, analysis.classifier) for piece in pieces.pieces(analysis))
    hidden = pieces.left_out(analysis)
    more = f'<p class="an-note">{_text(hidden)}</p>' if hidden else ""
    return f'{asked}<div class="an-reply" style="white-space:pre-wrap" dir="auto">{text}</div>{more}{_legend(analysis) if analysis.steps else ""}'


def _piece(piece: pieces.Piece, classifier: str) -> str:
    text = _text(piece.text)
    if piece.hits:
        counts = any(not hit.suppressed for _, hit in piece.hits)
        title = " — ".join(_about(i, hit) for i, hit in piece.hits)
        # Numbers follow the last slice of their marker; a screen reader gets the name with them.
        kinds = {i: ("suppressed marker " if hit.suppressed else "marker ") + hit.marker_id for i, hit in piece.hits}
        notes = "".join(
            f'<sup class="an-number">&#8288;{i}<span class="an-sr"> ({_text(kinds[i])}) </span></sup>'
            for i in piece.ending
        )
        text = f"{_mark(text, counts=counts, title=title)}{notes}"
    if piece.step is None:
        return text
    before = after = ""
    if piece.first:
        before = f'<span class="an-sentence" style="background-color:{_tint(piece.step, classifier)}" title="{_text(pieces.explain(piece.step))}"><bdi>'
    if piece.last:
        # Outside the isolate, so that direction marks in the reply do not move it.
        after = f"</bdi>{_intent_chip(piece.step)}</span>"
    return before + text + after


def _mark(text: str, *, counts: bool, title: str = "") -> str:
    """Underline HTML text; what is essential is inline, as notebooks that are not trusted lose the style sheet."""
    name, line = ("an-marker", "underline") if counts else ("an-suppressed", "underline dotted")
    return (
        f'<mark class="{name}" style="background-color:transparent;text-decoration:{line}"{_title(title)}>{text}</mark>'
    )


def _about(i: int, hit: MarkerHit) -> str:
    if hit.suppressed:
        return f"Marker {i}, {hit.marker_id}, does not count: {hit.reason}"
    return f"Marker {i}, {hit.marker_id}, {hit.severity}: {hit.reason or hit.note or hit.pattern}"


def _tint(step: Step, classifier: str) -> str:
    """Return the colour of the intent with an opacity that grows with the margin: it suits any page below it."""
    if step.intent == UNCLASSIFIED:
        return REGIME_COLORS["plain"] + "14"
    return (
        f"{intent_color(step.intent, step.regime)}{round(255 * (0.12 + 0.30 * pieces.strength(step, classifier))):02x}"
    )


def _legend(analysis: Analysis) -> str:
    marks = " ".join(
        f'<span><span class="an-mark" style="color:{REGIME_COLORS[name]}" aria-hidden="true">{REGIME_MARKS[name]}</span> {words}</span>'
        for name, words in (("control", "control"), ("genuine", "genuine"), ("plain", "plain content"))
    )
    keys = ["<span>stronger tint: larger margin over the runner-up</span>"]
    if analysis.markers:
        keys.append(f"<span>{_mark('underlined', counts=True)}: marker</span>")
    if analysis.suppressed_markers:
        keys.append(f"<span>{_mark('dotted', counts=False)}: marker that does not count</span>")
    return f'<p class="an-legend">{marks} {" ".join(keys)}</p>'


def _markers(hits: list[tuple[int, MarkerHit]]) -> str:
    rows = (
        (
            str(i),
            _code(hit.marker_id),
            _mark(_text(pieces.shorten(hit.phrase, 80)), counts=not hit.suppressed),
            hit.position,
            "–" if hit.suppressed else hit.severity,
            f"<b>does not count</b>: {_text(hit.reason)}" if hit.suppressed else _text(hit.reason or hit.note),
        )
        for i, hit in hits[: pieces.MAX_SENTENCES]
    )
    hidden = len(hits) - pieces.MAX_SENTENCES
    more = f'<p class="an-note">{hidden:,} more markers are not shown.</p>' if hidden > 0 else ""
    return _table(("#", "marker", "wording", "where", "severity", "why"), rows, "Formal markers") + more


# The figures


def _trajectory(analysis: Analysis) -> str:
    trajectory = analysis.trajectory
    cells = []
    steps = pieces.shown_steps(analysis)
    for step in steps:
        if step.index in trajectory.break_positions:
            cells.append(
                '<li class="an-break" title="the regime changes here"><span aria-hidden="true">⇄</span><span class="an-sr">regime changes</span></li>'
            )
        color = intent_color(step.intent, step.regime)
        plain = step.intent == UNCLASSIFIED
        style = "" if plain else f' style="background-color:{color};color:{text_on(color)}"'
        cells.append(
            f'<li class="an-cell{" an-plain" if plain else ""}"{style} title="{_text(pieces.explain(step))}">'
            f'<span class="an-cell-top"><span aria-hidden="true">{REGIME_MARKS[step.regime]}</span> {step.index + 1}</span>'
            f'<span class="an-cell-name">{_text(pieces.label(step.intent)).replace("_", "_<wbr>")}</span></li>'
        )
    figures = (
        ("control among classified", trajectory.control_density),
        ("control among all", trajectory.control_density_all),
        ("genuine among all", trajectory.genuine_density),
        ("plain", trajectory.plain_share),
        ("breaks per classified sentence", trajectory.pattern_break_density),
    )
    facts = "".join(f"<span>{name} <b>{pieces.number(value)}</b></span> " for name, value in figures)
    return (
        f'<ol class="an-strip{" an-dense" if len(steps) > _DENSE else ""}">{"".join(cells)}</ol>'
        f'<p class="an-rule"><span class="an-chip an-id">{trajectory.rule}</span> <b>{pieces.verdict(trajectory)}</b> — {_text(trajectory.reason)}.</p>'
        f'<p class="an-facts">{facts}</p>'
    )


def _pole(pole: PoleScore) -> str:
    span = pieces.reach(pole)

    def place(value: float) -> str:
        return f"{100 * pieces.filled(0.5 + value / span / 2):.2f}%"

    raw, low, high = (pieces.number(value, 3, sign=True) for value in (pole.raw, pole.low, pole.high))
    says = _text(f"Pole score {raw}: {pole.words}. Below {low} is performed doubt, above {high} performed certainty.")
    sims = [("certainty", pole.sim_pos), ("doubt", pole.sim_neg), ("edge", pole.sim_neu)]
    cosines = " · ".join(f"{name} {pieces.number(value)}" for name, value in sims if math.isfinite(value))
    return (
        f'<p class="an-verdict"><b>{_text(pole.words)}</b> <span class="an-alias">({pole.label})</span></p>'
        f'<div class="an-gauge" role="img" aria-label="{says}" title="{says}">'
        f'<span class="an-zone" style="left:0;width:{place(pole.low)};background-color:{POLE_COLORS["doubt"]}"></span>'
        f'<span class="an-zone" style="left:{place(pole.high)};right:0;background-color:{POLE_COLORS["certainty"]}"></span>'
        f'<span class="an-needle" style="left:{place(pole.raw)}"></span>'
        f'<span class="an-cut" style="right:calc(100% - {place(pole.low)})">{low}</span>'
        f'<span class="an-cut" style="left:{place(pole.high)}">{high}</span></div>'
        f'<p class="an-ends"><span>◀ performed doubt</span><span>performed certainty ▶</span></p>'
        f'<p class="an-small">raw {raw} · cosines: {cosines}</p>'
    )


def _bar(value: float, color: str) -> str:
    style = f"width:{100 * pieces.filled(value):.1f}%;background-color:{color}"
    return f'<span class="an-bar" aria-hidden="true"><span style="{style}"></span></span>'


def _pools(analysis: Analysis) -> str:
    pools = analysis.pools
    rows = "".join(
        f"<div><span>{name}</span> {_bar(best, POOL_COLORS[name])} <b>{pieces.number(best)}</b></div>"
        for name, best in pools.tops().items()
    )
    closure, thread = ("yes" if flag else "no" for flag in (pools.cierre_artificial, pools.continuidad))
    return (
        f'<p class="an-verdict"><b>{pools.dominancia}</b> leads <span class="an-alias">(dominancia)</span> by {pieces.number(pools.deriva, 3)} '
        f'<span class="an-alias">(deriva)</span></p><div class="an-bars">{rows}</div>'
        f'<p class="an-small">best cosine of each pool, near from {NEAR} · texture {pieces.number(pools.textura_t)} at temperature {TEMPERATURE}, '
        f"{pieces.number(pools.textura, 3)} without (textura) · "
        f"artificial closure (cierre_artificial) <b>{closure}</b> · continuity (continuidad) <b>{thread}</b></p>"
    )


def _neighbours(analysis: Analysis) -> str:
    rows = (
        (
            str(near.rank),
            f"{pieces.number(near.score)}&nbsp;{_bar(near.score, POOL_COLORS[near.entry.pool])}",
            _chip(near.entry.pool, POOL_COLORS[near.entry.pool]),
            _code(near.entry.primary_pattern),
            f'<span dir="auto"{_title(near.entry.notes)}>{_text(pieces.shorten(near.entry.text, 160))}</span>',
        )
        for near in analysis.neighbours
    )
    return _table(("#", "cosine", "pool", "pattern", "text"), rows, "Nearest reference texts")


def _title(text: str) -> str:
    return f' title="{_text(text)}"' if text else ""


def _sentences(analysis: Analysis) -> str:
    rows = (
        (
            str(step.index + 1),
            f'<span dir="auto">{_text(pieces.shorten(step.phrase, 120))}</span>',
            _intent_chip(step),
            f"{pieces.number(step.confidence)}&nbsp;{_bar(step.confidence, intent_color(step.intent, step.regime))}",
            pieces.number(step.margin),
            _code(step.runner_up),
            f"{_code(step.predicted_next)}{' <b>not met</b>' if step.deviation else ''}",
        )
        for step in pieces.shown_steps(analysis)
    )
    head = ("#", "sentence", "intent", "confidence", "margin", "runner-up", "usual next")
    return _table(head, rows, "Sentences with their intents")
