"""The derivatives in the program's own precision against those that the same rule gives in float64.

The rule itself is judged in float64, where it shows to all digits. What is left to ask needs no step: the same pulls
and pushes in both formats, compared number by number in units of the narrow one's rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import Mask, entry_tolerance
from gradproof.contracts.linear import combination, loudness
from gradproof.errors import Unsupported
from gradproof.evidence.gathered import Task, restricted
from gradproof.evidence.scales import least
from gradproof.norms import largest, rms
from gradproof.precision import DOUBLE, Precision, coarsest, of
from gradproof.program import Array, Leaf, leaf_at
from gradproof.reference.rounding import Excess, Pair, excess, neighbours, off
from gradproof.reference.steps import signed
from gradproof.result import Place
from gradproof.sizes import size_of, sizes_of

# Rows whose excess is traced to its cause, the worst ones first.
TRACED = 4
# No powers of two, so that every product is rounded anew.
FACTORS = (1.1, 0.7, 1.37, 0.83)
# The few numbers that this gives may be small by luck.
LUCK = 64.0
# Roundings that every rule has, and that the tolerance is for.
ORDINARY = 16.0


@dataclass(frozen=True, slots=True)
class Departure:
    """The largest deviation of a native derivative from that of float64 that is beyond its tolerance, also `relative`
    to the larger of the derivative and its block. `steady`: it is the same at neighbouring points, as a mistake would
    be; `scattered`: it is not, and larger than the conditioning of the problem explains, though maybe not larger than
    what the rule does to rounding by itself (`explained`); neither: the conditioning explains it, or (`overflow`) the
    range of the format does."""

    mode: str
    place: Place
    native: float
    wide: float
    relative: float
    steady: bool
    scattered: bool
    explained: bool = False

    @property
    def overflow(self) -> bool:
        return not (self.steady or self.scattered or np.isfinite(self.native))


@dataclass(frozen=True, slots=True)
class Sides:
    """Derivatives in both formats and how far they may be apart, each (rows, numbers)."""

    native: Array
    wide: Array
    allowed: Array
    scale: Array
    form: Precision

    @property
    def beyond(self) -> Array:
        """How many times what is allowed the deviation is; 0 where it is within."""
        with np.errstate(invalid="ignore", over="ignore"):
            times = np.nan_to_num(np.abs(self.native - self.wide) / (self.allowed + 1e-300), nan=np.inf, posinf=np.inf)
        return np.where(off(self.native, self.wide, self.allowed, self.form), times, 0.0)

    @property
    def overflown(self) -> Mask:
        """Where the native number is lost because some derivatives are too large for the format: inf, or NaN made of
        one (inf * 0)."""
        lost = ~np.isfinite(self.native) & np.isfinite(self.wide)
        return lost if largest(np.nan_to_num(self.wide)) >= 0.5 * self.form.largest else np.zeros_like(lost)


def lacking(task: Task) -> dict[str, Unsupported]:
    """The modes that do not exist in the program's own format, whatever float64 has; one row of each is tried."""
    found: dict[str, Unsupported] = {}
    # A stream of its own; and no row of ones, whose derivative may be nothing but rounding, as that of softmax is.
    stream = np.random.default_rng(0)
    for mode in task.modes:
        program, size = task.program, (task.program.value if mode == "reverse" else task.program.point).size
        try:
            (program.pull if mode == "reverse" else program.push)(signed(stream, size)[None])
        except Unsupported as reason:
            found[mode] = reason
    return found


def departures(task: Task, probes: int) -> tuple[Departure, ...]:
    """At most one for each mode that exists in both formats: none where all numbers are within rounding at once."""
    found: list[Departure | None] = []
    for mode in task.modes:
        try:
            found.append(_reverse(task, probes) if mode == "reverse" else _forward(task, probes))
        except Unsupported:
            continue
    return tuple(one for one in found if one is not None)


