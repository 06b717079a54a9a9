"""What is known of a Jacobian block: all of it, some rows, or some columns. What is not known reads as NaN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gradproof.program import Array, Indices

# A line with fewer nonzeros than one in so many is kept by its nonzeros.
SPARSE = 8


class Sight(Protocol):
    """Numbers of a block, by offsets within its output leaf and its input leaf."""

    def at(self, rows: Indices, columns: Indices) -> Array:
        """(len(rows), len(columns)); NaN where unknown. An index of -1 is unknown."""


@dataclass(frozen=True, eq=False, slots=True)
class Whole:
    """Every entry."""

    matrix: Array

    def at(self, rows: Indices, columns: Indices) -> Array:
        return _masked(self.matrix[np.ix_(rows, columns)], rows, columns)


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """One row or column of a large block. `indices` is None where `values` holds all of it."""

    size: int
    indices: Indices | None
    values: Array

    @classmethod
    def of(cls, vector: Array) -> Line:
        nonzero = np.flatnonzero(vector)
        if nonzero.size * SPARSE < vector.size:
            return cls(vector.size, nonzero, vector[nonzero])
        return cls(vector.size, None, vector.copy())

    def at(self, positions: Indices) -> Array:
        if self.indices is None:
            return np.asarray(self.values[positions])
        if not self.indices.size:
            return np.zeros(positions.size)
        place = np.minimum(np.searchsorted(self.indices, positions), self.indices.size - 1)
        return np.where(self.indices[place] == positions, self.values[place], 0.0)

    def top(self, count: int) -> Indices:
        """Positions of the largest numbers, largest first."""
        best = np.argsort(-np.abs(self.values), kind="stable")[:count]
        best = best[self.values[best] != 0]
        return np.asarray(best if self.indices is None else self.indices[best])


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Some rows, each of them whole."""

    lines: Mapping[int, Line]

    def at(self, rows: Indices, columns: Indices) -> Array:
        result = np.full((rows.size, columns.size), np.nan)
        for k, row in enumerate(rows):
            if int(row) in self.lines:
                result[k] = self.lines[int(row)].at(columns)
        return _masked(result, rows, columns)


@dataclass(frozen=True, eq=False, slots=True)
class Turned:
    """The transpose of another sight."""

    inner: Sight

    def at(self, rows: Indices, columns: Indices) -> Array:
        return self.inner.at(columns, rows).T


def some_columns(lines: Mapping[int, Line]) -> Sight:
    return Turned(Rows(lines))


def _masked(block: Array, rows: Indices, columns: Indices) -> Array:
    if (rows < 0).any() or (columns < 0).any():
        block = block.copy()
        block[rows < 0] = np.nan
        block[:, columns < 0] = np.nan
    return block
