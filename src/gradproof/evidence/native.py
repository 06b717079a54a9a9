"""The derivatives in the program's own precision against those that the same rule gives in float64.

The rule itself is judged in float64, where it shows to all digits. What is left to ask needs no step: the same pulls
and pushes in both formats, compared number by number in units of the narrow one's rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gradproof.errors import BudgetSpent, Unsupported, first_line
from gradproof.evidence.asked import Asked, cotangents, tangents
from gradproof.evidence.gathered import Task
from gradproof.evidence.grouped import close_pulls, close_pushes
from gradproof.evidence.scales import least
from gradproof.evidence.sides import Block, Sides
from gradproof.metered import Metered
from gradproof.norms import largest
from gradproof.precision import DOUBLE, SINGLE, Precision, form_of
from gradproof.program import Array, Every, Leaf, leaf_at, pull_every, push_every
from gradproof.reference.rounding import NEIGHBOURS, Excess, Pair, excess, lasting, magnified, neighbours, off, wobbling
from gradproof.reference.steps import signed
from gradproof.result import Place
from gradproof.sizes import size_of

# Rows whose excess is traced to its cause, the worst ones first.
TRACED = 4
# Measured rounding is a few numbers, which may be small by luck.
LUCK = 64.0
# Roundings that every rule has, and that the tolerance is for.
ORDINARY = 16.0
# How far away, relative to each coordinate, ties are others: signs stay, and so do most domains.
ELSEWHERE = 0.5
# Of its size, what an output may be off by there to be more than rounding.
KNOWN = 0.125


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


def lacking(task: Task) -> dict[str, Unsupported]:
    """The modes that do not exist in the program's own format, whatever float64 has; one row of each is tried."""
    found: dict[str, Unsupported] = {}
    # A stream of its own; and no row of ones, whose derivative may be nothing but rounding, as that of softmax is.
    stream = np.random.default_rng(0)
    for mode in task.modes:
        if mode == "forward" and task.program.pushes:
            continue
        try:
            _one(task.program, mode, stream)
        except Unsupported as reason:
            found[mode] = reason
    return found


def refused(task: Task) -> str:
    """What the rule raises in float64, though not in its own format: a kernel may be written for that alone."""
    stream = np.random.default_rng(0)
    for mode in task.modes:
        try:
            _one(task.reference, mode, stream)
        except (BudgetSpent, Unsupported):
            continue
        except Exception as error:  # noqa: BLE001  the user's own code may raise anything
            return f"{mode} mode raises {type(error).__name__} in float64: {first_line(error)}"
    return ""


def _one(program: Metered, mode: str, stream: np.random.Generator) -> Array:
    """One random row."""
    size = (program.value if mode == "reverse" else program.point).size
    return (program.pull if mode == "reverse" else program.push)(signed(stream, size)[None])


def departures(task: Task, probes: int, known: Mapping[str, Array]) -> tuple[Departure, ...]:
    """At most one for each mode that exists in both formats: none where all numbers are within rounding at once.
    `known`: Jacobians (N, M) of the rule in float64, by mode, where every entry is looked at."""
    known = {} if probes else known
    found: list[Departure | None] = []
    for mode in task.modes:
        try:
            close, asked = (close_pulls, _reverse) if mode == "reverse" else (close_pushes, _forward)
            if mode not in known or not close(task, known[mode]):
                found.append(asked(task, probes, known.get(mode)))
        except Unsupported:
            continue
    return tuple(one for one in found if one is not None)


def _reverse(task: Task, probes: int, known: Array | None) -> Departure | None:
    program, form = task.program, form_of(task.program)
    asked = cotangents(task, probes)
    blocks = tuple(
        Block(rows, leaf.span, least(program, leaf, form) * size)
        for rows, size in zip(asked.alike, asked.sizes, strict=True)
        for leaf in program.inputs
    )
    if known is None:
        native, wide = program.pull(asked.rows), task.reference.pull(asked.rows)
    else:
        found, expected = pull_every(program, asked.more), Every(known, _pulled(task, asked, known))
        native, wide = (np.vstack([one.jacobian.T, one.more]) for one in (found, expected))
    sides = Sides(native, wide, blocks, task.tolerance, form)

    def traced(row: int) -> Excess:
        moved, allowed = _moved(task, asked.rows[row], form), sides.allowed[row]
        plainly = excess(moved, allowed, form.roundings, form)
        if not plainly.any:
            return plainly
        # What the rule makes of rounding by itself is no mistake of it, but worth a remark.
        more = excess(moved, allowed + _amplified(task, asked.rows[row], form), form.roundings, form)
        steady = more.steady
        if steady.any() and form.bits < SINGLE.bits:
            # So coarse a rounding makes ties, and decides on which side of a kink a number is: elsewhere for others.
            steady = steady & lasting(_elsewhere(task, asked.rows[row], form), allowed)
        return Excess(steady, (plainly.steady | plainly.scattered) & ~steady, not more.any)

    return _departure("reverse", sides, traced, program.inputs)


