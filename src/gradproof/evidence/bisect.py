"""From a probe that disagrees to the entries that are wrong, in O(log N) pairs of calls and O(log M) pulls.

The direction u is restricted to halves of the input leaf, then the cotangent w to halves of the output leaf. A
concentrated error keeps its size while everything else shrinks. The entry that is left is adjudicated by itself,
against its own tolerance: if it is within, the deviation was diffuse, and no entry is wrong.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from gradproof.compare import entry_tolerance, judge
from gradproof.evidence.gathered import Task
from gradproof.norms import rms
from gradproof.program import Array, Leaf
from gradproof.reference.field import field_of, projected
from gradproof.reference.ladder import Goal, first_look, refine, second_opinion
from gradproof.result import Entry, Place

# Effort for one suspect: evaluations after which no further entry is looked for, and how many are named at most.
EVALUATIONS = 120
NAMED = 4
# Columns with at most this many outputs are pulled row by row instead of bisected.
FEW_OUTPUTS = 32


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pair of leaves whose probe (u, w) disagrees by `deviation` = analytic - numeric, beyond `bar`. `pulled` is
    J^T w, which makes the analytic side of every part of u free in reverse mode; None in forward mode."""

    mode: str
    output: Leaf
    input: Leaf
    direction: Array
    cotangent: Array
    pulled: Array | None
    deviation: float
    bar: float


@dataclass(frozen=True, slots=True)
class Located:
    """The wrong entries found; how many columns were adjudicated; what to say when none was wrong."""

    found: tuple[Entry, ...]
    adjudicated: int
    remark: str = ""


def locate(task: Task, suspect: Suspect) -> Located:
    """Best first: always split the part with the largest deviation."""
    leaf = suspect.input
    start = task.reference.tally.evaluations
    queue: list[tuple[float, int, int, float, float]] = []
    found: list[Entry] = []
    adjudicated = 0

    def push(first: int, last: int, deviation: float, bar: float) -> None:
        if last > first and not abs(deviation) <= bar:
            priority = -abs(deviation) if np.isfinite(deviation) else -np.inf
            heapq.heappush(queue, (priority, first, last, deviation, bar))

    push(leaf.start, leaf.stop, suspect.deviation, suspect.bar)
    while queue and len(found) < NAMED and adjudicated < 2 * NAMED:
        if adjudicated and task.reference.tally.evaluations - start > EVALUATIONS:
            break
        _, first, last, deviation, bar = heapq.heappop(queue)
        if last - first == 1:
            adjudicated += 1
            entry = _adjudicate(task, suspect, first)
            if entry is not None:
                found.append(entry)
            elif not found and adjudicated >= 3:
                break
            continue
        middle = (first + last) // 2
        left, left_bar = _deviation(task, suspect, first, middle)
        push(first, middle, left, left_bar)
        if np.isfinite(left) and np.isfinite(deviation):
            # The other half by difference: its bar is the sum, but no call is spent on it.
            push(middle, last, deviation - left, min(bar + left_bar, 2 * bar))
        else:
            push(middle, last, *_deviation(task, suspect, middle, last))
    found.sort(key=lambda entry: -entry.deviation / (entry.tolerance + entry.bar + 1e-300))
    remark = "" if found else "the deviation is spread over entries that are each within tolerance"
    return Located(tuple(found), adjudicated, remark)


def _deviation(task: Task, suspect: Suspect, first: int, last: int) -> tuple[float, float]:
    """Analytic - numeric for the part of the direction in [first, last), and its bar."""
    part = np.zeros_like(suspect.direction)
    part[first:last] = suspect.direction[first:last]
    field = projected(task.reference, suspect.cotangent[None])
    look = first_look(field, part[None])
    wanted = 0.05 * abs(suspect.deviation) if np.isfinite(suspect.deviation) else 0.0
    goal = Goal(np.full((1, 1), wanted), task.tolerance.relative)
    numeric = refine(field, part[None], look, goal)
    if suspect.pulled is not None:
        analytic = float(np.dot(suspect.pulled[first:last], part[first:last]))
    else:
        analytic = float(task.program.push(part[None])[0] @ suspect.cotangent)
    bar = float(numeric.bar[0, 0] + numeric.spread[0, 0])
    return analytic - float(numeric.value[0, 0]), bar


