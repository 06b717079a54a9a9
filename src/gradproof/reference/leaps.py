"""Whether a function leaps between treads that slope, so that short steps see a slope that is not its own.

Where large terms cancel, as in (1 - cos x) / x at 1e-6 or x (1 + erf x) at -8, what is left moves by their last digit,
times something smooth. Steps shorter than a tread see the slope of that alone, all alike and without noise. Where the
first of the longer ones says otherwise, the way there is halved, down to next to nothing, always towards the half that
leads away from the slope: what is still left there is a leap, as an oscillation or a kink goes away with the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradproof.precision import DOUBLE
from gradproof.program import Array, Indices
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import Field
from gradproof.reference.noise import Rung

# How often the way is halved.
HALVINGS = 24
# Leaps are no smaller than this share of what is left over at such steps, which may be curvature, and more than so many
# roundings of the value.
NOISE, ROUNDINGS = 2.0**-10, 64.0
# What short steps may miss is a few leaps.
FEW = 2.0
# The size of the argument in terms of the longest step, and by how many roundings what cancels there leaps.
ARGUMENT, LAST_DIGITS = 16.0, 8.0


@np.errstate(invalid="ignore", divide="ignore", over="ignore")  # at tiny arguments a leap may have any size
def leaping(field: Field, displacements: Array, rungs: Sequence[Rung], found: Estimate) -> Array:
    """By how much the function leaps, (k, M), where the rungs contradict the slope that was found because of that; 0
    elsewhere. What cancels is as large as one, like exp x, and what it is divided by or multiplied with is no more than
    the square of the argument; larger leaps are those of a quantiser, whose treads are meant."""
    heights = np.zeros(found.value.shape)
    if field.seen is not None or field.treads is not None:
        return heights  # stairs of a format are known by their treads
    size = ARGUMENT * np.abs(displacements * 2.0 ** rungs[-1].exponent).max(axis=1, keepdims=True)
    most = LAST_DIGITS * DOUBLE.roundoff * np.maximum(size, 1.0 / size) ** 2
    asked = np.isin(found.kind, (Kind.SMOOTH, Kind.NEAR, Kind.ROUGH)) & np.isfinite(found.bar)
    asked &= rungs[0].slopes.sigma <= ROUNDINGS * field.floor  # on a tread there is no noise
    lengths, leasts = np.zeros_like(heights), np.zeros_like(heights)
    for rung in rungs:
        least = np.maximum(NOISE * rung.slopes.sigma, ROUNDINGS * field.floor)
        off = asked & (np.abs(rung.slopes.central - found.value) > found.bar + rung.floor)
        off &= (rung.slopes.sigma > least) & (least <= most)
        lengths[off], leasts[off] = 2.0**rung.exponent, least[off]
        asked &= ~off
    off = lengths > 0
    if off.any():
        rows, outputs = np.nonzero(off)
        length = lengths[off]
        left = _left_over(field, displacements[rows] * length[:, None], outputs, found.value[off] * length)
        leaps = (left >= leasts[off]) & (left <= np.broadcast_to(most, off.shape)[off])
        leaps &= left > length * found.bar[off]  # others the bar knows of
        heights[off] = np.where(leaps, FEW * left, 0.0)
    return heights


def _left_over(field: Field, ways: Array, outputs: Indices, rises: Array) -> Array:
    """By how much each output still departs from its straight rise, over the last part of its way: to the side where it
    departs more."""
    each = np.arange(len(ways))

    def departed(at: Array) -> Array:
        return field.values(field.point + at[:, None] * ways)[each, outputs] - field.value[outputs] - at * rises

    start, end = np.zeros(len(ways)), np.ones(len(ways))
    before, after, behind = start, departed(end), departed(-end)
    back = np.abs(behind) > np.abs(after)
    end, after = np.where(back, -end, end), np.where(back, behind, after)
    for _ in range(HALVINGS):
        middle = 0.5 * (start + end)
        there = departed(middle)
        first = np.abs(there - before) >= np.abs(after - there)
        start, before = np.where(first, start, middle), np.where(first, before, there)
        end, after = np.where(first, middle, end), np.where(first, there, after)
    return np.abs(after - before)
