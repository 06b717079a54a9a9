"""Run rows in batches where that works, and one by one where it does not. A batch is believed after a cross-check."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradproof.errors import first_line
from gradproof.norms import largest
from gradproof.program import Array
from gradproof.quiet import QUIET

# Elements of input and output in flight at once: 8 MB of float64, which also stays near the cache.
ELEMENTS = 2**20
# A batch that works in general may fail for one chunk (a step out of the domain); this often, and we give up on it.
PATIENCE = 3
# Fewer rows than this run one by one: starting a batch costs as much as several reverse passes, or many calls.
FEW = 6
# Rows that are to be like no others differ by this factor.
AWAY = 1 + 2.0**-12
# Derivatives that a batch gives to so many digits are believed: an ill-conditioned rule rounds no better, and a batch
# that is wrong is so by far more. (Values are differenced, and get no such grace.)
DIGITS = 1e-10
# To a chunk of up to so many elements the row of the trial is added: copying the others costs less than running one of
# them once more. (Where a single run is dear, that is so for all.)
SMALL = 2**16

# Blocks of this size come and go in a check. The C library returns each to the system at once, and to touch it anew
# costs as much as to compute with it, until it has seen one go: then it keeps up to twice as much at hand.
_first = np.empty(2 * ELEMENTS)
del _first

Runner = Callable[[Array, Array], None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a batch in one call, by the name that a note gives it."""

    name: str
    run: Runner

    def beside(self, guests: Array, rows: Array, into: Array) -> Array:
        """Run the rows together with one more, or three, and return what those give. The first guest stands neither
        first nor in the middle nor last, so that a batch that repeats or reverses its rows is caught; the others stand
        at the ends."""
        picked, first = _picked(rows), guests[1:2]
        results = np.empty((len(rows) + len(guests), into.shape[1]))
        self.run(np.concatenate((first, rows[:picked], guests[:1], rows[picked:], guests[2:])), results)
        start = len(first)
        into[:picked] = results[start : start + picked]
        into[picked:] = results[start + picked + 1 : start + 1 + len(rows)]
        return results[[start + picked, 0, -1][: len(guests)]]


@dataclass(frozen=True, slots=True)
class Work:
    """`ways` run a batch in one call, the best first; `each` runs the same rows one by one; all write their results
    into an array. `scope` shields the trial, so that the rows which follow find the random state as if it had not
    happened."""

    ways: tuple[Way, ...]
    each: Runner
    scope: AbstractContextManager[None]


@dataclass(frozen=True, slots=True)
class Known:
    """A row whose result a plain call has given already, to this relative rounding (0: to that of the lane)."""

    row: Array
    result: Array
    roundoff: float = 0.0


