"""The numbers next to the point, in a format so coarse that no step of the ladder reaches them.

The shortest useful step in half precision is so long that a function may turn round within it, and a ladder of such
steps sees another slope with confidence. The neighbouring numbers of the format are as near as one can look: what they
say is blurred by rounding, but where it does not meet what the ladder says, the ladder is wrong. And where the function
moves from one number to the next by more than rounding explains, nothing between them is known at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.program import Array, Mask
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import Field
from gradproof.reference.stencil import FLOOR_FACTOR, sample, spread_of_difference, spread_of_residual

# Where the next number is nearer than this share of the first step, the ladder gets there by itself.
COARSE = 2.0**-8
# One, two and three numbers away.
AWAY = (1.0, 2 / 3, 1 / 3)
# Movement of so many roundings from one number to the next is the function's own.
ROUNDINGS = 8.0


@dataclass(frozen=True, slots=True)
class Nearby:
    """The slope over the next numbers, its bar, and where the function has a life of its own between them; (k, M)."""

    slope: Array
    bar: Array
    restless: Mask


def held_against(field: Field, displacements: Array, found: Estimate) -> Estimate:
    """What the ladder found, or less where the numbers next to the point contradict it. Of single coordinates only."""
    spacings = _spacings(field, displacements)
    rows = np.flatnonzero(spacings)
    if not rows.size:
        return found
    far = found.of_rows(rows)
    nearby = _look(field, displacements[rows], spacings[rows])
    apart = far.distance(nearby.slope)
    with np.errstate(invalid="ignore"):
        refuted = ~(apart <= nearby.bar + far.bar) & ~nearby.restless
    bar = np.where(nearby.restless, np.fmax(far.bar, apart + nearby.bar), far.bar)
    found.put(
        rows,
        Estimate(
            np.where(refuted, nearby.slope, far.value),
            np.where(refuted, nearby.bar, bar),
            np.where(refuted, 0.0, far.spread),
            np.where(refuted | nearby.restless, np.uint8(Kind.ROUGH), far.kind),
        ),
    )
    return found


def _spacings(field: Field, displacements: Array) -> Array:
    """How far it is from one number to the next along each displacement; 0 where that does not matter."""
    result = np.zeros(len(displacements))
    if field.seen is None and field.treads is None:
        return result
    for row in np.flatnonzero(np.count_nonzero(displacements, axis=1) == 1):
        result[row] = _spacing(field, displacements[row])
    result[result <= COARSE] = 0.0
    return result


def _spacing(field: Field, displacement: Array) -> float:
    """Where only the results are so coarse: how far the arguments would be from each other if they were, too."""
    if field.treads is not None:
        return float(np.max(field.treads[displacement != 0] / np.abs(displacement[displacement != 0])))
    assert field.seen is not None
    for length in COARSE * 2.0 ** np.arange(1 - np.log2(COARSE)):
        moves = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])[:, None] * (length * displacement)
        points = field.point + moves
        if (field.seen(points) == points).all():
            return float(length)
    return 0.0


@np.errstate(invalid="ignore", over="ignore")
def _look(field: Field, displacements: Array, spacings: Array) -> Nearby:
    """Slopes are per displacement. Values are rounded in proportion to themselves, not to that at the point."""
    samples = sample(field, displacements * (3.0 * spacings[:, None]), AWAY)
    up, down = samples[0::2], samples[1::2]
    steps = np.array(AWAY)[:, None, None]
    slopes = (up - down) / (2.0 * steps)
    bends = up + down - 2.0 * field.value
    ratio = (AWAY[2] / AWAY[0]) ** 2
    residual = np.abs(bends[0] - bends[2] / ratio) / spread_of_residual(ratio)
    unlike = np.abs(slopes[2] - slopes[1]) / spread_of_difference(*AWAY[1:])
    rounding = _relative(field) * np.abs(samples).max(axis=0)
    noise = np.maximum(residual, np.maximum(unlike, FLOOR_FACTOR * rounding))
    scale = 1.0 / (3.0 * spacings[:, None])
    restless = ~(np.maximum(residual, unlike) <= ROUNDINGS * rounding)
    return Nearby(slopes[2] * scale, (np.abs(slopes[2] - slopes[1]) + noise / AWAY[2]) * scale, restless)


def _relative(field: Field) -> float:
    """One rounding of a value."""
    shares = field.floor[field.value != 0] / np.abs(field.value[field.value != 0])
    return float(np.max(shares, initial=0.0)) or COARSE
