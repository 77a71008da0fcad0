"""One module per finding: it computes, its notebook narrates."""

from anima.findings.compare import Comparison, compare_findings
from anima.findings.receipt import Receipt, sources_hash
from anima.findings.record import (
    Claim,
    Finding,
    Material,
    Measurement,
    published,
    published_findings,
    read_finding,
)

__all__ = [
    "Claim",
    "Comparison",
    "Finding",
    "Material",
    "Measurement",
    "Receipt",
    "compare_findings",
    "published",
    "published_findings",
    "read_finding",
    "sources_hash",
]
