"""The program in the widest format it runs in: float32 and narrower formats cannot resolve their own derivatives."""

from __future__ import annotations

import numpy as np

from gradproof.errors import Unsupported
from gradproof.metered import Metered
from gradproof.norms import largest, rms
from gradproof.precision import DOUBLE, Precision, form_of
from gradproof.program import Array, Leaf
from gradproof.reference.rounding import Pair, excess, extent, neighbours, off
from gradproof.reference.steps import signed

# The float64 value must agree with the native one to this many times the roundings of a derivative; otherwise it is
# another function (an explicit cast, a branch on the dtype, other random numbers).
LENIENCE = 2.0
# How far away, in sizes of the arguments, rounding is looked for; at how many points, and how far from each other,
# relative to that. What differs by less than STEADY times as much between far ones is rough; more than LUCK times that
# is not. ORDINARY: roundings of the output itself that are nothing special.
AWAY = 4.0 ** np.arange(-1, 13)
POINTS, NEAR, FAR = 6, 2.0**-5, 2.0**-1
STEADY, LUCK, ORDINARY = 4.0, 8.0, 2.0


def widest(program: Metered, generator: np.random.Generator) -> tuple[Metered, tuple[str, ...]]:
    """The program to take the numeric side from, and a note if it is not the obvious one."""
    form = form_of(program)
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
    """An output that is not the same function in float64. What scatters from one neighbour to the next is rounding,
    whatever its size."""
    allowed = np.empty(program.value.size)
    for leaf in program.outputs:
        better = wide.value[leaf.span]
        allowed[leaf.span] = LENIENCE * form.roundings * form.roundoff * np.maximum(np.abs(better), rms(better))
    if not off(program.value, wide.value, allowed, form).any():
        return None
    points = neighbours(program.point, program.inputs, form, generator)
    left = excess(Pair(program.values(points.copy()), wide.values(points)), allowed, LENIENCE * form.roundings, form)
    suspects = [leaf for leaf in program.outputs if left.steady[leaf.span].any()]
    return next((leaf for leaf in suspects if not _rough(program, wide, leaf, form, generator)), None)


@np.errstate(invalid="ignore", over="ignore")
def _rough(program: Metered, wide: Metered, leaf: Leaf, form: Precision, generator: np.random.Generator) -> bool:
    """Whether what is between the formats is rounding after all: of larger numbers than the output, which cancel in it
    or on the way to it, so that it does not move before they do. At some distance, where the output moves smoothly in
    float64, that differs between near points about as much as between far ones, is nowhere much more than this, and is
    more than the rounding of the output. The difference of two functions grows with the distance."""
    here = largest(program.value[leaf.span] - wide.value[leaf.span])
    for away in AWAY:
        points = _points(program, away, form, generator)
        narrow, better = (one.values(points.copy())[:, leaf.span] for one in (program, wide))
        apart = narrow - better
        if not np.isfinite(apart).all():
            continue
        (near, far), (step, way) = ((rms(extent(one[:POINTS])), rms(extent(one[POINTS:]))) for one in (apart, better))
        rounding = ORDINARY * form.roundoff * largest(better)
        if (
            rounding < near <= way >= STEADY * step
            and far <= STEADY * near
            and max(here, largest(apart)) <= LUCK * near
        ):
            return True
    return False


def _points(program: Metered, away: float, form: Precision, generator: np.random.Generator) -> Array:
    """Points around one that is `away` in units of each leaf's typical size: near ones, then far ones."""
    points = np.repeat(program.point[None], 2 * POINTS, axis=0)
    around = np.repeat([NEAR, FAR], POINTS)[:, None]
    for leaf in program.inputs:
        size = away * (rms(program.point[leaf.span]) or 1.0)
        moves = around * generator.uniform(-1.0, 1.0, (2 * POINTS, leaf.size))
        points[:, leaf.span] += size * (signed(generator, leaf.size) + moves)
    return form.round(points)
