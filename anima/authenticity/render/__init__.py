"""An analysis on screen: HTML for Jupyter and the book, an altair chart, and a terminal."""

from __future__ import annotations

from anima.authenticity.render.chart import analysis_chart
from anima.authenticity.render.html import analysis_html, stylesheet
from anima.authenticity.render.terminal import analysis_rich

__all__ = ["analysis_chart", "analysis_html", "analysis_rich", "stylesheet"]
