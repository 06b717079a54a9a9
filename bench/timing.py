"""Times of several candidates, taken in turns so that a busy moment hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    *,
    least: int = 3,
    most: int = 15,
    seconds: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each candidate, over as many rounds as fit in `seconds` (but at least `least`)."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for run in candidates.values():
        run()
    started = time.perf_counter()
    for count in range(1, most + 1):
        for name, run in candidates.items():
            before = clock()
            run()
            times[name].append(clock() - before)
        if count >= least and time.perf_counter() - started > seconds:
            break
    return {name: median(taken) for name, taken in times.items()}
