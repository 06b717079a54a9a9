"""Times of several candidates, taken in turns so that a busy moment hits all of them alike.

A turn lasts some milliseconds: a quick candidate runs several times in it, as with `timeit`. A single run would tell
how long it takes to bring its code back into the cache after the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

# Seconds that a turn should last at least, and runs that it has at most.
TURN, RUNS = 0.02, 20


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    *,
    least: int = 3,
    most: int = 15,
    seconds: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of a run of each candidate, over as many rounds as fit in `seconds` (but at least `least`)."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()
    runs = {name: max(1, min(RUNS, int(TURN / _once(run)))) for name, run in candidates.items()}
    started = time.perf_counter()
    for count in range(1, most + 1):
        for name, run in candidates.items():
            before = clock()
            for _ in range(runs[name]):
                run()
            times[name].append((clock() - before) / runs[name])
        if count >= least and time.perf_counter() - started > seconds:
            break
    return {name: median(taken) for name, taken in times.items()}


def _once(run: Callable[[], object]) -> float:
    before = time.perf_counter()
    run()
    return time.perf_counter() - before