@dataclass(frozen=True, eq=False, slots=True)
class Trial:
    """A batch with rows of which something is known: `of` runs it and says what they gave, `holds` whether that can be.
    `end` leaves rows and results as if nobody had tried."""

    of: Callable[[Way], Array]
    holds: Callable[[Array], bool]
    end: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Lane:
    """How one operation of a program runs its rows. `batched` is None until the first batch has been tried; then `way`
    is the name of the first one that was believed. `native` is the lane of the same operation in the user's own format:
    what that one knows of a row, a batch of a float64 copy can be held against."""

    name: str
    most: int
    roundoff: float
    few: int = FEW
    small: int = SMALL
    batched: bool | None = None
    way: str = ""
    reason: str = ""
    failures: int = 0
    used: bool = False
    known: Known | None = None
    native: Lane | None = None
    digits: float = 0.0  # a relative difference that does no harm either, whatever the rounding
    exact: bool = True  # whether nothing more than rounding was ever believed

    def like(self, found: Array, known: Known) -> bool:
        """Whether that is what is known of the row."""
        roundoff = max(self.roundoff, known.roundoff)
        if agree(found, known.result, roundoff):
            return True
        self.exact = False
        return agree(found, known.result, roundoff, self.digits)

    def remember(self, rows: Array, results: Array) -> None:
        """A single row was run by itself: the first batch can be held against it."""
        if len(rows) == 1 and self.most > 1 and self.batched is None:
            self.known = Known(rows[0].copy(), results[0].copy(), self.roundoff)

    def run(self, rows: Array, into: Array, work: Work) -> None:
        self.used = self.used or len(rows) > 0
        for start in range(0, len(rows), self.most):
            chunk, target = rows[start : start + self.most], into[start : start + self.most]
            if len(chunk) < self.few or self.batched is False:
                work.each(chunk, target)
            elif self.batched is None:
                self.tried(chunk, target, work)
            else:
                self._believed(next(way for way in work.ways if way.name == self.way), chunk, target, work)

    def _believed(self, way: Way, rows: Array, into: Array, work: Work) -> None:
        try:
            with QUIET:
                way.run(rows, into)
        except Exception as error:  # noqa: BLE001  the rows get their say one by one
            self.failures += 1
            if self.failures >= PATIENCE:
                self.refuse(f"a batch raised {type(error).__name__}: {first_line(error)}")
            work.each(rows, into)

    def tried(self, rows: Array, into: Array, work: Work) -> None:
        """A batch is believed when one of its rows is what a plain call gives."""
        lent = None if self.native is None else self.native.known
        with work.scope:
            # What cancels in the narrow format may be far off there: then a plain call decides, of all ways.
            if lent is None or self._disagrees(self._trial(rows, into, lent, work), work, until="one differs"):
                self.native = None
                self._disagrees(self._trial(rows, into, self.known, work), work)
        if not self.batched:
            work.each(rows, into)

    def _disagrees(self, trial: Trial, work: Work, until: Literal["one holds", "one differs"] = "one holds") -> bool:
        """Try the ways, until one gives what is expected; whether none does, but one gives something else. Where none
        does, the first tells why, unless rows differ."""
        differs, raised = False, ""
        for way in work.ways:
            try:
                with QUIET:
                    found = trial.of(way)
            except Exception as error:  # noqa: BLE001  the rows get their say one by one
                raised = raised or f"a batch raised {type(error).__name__}: {first_line(error)}"
                continue
            if trial.holds(found):
                self.batched, self.way = True, way.name
                break
            differs = True
            if until == "one differs":
                break
        # Kept also where a later way is believed: who asks for more than that can see that an earlier one was not.
        self.reason = "a batch disagrees with a single call" if differs else raised
        if not self.batched:
            self.refuse(self.reason)
        trial.end()
        return differs and not self.batched

    def _trial(self, rows: Array, into: Array, known: Known | None, work: Work) -> Trial:
        picked = _picked(rows)
        if known is None:
            alone = np.empty((1, into.shape[1]))
            work.each(rows[picked : picked + 1].copy(), alone)

            def among(way: Way) -> Array:
                way.run(rows, into)
                return into[picked : picked + 1]

            return Trial(among, self._like(Known(rows[picked], alone[0])))
        guests, holds = self._guests(rows, known, work)
        if rows.size + into.size <= self.small or len(rows) <= len(guests):  # each needs a place of its own
            return Trial(lambda way: way.beside(guests, rows, into), holds)
        places = [picked, 0, -1][: len(guests)]
        moved = rows[places]
        rows[places] = guests

        def instead(way: Way) -> Array:
            way.run(rows, into)
            return into[places]

        def put_back() -> None:
            rows[places] = moved
            if self.batched:
                results = np.empty((len(places), into.shape[1]))
                work.each(moved, results)
                into[places] = results

        return Trial(instead, holds, put_back)

    def _like(self, known: Known) -> Callable[[Array], bool]:
        return lambda found: self.like(found[0], known)

    def _guests(self, rows: Array, known: Known, work: Work) -> tuple[Array, Callable[[Array], bool]]:
        """A row of which one knows what it gives. Where that is in part the same in other rows, as at the point that
        they are steps from, a batch may mix them up, or not batch that part, and nobody would see: then two rows that
        are like none of them stand at the ends, and must give the same as each other. If that is also what the first
        gives, they may have got its value, and one of them is run by itself."""
        like = self._like(known)
        if not ((rows[0] == known.row) | (rows[-1] == known.row)).any():
            return known.row[None], like
        away = known.row * AWAY

        def holds(found: Array) -> bool:
            guest, first, last = found
            if not (like(found) and agree(first, last, self.roundoff, self.digits)):
                return False
            if not same(guest, first):
                return True
            alone = np.empty((1, first.size))
            work.each(away[None].copy(), alone)
            return agree(first, alone[0], self.roundoff, self.digits)

        return np.array([known.row, away, away]), holds

    def works(self, point: Array, width: int, work: Work) -> bool:
        """Whether batches work; a few points near this one are tried if nobody has asked yet."""
        if self.batched is None and self.most > 1:
            # The rows differ a little, so that a batch that mixes its rows up is caught.
            rows = point * (1 + np.arange(FEW)[:, None] * (AWAY - 1))
            with work.scope:
                self.tried(rows, np.empty((FEW, width)), work)
        return bool(self.batched)

    def refuse(self, reason: str) -> None:
        self.batched, self.way, self.reason = False, "", reason

    @property
    def note(self) -> str:
        if self.most == 1 and self.used:
            return f"{self.name}: one by one, because one row fills a batch"
        if self.batched is None:
            return ""
        return f"{self.name}: {self.way}" if self.way else f"{self.name}: one by one, because {self.reason}"


def agree(batched: Array, alone: Array, roundoff: float, digits: float = 0.0) -> bool:
    """Equal within rounding, or to so many digits, at the scale of the largest entry; NaN agrees with NaN, and
    infinities with their like."""
    share = max(64 * roundoff, digits)
    if (batched == alone).all():
        return True
    top = largest(alone)
    if math.isfinite(top):
        return largest(batched - alone) <= share * top
    finite = np.isfinite(alone)
    if not np.array_equal(batched[~finite], alone[~finite], equal_nan=True):
        return False
    scale = float(np.max(np.abs(alone[finite]), initial=0.0))
    return bool(np.all(np.abs(batched[finite] - alone[finite]) <= share * scale))


def same(one: Array, other: Array) -> bool:
    """Bit by bit, and NaN is like NaN. Of the same shape, and mostly the same indeed."""
    alike = one == other
    return bool(alike.all()) or bool((alike | (np.isnan(one) & np.isnan(other))).all())


def _picked(rows: Array) -> int:
    return 2 * len(rows) // 3


def outside(raised: Exception | None) -> str:
    """The note on what the function raised at a perturbed point, if it did."""
    return f"fn raised {type(raised).__name__}({first_line(raised)!r}) at a perturbed point" if raised else ""
