"""The program in the widest format it runs in: float32 and narrower formats cannot resolve their own derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gradproof import precision
from gradproof.errors import Ended, Unsupported
from gradproof.metered import Metered
from gradproof.norms import largest, rms
from gradproof.precision import DOUBLE, SINGLE, Precision, form_of
from gradproof.program import Array, Leaf
from gradproof.reference.inside import Narrowed, computes_in_single
from gradproof.reference.rounding import Pair, excess, extent, leftovers, neighbours, off
from gradproof.reference.steps import coordinate_steps, signed
from gradproof.sizes import unit_of

# The float64 value must agree with the native one to this many times the roundings of a derivative; otherwise it is
# another function (an explicit cast, a branch on the dtype, other random numbers).
LENIENCE = 2.0
# How far away, in sizes of the arguments, rounding is looked for; at how many points, and how far from each other,
# relative to that. What differs by less than STEADY times as much between far ones is rough; more than LUCK times that
# is not. ORDINARY: roundings of the output itself that are nothing special.
AWAY = 4.0 ** np.arange(-1, 13)
POINTS, NEAR, FAR = 6, 2.0**-5, 2.0**-1
STEADY, LUCK, ORDINARY = 4.0, 8.0, 2.0


@dataclass(frozen=True, slots=True)
class Pairing:
    """A program, known to round to the coarsest format inside if that was asked for; the program to take its numeric
    side from, in which casts to narrower formats are kept or left out; and a note if that is not the obvious one."""

    program: Metered
    reference: Metered
    note: tuple[str, ...] = ()
    casts: Literal["kept", "left out"] = "kept"

    def made_of(self, terms: tuple[float, ...]) -> Pairing:
        """The same, of programs that are known to be made of such terms (see `sizes`)."""
        program, reference = (one.made_of(terms) for one in (self.program, self.reference))
        return replace(self, program=program, reference=program if self.reference is self.program else reference)


class RoundsInside(Ended):
    """There is a doubt, and the function casts to a narrower format inside, or what it gives is the rounding of larger
    numbers: `pairing` is to be judged instead."""

    def __init__(self, pairing: Pairing) -> None:
        super().__init__(pairing)
        self.pairing = pairing


def widest(program: Metered, generator: np.random.Generator, *, draws: bool = False) -> Pairing:
    """`draws`: whether the function draws random numbers, which may be others in float64."""
    form = form_of(program)
    if form is DOUBLE:
        return Pairing(program, program)
    alone = f"the numeric side runs in {form.name} alone"
    try:
        wide = program.widened()
    except Unsupported as reason:
        return Pairing(program, program, (f"{alone}: {reason}",))
    if wide is program:  # a result that is rounded, of arguments that are not
        steps = coordinate_steps(program)
        program.values(program.point + np.stack([steps, -steps]))  # the cast may be one that only the point has
        smooth = without_casts(program, generator)
        return smooth or Pairing(program, program, (f"{alone}: the arguments are float64 already",))
    other = _another(program, wide, form, generator, draws=draws)
    if other is not None:
        return Pairing(program, program, (f"{alone}: {_told_apart(program, wide, other)}",))
    wider = form_of(wide)
    alone = "" if wider is DOUBLE else " (it does not run in float64)"
    note = f"the rule is judged in {wider.name}{alone}, and its numbers in {form.name} against those"
    return Pairing(program, wide, (note,))


def _told_apart(program: Metered, wide: Metered, leaf: Leaf) -> str:
    """Where the output is furthest from what it is in the wider format: one of them may be garbage."""
    ours, theirs = program.value[leaf.span], wide.value[leaf.span]
    with np.errstate(invalid="ignore"):
        worst = int(np.argmax(np.nan_to_num(np.abs(ours - theirs), nan=np.inf)))
    spot = leaf.spot(leaf.start + worst)
    return f"{spot} is another number in {form_of(wide).name} ({theirs[worst]:.3g}, not {ours[worst]:.3g})"


def without_casts(program: Metered, generator: np.random.Generator) -> Pairing | None:
    """None where nothing is cast to a narrower format inside, or where it is another function without that."""
    try:
        found = program.unrounded()
    except Unsupported:
        return None
    if found is None:
        return None
    wide, native = found.program, program.rounding_to(precision.of(found.form))
    form = form_of(native)
    if form is DOUBLE or _another(native, wide, form, generator) is not None:
        return None
    note = f"the rule is judged in float64, without casts inside, and its numbers in {form.name} against those"
    return Pairing(native, wide, (note,), "left out")


def in_single(pairing: Pairing, generator: np.random.Generator) -> Pairing | None:
    """The same where the reference is one of float32, though its arguments are float64; None where it is not."""
    program, wide = pairing.program, pairing.reference
    if not computes_in_single(wide, generator):
        return None
    note = ("the function computes in float32 inside, and so does the numeric side",)
    narrow = wide.around(Narrowed)
    form = form_of(program)
    if form is DOUBLE:
        return Pairing(narrow, narrow, note, pairing.casts)
    return Pairing(program, program if form is SINGLE else narrow, note, pairing.casts)


def _another(
    program: Metered, wide: Metered, form: Precision, generator: np.random.Generator, *, draws: bool = False
) -> Leaf | None:
    """An output that is not the same function in float64. What scatters from one neighbour to the next is rounding,
    whatever its size."""
    allowed = np.empty(program.value.size)
    for leaf in program.outputs:
        better = wide.value[leaf.span]
        allowed[leaf.span] = LENIENCE * form.roundings * form.roundoff * np.maximum(np.abs(better), rms(better))
    if not off(program.value, wide.value, allowed, form).any():
        return None
    for leaf, terms in zip(wide.outputs, leftovers(wide, generator), strict=False):
        allowed[leaf.span] = np.maximum(allowed[leaf.span], LENIENCE * form.roundings * form.roundoff * terms)
    points = neighbours(program.point, program.inputs, form, generator)
    left = excess(Pair(program.values(points.copy()), wide.values(points)), allowed, LENIENCE * form.roundings, form)
    suspects = [leaf for leaf in program.outputs if left.steady[leaf.span].any()]
    return next((leaf for leaf in suspects if draws or not _rough(program, wide, leaf, form, generator)), None)


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
        size = away * unit_of(program, leaf.span)
        moves = around * generator.uniform(-1.0, 1.0, (2 * POINTS, leaf.size))
        points[:, leaf.span] += size * (signed(generator, leaf.size) + moves)
    return form.round(points)
