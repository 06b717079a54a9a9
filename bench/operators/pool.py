"""Worker processes that are watched: one that dies or hangs is replaced, and what it died of is an outcome."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from bench.operators.checkers import Candidate
from bench.operators.measure import Outcome
from bench.operators.worker import Finished, Message, Started, Task, work

# A check limits its own processor time; on a busy machine or in one long call it may take this much more by the clock.
SLACK, GRACE = 4.0, 20.0
STARTUP = 60.0  # seconds in which a new process may load torch and its databases


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    task: Task
    since: float
    started: Started | None = None
    gone: bool = False
    finished: set[tuple[str, Candidate]] = field(default_factory=set)

    def overdue(self, now: float) -> bool:
        return now - self.since > SLACK * self.task.effort.limit + GRACE

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_all(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Outcome] | Finished]]:
    """Outcomes as they come, and Finished once for each task, in whatever order."""
    waiting = list(reversed(tasks))
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_hire(waiting.pop()))
            wait([each.connection for each in workers], timeout=1.0)
            for worker in workers:
                for message in _messages(worker):
                    yield worker.task, message
                    if isinstance(message, Finished):
                        _next_task(worker, workers, waiting)
                        break
                if worker in workers and (worker.gone or worker.overdue(time.monotonic())):
                    yield from _buried(worker, workers, waiting)
    finally:
        for worker in workers:
            worker.stop()


def _hire(task: Task) -> _Worker:
    # A fresh interpreter: nothing that the parent has loaded or started is shared.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    ours.send(task)
    return _Worker(process, ours, task, time.monotonic() + STARTUP)


def _next_task(worker: _Worker, workers: list[_Worker], waiting: list[Task]) -> None:
    if waiting:
        worker.task, worker.started, worker.since = waiting.pop(), None, time.monotonic()
        worker.finished.clear()
        worker.connection.send(worker.task)
    else:
        workers.remove(worker)
        worker.stop()


def _messages(worker: _Worker) -> Iterator[list[Outcome] | Finished]:
    while not worker.connection.closed and worker.connection.poll():
        try:
            message: Message = worker.connection.recv()
        except (EOFError, OSError):
            worker.gone = True
            return
        worker.since = time.monotonic()
        worker.started = message if isinstance(message, Started) else None
        if isinstance(message, list):
            worker.finished |= {(each.case, each.candidate) for each in message}
        if not isinstance(message, Started):
            yield message


def _buried(
    worker: _Worker, workers: list[_Worker], waiting: list[Task]
) -> Iterator[tuple[Task, list[Outcome] | Finished]]:
    """Replace a worker that died or hangs. Its task goes on behind the check that it was at."""
    workers.remove(worker)
    seconds = time.monotonic() - worker.since
    if worker.gone:
        worker.process.join(timeout=GRACE)
    worker.stop()
    if worker.started is None:
        yield worker.task, Finished(f"the process ended ({worker.process.exitcode}) before any check")
        return
    verdict = f"crash:{worker.process.exitcode}" if worker.gone else "timeout"
    lost = Outcome(worker.started.case, worker.started.candidate, verdict, "", seconds, 1, 0)
    yield worker.task, [lost]
    finished = worker.task.finished | worker.finished | {(lost.case, lost.candidate)}
    waiting.append(replace(worker.task, finished=finished))
