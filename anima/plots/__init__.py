"""One theme for everything that is drawn; importing it loads no plotting library."""

from __future__ import annotations

from anima.plots.theme import (
    GRID,
    INK,
    INTENT_COLORS,
    MUTED,
    PAPER,
    POLE_COLORS,
    POOL_COLORS,
    REGIME_COLORS,
    REGIME_MARKS,
    enable_offline,
    intent_color,
    text_on,
    theme_config,
)

__all__ = [
    "GRID",
    "INK",
    "INTENT_COLORS",
    "MUTED",
    "PAPER",
    "POLE_COLORS",
    "POOL_COLORS",
    "REGIME_COLORS",
    "REGIME_MARKS",
    "enable_offline",
    "intent_color",
    "text_on",
    "theme_config",
]
