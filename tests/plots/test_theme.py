"""The palette can be told apart and read; charts need no network and come out the same every time."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product

import altair as alt
import numpy as np
import pytest
from altair.utils.schemapi import SchemaValidationError
from hypothesis import given
from hypothesis import strategies as st

from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.plots import (
    GRID,
    INK,
    INTENT_COLORS,
    MUTED,
    PAPER,
    POLE_COLORS,
    POOL_COLORS,
    REGIME_COLORS,
    enable_offline,
    intent_color,
    text_on,
    theme_config,
)
from anima.plots.theme import chart_svg

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
DARK_PAGE = "#111111"


def linear(color: str) -> np.ndarray:
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Ottosson's (2020) perceptual space."""
    lms = np.cbrt(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
        @ np.clip(rgb, 0, 1)
    )
    return (
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ lms
    )


def distance(one: str, other: str, vision: str) -> float:
    a, b = (oklab(np.array(VISION[vision]) @ linear(color)) for color in (one, other))
    return float(np.linalg.norm(a - b))


def by_regime(name: str) -> list[str]:
    return [INTENT_COLORS[intent.name] for intent in catalogue().values() if intent.regime == name]


def test_every_intent_has_a_colour_of_its_own() -> None:
    assert set(INTENT_COLORS) == {*catalogue(), UNCLASSIFIED}
    assert len(set(INTENT_COLORS.values())) == 21


def test_control_is_warm_genuine_cool_and_plain_grey() -> None:
    for red, _, blue in map(linear, by_regime("control")):
        assert red > blue
    for red, _, blue in map(linear, by_regime("genuine")):
        assert blue > red
    assert np.ptp([int(INTENT_COLORS[UNCLASSIFIED][i : i + 2], 16) for i in (1, 3, 5)]) < 16


@pytest.mark.parametrize("vision", VISION)
def test_regimes_are_apart_for_every_kind_of_colour_vision(vision: str) -> None:
    # About five times the just noticeable difference of 0.02.
    assert min(distance(a, b, vision) for a, b in product(by_regime("control"), by_regime("genuine"))) > 0.10
    assert distance(POLE_COLORS["certainty"], POLE_COLORS["doubt"], vision) > 0.15
    assert distance(POOL_COLORS["core"], POOL_COLORS["shadow"], vision) > 0.15


@pytest.mark.parametrize("color", sorted({*INTENT_COLORS.values(), *REGIME_COLORS.values(), *POLE_COLORS.values()}))
def test_marks_and_their_labels_can_be_read_on_light_and_dark(color: str) -> None:
    assert contrast(color, PAPER) >= 3
    assert contrast(color, DARK_PAGE) >= 3
    assert contrast(color, text_on(color)) >= 4.5


def test_text_of_charts_has_contrast() -> None:
    assert contrast(INK, PAPER) >= 7
    assert contrast(INK, GRID) >= 7
    assert contrast(MUTED, PAPER) >= 4.5


@given(st.integers(0, 0xFFFFFF))
def test_text_on_picks_the_better_of_black_and_white(value: int) -> None:
    color = f"#{value:06x}"
    assert contrast(color, text_on(color)) >= max(4.5, contrast(color, "#000000"), contrast(color, "#ffffff")) - 1e-9


def test_unknown_intents_take_the_colour_of_their_regime() -> None:
    assert intent_color("BRAND_NEW") == REGIME_COLORS["control"]
    assert intent_color("BRAND_NEW", "genuine") == REGIME_COLORS["genuine"]


def bars() -> alt.LayerChart:
    data = alt.InlineData(values=[{"a": "x", "b": 1}, {"a": "y", "b": 3}])
    base = alt.Chart(data, width=200).encode(x="b:Q", y="a:N")
    return alt.layer(base.mark_bar(clip=True), base.mark_point(clip=True))


def test_equal_charts_give_equal_bytes_and_different_ones_share_no_id() -> None:
    first, again, other = bars(), bars(), bars().properties(title="another")
    svg = chart_svg(first.to_dict())
    assert svg == chart_svg(again.to_dict())
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (svg, chart_svg(other.to_dict()))]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) == ids[0]


def test_svg_asks_for_nothing_outside() -> None:
    svg = chart_svg(bars().to_dict())
    assert set(re.findall(r"https?://[^\s\"<]+", svg)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    with pytest.raises(ValueError, match="not allowed"):
        chart_svg(alt.Chart("http://127.0.0.1:9/table.csv").mark_bar().encode(x="a:Q").to_dict())


@pytest.fixture
def altair_state():
    renderer, theme = alt.renderers.active, alt.theme.active
    yield
    alt.renderers.enable(renderer)
    alt.theme.enable(theme)


def test_offline_display_carries_json_and_svg_and_no_script(altair_state) -> None:
    enable_offline()
    bundle = bars().properties(description="two bars")._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.vegalite.v6+json", "image/svg+xml", "text/plain"}
    assert bundle["text/plain"] == "<two bars>"
    assert bundle["application/vnd.vegalite.v6+json"]["config"] == theme_config()
    assert "Liberation Sans" in bundle["image/svg+xml"]


def test_theme_is_valid_vega_lite() -> None:
    bars().configure(**theme_config()).to_dict(validate=True)
    with pytest.raises(SchemaValidationError):
        bars().configure(**theme_config() | {"background": 7}).to_dict(validate=True)


def test_importing_the_theme_loads_no_plotting_library() -> None:
    code = "import sys, anima.plots; sys.exit(any(name in sys.modules for name in ('altair', 'matplotlib', 'vl_convert', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
