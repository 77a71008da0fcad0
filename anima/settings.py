"""Where things live and how the library behaves unless told otherwise.

Values come from the environment once per call, never at import, so that a notebook can change them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from anima.errors import DataError, SettingsError

ENV_PREFIX: Final = "ANIMA_"


def data_path(name: str = "") -> Path:
    """Return the path of a data file written for this project.

    Parameters
    ----------
    name
        Path relative to the ``corpora`` folder, e.g. ``"markers.toml"``.

    Raises
    ------
    DataError
        If the file is absent, as in a damaged installation.
    """
    package = Path(__file__).resolve().parent
    # Inside a wheel the folder travels with the package; in a checkout it is edited at the top of the tree.
    for root in (package / "_corpora", package.parent / "corpora"):
        if (root / name).exists():
            return root / name
    raise DataError(f"{name or 'corpora'}: data file of the package not found beside {package}; reinstall anima")


def user_cache_dir() -> Path:
    """Return the folder for caches and fetched corpora: ``ANIMA_CACHE`` or the platform's cache folder."""
    if custom := os.environ.get(ENV_PREFIX + "CACHE"):
        return Path(custom).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("anima", appauthor=False))


def corpora_dir() -> Path:
    """Return the folder of the external corpora: ``ANIMA_CORPORA`` or a folder of the user's cache."""
    if custom := os.environ.get(ENV_PREFIX + "CORPORA"):
        return Path(custom).expanduser()
    return user_cache_dir() / "corpora"


def results_dir() -> Path | None:
    """Return the folder of the published results: the checkout's ``book/results``, or the copy inside a wheel."""
    package = Path(__file__).resolve().parent
    for folder in (package / "_results", package.parent / "book" / "results"):
        if folder.is_dir():
            return folder
    return None


def env(name: str, default: str) -> str:
    """Return the environment's ``ANIMA_<name>``; unset or blank means ``default``."""
    return os.environ.get(ENV_PREFIX + name, "").strip() or default


def env_int(name: str, default: int, *, low: int = 0) -> int:
    """Return the environment's ``ANIMA_<name>`` as an integer of at least ``low``."""
    raw = env(name, str(default))
    try:
        value = int(raw)
    except ValueError:
        raise SettingsError(f"{ENV_PREFIX}{name} must be an integer, got {raw!r}") from None
    if value < low:
        raise SettingsError(f"{ENV_PREFIX}{name} must be at least {low}, got {value}")
    return value
