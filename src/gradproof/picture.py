"""What a report shows of the numbers: heat maps small enough to keep, and traces over the step. Data only.

A block of the Jacobian may have a million entries. Its heat map has at most 64 x 64 tiles, and each tile stands for its
worst entry, so that a single bad one stays visible however large the block is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gradproof.errors import UsageError
from gradproof.program import Array

SIDE = 64
# Numbers in a heat map are for reading: these many digits of the derivatives, and of everything else.
DIGITS, FEW_DIGITS = 7, 3


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table of `shape` in `grid` tiles, row by row. Of each tile's worst entry: its offset in the table (no offsets
    where every tile is one entry), |analytic - numeric| in units of the tolerance, and the four numbers."""

    shape: tuple[int, int]
    grid: tuple[int, int]
    offset: tuple[int, ...]
    excess: tuple[float, ...]
    analytic: tuple[float, ...]
    numeric: tuple[float, ...]
    bar: tuple[float, ...]
    tolerance: tuple[float, ...]

    @property
    def whole(self) -> bool:
        """Whether every entry is shown."""
        return self.shape == self.grid

    def entry(self, tile: int) -> tuple[int, int]:
        """Row and column, in the table, of a tile's worst entry."""
        row, column = divmod(self.offset[tile] if self.offset else tile, max(self.shape[1], 1))
        return row, column

    def within(self, tiles: int) -> HeatMap:
        """The same in at most so many tiles; itself if it is as small as that."""
        grid = grid_for(self.grid, tiles)
        if grid == self.grid:
            return self
        excess = np.array(self.excess).reshape(self.grid)
        chosen = _worst(excess, grid).ravel()
        offsets = self.offset or range(len(self.excess))
        taken = {
            name: tuple(getattr(self, name)[tile] for tile in chosen)
            for name in ("excess", "analytic", "numeric", "bar", "tolerance")
        }
        return replace(self, grid=grid, offset=tuple(offsets[tile] for tile in chosen), **taken)


