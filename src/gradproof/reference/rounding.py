"""Whether a number of a narrow format is what float64 gives, up to rounding.

A tolerance in units of rounding, relative to the number or to those around it, is the first answer. It is too narrow
where large terms cancel, or where the function is ill-conditioned; how much so is measured. Neighbours of the point, a
rounding away in every coordinate, show two things: by how much the exact result moves when the arguments are off by a
rounding (no computation in that format can be held to less), and whether the error of the narrow result stays the same
from one neighbour to the next, as a mistake would, or scatters around zero, as rounding does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradproof.norms import rms
from gradproof.precision import Precision
from gradproof.program import Array, Leaf

Mask = NDArray[np.bool_]

# Neighbours that are asked, and how many standard errors their mean may be off.
NEIGHBOURS = 15
SIGMAS = 5.0


# No powers of two, so that every product is rounded anew.
FACTORS = np.array([1.0, 1.1, 0.7, 1.37, 0.83])
# What they show is a few numbers, which may be small by luck.
LUCK = 8.0


@dataclass(frozen=True, slots=True)
class Pair:
    """The same numbers in the narrow format and in float64, rows (1 + neighbours, n): the first is at the point."""

    narrow: Array
    wide: Array


@dataclass(frozen=True, slots=True)
class Excess:
    """The numbers that are off by more than rounding allows: by the same everywhere, or by something that scatters.
    `explained`: what scatters is no more than the computation itself makes of its roundings."""

    steady: Mask
    scattered: Mask
    explained: bool = False

    @property
    def any(self) -> bool:
        return bool(self.steady.any() or self.scattered.any())


def neighbours(point: Array, inputs: Sequence[Leaf], form: Precision, generator: np.random.Generator) -> Array:
    """The point, then others of which every coordinate but zeros is moved by -1, 0 or 1 spacings of the format: the
    spacing of the coordinate itself in one half of them, that of its leaf's typical size in the other, for functions
    that add their arguments to larger numbers."""
    spacing = np.ldexp(1.0, np.frexp(point)[1] - form.bits)
    larger = np.empty_like(spacing)
    for leaf in inputs:
        typical = np.ldexp(1.0, np.frexp(rms(point[leaf.span]))[1] - form.bits)
        larger[leaf.span] = np.maximum(spacing[leaf.span], typical)
    moves = generator.integers(-1, 2, (1 + NEIGHBOURS, point.size)) * np.where(point == 0, 0.0, spacing)
    moves[1 + NEIGHBOURS // 2 :] *= larger / spacing
    moves[0] = 0.0
    return np.asarray(form.round(point + moves))


def off(narrow: Array, wide: Array, allowed: Array, form: Precision) -> Mask:
    """Where the narrow number is further off than allowed. Beyond the range of the format infinity is right, and below
    it anything as small; where both are NaN, or the same infinity, they agree."""
    with np.errstate(invalid="ignore"):
        near = np.abs(narrow - wide) <= allowed + 2.0 * form.smallest
        beyond = np.isinf(narrow) & (np.abs(wide) >= 0.5 * form.largest) & (np.sign(narrow) == np.sign(wide))
    return np.asarray(~(near | beyond | (narrow == wide) | (np.isnan(narrow) & np.isnan(wide))))


@np.errstate(invalid="ignore", over="ignore")
def excess(pair: Pair, allowed: Array, roundings: float, form: Precision) -> Excess:
    """What is left when `roundings` times the movement of the exact result is allowed too."""
    usable = np.asarray(np.isfinite(pair.narrow).all(axis=1) & np.isfinite(pair.wide).all(axis=1))
    usable[0] = True
    narrow, wide = pair.narrow[usable], pair.wide[usable]
    allowed = allowed + roundings * np.nan_to_num(np.abs(wide - wide[0])).max(axis=0)
    beyond = off(narrow[0], wide[0], allowed, form)
    errors = narrow - wide
    count = len(errors)
    bias = np.abs(np.mean(errors, axis=0))
    scatter = np.std(errors, axis=0, ddof=1) if count > 1 else np.zeros_like(bias)
    steady = beyond & ~(bias <= allowed + SIGMAS * scatter / np.sqrt(count))
    return Excess(steady, beyond & ~steady)


def magnified(run: Callable[[Array], Array], row: Array) -> tuple[Array, Array]:
    """The derivatives of one row, (n,) -> (m,), and how far those of the row times some factors, over these, are from
    them: by rounding alone. A rule may magnify its own: it divides by what is nearly zero, or its terms cancel."""
    found = run(FACTORS[:, None] * row) / FACTORS[:, None]
    with np.errstate(invalid="ignore"):
        apart: Array = np.nan_to_num(np.abs(found[1:] - found[0]), posinf=0.0).max(axis=0)
    return found[0], apart
