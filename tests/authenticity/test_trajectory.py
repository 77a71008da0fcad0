"""The cascade row by row, each with a chain that just meets it and one that just misses it; and the pools' verdicts."""

from __future__ import annotations

import pytest

from anima.authenticity import assess
from anima.authenticity.neighbours import LEAD, NEAR, cross_pool

NAMES = {
    "V": "VALIDATE", "E": "EXPAND", "C": "CLOSE", "L": "PATTERN_LOCK", "S": "CONTROL_SELF_EXPOSURE", "A": "ALIGN", "F": "FRAME_CAPTURE",
    "M": "MIRROR", "B": "FABRICATE", "G": "REGISTER_MATCH", "X": "EVADE", "D": "SOFT_DEFLECT", "R": "REDIRECT_EMOTIONAL",
    "Q": "REDIRECT_SEMANTIC", "H": "HOLD_OPEN", "P": "PROBE", "K": "CALIBRATE", "Y": "REPAIR", "O": "EXPLORE", "N": "ANCHOR",
    "-": "UNCLASSIFIED",
}  # fmt: skip


@pytest.mark.parametrize(
    ("chain", "rule", "predictability", "formulaic"),
    [
        ("LL", "T01", "high", True), ("LE", "T13", "moderate", False),
        ("SA", "T02", "high", True), ("SE", "T13", "moderate", False),
        ("VEC", "T03", "high", True), ("V-EE-C", "T03", "high", True), ("EVC", "T15", "moderate", False), ("VECN", "T13", "moderate", False),
        ("VECX", "T03", "high", True), ("VEC-P", "T04", "moderate", True), ("VECPN", "T04", "moderate", True),
        ("FM", "T05", "high", True), ("FE", "T13", "moderate", False),
        ("BG", "T06", "high", True), ("BE", "T13", "moderate", False),
        ("AX", "T07", "moderate", True), ("AE", "T13", "moderate", False),
        ("DX", "T08", "moderate", True), ("DE", "T13", "moderate", False),
        ("RXG", "T09", "moderate", True), ("QXG", "T09", "moderate", True), ("RX", "T13", "moderate", False), ("XG", "T13", "moderate", False),
        ("HP", "T10", "low", False), ("OY", "T10", "low", False), ("PN", "T13", "moderate", False),
        ("YKN", "T11", "low", False), ("YKR", "T11", "low", False), ("YHN", "T13", "moderate", False),
        ("HHX", "T12", "low", False), ("HHR", "T12", "low", False), ("HHN", "T13", "moderate", False), ("HX", "T13", "moderate", False),
        ("VP", "T14", "low", False), ("VEP", "T14", "low", False), ("VEEP", "T15", "moderate", False),
        ("VE", "T15", "moderate", False), ("V-", "T00", "insufficient", False), ("-", "T00", "insufficient", False),
    ],
)  # fmt: skip
def test_the_row_that_decides(chain: str, rule: str, predictability: str, formulaic: bool) -> None:
    found = assess([NAMES[letter] for letter in chain])
    assert (found.rule, found.predictability, found.formulaic) == (rule, predictability, formulaic)


def test_the_pools_verdicts_have_edges() -> None:
    """Both verdicts need more than the bound; a closing pattern also needs a lead."""
    above, lead = NEAR + 0.01, LEAD + 0.01
    assert cross_pool({"shadow": above, "core": above - lead}).cierre_artificial
    assert not cross_pool({"shadow": above, "core": above - LEAD / 2}).cierre_artificial
    assert not cross_pool({"shadow": NEAR, "core": NEAR - lead}).cierre_artificial
    assert not cross_pool({"edge": above}).cierre_artificial
    assert cross_pool({"core": above}).continuidad
    assert not cross_pool({"core": NEAR}).continuidad
    assert not cross_pool({"shadow": above}).continuidad
    assert cross_pool({"shadow": 0.3, "edge": 0.3}).dominancia == "shadow"
    assert cross_pool({"shadow": -0.3}).dominancia == "core"
