"""Writing files that are read by others while they are being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> Path:
    """Write a text in UTF-8 whole or not at all, its folder made if absent, and return ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    return part.replace(path)