def _pulled(task: Task, asked: Asked, jacobian: Array) -> Array:
    """The pulls in float64 beside the unit cotangents, from the Jacobian: the rule is linear there, or has been called
    wrong."""
    mixed = asked.more @ jacobian.T
    return mixed if np.isfinite(mixed).all() else task.reference.pull(asked.more)


def _forward(task: Task, probes: int, known: Array | None) -> Departure | None:
    """Rows are outputs here. A neighbour of the point is only to be had with a reverse pass: what that shows of the
    rounding of an output's derivatives is granted to forward mode as well."""
    program, form = task.program, form_of(task.program)
    asked = tangents(task, probes)
    longest = 1.0 if asked.units else largest(asked.rows)
    blocks = tuple(
        Block(output.span, rows, least(program, leaf, form) * size_of(program, output) * longest)
        for output in program.outputs
        for rows, leaf in zip(asked.alike, program.inputs, strict=True)
    )
    native = _pushed(program, asked)
    wide = _pushed(task.reference, asked) if known is None else known
    sides = Sides(native.T, wide.T, blocks, task.tolerance, form)

    def traced(row: int) -> Excess:
        unit = np.eye(1, program.value.size, row)[0]
        moved = _moved(task, unit, form)
        pair = Pair(moved.narrow @ asked.rows.T, moved.wide @ asked.rows.T)
        granted = sides.allowed[row] + np.nan_to_num(np.abs(pair.narrow - pair.wide)).max(axis=0)
        granted += np.abs(asked.rows) @ _amplified(task, unit, form)
        granted += form.roundings * np.nan_to_num(np.abs(pair.wide - pair.wide[0])).max(axis=0)
        steady = off(sides.native[row], sides.wide[row], granted, form)
        return Excess(steady, np.zeros_like(steady))

    return _departure("forward", sides, traced, program.outputs)


def _pushed(program: Metered, asked: Asked) -> Array:
    return push_every(program, asked.more).jacobian if asked.units else program.push(asked.rows)


def _departure(mode: str, sides: Sides, traced: Callable[[int], Excess], leaves: tuple[Leaf, ...]) -> Departure | None:
    if sides.close:
        return None
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
                explained &= found.explained or not found.any
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


def _elsewhere(task: Task, cotangent: Array, form: Precision) -> Pair:
    """J^T w farther away. Where the outputs are no more than rounding in this format, as where saturated numbers are
    subtracted, it goes by ties that rounding made, at every point: no deviation is one there."""
    native, wide = task.program.gradient(cotangent), task.reference.gradient(cotangent)
    points = np.repeat(native.point[None], NEIGHBOURS, axis=0)
    own = points[:, : task.program.point.size]
    own[:] = form.round(own * (1.0 + ELSEWHERE * task.generator.uniform(-1.0, 1.0, own.shape)))
    found, exact, weights = task.program.values(own.copy()), task.reference.values(own.copy()), np.abs(cotangent)
    with np.errstate(invalid="ignore"):
        rounding = np.abs(found - exact) @ weights > KNOWN * (np.abs(exact) @ weights)
    expected = wide.values(points.copy())
    return Pair(np.where(rounding[:, None], expected, native.values(points)), expected)


def _amplified(task: Task, cotangent: Array, form: Precision) -> Array:
    """What the rule makes of rounding on its way, whatever the point: what its float64 numbers show of that, more than
    is ordinary, in units of the narrow format's. At points a rounding away, all that is squashed on the way is rounded
    as it was; so it is looked at along a line, too."""
    wide, apart = magnified(task.reference.pull, cotangent)
    apart = np.maximum(apart, wobbling(task.reference, cotangent, task.generator))
    for leaf in task.program.inputs:
        ordinary = ORDINARY * DOUBLE.roundoff * largest(np.nan_to_num(wide[leaf.span]))
        apart[leaf.span] = max(float(np.max(apart[leaf.span], initial=0.0)) - ordinary, 0.0)
    return min(LUCK, form.roundings) * (form.roundoff / DOUBLE.roundoff) * apart
