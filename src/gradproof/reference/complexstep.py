"""The complex step: f'(x) = Im f(x + ih) / h, exact to rounding however small h is, if f is analytic.

Whether it is cannot be seen from outside: `abs`, `conj`, a cast or a comparison may take the imaginary part away, and
then the formula gives a clean, wrong number. So it is proved first, for all inputs at once: Cauchy's integral over a
circle around the point, in a random direction, gives the same derivative of an analytic function, to rounding, and of
no other (of Re z or |z| it gives one half where the step gives zero). How far the two are apart goes into the bar. And
no row is taken that contradicts the real differences of that row.

Squire, Trapp: Using complex variables to estimate derivatives of real functions (SIAM Review 40, 1998).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradproof.precision import DOUBLE
from gradproof.program import Array, ComplexArray, Program, offers_of
from gradproof.reference.estimate import Estimate, Kind
from gradproof.reference.steps import signed

# The step, in units of a displacement that is about 2**-16 of the scale: its square vanishes beside one.
TINY = 2.0**-60
# Radii of the circle in the same units, and how many points it has; with so many, what is left of f'(z) is r^NODES of
# its Taylor series.
RADII = (2.0**12, 2.0**9, 2.0**6)
NODES = 16
# Cauchy's integral and the step must agree to the first, relative to the derivative: anything not analytic is far off.
# A smaller circle is tried as well until they agree to the second.
AGREE, ENOUGH = 1e-9, 1e-13
# What rounding may add to the integral, in roundings of the largest value on the circle.
FLOOR = 4.0
# Rounding of the point by some units in the last place shows how much the slope depends on it.
NUDGES = (0.0, 3.0, -5.0)
SCATTER_FACTOR = 4.0
ROUNDINGS = 32.0
# A row must lie within this many bars of the real differences.
CONTRADICTION = 3.0


class ComplexStep:
    """The complex step around a program's point. The proof is made when somebody first asks for a derivative."""

    def __init__(
        self, program: Program, values: Callable[[ComplexArray], ComplexArray], steps: Array, seed: int
    ) -> None:
        self._point, self._value, self._values = program.point, program.value, values
        self._displacement = signed(np.random.default_rng(seed), steps.size) * steps
        self._gap: Array | None = None
        self.verdict = "unasked"

    @classmethod
    def of(cls, program: Program, steps: Array, seed: int) -> ComplexStep | None:
        """None where the function takes no complex numbers."""
        values = offers_of(program).complex_values
        return None if values is None else cls(program, values, steps, seed)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("by the complex step where differences are too coarse",) if self.verdict == "analytic" else ()

    @np.errstate(all="ignore")
    def slopes(self, displacements: Array) -> Estimate | None:
        """Derivatives along each displacement, with bars of rounding alone; None where the function is not analytic."""
        if self.verdict == "unasked":
            self._gap = self._proved()
            self.verdict = "not analytic" if self._gap is None else "analytic"
        if self._gap is None:
            return None
        found = []
        for nudge in NUDGES:
            points = self._point * (1.0 + nudge * 2 * DOUBLE.roundoff) + 1j * TINY * displacements
            found.append(np.imag(self._values(points)) / TINY)
        scatter = np.max(np.abs(np.stack(found[1:]) - found[0]), axis=0)
        bar = SCATTER_FACTOR * scatter + ROUNDINGS * DOUBLE.roundoff * np.abs(found[0]) + self._gap
        return Estimate.smooth(found[0], np.where(np.isfinite(bar), bar, np.inf))

    def _proved(self) -> Array | None:
        """How far the two formulas are apart for each output, per displacement; None where that is too far."""
        at, along = self._point, self._displacement
        first = self._values((at + 1j * TINY * along)[None])[0]
        if not np.isfinite(first).all():  # it refuses complex numbers: a solver may be dear, and print what it thinks
            return None
        slope = np.imag(first) / TINY
        gap: Array | None = None
        for radius in RADII:
            mean, size = np.zeros(slope.size, dtype=complex), np.abs(self._value)
            for angle in np.exp(2j * np.pi * np.arange(NODES) / NODES):  # one by one: these may be vectors of a million
                around = self._values((at + radius * angle * along)[None])[0]
                mean += around / (angle * NODES * radius)
                np.fmax(size, np.abs(around), out=size)
            floor = FLOOR * DOUBLE.roundoff * size / radius
            left = np.abs(mean - slope) + floor
            if (left <= AGREE * np.abs(slope) + 2 * floor).all():
                gap = left if gap is None else np.minimum(gap, left)
                if (left <= ENOUGH * np.abs(slope) + 2 * floor).all():
                    break
        return gap


def sharpened(exact: Estimate, numeric: Estimate) -> Estimate:
    """The complex step's derivatives where they are known better, and the real differences do not contradict them."""
    meets = np.abs(exact.value - numeric.value) <= CONTRADICTION * (numeric.bar + exact.bar)
    plain = (numeric.kind == Kind.SMOOTH) | (numeric.kind == Kind.ROUGH)
    better = plain & meets & (exact.bar < numeric.bar) & np.isfinite(numeric.bar)
    return numeric.with_others(better, exact)
