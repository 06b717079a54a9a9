"""Makes the helpers beside the tests importable, here and in the workers, which get this process's path."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "core")]
