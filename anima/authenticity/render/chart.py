"""An analysis as an altair chart: the chain with its margins, the pools, the pole."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from anima.authenticity.intents import UNCLASSIFIED
from anima.authenticity.neighbours import NEAR, POOLS
from anima.authenticity.render.pieces import label, number, shorten
from anima.plots import GRID, INK, MUTED, POLE_COLORS, POOL_COLORS, intent_color, theme_config

if TYPE_CHECKING:
    import altair as alt

    from anima.authenticity.analysis import Analysis

#: Sentences drawn; a chart of more is no longer looked at.
MAX_ROWS = 60

# Texts stand inside the frames and not on axes, so that the parts begin on one line whatever the texts.
_WIDTH, _LEFT = 740, 310
_HALF, _NAMES = 345, 52
#: Paler than elsewhere: plain sentences are many, and the others are to be seen.
_PLAIN = "#a3a9b3"
_SHAPES = {"control": "diamond", "genuine": "circle"}


def analysis_chart(analysis: Analysis) -> alt.VConcatChart:
    """Return ``analysis`` as a chart of up to three parts; an empty analysis gives one that says why there is nothing to see.

    *Chain*: a bar per sentence as long as its confidence; the solid end of the bar is the margin over the runner-up.
    *Pools*: the best cosine of each pool as a bar, the nearest texts as ticks. *Pole*: the score between its two cuts.
    """
    import altair as alt

    halves = ([_pools(analysis)] if analysis.neighbours else []) + ([_pole(analysis)] if analysis.pole.label else [])
    parts: list[Any] = [_chain(analysis)] if analysis.steps else []
    if halves:
        parts.append(alt.hconcat(*halves, spacing=50))
    if not parts:
        message = _of([{"text": analysis.summary()}], width=_WIDTH, height=40)
        parts.append(message.mark_text(align="left", x=0, fontSize=13, color=MUTED).encode(text="text:N"))
    title = alt.Title(textwrap.wrap(analysis.summary(), 100), fontSize=13, offset=14)
    description = f"Authenticity analysis. {analysis.summary()}"
    chart = alt.vconcat(*parts, spacing=22, description=description, config=alt.Config(**theme_config()))
    return chart.properties(title=title) if analysis.steps else chart


def _of(rows: list[dict[str, Any]], **options: Any) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(values=rows), **options)


def _chain(analysis: Analysis) -> Any:
    import altair as alt

    rows = [
        {
            "row": f"{step.index + 1}  {shorten(step.phrase, 50)}",
            "intent": label(step.intent),
            "regime": step.regime,
            "color": _PLAIN if step.intent == UNCLASSIFIED else intent_color(step.intent, step.regime),
            "confidence": round(step.confidence, 4),
            "margin": round(step.margin, 4),
            "from": round(step.confidence - step.margin, 4),
            "runner-up": step.runner_up,
        }
        for step in analysis.steps[:MAX_ROWS]
    ]
    hidden = len(analysis.steps) - len(rows)
    more = f" (the first {len(rows)} of {len(analysis.steps):,} sentences)" if hidden > 0 else ""
    title = alt.Title(
        f"Chain{more}",
        subtitle="bar: confidence · solid end: margin over the runner-up · diamond: control, circle: genuine, no mark: plain",
    )
    base = _of(rows, width=_WIDTH, height=alt.Step(21), title=title).encode(
        y=alt.Y("row:N", sort=None, axis=None),
        tooltip=["intent:N", "regime:N", "confidence:Q", "margin:Q", "runner-up:N"],
    )
    # Names stand to the right of the bars, so the axis has room beyond 1.
    lowest = min(0.0, *(step.confidence - step.margin for step in analysis.steps[:MAX_ROWS]))
    scale = alt.Scale(domain=[lowest, 1.45], range=[_LEFT, _WIDTH], nice=False)
    axis = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f", title="confidence")
    x = alt.X("confidence:Q", scale=scale, axis=axis)
    color = alt.Color("color:N", scale=None)
    shape = alt.Shape("regime:N", scale=alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values())), legend=None)
    return alt.layer(
        base.mark_bar(opacity=0.3, height=13).encode(x=x, color=color),
        base.mark_bar(height=13).encode(x=alt.X("from:Q", scale=scale), x2="confidence:Q", color=color),
        base.transform_filter("datum.regime != 'plain'")
        .mark_point(size=55, xOffset=12, opacity=1)
        .encode(x=x, shape=shape, color=color),
        base.mark_text(align="right", limit=_LEFT - 10, color=INK).encode(x=alt.value(_LEFT - 8), text="row:N"),
        base.mark_text(align="left", dx=20, color=INK).encode(x=x, text="intent:N"),
    )


def _pools(analysis: Analysis) -> Any:
    import altair as alt

    best = [
        {"pool": pool, "cosine": round(top, 4), "color": POOL_COLORS[pool]}
        for pool, top in analysis.pools.tops().items()
    ]
    near = [
        {"pool": n.entry.pool, "cosine": round(n.score, 4), "rank": n.rank, "pattern": n.entry.primary_pattern}
        | {"text": shorten(n.entry.text, 120)}
        for n in analysis.neighbours
    ]
    subtitle = f"bar: best cosine · ticks: the {len(near)} nearest · dashed: near, {NEAR}"
    scale = alt.Scale(domain=[0, 1], range=[_NAMES, _HALF])
    x = alt.X("cosine:Q", scale=scale, axis=alt.Axis(title="cosine", tickCount=5))
    y = alt.Y("pool:N", sort=list(POOLS), axis=None)
    color = alt.Color("color:N", scale=None)
    bars = _of(best).encode(x=x, y=y)
    ticks = _of(near).mark_tick(color=INK, thickness=2, height=17)
    return alt.layer(
        bars.mark_bar(height=13, opacity=0.75).encode(color=color, tooltip=["pool:N", "cosine:Q"]),
        _of([{"cosine": NEAR}]).mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x="cosine:Q"),
        bars.mark_text(align="right", color=INK).encode(x=alt.value(_NAMES - 8), text="pool:N"),
        ticks.encode(x=x, y=y, tooltip=["rank:O", "pool:N", "cosine:Q", "pattern:N", "text:N"]),
    ).properties(width=_HALF, height=alt.Step(24), title=alt.Title("Pools", subtitle=subtitle))


def _pole(analysis: Analysis) -> Any:
    import altair as alt

    pole = analysis.pole
    span = 1.35 * max(abs(value) for value in (pole.raw, pole.low, pole.high, 0.01) if math.isfinite(value))
    ranges = [
        {"from": -span, "to": pole.low, "color": POLE_COLORS["doubt"], "zone": "performed doubt"},
        {"from": pole.low, "to": pole.high, "color": GRID, "zone": "neither"},
        {"from": pole.high, "to": span, "color": POLE_COLORS["certainty"], "zone": "performed certainty"},
    ]
    zones = _of(ranges).mark_bar(height=13, opacity=0.75)
    color = alt.Color("color:N", scale=None)
    raw, low, high = (number(value, 3, sign=True) for value in (pole.raw, pole.low, pole.high))
    subtitle = f"green: doubt, below {low} · violet: certainty, above {high}"
    scale = alt.Scale(domain=[-span, span], nice=False)
    x = alt.X("score:Q", scale=scale, axis=alt.Axis(title="cosine to certainty − cosine to doubt", tickCount=7))
    point = _of([{"score": round(pole.raw, 4), "text": raw, "label": pole.words}])
    point = point.encode(x=x, tooltip=["label:N", "score:Q"])
    return alt.layer(
        zones.encode(x=alt.X("from:Q", scale=scale), x2="to:Q", color=color, tooltip=["zone:N", "from:Q", "to:Q"]),
        point.mark_tick(color=INK, thickness=4, height=26),
        point.mark_text(dy=-22, fontWeight="bold").encode(text="text:N"),
    ).properties(width=_HALF, height=72, title=alt.Title(f"Pole: {pole.words}", subtitle=subtitle))
