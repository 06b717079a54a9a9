"""How far inputs move that are moved together."""

from __future__ import annotations

import numpy as np

from gradproof.evidence.gathered import Task
from gradproof.evidence.groups import Groups
from gradproof.program import Array, Indices
from gradproof.reference.steps import finely_signed

# Inputs that move together move by steps that differ at most by this factor.
DISPARITY = 32.0
# log2 of how much farther they move where the program should be linear: nothing bends on the way, and rounding counts
# for less.
FARTHER = 12
# log2 of how much shorter, and longer, a second look may be.
SHORTER, LONGER = 5, 3


def drawn_lengths(task: Task, groups: Groups) -> Array:
    """Different, signed amounts, so that all of a group together move about as far as a single one would."""
    lengths = group_lengths(task)
    for leaf, span, linear in zip(groups.leaves, groups.spans, groups.linear, strict=True):
        members = leaf.size // max(span.stop - span.start, 1)
        lengths[leaf.span] *= 2.0 ** (FARTHER if linear else -(members.bit_length() // 2))
    return lengths


def group_lengths(task: Task) -> Array:
    """The same for a few inputs."""
    lengths = finely_signed(task.generator, task.steps.size)
    for leaf in task.program.inputs:
        # The smallest step of a group must resolve entries that are claimed to be zero, above the noise of all outputs.
        steps = task.steps[leaf.span]
        lengths[leaf.span] *= np.maximum(steps, steps.max(initial=0.0) / DISPARITY)
    return lengths


@np.errstate(divide="ignore", invalid="ignore")
def better_lengths(truncation: Array, rounding: Array) -> Indices:
    """log2 of how many times longer each group should move (k,); 0 where no length is better. Both are what there is,
    as a share of what there may be: the one falls with the square of the length, the other grows with its inverse."""
    shorter = np.ceil(np.log2(np.nan_to_num(2.0 * truncation, nan=np.inf)) / 2)
    longer = np.ceil(np.log2(np.nan_to_num(2.0 * rounding, nan=np.inf)))
    possible = (shorter + longer <= 0) & (shorter <= SHORTER) & (longer <= LONGER)
    wanted = np.where(shorter > 0, -shorter, np.where(longer > 0, longer, 0.0))
    return np.where(possible, wanted, 0.0).astype(np.intp)
