"""A glance at every column of the Jacobian, by itself or together with others, and the columns that it leaves in doubt.

Arrays (N, M) are laid out input by input, as everywhere in exhaustive evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.evidence.gathered import Task
from gradproof.evidence.pattern import Pattern
from gradproof.evidence.scales import absent, block_scales, unimportant_changes
from gradproof.precision import coarsest
from gradproof.program import Array, Indices, Leaf
from gradproof.reference.estimate import Estimate
from gradproof.reference.field import Field
from gradproof.reference.glance import ENTRY, Strictness, glance
from gradproof.reference.steps import finely_signed

# Inputs that move together move by steps that differ at most by this factor.
DISPARITY = 32.0
NONE: Indices = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Glanced:
    """What two evaluations a column, or a group of columns, say. `lengths` (N,) is how far each input moved; `slope`
    and `bar` are per displacement: (N, M), or (groups, M) when there is a pattern, and then `rest` is the bar of the
    entries that are claimed to be zero. `scales` are those of `block_scales`."""

    lengths: Array
    slope: Array
    bar: Array
    scales: dict[str, Array]
    doubtful: Indices
    pattern: Pattern | None = None
    rest: Array | None = None

    def block(self, inputs: slice, outputs: slice) -> Estimate:
        """A part of the Jacobian, entry by entry."""
        lengths = self.lengths[inputs, None]
        if self.pattern is None or self.rest is None:
            return Estimate.smooth(self.slope[inputs, outputs] / lengths, self.bar[inputs, outputs] / lengths)
        groups, size = self.pattern.groups, np.abs(lengths)
        bar = self.rest[groups[inputs], outputs] / size
        value = np.zeros_like(bar)
        some = self.pattern.within(inputs, outputs)
        i, j = self.pattern.inputs[some], self.pattern.outputs[some]
        at = (i - inputs.start, j - outputs.start)
        value[at] = self.slope[groups[i], j] / self.lengths[i]
        bar[at] = self.bar[groups[i], j] / np.abs(self.lengths[i])
        return Estimate.smooth(value, bar)

    def largest(self, jacobian: Array, leaf: Leaf, output: Leaf) -> tuple[int, int] | None:
        """Input and output of the largest entry of a block of an (N, M) Jacobian; None if all are zero."""
        if not (leaf.size and output.size):
            return None
        if self.pattern is None:
            where = divmod(int(np.argmax(np.abs(jacobian[leaf.span, output.span]))), output.size)
            i, j = leaf.start + where[0], output.start + where[1]
            return (i, j) if jacobian[i, j] else None
        some = self.pattern.within(leaf.span, output.span)
        if not some.size:
            return None
        top = some[np.argmax(np.abs(jacobian[self.pattern.inputs[some], self.pattern.outputs[some]]))]
        return int(self.pattern.inputs[top]), int(self.pattern.outputs[top])

    def at(self, i: int, j: int) -> tuple[float, float]:
        """Value and bar of one entry that is not claimed to be zero."""
        row = i if self.pattern is None else int(self.pattern.groups[i])
        length = float(self.lengths[i])
        return float(self.slope[row, j]) / length, float(self.bar[row, j]) / abs(length)

    def widest(self, inputs: slice, outputs: slice) -> float:
        """The largest bar in a block."""
        if self.pattern is None or self.rest is None:
            worst = self.bar[inputs, outputs].max(axis=1)
        else:
            both = np.maximum(self.bar[:, outputs].max(axis=1), self.rest[:, outputs].max(axis=1))
            worst = both[self.pattern.groups[inputs]]
        return float(np.max(worst / np.abs(self.lengths[inputs])))


def glance_columns(task: Task, field: Field, analytic: dict[str, Array]) -> Glanced:
    """Every column by itself."""
    count, steps = task.steps.size, task.steps
    slope = np.empty((count, field.value.size))
    bar = np.empty_like(slope)
    doubtful = np.zeros(count, dtype=bool)
    scales = block_scales(task, analytic)
    strictness = _strictness(task)
    unimportant = unimportant_changes(task)
    batch = max(1, field.rows // 2)
    for first in range(0, count, batch):
        rows = slice(first, min(first + batch, count))
        length = steps[rows, None]
        displacements = np.zeros((len(length), count))
        displacements[np.arange(len(length)), np.arange(rows.start, rows.stop)] = steps[rows]
        seen = glance(field, displacements, strictness)
        slope[rows] = seen.slope
        size, narrow = np.abs(seen.slope), np.empty_like(seen.slope)
        none = absent(task, seen.slope, [one[rows] for one in analytic.values()])
        for leaf in task.program.inputs:
            own = slice(max(leaf.start - first, 0), max(leaf.stop - first, 0))
            scale = scales[leaf.path]
            narrow[own] = enough(task, seen.slope[own], length[own], scale, unimportant)
            if none is not None:
                granted = 0.5 * task.tolerance.of_block * scale * length[own]
                np.maximum(narrow[own], granted, out=narrow[own], where=none[own])
            np.maximum(size[own], scale * length[own], out=size[own])
        known = bar[rows] = seen.bar(size if none is None else np.where(none, 0.0, size))
        sides = [seen.agrees(np.ascontiguousarray(one[rows]) * length, size) for one in analytic.values()]
        doubtful[rows] = ~np.logical_and.reduce([known <= narrow, *sides]).all(axis=1)
    return Glanced(steps, slope, bar, scales, np.flatnonzero(doubtful))


def glance_groups(task: Task, field: Field, analytic: dict[str, Array], pattern: Pattern) -> Glanced:
    """Groups of columns that share no output. A group in which any output disagrees is doubtful as a whole."""
    count, (inputs, outputs, groups) = task.steps.size, (pattern.inputs, pattern.outputs, pattern.groups)
    lengths = group_lengths(task)
    displacements = np.zeros((pattern.count, count))
    displacements[groups, np.arange(count)] = lengths
    seen = glance(field, displacements, _strictness(task))
    reach = np.abs(lengths)
    shortest = np.full(pattern.count, np.inf)
    np.minimum.at(shortest, groups, reach)
    owners = (groups[inputs], outputs)
    length = np.repeat(shortest[:, None], field.value.size, axis=1)
    length[owners] = reach[inputs]
    scale = np.empty_like(length)
    scales = block_scales(task, analytic)
    for leaf in task.program.inputs:
        scale[groups[leaf.span]] = scales[leaf.path]
    size = np.maximum(np.abs(seen.slope), scale * length)
    bar = seen.bar(size)
    unimportant = unimportant_changes(task)
    agreed = bar <= enough(task, seen.slope, length, scale, unimportant)
    apart = np.zeros_like(bar)
    for jacobian in analytic.values():
        expected = np.zeros_like(bar)
        expected[owners] = pattern.values(jacobian) * lengths[inputs]
        agreed &= seen.agrees(expected, size)
        np.maximum(apart, np.abs(expected - seen.slope), out=apart)
    # What an entry that is claimed to be zero could be, without being seen.
    rest = apart + seen.floor
    agreed &= rest <= enough(task, np.zeros_like(rest), shortest[:, None], scale, unimportant)
    doubtful = np.flatnonzero(np.isin(groups, np.flatnonzero(~agreed.all(axis=1)))) if not agreed.all() else NONE
    return Glanced(lengths, seen.slope, bar, scales, doubtful, pattern, rest)


def group_lengths(task: Task) -> Array:
    """How far each input moves when it moves together with others: different, signed amounts."""
    lengths = finely_signed(task.generator, task.steps.size)
    for leaf in task.program.inputs:
        # The smallest step of a group must resolve entries that are claimed to be zero, above the noise of all outputs.
        steps = task.steps[leaf.span]
        lengths[leaf.span] *= np.maximum(steps, np.max(steps, initial=0.0) / DISPARITY)
    return lengths


def enough(task: Task, slope: Array, length: Array, scale: Array, unimportant: Array) -> Array:
    """The bar that is narrow enough, as a change over the displacement: half of the tolerance; in a block that claims
    to be zero, what is unimportant."""
    granted = entry_tolerance(slope / length, scale, task.tolerance)
    granted *= 0.5 * length
    return granted if scale.all() else np.where(scale > 0, granted, np.maximum(granted, unimportant))


def _strictness(task: Task) -> Strictness:
    return ENTRY.seen_in(coarsest(task.program.inputs + task.program.outputs).roundoff).within(task.tolerance.finest)
