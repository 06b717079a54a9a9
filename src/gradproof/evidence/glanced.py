"""A glance at every column of the Jacobian, by itself or together with others, and the columns that it leaves in doubt.

Arrays (N, M) are laid out input by input, as everywhere in exhaustive evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import Mask, entry_tolerance
from gradproof.evidence.gathered import Task, distinct
from gradproof.evidence.pattern import Pattern
from gradproof.evidence.scales import absent, block_scales, unimportant_changes
from gradproof.precision import coarsest
from gradproof.program import Array, Indices, Leaf
from gradproof.reference.estimate import Estimate
from gradproof.reference.field import Field
from gradproof.reference.glance import BENT_BY_ROUNDING, ENTRY, Glance, Strictness, glance, glance_at
from gradproof.reference.stencil import FLOOR_FACTOR, sample_columns
from gradproof.reference.steps import finely_signed

# Inputs that move together move by steps that differ at most by this factor.
DISPARITY = 32.0
# Numbers that are looked at together: few enough for all that is made of them to stay in the cache.
PIECE = 2**15
NONE: Indices = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Glanced:
    """What two evaluations a column, or a group of columns, say. `lengths` (N,) is how far each input moved; `slope`
    and its `bar` are per displacement: (N, M), or (groups, M) when there is a pattern, and then `rest` is the bar of
    the entries that are claimed to be zero. `scales` are those of `block_scales`."""

    lengths: Array
    slope: Array
    bar: Callable[[slice, slice], Array]  # of these rows and outputs
    highest: Callable[[slice, slice], Array]  # of each of these rows, over these outputs: no bar is wider
    scales: dict[str, Array]
    doubtful: Indices
    pattern: Pattern | None = None
    rest: Array | None = None

    def block(self, inputs: slice, outputs: slice) -> Estimate:
        """A part of the Jacobian, entry by entry."""
        lengths = self.lengths[inputs, None]
        if self.pattern is None or self.rest is None:
            return Estimate.smooth(self.slope[inputs, outputs] / lengths, self.bar(inputs, outputs) / lengths)
        groups, size = self.pattern.groups, np.abs(lengths)
        bar = self.rest[groups[inputs], outputs] / size
        value = np.zeros_like(bar)
        some = self.pattern.within(inputs, outputs)
        i, j = self.pattern.inputs[some], self.pattern.outputs[some]
        at = (i - inputs.start, j - outputs.start)
        value[at] = self.slope[groups[i], j] / self.lengths[i]
        bar[at] = self.bar(slice(0, self.pattern.count), slice(0, self.slope.shape[1]))[groups[i], j] / np.abs(
            self.lengths[i]
        )
        return Estimate.smooth(value, bar)

    def largest(self, jacobian: Array, leaf: Leaf, output: Leaf) -> tuple[int, int] | None:
        """Input and output of the largest entry of a block of an (N, M) Jacobian; None if all are zero."""
        if not (leaf.size and output.size):
            return None
        if self.pattern is None:
            where = divmod(_top(jacobian[leaf.span, output.span]), output.size)
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
        return float(self.slope[row, j]) / length, float(self.bar(slice(row, row + 1), slice(j, j + 1))[0, 0]) / abs(
            length
        )

    def widest(self, inputs: slice, outputs: slice) -> float:
        """The largest bar in a block."""
        if self.pattern is None or self.rest is None:
            worst = self.highest(inputs, outputs)
        else:
            both = np.maximum(self.highest(slice(0, self.pattern.count), outputs), self.rest[:, outputs].max(axis=1))
            worst = both[self.pattern.groups[inputs]]
        return float(np.max(worst / np.abs(self.lengths[inputs])))


def glance_columns(task: Task, field: Field, analytic: dict[str, Array]) -> Glanced:
    """Every column by itself."""
    count, steps, jacobians = task.steps.size, task.steps, distinct(analytic)
    slope = np.empty((count, field.value.size))
    doubtful = np.zeros(count, dtype=bool)
    scales = block_scales(task, analytic)
    strictness, unimportant = _strictness(task), unimportant_changes(task)
    batch, piece = max(1, (field.rows - 1) // 2), max(1, PIECE // max(1, field.value.size))
    for first in range(0, count, batch):
        up, down, middle = sample_columns(field, steps, slice(first, min(first + batch, count)))
        for leaf in task.program.inputs:
            scale = scales[leaf.path]
            for start in range(max(first, leaf.start), min(first + batch, leaf.stop), piece):
                rows = slice(start, min(start + piece, first + batch, leaf.stop))
                own, length = slice(rows.start - first, rows.stop - first), steps[rows, None]
                seen = glance_at(field, up[own], down[own], middle, strictness)
                slope[rows] = seen.slope
                sure = _surely(task, seen, [one[rows] for one in jacobians], length, scale)
                left = np.flatnonzero(~sure)
                if left.size:
                    claimed = [one[start + left] * length[left] for one in jacobians]
                    sure[left] = _agreed(task, seen.of_rows(left), claimed, length[left], scale, unimportant)
                doubtful[rows] = ~sure

    def bar(rows: slice, outputs: slice) -> Array:
        size = np.abs(slope[rows, outputs])
        for leaf in task.program.inputs:
            own = slice(max(leaf.start, rows.start), max(leaf.start, rows.start, min(leaf.stop, rows.stop)))
            part = size[own.start - rows.start : own.stop - rows.start]
            np.maximum(part, scales[leaf.path][outputs] * steps[own, None], out=part)
        return np.asarray(strictness.agree * size + (FLOOR_FACTOR * field.floor)[outputs])

    def highest(rows: slice, outputs: slice) -> Array:
        size, floor = _reach(slope[rows, outputs]), field.floor[outputs]
        for leaf in task.program.inputs:
            own = slice(max(leaf.start, rows.start), max(leaf.start, rows.start, min(leaf.stop, rows.stop)))
            part = size[own.start - rows.start : own.stop - rows.start]
            np.maximum(part, scales[leaf.path][outputs].max() * steps[own], out=part)
        return np.asarray(strictness.agree * size + FLOOR_FACTOR * floor.max())

    return Glanced(steps, slope, bar, highest, scales, np.flatnonzero(doubtful))


@np.errstate(invalid="ignore")
def _surely(task: Task, seen: Glance, jacobians: Sequence[Array], lengths: Array, scale: Array) -> Mask:
    """The rows in which nothing goes beyond what is granted to the smallest entries: mostly all, and quickly said."""
    agree, tolerance, length = seen.strictness.agree, task.tolerance, lengths[:, 0]
    sure = np.ones(len(length), dtype=bool)
    apart = [np.multiply(jacobian, lengths, order="C") for jacobian in jacobians]
    for deviation in apart:
        np.subtract(deviation, seen.slope, out=deviation)
    for output in task.program.outputs:
        if not output.size:
            continue
        block, size = float(scale[output.start]), scale[output.start] * length
        floor = seen.floor[output.span]
        low, high = float(floor.min()), float(floor.max())
        for deviation in apart:
            sure &= _reach(deviation[:, output.span]) <= agree * size + low
        sure &= seen.bend[:, output.span].max(axis=1) <= seen.strictness.bend * size + BENT_BY_ROUNDING * low
        # The bar of an entry up to the size of its block, and of one beyond.
        sure &= agree * size + high <= 0.5 * min(tolerance.of_block * block, tolerance.ceiling) * length
        sure &= high <= (0.5 * tolerance.relative - agree) * size
    return sure


def _agreed(
    task: Task, seen: Glance, claimed: Sequence[Array], length: Array, scale: Array, unimportant: Array
) -> Mask:
    """The rows in which every entry agrees, judged by its own size."""
    size = np.maximum(np.abs(seen.slope), scale * length)
    granted, none = enough(task, seen.slope, length, scale, unimportant), absent(task, seen.slope, claimed)
    if none is not None:
        np.maximum(granted, 0.5 * task.tolerance.of_block * scale * length, out=granted, where=none)
    narrow = seen.bar(size if none is None else np.where(none, 0.0, size)) <= granted
    return np.asarray(np.logical_and.reduce([narrow, *(seen.agrees(one, size) for one in claimed)]).all(axis=1))


def _reach(rows: Array) -> Array:
    """The largest absolute value of each row, or NaN."""
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


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
    for jacobian in distinct(analytic):
        expected = np.zeros_like(bar)
        expected[owners] = pattern.values(jacobian) * lengths[inputs]
        agreed &= seen.agrees(expected, size)
        np.maximum(apart, np.abs(expected - seen.slope), out=apart)
    # What an entry that is claimed to be zero could be, without being seen.
    rest = apart + seen.floor
    agreed &= rest <= enough(task, np.zeros_like(rest), shortest[:, None], scale, unimportant)
    doubtful = np.flatnonzero(np.isin(groups, np.flatnonzero(~agreed.all(axis=1)))) if not agreed.all() else NONE
    return Glanced(
        lengths,
        seen.slope,
        lambda rows, columns: np.asarray(bar[rows, columns]),
        lambda rows, columns: np.asarray(bar[rows, columns].max(axis=1)),
        scales,
        doubtful,
        pattern,
        rest,
    )


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


def _top(block: Array) -> int:
    """Where the largest absolute value is, without copies of all of them."""
    high, low = float(block.max()), float(block.min())
    found = block == (high if high >= -low else low)
    if high == -low:
        found |= block == low
    return int(np.argmax(found))


def _strictness(task: Task) -> Strictness:
    return ENTRY.seen_in(coarsest(task.program.inputs + task.program.outputs).roundoff).within(task.tolerance.finest)
