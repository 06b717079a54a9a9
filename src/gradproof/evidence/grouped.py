"""Whether derivatives in the program's own precision are those of float64, several columns at a time.

No coordinate of a group moves by less than one: an entry that is off shows in full, also where there should be none.
The sums are rounded too, so that the answer may be no without a cause: then all columns are looked at.
"""

from __future__ import annotations

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.evidence.forward import SAVING
from gradproof.evidence.gathered import Task
from gradproof.evidence.groups import groups_of
from gradproof.evidence.scales import least
from gradproof.norms import farthest, rms
from gradproof.precision import coarsest
from gradproof.program import Array, Leaf
from gradproof.sizes import size_of


def close_pushes(task: Task, known: Array) -> bool:
    """`known`: the Jacobian (N, M) in float64."""
    groups = groups_of(task.program.inputs)
    if SAVING * groups.count > len(known):
        return False
    amounts = groups.amounts(task.generator)
    pushed = np.concatenate([task.program.push(rows) for rows in groups.rows(amounts)])
    claimed = groups.sums(amounts, known)
    return all(
        _close(pushed[own, output.span], claimed[own, output.span], _granted(task, known, leaf, output))
        for leaf, own in zip(groups.leaves, groups.spans, strict=True)
        for output in task.program.outputs
    )


def _granted(task: Task, known: Array, leaf: Leaf, output: Leaf) -> float:
    """How far the smallest entries of a block may be off."""
    form = coarsest(task.program.inputs + task.program.outputs)
    rounding = least(task.program, leaf, form) * size_of(task.program, output)
    return rounding + float(entry_tolerance(np.zeros(1), rms(known[leaf.span, output.span]), task.tolerance)[0])


def _close(found: Array, claimed: Array, granted: float) -> bool:
    with np.errstate(invalid="ignore"):
        return farthest(found, claimed) <= granted