@dataclass(frozen=True, slots=True)
class Digest:
    """What a stored report keeps of a comparison instead of its table. `excess` is the largest deviation in units of
    the tolerance, `digits` the correct digits shown."""

    digits: float
    excess: float
    picture: HeatMap

    def __call__(self) -> NoReturn:
        raise UsageError(
            "a stored report keeps no full tables; read `comparison.picture()`, or run the check again: "
            "gradproof.check(fn, args, seed=result.seed)"
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """One derivative at steps over many decades: `slopes` with their error bars, from both sides and from each alone,
    and the Taylor remainder |f(x + h u) - f(x) - h J u|, the larger of both signs of h.

    `subject` names the derivative. `analytic`, `numeric`, `bar`, `spread`, `tolerance` are those of an entry;
    `rounding` is the error that the function's own rounding makes in the remainder. `kinks` are the distances from the
    point at which a kink is met: 0 is at the point itself.
    """

    subject: str
    order: int
    mode: str
    analytic: float
    numeric: float
    bar: float
    spread: float
    tolerance: float
    steps: tuple[float, ...]
    slopes: tuple[float, ...]
    bars: tuple[float, ...]
    right: tuple[float, ...]
    left: tuple[float, ...]
    remainders: tuple[float, ...]
    rounding: float
    kinks: tuple[float, ...] = ()


def heat_map(excess: Array, numbers: tuple[Array, Array, Array, Array], tiles: int = SIDE * SIDE) -> HeatMap:
    """Reduce a table; `numbers` are analytic, numeric, error bar and tolerance, of the same shape as `excess`."""
    table = np.atleast_2d(excess)
    shape = (table.shape[0], table.shape[1])
    grid = grid_for(shape, tiles)
    chosen = _worst(table, grid).ravel()
    analytic, numeric, bar, tolerance = (np.broadcast_to(one, excess.shape).reshape(-1)[chosen] for one in numbers)
    return HeatMap(
        shape,
        grid,
        () if grid == shape else tuple(int(one) for one in chosen),
        _rounded(table.reshape(-1)[chosen], FEW_DIGITS),
        _rounded(analytic, DIGITS),
        _rounded(numeric, DIGITS),
        _rounded(bar, FEW_DIGITS),
        _rounded(tolerance, FEW_DIGITS),
    )


def sparse_map(
    excess: Array,
    numbers: tuple[Array, Array, Array, Array],
    where: tuple[NDArray[np.intp], NDArray[np.intp]],
    shape: tuple[int, int],
    tiles: int = SIDE * SIDE,
) -> HeatMap:
    """The same of a table that holds some entries of a block of `shape`; all others are zero on both sides."""
    grid = grid_for(shape, tiles)
    rows, columns = where
    # The tile whose cut in `_worst` holds the entry: the largest k with size * k // grid <= index.
    down = ((rows + 1) * grid[0] - 1) // max(shape[0], 1)
    across = ((columns + 1) * grid[1] - 1) // max(shape[1], 1)
    worst = np.full(grid[0] * grid[1], -1)
    order = np.argsort(excess, kind="stable")
    worst[(down * grid[1] + across)[order]] = order  # of several in one tile, the last stays: the largest
    known = worst >= 0
    starts = np.add.outer(_cuts(shape[0], grid[0]) * shape[1], _cuts(shape[1], grid[1])).ravel()
    offset = np.where(known, (rows * shape[1] + columns)[worst] if rows.size else 0, starts)

    def taken(array: Array, digits: int) -> tuple[float, ...]:
        return _rounded(np.where(known, array[worst], 0.0) if array.size else np.zeros(known.size), digits)

    analytic, numeric, bar, tolerance = numbers
    return HeatMap(
        shape,
        grid,
        () if grid == shape else tuple(int(one) for one in offset),
        taken(excess, FEW_DIGITS),
        taken(analytic, DIGITS),
        taken(numeric, DIGITS),
        taken(bar, FEW_DIGITS),
        taken(tolerance, FEW_DIGITS),
    )


def _cuts(size: int, count: int) -> NDArray[np.intp]:
    """Where each of `count` tiles begins."""
    return np.arange(count) * size // max(count, 1)


def grid_for(shape: tuple[int, int], tiles: int) -> tuple[int, int]:
    """At most `tiles` tiles, at most 64 a side, the longer side cut first."""
    rows, columns = min(shape[0], SIDE), min(shape[1], SIDE)
    while rows * columns > max(tiles, 1):
        if rows > columns:
            rows = (rows + 1) // 2
        else:
            columns = (columns + 1) // 2
    return rows, columns


def allotted(sizes: Sequence[int], total: int) -> int:
    """The most tiles that each picture may have so that together they have about `total`."""
    left = total
    for rank, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - rank)
        if size > share:
            return max(share, 1)
        left -= size
    return SIDE * SIDE


def in_tolerances(deviation: Array, tolerance: Array) -> Array:
    """|analytic - numeric| / tolerance; infinite where a number is missing, or no tolerance was granted."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(deviation == 0, 0.0, deviation / tolerance)
    return np.where(np.isnan(ratio), np.inf, ratio)


def one_in_tolerances(deviation: float, tolerance: float) -> float:
    """The same of one number."""
    if deviation == 0:
        return 0.0
    ratio = deviation / tolerance if tolerance else math.inf
    return math.inf if math.isnan(ratio) else ratio


def _worst(excess: Array, grid: tuple[int, int]) -> NDArray[np.intp]:
    """The offset of each tile's largest number."""
    rows, columns = excess.shape
    if (rows, columns) == grid or not excess.size:
        return np.arange(grid[0] * grid[1]).reshape(grid)
    down, across = [*_cuts(rows, grid[0]), rows], [*_cuts(columns, grid[1]), columns]
    result = np.empty(grid, np.intp)
    for i in range(grid[0]):
        for j in range(grid[1]):
            tile = excess[down[i] : down[i + 1], across[j] : across[j + 1]]
            row, column = divmod(int(np.argmax(tile)), tile.shape[1])
            result[i, j] = (down[i] + row) * columns + across[j] + column
    return result


def _rounded(numbers: Array, digits: int) -> tuple[float, ...]:
    return tuple(float(f"{one:.{digits}g}") for one in numbers.tolist())
