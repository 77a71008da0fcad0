"""Colours, the altair theme, and charts that need no network.

Charts lie on a sheet of white paper, so that one picture is readable on light pages, on dark ones and in print. Every colour of the
palette has a contrast of at least 3 against white and against the near-black of dark notebooks. Control is warm (red to ochre), genuine is
cool (blue to indigo), and no colour of one is near one of the other for colour-blind readers (``tests/plots/test_theme.py`` simulates the
three kinds). Within a regime hues alone cannot tell fifteen intents apart: charts always write the name too.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

PAPER: Final = "#ffffff"
INK: Final = "#1f2430"
MUTED: Final = "#5b6472"
GRID: Final = "#e3e6eb"
#: Arial's metrics: chart text takes the same room with the fonts of any machine, because the converter to SVG brings this one along.
FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"

REGIME_COLORS: Final = {"control": "#c83f03", "genuine": "#0780c9", "plain": "#73787f"}
#: Shapes that say the regime where colours cannot be seen.
REGIME_MARKS: Final = {"control": "◆", "genuine": "●", "plain": "○"}

INTENT_COLORS: Final = {
    # Control: the reader's image in reds, endings in vermilions, evasions in oranges, padding in ochres.
    "VALIDATE": "#f05560",
    "MIRROR": "#de4451",
    "FRAME_CAPTURE": "#cc3143",
    "ALIGN": "#bc2038",
    "CLOSE": "#ee5d2b",
    "ANCHOR": "#dc4c15",
    "PATTERN_LOCK": "#c83f03",
    "CONTROL_SELF_EXPOSURE": "#b03602",
    "EVADE": "#d47a05",
    "SOFT_DEFLECT": "#bd6c01",
    "REDIRECT_SEMANTIC": "#a65f05",
    "REDIRECT_EMOTIONAL": "#905203",
    "EXPAND": "#ae9203",
    "REGISTER_MATCH": "#907904",
    "FABRICATE": "#746005",
    # Genuine.
    "EXPLORE": "#05a0cf",
    "HOLD_OPEN": "#0780c9",
    "PROBE": "#006f97",
    "CALIBRATE": "#5377f3",
    "REPAIR": "#4c52d0",
    "UNCLASSIFIED": "#73787f",
}

POLE_COLORS: Final = {"certainty": "#8e44ad", "doubt": "#0f8a5f", "edge": "#73787f"}
POOL_COLORS: Final = {
    "core": REGIME_COLORS["genuine"],
    "shadow": REGIME_COLORS["control"],
    "edge": REGIME_COLORS["plain"],
}

_CATEGORY: Final = ("#0780c9", "#dc4c15", "#8e44ad", "#0f8a5f", "#907904", "#73787f")
_COUNTED_ID = re.compile(r'(?<=\bid=")(?:clip|gradient_)\d+(?=")|(?<=url\(#)(?:clip|gradient_)\d+(?=\))')


def intent_color(intent: str, regime: str = "control") -> str:
    """Return the colour of an intent as ``#rrggbb``; one outside the catalogue gets the colour of its regime."""
    return INTENT_COLORS.get(intent) or REGIME_COLORS.get(regime, MUTED)


def text_on(color: str) -> str:
    """Return white or black, whichever has more contrast on ``color`` (``#rrggbb``): at least 4.5 for any colour."""
    # WCAG 2.2, relative luminance: white and black contrast equally where (1.05 / (Y + .05)) == (Y + .05) / .05.
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    luminance = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"


def theme_config() -> dict[str, Any]:
    """Return the vega-lite ``config`` of the theme."""
    label = {
        "labelColor": INK,
        "labelFontSize": 11,
        "titleColor": MUTED,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    }
    return {
        "background": PAPER,
        "padding": 12,
        "font": FONT,
        "view": {"stroke": None, "continuousWidth": 420, "continuousHeight": 260},
        "axis": label
        | {
            "gridColor": GRID,
            "domainColor": MUTED,
            "tickColor": MUTED,
            "titlePadding": 8,
            "labelPadding": 4,
            "labelLimit": 320,
        },
        "axisBand": {"ticks": False, "domain": False, "grid": False},
        "legend": label | {"symbolSize": 90, "orient": "top", "labelLimit": 320},
        "header": {"labelColor": INK, "labelFontSize": 12, "titleColor": MUTED},
        "title": {
            "anchor": "start",
            "color": INK,
            "fontSize": 14,
            "fontWeight": "bold",
            "offset": 10,
            "subtitleColor": MUTED,
            "subtitleFontSize": 11,
            "subtitlePadding": 4,
        },
        "bar": {"color": _CATEGORY[0]},
        "line": {"color": _CATEGORY[0], "strokeWidth": 2},
        "point": {"color": _CATEGORY[0], "filled": True, "size": 60},
        "rule": {"color": MUTED},
        "text": {"color": INK, "fontSize": 11},
        "range": {
            "category": list(_CATEGORY),
            "diverging": ["#0f8a5f", "#f4f5f7", "#8e44ad"],
            "heatmap": ["#f4f5f7", "#0780c9", "#08304f"],
        },
    }


def enable_offline() -> None:
    """Make altair draw in the theme and without any network, for the rest of the session.

    A chart then carries its vega-lite JSON (live in JupyterLab) and an SVG (static pages, nbval). Altair's own default loads its library
    from a content network and stays blank without one.
    """
    import altair as alt

    alt.theme.register("anima", enable=True)(_theme)
    alt.renderers.register("anima", _bundle)
    alt.renderers.enable("anima")


def _theme() -> Any:
    return {"config": theme_config()}


def _bundle(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Return the representations of one chart for Jupyter."""
    major = spec["$schema"].rsplit("/v", 1)[1].split(".")[0]
    words = spec.get("description") or "chart"
    return {
        f"application/vnd.vegalite.v{major}+json": spec,
        "image/svg+xml": chart_svg(spec),
        "text/plain": f"<{words}>",
    }


def chart_svg(spec: dict[str, Any]) -> str:
    """Return a vega-lite specification as SVG: equal specifications give equal bytes, and nothing is fetched.

    The converter numbers its clip paths through the whole process; here they are numbered by the picture, with a prefix of its own so that
    two pictures on one page do not share them.
    """
    import vl_convert

    major, minor = spec["$schema"].rsplit("/v", 1)[1].split(".")[:2]
    # No base URL is allowed, so that a chart whose data sit on a server fails here and not on the reader's page.
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=f"{major}.{minor}", allowed_base_urls=[])
    prefix = "a" + hashlib.sha256(_COUNTED_ID.sub("", svg).encode()).hexdigest()[:8]
    numbers: dict[str, int] = {}
    return _COUNTED_ID.sub(lambda match: f"{prefix}-{numbers.setdefault(match[0], len(numbers))}", svg)
