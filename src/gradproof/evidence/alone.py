"""A glance at every column of the Jacobian by itself: what is left to do where columns cannot be looked at together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.evidence.gathered import Task, distinct
from gradproof.evidence.glanced import Glanced, enough, strictness_of
from gradproof.evidence.scales import absent, block_scales
from gradproof.norms import PIECE
from gradproof.program import Array, Indices, Mask
from gradproof.reference.field import Field
from gradproof.reference.glance import BENT_BY_ROUNDING, Glance, glance_at
from gradproof.reference.stencil import FLOOR_FACTOR, sample_columns


@dataclass(frozen=True, slots=True)
class Alone(Glanced):
    """`slope` (N, M) is per displacement; `floor` (M,) is what rounding may add to it."""

    slope: Array
    floor: Array

    def numeric(self, inputs: slice, outputs: slice) -> Array:
        return np.asarray(self.slope[inputs, outputs] / self.lengths[inputs, None])

    def rest(self, inputs: slice, outputs: slice) -> Array:
        return np.broadcast_to(self.floor[outputs], (inputs.stop - inputs.start, outputs.stop - outputs.start))

    def most(self, inputs: slice, outputs: slice) -> Array:
        return np.full(inputs.stop - inputs.start, self.floor[outputs].max())

    def one(self, i: int, j: int) -> tuple[float, float]:
        return float(self.slope[i, j]) / float(self.lengths[i]), float(self.floor[j])


@dataclass(frozen=True, slots=True)
class Columns:
    """Some columns: what each of them is over its step (k, M), and of which of them more must be known (k,)."""

    slope: Array
    doubtful: Mask


def glance_alone(task: Task, field: Field, analytic: dict[str, Array]) -> Alone:
    scales = block_scales(task, analytic)
    seen = glance_at_columns(task, field, analytic, scales, np.arange(task.steps.size))
    floor = FLOOR_FACTOR * field.floor
    doubtful = np.flatnonzero(seen.doubtful)
    return Alone(task.program.inputs, task.steps, strictness_of(task).agree, scales, doubtful, seen.slope, floor)


def glance_at_columns(
    task: Task, field: Field, analytic: dict[str, Array], scales: dict[str, Array], columns: Indices
) -> Columns:
    """Each of these, in order, by itself."""
    steps, jacobians = task.steps, distinct(analytic)
    slope = np.empty((columns.size, field.value.size))
    doubtful = np.zeros(columns.size, dtype=bool)
    strictness = strictness_of(task)
    batch, piece = max(1, (field.rows - 1) // 2), max(1, PIECE // max(1, field.value.size))
    for first in range(0, columns.size, batch):
        some = columns[first : first + batch]
        up, down, middle = sample_columns(field, steps, some)
        for leaf in task.program.inputs:
            scale = scales[leaf.path]
            begin, end = np.searchsorted(some, (leaf.start, leaf.stop))
            for start in range(begin, end, piece):
                own = slice(start, min(start + piece, end))
                rows, length = _as_slice(some[own]), steps[some[own], None]
                seen = glance_at(field, up[own], down[own], middle, strictness)
                sure = _surely(task, seen, [one[rows] for one in jacobians], length, scale)
                left = np.flatnonzero(~sure)
                if left.size:
                    claimed = [one[some[own][left]] * length[left] for one in jacobians]
                    sure[left] = _agreed(task, seen.of_rows(left), claimed, length[left], scale)
                slope[first + own.start : first + own.stop] = seen.slope
                doubtful[first + own.start : first + own.stop] = ~sure
    return Columns(slope, doubtful)


def _as_slice(rows: Indices) -> slice | Indices:
    """Neighbours need no copy."""
    return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == rows.size - 1 else rows


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


def _agreed(task: Task, seen: Glance, claimed: Sequence[Array], length: Array, scale: Array) -> Mask:
    """The rows in which every entry agrees, judged by its own size."""
    size = np.maximum(np.abs(seen.slope), scale * length)
    granted, none = enough(task, seen.slope, length, scale), absent(task, seen.slope, claimed)
    if none is not None:
        np.maximum(granted, 0.5 * task.tolerance.of_block * scale * length, out=granted, where=none)
    narrow = seen.bar(size if none is None else np.where(none, 0.0, size)) <= granted
    return np.asarray(np.logical_and.reduce([narrow, *(seen.agrees(one, size) for one in claimed)]).all(axis=1))


def _reach(rows: Array) -> Array:
    """The largest absolute value of each row, or NaN."""
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))
