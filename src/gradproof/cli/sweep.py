"""`gradproof sweep`: check a whole catalogue; `sweep diff`: compare two stores; `sweep merge`: put several into one."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradproof.cli import options
from gradproof.cli.display import console
from gradproof.cli.status import INTERRUPTED, STATUS, USAGE, WRONG
from gradproof.cli.values import EFFORT, MODES, NAMED_CONTRACTS, ORDERS, SEED, SHARD, TOLERANCE, Option
from gradproof.errors import UsageError
from gradproof.render.files import Files
from gradproof.result import Result, Verdict
from gradproof.sweep import filters

if TYPE_CHECKING:
    from gradproof.sweep.filters import Shard
    from gradproof.sweep.run import Sweep

_OPTIONS: tuple[Option[Any], ...] = (ORDERS, MODES, EFFORT, TOLERANCE, NAMED_CONTRACTS, SEED)
_NEW_STORE = click.Path(dir_okay=False, path_type=Path)
_STORE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Sweep(click.Group):
    """The first word is a catalogue unless it is one of the commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Sweep, short_help="Check a whole library of operators.", subcommand_metavar="CATALOGUE... [OPTIONS]")
def sweep() -> None:
    """Check a whole library of operators, on this machine or on a cluster.

    \b
    gradproof sweep torch --store torch.db           all operators of PyTorch
    gradproof sweep torch --ops 'linalg.*' --dtype float64,complex128 --order 1,2
    gradproof sweep torch.modules torch.functions path/to/cases.py
    gradproof sweep diff old.db new.db               what became wrong, slower, less exact
    gradproof sweep merge all.db a.db b.db           the shards of several machines

    A sweep that was stopped or killed goes on where it was when it is started again with the same --store.
    `gradproof sweep run --help` shows all options.
    """


@sweep.command("run", short_help="Check the cases of catalogues (the word run may be left out).")
@click.argument("catalogues", metavar="CATALOGUE...", nargs=-1, required=True)
@click.option("--ops", multiple=True, metavar="GLOB", help="Operators by name, such as 'linalg.*'.")
@click.option("--dtype", multiple=True, metavar="NAMES", help="Such as float64,bfloat16. Default: the catalogue's own.")
@click.option("--device", multiple=True, metavar="NAMES", help="Such as cpu. Default: the catalogue's own.")
@click.option("--case", metavar="NAME", help="One case by its whole name, such as 'power[n=2]'.")
@click.option("--order", metavar="1,2", help="Orders of derivatives, a verdict for each. Default: as the cases say.")
@options.MODES
@options.EFFORT
@options.TOLERANCE
@click.option("--contracts", metavar="NAMES", help="Properties to check beside the numbers: all, none, linear,...")
@options.SEED
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many cases of each catalogue.")
@click.option("--shard", metavar="3/8", help="Only this part of the cases: the third of eight.")
@click.option("--jobs", "-j", type=click.IntRange(1), metavar="N", help="Processes. Default: one for each core.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler, tcp://host:8786.")
@click.option("--store", type=_NEW_STORE, help="Where rows go as they come, and where they are found again.")
@click.option("--retry", metavar="NAMES", help="Rows of the store to make again: error, wrong, too-long, crashed,...")
@click.option(
    "--seconds", type=options.SECONDS, default=120.0, show_default=True, metavar="S", help=options.MOST_SECONDS
)
@click.option(
    "--memory", type=options.GIB, default=4.0, show_default=True, metavar="GIB",
    help="Most memory for one case, in GiB; 0: no limit.",
)  # fmt: skip
@options.JSON
@click.option("--html", type=options.FILE, help="Write the report as one page (step plots: gradproof check --html).")
@options.JUNIT
@click.pass_context
def run(context: click.Context, /, catalogues: tuple[str, ...], **given: Any) -> None:
    """Check all cases of these catalogues: torch, torch.modules, torch.functions, jax, path/to/cases.py,
    package.module:name, or what a package registers under the entry point group gradproof.catalogues.

    Ends with status 0 if everything is right, 1 if something is wrong, 3 if something could not be told.
    """
    files = Files(given.pop("json"), given.pop("html"), given.pop("junit"))
    files.prepare()
    context.exit(carried_out(catalogues, files, _read(given)))


def _read(given: dict[str, Any]) -> dict[str, Any]:
    read = {one.name: one.value(given[one.name]) for one in _OPTIONS if given[one.name] is not None}
    return given | read | {"shard": _shard(given["shard"])}


def _shard(text: str | None) -> Shard | None:
    """One that is well written, but does not exist, has a sentence of its own."""
    if text is None:
        return None
    return filters.shard(text) if re.fullmatch(r"\s*\d+\s*/\s*\d+\s*", text) else SHARD.value(text)


