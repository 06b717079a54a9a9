"""Whether derivatives in the program's own precision are those of float64, several columns at a time.

No coordinate of a group moves by less than one: an entry that is off shows in full, also where there should be none.
The sums are rounded too, which must leave room for that, so that the answer may be no without a cause: then every
entry is looked at.
"""

from __future__ import annotations

import numpy as np

from gradproof.agreement import tolerance_of_one
from gradproof.contracts.linear import loudness, mixed
from gradproof.evidence.asked import rounded, size_asked
from gradproof.evidence.forward import SAVING
from gradproof.evidence.gathered import Task
from gradproof.evidence.groups import groups_of
from gradproof.evidence.scales import least, rounding
from gradproof.norms import farthest, largest, rms, rows_dot
from gradproof.program import Array, pull_every

# The terms of a sum, each up to twice its entry, are rounded one by one, and so is their sum: by so many times the root
# of the sum of squares of the entries, since roundings go either way.
ROUNDINGS = 4.0


def close_pushes(task: Task, known: Array) -> bool:
    """`known`: the Jacobian (N, M) in float64."""
    groups = groups_of(task.program.inputs)
    if SAVING * groups.count > len(known):
        return False
    amounts = groups.amounts(task.generator)
    apart = np.concatenate([task.program.push(rows) for rows in groups.rows(amounts)])
    apart -= groups.sums(amounts, known)
    return all(
        _close(task, apart[own, output.span], known[leaf.span, output.span], rounding(task, output, leaf))
        for leaf, own in zip(groups.leaves, groups.spans, strict=True)
        for output in task.program.outputs
    )


def close_pulls(task: Task, known: Array) -> bool:
    """The same for reverse mode, entry by entry: what a rule does to numbers that are small beside others would be lost
    in a sum. And for a combination of all rows in two sizes, which a threshold on the cotangent would fall between."""
    program, quiet = task.program, loudness(task.program).quiet
    whole = rounded(mixed(known.shape[1], task.generator)[None], program.outputs)
    found, claimed = pull_every(program, np.concatenate([whole, quiet * whole])), rows_dot(known, whole[0])
    for output in program.outputs:
        for leaf in program.inputs:
            block = known[leaf.span, output.span]
            granted = rounding(task, output, leaf) + tolerance_of_one(0.0, rms(block), task.tolerance)
            if not farthest(found.jacobian[leaf.span, output.span], block) <= granted:
                return False
    apart, size = found.more / [[1.0], [quiet]] - claimed, size_asked(whole, program)
    return all(
        largest(apart[:, leaf.span])
        <= least(program, leaf, program.form) * size + tolerance_of_one(0.0, rms(claimed[leaf.span]), task.tolerance)
        for leaf in program.inputs
    )


def _close(task: Task, apart: Array, block: Array, always: float) -> bool:
    """Whether no entry of a block can be off by more than is granted to its smallest, if sums over its rows are `apart`
    by so much. `always` is granted whatever their size."""
    squares = np.einsum("ij,ij->j", block, block)
    granted = always + tolerance_of_one(0.0, float(np.sqrt(squares.sum() / max(block.size, 1))), task.tolerance)
    with np.errstate(invalid="ignore"):  # squares that overflow leave no room
        return bool((np.abs(apart) <= granted - ROUNDINGS * task.program.form.roundoff * np.sqrt(squares)).all())
