"""A sweep on any `concurrent.futures.Executor`: threads, a process pool, Dask's, mpi4py's.

Wherever a chunk of checks lands, it is handed on to a watched process there, so that the time and memory limits hold
and a crash ends that process only.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field

from gradproof.errors import UsageError
from gradproof.result import Verdict
from gradproof.sweep.child import Limits
from gradproof.sweep.home import Home
from gradproof.sweep.judge import lost_row
from gradproof.sweep.local import Found, brought, heard
from gradproof.sweep.plan import Plan
from gradproof.sweep.pool import Pool
from gradproof.sweep.row import Ending, Key, Row
from gradproof.sweep.work import WORK, Chunk, Listing

# Chunks that are on their way at a time: enough to keep a cluster busy, few enough not to flood its scheduler.
WINDOW = 256


def rows(
    plan: Plan, finished: Mapping[Key, Verdict], executor: Executor, limits: Limits, home: Home
) -> Generator[Row | Found, None, None]:
    """What comes, as it comes, of all checks that are not finished. The catalogues are listed here."""
    away = _Away(executor, limits, home)
    try:
        with Pool(WORK, 1, limits) as pool:
            for catalogue in plan.catalogues:
                pool.put_aside(Listing(catalogue, plan.filter))
            for task, message in pool.run():
                yield from heard(task, message, plan.terms, finished, away.waiting.append)
                yield from away.exchanged(0.0)
        yield Found(complete=True)
        while away.waiting or away.running:
            yield from away.exchanged(None)
    finally:
        for future in away.running:
            future.cancel()


@dataclass
class _Away:
    """What an executor has, and what it is still to get."""

    executor: Executor
    limits: Limits
    home: Home
    waiting: deque[Chunk] = field(default_factory=deque)
    running: dict[Future[list[Row]], Chunk] = field(default_factory=dict)

    def exchanged(self, timeout: float | None) -> Iterator[Row]:
        """Send off what the window allows, and pass on what has come back."""
        while self.waiting and len(self.running) < WINDOW:
            chunk = self.waiting.popleft()
            self.running[self.executor.submit(run_chunk, chunk, self.limits, self.home)] = chunk
        for future in wait(self.running, timeout=timeout, return_when=FIRST_COMPLETED).done:
            chunk = self.running.pop(future)
            yield from _rows_of(future, chunk)


def _rows_of(future: Future[list[Row]], chunk: Chunk) -> list[Row]:
    """A broken executor ends the sweep, to be resumed, and so does a worker that would check something else; anything
    else that goes wrong with a chunk is its rows."""
    try:
        return future.result()
    except (BrokenExecutor, UsageError):
        raise
    except Exception as raised:  # noqa: BLE001 - the executor's own kinds of loss
        sentence = f"the executor lost it: {type(raised).__name__}: {str(raised)[:300]}"
        return [lost_row(item, chunk.terms, Ending.KILLED, "lost", sentence, 0.0) for item in chunk.items]


_local = threading.local()


def run_chunk(chunk: Chunk, limits: Limits, home: Home) -> list[Row]:
    """Runs where the executor runs it. The watched process belongs to this thread and serves its next chunks too, as
    long as they come from the same home: it has loaded what that one has."""
    home.expect()
    pool: Pool | None = getattr(_local, "pool", None)
    if pool is None or _local.serves != (limits, home):
        if pool is not None:
            pool.close()
        pool = _local.pool = Pool(WORK, 1, limits, home.found())
        _local.serves = (limits, home)
    found: dict[Key, Row] = {}
    pool.put(chunk)
    for task, message in pool.run():
        if (row := brought(task, message, found, pool.put_first)) is not None:
            found[row.item.key] = row
    return list(found.values())
