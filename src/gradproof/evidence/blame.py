"""From a group of columns in which some outputs disagree to the columns that are to blame, all outputs at once.

The columns of the group are numbered, and for every bit of the number those that have it are moved. An output with one
wrong derivative deviates with the bits of its number, and agrees with the others: log2(columns) pairs of evaluations
tell the column of every such output. Where several derivatives of one output are wrong the bits make no sense; then
the larger half is followed, one output at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradproof.program import Array, Indices
from gradproof.reference.field import Field, only
from gradproof.reference.glance import ENTRY, glance

# A deviation is there or not when it is within this fraction of all of it, or of nothing.
CLEARLY = 0.25
# So many outputs are followed one by one.
FOLLOWED = 4
NOBODY = -1


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Columns that move together: `lengths` (N,), zero for all others. `expected(lengths)` is what all outputs should
    change by if only these columns move, each by its length."""

    field: Field
    columns: Indices
    lengths: Array
    expected: Callable[[Array], Array]

    def without(self, column: int) -> Group:
        """The same with one column at rest."""
        lengths = self.lengths.copy()
        lengths[column] = 0.0
        return Group(self.field, self.columns[self.columns != column], lengths, self.expected)

    def deviation(self, of: int) -> float:
        """Of one output, when all columns move."""
        output = np.array([of])
        return float(_deviation(self, only(self.field, output), self.columns, output)[0])


def blamed(group: Group, outputs: Indices, deviation: Array) -> Indices:
    """For each of these outputs, which deviate by so much when all columns move, a column; NOBODY where none stands
    out."""
    count = group.columns.size
    number = np.zeros(outputs.size, dtype=np.intp)
    clear = np.ones(outputs.size, dtype=bool)
    field = only(group.field, outputs)
    for bit in range(max(count - 1, 0).bit_length()):
        some = group.columns[(np.arange(count) >> bit) & 1 == 1]
        share = _deviation(group, field, some, outputs) / deviation
        with np.errstate(invalid="ignore"):
            present, absent = np.abs(share - 1.0) < CLEARLY, np.abs(share) < CLEARLY
        clear &= present | absent
        number += np.where(present, 1 << bit, 0)
    clear &= number < count
    found = np.where(clear, group.columns[np.minimum(number, count - 1)], NOBODY)
    for place in np.flatnonzero(~clear)[:FOLLOWED]:
        found[place] = followed(group, int(outputs[place]), float(deviation[place]))
    return found


def followed(group: Group, of: int, deviation: float) -> int:
    """The column to blame for one output: always into the half that deviates more."""
    output = np.array([of])
    field, columns = only(group.field, output), group.columns
    while columns.size > 1:
        left, right = columns[: columns.size // 2], columns[columns.size // 2 :]
        part = float(_deviation(group, field, left, output)[0])
        if not np.isfinite(part):
            return NOBODY
        columns, deviation = (left, part) if abs(part) >= abs(deviation - part) else (right, deviation - part)
    return int(columns[0])


def _deviation(group: Group, field: Field, columns: Indices, outputs: Indices) -> Array:
    lengths = np.zeros_like(group.lengths)
    lengths[columns] = group.lengths[columns]
    slope = glance(field, lengths[None], ENTRY).slope[0]
    return np.asarray(group.expected(lengths)[outputs] - slope)
