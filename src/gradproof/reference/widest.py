"""The program in the widest format it runs in: float32 and narrower formats cannot resolve their own derivatives."""

from __future__ import annotations

import numpy as np

from gradproof.errors import Unsupported
from gradproof.norms import rms
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Program

# The float64 value must agree with the native one to this many native roundings of the leaf's size; otherwise it is
# another function (an explicit cast, a branch on the dtype).
ROUNDINGS = 256.0


def widest(program: Program) -> tuple[Program, tuple[str, ...]]:
    """The program to take the numeric side from, and a note if it is not the obvious one."""
    if coarsest(program.inputs + program.outputs) is DOUBLE:
        return program, ()
    try:
        wide = program.widened()
    except Unsupported as reason:
        return program, (f"the numeric side runs in the native precision: {reason}",)
    roundoff = coarsest(program.inputs + program.outputs).roundoff
    for leaf in program.outputs:
        native, better = program.value[leaf.span], wide.value[leaf.span]
        with np.errstate(invalid="ignore"):
            apart = np.abs(native - better) > ROUNDINGS * roundoff * np.maximum(np.abs(better), rms(better))
        if apart.any():
            return program, (f"the numeric side runs in the native precision: {leaf.path} differs in float64",)
    return wide, ("the numeric side runs in float64, the gradient in its own precision",)
