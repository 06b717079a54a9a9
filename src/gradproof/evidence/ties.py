"""Coordinates that share a kink, judged together: each of their derivatives may be valid, and all of them not.

At a tie of two numbers their maximum allows 0 to 1 along either, yet a subgradient of it adds up to 1: along (1, 1) it
is smooth. In general a subgradient g obeys f'(x; v) >= g.v >= -f'(x; -v) along every direction v where the function is
convex or concave. Where it is neither, that holds if the slope along v is the same all around the point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradproof.evidence.gathered import Task
from gradproof.evidence.wording import tie_mismatch
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Indices, Mask, leaf_at
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.field import Field
from gradproof.result import Finding, Place

# So many outputs with a tie are looked at, picked from all over.
OUTPUTS = 16
# Lengths of the steps from the point itself; how far away its surroundings are, and the step there: in first steps.
FROM_THE_POINT = (2.0**-4, 2.0**-8, 2.0**-12)
AROUND, STEP_THERE = 2.0**-4, 2.0**-10
# Points around it: so many random ones with their mirror images, and beside so many coordinates.
RANDOM, SINGLE = 8, 12
# Less of the slopes involved is no contradiction.
CLEAR = 1e-3


@dataclass(frozen=True, slots=True)
class Tie:
    """One output and the coordinates at which it has a kink; the hull of each is `value` +- `spread`."""

    output: int
    coordinates: Indices
    value: Array
    spread: Array


def ties_of(numeric: Estimate) -> list[Tie]:
    """Of a whole Jacobian, (N, M): the outputs that have a kink along two coordinates or more."""
    kinked = numeric.kind == Kind.KINK
    outputs = np.flatnonzero(np.count_nonzero(kinked, axis=0) > 1)
    if outputs.size > OUTPUTS:
        outputs = outputs[np.linspace(0, outputs.size - 1, OUTPUTS).astype(int)]
    rows = [(int(j), np.flatnonzero(kinked[:, j])) for j in outputs]
    return [Tie(j, i, numeric.value[i, j], numeric.spread[i, j]) for j, i in rows]


@np.errstate(invalid="ignore", over="ignore")
def check_ties(task: Task, field: Field, ties: list[Tie], claimed: dict[str, list[Array]]) -> tuple[Finding, ...]:
    """At most one finding for each mode; `claimed` are the derivatives of each tie. Nothing is said of a tie on a
    bound, or in a narrow format, or where a single derivative is wrong by itself."""
    if task.limits is not None or coarsest(task.reference.inputs) is not DOUBLE:
        return ()
    found: list[Finding] = []
    for mode, several in claimed.items():
        for tie, gradient in zip(ties, several, strict=True):
            within = np.abs(gradient - tie.value) <= tie.spread * (1.0 + CLEAR) + CLEAR * np.abs(tie.value)
            refuted = next(_refuting(task, field, tie, gradient), None) if within.all() else None
            if refuted is not None:
                place = _place(task, tie)
                found.append(tie_mismatch(mode, place, tie.coordinates.size - 1, *refuted))
                break
    return tuple(found)


def _place(task: Task, tie: Tie) -> Place:
    coordinate = int(tie.coordinates[0])
    output = leaf_at(task.program.outputs, tie.output)
    return Place(output.spot(tie.output), leaf_at(task.program.inputs, coordinate).spot(coordinate))


def _refuting(task: Task, field: Field, tie: Tie, gradient: Array) -> Iterator[tuple[float, float, float]]:
    """Directions in which the gradient cannot be: (what it says, the lowest and the highest slope there)."""
    together = np.ones(gradient.size)
    away = gradient - tie.value
    for direction in (together, away / max(float(np.abs(away).max()), 1e-300)):
        size = float(np.abs(direction) @ (np.abs(tie.value) + tie.spread))
        says = float(gradient @ direction)
        near = _Surroundings(task, field, tie)
        room = (10.0 * task.tolerance.relative + CLEAR) * size + near.noise
        low, high = near.at_the_point(direction)
        if not direction.any() or not np.isfinite([low, high]).all() or low - room <= says <= high + room:
            continue
        around = near.all_around(direction)
        low, high = min(low, float(np.min(around))), max(high, float(np.max(around)))
        same = high - low <= room
        if not low - room <= says <= high + room and (near.bends_one_way(room) or (same and direction is together)):
            yield says, low, high


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """One output of the function near the point, as the coordinates of a tie move."""

    task: Task
    field: Field
    tie: Tie

    @property
    def length(self) -> float:
        return float(np.min(self.task.steps[self.tie.coordinates]))

    @property
    def noise(self) -> float:
        return 16.0 * float(self.field.floor[self.tie.output]) / (STEP_THERE * self.length)

    def values(self, offsets: Array) -> Array:
        """At rows (k, n) of offsets, in first steps."""
        result = np.empty(len(offsets))
        for first in range(0, len(offsets), self.field.rows):
            some = offsets[first : first + self.field.rows]
            points = np.repeat(self.field.point[None], len(some), axis=0)
            points[:, self.tie.coordinates] += self.length * some
            result[first : first + len(some)] = self.field.values(points)[:, self.tie.output]
        return result

    def at_the_point(self, direction: Array) -> tuple[float, float]:
        """The lowest and the highest slope on either side."""
        steps = np.array(FROM_THE_POINT)
        up, down = (self.values(sign * steps[:, None] * direction) for sign in (1.0, -1.0))
        value = self.field.value[self.tie.output]
        slopes = np.concatenate([(up - value) / steps, (value - down) / steps]) / self.length
        return float(np.min(slopes)), float(np.max(slopes))

    def all_around(self, direction: Array) -> Array:
        places = self.places()
        up, down = (self.values(places + sign * STEP_THERE * direction) for sign in (1.0, -1.0))
        return (up - down) / (2.0 * STEP_THERE * self.length)

    def places(self) -> Array:
        """Beside single coordinates, in the order of the coordinates (of which operators take the first, or the last),
        at random; and their mirror images."""
        count = self.tie.coordinates.size
        stream = np.random.default_rng(count)
        beside = np.eye(count)[np.linspace(0, count - 1, min(count, SINGLE)).astype(int)]
        beside = beside + 0.2 * stream.uniform(-1, 1, beside.shape)
        ordered = np.linspace(-1, 1, count)[None] + 0.1 / count
        half = np.concatenate([beside, ordered, stream.uniform(-1, 1, (RANDOM, count))])
        return AROUND * np.concatenate([half, -half])

    def bends_one_way(self, room: float) -> bool:
        """Whether the function is convex, or concave, between points all around."""
        places = self.places()
        others = np.random.default_rng(1).permutation(places)
        ends = self.values(places) + self.values(others)
        bends = (ends - 2.0 * self.values(0.5 * (places + others))) / (AROUND * self.length)
        one_way: Mask = np.array([(bends >= -room).all(), (bends <= room).all()])
        return bool(one_way.any())
