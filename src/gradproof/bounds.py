"""Lower and upper bounds of arguments, given by path and laid out over the coordinates of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradproof import precision
from gradproof.errors import UsageError
from gradproof.paths import matching
from gradproof.program import Array, Leaf, Program, leaf_at

EXAMPLE = "bounds=(0.0, None), or bounds={'args[0]': (0.0, 1.0)}"


@dataclass(frozen=True, eq=False)
class Bound:
    """`pattern` names arguments; `low` and `high` are numbers, arrays of the argument's shape, or None for open."""

    pattern: str
    low: Any
    high: Any


def validated(bounds: object) -> tuple[Bound, ...]:
    """What the user passed as `bounds`."""
    if bounds is None:
        return ()
    named = bounds if isinstance(bounds, Mapping) else {"*": bounds}
    found = []
    for pattern, pair in named.items():
        if not isinstance(pattern, str) or not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise UsageError(f"bounds={bounds!r} is not understood; write a pair (low, high): {EXAMPLE}")
        try:
            low, high = (None if side is None else np.asarray(side, dtype=np.float64) for side in pair)
        except (TypeError, ValueError) as error:
            raise UsageError(f"bounds={bounds!r} are no numbers; write {EXAMPLE}") from error
        if low is not None and high is not None and not (low < high).all():
            raise UsageError(f"bounds={bounds!r} leave no room: low must be less than high, as in {EXAMPLE}")
        found.append(Bound(pattern, low, high))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of every coordinate (N,), infinite where there are none."""

    low: Array
    high: Array

    def padded(self, size: int) -> Limits:
        """For a program with more coordinates, which are free."""
        more = np.full(size - self.low.size, np.inf)
        return Limits(np.concatenate([self.low, -more]), np.concatenate([self.high, more]))

    def inside(self, points: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows are."""
        return np.asarray(((points >= self.low) & (points <= self.high)).all(axis=1))

    def shortened(self, steps: Array) -> Array:
        """Powers of two such that a step fits at least to one side: a random direction is up to 1.5 times as long."""
        room = (self.high - self.low) / 4.0
        return np.where(steps <= room, steps, np.exp2(np.floor(np.log2(room))))

    def pressed(self, point: Array, direction: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """The coordinates (N,) that cannot move both ways."""
        reach = np.abs(direction)
        return np.asarray((point - reach < self.low) | (point + reach > self.high))

    def inward(self, point: Array, direction: Array) -> Array:
        """The same lengths, each to the side where there is room."""
        return np.where(point + np.abs(direction) <= self.high, np.abs(direction), -np.abs(direction))


def limits_of(program: Program, bounds: Sequence[Bound]) -> Limits | None:
    """None where nothing is bounded. Cotangents of a gradient program never are."""
    if not bounds:
        return None
    own = [leaf for leaf in program.inputs if not leaf.path.startswith("cotangent(")]
    limits = Limits(np.full(program.point.size, -np.inf), np.full(program.point.size, np.inf))
    for bound in bounds:
        for path in matching(bound.pattern, [leaf.path for leaf in own], "bounds"):
            leaf = next(leaf for leaf in own if leaf.path == path)
            if leaf.is_complex:
                if bound.pattern == "*":
                    continue
                raise UsageError(f"bounds of {path}: it is complex, and has no order; leave it out of bounds=")
            limits.low[leaf.span] = _laid_out(bound.low, leaf, -np.inf)
            limits.high[leaf.span] = _laid_out(bound.high, leaf, np.inf)
    outside = np.flatnonzero((program.point < limits.low) | (program.point > limits.high))
    if outside.size:
        where = int(outside[0])
        raise UsageError(
            f"{leaf_at(program.inputs, where).spot(where)} is {program.point[where]:g}, outside of its bounds "
            f"({limits.low[where]:g}, {limits.high[where]:g}); move the point inside, or write wider bounds="
        )
    return limits


def _laid_out(side: Array | None, leaf: Leaf, otherwise: float) -> Array:
    """In the leaf's own format: a float32 argument of 0.1 lies on a bound of 0.1."""
    if side is None:
        return np.full(leaf.size, otherwise)
    try:
        return precision.of(leaf.dtype).round(np.broadcast_to(side, leaf.shape).ravel())
    except ValueError as error:
        raise UsageError(
            f"bounds of {leaf.path} have shape {side.shape}, the argument {leaf.shape}; write numbers, or arrays of "
            "that shape"
        ) from error
