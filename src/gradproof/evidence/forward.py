"""The Jacobian by forward mode: column by column, or several at a time where reverse mode has shown a pattern.

As in `pattern`, the claim is not trusted. All inputs of a group move by different, signed amounts, and every output
must move by what its one claimed entry says, to the last digits; an entry that only forward mode has would show. Where
anything does, all columns are taken one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.evidence.gathered import Task
from gradproof.evidence.pattern import Pattern
from gradproof.evidence.together import expected_of, groups_of
from gradproof.precision import DOUBLE, coarsest, of
from gradproof.program import Array, Leaf, push_every
from gradproof.reference.steps import finely_signed, signed

# By how many roundings the modes may differ, and still nothing be hidden in a group.
ROUNDINGS = 64.0
# Groups must be so many times fewer than columns to be worth while.
SAVING = 4


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """The Jacobian (N, M), that of reverse mode itself if it is the same number by number; and the pattern, if it has
    no entries beside those of reverse mode."""

    jacobian: Array
    pattern: Pattern | None


def columns(task: Task, reverse: Array | None, pattern: Pattern | None) -> Columns:
    """A tangent that moves everything is pushed alone, as the user would: an adapter can hold a batch against it, which
    a single coordinate would not test."""
    found = None if reverse is None or pattern is None else _grouped(task, reverse, pattern)
    if found is not None:
        return Columns(found, pattern)
    if reverse is not None and pattern is None and _together(task, reverse):
        return Columns(reverse, None)
    if task.role == "own":
        task.program.push(signed(task.generator, task.steps.size)[None])
    found = push_every(task.program, np.empty((0, task.steps.size))).jacobian
    if reverse is not None and np.array_equal(found[:1], reverse[:1]) and np.array_equal(found, reverse):
        return Columns(reverse, pattern)
    return Columns(found, None)


def moved_in_groups(task: Task, pattern: Pattern, leaves: tuple[Leaf, ...]) -> Array:
    """One row for each group, (groups, N): inputs move by 1 to 2, up or down, by a number of their own format."""
    moved = finely_signed(task.generator, pattern.groups.size)
    for leaf in leaves:
        moved[leaf.span] = of(leaf.dtype).round(moved[leaf.span])
    rows = np.zeros((pattern.count, moved.size))
    rows[pattern.groups, np.arange(moved.size)] = moved
    return rows


def expected(jacobian: Array, pattern: Pattern, moved: Array) -> Array:
    """What the claimed entries make of these tangents, (groups, M)."""
    result = np.zeros((len(moved), jacobian.shape[1]))
    groups = pattern.groups[pattern.inputs]
    result[groups, pattern.outputs] = pattern.values(jacobian) * moved[groups, pattern.inputs]
    return result


def mixed_groups(task: Task, jacobian: Array) -> tuple[Array, Array]:
    """Tangents that move many inputs at once, whether or not they share outputs, (groups, N); and what the Jacobian
    makes of them, (groups, M)."""
    groups, count = groups_of(task)
    moved = finely_signed(task.generator, groups.size)
    for leaf in task.program.inputs:
        moved[leaf.span] = of(leaf.dtype).round(moved[leaf.span])
    rows = np.zeros((count, groups.size))
    rows[groups, np.arange(groups.size)] = moved
    return rows, expected_of(task, jacobian, moved, count)


def _together(task: Task, reverse: Array) -> bool:
    """Whether forward mode is reverse mode to the last digits, in random sums of columns: an entry of it that is off
    shows by its whole size in one of them."""
    program = task.program
    if coarsest(program.inputs + program.outputs) is not DOUBLE or SAVING * groups_of(task)[1] > len(reverse):
        return False
    rows, claimed = mixed_groups(task, reverse)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(program.push(rows) - claimed) <= ROUNDINGS * DOUBLE.roundoff * _sizes(task, claimed)).all())


def _sizes(task: Task, claimed: Array) -> Array:
    """What the numbers of each group are judged by: themselves, and the rms of their output."""
    size = np.abs(claimed)
    for output in task.program.outputs:
        if output.size:
            part = size[:, output.span]
            np.maximum(part, np.sqrt(np.einsum("gj,gj->g", part, part) / output.size)[:, None], out=part)
    return size


def _grouped(task: Task, reverse: Array, pattern: Pattern) -> Array | None:
    """None where that would save little, or where anything is not as expected."""
    program = task.program
    if coarsest(program.inputs + program.outputs) is not DOUBLE or SAVING * pattern.count > len(reverse):
        return None
    moved = moved_in_groups(task, pattern, program.inputs)
    pushed, claimed = program.push(moved), expected(reverse, pattern, moved)
    if np.array_equal(pushed, claimed):
        return reverse
    with np.errstate(invalid="ignore"):
        if not (np.abs(pushed - claimed) <= ROUNDINGS * DOUBLE.roundoff * _sizes(task, claimed)).all():
            return None
    groups = pattern.groups[pattern.inputs]
    found = np.zeros(reverse.shape)
    found[pattern.inputs, pattern.outputs] = pushed[groups, pattern.outputs] / moved[groups, pattern.inputs]
    return found
