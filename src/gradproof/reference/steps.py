"""How far to move: steps anchored at the scale of the coordinates that move, and exactly representable.

A step is exact when both x + h and x - h are numbers of the leaf's format: then the realised step is the intended
one and no digits are lost before the function is even called. Powers of two do this for single coordinates; random
directions are rounded to a grid that does.
"""

from __future__ import annotations

import numpy as np

from gradproof import precision
from gradproof.norms import rms
from gradproof.program import Array, Leaf, Program

# A coordinate much smaller than the rest of its leaf gets a step between its own scale and the leaf's (the geometric
# mean): log wants the first, sin the second, and both can live with the middle. Below this fraction of the leaf's
# scale (zero included) it counts as this fraction: log2 of it.
SMALLEST_SHARE = 14
SMALLEST = 1e-290

# All signed magnitudes in [0.5, 1.5] on a grid of 13 bits: enough to be practically unique in a pair, and few enough
# for a step of that length to stay exact over most of the ladder.
SIGNED = np.concatenate([0.5 + np.arange(2.0**13) / 2**13, -0.5 - np.arange(2.0**13) / 2**13])


def scales(point: Array, inputs: tuple[Leaf, ...]) -> Array:
    """For each coordinate, the power of two next to the length over which the function may be expected to change."""
    result = np.ones_like(point)
    for leaf in inputs:
        if leaf.size:
            result[leaf.span] = _leaf_scales(point[leaf.span], leaf)
    return result


def _leaf_scales(values: Array, leaf: Leaf) -> Array:
    size = values
    if leaf.is_complex:
        size = np.repeat(np.hypot(values[0::2], values[1::2]), 2)
    typical = rms(size)
    if typical < SMALLEST:  # all zero: no scale to be had, so one
        typical = 1.0
    # Whole exponents are near enough, and many times faster than logarithms.
    middle = int(np.frexp(typical)[1])
    exponent = np.frexp(size)[1]
    if not np.isfinite(size).all():
        exponent = np.where(np.isfinite(size), exponent, middle)
    exponent = np.where(size == 0, middle - SMALLEST_SHARE, exponent)
    np.maximum(exponent, middle - SMALLEST_SHARE, out=exponent)
    np.maximum((exponent + middle) >> 1, exponent, out=exponent)
    return np.ldexp(1.0, exponent)


def step_exponent(program: Program) -> Array:
    """log2 of step over scale, for each coordinate: the cube root of the rounding error balances truncation against
    rounding in a central difference. The coarsest format of all decides, since it makes the noise."""
    coarsest = max((precision.of(leaf.dtype).roundoff for leaf in program.inputs + program.outputs), default=2.0**-53)
    if coarsest <= 2.0**-53:
        return np.full(program.point.shape, -16.0)
    return np.full(program.point.shape, np.rint(np.log2(coarsest) / 3.0))


def coordinate_steps(program: Program) -> Array:
    """The first step for every single coordinate: a power of two."""
    return scales(program.point, program.inputs) * np.exp2(step_exponent(program))


def signed(generator: np.random.Generator, size: int) -> Array:
    """Signed magnitudes in [0.5, 1.5]: never near zero, practically never equal, so that no errors cancel."""
    return SIGNED[generator.integers(0, SIGNED.size, size, dtype=np.uint16)]


def random_direction(program: Program, steps: Array, generator: np.random.Generator) -> Array:
    """A signed displacement of all coordinates, each 0.5 to 1.5 of its step, on a grid that keeps it exact."""
    result = signed(generator, steps.size)
    result *= steps
    for leaf in program.inputs:
        own = precision.of(leaf.dtype)
        if own.bits < precision.DOUBLE.bits:
            # Two halvings of the step must stay on the format's own grid around the point.
            span = leaf.span
            reach = np.maximum(np.abs(program.point[span]), steps[span])
            grid = np.exp2(np.ceil(np.log2(reach)) - own.bits + 3)
            units = np.maximum(np.rint(np.abs(result[span]) / grid), 1.0)
            result[span] = np.copysign(units * grid, result[span])
    return result
