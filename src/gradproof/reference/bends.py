"""Where outputs bend like a kink along a displacement: second differences at two steps.

The second difference f(x+d) + f(x-d) - 2 f(x) of a smooth function falls with the square of the step, that of a kink
with the step itself, and that of a jump not at all. From two steps, what is left after curvature has been taken off.

What is left of a strongly curved function is its fourth derivative, or the rounding of terms that cancel in it. Two
steps more tell: the kink at the point is the same at all of them, and those are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.norms import rms
from gradproof.program import Array, Indices, Mask, Program
from gradproof.reference.field import CHUNK
from gradproof.reference.stencil import FLOOR_FACTOR

# The second step, relative to the first.
CLOSER = 1.0 / 16
# The further steps that a kink must show at. The last is no power of two of the others, so that it rounds otherwise.
BETWEEN, CLOSEST = 1.0 / 4, 3.0 / 128
# The sizes of a kink that two pairs of steps tell differ by this share of themselves at most.
SAME = 0.25
# A kink shows by at least this share of the slope; one that is smaller changes no verdict.
VISIBLE = 1e-6
# Both second differences carry the roundings of four values each, the closer one 1/CLOSER^2 times as many.
ROUNDINGS = 4 * FLOOR_FACTOR * (CLOSER**-2 + 1) / (1 / CLOSER - 1)


# The second difference of a kink falls to CLOSER of itself. One that stays above this is a jump, or noise.
ABRUPT = 0.25
# A jump, as such, is no more than this many kinks that are too small to be visible: noise, which is for the ladder.
SLIGHT = 16.0


@dataclass(frozen=True, slots=True)
class Bends:
    """Masks (k, M): which outputs bend along each displacement, or leave the domain on a side; which of them do so in
    the way of jumps and noise."""

    bent: Mask
    abrupt: Mask


@dataclass(frozen=True, slots=True)
class _Seen:
    """The same, with the second differences at both steps and the size that a kink must have, (k, M) each."""

    bends: Bends
    far: Array
    near: Array
    room: Array

    def at(self, rows: Indices, outputs: Indices) -> _Seen:
        where = np.ix_(rows, outputs)
        bends = Bends(self.bends.bent[where], self.bends.abrupt[where])
        return _Seen(bends, self.far[where], self.near[where], self.room[where])


def bends(program: Program, displacements: Array, outputs: Indices | None = None) -> Bends:
    """(k, N) -> for all outputs, or some of them. Four evaluations a displacement."""
    around = _Around.of(program, outputs)
    return _joined([around.seen(some).bends for some in around.batches(displacements)])


def lasting_bends(program: Program, displacements: Array) -> Bends:
    """The same without strong curvature and the rounding of terms that cancel: four evaluations more, for the
    displacements along which something bends."""
    around = _Around.of(program, None)
    found = []
    for some in around.batches(displacements):
        seen = around.seen(some)
        bent = seen.bends.bent
        # Mostly it is a few outputs of many that bend at all.
        rows, bending = np.arange(len(bent)), np.flatnonzero(seen.bends.abrupt.any(axis=0))
        if bending.size:
            bent[:, bending] &= ~around.of_outputs(bending).slight(seen.at(rows, bending))
        doubtful = bent & ~seen.bends.abrupt
        rows, bending = np.flatnonzero(doubtful.any(axis=1)), np.flatnonzero(doubtful.any(axis=0))
        if rows.size:
            passing = around.of_outputs(bending).passing(some[rows], seen.at(rows, bending))
            bent[np.ix_(rows, bending)] &= ~(doubtful[np.ix_(rows, bending)] & passing)
        found.append(Bends(bent, bent & seen.bends.abrupt))
    return _joined(found)


@dataclass(frozen=True, slots=True)
class _Around:
    """A program around its point, or some of its outputs."""

    program: Program
    outputs: Indices | slice
    value: Array
    roundoff: Array

    @staticmethod
    def of(program: Program, outputs: Indices | None) -> _Around:
        some = slice(None) if outputs is None else outputs
        return _Around(program, some, program.value[some], _roundoffs(program)[some])

    def of_outputs(self, some: Indices) -> _Around:
        """Some of its outputs."""
        outputs = some if isinstance(self.outputs, slice) else self.outputs[some]
        return _Around(self.program, outputs, self.value[some], self.roundoff[some])

    def batches(self, displacements: Array) -> list[Array]:
        batch = max(1, CHUNK // self._numbers)
        return [displacements[first : first + batch] for first in range(0, max(1, len(displacements)), batch)]

    @property
    def _numbers(self) -> int:
        """That four evaluations take."""
        return 4 * (self.program.point.size + self.program.value.size)

    def sides(self, displacements: Array, steps: tuple[float, float]) -> Sequence[Array]:
        """Up and down by the first step, up and down by the second: (k, M) each, the caller's own."""
        first, second = steps
        moves = (first, -first, second, -second)
        if len(displacements) * self._numbers <= CHUNK:
            points = np.concatenate([self.program.point + t * displacements for t in moves])
            return list(self.program.values(points).reshape(4, len(displacements), -1)[:, :, self.outputs])
        found = []
        points = np.empty_like(displacements)  # fresh memory is dear at a million coordinates
        for t in moves:
            np.multiply(displacements, t, out=points)
            points += self.program.point
            found.append(self.program.values(points)[:, self.outputs])
        return found

    @np.errstate(invalid="ignore", over="ignore")
    def seen(self, displacements: Array) -> _Seen:
        value, twice = self.value, 2.0 * self.value
        up, down, up_near, down_near = self.sides(displacements, (1.0, CLOSER))
        # In place, as these may be vectors of a million.
        far, near = up + down, np.add(up_near, down_near, out=up_near)
        far -= twice
        near -= twice
        kink = np.multiply(near, CLOSER**-2, out=down_near)
        kink -= far
        np.abs(kink, out=kink)
        kink *= 1.0 / (1.0 / CLOSER - 1.0)
        room = np.abs(up - down)
        room *= VISIBLE * 0.5
        size = np.maximum(np.abs(up, out=up), np.abs(down, out=down), out=up)
        np.maximum(size, np.abs(value), out=size)
        size *= ROUNDINGS * self.roundoff
        room += size
        # Of an output that is not finite at the point itself nothing can be said along any direction.
        bent = ~(kink <= room) & np.isfinite(value)
        abrupt = bent.copy()
        some = np.nonzero(bent)
        abrupt[some] = np.abs(near[some]) > ABRUPT * np.abs(far[some])
        return _Seen(Bends(bent, abrupt), far, near, room)

    @np.errstate(invalid="ignore", over="ignore")
    def passing(self, displacements: Array, seen: _Seen) -> Mask:
        """Where the kink is another one at other steps, or none: so do curvature and rounding look."""
        far = seen.far
        up, down, up_near, down_near = self.sides(displacements, (BETWEEN, CLOSEST))
        between = _kink(BETWEEN, far, up + down - 2.0 * self.value)
        closer = _without_fourth(CLOSER, _kink(CLOSER, far, seen.near), between)
        closest = _without_fourth(CLOSEST, _kink(CLOSEST, far, up_near + down_near - 2.0 * self.value), between)
        smaller, larger = np.sort(np.abs([closer, closest]), axis=0)
        return np.asarray((smaller <= seen.room) | (np.abs(closer - closest) > SAME * larger))

    @np.errstate(invalid="ignore", over="ignore")
    def slight(self, seen: _Seen) -> Mask:
        """Where what looks like a jump is a part of the slope that no verdict depends on, or a few roundings of the
        terms that the output may be made of, which are as large as the others of its leaf."""
        terms = np.empty(self.program.value.size)
        for leaf in self.program.outputs:
            terms[leaf.span] = rms(np.nan_to_num(self.program.value[leaf.span], posinf=0.0, neginf=0.0))
        room = SLIGHT * seen.room + 4 * FLOOR_FACTOR * self.roundoff * terms[self.outputs]
        return np.asarray(seen.bends.abrupt & (np.maximum(np.abs(seen.far), np.abs(seen.near)) <= room))


def _kink(step: float, far: Array, near: Array) -> Array:
    """The size of a kink that second differences at 1 and at a smaller step tell, if all else is a square."""
    return (near - step**2 * far) / (step - step**2)


def _without_fourth(step: float, told: Array, between: Array) -> Array:
    """The same without what a fourth power adds, which is -(t + t^2) at a step of t, hence more at `BETWEEN`."""
    own, other = step + step**2, BETWEEN + BETWEEN**2
    return (other * told - own * between) / (other - own)


def _joined(parts: list[Bends]) -> Bends:
    if len(parts) == 1:
        return parts[0]
    return Bends(np.concatenate([one.bent for one in parts]), np.concatenate([one.abrupt for one in parts]))


def _roundoffs(program: Program) -> Array:
    result = np.empty(program.value.size)
    for leaf in program.outputs:
        result[leaf.span] = precision.of(leaf.dtype).roundoff
    return result
