"""Two evaluations a direction, and no more where the analytic side agrees.

Two independent computations of the same number that agree to eight digits are both right to eight digits: a wrong
derivative, or a numeric one that is off, would have to hit the other by chance. So where they agree that closely, and
the function does not bend like a kink, the ladder of steps has nothing to add. Everything else goes on to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.norms import dot, largest, pieces, rms, rows_weighed
from gradproof.program import Array, Indices, Leaf, Mask, Program
from gradproof.reference.field import Field, floor_by_leaf, ground_of
from gradproof.reference.stencil import FLOOR_FACTOR, sample, sample_around
from gradproof.sizes import sizes_in


@dataclass(frozen=True, slots=True)
class Strictness:
    """Relative to the size that the caller names: how closely the sides must agree, and how much the function may bend
    over a step. A smooth one bends by about step / scale = 1.5e-5 of its slope, a kink by as much as its slope."""

    agree: float
    bend: float

    def seen_in(self, roundoff: float) -> Strictness:
        """Strict as far as a gradient in a format of this roundoff can agree with a numeric side in double."""
        return self if self.agree >= ROUNDINGS * roundoff else Strictness(ROUNDINGS * roundoff, self.bend)

    def over(self, share: float) -> Strictness:
        """As strict as it is of this share of a displacement, told per displacement."""
        return Strictness(self.agree / share, self.bend)

    def closest(self) -> Strictness:
        """As strict as rounding lets anything be."""
        return Strictness(ROUNDINGS * precision.DOUBLE.roundoff, self.bend)

    def within(self, tolerance: float) -> Strictness:
        """Strict enough for a narrow tolerance too."""
        return self if not tolerance or self.agree <= 0.1 * tolerance else Strictness(0.1 * tolerance, self.bend)


# A gradient consists of a few roundings.
ROUNDINGS = 16.0
# Rounding adds to a bend, up + down - 2 f, this many times what it adds to a slope, (up - down) / 2.
BENT_BY_ROUNDING = 4.0

# A single entry is its own size. A probe sums many, and must not overlook one of them.
ENTRY = Strictness(agree=1e-8, bend=1e-2)
PROBE = Strictness(agree=1e-9, bend=2e-4)

# The shorter step, relative to the first. It still crosses the stairs that float32 inside a function makes.
CLOSER = 2.0**-6

# An output of a probe that bends by this share of its slope, or of the typical one, may have a kink.
SUSPICIOUS = 1e-3


@dataclass(frozen=True, slots=True)
class Glance:
    """Along each displacement: the central difference, how much the slopes from left and right differ (k, M), and what
    rounding alone may add to the first (M,)."""

    slope: Array
    bend: Array
    floor: Array
    strictness: Strictness

    @np.errstate(invalid="ignore")
    def agrees(self, analytic: Array, size: Array) -> Mask:
        """Where the analytic derivatives along the same displacements are beyond doubt; NaN agrees with nothing."""
        apart = np.subtract(analytic, self.slope)
        np.abs(apart, out=apart)
        return np.asarray(
            (apart <= self.bar(size)) & (self.bend <= self.strictness.bend * size + BENT_BY_ROUNDING * self.floor)
        )

    def of_rows(self, rows: Indices) -> Glance:
        return Glance(self.slope[rows], self.bend[rows], self.floor, self.strictness)

    def per(self, share: float, strictness: Strictness) -> Glance:
        """The same told per displacement, where only this share of it was taken."""
        return Glance(self.slope / share, self.bend / share, self.floor / share, strictness)

    def bar(self, size: Array) -> Array:
        return np.asarray(self.strictness.agree * size + self.floor)


def joined(glances: Sequence[Glance]) -> Glance:
    """Of all their displacements."""
    if len(glances) == 1:
        return glances[0]
    slopes, bends = (np.concatenate(parts) for parts in zip(*((one.slope, one.bend) for one in glances), strict=True))
    return Glance(slopes, bends, glances[0].floor, glances[0].strictness)


@np.errstate(invalid="ignore", over="ignore")
def glance(field: Field, displacements: Array, strictness: Strictness) -> Glance:
    return glance_at(field, *sample_around(field, displacements), strictness)


@np.errstate(invalid="ignore", over="ignore")
def glance_at(field: Field, up: Array, down: Array, middle: Array, strictness: Strictness) -> Glance:
    """The same from the values one step up, one step down (k, M) and between. The first are overwritten."""
    slope = _halved(up - down)
    # In place, because these may be a Jacobian, or vectors of a million.
    bend = up
    bend += down
    bend -= middle
    bend -= middle
    np.abs(bend, out=bend)
    return Glance(slope, bend, FLOOR_FACTOR * field.floor, strictness)


@np.errstate(invalid="ignore", over="ignore")
def glance_sums(
    program: Program, cotangent: Array, displacements: Array, strictness: Strictness, floor: Array
) -> list[tuple[Glance, bool]]:
    """The same for the sums over each output leaf, along each displacement (k, N); and whether any output, by itself,
    bends so much that there may be a kink. `floor` is that of the sums: see `floor_of_sums`."""
    up, down, middle = sample_around(ground_of(program), displacements)
    seen = []
    for k in range(len(displacements)):
        sums = [_sum(program, one, (up[k], down[k], middle), cotangent) for one in program.outputs]
        slopes, bends = np.array([[one.slope for one in sums]]), np.array([[abs(one.bend) for one in sums]])
        seen.append((Glance(slopes, bends, floor, strictness), any(one.suspicious for one in sums)))
    return seen


def floor_of_sums(program: Program, cotangent: Array) -> Array:
    """What rounding alone may add to the slope of each sum."""
    return FLOOR_FACTOR * floor_by_leaf(program, cotangent)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The slope and the bend of one weighted sum; and whether any output of it bends suspiciously, by itself."""

    slope: float
    bend: float
    suspicious: bool


