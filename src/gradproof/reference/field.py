"""What the ladder of steps sees of a program: a smooth-looking function around a point, and its rounding floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradproof import precision
from gradproof.norms import dot, product_size, rms, rows_weighed
from gradproof.program import Array, Indices, Program, alone_of
from gradproof.reference.complexstep import ComplexStep
from gradproof.reference.estimate import Estimate
from gradproof.reference.steps import room, step_exponent, treads
from gradproof.sizes import sizes_of, terms_of

# Rows of points are evaluated in chunks of about this many numbers (points and values together): large enough to
# drown the cost of a call, small enough to stay in the cache, and never more than a few vectors when N is huge.
CHUNK = 2**20
# log2 of the largest step there is, and of those between the usual ones.
HIGHEST = 12
HALFWAY = (2, 6, 10)
# A first step is tiny below this, that of coordinates of 6e-5; and log2 of how long it gets.
TINY, FURTHEST = 2.0**-30, -4
# Roundings that a computation in the format may add up to.
SOME = 32.0


@dataclass(frozen=True, slots=True)
class Ground:
    """A point, the value there, and `values`, which maps rows of points to rows of M numbers: `rows` at a time, and
    up to `alone` of them one by one, as the value was."""

    point: Array
    value: Array
    values: Callable[[Array], Array]
    rows: int
    alone: int


@dataclass(frozen=True, slots=True)
class Field(Ground):
    """`floor` is the least error that each of the numbers can have, and a computation in float32 has `coarser` times as
    much. `seen` maps points to those that the program really sees, in its own format; None where they are the same."""

    floor: Array
    coarser: float
    exact: Callable[[Array], Estimate | None] | None = None  # derivatives by the complex step, where it may be used
    seen: Callable[[Array], Array] | None = None
    # log2 of the largest step, relative to the first, maybe of each coordinate (N,); and of others than the usual ones.
    highest: int | Indices = HIGHEST
    between: tuple[int, ...] = ()
    treads: Array | None = None  # see `steps.treads`
    smoothed: bool = True  # whether to ask for more digits than stairs of these treads show: see `blur`

    @property
    def coarse(self) -> Array:
        """The error of a computation in float32, or of some roundings of the format if it is no wider; and of some
        roundings of the other numbers, as one that is nearly zero may be what is left of such as they are."""
        return np.maximum(self.coarser * self.floor, SOME * rms(self.floor))

    def limits(self, displacements: Array) -> Indices:
        """The same along each displacement (k,). A tiny one is of a coordinate whose unit that is, or of a function
        that knows of no such unit and hardly moves over so short a way: then it gets as long as if that were one."""
        result = np.where(displacements != 0, self.highest, HIGHEST).min(axis=1, initial=HIGHEST)
        longest = np.abs(displacements).max(axis=1, initial=0.0)
        small = (longest > 0.0) & (longest < TINY)
        if small.any() and self.seen is None:
            result[small] = FURTHEST - np.frexp(longest[small])[1]
        return np.asarray(result)


def ground_of(program: Program) -> Ground:
    return Ground(program.point, program.value, program.values, _rows(program), alone_of(program))


def field_of(program: Program, step: ComplexStep | None = None) -> Field:
    """All outputs of the program, each for itself."""
    floor = sizes_of(program)
    for leaf in program.outputs:
        floor[leaf.span] *= precision.of(leaf.dtype).roundoff
    return Field(
        program.point,
        program.value,
        program.values,
        _rows(program),
        alone_of(program),
        floor,
        _coarser(program),
        None if step is None else step.slopes,
        _rounding(program),
        *_ladder(program),
        treads(program),
    )


def only(field: Field, outputs: Indices) -> Field:
    """Some of its outputs."""
    return Field(
        field.point,
        field.value[outputs],
        lambda points: field.values(points)[:, outputs],
        field.rows,
        field.alone,
        field.floor[outputs],
        field.coarser,
        _then(field.exact, lambda found: Estimate.smooth(found.value[:, outputs], found.bar[:, outputs])),
        field.seen,
        field.highest,
        field.between,
        field.treads,
    )


def single(program: Program, coordinate: int) -> Field:
    """One number of the outputs, by itself."""
    return _combined(program, [(slice(coordinate, coordinate + 1), np.ones(1))], None)


def projected(program: Program, cotangent: Array, step: ComplexStep | None = None) -> Field:
    """All outputs combined by one cotangent into a single number."""
    return _combined(program, [(slice(0, program.value.size), cotangent)], step)


def by_leaf(program: Program, cotangent: Array, step: ComplexStep | None) -> Field:
    """The outputs combined by one cotangent, leaf by leaf: one number each, whatever M is."""
    return _combined(program, [(leaf.span, cotangent[leaf.span]) for leaf in program.outputs], step)


def _combined(program: Program, parts: Sequence[tuple[slice, Array]], step: ComplexStep | None) -> Field:
    def values(points: Array) -> Array:
        outputs = program.values(points)
        return np.stack([rows_weighed(outputs[:, span], weights) for span, weights in parts], axis=1)

    def combined(found: Estimate) -> Estimate:
        sums = [rows_weighed(found.value[:, span], weights) for span, weights in parts]
        bars = [rows_weighed(found.bar[:, span], np.abs(weights)) for span, weights in parts]
        return Estimate.smooth(np.stack(sums, axis=1), np.stack(bars, axis=1))

    return Field(
        program.point,
        # Summed as the rows are: outputs that do not change must not seem to.
        np.array([rows_weighed(program.value[None, span], weights)[0] for span, weights in parts]),
        values,
        _rows(program),
        alone_of(program),
        _floor(program, parts),
        _coarser(program),
        None if step is None else _then(step.slopes, combined),
        _rounding(program),
        *_ladder(program),
        treads(program),
    )


def floor_by_leaf(program: Program, cotangent: Array) -> Array:
    """The floor of `by_leaf`."""
    return _floor(program, [(leaf.span, cotangent[leaf.span]) for leaf in program.outputs])


def _floor(program: Program, parts: Sequence[tuple[slice, Array]]) -> Array:
    """Independent roundings add up like a random walk, hence the root of the sum of squares."""
    sizes = sizes_of(program) if terms_of(program) else program.value
    found = []
    for span, weights in parts:
        size = product_size(weights, sizes[span])
        if not np.isfinite(size):
            terms = weights * sizes[span]
            terms[~np.isfinite(terms)] = 0.0
            size = float(np.sqrt(dot(terms, terms)))
        found.append(size)
    return precision.coarsest(program.outputs).roundoff * np.array(found)


def _then(
    exact: Callable[[Array], Estimate | None] | None, change: Callable[[Estimate], Estimate]
) -> Callable[[Array], Estimate | None] | None:
    if exact is None:
        return None

    def changed(displacements: Array) -> Estimate | None:
        found = exact(displacements)
        return None if found is None else change(found)

    return changed


def _coarser(program: Program) -> float:
    """One rounding of float32 in terms of those of the format; or some of its own, if they are not finer."""
    own = precision.coarsest(program.outputs).roundoff
    return max(precision.SINGLE.roundoff / own, SOME)


def _ladder(program: Program) -> tuple[int | Indices, tuple[int, ...]]:
    """The largest step, and others than the usual ones. No step is longer than twice the scale of its coordinate:
    beyond, an oscillation looks like anything. In float32 the best step stands out by a few digits at most, and must
    not be missed: there the scale is that of the leaf, if it is longer, and steps are closer to each other. So it is
    where results are rounded to less; where arguments are as well, such steps are not exact."""
    most = min(HIGHEST, 1 - step_exponent(program))
    form = precision.form_of(program)
    if form is precision.DOUBLE or precision.coarsest(program.inputs).bits < precision.SINGLE.bits:
        return most, ()
    return np.minimum(most + room(program), HIGHEST), HALFWAY


def _rounding(program: Program) -> Callable[[Array], Array] | None:
    """To the formats of the inputs; None if all are double."""
    if precision.coarsest(program.inputs) is precision.DOUBLE:
        return None

    def rounded(points: Array) -> Array:
        result = points.copy()
        for leaf in program.inputs:
            result[:, leaf.span] = precision.of(leaf.dtype).round(result[:, leaf.span])
        return result

    return rounded


def _rows(program: Program) -> int:
    return max(1, CHUNK // (program.point.size + program.value.size + 1))
