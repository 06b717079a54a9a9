"""A numeric derivative and how well it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gradproof.program import Array, Indices, Mask

Kinds = NDArray[np.uint8]


class Kind(IntEnum):
    """What the function looks like along a direction, as far as the steps tell."""

    SMOOTH = 0
    KINK = 1  # left and right slopes both exist and differ
    STAIRS = 2  # one slope on a tread, another across the stairs
    NEAR = 3  # smooth, with a kink so near that the steps had to be shortened
    EDGE = 4  # finite on one side only: the point lies on the border of the domain
    SLOW = 5  # the slope settles so slowly as the steps shrink that its limit cannot be told
    STEEP = 6  # the slope grows without bound as the steps shrink
    JUMP = 7  # the function itself jumps here
    ROUGH = 8  # no step resolves a slope: noise, or the function is not finite around the point


@dataclass(frozen=True, slots=True)
class Estimate:
    """Derivatives along k directions of M outputs, all arrays (k, M).

    The true derivative lies within `bar` of `value`; at a kink every number within `spread` (plus bar) of it is a
    valid subgradient, and on stairs both ends of that interval are, but nothing in between. Elsewhere it is zero.
    """

    value: Array
    bar: Array
    spread: Array
    kind: Kinds

    @classmethod
    def smooth(cls, value: Array, bar: Array) -> Estimate:
        return cls(value, bar, np.zeros(value.shape), np.zeros(value.shape, np.uint8))

    @classmethod
    def stacked(cls, parts: Sequence[Estimate]) -> Estimate:
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([one.value for one in parts]),
            np.concatenate([one.bar for one in parts]),
            np.concatenate([one.spread for one in parts]),
            np.concatenate([one.kind for one in parts]),
        )

    def gap(self, claimed: Array) -> Array:
        """How far claimed derivatives are from the nearest valid one, with the sign, as if the bar were zero."""
        apart: Array = claimed - self.value
        if not self.kind.any():
            return apart
        beyond = np.abs(apart) - self.spread
        return np.copysign(1.0, apart) * np.where(self.kind == Kind.STAIRS, beyond, np.maximum(beyond, 0.0))

    def distance(self, claimed: Array) -> Array:
        """The same without the sign."""
        return np.abs(self.gap(claimed))

    def block(self, rows: slice, columns: slice) -> Estimate:
        where = (rows, columns)
        return Estimate(self.value[where], self.bar[where], self.spread[where], self.kind[where])

    def of_rows(self, rows: Indices) -> Estimate:
        return Estimate(self.value[rows], self.bar[rows], self.spread[rows], self.kind[rows])

    def of_outputs(self, some: Indices) -> Estimate:
        return Estimate(self.value[:, some], self.bar[:, some], self.spread[:, some], self.kind[:, some])

    def scaled(self, factor: Array) -> Estimate:
        """Every row divided by its own length: from derivative along a displacement to derivative along a unit."""
        column = factor[:, None]
        return Estimate(self.value * column, self.bar * np.abs(column), self.spread * np.abs(column), self.kind)

    def with_others(self, taken: Mask, others: Estimate) -> Estimate:
        """The entries of another one where they are to be taken."""
        pairs = [(getattr(others, one.name), getattr(self, one.name)) for one in fields(Estimate)]
        return Estimate(*(np.where(taken, new, old) for new, old in pairs))

    def put(self, rows: Indices, other: Estimate) -> None:
        """Overwrite some rows with better ones; used while an estimate is being built, before anyone else sees it."""
        self._put(rows, other)

    def put_outputs(self, some: Indices, other: Estimate) -> None:
        """The same for some outputs."""
        self._put((slice(None), some), other)

    def _put(self, where: Indices | tuple[slice, Indices], other: Estimate) -> None:
        self.value[where] = other.value
        self.bar[where] = other.bar
        self.spread[where] = other.spread
        self.kind[where] = other.kind


@dataclass(frozen=True, slots=True)
class Goal:
    """The bar that is narrow enough: `absolute` (an array for every entry), or `relative` to the derivative itself."""

    absolute: Array
    relative: float

    @classmethod
    def as_known(cls, shape: tuple[int, int], relative: float) -> Goal:
        """Relative to nothing but the derivative itself."""
        return cls(np.zeros(shape), relative)

    def met(self, value: Array, bar: Array) -> Mask:
        return np.asarray(bar <= np.maximum(self.absolute, self.relative * np.abs(value)))

    def of_rows(self, rows: Indices) -> Goal:
        return Goal(self.absolute[rows], self.relative)