def _sum(program: Program, output: Leaf, values: tuple[Array, Array, Array], cotangent: Array) -> _Sum:
    """Piece by piece: vectors of a million are read once, and none is made."""
    weights, (up, down, middle) = cotangent[output.span], (one[output.span] for one in values)
    slope = bend = square = 0.0
    tops = []
    for some in pieces(output.size):
        rise, bent = _risen(up[some], down[some], middle[some])
        slope += dot(rise, weights[some])
        bend += dot(bent, weights[some])
        square += dot(rise, rise)
        tops.append((some, largest(bent)))
    if not (math.isfinite(slope) and math.isfinite(bend) and 1e-200 < square < math.inf):
        return _sum_of_any(program, output, (up, down, middle), weights)
    typical = math.sqrt(square / output.size)
    looked = [some for some, top in tops if not top <= SUSPICIOUS * typical]
    suspicious = any(_suspicious(program, output, some, (up, down, middle), typical) for some in looked)
    return _Sum(slope, bend, suspicious)


def _sum_of_any(program: Program, output: Leaf, values: tuple[Array, Array, Array], weights: Array) -> _Sum:
    """The same where not all is finite, or nothing moves."""
    slope, bend = _risen(*values)
    suspicious = _suspicious(program, output, slice(0, output.size), values, rms(_told(slope)))
    slopes, bends = rows_weighed(slope[None], weights), rows_weighed(bend[None], weights)
    return _Sum(float(slopes[0]), float(bends[0]), suspicious)


def _risen(up: Array, down: Array, middle: Array) -> tuple[Array, Array]:
    """Slope and bend of each output."""
    rise = up - down
    rise *= 0.5
    return rise, _bent(up, down, middle)


def _bent(up: Array, down: Array, middle: Array) -> Array:
    bent = up + down
    bent -= middle
    bent -= middle
    return bent


def _floor(program: Program, output: Leaf, some: Indices) -> Array:
    """As that of the field, for some numbers of one output."""
    return sizes_in(program, output, some) * precision.of(output.dtype).roundoff


def closer_glance(field: Field, displacement: Array, strictness: Strictness) -> Glance:
    """The same along one displacement (1, N), over a shorter step but told per displacement: kinks and jumps that are
    only close by are not met there, and what is left of the digits may do."""
    up, down = sample(field, displacement * CLOSER, (1.0,))
    return glance_at(field, up, down, field.value, strictness).per(CLOSER, strictness)


def _halved(rise: Array) -> Array:
    """The slope. An infinite one is as large as any deviation from it, and would agree with all; NaN with none."""
    rise *= 0.5
    return _told(rise)


def _told(slope: Array) -> Array:
    if not np.isfinite(slope.sum()):
        slope[np.isinf(slope)] = np.nan
    return slope


def _suspicious(
    program: Program, output: Leaf, some: slice, values: tuple[Array, Array, Array], typical: float
) -> bool:
    """Whether any of these numbers bends by itself. Outputs that are not finite at the point have an infinite floor, or
    none, and are reported on their own."""
    bend = _bent(*(one[some] for one in values))
    few = np.flatnonzero(~(np.abs(bend, out=bend) <= SUSPICIOUS * typical)) + some.start
    slope, bend = _risen(*(one[few] for one in values))
    floor = _floor(program, output, few)
    room = SUSPICIOUS * np.maximum(np.abs(_told(slope)), typical) + BENT_BY_ROUNDING * FLOOR_FACTOR * floor
    return bool((~(np.abs(bend) <= room) & np.isfinite(floor)).any())
