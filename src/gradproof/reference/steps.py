"""How far to move: steps anchored at the scale of the coordinates that move, and exactly representable.

A step is exact when both x + h and x - h are numbers of the leaf's format: then the realised step is the intended
one and no digits are lost before the function is even called. Powers of two do this for single coordinates; random
directions are rounded to a grid that does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gradproof import precision
from gradproof.norms import PIECE, all_finite, dot, pieces, rms
from gradproof.program import Array, Indices, Leaf, Program

Bits = NDArray[np.int64]

# A coordinate much smaller than the rest of its leaf gets a step between its own scale and the leaf's (the geometric
# mean): log wants the first, sin the second, and both can live with the middle. Below this fraction of the leaf's
# scale (zero included) it counts as this fraction: log2 of it.
SMALLEST_SHARE = 14
SMALLEST = 1e-290

# Of a float64: where its exponent stands, what is added to it, and the mask of it.
EXPONENT_SHIFT, EXPONENT_BIAS = 52, 1023
EXPONENT = 0x7FF << EXPONENT_SHIFT

# All signed magnitudes in [0.5, 1.5] on a grid of 13 bits: enough to be practically unique in a pair, and few enough
# for a step of that length to stay exact over most of the ladder.
SIGNED = np.concatenate([0.5 + np.arange(2.0**13) / 2**13, -0.5 - np.arange(2.0**13) / 2**13])


# Beyond the last of these, random numbers repeat with one of them as period: at a million coordinates drawing each
# would cost more than the function under test. The periods are prime and drawn afresh, so that no stride of a layout
# meets one; two entries cancel by it no more often than by having the same magnitude among the few thousand there are.
PERIODS = (65_521, 65_537, 65_539, 65_543, 65_551, 65_557, 65_563, 65_579)


def scales(point: Array, inputs: tuple[Leaf, ...]) -> Array:
    """For each coordinate, a power of two near the length over which the function may be expected to change."""
    return _powers(point, inputs, 0)


def coordinate_steps(program: Program) -> Array:
    """The first step for every single coordinate: a power of two."""
    return _powers(program.point, program.inputs, step_exponent(program))


def room(program: Program) -> Indices:
    """log2 of how much longer the scale of its leaf is than a coordinate's own."""
    result = np.zeros(program.point.size, dtype=np.intp)
    own = np.frexp(scales(program.point, program.inputs))[1]
    for leaf in program.inputs:
        typical = np.frexp(rms(program.point[leaf.span]))[1]
        np.maximum(typical - own[leaf.span], 0, out=result[leaf.span])
    return result


def treads(program: Program) -> Array | None:
    """How far arguments must move for a result to leave its tread (N,), where results are rounded so coarsely that this
    is all that one sees of them, and arguments are not."""
    form = precision.coarsest(program.outputs)
    if form.bits >= precision.SINGLE.bits or precision.coarsest(program.inputs) is not precision.DOUBLE:
        return None
    return 2.0 * form.roundoff * scales(program.point, program.inputs)


def fixed_steps(program: Program, step: float) -> Array:
    """The same first step for all coordinates: a power of two such that no random direction, which may be 1.5 times as
    long, goes beyond the step asked for."""
    return np.full(program.point.size, 2.0 ** np.floor(np.log2(step / 1.5)))


def step_exponent(program: Program) -> int:
    """log2 of step over scale: the cube root of the rounding error balances truncation against rounding in a central
    difference. The coarsest format of all decides, since it makes the noise."""
    bits = precision.form_of(program).bits
    return -16 if bits == precision.DOUBLE.bits else -round(bits / 3)


def _powers(point: Array, inputs: tuple[Leaf, ...], shift: int) -> Array:
    """2**shift times the scales. Works on the exponent bits of the numbers themselves, since at a million coordinates
    logarithms would cost more than the function under test."""
    values = _moduli(point, inputs)
    squares = [dot(own, own) for own in (values[leaf.span] for leaf in inputs)]
    middles = [_middle(values[leaf.span], square) for leaf, square in zip(inputs, squares, strict=True)]
    if not (math.isfinite(sum(squares)) or all_finite(values)):
        typical = np.repeat([math.ldexp(1.0, middle - EXPONENT_BIAS) for middle in middles], [x.size for x in inputs])
        values = np.where(np.isfinite(values), values, typical)
    result = np.empty(point.shape)
    bits, powers = values.view(np.int64), result.view(np.int64)
    if point.size <= PIECE:
        each = middles[0] if len(inputs) == 1 else np.array(middles).repeat([leaf.size for leaf in inputs])
        _power(bits, each, shift, powers)
        return result
    for leaf, middle in zip(inputs, middles, strict=True):
        own, into = bits[leaf.span], powers[leaf.span]
        for some in pieces(leaf.size):
            _power(own[some], middle, shift, into[some])
    return result


