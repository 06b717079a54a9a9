"""How far to move: steps anchored at the scale of the coordinates that move, and exactly representable.

A step is exact when both x + h and x - h are numbers of the leaf's format: then the realised step is the intended
one and no digits are lost before the function is even called. Powers of two do this for single coordinates; random
directions are rounded to a grid that does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    return np.ldexp(1.0, _exponents(point, inputs))


def coordinate_steps(program: Program) -> Array:
    """The first step for every single coordinate: a power of two."""
    return np.ldexp(1.0, _exponents(program.point, program.inputs) + step_exponent(program))


def step_exponent(program: Program) -> int:
    """log2 of step over scale: the cube root of the rounding error balances truncation against rounding in a central
    difference. The coarsest format of all decides, since it makes the noise."""
    bits = min((precision.of(leaf.dtype).bits for leaf in program.inputs + program.outputs), default=53)
    return -16 if bits == precision.DOUBLE.bits else -round(bits / 3)


def _exponents(point: Array, inputs: tuple[Leaf, ...]) -> NDArray[np.int32]:
    # Whole exponents are near enough, and many times faster than logarithms.
    result = np.zeros(point.shape, np.int32)
    for leaf in inputs:
        if not leaf.size:
            continue
        values = point[leaf.span]
        size = np.repeat(np.hypot(values[0::2], values[1::2]), 2) if leaf.is_complex else np.abs(values)
        typical = rms(size)
        if typical < SMALLEST:  # all zero: no scale to be had, so one
            typical = 1.0
        middle = int(np.frexp(typical)[1])
        np.clip(size, np.ldexp(1.0, middle - SMALLEST_SHARE), precision.DOUBLE.largest, out=size)
        exponent = np.frexp(np.nan_to_num(size, copy=False, nan=typical))[1]
        between = exponent + middle
        between >>= 1
        np.maximum(between, exponent, out=result[leaf.span])
    return result


def signed(generator: np.random.Generator, size: int) -> Array:
    """Signed magnitudes in [0.5, 1.5]: never near zero, practically never equal, so that no errors cancel."""
    drawn = np.frombuffer(generator.bytes(2 * size), np.uint16)
    return np.asarray(SIGNED[drawn & (SIGNED.size - 1)])


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
