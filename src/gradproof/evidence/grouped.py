"""Whether derivatives in the program's own precision are those of float64, several rows or columns at a time.

No coordinate of a group moves by less than one: an entry that is off shows in full, also where there should be none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.evidence.forward import SAVING, expected, mixed_groups, moved_in_groups
from gradproof.evidence.gathered import Task
from gradproof.evidence.pattern import Pattern
from gradproof.evidence.scales import least
from gradproof.evidence.together import groups_of
from gradproof.norms import farthest, rms
from gradproof.precision import coarsest
from gradproof.program import Array, Leaf
from gradproof.sizes import size_of

# Pulls are made one by one: more than this many cost more than all of them together.
FEW = 4


def close_pushes(task: Task, known: Array, pattern: Pattern) -> bool:
    """Of columns that share no output. `known`: the Jacobian (N, M) in float64."""
    if SAVING * pattern.count > len(known):
        return False
    moved = moved_in_groups(task, pattern, task.program.inputs)
    pushed, claimed = task.program.push(moved), expected(known, pattern, moved)
    for leaf in task.program.inputs:
        own = np.unique(pattern.groups[leaf.span])
        for output in task.program.outputs:
            if not _close(
                pushed[own, output.span], claimed[own, output.span], _granted(task, known, pattern, leaf, output)
            ):
                return False
    return True


def close_sums(task: Task, known: Array) -> bool:
    """The same of columns that may share outputs: their sums are rounded too, so that this may be False for nothing."""
    if SAVING * groups_of(task)[1] > len(known):
        return False
    rows, claimed = mixed_groups(task, known)
    pushed, form = task.program.push(rows), coarsest(task.program.inputs + task.program.outputs)
    for leaf in task.program.inputs:
        own = np.flatnonzero(rows[:, leaf.span].any(axis=1))
        for output in task.program.outputs:
            scale = rms(known[leaf.span, output.span])
            granted = least(task.program, leaf, form) * size_of(task.program, output)
            granted += float(entry_tolerance(np.zeros(1), scale, task.tolerance)[0])
            if not _close(pushed[own, output.span], claimed[own, output.span], granted):
                return False
    return True


@dataclass(frozen=True, eq=False, slots=True)
class Pulls:
    """Cotangents of groups, what they gave, what is expected of them; and whether all that is close."""

    cotangents: Array
    pulled: Array
    expected: Array
    close: bool


def pulls_of_groups(task: Task, known: Array, pattern: Pattern) -> Pulls | None:
    """Of rows that share no input, where there are few such groups."""
    mirrored = pattern.mirrored(task.program.outputs)
    if mirrored is None or mirrored.count > FEW or SAVING * mirrored.count > known.shape[1]:
        return None
    moved = moved_in_groups(task, mirrored, task.program.outputs)
    pulled, claimed = task.program.pull(moved), expected(known.T, mirrored, moved)
    close = True
    for output in task.program.outputs:
        own = np.unique(mirrored.groups[output.span])
        for leaf in task.program.inputs:
            granted = _granted(task, known, pattern, leaf, output)
            close = close and _close(pulled[own, leaf.span], claimed[own, leaf.span], granted)
    return Pulls(moved, pulled, claimed, close)


def _granted(task: Task, known: Array, pattern: Pattern, leaf: Leaf, output: Leaf) -> float:
    """How far the smallest entries of a block may be off."""
    some = pattern.within(leaf.span, output.span)
    entries = known[pattern.inputs[some], pattern.outputs[some]]
    scale = rms(entries) * float(np.sqrt(entries.size / max(1, leaf.size * output.size)))
    form = coarsest(task.program.inputs + task.program.outputs)
    rounding = least(task.program, leaf, form) * size_of(task.program, output)
    return rounding + float(entry_tolerance(np.zeros(1), scale, task.tolerance)[0])


def _close(found: Array, claimed: Array, granted: float) -> bool:
    with np.errstate(invalid="ignore"):
        return farthest(found, claimed) <= granted
