"""A sweep carried out: rows from this machine's processes or from an executor, into a store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from gradproof.result import Report, Verdict
from gradproof.sweep import executor as executors
from gradproof.sweep import local
from gradproof.sweep.child import Limits
from gradproof.sweep.home import Home
from gradproof.sweep.local import Found
from gradproof.sweep.plan import Plan
from gradproof.sweep.progress import Progress
from gradproof.sweep.row import Row
from gradproof.sweep.store import Store
from gradproof.sweep.summary import Summary, summary_of


@dataclass(frozen=True)
class Sweep:
    """What a sweep left behind: its store, open for reading, and its progress. The store may hold more than what this
    sweep was asked for, which is what everything here is about."""

    store: Store
    progress: Progress

    def rows(self) -> Iterator[Row]:
        return (row for row in self.store.rows() if row.item.key in self.progress.chosen)

    def summary(self) -> Summary:
        return summary_of(self.rows())

    @property
    def verdict(self) -> Verdict:
        return self.summary().verdict

    def report(self, *verdicts: Verdict) -> Report:
        """The results with these verdicts, or all of them, for the renderers."""
        return self.store.report(self.progress.chosen, *verdicts)


@dataclass(frozen=True, slots=True)
class Means:
    """Where and within which limits a sweep runs: processes here, or an executor, or a Dask scheduler's."""

    limits: Limits
    jobs: int | None = None
    executor: Executor | None = None
    scheduler: str | None = None


def swept(
    plan: Plan, store: Path | None, means: Means, progress: Progress, show: Callable[[Progress], None] | None
) -> Sweep:
    """Carry out what the store does not have yet."""
    executor = means.executor
    with contextlib.ExitStack() as stack:
        if means.scheduler is not None:
            from gradproof.sweep import dask

            executor = stack.enter_context(dask.executor(means.scheduler))
        opened = Store(store)
        stack.push(lambda failed, *_: opened.close() if failed else opened.release())
        home = Home.of(plan)
        opened.begin(plan, home)
        finished = opened.finished(plan.retry)
        if executor is not None:
            source = executors.rows(plan, finished, executor, means.limits, home)
        else:
            source = local.rows(plan, finished, means.jobs or cores(), means.limits)
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
