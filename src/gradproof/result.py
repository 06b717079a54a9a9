"""What a check returns: verdicts, findings, comparisons, results. Frozen values; text is made in `render`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from gradproof.environment import here
from gradproof.errors import GradcheckError, UsageError
from gradproof.finding import Diagnosis, Finding, Place
from gradproof.norms import rms
from gradproof.picture import SIDE, Digest, HeatMap, Trace
from gradproof.program import Array, Leaf, Skipped
from gradproof.settings import Settings
from gradproof.table import Entry, Table
from gradproof.verdict import Verdict, worst_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Comparison", "Cost", "Diagnosis", "Entry", "Finding", "Place", "Power", "Report", "Result", "Table", "Verdict",
    "worst_of",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Comparison:
    """One (output leaf, input leaf) block of the Jacobian in one mode.

    `scope` is "entries" when every entry of the block was compared (the arrays then have the shape
    (output size, input size)), "pattern" when those that a sparse Jacobian stores were, the rest found zero (one number
    each), or "probes" when random combinations of all entries were (one number each). The arrays are made by `source`
    when somebody asks for them; in a stored report `source` is a `Digest`, which keeps a picture of them instead.
    `found` lists the single entries that were adjudicated WRONG, worst first; `wrong` counts the wrong ones among those
    looked at; `strongest` is the largest derivative of a block that is right, where a wrong gradient would show most
    clearly.
    """

    order: int
    mode: str
    output: Leaf
    input: Leaf
    scope: str
    source: Callable[[], Table]
    verdict: Verdict
    found: tuple[Entry, ...] = ()
    wrong: int = 0
    entries: int = 0
    reason: str = ""
    strongest: Entry | None = None

    @cached_property
    def _table(self) -> Table:
        return self.source()

    @property
    def analytic(self) -> Array:
        return self._table.analytic

    @property
    def numeric(self) -> Array:
        return self._table.numeric

    @property
    def bar(self) -> Array:
        return self._table.bar

    @property
    def tolerance(self) -> Array:
        return self._table.tolerance

    @property
    def spread(self) -> Array | None:
        return self._table.spread

    @property
    def worst(self) -> Entry | None:
        return self.found[0] if self.found else None

    @property
    def place(self) -> Place:
        """The worst entry's, or the block's where no entry was singled out."""
        return self.worst.place if self.worst else Place.of(self.output, self.input)

    def entry(self, place: Place) -> Entry:
        """That of this block at a place."""
        assert place.output is not None
        assert place.input is not None
        row = self.output.coordinate(place.output) - self.output.start
        return self._table.entry(place, (row, self.input.coordinate(place.input) - self.input.start))

    @property
    def unlocated(self) -> bool:
        """Whether a combination of all entries was off, and no entry that could be to blame."""
        return self.scope == "probes" and bool(self.reason) and not self.found and self.verdict is not Verdict.UNDECIDED

    @property
    def unfollowed(self) -> bool:
        """Whether it is wrong by a combination of all entries, and others were looked into for an entry instead."""
        return self.verdict is Verdict.WRONG and self.scope == "probes" and not (self.found or self.reason)

    @cached_property
    def deviation(self) -> Array:
        return self._table.deviation

    @property
    def vanishes(self) -> bool:
        return not isinstance(self.source, Digest) and self._table.vanishes

    @cached_property
    def digits(self) -> float:
        """Correct decimal digits shown, relative to the block's own size: how far the two sides provably agree."""
        if isinstance(self.source, Digest):
            return self.source.digits
        if self.numeric.size == 0 or (self.verdict is Verdict.RIGHT and self._table.vanishes):
            return float("nan")
        scale, slack = rms(self.numeric), float(np.maximum(self.deviation.max(), self.bar.max()))
        if not (scale > 0 and math.isfinite(scale) and math.isfinite(slack)):
            return float("nan")
        return min(max(-math.log10(max(slack / scale, 1e-17)), 0.0), 17.0)

    @cached_property
    def excess(self) -> float:
        """How many tolerances off: of the worst entry, or of all numbers where none was singled out."""
        if self.worst is not None:
            return self.worst.excess
        if isinstance(self.source, Digest):
            return self.source.excess
        return float(np.max(self._table.excess, initial=0.0))

    def picture(self, tiles: int = SIDE * SIDE) -> HeatMap:
        """The numbers as a heat map of at most so many tiles."""
        if isinstance(self.source, Digest):
            return self.source.picture.within(tiles)
        shape, table = (self.output.size, self.input.size), self._table
        return (table if table.where is None else table.joined(self._found)).picture(shape, tiles)

    @property
    def _found(self) -> Table:
        """The entries that were found, as a table: one that should have been stored is not in the other."""
        outputs, inputs = [one.place.output for one in self.found], [one.place.input for one in self.found]
        rows = [self.output.coordinate(spot) - self.output.start for spot in outputs if spot]
        columns = [self.input.coordinate(spot) - self.input.start for spot in inputs if spot]
        numbers = [(one.analytic, one.numeric, one.bar, one.tolerance, one.spread) for one in self.found]
        analytic, numeric, bar, tolerance, spread = np.array(numbers).reshape(-1, 5).T
        return Table(analytic, numeric, bar, tolerance, spread, (np.array(rows, int), np.array(columns, int)))


