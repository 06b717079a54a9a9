"""Cases in other processes, each a fresh interpreter. One that dies takes only its case with it."""

from __future__ import annotations

import functools
import multiprocessing
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from gradproof.attempt import attempt, failed
from gradproof.cases import Case
from gradproof.cli.request import Job, Request, Source
from gradproof.render.digest import digested
from gradproof.result import Report, Result


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    job: Job
    since: float

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(request: Request, jobs: Sequence[Job], workers: int) -> Generator[Result, None, None]:
    """Results as they come, in whatever order. Leaving early ends the processes."""
    if workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield _result(request, job, job.case())
        return
    waiting = list(reversed(jobs))
    hired: list[_Worker] = []
    try:
        while waiting or hired:
            while waiting and len(hired) < workers:
                hired.append(_hire(request, waiting.pop()))
            ready = wait([worker.connection for worker in hired])
            for worker in [worker for worker in hired if worker.connection in ready]:
                yield _received(request, worker, hired)
                if worker in hired and not _goes_on(worker, waiting):
                    hired.remove(worker)
                    worker.stop()
    finally:
        for worker in hired:
            worker.stop()


def _result(request: Request, job: Job, case: Case) -> Result:
    """Without the program that it came from, and with pictures for tables: small enough to keep and to send."""
    result = attempt(case, request.seed, request.options)
    return replace(digested(Report((result,))).results[0], source=request.command(job))


def _hire(request: Request, job: Job) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, request), daemon=True)
    with _deaf():
        process.start()
    theirs.close()
    ours.send(job)
    return _Worker(process, ours, job, time.monotonic())


@contextmanager
def _deaf() -> Iterator[None]:
    """A process that is started meanwhile never hears of an interrupt from the keyboard; we do, afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _received(request: Request, worker: _Worker, hired: list[_Worker]) -> Result:
    try:
        result: Result = worker.connection.recv()
    except (EOFError, OSError):
        hired.remove(worker)
        worker.process.join(timeout=10)
        code = worker.process.exitcode
        worker.stop()
        died = f"by signal {-code}" if code is not None and code < 0 else f"with status {code}"
        sentence = f"the process that checked it ended {died}"
        seconds = time.monotonic() - worker.since
        lost = failed(worker.job.name, sentence, request.seed, request.options, seconds)
        return replace(lost, source=request.command(worker.job))
    return result


def _goes_on(worker: _Worker, waiting: list[Job]) -> bool:
    """Whether there is another job for this worker, which then has it."""
    if not waiting:
        return False
    worker.job, worker.since = waiting.pop(), time.monotonic()
    worker.connection.send(worker.job)
    return True


def _work(connection: Connection, request: Request) -> None:
    """What a worker does until it is stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `_deaf` could do nothing
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        connection.send(_result(request, job, _cases(job.source)[job.name]))


@functools.cache
def _cases(source: Source) -> dict[str, Case]:
    return {case.name: case for case in source.cases()}