def _reverse(task: Task, probes: int) -> Departure | None:
    program, form = task.program, coarsest(task.program.inputs + task.program.outputs)
    owners, cotangents = _cotangents(task, probes)
    sizes = sizes_of(program)
    wide = task.reference.pull(cotangents)
    allowed, scale = np.empty_like(wide), np.empty_like(wide)
    for owner in np.unique(owners):
        rows = np.flatnonzero(owners == owner)
        rows_of_it, k = np.nonzero(cotangents[rows])  # an output that is infinite counts only where it is asked for
        value = rms(cotangents[rows][rows_of_it, k] * sizes[k])
        for leaf in program.inputs:
            block = np.ix_(rows, np.arange(leaf.start, leaf.stop))
            scale[block] = rms(wide[block])
            allowed[block] = entry_tolerance(wide[block], scale[block], task.tolerance)
            allowed[block] += least(program, leaf, form) * value
    sides = Sides(program.pull(cotangents), wide, allowed, scale, form)

    def traced(row: int) -> Excess:
        moved = _moved(task, cotangents[row], form)
        plainly = excess(moved, allowed[row], form.roundings, form)
        if not plainly.any:
            return plainly
        # What the rule makes of rounding by itself is no mistake of it, but worth a remark.
        more = excess(moved, allowed[row] + _amplified(task, cotangents[row], form), form.roundings, form)
        return Excess(more.steady, (plainly.steady | plainly.scattered) & ~more.steady, not more.any)

    return _departure("reverse", sides, traced, program.inputs)


def _forward(task: Task, probes: int) -> Departure | None:
    """Rows are outputs here. A neighbour of the point is only to be had with a reverse pass: what that shows of the
    rounding of an output's derivatives is granted to forward mode as well."""
    program, form = task.program, coarsest(task.program.inputs + task.program.outputs)
    owners, tangents = _tangents(task, probes)
    wide = np.ascontiguousarray(task.reference.push(tangents).T)
    allowed, scale = np.empty_like(wide), np.empty_like(wide)
    for output in program.outputs:
        for k, leaf in enumerate(program.inputs):
            block = np.ix_(np.arange(output.start, output.stop), np.flatnonzero(owners == k))
            scale[block] = rms(wide[block])
            allowed[block] = entry_tolerance(wide[block], scale[block], task.tolerance)
            allowed[block] += least(program, leaf, form) * size_of(program, output) * largest(tangents)
    sides = Sides(np.ascontiguousarray(program.push(tangents).T), wide, allowed, scale, form)

    def traced(row: int) -> Excess:
        moved = _moved(task, np.eye(1, program.value.size, row)[0], form)
        pair = Pair(moved.narrow @ tangents.T, moved.wide @ tangents.T)
        granted = allowed[row] + np.nan_to_num(np.abs(pair.narrow - pair.wide)).max(axis=0)
        granted += form.roundings * np.nan_to_num(np.abs(pair.wide - pair.wide[0])).max(axis=0)
        steady = off(sides.native[row], sides.wide[row], granted, form)
        return Excess(steady, np.zeros_like(steady))

    return _departure("forward", sides, traced, program.outputs)


def _departure(mode: str, sides: Sides, traced: Callable[[int], Excess], leaves: tuple[Leaf, ...]) -> Departure | None:
    beyond = np.where(sides.overflown, 0.0, sides.beyond)
    if not beyond.any():
        return _overflow(mode, sides, leaves)
    steady, scattered = np.zeros(beyond.shape, bool), np.zeros(beyond.shape, bool)
    tops = beyond.max(axis=1)
    explained = True
    for row in np.argsort(-tops, kind="stable")[:TRACED]:
        if tops[row] > 0:
            try:
                found = traced(int(row))
            except Unsupported:  # no neighbours to be had: the deviation speaks for itself
                steady[row] = beyond[row] > 0
                explained = False
            else:
                steady[row], scattered[row] = found.steady, found.scattered
                explained &= found.explained
    mask = next((one for one in (steady, scattered) if one.any()), beyond > 0)
    row, column = divmod(int(np.argmax(np.where(mask, beyond, -1.0))), mask.shape[1])
    native, wide = float(sides.native[row, column]), float(sides.wide[row, column])
    size = max(abs(wide), float(sides.scale[row, column]), 1e-300)
    place = _place(mode, leaves, (row, column))
    relative = abs(native - wide) / size
    return Departure(mode, place, native, wide, relative, bool(steady.any()), bool(scattered.any()), explained)


