"""Negation cues and their scopes, English and Spanish."""

from anima.negation.cues import LANGUAGES, Lang
from anima.negation.find import guess_language
from anima.negation.scope import VIEWS, Scope, View, scopes, to_frame

__all__ = ["LANGUAGES", "VIEWS", "Lang", "Scope", "View", "guess_language", "scopes", "to_frame"]