def _adjudicate(task: Task, suspect: Suspect, coordinate: int) -> Entry | None:
    """The worst entry of one column, judged by itself; None if it is within tolerance."""
    steps = task.steps
    step = np.zeros((1, steps.size))
    step[0, coordinate] = steps[coordinate]
    column = first_look(field_of(task.reference), step).slopes.central[0] / steps[coordinate]
    row = _worst_output(task, suspect, coordinate, np.nan_to_num(column))
    one_hot = np.zeros((1, column.size))
    one_hot[0, row] = 1.0
    opinion = second_opinion(projected(task.reference, one_hot), step, 0.5 * task.tolerance.relative)
    numeric = opinion.scaled(1.0 / steps[[coordinate]])
    if suspect.mode == "forward":
        unit = np.zeros((1, steps.size))
        unit[0, coordinate] = 1.0
        analytic = task.program.push(unit)[:, row]
    else:
        analytic = task.program.pull(one_hot)[:, coordinate]
    tolerance = entry_tolerance(numeric.value[0], _block_scale(suspect), task.tolerance)
    if not judge(analytic, numeric.value[0], numeric.bar[0], numeric.spread[0], tolerance).wrong[0]:
        return None
    return Entry(
        Place(suspect.output.spot(row), suspect.input.spot(coordinate)),
        float(analytic[0]),
        float(numeric.value[0, 0]),
        float(numeric.bar[0, 0]),
        float(tolerance[0]),
        float(numeric.spread[0, 0]),
    )


def _block_scale(suspect: Suspect) -> float:
    """The rms of the block's entries, estimated from J^T w: E |J^T w|^2 = |J|_F^2 E w^2."""
    if suspect.pulled is None:
        return 0.0
    outputs = max(suspect.output.size, 1)
    weight = rms(suspect.cotangent[suspect.output.span])
    return rms(suspect.pulled[suspect.input.span]) / (max(weight, 1e-300) * float(np.sqrt(outputs)))


def _worst_output(task: Task, suspect: Suspect, coordinate: int, column: Array) -> int:
    """The output whose derivative with respect to this coordinate deviates most."""
    leaf = suspect.output
    if suspect.mode == "forward":
        unit = np.zeros((1, suspect.direction.size))
        unit[0, coordinate] = 1.0
        gap = np.abs(task.program.push(unit)[0] - column)[leaf.span]
        return leaf.start + int(np.argmax(np.nan_to_num(gap, nan=np.inf)))
    first, last = leaf.start, leaf.stop
    while last - first > FEW_OUTPUTS:
        middle = (first + last) // 2
        halves = (slice(first, middle), slice(middle, last))
        left, right = (_row_deviation(task, suspect, coordinate, column, half) for half in halves)
        first, last = (first, middle) if left >= right else (middle, last)
    rows = np.zeros((last - first, column.size))
    rows[np.arange(last - first), np.arange(first, last)] = 1.0
    gap = np.abs(task.program.pull(rows)[:, coordinate] - column[first:last])
    return first + int(np.argmax(np.nan_to_num(gap, nan=np.inf)))


def _row_deviation(task: Task, suspect: Suspect, coordinate: int, column: Array, part: slice) -> float:
    cotangent = np.zeros((1, column.size))
    cotangent[0, part] = suspect.cotangent[part]
    gap = float(task.program.pull(cotangent)[0, coordinate] - np.dot(cotangent[0, part], column[part]))
    return abs(gap) if np.isfinite(gap) else float("inf")
