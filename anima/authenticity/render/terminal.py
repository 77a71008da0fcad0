"""An analysis in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anima.authenticity.intents import UNCLASSIFIED
from anima.authenticity.render import pieces
from anima.plots import INK, PAPER, POLE_COLORS, POOL_COLORS, REGIME_MARKS, intent_color, text_on

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

    from anima.authenticity.analysis import Analysis, Step
    from anima.authenticity.poles import PoleScore

#: Columns from which tables show all they have, and below which only what the reply above them lacks.
_WIDE, _NARROW = 110, 64


class analysis_rich:  # noqa: N801 - called like analysis_html and analysis_chart
    """An analysis, empty or not, as something rich can print; it fits the width of the console.

    Sentences are followed by their intent, markers by a number that leads to the table of markers (in round brackets
    where the marker does not count), so that nothing is lost without colour. Control characters of the reply are made
    visible: none reaches the terminal.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.rule import Rule
        from rich.text import Text

        analysis = self.analysis
        yield Text(analysis.summary(), style="bold")
        yield Text(pieces.setup(analysis), style="dim")
        if analysis.note and analysis.steps:
            yield Text(f"Note: {analysis.note}.", style="italic")
        if not analysis.response.strip():
            return
        parts: list[tuple[str, list[Any]]] = [("Reply", [_reply(analysis)])]
        if analysis.steps:
            parts.append(("Sentences", [_sentences(analysis, options.max_width)]))
            parts.append(("Trajectory", _trajectory(analysis)))
        if analysis.pole.label:
            parts.append(("Pole", [_pole(analysis.pole, options.max_width)]))
        if pieces.numbered(analysis):
            parts.append(("Markers", [_markers(analysis, options.max_width)]))
        if analysis.neighbours:
            near = [_pools(analysis), Text(), _neighbours(analysis, options.max_width)]
            parts.append(("Nearest reference texts", near))
        for title, content in parts:
            yield Text()
            yield Rule(title, align="left", style="dim")
            yield from content


def _ink(color: str) -> str:
    return f"bold {text_on(color)} on {color}"


def _tint(step: Step, classifier: str) -> str:
    """Return dark ink on the intent's colour thinned with white: readable whatever the terminal's own colours."""
    if step.intent == UNCLASSIFIED:
        return ""
    share = 0.25 + 0.35 * pieces.strength(step, classifier)
    color = intent_color(step.intent, step.regime)
    mixed = (round(share * int(color[i : i + 2], 16) + (1 - share) * int(PAPER[i : i + 2], 16)) for i in (1, 3, 5))
    return f"{INK} on #{''.join(f'{channel:02x}' for channel in mixed)}"


def _chip(step: Step) -> tuple[str, str]:
    style = "dim" if step.intent == UNCLASSIFIED else _ink(intent_color(step.intent, step.regime))
    return f" {REGIME_MARKS[step.regime]} {pieces.label(step.intent)} ", style


def _reply(analysis: Analysis) -> Text:
    from rich.text import Text

    text = Text(overflow="fold")
    if analysis.question:
        text.append(f"Asked: {pieces.shorten(analysis.question, 400)}\n", style="dim")
    for piece in pieces.pieces(analysis):
        _append(text, piece, analysis.classifier)
    if hidden := pieces.left_out(analysis):
        text.append(f"\n{hidden}", style="italic")
    return text


def _append(text: Text, piece: pieces.Piece, classifier: str) -> None:
    style = _tint(piece.step, classifier) if piece.step else ""
    counts = any(not hit.suppressed for _, hit in piece.hits)
    text.append(piece.text, style=f"{style} underline".strip() if counts else style)
    for i, hit in piece.hits:
        if i in piece.ending:
            text.append(f"({i})" if hit.suppressed else f"[{i}]", style=style)
    if piece.last and piece.step:
        # Without spaces inside, so that no line breaks between a shape and its name.
        name, chip = _chip(piece.step)
        text.append(" ", style=style).append(name.replace(" ", ""), style=chip)


