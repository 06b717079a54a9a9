"""Stairs of a known height made smooth: the mean of a function over points that are some of its treads apart.

A function that is computed finely and then rounded to half precision moves in stairs of that format, and a difference
over one step is off by a whole tread. Over points nearby the rounding is another one each time, and its mean falls with
the root of their number. The points come in pairs on both sides, so that a slope is not shifted; what the mean itself
makes of a slope that changes falls with the square of how far they are, and the steps are much longer than that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradproof.program import Array
from gradproof.reference.field import Field

# How many points the mean is taken of, how many treads they are away at most, and how much longer a step is at least.
POINTS, AWAY, LONGER = 32, 4.0, 8.0
# Numbers that move by so many roundings between the points are rounded anew at each of them.
MOVED = 4.0


def blurred(field: Field, treads: Array) -> Field:
    """The field of the means. A number that does not move from one point to the next keeps its rounding."""
    drawn = AWAY * treads * np.random.default_rng(0).uniform(-1.0, 1.0, (POINTS // 2, treads.size))
    around = np.concatenate([drawn, -drawn])
    seen = field.values(field.point + around)
    moved = np.ptp(seen, axis=0) >= MOVED * field.floor

    def values(points: Array) -> Array:
        found = field.values((points[:, None] + around).reshape(-1, points.shape[1]))
        return np.asarray(found.reshape(len(points), POINTS, -1).mean(axis=1))

    return replace(
        field,
        value=seen.mean(axis=0),
        values=values,
        rows=max(1, field.rows // POINTS),
        floor=np.where(moved, field.floor / np.sqrt(POINTS), field.floor),
    )


def shortest(treads: Array, displacements: Array) -> int:
    """log2 of the shortest step along all of these that is so much longer than the points are away."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(displacements == 0, 0.0, LONGER * AWAY * treads / np.abs(displacements))
    return int(np.ceil(np.log2(share.max())))
