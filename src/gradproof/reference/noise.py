"""How noisy the function values are, as the rungs of the ladder saw it, and whether the noise comes from stairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.program import Array, Indices, Mask
from gradproof.reference.stencil import Slopes

# Roundings of float32 that a plateau ends with where it is none.
FEW_ROUNDINGS = 64.0
# A residual of several terms, each rounded, in units of the floor.
ROUNDED = 16.0
# Noise of three neighbouring rungs is the same if it differs by no more than this factor.
ALIKE = 8.0
# Noise is not seen so many times smaller by luck.
LUCKY = 16.0
# Beyond a kink that the last step but one passes, the slope from the point grows by no more than this, but by luck.
STEEPER = 4.0


@dataclass(frozen=True, slots=True)
class Rung:
    """A stencil at 2**exponent times the first displacement, expressed in units of the first displacement; `sigma` of
    the slopes stays in units of the function. `floor` is the part of the noise bar that every stencil has."""

    exponent: int
    slopes: Slopes
    floor: Array

    @property
    def unchanged(self) -> Mask:
        """Where no sample differed from the value at the point, but for the rounding of what is left over."""
        still: Mask = (self.slopes.central == 0) & (self.slopes.bar <= ROUNDED * self.floor)
        return still

    @property
    def level(self) -> Mask:
        """Where no sample of one side did, at least: the point may lie at the edge of a tread."""
        return np.asarray(self.unchanged | (self.slopes.right == 0) | (self.slopes.left == 0))

    @property
    def moved(self) -> Array:
        """How far the function moves over the step, as a slope: steadily, or by what is left over."""
        return np.maximum(np.abs(self.slopes.central), self.slopes.sigma * 2.0**-self.exponent)

    def of_rows(self, rows: Indices) -> Rung:
        return Rung(self.exponent, self.slopes.of_rows(rows), self.floor[rows])


@dataclass(frozen=True, slots=True)
class Noise:
    """Of the function values: its level, whether it is the same at all steps; the height of stairs, and where. And
    where there is none, as nothing changes over small steps, nor ever on one side of the point."""

    level: Array
    steady: Mask
    height: Array
    stairs: Mask
    beside: Mask


def noise_level(ordered: Sequence[Rung], coarse: Array) -> Noise:
    """The noise of the function values, as the rungs saw it.

    Rounding inside the function (1 + x - 1) makes stairs: over small steps nothing changes, and that must not count as
    a slope of zero. The height of stairs does not depend on the step, and no more does other noise: then the median of
    all rungs tells it. If what was seen grows with the step instead, it is curvature or a kink that the larger rungs
    cross; the smaller ones are right, and the median of the three smallest is the noise.
    """
    exponents = np.array([rung.exponent for rung in ordered], float)[:, None, None]
    seen = np.stack([np.where(rung.unchanged, np.nan, rung.slopes.sigma) for rung in ordered])
    valid = np.isfinite(seen)
    count = np.cumsum(valid, axis=0)
    total = count[-1]
    # A single rung may see little by luck, so the largest of the three smallest stands for the lower end.
    early, last = valid & (count <= 3), valid & (count == total)
    lower = np.where(early, seen, 0.0).max(axis=0)
    rise = np.log2(np.where(last, seen, 0.0).sum(axis=0) / lower)
    run = np.where(last, exponents, -np.inf).max(axis=0) - np.where(early, exponents, -np.inf).max(axis=0)
    # Stairs so wide that even the first look stays on one of them are taken for what they are: flat.
    near = (valid & (exponents <= 0)).any(axis=0)
    still = ordered[0].unchanged & ordered[min(1, len(ordered) - 1)].unchanged
    rounded = _below_float32(ordered, last, coarse)
    idle = still & (~_growing(seen, exponents) | rounded)
    beside = still & _one_sided(ordered) & ~rounded
    steady = near & (~(rise > 0.5 * run) | idle)
    # A fast oscillation is aliased by most of the ladder, but not by its lower end: three rungs in a row are not lucky.
    steady &= ~(LUCKY * lower < _middle(np.where(early, np.nan, seen), total - 3)) | idle
    taken = np.where(steady, total, np.minimum(total, 3))
    middle = _middle(np.where(valid & (count <= taken), seen, np.nan), taken)
    # What larger steps see may be curvature; noise that is the same at the smallest is there at still smaller ones.
    lasting = near & (total >= 3) & _alike(np.where(early, seen, np.nan))
    height, stairs = _stairs(seen, exponents, ~near & idle)
    return Noise(np.nan_to_num(middle), (steady | lasting) & ~beside, height, stairs & ~beside, beside)


def _middle(seen: Array, count: Indices) -> Array:
    """The median, the lower one of two, of so many that are no NaN."""
    middle = np.maximum((count - 1) // 2, 0)[None]
    return np.asarray(np.take_along_axis(np.sort(seen, axis=0), middle, axis=0)[0])


def _alike(seen: Array) -> Mask:
    """Where the rungs that saw noise saw the same. A kink or a curve shows 16 times as much at the next, or more."""
    return np.asarray(np.fmax.reduce(seen, axis=0) <= ALIKE * np.fmin.reduce(seen, axis=0))


def _below_float32(ordered: Sequence[Rung], last: Mask, coarse: Array) -> Mask:
    """Where even the largest step that changes anything changes it by some roundings of float32 alone, which is the
    format that functions round to inside: a plateau that ends there is none."""
    # A change that is the same up and down makes no slope.
    both = [(np.abs(rung.slopes.central) * 2.0**rung.exponent, rung.slopes.sigma) for rung in ordered]
    changes = np.stack([np.fmax(*one) for one in both])
    return np.asarray(np.where(last, changes, 0.0).max(axis=0) <= FEW_ROUNDINGS * coarse)


def _growing(seen: Array, exponents: Array) -> Mask:
    """Where noise grows from each rung that saw any to the next, as it does beyond a plateau. Where it does not, and
    nothing changes over small steps, the function is rounded inside. Single rungs see little or nothing by luck."""
    growing = np.ones(seen.shape[1:], dtype=bool)
    before, reach = np.full(seen.shape[1:], np.nan), np.full(seen.shape[1:], np.nan)
    logs = np.log2(seen)
    for height, exponent in zip(logs, exponents[:, 0, 0], strict=True):
        growing &= ~(height - before <= 0.5 * (exponent - reach))
        known = ~np.isnan(height)
        before, reach = np.where(known, height, before), np.where(known, exponent, reach)
    return growing


def _one_sided(ordered: Sequence[Rung]) -> Mask:
    """Where no sample of one side changes at any step, as beside a kink: a number of a sorted list moves when another
    one comes up to it, but not when that one goes away. Stairs lead up and down. An exponential below rounding is as
    flat on one side, but on the other it grows faster than the step, where beyond a kink nothing does."""
    sides = ([rung.slopes.right for rung in ordered], [rung.slopes.left for rung in ordered])
    before, largest = ordered[max(len(ordered) - 2, 0)], ordered[-1]
    quiet = np.logical_or.reduce([np.fmax.reduce(np.abs(one)) == 0 for one in sides])
    below, last = (np.fmax(np.abs(rung.slopes.right), np.abs(rung.slopes.left)) for rung in (before, largest))
    return np.asarray(quiet & (below > ROUNDED * before.floor) & (last <= STEEPER * below))


def _stairs(seen: Array, exponents: Array, wide: Mask) -> tuple[Array, Mask]:
    """The height of stairs, and where there are any: around the first look the same height at three rungs or more,
    further down nothing or rounding alone, and no rung in between. Their treads may slope (a solver that stops at a
    tolerance, started from its argument), so a slope seen on one of them is not the function's. An oscillation that
    the large steps alias would fade out gradually instead, rung by rung, and a kink does so as well. `wide`: a tread is
    known to be wider than the first look."""
    around = np.where((exponents >= -8) & (exponents <= 12), seen, np.nan)
    known = np.isfinite(around)
    ordered = np.sort(around, axis=0)
    middle = np.maximum((known.sum(axis=0) - np.where(wide, 0, 1)) // 2, 0)
    height = np.take_along_axis(ordered, middle[None], axis=0)[0]
    level = wide | ((known & (around <= 8 * height) & (around >= height / 8)).sum(axis=0) >= 3)
    below = np.where(exponents < -8, np.nan_to_num(seen), np.nan)
    fading = ((below < height / 64) & (below > 64 * np.fmin.reduce(below, axis=0) + 1e-3 * height / 64)).any(axis=0)
    # Twice in a row by so much; the last one is compared with all below it, as single ones are small by luck.
    low = np.fmax.accumulate(seen, axis=0)[1:-2]
    fading |= ((64 * low < seen[2:-1]) & (64 * seen[2:-1] < seen[3:]) & (seen[2:-1] < height / 8)).any(axis=0)
    quiet = (below < height / 64).any(axis=0)
    return np.nan_to_num(height), (height > 0) & level & quiet & ~fading
