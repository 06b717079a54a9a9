"""The commands by name, and how they end: 0 right, 1 wrong, 2 usage, 3 undecided, 130 interrupted."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

import click

from gradproof import __version__
from gradproof.cli.check import check
from gradproof.cli.completion import completion
from gradproof.cli.explain import explain
from gradproof.cli.status import INTERRUPTED, USAGE
from gradproof.cli.stored import replay, show
from gradproof.cli.sweep import sweep
from gradproof.errors import UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", message="gradproof %(version)s")
def gradproof() -> None:
    """Tell whether a program's derivatives are right, wrong, or cannot be told: where, by how much and why.

    \b
    gradproof check cases.py                              all functions marked with @gradproof.case
    gradproof check mylib.ops:gelu --arg "randn(3, 4)"    a quick look at one function
    gradproof sweep torch                                 all operators of PyTorch
    gradproof explain stale                               what a code in a report means

    Ends with status 0 if everything is right, 1 if something is wrong, 2 if the command is not understood, 3 if
    something could not be told.
    """


for command in (check, sweep, explain, show, replay, completion):
    gradproof.add_command(command)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM, by which CI systems cancel, is an interrupt: what was finished is shown and written."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _printable() -> None:
    """A terminal that has no ± gets a question mark for it, and not an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the console script."""
    _printable()
    try:
        with _terminable():
            status = gradproof.main(arguments, prog_name="gradproof", standalone_mode=False)
    except click.ClickException as refused:
        refused.show()
        status = refused.exit_code
    except UsageError as refused:
        click.echo(f"Error: {refused}", err=True)
        status = USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        status = INTERRUPTED
    sys.exit(status or 0)
