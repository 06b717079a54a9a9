"""A sweep in a process of its own, to be killed: `python sweeping.py STORE JOBS CATALOGUE [ORDER]`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "core")]

from gradproof.sweep import sweep  # noqa: E402 - the path comes first

if __name__ == "__main__":
    store, jobs, catalogue, *order = sys.argv[1:]
    sweep(catalogue, store=store, jobs=int(jobs), order=order[0] if order else None)
