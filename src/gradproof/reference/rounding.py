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
from functools import partial
from typing import TypeVar

import numpy as np

from gradproof import precision
from gradproof.errors import Ended
from gradproof.norms import largest, rms
from gradproof.precision import Precision
from gradproof.program import Array, Leaf, Mask, Program
from gradproof.reference.steps import signed

T = TypeVar("T")

# Neighbours that are asked, and how many standard errors their mean may be off.
NEIGHBOURS = 15
SIGMAS = 5.0
# At what share of points a mistake is one.
MOST = 0.75


# No powers of two, so that every product is rounded anew.
FACTORS = np.array([1.0, 1.1, 0.7, 1.37, 0.83])
# What they show is a few numbers, which may be small by luck.
LUCK = 8.0
# How many points are asked what a rule makes of roundings, how many roundings the nearest are away at most, and how far
# others are relative to each coordinate: the rounding of a phase of 1e4 is another one only where it has gone round.
POINTS, AWAY, FAR, NEAR = 8, 4, 2.0**-5, 2.0**-8
# Between the nearer of those derivatives differ by NEAR / FAR of what they do between the others; rounding by no less,
# and by no more than this share of the largest derivative.
STEADY, SMALL = 4.0, 2.0**24 * precision.DOUBLE.roundoff
# Points of a line on which several roundings lie; what share of its steps the turns of a straight one stay below; and
# what share of the numbers must jump.
LINE, TURNS, SEVERAL = 17, 0.1, 0.1
# How far they are from each other, relative to the point, where it is looked for whether the function moves smoothly.
STRIDES = (2.0**-20, 2.0**-14, 2.0**-8)
# How far they are from each other, relative to each coordinate, where rounding is all that is to be seen.
SHORT = 2.0**-26
# How much larger than the value the numbers may be that a function is made of. It does not move before they do, and a
# slope that is only small seems to be exactly zero.
LARGER = 2.0**16


