"""A sweep on any `concurrent.futures.Executor`: threads, a process pool, Dask's, mpi4py's.

Wherever a chunk of checks lands, it is handed on to a watched process there, so that the time and memory limits hold
and a crash ends that process only.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait

from gradproof.result import Verdict
from gradproof.sweep.child import Limits
from gradproof.sweep.judge import lost_row
from gradproof.sweep.local import Found, brought, heard
from gradproof.sweep.plan import Plan
from gradproof.sweep.pool import Pool
from gradproof.sweep.row import Ending, Key, Row
from gradproof.sweep.work import WORK, Chunk, Listing

# Chunks that are on their way at a time: enough to keep a cluster busy, few enough not to flood its scheduler.
WINDOW = 256


def rows(
    plan: Plan, finished: Mapping[Key, Verdict], executor: Executor, limits: Limits
) -> Generator[Row | Found, None, None]:
    """What comes, as it comes, of all checks that are not finished. The catalogues are listed here."""
    waiting: deque[Chunk] = deque()
    running: dict[Future[list[Row]], Chunk] = {}
    with Pool(WORK, 1, limits) as pool:
        for catalogue in plan.catalogues:
            pool.put_aside(Listing(catalogue, plan.filter))
        for task, message in pool.run():
            yield from heard(task, message, plan.terms, finished, waiting.append)
            yield from _exchanged(executor, limits, waiting, running, 0.0)
    yield Found(complete=True)
    while waiting or running:
        yield from _exchanged(executor, limits, waiting, running, None)


def _exchanged(
    executor: Executor,
    limits: Limits,
    waiting: deque[Chunk],
    running: dict[Future[list[Row]], Chunk],
    timeout: float | None,
) -> Iterator[Row]:
    """Send off what the window allows, and pass on what has come back."""
    while waiting and len(running) < WINDOW:
        chunk = waiting.popleft()
        running[executor.submit(run_chunk, chunk, limits)] = chunk
    for future in wait(running, timeout=timeout, return_when=FIRST_COMPLETED).done:
        chunk = running.pop(future)
        yield from _rows_of(future, chunk)


def _rows_of(future: Future[list[Row]], chunk: Chunk) -> list[Row]:
    """A broken executor ends the sweep, to be resumed; anything else that goes wrong with a chunk is its rows."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as raised:  # noqa: BLE001 - the executor's own kinds of loss
        sentence = f"the executor lost it: {type(raised).__name__}: {str(raised)[:300]}"
        return [lost_row(item, chunk.terms, Ending.CRASHED, "lost", sentence, 0.0) for item in chunk.items]


_local = threading.local()


def run_chunk(chunk: Chunk, limits: Limits) -> list[Row]:
    """Runs where the executor runs it. The watched process belongs to this thread and serves its next chunks too."""
    pool: Pool | None = getattr(_local, "pool", None)
    if pool is None or pool.limits != limits:
        if pool is not None:
            pool.close()
        pool = _local.pool = Pool(WORK, 1, limits)
    found: dict[Key, Row] = {}
    pool.put(chunk)
    for task, message in pool.run():
        if (row := brought(task, message, found, pool.put_first)) is not None:
            found[row.item.key] = row
    return list(found.values())