def _moduli(point: Array, inputs: tuple[Leaf, ...]) -> Array:
    """Both parts of a complex number have its size."""
    if not any(leaf.is_complex for leaf in inputs):
        return point
    values = point.copy()
    for leaf in inputs:
        if leaf.is_complex:
            values[leaf.span] = np.repeat(np.hypot(point[leaf.span][0::2], point[leaf.span][1::2]), 2)
    return values


def _middle(values: Array, square: float) -> int:
    """The exponent of a typical size; `square` is the sum of squares."""
    typical = math.sqrt(square / values.size) if 1e-200 < square < math.inf else rms(values)
    if typical < SMALLEST:  # all zero: no scale to be had, so one
        typical = 1.0
    return math.frexp(typical)[1] - 1 + EXPONENT_BIAS


def _power(bits: Bits, middle: int | Bits, shift: int, into: Bits) -> None:
    """The scales as float64s, by their bits. No exponent gets below zero: `SMALLEST` is above what is taken off."""
    middle = middle << EXPONENT_SHIFT
    np.bitwise_and(bits, EXPONENT, out=into)
    np.maximum(into, middle - (SMALLEST_SHARE << EXPONENT_SHIFT), out=into)
    between = into + middle
    between >>= 1
    between &= EXPONENT
    np.maximum(into, between, out=into)
    into += shift << EXPONENT_SHIFT


def signed(generator: np.random.Generator, size: int) -> Array:
    """Signed magnitudes in [0.5, 1.5]: never near zero, practically never equal, so that no errors cancel."""
    if size > PERIODS[-1]:
        drawn, result = signed(generator, PERIODS[int(generator.integers(len(PERIODS)))]), np.empty(size)
        for first in range(0, size, drawn.size):
            part = result[first : first + drawn.size]
            part[:] = drawn[: part.size]
        return result
    drawn_bits = _drawn(generator, size, 4)
    if size <= SIGNED.size:
        return SIGNED.take(drawn_bits.view(np.uint16)[:size] & (SIGNED.size - 1))
    # The same without the table, which takes longer to look many up in: 13 bits of magnitude, and one of sign.
    magnitudes = drawn_bits.view(np.int16)[:size]
    signs = magnitudes << 2 >> 15
    magnitudes &= 2**13 - 1
    magnitudes += 2**12
    magnitudes ^= signs
    magnitudes -= signs
    return np.multiply(magnitudes, 2.0**-13, dtype=np.float64)


def finely_signed(generator: np.random.Generator, size: int) -> Array:
    """Signed magnitudes in [1, 2) on a grid of 24 bits, so that two are practically never equal."""
    drawn = _drawn(generator, size, 2).view(np.uint32)[:size]
    magnitudes = 1.0 + (drawn >> 8) * 2.0**-24
    return np.asarray(np.where(drawn & 1, magnitudes, -magnitudes))


def _drawn(generator: np.random.Generator, size: int, each: int) -> NDArray[np.uint64]:
    """Random bits for so many numbers, `each` of which are made of 64. `Generator.bytes` gives the same, but takes
    several times as long."""
    return np.asarray(generator.bit_generator.random_raw(-(-size // each)))


def random_direction(program: Program, steps: Array, generator: np.random.Generator) -> Array:
    """A signed displacement of all coordinates, each 0.5 to 1.5 of its step, on a grid that keeps it exact."""
    result = signed(generator, steps.size)
    result *= steps
    for leaf in program.inputs:
        own = precision.of(leaf.dtype)
        if own.bits < precision.DOUBLE.bits:
            # The fractions of a step, which are multiples of 1/32, should stay on the format's own grid around the
            # point; half precision has no room for that, and rounds a little.
            span = leaf.span
            reach = np.maximum(np.abs(program.point[span]), steps[span])
            grid = np.exp2(np.ceil(np.log2(reach)) - own.bits + 6)
            units = np.maximum(np.rint(np.abs(result[span]) / grid), 1.0)
            result[span] = np.copysign(units * grid, result[span])
    return result
