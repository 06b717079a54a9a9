"""From a probe that disagrees to the entries that are wrong, in O(log N) pairs of calls and O(log M) pulls.

The direction u is restricted to halves of the input leaf, then the cotangent w to halves of the output leaf. A
concentrated error keeps its size while everything else shrinks. The entry that is left is adjudicated by itself,
against its own tolerance: if it is within, the deviation was diffuse, and no entry is wrong.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gradproof.agreement import CLEAR, Judgement, entry_tolerance, judge
from gradproof.evidence.entries import measured_entry
from gradproof.evidence.gathered import Task, restricted
from gradproof.evidence.lines import own_scale
from gradproof.evidence.scales import rounding
from gradproof.norms import dot, rms, rows_weighed
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, Leaf
from gradproof.reference.estimate import Goal, Kind
from gradproof.reference.field import CHUNK, Field, projected
from gradproof.reference.ladder import first_look, fresh_opinion, refine
from gradproof.reference.surroundings import ordinary, reconsidered
from gradproof.reference.tread import on_tread
from gradproof.result import Entry, Place

# Effort for one suspect: evaluations after which no further entry is looked for, and how many are named at most.
EVALUATIONS = 130
NAMED = 4
# So many outputs are pulled one by one in a batch instead of bisected further, if memory allows.
FEW_OUTPUTS = 32


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pair of leaves whose probe (u, w) is off by `deviation` from the nearest valid derivative, beyond `bar`."""

    mode: str
    output: Leaf
    input: Leaf
    direction: Array
    cotangent: Array
    deviation: float
    bar: float


@dataclass(frozen=True, slots=True)
class Located:
    """The wrong entries found, and what to say when none was wrong; what the entries that were looked at look like,
    and those of them that cannot be told."""

    found: tuple[Entry, ...]
    remark: str = ""
    kinds: frozenset[Kind] = frozenset()
    unclear: tuple[Entry, ...] = ()


def locate(task: Task, suspect: Suspect) -> Located:
    """Go down from the part with the largest deviation, always into the worse half, until one column is left; then from
    the worst of the halves that were passed by."""
    leaf = suspect.input
    pulled = task.program.pull(suspect.cotangent[None])[0] if suspect.mode == "reverse" else None
    if pulled is not None and not np.isfinite(pulled).all():
        pulled = np.where(suspect.direction == 0, 0.0, pulled)  # what the probe left out does not count
    sides = Sides(projected(task.reference, suspect.cotangent, task.exact), pulled)
    start = task.reference.tally.evaluations
    waiting = [Part(-_weight(suspect.deviation), leaf.start, leaf.stop, suspect.deviation, suspect.bar)]
    found: list[Entry] = []
    adjudicated = 0
    kinds: set[Kind] = set()
    unclear: list[Entry] = []
    while waiting and len(found) < NAMED:
        if adjudicated and (task.reference.tally.evaluations - start > EVALUATIONS or adjudicated - len(found) >= 3):
            break
        part = heapq.heappop(waiting)
        while part.last - part.first > 1:
            halves = [half for half in _halves(task, suspect, sides, part) if not abs(half.deviation) <= half.bar]
            if not halves:
                break
            part, *other = sorted(halves)
            for half in other:
                heapq.heappush(waiting, half)
        if part.last - part.first == 1:
            adjudicated += 1
            entry, judgement, kind = _adjudicate(task, suspect, part.first, _block_scale(suspect, pulled))
            kinds.add(kind)
            if judgement.wrong.any():
                found.append(entry)
            elif judgement.undecided.any():
                unclear.append(entry)
    found.sort(key=lambda entry: -entry.deviation / (entry.tolerance + entry.bar + 1e-300))
    remark = "" if found else "the deviation is spread over entries that are each within tolerance"
    return Located(tuple(found), remark, frozenset(kinds), tuple(unclear))


class Sides(NamedTuple):
    """What all parts of u share: the numeric side's field; and J^T w, which makes the analytic side of every part free
    in reverse mode (None in forward mode)."""

    field: Field
    pulled: Array | None


class Part(NamedTuple):
    """The coordinates [first, last) of the direction and how far they deviate; the worst sorts first."""

    priority: float
    first: int
    last: int
    deviation: float
    bar: float


def _weight(deviation: float) -> float:
    return abs(deviation) if np.isfinite(deviation) else np.inf


def _halves(task: Task, suspect: Suspect, sides: Sides, part: Part) -> list[Part]:
    middle = (part.first + part.last) // 2
    left, left_bar = _deviation(task, suspect, sides, slice(part.first, middle))
    if np.isfinite(left) and np.isfinite(part.deviation):
        # The other half by difference: no call is spent on it.
        right, right_bar = part.deviation - left, min(part.bar + left_bar, 2 * part.bar)
    else:
        right, right_bar = _deviation(task, suspect, sides, slice(middle, part.last))
    return [
        Part(-_weight(left), part.first, middle, left, left_bar),
        Part(-_weight(right), middle, part.last, right, right_bar),
    ]


def _deviation(task: Task, suspect: Suspect, sides: Sides, span: slice) -> tuple[float, float]:
    """Analytic - numeric for a part of the direction, and its bar."""
    part = restricted(suspect.direction, span)
    wanted = 0.05 * abs(suspect.deviation) if np.isfinite(suspect.deviation) else 0.0
    goal = Goal(np.full((1, 1), wanted), task.tolerance.finest)
    numeric = refine(sides.field, part, first_look(sides.field, part), goal)
    if sides.pulled is not None:
        analytic = dot(sides.pulled[span], part[0, span])
    else:
        analytic = float(rows_weighed(task.program.push(part), suspect.cotangent)[0])
    return float(numeric.gap(np.full((1, 1), analytic))[0, 0]), float(numeric.bar[0, 0])


