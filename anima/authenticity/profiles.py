"""Thresholds belong to an embedder: what was calibrated for which, and how."""

from __future__ import annotations

import json
import tomllib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anima.checks import require_number
from anima.errors import CalibrationWarning, DataError, InputError
from anima.settings import data_path, user_cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Profile:
    """Calibrated thresholds of one embedder."""

    embedder: str  # its id
    intent_threshold: float  # cosine below which the centroid classifiers say UNCLASSIFIED
    pole_low: float  # cuts of the pole score
    pole_high: float
    obtained: str  # how, on which data, with which result

    def to_toml(self) -> str:
        """Return the text of a profile file."""
        # JSON's escapes are those of TOML's basic strings.
        how = "\n".join(json.dumps(line, ensure_ascii=False)[1:-1] for line in self.obtained.strip().split("\n"))
        return (
            f"embedder = {json.dumps(self.embedder, ensure_ascii=False)}\n\n"
            f"# Cosine below which the centroid classifiers say UNCLASSIFIED.\nintent_threshold = {self.intent_threshold:.4f}\n\n"
            f"# Cuts of the pole score: below pole_low doubt, above pole_high certainty.\n"
            f"pole_low = {self.pole_low:.4f}\npole_high = {self.pole_high:.4f}\n\n"
            f'obtained = """\n{how}\n"""\n'
        )


def profile_name(embedder: str) -> str:
    """Return the file name of an embedder's profile."""
    return f"{safe_name(embedder)}.toml"


def safe_name(embedder: str) -> str:
    """Return an embedder's id as a part of a file name: what a file system might not take becomes an underscore."""
    return "".join(char if char.isalnum() or char in "-._" else "_" for char in embedder)


def load_profile(embedder: str, *, fallback: Callable[[], Profile]) -> Profile:
    """Return the profile of ``embedder``: the user's own, else the shipped one, else ``fallback()`` with a warning.

    Raises
    ------
    DataError
        A profile file is damaged; the message names file and field.
    """
    own = user_cache_dir() / "profiles" / profile_name(embedder)
    try:
        path = own if own.exists() else data_path(f"profiles/{profile_name(embedder)}")
    except DataError:
        warnings.warn(
            f"no calibrated thresholds for embedder {embedder!r}: defaults computed from the reference are in use. Calibrate with "
            f"`anima calibrate --embedder …` (writes {own}) or anima.calibrate()",
            CalibrationWarning,
            stacklevel=4,
        )
        return fallback()
    try:
        row = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: not a readable profile ({error})") from error
    numbers = {}
    for name in ("intent_threshold", "pole_low", "pole_high"):
        if name not in row:
            raise DataError(f"{path}: field {name!r} is missing")
        try:
            numbers[name] = require_number(row[name], name, low=-2, high=2)
        except InputError as error:
            raise DataError(f"{path}: field {error}") from None
    if numbers["pole_low"] > numbers["pole_high"]:
        raise DataError(
            f"{path}: field 'pole_low' ({numbers['pole_low']}) must not exceed 'pole_high' ({numbers['pole_high']})"
        )
    return Profile(embedder=embedder, obtained=str(row.get("obtained", "")).strip(), **numbers)