@dataclass(frozen=True, slots=True)
class Power:
    """What this run would have caught: any error of a single entry above `error` (in units of the derivative), with
    probability at least 1 - 1e-6. `relative` is the same against the largest derivative of its block (with probes: the
    largest entry of J^T w or J u, per unit of w or u); `fraction` of all entries were compared one by one."""

    error: float
    relative: float
    fraction: float

    def at_least(self, relative: float) -> Power:
        """The same where smaller errors may hide in rounding."""
        return Power(self.error * max(1.0, relative / self.relative), max(self.relative, relative), self.fraction)


@dataclass(frozen=True, slots=True)
class Cost:
    evaluations: int
    pulls: int
    pushes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of one check. Printing it gives the report; `raise_if_wrong` turns it into an assertion.

    `source` says how to get it again: a command, or the name of a case; empty when nobody knows.
    """

    name: str
    verdict: Verdict
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    power: Power | None
    cost: Cost
    seed: int
    settings: Settings
    traces: tuple[Trace, ...] = ()
    source: str = ""

    @property
    def ok(self) -> bool:
        """True when the gradient was shown to be right (a mode that does not exist here is not held against it)."""
        return self.verdict is Verdict.RIGHT

    def __bool__(self) -> bool:
        """`assert gradproof.check(...)` means what it says."""
        return self.ok

    @property
    def wrong(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.WRONG)

    def raise_if_wrong(self) -> None:
        """Raise GradcheckError if the verdict is WRONG or ERROR. `assert_gradients` asks for more: it wants RIGHT."""
        __tracebackhide__ = True
        if self.verdict in (Verdict.WRONG, Verdict.ERROR):
            raise GradcheckError(str(self), self)

    def __repr__(self) -> str:
        """One line: arrays would bury a failing assertion."""
        from gradproof.render.text import headline

        return f"<{self.verdict}  {headline(self)}>"

    def __str__(self) -> str:
        from gradproof.render.text import render

        return render(self)

    def __rich__(self) -> object:
        from gradproof.render.text import panel

        return panel(self)

    def _repr_html_(self) -> str:
        from gradproof.render.notebook import fragment

        return fragment(self)

    def plot(self) -> Figure:
        """A matplotlib figure: heat map, and with `detail="plots"` the step ladder and the Taylor remainder."""
        from gradproof.render.plot import plot

        return plot(self)


@dataclass(frozen=True, eq=False)
class Report:
    """Many results and where they were obtained; text, JSON and HTML are renderers of it. One result, and any iterable
    of them, will do for the tuple."""

    results: tuple[Result, ...]
    environment: tuple[tuple[str, str], ...] = field(default_factory=here)
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", _results(self.results))

    @property
    def verdict(self) -> Verdict:
        """The loudest of them. Where nothing was checked, nothing can be told."""
        return worst_of([result.verdict for result in self.results]) if self.results else Verdict.UNDECIDED

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.results))

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the report as JSON; `gradproof.render.json.loads` reads it."""
        from gradproof.render.json import write

        write(self, path)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the report as one HTML file that opens offline."""
        from gradproof.render.html import write

        write(self, path)

    def _repr_html_(self) -> str:
        from gradproof.render.notebook import overview

        return overview(self)


def _results(given: object) -> tuple[Result, ...]:
    results = (given,) if isinstance(given, Result) else tuple(given) if isinstance(given, Iterable) else (given,)
    for one in results:
        if not isinstance(one, Result):
            raise UsageError(
                f"a report is made of results, not of {type(one).__name__}; write Report((gradproof.check(fn, args),))"
            )
    return results
