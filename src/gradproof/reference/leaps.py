"""Whether a function leaps between treads that slope, so that short steps see a slope that is not its own.

Where large terms cancel, as in (1 - cos x) / x at 1e-6, what is left moves by their last digit, and that is divided by
something smooth. Steps shorter than a tread see the slope of what divides, all alike and without noise. Where long ones
say otherwise, the way between them is halved, down to next to nothing, always towards the half that leads away from the
slope: what is still left there is a leap, as an oscillation or a kink goes away with the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradproof.precision import DOUBLE
from gradproof.program import Array, Indices, Mask
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import Field
from gradproof.reference.noise import Rung

# How often the way is halved.
HALVINGS = 24
# Leaps are no smaller than this share of the noise over long steps, and more than so many roundings of the value.
NOISE, ROUNDINGS = 1 / 16, 64.0
# The size of the argument in terms of the longest step, and by how many roundings what cancels there leaps.
ARGUMENT, LAST_DIGITS = 16.0, 8.0


@np.errstate(invalid="ignore", divide="ignore")  # the square of a tiny step is zero, and a leap may have any size
def leaping(field: Field, displacements: Array, rungs: Sequence[Rung], found: Estimate) -> Mask:
    """Where the longest of the rungs contradicts the slope that was found, because the function leaps on the way. What
    cancels at small arguments is as large as one, like exp x, and what divides is no smaller than the square of the
    argument; larger leaps are those of a quantiser, whose treads are meant."""
    long = max(rungs, key=lambda rung: rung.exponent)
    ways = displacements * 2.0**long.exponent
    least = np.maximum(NOISE * long.slopes.sigma, ROUNDINGS * field.floor)
    most = LAST_DIGITS * DOUBLE.roundoff / (ARGUMENT * np.abs(ways).max(axis=1, keepdims=True)) ** 2
    off = (found.kind == Kind.SMOOTH) | (found.kind == Kind.NEAR)
    off &= (np.abs(long.slopes.central - found.value) > found.bar) & (long.slopes.sigma > least) & (least <= most)
    if field.seen is not None or field.treads is not None or not off.any():
        return np.zeros_like(off)  # stairs of a format are known by their treads
    rows, outputs = np.nonzero(off)
    left = np.zeros(off.shape)
    left[off] = np.abs(_left_over(field, ways[rows], outputs, found.value[off] * 2.0**long.exponent))
    return np.asarray(off & (left >= least) & (left <= most))


def _left_over(field: Field, ways: Array, outputs: Indices, rises: Array) -> Array:
    """By how much each output still departs from its straight rise, over the last part of its way."""
    each = np.arange(len(ways))

    def departed(at: Array) -> Array:
        return field.values(field.point + at[:, None] * ways)[each, outputs] - field.value[outputs] - at * rises

    start, end = np.zeros(len(ways)), np.ones(len(ways))
    before, after = departed(start), departed(end)
    for _ in range(HALVINGS):
        middle = 0.5 * (start + end)
        there = departed(middle)
        first = np.abs(there - before) >= np.abs(after - there)
        start, before = np.where(first, start, middle), np.where(first, before, there)
        end, after = np.where(first, middle, end), np.where(first, there, after)
    return after - before
