"""`gradproof show` and `gradproof replay`: what a stored report says, and whether it still does."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from gradproof.cli import options
from gradproof.cli.check import check, limits_of
from gradproof.cli.display import console, summary, whole
from gradproof.cli.request import request_of
from gradproof.cli.running import run
from gradproof.cli.status import STATUS, WRONG, status
from gradproof.cli.sweep import remade
from gradproof.errors import UsageError
from gradproof.render import json
from gradproof.render.files import Files
from gradproof.render.text import headline
from gradproof.result import Report, Result, Verdict
from gradproof.testrun import parted

_AGAIN = (["gradproof", "check"], ["gradproof", "sweep"])


@click.command(short_help="Print a stored report.")
@click.argument("report", metavar="REPORT[::NAME]")
@click.option("--verbose", "-v", is_flag=True, help="Everything about each result; by default of those not right.")
@click.option("--html", type=options.FILE, help="Write it as one page with plots.")
@options.JUNIT
def show(report: str, *, verbose: bool, html: Path | None, junit: Path | None) -> None:
    """Print a report that `gradproof check --json`, `gradproof sweep --json` or `pytest --gradproof-json` wrote.

    \b
    gradproof show report.json
    gradproof show "report.json::cases.py::cube[n=8]"
    gradproof show report.json --html report.html
    """
    files = Files(html=html, junit=junit)
    files.prepare()
    stored, chosen = _read(report)
    screen = console(files.beside)
    for result in chosen:
        if verbose or result.verdict is not Verdict.RIGHT or len(chosen) == 1:
            screen.print(whole(result, screen))
        else:
            screen.print(f"{result.verdict}  {headline(result)}", markup=False)
    seconds = sum(result.cost.seconds for result in chosen)
    if len(chosen) > 1:
        screen.print(summary(Report(chosen), seconds), markup=False)
    screen.print(", ".join(f"{name} {value}" for name, value in stored.environment), markup=False, style="dim")
    source = stored.source if chosen == stored.results else ""
    for path in files.write(Report(chosen, stored.environment, source)):
        screen.print(f"wrote {path}", markup=False)


@click.command(short_help="Run one result of a stored report again.")
@click.argument("report", metavar="REPORT::NAME")
@click.pass_context
def replay(context: click.Context, /, report: str) -> None:
    """Run one result of a stored report again, with its seed and settings, where its files are.

    \b
    gradproof replay "report.json::cases.py::cube[n=8]"

    NAME may be any part of the name that only one result has. A result of a test is replayed by pytest.

    The status is that of the verdict now, as of gradproof check: 0 if it is right, whatever the report says.
    """
    _, chosen = _read(report)
    if len(chosen) != 1:
        raise UsageError(_choose(report.partition("::")[0], "replay one of", chosen))
    before = chosen[0]
    folder, words = parted(before.source)
    if words[:1] != ["pytest"] and words[:2] not in _AGAIN:
        raise UsageError(
            f"{before.name} does not say how it was obtained, as those of gradproof check, gradproof sweep and pytest "
            f"do; run again what made it, with seed={before.seed}"
        )
    click.echo(f"again: {before.source}")
    if words[:1] == ["pytest"]:
        context.exit(_tested(before, folder, words[1:]))
    after = remade(words[2:]) if words[1] == "sweep" else _checked(words[2:])
    screen = console()
    screen.print(whole(after, screen))
    same = "as" if after.verdict is before.verdict else "not as"
    screen.print(f"{same} in the report, which says {before.verdict}", markup=False)
    context.exit(status(Report((after,))))


def _tested(before: Result, folder: Path | None, words: list[str]) -> int:
    """By pytest, where the run was started if that folder is here. The status is that of the verdict now; where that is
    right, pytest's, because a test may fail for another reason. A test that passes without the check says nothing."""
    if folder is not None and not folder.is_dir():
        click.echo(f"there is no folder {folder}; the test is looked for in {Path.cwd()}")
        folder = None
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.json"
        command = [sys.executable, "-m", "pytest", *words, f"--gradproof-json={report}", "--gradproof-html="]
        tested = subprocess.run(command, check=False, cwd=folder).returncode  # noqa: S603  the test that was asked for
        made = json.loads(report.read_text("utf-8")).results if report.is_file() else ()
    after = next((result.verdict for result in made if result.name == before.name), None)
    if after is None:
        click.echo(f"not as in the report, which says {before.verdict}: the test made no check {before.name}")
        return tested or WRONG
    now = "" if after is before.verdict else f": the check is {after} now"
    click.echo(f"{'not ' if now else ''}as in the report, which says {before.verdict}{now}")
    return STATUS[after] or tested


def _checked(words: list[str]) -> Result:
    given = check.make_context("check", words).params
    request = request_of(given.pop("targets"), given)
    limits = limits_of(given["seconds"], given["memory"])
    jobs = list(request.jobs())
    if len(jobs) != 1:
        named = "\n".join(f"  gradproof check {shlex.quote(job.name)}" for job in jobs[:12])
        raise UsageError(f"that was one case and is {len(jobs)} now; check one of them:\n{named}")
    (after,) = run(request, jobs, given["jobs"], limits)
    return after


def _read(text: str) -> tuple[Report, tuple[Result, ...]]:
    """The report, and the results that were named; all of them if none was."""
    path, _, name = text.partition("::")
    try:
        stored = json.loads(Path(path).read_text("utf-8"))
    except OSError as raised:
        raise UsageError(
            f"{path} cannot be read: {raised.strerror}; pass a file that gradproof wrote with --json"
        ) from raised
    except UsageError as refused:
        raise UsageError(f"{path}: {refused}") from refused
    exact = tuple(result for result in stored.results if result.name == name)
    chosen = exact or tuple(result for result in stored.results if name in result.name)
    if name and not chosen:
        raise UsageError(_choose(path, f"there is no {name} in", stored.results))
    return stored, chosen


def _choose(path: str, problem: str, results: tuple[Result, ...]) -> str:
    names = [f"  {path}::{result.name}" for result in results[:12]]
    return "\n".join([f"{problem} {path}; it has", *names, *(["  ..."] if len(results) > 12 else [])])