def _table(*columns: tuple[str, dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name, options in columns:
        table.add_column(name, **options)
    return table


def _line(text: str) -> Text:
    """Return ``text`` as a cell of one line that gives way when the table is too wide."""
    from rich.text import Text

    return Text(pieces.shorten(text, 200), no_wrap=True, overflow="ellipsis")


def _bar(value: float, color: str, width: int) -> Text:
    from rich.text import Text

    full = round(width * pieces.filled(value))
    return Text.assemble(("█" * full, color), ("░" * (width - full), "dim"))


def _sentences(analysis: Analysis, width: int) -> Table:
    from rich.text import Text

    steps = pieces.shown_steps(analysis)
    room = max(len(_chip(step)[0]) for step in steps)
    columns: list[tuple[str, dict[str, Any]]] = [
        ("#", {"justify": "right", "min_width": 3}),
        ("intent", {"min_width": room}),
        ("conf.", {"justify": "right", "min_width": 5}),
        ("margin", {"justify": "right", "min_width": 6}),
    ]
    if width >= _WIDE:
        columns += [
            ("runner-up", {"min_width": max(len(step.runner_up) for step in steps)}),
            ("usual next", {"min_width": 20}),
        ]
    if width >= _NARROW:
        columns.append(("sentence", {"no_wrap": False}))
    known = any(step.has_keyword for step in steps)
    if known:
        columns.append(("keyword", {"no_wrap": False}))
    table = _table(*((name, {"no_wrap": True} | options) for name, options in columns))
    for step in steps:
        expected = step.predicted_next + (" ≠" if step.deviation else "")
        cells = [
            Text(str(step.index + 1)),
            Text(*_chip(step)),
            Text(pieces.number(step.confidence)),
            Text(pieces.number(step.margin)),
        ]
        cells += [Text(step.runner_up), Text(expected)] if width >= _WIDE else []
        cells += [_line(step.phrase)] if width >= _NARROW else []
        cells += [_line(step.keyword.text if step.has_keyword and step.keyword else "")] if known else []
        table.add_row(*cells)
    return table


def _trajectory(analysis: Analysis) -> list[Text]:
    from rich.text import Text

    trajectory = analysis.trajectory
    strip = Text()
    for step in pieces.shown_steps(analysis):
        if step.index in trajectory.break_positions:
            strip.append("⇄ ")
        style = "dim" if step.intent == UNCLASSIFIED else _ink(intent_color(step.intent, step.regime))
        strip.append(f" {REGIME_MARKS[step.regime]} {step.index + 1} ", style=style)
        strip.append(" ")
    rule = Text.assemble((f"{trajectory.rule} {pieces.verdict(trajectory)}", "bold"), f": {trajectory.reason}")
    figures = (
        ("control among classified", trajectory.control_density),
        ("among all", trajectory.control_density_all),
        ("genuine", trajectory.genuine_density),
        ("plain", trajectory.plain_share),
        ("breaks", trajectory.pattern_break_density),
    )
    return [strip, rule, Text(" · ".join(f"{name} {pieces.number(value)}" for name, value in figures), style="dim")]


def _pole(pole: PoleScore, width: int) -> Text:
    from rich.text import Text

    span = pieces.reach(pole)
    cells = max(20, min(60, width - 4))
    low, high, at = (
        round((cells - 1) * pieces.filled(0.5 + value / span / 2)) for value in (pole.low, pole.high, pole.raw)
    )
    text = Text()
    for i in range(cells):
        if i == at:
            text.append("◆", style="bold")
        elif i <= low:
            text.append("━", style=POLE_COLORS["doubt"])
        elif i >= high:
            text.append("━", style=POLE_COLORS["certainty"])
        else:
            text.append("┄", style="dim")
    text.append(f"\n◀ doubt{' ' * max(1, cells - 19)}certainty ▶\n", style="dim")
    raw, below, above = (pieces.number(value, 3, sign=True) for value in (pole.raw, pole.low, pole.high))
    text.append(pole.words, style="bold")
    return text.append(f": {raw}; doubt below {below}, certainty above {above}")


def _markers(analysis: Analysis, width: int) -> Table:
    from rich.text import Text

    fold: dict[str, Any] = {"overflow": "fold"}
    wide = width >= _NARROW
    table = _table(
        ("#", {"justify": "right"}),
        ("marker", fold),
        *([("wording", fold), ("severity", {})] if wide else []),
        ("why", fold),
    )
    for i, hit in pieces.numbered(analysis)[: pieces.MAX_SENTENCES]:
        why = f"does not count: {hit.reason}" if hit.suppressed else hit.reason or hit.note
        more = [pieces.shorten(hit.phrase, 60), "–" if hit.suppressed else hit.severity] if wide else []
        table.add_row(
            *map(Text, (str(i), hit.marker_id, *more, pieces.visible(why))), style="dim" if hit.suppressed else ""
        )
    return table


def _pools(analysis: Analysis) -> Text:
    from rich.text import Text

    pools = analysis.pools
    text = Text()
    for pool, value in pools.tops().items():
        text.append(f"{pool:<7}").append_text(_bar(value, POOL_COLORS[pool], 20)).append(f" {pieces.number(value)}\n")
    flags = ("; artificial closure" if pools.cierre_artificial else "") + ("; continuity" if pools.continuidad else "")
    lead = f"{pools.dominancia} leads by {pieces.number(pools.deriva, 3)}"
    return text.append(f"{lead}; texture {pieces.number(pools.textura_t)}{flags}")


def _neighbours(analysis: Analysis, width: int) -> Table:
    from rich.text import Text

    fixed: dict[str, Any] = {"no_wrap": True}
    pattern = [("pattern", fixed)] if width >= _NARROW else []
    table = _table(("#", fixed), ("cosine", fixed), ("pool", fixed), *pattern, ("text", {}))
    for near in analysis.neighbours:
        pool = Text(f" {near.entry.pool} ", style=_ink(POOL_COLORS[near.entry.pool]))
        more = [Text(near.entry.primary_pattern)] if pattern else []
        table.add_row(Text(str(near.rank)), Text(pieces.number(near.score)), pool, *more, _line(near.entry.text))
    return table