def _overflow(mode: str, sides: Sides, leaves: tuple[Leaf, ...]) -> Departure | None:
    lost = sides.overflown & (sides.beyond > 0)
    if not lost.any():
        return None
    row, column = divmod(int(np.argmax(lost)), lost.shape[1])
    native, wide = float(sides.native[row, column]), float(sides.wide[row, column])
    return Departure(mode, _place(mode, leaves, (row, column)), native, wide, np.inf, steady=False, scattered=False)


def _place(mode: str, leaves: tuple[Leaf, ...], where: tuple[int, int]) -> Place:
    """Columns are inputs in reverse mode, rows are outputs in forward mode."""
    coordinate = where[1] if mode == "reverse" else where[0]
    spot = leaf_at(leaves, coordinate).spot(coordinate)
    return Place(None, spot) if mode == "reverse" else Place(spot, None)


def _moved(task: Task, cotangent: Array, form: Precision) -> Pair:
    """J^T w at the point and at its neighbours, in both formats. The cotangent moves too: it carries the terms that
    cancel where the gradient is a difference of sums. And it is scaled, which a mistake follows and rounding does not:
    every number on the way is rounded anew."""
    native, wide = task.program.gradient(cotangent), task.reference.gradient(cotangent)
    points = neighbours(native.point, native.inputs, form, task.generator)
    factors = np.exp2(task.generator.uniform(-0.5, 0.5, (len(points), 1)))
    factors[0] = 1.0
    count = task.program.point.size
    points[:, count:] = form.round(factors * points[:, count:])
    return Pair(native.values(points.copy()) / factors, wide.values(points) / factors)


def _amplified(task: Task, cotangent: Array, form: Precision) -> Array:
    """What the rule makes of rounding on its way, whatever the point: its float64 numbers for a cotangent times
    several factors, which are those of the cotangent up to rounding; more than is ordinary of it, in units of the
    narrow format's."""
    wide = task.reference.gradient(cotangent)
    points = np.repeat(wide.point[None], 1 + len(FACTORS), axis=0)
    factors = np.array([1.0, *FACTORS])[:, None]
    points[:, task.program.point.size :] *= factors
    found = wide.values(points) / factors
    apart: Array = np.nan_to_num(np.abs(found - found[0])).max(axis=0)
    for leaf in task.program.inputs:
        ordinary = ORDINARY * DOUBLE.roundoff * largest(np.nan_to_num(found[0, leaf.span]))
        apart[leaf.span] = max(float(np.max(apart[leaf.span], initial=0.0)) - ordinary, 0.0)
    return min(LUCK, form.roundings) * (form.roundoff / DOUBLE.roundoff) * apart


def _cotangents(task: Task, probes: int) -> tuple[Array, Array]:
    """Rows, and for each of them the number of the output that it belongs to (negative: to all of them). Every single
    entry, or random ones; and a combination of all in two sizes that a threshold on the cotangent would fall between.
    They are numbers of the outputs' own formats."""
    program = task.program
    count = program.value.size
    if probes == 0:
        rows = [np.eye(count)]
        owners = [k for k, leaf in enumerate(program.outputs) for _ in range(leaf.size)]
    else:
        drawn = [signed(task.generator, count) for _ in range(probes)]
        rows = [restricted(one, leaf.span) for one in drawn for leaf in program.outputs]
        owners = [k for _ in drawn for k in range(len(program.outputs))]
    mixed = combination(count, task.generator) * np.abs(signed(task.generator, count))
    quiet = loudness(program).quiet
    return np.array([*owners, -1, -2]), _rounded(np.vstack([*rows, mixed, quiet * mixed]), program.outputs)


def _tangents(task: Task, probes: int) -> tuple[Array, Array]:
    """The same for pushes: every single coordinate, or random ones; and the input that each row belongs to."""
    program = task.program
    if probes == 0:
        owners = [k for k, leaf in enumerate(program.inputs) for _ in range(leaf.size)]
        return np.array(owners), np.eye(program.point.size)
    drawn = [signed(task.generator, program.point.size) for _ in range(probes)]
    rows = np.vstack([restricted(one, leaf.span) for one in drawn for leaf in program.inputs])
    return np.array([k for _ in drawn for k in range(len(program.inputs))]), _rounded(rows, program.inputs)


def _rounded(rows: Array, leaves: tuple[Leaf, ...]) -> Array:
    for leaf in leaves:
        rows[:, leaf.span] = of(leaf.dtype).round(rows[:, leaf.span])
    return rows
