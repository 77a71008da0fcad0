"""Run the committed notebooks again and compare every output with the committed one.

Strict where the material is the one of the committed run. A finding whose corpora are not on this machine runs on written
samples, whose numbers differ: there only errors count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anima.corpora import load_corpus
from anima.errors import AnimaError, DataWarning
from anima.findings import published
from anima.publish import finding_name

ROOT = Path(__file__).resolve().parents[1]
NBVAL = [
    *("-p", "no:randomly", "--nbval-sanitize-with", "tests/nbval.cfg", "--nbval-cell-timeout", "600"),
    *("-o", "addopts=", "-o", "timeout=1200"),
]


def same_material(path: Path) -> bool:
    """Say whether every corpus of the published run is here with the same files."""
    finding = published(finding_name(path))
    if finding is None:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return all(load_corpus(item.name).hash == item.hash for item in finding.materials)
        except AnimaError as error:
            print(f"{path.name}: {error}")
            return False


def check(path: Path, option: str) -> int:
    """Compare one notebook, say what came of it, and return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", option, *NBVAL, str(path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    print(f"{option} {path.name}: {done.stdout.splitlines()[-1:]}", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr, flush=True)
    return done.returncode


def main() -> int:
    """Check all notebooks, as many at once as there are cores, and return the worst exit code."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    options = ["--nbval" if same_material(path) else "--nbval-lax" for path in paths]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        return max(pool.map(check, paths, options))


if __name__ == "__main__":
    raise SystemExit(main())
