"""Where a sweep is: counted from its rows, shown live in a terminal and as a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradproof.result import Verdict
from gradproof.sweep.local import Found
from gradproof.sweep.row import Key, Row

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LINE_EVERY = 10.0  # seconds between two lines where there is no terminal
DRAWN_EVERY = 0.2
BAR = 30


@dataclass
class Progress:
    """`chosen`: what this run is about, as far as it is known; `earlier`: how much of it an earlier run has made."""

    chosen: set[Key] = field(default_factory=set)
    complete: bool = False
    earlier: int = 0
    done: int = 0
    counts: Counter[Verdict] = field(default_factory=Counter)
    calls: int = 0
    checking: float = 0.0
    slowest: Row | None = None
    started: float = field(default_factory=time.monotonic)

    def add(self, news: Row | Found) -> None:
        if isinstance(news, Found):
            self.chosen.update(news.checks)
            self.complete = news.complete
            self.earlier += len(news.earlier)
            self.counts.update(news.earlier)
            return
        self.chosen.add(news.item.key)  # a catalogue that cannot be listed has a row all the same
        self.done += 1
        self.counts[news.verdict] += 1
        self.calls += news.calls
        self.checking += news.seconds
        if self.slowest is None or news.seconds > self.slowest.seconds:
            self.slowest = news

    @property
    def found(self) -> int:
        return len(self.chosen)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def rate(self) -> float:
        """Checks in a second."""
        return self.done / self.seconds if self.done else 0.0

    @property
    def left(self) -> float | None:
        """Seconds; None while nobody can tell."""
        if not (self.complete and self.rate):
            return None
        return max(self.found - self.earlier - self.done, 0) / self.rate

    def words(self) -> list[str]:
        """What is shown, one part after the other."""
        known = f"{self.earlier + self.done:,} of {self.found:,}{'' if self.complete else ' so far'}"
        loud = (Verdict.WRONG, Verdict.UNDECIDED, Verdict.ERROR)
        counts = ", ".join(f"{self.counts[verdict]:,} {verdict.value}" for verdict in loud)
        parts = [known, counts, f"{self.calls:,} calls", f"{self.rate:,.1f}/s"]
        if self.left is not None:
            parts.append(f"{clock(self.left)} left")
        if self.slowest is not None:
            parts.append(f"slowest {self.slowest.item.key} {self.slowest.seconds:.1f} s")
        return parts


@contextlib.contextmanager
def shown(progress: Progress, console: Console) -> Iterator[Callable[[], None]]:
    """Call what this gives after every step."""
    if not console.is_terminal:
        yield _now_and_then(LINE_EVERY, lambda: console.print(_line(progress), markup=False))
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _now_and_then(DRAWN_EVERY, lambda: live.update(_drawn(progress), refresh=True))


def _now_and_then(every: float, show: Callable[[], None]) -> Callable[[], None]:
    due = time.monotonic() + every

    def step() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + every
            show()

    return step


def _line(progress: Progress) -> str:
    return f"{clock(progress.seconds)}  {' · '.join(progress.words())}"


def _drawn(progress: Progress) -> Text:
    from rich.text import Text

    total = max(progress.found, 1)
    filled = BAR * min(progress.earlier + progress.done, total) // total
    bar = Text("━" * filled, "green").append("━" * (BAR - filled), "dim")
    first, second, *rest = progress.words()
    loud = "bold red" if progress.counts[Verdict.WRONG] or progress.counts[Verdict.ERROR] else ""
    return Text.assemble(bar, f" {first}  {clock(progress.seconds)}\n", (second, loud), "\n", (" · ".join(rest), "dim"))


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
