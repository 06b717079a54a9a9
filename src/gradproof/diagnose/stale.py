"""A gradient that is right at another point: a saved tensor was modified, or is left over from another call.

The other point is looked for on a few lines through this one, and among a few points that in-place operations lead to;
it counts only when the numeric derivative there agrees with the analytic one here, entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradproof.diagnose.exhibit import Exhibit, varied
from gradproof.evidence.gathered import Task, restricted
from gradproof.norms import rms
from gradproof.program import Array, Indices
from gradproof.result import Diagnosis

# Columns that are measured at every point tried, and the rows of them that are compared.
COLUMNS = 6
ROWS = 64
FEWEST = 6
# The first look along a line, relative to the size of the inputs; the share of the deviation that it must explain.
FIRST = 1e-3
PROMISING = 0.5
ROUNDS = 6
# The other point must be near: sin is cos at a point that is 1.57 away, and at zero many functions have the derivative
# of their linear part. Relative to the size of the inputs; and the factors of it.
SHIFT = 0.25
FACTORS = (0.2, 5.0)


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """Points x + t * direction, and how to name one."""

    direction: Array
    name: str
    scaling: bool = False

    def near(self, t: float, size: float) -> bool:
        return FACTORS[0] <= 1 + t <= FACTORS[1] if self.scaling else abs(t) <= SHIFT * size

    def text(self, t: float) -> str:
        if self.scaling:
            return f"{self.name} is {1 + t:.4g} times what it is here"
        return f"{self.name} is {abs(t):.4g} {'larger' if t > 0 else 'smaller'} than here"


def stale(task: Task, exhibit: Exhibit) -> Diagnosis | None:
    wrong = exhibit.columns[exhibit.wrong.any(axis=0)]
    if not wrong.size or np.count_nonzero(exhibit.wrong) < FEWEST:
        return None
    # What is right must stay right at the other point.
    right = exhibit.columns[exhibit.telling.any(axis=0) & ~exhibit.wrong.any(axis=0)]
    columns = np.concatenate([_spread(wrong, COLUMNS), _spread(right, COLUMNS // 2)])
    there = exhibit.wrong[:, np.isin(exhibit.columns, columns)].any(axis=1)
    rows = np.concatenate([_spread(exhibit.rows[there], ROWS), _spread(exhibit.rows[~there], ROWS)])
    search = Search(task, exhibit, rows, columns)
    with np.errstate(all="ignore"):
        text = search.found()
    if not text:
        return None
    return Diagnosis(
        "stale",
        f"{exhibit.subject} is that of another point: it is right where {text} (explains all {search.wrong:,} wrong "
        "entries that were looked at)",
        1.0,
        "Look for a saved tensor that is changed in place, shifted or scaled before use, or kept from another call.",
    )


@dataclass(frozen=True, eq=False, slots=True)
class Search:
    """Some rows and columns of one block, measured at one point after another."""

    task: Task
    exhibit: Exhibit
    rows: Indices
    columns: Indices

    @property
    def claimed(self) -> Array:
        return self.exhibit.analytic.at(self.rows, self.columns)

    @property
    def wrong(self) -> int:
        here = self.exhibit.numeric.at(self.rows, self.columns)
        return int(np.count_nonzero(np.abs(self.claimed - here) > self.exhibit.slack(here)))

    def found(self) -> str:
        """Which other point it is, or nothing."""
        known = self.claimed + self.exhibit.numeric.at(self.rows, self.columns)
        if self.wrong < FEWEST or not np.isfinite(known).all() or not varied(self.claimed):
            return ""
        for point, name in self._places():
            if self._agrees(self._measured(point)):
                return name
        here = self._measured(self.task.reference.point)
        for line in self._lines():
            t = self._along(line, here)
            if t:
                return line.text(t)
        return ""

    def _measured(self, point: Array) -> Array:
        """The numeric derivatives at a point. All in one batch: a single call of JAX may compile a loop anew."""
        outputs, columns = self.exhibit.output.start + self.rows, self.columns + self.exhibit.input.start
        steps, each = self.task.steps[columns], np.arange(columns.size)
        both = np.repeat(point[None], 2 * columns.size, axis=0)
        both[each, columns] += steps
        both[columns.size + each, columns] -= steps
        up, down = np.split(self.task.reference.values(both)[:, outputs], 2)
        return np.asarray((up - down).T / (2 * steps))

    def _agrees(self, measured: Array) -> bool:
        return bool((np.abs(measured - self.claimed) <= self.exhibit.slack(measured)).all())

    def _along(self, line: Line, here: Array) -> float:
        """How far along the line the numbers agree; 0 where they do not."""
        start = self.task.reference.point
        t = FIRST * (1.0 if line.scaling else rms(start) or 1.0)
        gap, before, last = self.claimed - here, here, 0.0
        for _ in range(ROUNDS):
            measured = self._measured(start + t * line.direction)
            if self._agrees(measured):
                return t if line.near(t, rms(start)) else 0.0
            slope = (measured - before) / (t - last)
            power = float(np.sum(slope * slope))
            if not (np.isfinite(power) and power > 0):
                return 0.0
            step = float(np.sum(slope * (self.claimed - measured))) / power
            left = rms(self.claimed - measured - step * slope)
            if left > PROMISING * rms(gap):
                return 0.0
            before, last, t = measured, t, t + step
        return 0.0

    def _lines(self) -> Iterator[Line]:
        inputs, point = self.task.reference.inputs, self.task.reference.point
        if len(inputs) > 1:
            yield Line(np.ones_like(point), "every input")
            yield Line(point, "every input", scaling=True)
        for leaf in inputs[:4]:
            yield Line(restricted(np.ones_like(point), leaf.span)[0], leaf.path)
            yield Line(restricted(point, leaf.span)[0], leaf.path, scaling=True)

    def _places(self) -> Iterator[tuple[Array, str]]:
        """Where an operation in place leads to: the output in the input's memory."""
        reference = self.task.reference
        for leaf in reference.inputs[:4]:
            for output in reference.outputs:
                if output.shape == leaf.shape and output.is_complex == leaf.is_complex:
                    point = reference.point.copy()
                    point[leaf.span] = reference.value[output.span]
                    yield point, f"{leaf.path} holds the numbers of {output.path}"


def _spread(offsets: Indices, count: int) -> Indices:
    """At most so many of them, from all over."""
    return (
        offsets[np.unique(np.linspace(0, max(offsets.size - 1, 0), count).astype(np.intp))] if offsets.size else offsets
    )
