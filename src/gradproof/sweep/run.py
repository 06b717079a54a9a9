"""`gradproof.sweep`: check a whole catalogue, on this machine or on any executor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from gradproof.result import Report, Verdict
from gradproof.selection import Selection
from gradproof.settings import Effort
from gradproof.sweep import executor as executors
from gradproof.sweep import filters, local
from gradproof.sweep.child import GIB, Limits
from gradproof.sweep.filters import Filter, Shard
from gradproof.sweep.local import Found
from gradproof.sweep.plan import Plan, Terms
from gradproof.sweep.progress import Progress
from gradproof.sweep.row import Row
from gradproof.sweep.store import Store
from gradproof.sweep.summary import Summary, summary_of
from gradproof.sweep.versions import installed


@dataclass(frozen=True)
class Sweep:
    """What a sweep left behind: its store, open for reading, and its progress."""

    store: Store
    progress: Progress

    def rows(self) -> Iterator[Row]:
        return self.store.rows()

    def summary(self) -> Summary:
        return summary_of(self.store.rows())

    @property
    def verdict(self) -> Verdict:
        return self.summary().verdict

    def report(self, *verdicts: Verdict) -> Report:
        """The results with these verdicts, or all of them, for the renderers."""
        return self.store.report(*verdicts)


def sweep(
    catalogue: str | Iterable[str],
    *,
    ops: str | Iterable[str] | None = None,
    dtype: str | Iterable[str] | None = None,
    device: str | Iterable[str] | None = None,
    order: int | str | Iterable[int] | None = None,
    modes: str | Iterable[str] | None = None,
    limit: int | None = None,
    shard: str | Shard | None = None,
    effort: Effort | None = None,
    tolerance: float | None = None,
    contracts: str | Iterable[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    store: str | Path | None = None,
    seconds: float = 120.0,
    memory: float = 4.0,
    progress: Progress | None = None,
    show: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Check all cases of a catalogue. Never raises for a wrong gradient, nor for a case that crashes.

    catalogue: `"torch"`, `"torch.modules"`, `"torch.functions"`, `"path/to/cases.py"`, ..., or several of them.
    ops, dtype, device: globs and names, several with commas between them.
    order: `1`, `"1,2"`: a row for each. Default: as the cases say.
    modes, effort, tolerance, contracts, seed: as for `check`. Default: as the cases say.
    shard: `"3/8"`, the third of eight parts; limit: at most so many cases.
    jobs: processes on this machine (default: one for each core).
    executor: any `concurrent.futures.Executor` instead; scheduler: the address of a Dask scheduler.
    store: a file to write to, and to go on with if it has rows already. Default: memory.
    seconds, memory: what one case may take, of the processor (and five times that by the clock) and in GiB (0: no
        limit).
    progress, show: where to count, and a function that is called with it after every row.
    """
    terms = Terms(filters.words(modes) or None, effort, tolerance, filters.words(contracts) or None, seed)
    selection = Selection(filters.words(ops), filters.words(dtype), filters.words(device))
    plan = Plan(filters.words(catalogue), Filter(selection, filters.orders(order), filters.shard(shard), limit), terms)
    limits = Limits(seconds, int(memory * GIB))
    with contextlib.ExitStack() as stack:
        if scheduler is not None:
            from gradproof.sweep import dask

            executor = stack.enter_context(dask.executor(scheduler))
        opened = Store(Path(store) if store is not None else None)
        opened.begin(plan, installed())
        finished = opened.finished()
        if executor is not None:
            source = executors.rows(plan, finished, executor, limits)
        else:
            source = local.rows(plan, finished, jobs or cores(), limits)
        progress = progress or Progress()
        stack.callback(opened.release)
        stack.enter_context(contextlib.closing(source))  # an interrupt ends the workers at once
        _carried_out(source, opened, progress, show)
    return Sweep(opened, progress)


def _carried_out(
    source: Iterator[Row | Found], store: Store, progress: Progress, show: Callable[[Progress], None] | None
) -> None:
    for news in source:
        if isinstance(news, Row):
            store.add(news)
        progress.add(news)
        if show is not None:
            show(progress)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
