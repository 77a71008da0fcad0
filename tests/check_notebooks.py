"""Run the committed notebooks again and compare every output with the committed one.

Strict where the material is the one of the committed run. A finding whose corpora are not on this machine runs on written
samples, whose numbers differ: there only errors count.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

from anima.corpora import load_corpus
from anima.errors import AnimaError, DataWarning
from anima.findings import published

ROOT = Path(__file__).resolve().parents[1]
NBVAL = [
    *("-p", "no:randomly", "--nbval-sanitize-with", "tests/nbval.cfg", "--nbval-cell-timeout", "600"),
    *("-o", "addopts=", "-o", "timeout=1200"),
]


def same_material(path: Path) -> bool:
    """Say whether every corpus of the published run is here with the same files."""
    finding = published(path.stem.split("_", 1)[-1])
    if finding is None:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return all(load_corpus(item.name).hash == item.hash for item in finding.materials)
        except AnimaError as error:
            print(f"{path.name}: {error}")
            return False


def main() -> int:
    """Run both groups and return the worse exit code."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    strict = {path: same_material(path) for path in paths}
    codes = []
    for option, chosen in (
        ("--nbval", [path for path in paths if strict[path]]),
        ("--nbval-lax", [path for path in paths if not strict[path]]),
    ):
        if chosen:
            print(f"{option}: {', '.join(path.name for path in chosen)}", flush=True)
            command = [sys.executable, "-m", "pytest", option, *NBVAL, *map(str, chosen)]
            codes.append(subprocess.run(command, cwd=ROOT, check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
