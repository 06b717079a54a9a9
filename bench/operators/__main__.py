"""`python -m bench.operators`: gradproof's drop-in against torch's checker on what PyTorch's gradient tests cover."""

from __future__ import annotations

import os

# Before torch is loaded: one thread for both checkers.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from bench.operators.cases import KINDS
from bench.operators.checkers import MODES, NAMES
from bench.operators.databases import DTYPES
from bench.operators.differences import read
from bench.operators.measure import Effort
from bench.operators.report import Report
from bench.operators.run import ALL_DATABASES, DEFAULT_STORE, Progress, Selection, outcomes_of, run, versions
from bench.operators.store import Store
from gradproof.torch.catalogue.entries import SIZES

PLAIN_EVERY = 10.0  # seconds between two lines where there is no terminal


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    selection = Selection(
        options.ops, options.databases, options.dtype, options.kinds, options.modes, options.checkers,
        options.size, options.sample, options.cases, options.seed,
    )  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 200)
    store = Store(options.store, versions(selection.checkers))
    effort = Effort(limit=options.time_limit, repeats=options.repeat_seconds)
    with _shown(console) as show:
        progress = run(selection, store, effort=effort, jobs=options.jobs, seconds=options.limit_seconds, show=show)
    report = Report(outcomes_of(selection, store), read())
    store.close()
    for table in report.tables():
        console.print(table)
    for line in progress.troubles:
        console.print(f"not judged: {line}", highlight=False)
    console.print(f"{progress.groups_done} of {progress.groups} groups, {progress.cases_done} cases in this run")
    full = selection.is_everything and progress.complete
    if full:
        for line in report.stale:
            console.print(f"stale line in differences.toml: {line.case} {line.mode} {line.ours}/{line.torch}")
    return 1 if report.unexplained or progress.troubles or (full and report.stale) else 0


@contextlib.contextmanager
def _shown(console: Console) -> Iterator[Callable[[Progress], None]]:
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    now = TextColumn("{task.fields[cases]} cases  {task.description}")
    with Bar(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), now, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, cases=0)
        yield lambda now: bar.update(
            task, description=now.last, total=now.groups, completed=now.groups_done, cases=now.cases_done
        )


def _plain_lines(console: Console) -> Callable[[Progress], None]:
    due = 0.0

    def show(progress: Progress) -> None:
        nonlocal due
        if progress.seconds >= due:
            due = progress.seconds + PLAIN_EVERY
            done = f"{progress.groups_done}/{progress.groups} groups, {progress.cases_done} cases"
            console.print(f"{progress.seconds:6.0f} s  {done}  {progress.last}", highlight=False)

    return show


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.operators", description=__doc__)
    add = parser.add_argument
    add("--ops", default="*", metavar="GLOB", help="operators by name, such as 'linalg.*' (all)")
    add("--databases", type=_some_of(ALL_DATABASES), default=ALL_DATABASES, help=", ".join(ALL_DATABASES))
    add("--dtype", type=_some_of(tuple(DTYPES)), default=tuple(DTYPES), help=", ".join(DTYPES))
    add("--kinds", type=_some_of(KINDS), default=KINDS, help=", ".join(KINDS))
    add("--modes", type=_some_of(MODES), default=MODES, help=", ".join(MODES))
    add("--checkers", type=_some_of(NAMES), default=NAMES, help=", ".join(NAMES))
    add(
        "--size",
        choices=SIZES,
        default="small",
        help="of the samples: as in PyTorch's slow tests, or as in its fast ones",
    )
    add("--sample", type=float, default=1.0, help="this fraction of the groups (operator, dtype, kind)")
    add("--cases", type=int, default=0, help="at most this many cases of each group (0: all)")
    add("--seed", type=int, default=0, help="which ones --sample and --cases choose")
    add(
        "--limit-seconds",
        type=float,
        default=float("inf"),
        help="stop after this time; the next run goes on from there",
    )
    add("--time-limit", type=float, default=60.0, help="seconds after which one check is given up")
    add("--repeat-seconds", type=float, default=0.06, help="seconds spent on timing the quick checks of a case again")
    add("--store", type=Path, default=DEFAULT_STORE, help=f"the file of outcomes ({DEFAULT_STORE})")
    add("--jobs", type=int, default=1, help="processes; times are fair only with one for each idle core")
    return parser.parse_args(arguments)


def _some_of(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        unknown = set(chosen) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return chosen

    return parse


if __name__ == "__main__":
    sys.exit(main())
