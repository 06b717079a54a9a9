"""The tread that a point lies on, in float32: the numbers next to it over which a result does not move at all.

A quantiser whose stairs are as fine as some roundings of the format looks much like a computation that rounds inside.
But what is left of numbers of the format when larger ones cancel moves by multiples of their spacing, a power of two;
a quantiser by what it likes. Where the point lies on a tread of such stairs, which the slope across them should have
left long ago, zero is what its neighbours say as well, and nobody knows which of the two is meant.
"""

from __future__ import annotations

import numpy as np

from gradproof.precision import DOUBLE, SINGLE, of
from gradproof.program import Array, Mask, Program, leaf_at
from gradproof.reference.field import Field
from gradproof.sizes import size_of

# So many numbers away from the point one looks, on either side.
AWAY = np.unique(np.round(np.exp2(np.arange(0.0, 16.25, 0.25))))
# The last operation rounds to treads of two roundings; a result that is made of few has treads of some.
ROUNDINGS = 8.0
# Multiples of a power of two that is so many times the spacing of the result are no accident.
COARSE = 4.0


def on_tread(program: Program, field: Field, coordinate: int, slope: Array) -> Mask:
    """Where the outputs of `field` (M,) stay the same around the point, though by this slope along the coordinate they
    should have moved by more than some roundings."""
    if of(leaf_at(program.inputs, coordinate).dtype) is not SINGLE:
        return np.zeros(slope.shape, dtype=bool)
    spacing = float(SINGLE.spacing(program.point[coordinate]))
    length, step = np.zeros(slope.shape), np.full(slope.shape, np.inf)
    for side in (-1.0, 1.0):
        points = np.repeat(field.point[None], AWAY.size, axis=0)
        points[:, coordinate] += side * AWAY * spacing
        moves = field.values(points) - field.value
        length += spacing * np.max(AWAY[:, None] * np.logical_and.accumulate(moves == 0), axis=0)
        step = np.minimum(step, np.min(_powers(moves), axis=0))
    # A number that is nearly zero may be left of such as the others are.
    rounding = np.maximum(field.floor, SINGLE.roundoff * size_of(program))
    left_over = step >= COARSE * SINGLE.spacing(field.value)
    return np.asarray((np.abs(slope) * length > ROUNDINGS * rounding) & ~left_over)


def _powers(numbers: Array) -> Array:
    """The largest power of two that each is a multiple of; of zero, infinity."""
    significands, exponents = np.frexp(np.nan_to_num(numbers, posinf=1.0, neginf=1.0))
    whole = np.ldexp(significands, DOUBLE.bits).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(float), exponents - DOUBLE.bits)
    return np.asarray(np.where(numbers == 0, np.inf, lowest))
