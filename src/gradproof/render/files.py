"""A report into the files that were asked for, in each of its forms."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from gradproof.errors import UsageError
from gradproof.render import json, junit
from gradproof.render.writing import is_special, put
from gradproof.result import Report

# As the command line writes it.
STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, slots=True)
class Files:
    """Where a report goes to, in each form; None: nowhere, `-`: to standard output."""

    json: Path | None = None
    html: Path | None = None
    junit: Path | None = None

    @property
    def beside(self) -> TextIO:
        """Where people are told of the run: not between the lines of a report."""
        return sys.stderr if STANDARD_OUTPUT in (self.json, self.html, self.junit) else sys.stdout

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Where a report goes to standard output, all that is printed meanwhile goes to standard error, also by what
        does not ask Python."""
        if self.beside is sys.stdout:
            yield
            return
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)

    def prepare(self) -> None:
        """Find out before a long run what would fail after it."""
        named = [path for path in (self.json, self.html, self.junit) if path is not None]
        if named.count(STANDARD_OUTPUT) > 1:
            raise UsageError("two reports cannot both go to standard output; write - for one, and a file for the other")
        for path in named:
            if [other.resolve() for other in named].count(path.resolve()) > 1:
                raise UsageError(f"two reports cannot both go to {path}; name another file for one of them")
            if path.is_dir():
                raise UsageError(f"{path} is a folder; name a file in it, such as {path / 'report'}")
            if path != STANDARD_OUTPUT and not is_special(path):
                _try(path)
        if self.html is not None and find_spec("plotly") is None:
            raise UsageError(f"{self.html} is drawn with plotly, which is not installed; pip install 'gradproof[html]'")

    def write(self, report: Report) -> tuple[Path, ...]:
        """All that were asked for; which files those are. One that fails does not keep the others from it."""
        forms = ((self.json, json.dumps), (self.junit, junit.dumps), (self.html, _page))
        written: list[Path] = []
        refused: list[tuple[Path, OSError]] = []
        for path, rendered in forms:
            if path == STANDARD_OUTPUT:
                _print(rendered(report).rstrip("\n") + "\n")
            elif path is not None:
                try:
                    put(rendered(report), path)
                    written.append(path)
                except OSError as raised:
                    refused.append((path, raised))
        if refused:
            others = f"; wrote {', '.join(map(str, written))}" if written else ""
            reasons = "; ".join(f"{path} cannot be written: {raised.strerror}" for path, raised in refused)
            raise UsageError(f"{reasons}{others}") from refused[0][1]
        return tuple(written)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a report, in words."""

    words: str
    refused: bool = False


def written(files: Mapping[str, Path], texts: Iterable[str], source: str) -> Written:
    """One report of the many that were dumped in a test run. Nothing is raised: the tests have their results."""
    try:
        return Written(f"wrote {', '.join(map(str, Files(**files).write(json.merged(texts, source))))}")
    except UsageError as refused:
        return Written(str(refused), refused=True)


def _page(report: Report) -> str:
    from gradproof.render.html import page

    return page(report)


def _print(text: str) -> None:
    """In the encoding that a report says it has, whatever that of the terminal is."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(text)
    else:
        binary.write(text.encode("utf-8"))
        binary.flush()


def _try(path: Path) -> None:
    """Open it for writing, and leave it as it was."""
    existed = path.exists() or path.is_symlink()  # of a file that is still to come
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
        if not existed:
            path.unlink()
    except OSError as raised:
        reason = f"{path} cannot be written: {raised.strerror}"
        raise UsageError(f"{reason}; give a file in a folder that can be written, such as {path.name}") from raised
