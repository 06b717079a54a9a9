"""Floating-point formats, by name, and rounding to them. NumPy knows no bfloat16, so this is written for any width."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gradproof.program import Array, Leaf, Program


@dataclass(frozen=True, slots=True)
class Precision:
    """A binary floating-point format: `bits` of significand, counting the hidden one; the largest number, and the
    spacing of the smallest ones. `roundings`: how many of them a derivative in this format may be off by. Processors
    may take numbers below `flushed` for zero, as they do for XLA."""

    name: str
    bits: int
    largest: float
    smallest: float
    roundings: float
    flushed: float
    roundoff: float = field(init=False)

    def __post_init__(self) -> None:
        """`roundoff` is half the distance from 1 to the next number: the largest relative error of one rounding."""
        object.__setattr__(self, "roundoff", 2.0**-self.bits)

    def round(self, values: Array) -> Array:
        """The nearest numbers of this format (subnormals are not modelled; no step is ever that small)."""
        if self.bits >= DOUBLE.bits:
            return values
        significand, exponent = np.frexp(values)
        return np.asarray(np.ldexp(np.rint(np.ldexp(significand, self.bits)), exponent - self.bits))

    def spacing(self, values: Array | float) -> Array:
        """How far it is from numbers of this size to the next one of this format."""
        return np.asarray(np.ldexp(1.0, np.frexp(values)[1] - self.bits))


# Kernels in half precision round once at the end, those in float32 all the way; hence the numbers of roundings. What is
# small in float16 is not so in float32, in which processors compute it.
DOUBLE = Precision("float64", 53, 1.7976931348623157e308, 2.0**-1074, 1024.0, 2.0**-1022)
SINGLE = Precision("float32", 24, 3.4028234663852886e38, 2.0**-149, 1024.0, 2.0**-126)
HALF = Precision("float16", 11, 65504.0, 2.0**-24, 16.0, 0.0)
BRAIN = Precision("bfloat16", 8, 3.3895313892515355e38, 2.0**-133, 8.0, 2.0**-126)

_BY_DTYPE = {
    "float64": DOUBLE,
    "complex128": DOUBLE,
    "float32": SINGLE,
    "complex64": SINGLE,
    "float16": HALF,
    "complex32": HALF,
    "bfloat16": BRAIN,
}
NAMES = tuple(_BY_DTYPE)


def of(dtype: str) -> Precision:
    """The precision of one real number of this dtype; a dtype without an entry is treated as half precision."""
    return _BY_DTYPE.get(dtype, HALF)


def form_of(program: Program) -> Precision:
    """The coarsest format of all leaves of a program, which may know it (`form`): it is asked for all the time."""
    found: Precision | None = getattr(program, "form", None)
    return coarsest(program.inputs + program.outputs) if found is None else found


def coarsest(leaves: Iterable[Leaf]) -> Precision:
    """The widest-rounding format among the leaves: it makes the noise. Double where there are none."""
    found = DOUBLE
    for leaf in leaves:
        own = _BY_DTYPE.get(leaf.dtype, HALF)  # as `of` does
        if own.bits < found.bits:
            found = own
    return found
