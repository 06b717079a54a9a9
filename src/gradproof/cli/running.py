"""Cases one after the other in this process, or side by side in watched ones: a sweep's pool runs those."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from gradproof.attempt import attempt, ended
from gradproof.cases import Case
from gradproof.cli.quick import Look
from gradproof.cli.request import Job, Request, Source
from gradproof.render.digest import digested
from gradproof.result import Finding, Place, Report, Result, Verdict
from gradproof.sweep.child import SLACK, Limits, Lost
from gradproof.sweep.local import how
from gradproof.sweep.pool import Pool
from gradproof.sweep.row import Ending
from gradproof.sweep.worker import Done, Started

WORK = "gradproof.cli.running:work"
# A case of the user's own may take as long and as much as it likes, unless they say otherwise.
UNLIMITED = Limits(seconds=float("inf"), memory=0)
# As a hint names them: budget=, tolerance=1e-3, randomness='reseed'.
_OPTION = re.compile(r"\b(order|effort|modes|tolerance|budget|randomness)=('?)([\w+-]*)\2")


@dataclass(frozen=True, slots=True)
class Task:
    """One case for another process, with all that is asked of it."""

    request: Request
    job: Job


def run(
    request: Request, jobs: Sequence[Job], workers: int = 1, limits: Limits = UNLIMITED
) -> Generator[Result, None, None]:
    """Results as they come, in whatever order. Leaving early ends the processes. Several processes, and one that has a
    limit, are watched: what ends one of them is its case's result."""
    if limits == UNLIMITED and workers == 1:
        found = {source: _listed(source) for source in dict.fromkeys(job.source for job in jobs)}
        for job in jobs:
            yield _result(request, job, found[job.source][job.name])
        return
    with Pool(WORK, workers, limits) as pool:
        for job in jobs:
            pool.put(Task(request, job))
        for task, message in pool.run():
            if isinstance(message, Result):
                yield message
            elif isinstance(message, Lost):
                yield _lost(task, _how(message, limits), message.seconds)
            elif isinstance(message, Done) and message.trouble:
                yield _lost(task, message.trouble.strip().rpartition("\n")[2], 0.0)


def work(task: Task) -> Iterator[Started | Result]:
    """What a watched process does with a task."""
    case = _cases(task.job.source)[task.job.name]
    yield Started(task.job.name)
    yield _result(task.request, task.job, case)


@functools.cache
def _cases(source: Source) -> dict[str, Case]:
    """Once for all tasks of a watched process, which outlives no change of the file."""
    return _listed(source)


def _listed(source: Source) -> dict[str, Case]:
    return {case.name: case for case in source.cases()}


def _result(request: Request, job: Job, case: Case) -> Result:
    """Without the program that it came from, and with pictures for tables: small enough to keep and to send."""
    result = digested(Report((attempt(case, request.seed, request.options),))).results[0]
    findings = tuple(_advised(finding, request, job) for finding in result.findings)
    return replace(result, findings=findings, source=request.command(job))


def _advised(finding: Finding, request: Request, job: Job) -> Finding:
    """The next step in the words of the command line, where that is what has to be changed."""
    quick = isinstance(job.source, Look)

    def option(found: re.Match[str]) -> str:
        return f"--{found[1]} {found[3]}".rstrip() if quick or found[1] in request.options else found[0]

    cause = finding.diagnosis
    hint = _OPTION.sub(option, finding.hint)
    if isinstance(job.source, Look) and finding.verdict is Verdict.ERROR:
        hint = f"{hint} {job.source.hint}".lstrip()
    return replace(finding, hint=hint, diagnosis=cause and replace(cause, hint=_OPTION.sub(option, cause.hint)))


def _how(lost: Lost, limits: Limits) -> str:
    if lost.ending is Ending.TOO_LONG and lost.label is not None:
        clock = SLACK * limits.seconds
        over = f"over the limit of --seconds {limits.seconds:g} (processor) or {clock:g} s (clock)"
        return f"stopped after {lost.seconds:.0f} s: {over}"
    return how(lost)


def _lost(task: Task, sentence: str, seconds: float) -> Result:
    request, job = task.request, task.job
    # Watched again, or it would end whoever replays it.
    command = replace(request, words=(*request.words, "--jobs", "2")).command(job)
    alone = shlex.join(["gradproof", "check", *job.source.words(job.name), "--seconds", "60"])
    finding = Finding("error", Verdict.ERROR, Place(), sentence, f"Run it alone: {alone}")
    return replace(ended(job.name, finding, request.seed, request.options, seconds), source=command)
