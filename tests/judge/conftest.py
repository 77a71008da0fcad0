"""Makes ``fake_server`` importable: tests of the judge, its streams and its panels share it."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
