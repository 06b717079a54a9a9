"""Cases one after the other in this process, or side by side in watched ones: a sweep's pool runs those."""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from gradproof.attempt import attempt, failed
from gradproof.cases import Case
from gradproof.cli.request import Job, Request, Source
from gradproof.render.digest import digested
from gradproof.result import Report, Result
from gradproof.sweep.child import Limits, Lost
from gradproof.sweep.local import how
from gradproof.sweep.pool import Pool
from gradproof.sweep.worker import Done, Started

WORK = "gradproof.cli.running:work"
# A case of the user's own may take as long and as much as it likes, unless they say otherwise.
UNLIMITED = Limits(seconds=float("inf"), memory=0)


@dataclass(frozen=True, slots=True)
class Task:
    """One case for another process, with all that is asked of it."""

    request: Request
    job: Job


def run(
    request: Request, jobs: Sequence[Job], workers: int = 1, limits: Limits = UNLIMITED
) -> Generator[Result, None, None]:
    """Results as they come, in whatever order. Leaving early ends the processes. A limit needs a process to end."""
    if limits == UNLIMITED and (workers == 1 or len(jobs) == 1):
        for job in jobs:
            yield _result(request, job, job.case())
        return
    with Pool(WORK, workers, limits) as pool:
        for job in jobs:
            pool.put(Task(request, job))
        for task, message in pool.run():
            if isinstance(message, Result):
                yield message
            elif isinstance(message, Lost):
                yield _lost(task, how(message), message.seconds)
            elif isinstance(message, Done) and message.trouble:
                yield _lost(task, message.trouble.strip().rpartition("\n")[2], 0.0)


def work(task: Task) -> Iterator[Started | Result]:
    """What a watched process does with a task."""
    case = _cases(task.job.source)[task.job.name]
    yield Started(task.job.name)
    yield _result(task.request, task.job, case)


@functools.cache
def _cases(source: Source) -> dict[str, Case]:
    return {case.name: case for case in source.cases()}


def _result(request: Request, job: Job, case: Case) -> Result:
    """Without the program that it came from, and with pictures for tables: small enough to keep and to send."""
    result = attempt(case, request.seed, request.options)
    return replace(digested(Report((result,))).results[0], source=request.command(job))


def _lost(task: Task, sentence: str, seconds: float) -> Result:
    lost = failed(task.job.name, sentence, task.request.seed, task.request.options, seconds)
    return replace(lost, source=task.request.command(task.job))