def _adjudicate(task: Task, suspect: Suspect, coordinate: int, scale: float) -> tuple[Entry, Judgement, Kind]:
    """The worst entry of one column, judged by itself, and what it looks like."""
    column = _column(task, suspect, coordinate)
    row = _worst_output(task, suspect, coordinate, column)
    one_hot = np.eye(1, task.program.value.size, row)
    field = projected(task.reference, one_hot[0], task.exact)
    step = np.eye(1, task.steps.size, coordinate) * task.steps
    opinion = fresh_opinion(field, step, 0.5 * task.tolerance.relative)
    length = task.steps[[coordinate]]
    numeric = opinion.scaled(1.0 / length)
    line = np.full(1, rms(column[suspect.output.span]))
    if suspect.mode == "forward":
        analytic = task.program.push(np.eye(1, task.steps.size, coordinate))[:, row]
    else:
        pulled = task.program.pull(one_hot)
        analytic, line = pulled[:, coordinate], np.minimum(line, rms(pulled[0, suspect.input.span]))
    uncertain = np.where(numeric.kind[0] == Kind.SMOOTH, CLEAR * numeric.bar[0], np.inf)
    measure = own_scale(scale, numeric.value[0], line, uncertain, task.tolerance)
    tolerance = entry_tolerance(numeric.value[0], measure, task.tolerance)
    tolerance += rounding(task, suspect.output, suspect.input)
    judgement = judge(analytic[None], numeric, tolerance[None])
    if judgement.wrong.any() and task.limits is None and coarsest(task.reference.inputs) is DOUBLE:
        numeric = reconsidered(field, coordinate, task.steps, opinion).scaled(1.0 / length)
        judgement = judge(analytic[None], numeric, tolerance[None])
    elif judgement.wrong.any() and task.limits is None and not analytic.any() and ordinary(numeric.kind).all():
        level = on_tread(task.reference, field, coordinate, numeric.value[0])
        numeric.bar[0] = np.where(level, np.maximum(numeric.bar[0], np.abs(numeric.value[0])), numeric.bar[0])
        judgement = judge(analytic[None], numeric, tolerance[None])
    place = Place(suspect.output.spot(row), suspect.input.spot(coordinate))
    entry = measured_entry(place, (0, 0), analytic[None], numeric, tolerance[None])
    return entry, judgement, Kind(int(numeric.kind[0, 0]))


def _column(task: Task, suspect: Suspect, coordinate: int) -> Array:
    """d(all outputs) / d x_i by one central difference: good enough to see which of them to look at, and lean. Over a
    step as long as that of the probe, which may be short because kinks are close by."""
    step = abs(suspect.direction[coordinate])
    point = task.reference.point[None].copy()
    point[0, coordinate] += step
    above: Array = task.reference.values(point)[0]
    point[:] = task.reference.point  # the function may have overwritten it
    point[0, coordinate] -= step
    below: Array = task.reference.values(point)[0]
    column = above - below
    column *= 0.5 / step
    lost = ~np.isfinite(column)
    if lost.any():  # at the border of the domain one side has to do
        value = task.reference.value
        sided = np.where(np.isfinite(above), above - value, value - below) / step
        column = np.where(lost, np.where(np.isfinite(sided), sided, 0.0), column)
    return column


def _block_scale(suspect: Suspect, pulled: Array | None) -> float:
    """The rms of the block's entries, estimated from J^T w: E |J^T w|^2 = |J|_F^2 E w^2."""
    if pulled is None:
        return 0.0
    weight = rms(suspect.cotangent[suspect.output.span])
    return rms(pulled[suspect.input.span]) / (max(weight, 1e-300) * float(np.sqrt(max(suspect.output.size, 1))))


def _worst_output(task: Task, suspect: Suspect, coordinate: int, column: Array) -> int:
    """The output whose derivative with respect to this coordinate deviates most."""
    leaf = suspect.output
    if suspect.mode == "forward":
        pushed = task.program.push(np.eye(1, suspect.direction.size, coordinate))[0]
        gap = np.abs(pushed - column)[leaf.span]
        return leaf.start + _worst(gap, column[leaf.span])
    first, last = leaf.start, leaf.stop
    while last - first > max(1, min(FEW_OUTPUTS, CHUNK // (column.size + suspect.direction.size))):
        middle = (first + last) // 2
        halves = (slice(first, middle), slice(middle, last))
        left, right = (_row_deviation(task, suspect, coordinate, column, half) for half in halves)
        if left == right == np.inf:  # 0 * inf is NaN in either half; the cause is where the function depends on it
            left, right = (rms(column[half]) for half in halves)
        first, last = (first, middle) if left >= right else (middle, last)
    rows = np.zeros((last - first, column.size))
    rows[np.arange(last - first), np.arange(first, last)] = 1.0
    gap = np.abs(task.program.pull(rows)[:, coordinate] - column[first:last])
    return first + _worst(gap, column[first:last])


def _worst(gap: Array, column: Array) -> int:
    """The largest; of several that are not finite the one on which the function depends most, since 0 * inf is NaN."""
    broken = ~np.isfinite(gap)
    return int(np.argmax(np.where(broken, np.abs(column), -1.0) if broken.any() else gap))


def _row_deviation(task: Task, suspect: Suspect, coordinate: int, column: Array, part: slice) -> float:
    cotangent = restricted(suspect.cotangent, part)
    gap = float(task.program.pull(cotangent)[0, coordinate] - dot(cotangent[0, part], column[part]))
    return abs(gap) if np.isfinite(gap) else float("inf")
