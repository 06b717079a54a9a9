"""Cases in other processes, each a fresh interpreter. One that dies takes only its case with it."""

from __future__ import annotations

import functools
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from gradproof.attempt import attempt, failed
from gradproof.cases import Case
from gradproof.cli.request import Job, Request, Source
from gradproof.result import Comparison, Result


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


def run(request: Request, jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """Results as they come, in whatever order. Leaving early ends the processes."""
    if workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield settled(attempt(job.case(), request.seed, request.options))
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


def settled(result: Result) -> Result:
    """The same numbers, without the program that they came from: small enough to keep and to send."""
    return replace(result, comparisons=tuple(_settled(comparison) for comparison in result.comparisons))


def _settled(comparison: Comparison) -> Comparison:
    return replace(comparison, source=comparison.source())


def _hire(request: Request, job: Job) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, request), daemon=True)
    process.start()
    theirs.close()
    ours.send(job)
    return _Worker(process, ours, job, time.monotonic())


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
        return failed(worker.job.name, sentence, request.seed, request.options, time.monotonic() - worker.since)
    return result


def _goes_on(worker: _Worker, waiting: list[Job]) -> bool:
    """Whether there is another job for this worker, which then has it."""
    if not waiting:
        return False
    worker.job, worker.since = waiting.pop(), time.monotonic()
    worker.connection.send(worker.job)
    return True


def _work(connection: Connection, request: Request) -> None:
    """What a worker does until it is stopped. An interrupt from the keyboard is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        case = _cases(job.source)[job.name]
        connection.send(settled(attempt(case, request.seed, request.options)))


@functools.cache
def _cases(source: Source) -> dict[str, Case]:
    return {case.name: case for case in source.cases()}
