"""What the ladder of steps sees of a program: a smooth-looking function around a point, and its rounding floor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.program import Array, Program

# Rows of points are evaluated in chunks of about this many numbers (points and values together): large enough to
# drown the cost of a call, small enough to stay in the cache, and never more than a few vectors when N is huge.
CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class Field:
    """`values` maps rows of points to rows of M numbers; `floor` is the least error each of them can have."""

    point: Array
    value: Array
    floor: Array
    values: Callable[[Array], Array]
    rows: int  # how many points to evaluate at a time


def field_of(program: Program) -> Field:
    """All outputs of the program, each for itself."""
    floor = np.abs(program.value)
    for leaf in program.outputs:
        floor[leaf.span] *= precision.of(leaf.dtype).roundoff
    return Field(program.point, program.value, floor, program.values, _rows(program))


def projected(program: Program, cotangents: Array) -> Field:
    """The outputs combined by each row of `cotangents`: a few numbers, whatever M is.

    Independent roundings add up like a random walk, hence the root of the sum of squares.
    """
    squares = np.zeros(len(cotangents))
    for leaf in program.outputs:
        roundoff = precision.of(leaf.dtype).roundoff
        for row, cotangent in enumerate(cotangents):
            terms = cotangent[leaf.span] * program.value[leaf.span]
            squares[row] += roundoff**2 * float(np.dot(terms, terms))
    transposed = cotangents.T
    return Field(
        program.point,
        program.value @ transposed,
        np.sqrt(squares),
        lambda points: program.values(points) @ transposed,
        _rows(program),
    )


def _rows(program: Program) -> int:
    return max(1, CHUNK // (program.point.size + program.value.size + 1))
