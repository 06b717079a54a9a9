"""Run rows in batches where that works, and one by one where it does not. A batch is believed after a cross-check."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradproof.errors import first_line
from gradproof.program import Array

# Elements of input and output in flight at once: 8 MB of float64, which also stays near the cache.
ELEMENTS = 2**20
# A batch that works in general may fail for one chunk (a step out of the domain); this often, and we give up on it.
PATIENCE = 3
# Fewer rows than this run one by one: starting a batch costs as much as several reverse passes, or many calls.
FEW = 6
FEW_VALUES = 32
# A chunk of so many elements is tried as a whole: copying it costs less than a second batch. (Where batches of another
# size must be compiled anew, that is so for all.)
SMALL = 2**16

DIFFERENT = "a batch disagrees with a single call"

Runner = Callable[[Array, Array], None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a batch in one call, by the name that a note gives it."""

    name: str
    run: Runner


@dataclass(frozen=True, slots=True)
class Work:
    """`ways` run a batch in one call, the best first; `each` runs the same rows one by one; all write their results
    into an array. `scope` shields the trial, so that the rows which follow find the random state as if it had not
    happened. Rows that are "given away" may be overwritten by the user's function."""

    ways: tuple[Way, ...]
    each: Runner
    scope: AbstractContextManager[None]
    rows: Literal["given away", "kept"] = "given away"


@dataclass(frozen=True, slots=True)
class Known:
    """A row whose result a plain call has given already, to this relative rounding (0: to that of the lane)."""

    row: Array
    result: Array
    roundoff: float = 0.0


@dataclass(slots=True)
class Lane:
    """How one operation of a program runs its rows. `batched` is None until the first batch has been tried; then `way`
    is the first one that was believed. `native` is the lane of the same operation in the user's own format: what that
    one knows of a row, a batch of a float64 copy can be held against."""

    name: str
    most: int
    roundoff: float
    few: int = FEW
    small: int = SMALL
    batched: bool | None = None
    way: Way | None = None
    reason: str = ""
    failures: int = 0
    used: bool = False
    known: Known | None = None
    native: Lane | None = None

    def remember(self, rows: Array, results: Array) -> None:
        """A single row was run by itself: the first batch can be held against it."""
        if len(rows) == 1 and self.most > 1 and self.batched is None:
            self.known = Known(rows[0].copy(), results[0].copy(), self.roundoff)

    @property
    def _lent(self) -> Known | None:
        return self.native.known if self.native is not None else None

    def run(self, rows: Array, into: Array, work: Work) -> None:
        self.used = self.used or len(rows) > 0
        for start in range(0, len(rows), self.most):
            chunk, target = rows[start : start + self.most], into[start : start + self.most]
            if len(chunk) < self.few or self.batched is False:
                work.each(chunk, target)
            else:
                if self.batched is None:
                    # The trial takes a few rows of a large chunk; the rest is then run as it turned out.
                    few = len(chunk) if chunk.size + target.size <= self.small else FEW
                    self.tried(chunk[:few], target[:few], work)
                    chunk, target = chunk[few:], target[few:]
                if self.way is not None:
                    self._believed(self.way, chunk, target, work)
                elif len(chunk):
                    work.each(chunk, target)

    def _believed(self, way: Way, rows: Array, into: Array, work: Work) -> None:
        if not len(rows):
            return
        try:
            _quietly(way.run, rows, into)
        except Exception as error:  # noqa: BLE001  the rows get their say one by one
            self.failures += 1
            if self.failures >= PATIENCE:
                self.refuse(f"a batch raised {type(error).__name__}: {first_line(error)}")
            work.each(rows, into)

    def tried(self, rows: Array, into: Array, work: Work) -> None:
        """A batch is believed when one of its rows is what a plain call gives."""
        with work.scope:
            known = self._lent or self.known
            # That row stands neither first nor in the middle nor last, so that a batch that repeats or reverses its
            # rows is caught.
            place = -(-2 * len(rows) // 3)
            if known is not None and self._agreed(rows, into, work, known, slice(place, place)):
                return
            if known is None or (known is self._lent and self.reason == DIFFERENT):
                picked = slice(2 * len(rows) // 3, 2 * len(rows) // 3 + 1)
                alone = np.empty((1, into.shape[1]))
                work.each(rows[picked].copy(), alone)
                if self._agreed(rows, into, work, Known(rows[picked][0], alone[0]), picked):
                    return
        work.each(rows, into)

    def _agreed(self, rows: Array, into: Array, work: Work, known: Known, place: slice) -> bool:
        """Try the ways, with the known row in this place: that of a row, or between two."""
        picked, rest = place.start, place.stop
        batch = np.concatenate([rows[:picked], known.row[None], rows[rest:]])
        results = np.empty((len(batch), into.shape[1]))
        for way in work.ways:
            # A function may overwrite what it is given, and there may be another way to try.
            spare = work.rows == "kept" or way is work.ways[-1]
            try:
                _quietly(way.run, batch if spare else batch.copy(), results)
            except Exception as error:  # noqa: BLE001  the rows get their say one by one
                self.refuse(f"a batch raised {type(error).__name__}: {first_line(error)}")
                continue
            if agree(results[picked], known.result, max(self.roundoff, known.roundoff)):
                self.batched, self.way = True, way
                into[:rest], into[rest:] = results[:rest], results[picked + 1 :]
                return True
            self.refuse(DIFFERENT)
        return False

    def works(self, point: Array, width: int, work: Work) -> bool:
        """Whether batches work; a few points near this one are tried if nobody has asked yet."""
        if self.batched is None and self.most > 1:
            # The rows differ a little, so that a batch that mixes its rows up is caught.
            rows = point * (1 + np.arange(FEW)[:, None] * 2.0**-12)
            with work.scope:
                self.tried(rows, np.empty((FEW, width)), work)
        return bool(self.batched)

    def refuse(self, reason: str) -> None:
        self.batched, self.way, self.reason = False, None, reason

    @property
    def note(self) -> str:
        if self.most == 1 and self.used:
            return f"{self.name}: one by one, because one row fills a batch"
        if self.batched is None:
            return ""
        return f"{self.name}: {self.way.name}" if self.way else f"{self.name}: one by one, because {self.reason}"


def agree(batched: Array, alone: Array, roundoff: float) -> bool:
    """Equal within rounding, at the scale of the largest entry; NaN agrees with NaN, and infinities with their like."""
    if np.array_equal(batched, alone, equal_nan=True):
        return True
    finite = np.isfinite(alone)
    if not np.array_equal(batched[~finite], alone[~finite], equal_nan=True):
        return False
    scale = float(np.max(np.abs(alone[finite]), initial=0.0))
    return bool(np.all(np.abs(batched[finite] - alone[finite]) <= 64 * roundoff * scale))


def _quietly(run: Runner, rows: Array, into: Array) -> None:
    """Without warnings: a framework may warn of what it batches slowly, but the user asked for no batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(rows, into)


def outside(raised: Exception | None) -> str:
    """The note on what the function raised at a perturbed point, if it did."""
    return f"fn raised {type(raised).__name__}({first_line(raised)!r}) at a perturbed point" if raised else ""
