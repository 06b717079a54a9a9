"""The program in the widest format it runs in: float32 and narrower formats cannot resolve their own derivatives."""

from __future__ import annotations

import numpy as np

from gradproof.errors import Unsupported
from gradproof.metered import Metered
from gradproof.norms import rms
from gradproof.precision import DOUBLE, Precision, coarsest
from gradproof.program import Leaf
from gradproof.reference.rounding import Pair, excess, neighbours, off

# The float64 value must agree with the native one to this many times the roundings of a derivative; otherwise it is
# another function (an explicit cast, a branch on the dtype, other random numbers).
LENIENCE = 2.0


def widest(program: Metered, generator: np.random.Generator) -> tuple[Metered, tuple[str, ...]]:
    """The program to take the numeric side from, and a note if it is not the obvious one."""
    form = coarsest(program.inputs + program.outputs)
    if form is DOUBLE:
        return program, ()
    try:
        wide = program.widened()
    except Unsupported as reason:
        return program, (f"the numeric side runs in {form.name} alone: {reason}",)
    if wide is program:  # a result that is rounded, of arguments that are not: to judge it twice would tell nothing new
        return program, (f"the numeric side runs in {form.name} alone: the arguments are float64 already",)
    other = _another(program, wide, form, generator)
    if other is not None:
        return program, (f"the numeric side runs in {form.name} alone: {other.path} is another number in float64",)
    return wide, (f"the rule is judged in float64, and its numbers in {form.name} against those",)


def _another(program: Metered, wide: Metered, form: Precision, generator: np.random.Generator) -> Leaf | None:
    """An output that is not the same function in float64."""
    allowed = np.empty(program.value.size)
    for leaf in program.outputs:
        better = wide.value[leaf.span]
        allowed[leaf.span] = LENIENCE * form.roundings * form.roundoff * np.maximum(np.abs(better), rms(better))
    if not off(program.value, wide.value, allowed, form).any():
        return None
    points = neighbours(program.point, program.inputs, form, generator)
    left = excess(Pair(program.values(points.copy()), wide.values(points)), allowed, LENIENCE * form.roundings, form)
    beyond = left.steady | left.scattered
    return next((leaf for leaf in program.outputs if beyond[leaf.span].any()), None)