# An output that is more than rounding moves when its arguments do by this share of themselves, and by more than so many
# times what it does when they move by roundings: a smooth one by 2**48 times that. Many of these may change nothing.
OWN, HARDLY, MANY = 0.5, 2.0**10, 4


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
    spacing = form.spacing(point)
    larger = np.empty_like(spacing)
    for leaf in inputs:
        larger[leaf.span] = np.maximum(spacing[leaf.span], form.spacing(rms(point[leaf.span])))
    moves = np.where(point == 0, 0.0, spacing) * generator.integers(-1, 2, (1 + NEIGHBOURS, point.size)).astype(float)
    moves[1 + NEIGHBOURS // 2 :] *= larger / spacing
    moves[0] = 0.0
    return np.asarray(form.round(point + moves))


def off(narrow: Array, wide: Array, allowed: Array, form: Precision) -> Mask:
    """Where the narrow number is further off than allowed. Beyond the range of the format infinity is right, and below
    it anything as small, or zero; where both are NaN, or the same infinity, they agree."""
    with np.errstate(invalid="ignore"):
        near = np.abs(narrow - wide) <= allowed + 2.0 * form.smallest
        near |= (narrow == 0) & (np.abs(wide) < form.flushed)
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


def lasting(pair: Pair, allowed: Array) -> Mask:
    """The numbers that are off by more than allowed at most points, as a mistake is wherever it is looked at; one that
    has met a tie, or a kink, which rounding made, is right at others."""
    with np.errstate(invalid="ignore", over="ignore"):
        errors = pair.narrow - pair.wide
        errors = errors[np.isfinite(errors).all(axis=1)]
        return np.asarray((np.abs(errors) > allowed).sum(axis=0) >= MOST * len(errors))


def magnified(run: Callable[[Array], Array], row: Array, factors: Array = FACTORS) -> tuple[Array, Array]:
    """The derivatives of one row, (n,) -> (m,), and how far those of the row times some factors, over these, are from
    them: by rounding alone. A rule may magnify its own: it divides by what is nearly zero, or its terms cancel."""
    found = run(factors[:, None] * row) / factors[:, None]
    with np.errstate(invalid="ignore"):
        apart: Array = np.nan_to_num(np.abs(found[1:] - found[0]), posinf=0.0).max(axis=0)
    return found[0], apart


def wobbling(program: Program, cotangent: Array, generator: np.random.Generator) -> Array:
    """How rough J^T w (N,) is along a short line of points: by rounding, for that is all that no smooth function has.
    Zero where it does not run there."""
    found = _along_line(program, cotangent, SHORT * signed(generator, program.point.size))
    if found is None:
        return np.zeros(program.point.size)
    with np.errstate(invalid="ignore"):
        rough = np.abs(np.diff(found, 4, axis=0)).max(axis=0) / 16.0  # the sum of the coefficients
    return np.asarray(np.nan_to_num(rough, posinf=0.0))


def unresolved(program: Program, tangent: Array) -> Array:
    """How large a derivative along a tangent (M,) the outputs do not show, whatever the step: what is next to nothing
    after numbers were subtracted, such as the logarithm of a probability of one, moves in steps of their rounding. How
    rough it is along a line, over the step; the least of several, of those over which it moves."""
    found = np.full((len(STRIDES), program.value.size), np.inf)
    steps = np.array(STRIDES) * rms(program.point) / (rms(tangent) or 1.0)
    for k, step in enumerate(steps):
        points = program.point + step * (np.arange(LINE)[:, None] - LINE // 2) * tangent
        values = _if_it_runs(partial(program.values, points))
        if values is None:
            continue
        with np.errstate(invalid="ignore"):
            # Not the largest: a kink is in a few of them.
            rough = np.mean(np.abs(np.diff(values, 4, axis=0)), axis=0) / 16.0
        found[k] = np.where(extent(values) > 0, rough / (step or 1.0), np.inf)
    return np.asarray(np.nan_to_num(found.min(axis=0), posinf=0.0))


def leftovers(program: Program, generator: np.random.Generator) -> tuple[float, ...]:
    """The size of the terms of each output that is nothing but what rounding leaves of them, as the sum of normalised
    numbers is (see `sizes`): between far points it differs hardly more than between those a few roundings away. 0 of
    the others; empty where there is none. Most functions are not asked: their values are too large for that, or have
    too few digits to tell."""
    if precision.form_of(program) is not precision.DOUBLE:
        return ()
    roundoff = precision.DOUBLE.roundoff
    most = roundoff * LARGER * max(1.0, largest(program.point))
    sizes = [rms(program.value[leaf.span]) for leaf in program.outputs]
    if not any(size <= most for size in sizes):
        return ()

    def around() -> tuple[Array, Array]:
        near = [beside(program.point, program.inputs, generator) for _ in range(MANY)]
        far = _around(np.where(program.point == 0, 1.0, program.point), program.point.size, OWN, generator)
        # With the value itself: what falls off to nothing is the same at all points that are far.
        return program.values(np.vstack(near)), np.vstack([program.value, program.values(far)])

    found = _if_it_runs(around)
    if found is None or not all(np.isfinite(one).all() for one in found):
        return ()
    terms = []
    for size, leaf in zip(sizes, program.outputs, strict=True):
        near, far = (rms(extent(one[:, leaf.span])) for one in found)
        rounding = max(size, near) <= most and far <= HARDLY * near
        terms.append(max(size, near) / roundoff if rounding else 0.0)
    return tuple(terms) if any(terms) else ()


def extent(rows: Array) -> Array:
    """How far values (k, n) are spread. Rounding may have two sides as well: for those whom no kink can excuse."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(rows.max(axis=0) - rows.min(axis=0), posinf=0.0))


def scatter(rows: Array) -> Array:
    """How far values (k, n) are spread, but for the largest gap between them: the sides of a kink are no scatter."""
    with np.errstate(invalid="ignore"):
        gaps = np.diff(np.sort(rows, axis=0), axis=0)
        return np.asarray(np.nan_to_num(gaps.sum(axis=0) - gaps.max(axis=0), posinf=0.0))


def trembling(
    program: Program,
    cotangent: Array,
    generator: np.random.Generator,
    measure: Callable[[Array], Array] = scatter,
    enough: Callable[[Array], bool] | None = None,
) -> Array:
    """By how much J^T w (N,) is uncertain, whoever computes it in these formats: it scatters as much between points
    a few roundings away, or differs nearly as much between near points as between far ones, which rounding does and
    neither a mistake nor a slope. Zero where no such points can be had. `measure`: what counts as scatter there.
    `enough`: whether the first is, so that the second is not asked."""
    size = program.point.size

    def first() -> tuple[Program, Array]:
        gradient = program.gradient(cotangent)
        return gradient, gradient.values(beside(gradient.point, gradient.inputs, generator))

    found = _if_it_runs(first)
    if found is None:
        return np.zeros(size)
    gradient, close = found[0], measure(found[1])
    if precision.form_of(program) is not precision.DOUBLE or (enough is not None and enough(close)):
        return close
    around = _if_it_runs(
        lambda: [gradient.values(_around(gradient.point, size, away, generator)) for away in (FAR, NEAR)]
    )
    if around is None:
        return np.zeros(size)
    far, near = map(extent, around)
    most = SMALL * largest(np.nan_to_num(gradient.value))
    return np.maximum(close, np.where(far <= STEADY * near, np.minimum(np.minimum(far, near), most), 0.0))


def roughened(program: Program, cotangent: Array, form: Precision, generator: np.random.Generator) -> frozenset[str]:
    """The inputs whose gradient J^T w is rounded to a format on its way: along a line of points, each half a rounding
    of that format from the next, it jumps. One that is only wrong goes straight, so near to each other. Where it does
    not run at such points, or does not move, nobody knows: all of them."""
    count = program.point.size + program.value.size
    found = _along_line(program, cotangent, 0.5 * form.roundoff * signed(generator, count))
    steps = np.zeros((1, program.point.size)) if found is None else np.nan_to_num(np.diff(found, axis=0))
    turns, straight = extent(np.diff(steps, axis=0, prepend=steps[:1])), extent(np.vstack([steps, 0.0 * steps[:1]]))
    jumps = turns >= TURNS * straight
    return frozenset(leaf.path for leaf in program.inputs if np.mean(jumps[leaf.span]) >= SEVERAL)


def _along_line(program: Program, cotangent: Array, rates: Array) -> Array | None:
    """J^T w (k, N) at points of a line, each coordinate of which moves at its own rate; and the cotangent after them,
    if there are rates for it. None where it does not run there."""

    def along() -> Array:
        gradient = program.gradient(cotangent)
        points = np.repeat(gradient.point[None], LINE, axis=0)
        points[:, : rates.size] *= 1.0 + np.arange(LINE)[:, None] * rates
        return gradient.values(points)

    return _if_it_runs(along)


def _if_it_runs(run: Callable[[], T]) -> T | None:
    """The user's code may raise anything where it is not meant to run: so near, or twice."""
    try:
        return run()
    except (Ended, MemoryError):
        raise
    except Exception:  # noqa: BLE001
        return None


def beside(point: Array, inputs: Sequence[Leaf], generator: np.random.Generator) -> Array:
    """Points, or tangents, that are a few roundings away in every number; of a gradient, those of the cotangent too."""
    points = np.repeat(point[None], POINTS, axis=0)
    moves = generator.integers(-AWAY, AWAY + 1, points.shape)
    for leaf in inputs:
        own = points[:, leaf.span]
        own += moves[:, leaf.span] * precision.of(leaf.dtype).spacing(own)
    return points


def _around(point: Array, size: int, away: float, generator: np.random.Generator) -> Array:
    """Points of which the first `size` coordinates are moved by up to a share of themselves."""
    points = np.repeat(point[None], POINTS, axis=0)
    points[:, :size] *= 1.0 + away * generator.uniform(-1.0, 1.0, (POINTS, size))
    return points
