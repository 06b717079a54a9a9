"""Whether a derivative follows the point: one that is kept from its first call is right there, and nowhere else.

Only a rule that gives the same numbers at two points is asked. That of a linear function does so too; one difference of
the function at the other point tells the two apart.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from gradproof.contracts.side import REVERSE, Side
from gradproof.numpy.numpyprogram import NumpyProgram
from gradproof.precision import form_of
from gradproof.program import Array, Mask

# Of a difference, relative to the point; a second one is so many times shorter. Long ones: a derivative that is out of
# date is off by percents, and the function may be noisy.
STEP, SHORTER = 2.0**-10, 8.0
# How far off, relative to the slope, and by how many roundings of the function at least.
FAR, ROUNDINGS = 1e-3, 64.0
# The same at another point, or step, is at most this share of what is there.
SMALL = 0.125
# Two differences of two values each at the other point, one at the point itself.
PRICE = 6


@dataclass(frozen=True, eq=False, slots=True)
class Along:
    """The vectors that rules are asked with."""

    cotangent: Array
    tangent: Array


@dataclass(frozen=True, eq=False, slots=True)
class Slope:
    """By how much an answer deviates from a difference, and by how much it may for being a difference."""

    measured: Array
    deviation: float
    allowed: float


@dataclass(frozen=True, eq=False, slots=True)
class Slopes:
    """Differences of the function, or of its gradient, that an answer is held against. Of a gradient only the sum along
    the tangent is known; of a pushed tangent, or of a second derivative times one, every number."""

    program: NumpyProgram
    along: Along
    side: Side
    order: int

    def outdated(self, here: Array, there: Array, answer: Array, mask: Mask) -> bool:
        """Whether an answer, the same in both places as far as the mask goes, is right here and wrong there."""
        found = self._slope(there, STEP, answer, mask)
        if not found.deviation > found.allowed:
            return False
        again = self._slope(there, STEP / SHORTER, answer, mask)  # a kink or noise would show
        unclear = float(np.linalg.norm(again.measured - found.measured))
        own = self._slope(here, STEP, answer, mask).deviation
        return max(unclear, own) <= SMALL * found.deviation

    def _slope(self, point: Array, step: float, answer: Array, mask: Mask) -> Slope:
        summed = self.order == 1 and self.side is REVERSE
        tangent = self.along.tangent * mask if summed else self.along.tangent
        moved = step * tangent
        high, low = self._values(np.stack([point + moved, point - moved]))
        difference, terms = (high - low) / (2.0 * step), np.abs(high) + np.abs(low)
        if summed:
            w = self.along.cotangent
            measured, noise = np.array([w @ difference]), float(np.abs(w) @ terms)
            claimed, parts = np.array([answer @ tangent]), answer * tangent
        else:
            measured, noise = difference[mask], float(np.linalg.norm(terms[mask]))
            claimed = parts = answer[mask]
        scale = max(float(np.linalg.norm(parts)), float(np.linalg.norm(measured)))
        rounding = ROUNDINGS * form_of(self.program).roundoff * noise / step
        return Slope(measured, float(np.linalg.norm(claimed - measured)), FAR * scale + rounding)

    def _values(self, points: Array) -> Array:
        if self.order == 1:
            return self.program.values(points)
        self.program.tally.evaluations += len(points)
        found = np.full(points.shape, np.nan)
        for point, target in zip(points, found, strict=True):
            with suppress(Exception):  # the step left the domain
                target[:] = self.program.rules.first(point).pull(self.along.cotangent[None])[0]
        return found
