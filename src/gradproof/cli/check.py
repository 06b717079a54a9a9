"""`gradproof check`: find the cases, run them, show them, write them down."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from gradproof.arrays import FRAMEWORKS
from gradproof.cli import options
from gradproof.cli.display import Detail, console, shown, summary
from gradproof.cli.request import Job, Request, request_of
from gradproof.cli.running import UNLIMITED, run
from gradproof.cli.status import INTERRUPTED, status
from gradproof.render.files import Files
from gradproof.result import Report, Result, Verdict
from gradproof.sweep.child import GIB, Limits


@dataclass(frozen=True, slots=True)
class Manner:
    """How to run and show: in how many processes and within which limits, which verdicts are the last, how much is
    said."""

    workers: int
    limits: Limits
    last: tuple[Verdict, ...]
    detail: Detail
    files: Files


@click.command(short_help="Check the cases of a file or module, or one function.")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option("--arg", "-a", "args", multiple=True, metavar="VALUE", help="An argument of the function, in order.")
@click.option("--kwarg", "kwargs", multiple=True, metavar="NAME=VALUE", help="A keyword argument of the function.")
@click.option("--derivative", multiple=True, metavar="NAME=FN", help="Written by hand: jac=FN, vjp=FN, grad=FN, ...")
@click.option("--framework", type=click.Choice(FRAMEWORKS), help="Of the arrays that --arg makes.")
@click.option("--order", metavar="N", help="2 checks second derivatives as well.")
@options.EFFORT
@options.MODES
@options.TOLERANCE
@click.option("--budget", metavar="MOST", help="For each case: 200 (calls), 2.5s, or 200,2.5s.")
@click.option("--randomness", metavar="HOW", help="reseed: every call gets the same random numbers. Default: detect.")
@options.SEED
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, metavar="N", help="Processes to run cases in.")
@click.option("--seconds", type=options.SECONDS, metavar="S", help=f"{options.MOST_SECONDS} Default: no limit.")
@click.option("--memory", type=options.GIB, metavar="GIB", help="Most memory for one case, in GiB. Default: no limit.")
@click.option("--fail-fast", "-x", is_flag=True, help="Stop at the first case that is wrong.")
@click.option("--quiet", "-q", "detail", flag_value="quiet", help="Show only what is not right.")
@click.option("--verbose", "-v", "detail", flag_value="full", help="Show everything about each case.")
@options.JSON
@click.option("--html", type=options.FILE, help="Write the report as one page with plots.")
@options.JUNIT
@click.pass_context
def check(context: click.Context, /, targets: tuple[str, ...], **given: Any) -> None:
    """Run the cases found in a file or module, or take a quick look at one function.

    \b
    gradproof check cases.py                   all cases, in their order
    gradproof check cases.py::cube             one case function, all its parameters
    gradproof check "cases.py::cube[n=8]"      one case
    gradproof check mylib.cases -j 4 --html report.html

    A case is a function that is marked with @gradproof.case and returns a function and its arguments.

    \b
    gradproof check mylib.ops:gelu --arg "randn(3, 4)"
    gradproof check ops.py:Cube.apply -a "rand(4, dtype=float32)" --order 2
    gradproof check torch:softmax -a "randn(2, 3)" --kwarg dim=1
    gradproof check mylib.ops:rosen -a "randn(5)" --derivative jac=rosen_jac

    --arg takes numbers, strings, lists, tuples, dicts, and randn, rand, zeros, ones, full, arange, linspace, eye,
    randint, tensor([...]); with dtype=, scale=, low=, high=.
    """
    request = request_of(targets, given)
    manner = Manner(
        given["jobs"],
        limits_of(given["seconds"], given["memory"]),
        (Verdict.WRONG, Verdict.ERROR) if given["fail_fast"] else (),
        Detail(given["detail"] or "lines"),
        Files(given["json"], given["html"], given["junit"]),
    )
    context.exit(carried_out(request, manner))


def limits_of(seconds: float | None, memory: float | None) -> Limits:
    return replace(UNLIMITED, seconds=seconds or UNLIMITED.seconds, memory=int((memory or 0) * GIB))


def carried_out(request: Request, manner: Manner) -> int:
    """Run all cases; what was finished is shown and written, also after an interrupt. The exit status."""
    manner.files.prepare()
    started = time.perf_counter()
    finished: list[Result] = []
    screen = console(manner.files.beside)
    interrupted = False
    with manner.files.alone():
        jobs = list(request.jobs())
        running = run(request, jobs, manner.workers, manner.limits)
        try:
            for result in shown(_kept(running, finished), len(jobs), manner.detail, screen):
                if result.verdict in manner.last:
                    break
        except KeyboardInterrupt:
            interrupted = True
        finally:
            running.close()
    report = Report(_in_order(finished, jobs), source=shlex.join(["gradproof", *sys.argv[1:]]))
    left = len(jobs) - len(finished)
    said = summary(report, time.perf_counter() - started) + (f"; {left} not run" if left else "")
    if len(jobs) > 1 or interrupted:
        screen.print(f"interrupted: {said}" if interrupted else said, markup=False)
    for path in manner.files.write(report):
        screen.print(f"wrote {path}", markup=False)
    return INTERRUPTED if interrupted else status(report)


def _kept(results: Iterable[Result], finished: list[Result]) -> Iterator[Result]:
    """The same results. Each is kept before it is shown, so that an interrupt finds written what was seen."""
    for result in results:
        finished.append(result)
        yield result


def _in_order(finished: Sequence[Result], jobs: Sequence[Job]) -> tuple[Result, ...]:
    place = {job.name: k for k, job in enumerate(jobs)}
    return tuple(sorted(finished, key=lambda result: place[result.name]))