def remade(words: list[str]) -> Result:
    """The one check of a sweep that stands behind `gradproof sweep`, made again in a watched process."""
    from gradproof.sweep import sweep as swept

    given = run.make_context("run", words).params
    files = {"json", "html", "junit"}
    read = _read({name: value for name, value in given.items() if name not in files | {"catalogues"}})
    results = swept(given["catalogues"], **read | {"jobs": 1}).report().results
    if not results:
        raise UsageError(f"{' '.join(given['catalogues'])} has no case {given['case']!r} any more")
    return results[0]


def carried_out(catalogues: tuple[str, ...], files: Files, given: dict[str, Any]) -> int:
    """Run it, show it, write it down. The exit status."""
    from gradproof.sweep import sweep as swept
    from gradproof.sweep.progress import Progress, shown
    from gradproof.sweep.run import Sweep
    from gradproof.sweep.store import Store
    from gradproof.sweep.summary import unmet

    screen = console(files.beside)
    progress = Progress()
    interrupted = False
    with tempfile.TemporaryDirectory() as folder:
        # In a file even if none was asked for, so that an interrupt finds the rows that are finished.
        path = given["store"] or Path(folder) / "sweep.db"
        with shown(progress, screen) as step:
            try:
                swept(catalogues, progress=progress, show=lambda _: step(), **{**given, "store": path}).store.close()
            except KeyboardInterrupt:
                screen.print(f"stopped after {progress.done:,} check{'s' * (progress.done != 1)}", markup=False)
                if given["store"] is not None:
                    screen.print(f"the same command goes on from {given['store']}", markup=False)
                interrupted = True
        with Store(path) as store:
            left = Sweep(store, progress)
            if interrupted and not any(left.rows()):
                return INTERRUPTED
            status = _told(left, files)
            # These may well leave out what was named.
            if not (interrupted or given["shard"] or given["limit"] or given["case"]):
                for word in unmet(left.rows(), given["ops"], given["dtype"], given["device"]):
                    screen.print(f"there is no case of --{word}", markup=False)
    return INTERRUPTED if interrupted else status


def _told(left: Sweep, files: Files) -> int:
    from gradproof.sweep.progress import clock

    screen = console(files.beside)
    summary, progress = left.summary(), left.progress
    for table in summary.tables() if summary.counts else ():
        screen.print(table)
    counts = ", ".join(f"{summary.counts[verdict]:,} {verdict.value}" for verdict in Verdict if summary.counts[verdict])
    now = f"{progress.done:,} of them now, in {clock(progress.seconds)}"
    total = summary.counts.total()
    if progress.earlier:
        screen.print(f"{progress.earlier:,} result{'s' * (progress.earlier != 1)} of an earlier run", markup=False)
    screen.print(f"{total:,} check{'s' * (total != 1)}: {counts or 'none'}; {now}", markup=False)
    if not summary.counts:
        screen.print("no case was chosen; see --ops, --dtype, --device, --case, --limit and --shard", markup=False)
        return USAGE
    if files != Files():
        for path in files.write(left.report()):
            screen.print(f"wrote {path}", markup=False)
    return STATUS[summary.verdict]


@sweep.command(short_help="Compare two stores: what became wrong, slower, less exact.")
@click.argument("old", type=_STORE)
@click.argument("new", type=_STORE)
@click.pass_context
def diff(context: click.Context, old: Path, new: Path) -> None:
    """What became wrong or right, slower, or less exact from OLD to NEW. Status 1: something became wrong,
    or is new and wrong."""
    from gradproof.sweep.database import opened_to_read
    from gradproof.sweep.diff import difference, tables
    from gradproof.sweep.store import Store

    with Store(old, opened_to_read) as before, Store(new, opened_to_read) as after:
        if not before.facts() or not after.facts():
            empty = old if not before.facts() else new
            raise UsageError(f"{empty} is not the store of a sweep; write gradproof sweep diff old.db new.db")
        found = difference(before.rows(), after.rows())
    screen = console()
    for now, was in found.moved:
        screen.print(f"{now} is compared with {was}", markup=False)
    for table in tables(found):
        screen.print(table)
    if not found.changes:
        screen.print("no difference", markup=False)
    context.exit(WRONG if found.worse else 0)


@sweep.command(short_help="Put the stores of several machines into one.")
@click.argument("out", type=_NEW_STORE)
@click.argument("parts", metavar="PART...", nargs=-1, required=True, type=_STORE)
def merge(out: Path, parts: tuple[Path, ...]) -> None:
    """Put the rows of all PARTs, such as the shards of a sweep on several machines, into OUT. They must have been made
    in the same way, by the same versions, from the same source."""
    from gradproof.sweep.merge import merged

    done = merged(out, parts)
    screen = console()
    if len(done.platforms) > 1:
        screen.print(f"from several platforms: {', '.join(done.platforms)}", markup=False)
    if done.twice:
        screen.print(f"{done.twice:,} in more than one; the last one counts", markup=False)
    screen.print(f"{done.rows:,} row{'s' * (done.rows != 1)} in {out}", markup=False)
