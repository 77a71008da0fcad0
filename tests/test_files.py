"""Files that are written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from anima.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path


def test_a_text_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    assert write_whole(path, "señal\n") == path
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half of a pair: \ud800")
    assert path.read_text(encoding="utf-8") == "señal\n"
    write_whole(path, "next\n")
    assert [(one.name, one.read_text()) for one in path.parent.iterdir()] == [("a.json", "next\n")]
