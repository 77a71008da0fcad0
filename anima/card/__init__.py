"""The capability card: what the instrument can and cannot do, generated from findings and never written by hand."""

from anima.card.build import build_card, card_problems, current_card, health_words, write_card
from anima.card.model import Card, Row, Section
from anima.card.render import card_html, card_markdown, card_page, card_rich

__all__ = [
    "Card",
    "Row",
    "Section",
    "build_card",
    "card_html",
    "card_markdown",
    "card_page",
    "card_problems",
    "card_rich",
    "current_card",
    "health_words",
    "write_card",
]
