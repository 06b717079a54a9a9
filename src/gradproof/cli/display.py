"""What is seen of a run: a bar and colours in a terminal, plain lines elsewhere. The same words in both."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from gradproof.render.text import headline, panel
from gradproof.result import Report, Result, Verdict

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# A pipe has no width of its own; its lines are not folded at all.
PIPE_WIDTH = 10_000


class Detail(enum.Enum):
    """How much is said of each case: only what is not right, one line, or everything."""

    QUIET = "quiet"
    LINES = "lines"
    FULL = "full"


def console(stream: TextIO | None = None) -> Console:
    """What people read; on standard output unless another stream is named."""
    from rich.console import Console

    stream = stream or sys.stdout
    return Console(file=stream, highlight=False, soft_wrap=False, width=None if stream.isatty() else PIPE_WIDTH)


def shown(results: Iterable[Result], total: int, detail: Detail, screen: Console) -> Iterator[Result]:
    """The same results; each has been shown when it is passed on."""
    detail = Detail.FULL if total == 1 and detail is Detail.LINES else detail
    if not screen.is_terminal or total == 1:
        for count, result in enumerate(results, 1):
            _show(result, detail, screen, f"[{count:>{len(str(total))}}/{total}] " if total > 1 else "")
            yield result
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("", total=total)
        for result in results:
            _show(result, detail, screen, "")
            progress.update(task, advance=1, description=result.name)
            yield result


def _show(result: Result, detail: Detail, screen: Console, prefix: str) -> None:
    if detail is Detail.FULL or result.verdict is not Verdict.RIGHT:
        screen.print(whole(result, screen))
    elif detail is Detail.LINES:
        from rich.text import Text

        line = Text.assemble(prefix, ("RIGHT", "bold green"), f"  {headline(result)} in {result.cost.seconds:.2f} s")
        screen.print(line, overflow="fold")


def whole(result: Result, screen: Console) -> RenderableType:
    """Everything about a result. A file gets plain text, in which long lines stay whole."""
    from rich.text import Text

    return panel(result) if screen.is_terminal else Text(str(result))


def summary(report: Report, seconds: float) -> str:
    """`12 cases: 10 right, 1 wrong, 1 undecided in 3.2 s`."""
    results = report.results
    counts = [f"{count} {verdict.value}" for verdict in Verdict if (count := _count(results, verdict))]
    return f"{len(results)} case{'s' * (len(results) != 1)}: {', '.join(counts) or 'none finished'} in {seconds:.1f} s"


def _count(results: tuple[Result, ...], verdict: Verdict) -> int:
    return sum(result.verdict is verdict for result in results)
