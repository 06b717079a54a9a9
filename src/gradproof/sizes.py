"""How large an output is, where no derivative has a size of its own: its numbers, or what they are made of.

A gradient can be zero because its terms cancel, and then its numbers are rounding of those terms. Their size is that of
the value it is the gradient of, times the cotangent, over the input.
"""

from __future__ import annotations

import numpy as np

from gradproof.norms import rms
from gradproof.precision import form_of
from gradproof.program import Array, Indices, Leaf, Program

# Numbers up to so many roundings of their terms are nothing but those.
ROUNDINGS = 64.0
# Nor is a derivative anything else below this share of value over input, whatever the format.
SHARE = 1e-11


def negligible(program: Program) -> float:
    """A derivative below this fraction of value over input is rounding."""
    return max(SHARE, ROUNDINGS * form_of(program).roundoff)


def size_of(program: Program, output: Leaf | None = None) -> float:
    """Of one output, or of all together."""
    own = rms(program.value if output is None else program.value[output.span])
    terms = terms_of(program)
    if not terms:
        return own
    return _counted(program, own, max(terms) if output is None else terms[program.outputs.index(output)])


def sizes_of(program: Program) -> Array:
    """Of every single number of the outputs (M,)."""
    result = np.abs(program.value)
    if terms_of(program):
        for leaf in program.outputs:
            result[leaf.span] = sizes_in(program, leaf, slice(0, leaf.size))
    return result


def sizes_in(program: Program, output: Leaf, some: slice | Indices) -> Array:
    """Of some numbers of one output."""
    own: Array = np.abs(program.value[output.span][some])
    found = terms_of(program)
    if found:
        terms = found[program.outputs.index(output)]
        own[own <= ROUNDINGS * form_of(program).roundoff * terms] = terms
    return own


def unit_of(program: Program, span: slice) -> float:
    """What coordinates of the point are measured by: their size, or one where they are zero."""
    return rms(program.point[span]) or 1.0


def terms_of(program: Program) -> tuple[float, ...]:
    """The size of the terms of each output, as far as they may cancel: a program says so by an attribute `terms`."""
    found: tuple[float, ...] = getattr(program, "terms", ())
    return found


def terms_of_gradient(program: Program, cotangent: Array) -> tuple[float, ...]:
    """Those of the gradient of a program: for each of its inputs."""
    sizes = sizes_of(program)
    change = rms(cotangent.reshape(sizes.shape) * sizes) * float(np.sqrt(sizes.size))
    return tuple(change / unit_of(program, leaf.span) for leaf in program.inputs)


def _counted(program: Program, own: float, terms: float) -> float:
    roundoff = form_of(program).roundoff
    return own if own > ROUNDINGS * roundoff * terms else max(own, terms)
