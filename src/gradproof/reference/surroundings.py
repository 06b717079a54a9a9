"""Slopes along one coordinate at points around: a kink that does not show along the coordinate itself.

Of three numbers that tie, the middle one does not change when one of them moves, up or down; yet the gradient of a sort
may say that it changes with any of them, as it does at points nearby. Such a kink is believed when slopes around the
point differ as much at a sixteenth of the distance, and the function at the point itself is not noisy.
"""

from __future__ import annotations

import numpy as np

from gradproof.program import Array, Mask
from gradproof.reference.estimate import Estimate, Kind, Kinds
from gradproof.reference.field import Field

# How far the surroundings are, in first steps; and how long a step is there, relative to that.
FAR, NEAR, STEP = 2.0**-4, 2.0**-8, 2.0**-4
# Other coordinates go up with these probabilities, in turn, so that the one in the middle takes every rank among them.
UPWARD = (0.1, 0.3, 0.5, 0.7, 0.9)
TIMES = 8
# Slopes that differ by less than this share of themselves show no kink; noise at the point may make up this share.
NOTABLE, STILL = 0.05, 0.02
# A hull is known to this share of its width.
ROOM = 1e-3
# What rounding makes of a sum of four values, at most.
ROUNDINGS = 64.0
# A kink that is less than this share of how far an output moves is none that a derivative could be excused by.
SHARE = 1e-4


def reconsidered(field: Field, coordinate: int, steps: Array, found: Estimate) -> Estimate:
    """The same as `unfolded`, for outputs that have a hidden kink."""
    plain = ordinary(found.kind[0])
    if not plain.any():
        return found
    hidden = plain & hidden_kinks(field, steps)
    if not hidden.any():
        return found
    return found.with_others(hidden, unfolded(field, coordinate, steps, found))


@np.errstate(invalid="ignore", over="ignore")
def unfolded(field: Field, coordinate: int, steps: Array, found: Estimate) -> Estimate:
    """The same row of slopes (1, M), per step of the coordinate, with the hull of those around where that is a kink."""
    low, high = _hull(field, coordinate, steps, FAR)
    closer = _hull(field, coordinate, steps, NEAR)
    low, high = np.maximum(low, closer[0]), np.minimum(high, closer[1])
    width = high - low
    still = np.logical_and.reduce(
        [np.abs(_slope_at(field, coordinate, steps, t) - found.value[0]) <= STILL * width for t in (NEAR, NEAR * STEP)]
    )
    plain = ordinary(found.kind[0]) & np.isfinite(width)
    kink = plain & still & (width > NOTABLE * np.maximum(np.abs(low), np.abs(high)))
    return Estimate(
        np.where(kink, 0.5 * (low + high), found.value),
        found.bar,
        np.where(kink, (0.5 + ROOM) * width, found.spread),
        np.where(kink, np.uint8(Kind.KINK), found.kind),
    )


def ordinary(kinds: Kinds) -> Mask:
    """Where nothing was seen along the coordinate; a slope of zero never has a bar that is narrow enough."""
    return np.asarray((kinds == Kind.SMOOTH) | (kinds == Kind.ROUGH))


@np.errstate(invalid="ignore", over="ignore")
def hidden_kinks(field: Field, steps: Array) -> Mask:
    """The outputs (M,) that do not move by the sum of two movements, by an amount that falls with the distance, not
    with its square as for a curve and not slower as for noise: they have a kink at the point, along any direction."""
    stream = np.random.default_rng(0)
    found = np.zeros(field.value.size, dtype=bool)
    for _ in range(2):
        one, other = (stream.uniform(-1, 1, steps.size) * steps for _ in range(2))
        (far, _), (near, moved) = (_excess(field, one, other, scale) for scale in (FAR, NEAR))
        fallen = near * (FAR / NEAR)
        least = np.maximum(ROUNDINGS * field.floor, SHARE * moved)
        found |= (fallen > 0.5 * far) & (fallen < 2.0 * far) & (near > least)
    return found


def _excess(field: Field, one: Array, other: Array, scale: float) -> tuple[Array, Array]:
    """How far the outputs are from moving by the sum, and how far they move. One point at a time: they may have a
    million coordinates."""
    excess, moved = field.value.copy(), np.zeros_like(field.value)
    for moves in ((one,), (other,), (one, other)):
        point = field.point[None].copy()
        for move in moves:
            point += scale * move
        values = field.values(point)[0]
        if len(moves) == 1:
            moved += np.abs(values - field.value)
            excess -= values
        else:
            excess += values
    return np.abs(excess), moved


def _slope_at(field: Field, coordinate: int, steps: Array, length: float) -> Array:
    points = np.repeat(field.point[None], 2, axis=0)
    points[:, coordinate] += np.array([length, -length]) * steps[coordinate]
    up, down = field.values(points)
    return np.asarray((up - down) / (2.0 * length))


def _hull(field: Field, coordinate: int, steps: Array, far: float) -> tuple[Array, Array]:
    """The lowest and the highest slope, (M,) each, at points where the others have moved by `far` of their steps."""
    stream = np.random.default_rng(coordinate)
    low, high = np.full(field.value.size, np.inf), np.full(field.value.size, -np.inf)
    upward = np.tile(UPWARD, TIMES)[:, None]
    batch = max(1, field.rows // 2)
    for first in range(0, len(upward), batch):
        some = upward[first : first + batch]
        shape = (len(some), steps.size)
        moves = np.where(stream.random(shape) < some, far, -far) * stream.uniform(0.5, 1.0, shape) * steps
        moves[:, coordinate] = 0.0
        points = np.repeat(field.point + moves, 2, axis=0)
        points[0::2, coordinate] += far * STEP * steps[coordinate]
        points[1::2, coordinate] -= far * STEP * steps[coordinate]
        values = field.values(points)
        slopes = (values[0::2] - values[1::2]) / (2.0 * far * STEP)
        low, high = np.minimum(low, slopes.min(axis=0)), np.maximum(high, slopes.max(axis=0))
    return low, high
