"""What the ladder of steps sees of a program: a smooth-looking function around a point, and its rounding floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.norms import dot, rows_dot
from gradproof.program import Array, Program
from gradproof.reference.steps import step_exponent

# Rows of points are evaluated in chunks of about this many numbers (points and values together): large enough to
# drown the cost of a call, small enough to stay in the cache, and never more than a few vectors when N is huge.
CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Field:
    """`values` maps rows of points to rows of M numbers; `floor` is the least error each of them can have. `seen` maps
    points to those that the program really sees, in its own format; None where they are the same."""

    point: Array
    value: Array
    floor: Array
    values: Callable[[Array], Array]
    rows: int  # how many points to evaluate at a time
    seen: Callable[[Array], Array] | None = None
    highest: int = 12  # log2 of the largest step, relative to the first


def field_of(program: Program) -> Field:
    """All outputs of the program, each for itself."""
    floor = np.abs(program.value)
    for leaf in program.outputs:
        floor[leaf.span] *= precision.of(leaf.dtype).roundoff
    return Field(
        program.point, program.value, floor, program.values, _rows(program), _rounding(program), _highest(program)
    )


def projected(program: Program, cotangent: Array) -> Field:
    """All outputs combined by one cotangent into a single number."""
    return _combined(program, [(slice(0, program.value.size), cotangent)])


def by_leaf(program: Program, cotangent: Array) -> Field:
    """The outputs combined by one cotangent, leaf by leaf: one number each, whatever M is."""
    return _combined(program, [(leaf.span, cotangent[leaf.span]) for leaf in program.outputs])


def _combined(program: Program, parts: Sequence[tuple[slice, Array]]) -> Field:
    """Independent roundings add up like a random walk, hence the root of the sum of squares."""
    roundoff = precision.coarsest(program.outputs).roundoff
    terms = [weights * program.value[span] for span, weights in parts]

    def values(points: Array) -> Array:
        outputs = program.values(points)
        return np.stack([rows_dot(outputs[:, span], weights) for span, weights in parts], axis=1)

    return Field(
        program.point,
        # Summed as the rows are: outputs that do not change must not seem to.
        np.array([rows_dot(program.value[None, span], weights)[0] for span, weights in parts]),
        roundoff * np.sqrt(np.array([dot(one, one) for one in terms])),
        values,
        _rows(program),
        _rounding(program),
        _highest(program),
    )


def _highest(program: Program) -> int:
    """No step is longer than twice the scale of its coordinate: beyond, an oscillation looks like anything."""
    return min(12, 1 - step_exponent(program))


def _rounding(program: Program) -> Callable[[Array], Array] | None:
    """To the formats of the inputs; None if all are double."""
    if precision.coarsest(program.inputs) is precision.DOUBLE:
        return None

    def rounded(points: Array) -> Array:
        result = points.copy()
        for leaf in program.inputs:
            result[:, leaf.span] = precision.of(leaf.dtype).round(result[:, leaf.span])
        return result

    return rounded


def _rows(program: Program) -> int:
    return max(1, CHUNK // (program.point.size + program.value.size + 1))
