"""The numbers of a comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradproof.finding import Place
from gradproof.picture import SIDE, HeatMap, heat_map, in_tolerances, one_in_tolerances, sparse_map
from gradproof.program import Array, Indices

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Entry:
    """One derivative, both ways. `spread` is the half-width of the interval of valid values at a kink, else 0."""

    place: Place
    analytic: float
    numeric: float
    bar: float
    tolerance: float
    spread: float = 0.0

    @property
    def deviation(self) -> float:
        return max(abs(self.analytic - self.numeric) - self.spread, 0.0)

    @property
    def excess(self) -> float:
        """The deviation in units of the tolerance."""
        return one_in_tolerances(self.deviation, self.tolerance)


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Both sides of a comparison, number by number; `spread` is that of an `Entry`, None where all are zero. `where`
    says to which rows and columns of the block the numbers belong, where that is not plain from their shape."""

    analytic: Array
    numeric: Array
    bar: Array
    tolerance: Array
    spread: Array | None = None
    where: tuple[Indices, Indices] | None = None

    def __call__(self) -> Table:
        """A table is its own source."""
        return self

    def entry(self, place: Place, at: tuple[int, ...]) -> Entry:
        """One of them; what it is of is called `place`."""
        spread = () if self.spread is None else (self.spread,)
        numbers = (self.analytic, self.numeric, self.bar, self.tolerance, *spread)
        return Entry(place, *(float(one[at]) for one in numbers))

    @property
    def deviation(self) -> Array:
        deviation: Array = np.abs(self.analytic - self.numeric)
        return deviation if self.spread is None else np.maximum(deviation - self.spread, 0.0)

    @property
    def excess(self) -> Array:
        """The deviation in units of the tolerance."""
        return in_tolerances(self.deviation, self.tolerance)

    @property
    def vanishes(self) -> bool:
        """Whether all numbers are zero within their bars: what is left of them is rounding, and no size."""
        return vanishes(self.numeric, self.bar)

    def picture(self, shape: tuple[int, int], tiles: int = SIDE * SIDE) -> HeatMap:
        """The numbers as a heat map of at most so many tiles; `shape` is that of the block."""
        numbers = (self.analytic, self.numeric, self.bar, self.tolerance)
        if self.where is None:
            return heat_map(self.excess, numbers, tiles)
        return sparse_map(self.excess, numbers, self.where, shape, tiles)

    def joined(self, other: Table) -> Table:
        """Two tables of entries of the same block."""
        assert self.where is not None
        assert other.where is not None
        spreads = [np.zeros_like(one.numeric) if one.spread is None else one.spread for one in (self, other)]
        return Table(
            np.concatenate([self.analytic, other.analytic]),
            np.concatenate([self.numeric, other.numeric]),
            np.concatenate([self.bar, other.bar]),
            np.concatenate([self.tolerance, other.tolerance]),
            np.concatenate(spreads),
            (np.append(self.where[0], other.where[0]), np.append(self.where[1], other.where[1])),
        )


def vanishes(numbers: Array, bar: Array) -> bool:
    """Whether all are zero within their bars, but for what is rounding beside the widest of those."""
    widest = float(np.maximum.reduce(bar, axis=None, initial=0.0))
    return math.isfinite(widest) and not bool((np.abs(numbers) > np.maximum(bar, widest * EPS)).any())
