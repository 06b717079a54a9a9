"""Makes the helpers beside the tests, and the hand-written programs of tests/core, importable."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "core")]
