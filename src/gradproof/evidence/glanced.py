"""A first look at the whole Jacobian: two evaluations a column, or a group of columns, and what they leave in doubt.

Arrays (N, M) are laid out input by input, as everywhere in exhaustive evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import entry_tolerance, tolerance_of_zero
from gradproof.evidence.gathered import Task
from gradproof.evidence.scales import unimportant_changes
from gradproof.precision import form_of
from gradproof.program import Array, Indices, Leaf
from gradproof.reference.estimate import Estimate
from gradproof.reference.glance import ENTRY, Strictness

NONE: Indices = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Glanced(ABC):
    """`lengths` (N,) is how far each input moved, `agree` how closely the sides had to agree. `scales` are those of
    `block_scales`, `doubtful` the columns of which more must be known."""

    leaves: Sequence[Leaf]
    lengths: Array
    agree: float
    scales: dict[str, Array]
    doubtful: Indices

    @abstractmethod
    def numeric(self, inputs: slice, outputs: slice) -> Array:
        """The derivatives."""

    @abstractmethod
    def rest(self, inputs: slice, outputs: slice) -> Array:
        """What one of them could be off by beyond what the sides had to agree to, as a change over its length."""

    @abstractmethod
    def most(self, inputs: slice, outputs: slice) -> Array:
        """The largest of these for each input."""

    @abstractmethod
    def one(self, i: int, j: int) -> tuple[float, float]:
        """One derivative, and the rest of it."""

    def block(self, inputs: slice, outputs: slice) -> Estimate:
        """A part of the Jacobian, entry by entry."""
        value = self.numeric(inputs, outputs)
        size = np.abs(value)
        for leaf in self.leaves:
            own = slice(max(leaf.start, inputs.start), max(leaf.start, inputs.start, min(leaf.stop, inputs.stop)))
            part = size[own.start - inputs.start : own.stop - inputs.start]
            np.maximum(part, self.scales[leaf.path][outputs], out=part)
        return Estimate.smooth(
            value, self.agree * size + self.rest(inputs, outputs) / np.abs(self.lengths[inputs, None])
        )

    def at(self, leaf: Leaf, i: int, j: int) -> tuple[float, float]:
        """Value and bar of one entry."""
        value, rest = self.one(i, j)
        size = max(abs(value), float(self.scales[leaf.path][j]))
        return value, self.agree * size + rest / abs(float(self.lengths[i]))

    def widest(self, leaf: Leaf, output: Leaf, top: float) -> float:
        """No bar of a block is wider, if no derivative of it is larger than `top`."""
        rest = self.most(leaf.span, output.span) / np.abs(self.lengths[leaf.span])
        return self.agree * max(top, float(self.scales[leaf.path][output.start])) + float(rest.max())


def enough(task: Task, slope: Array, length: Array, scale: Array) -> Array:
    """The bar that is narrow enough, as a change over the displacement: half of the tolerance; in a block that claims
    to be zero, what is unimportant."""
    return _half(task, entry_tolerance(slope / length, scale, task.tolerance), length, scale)


def enough_of_zero(task: Task, length: Array, scale: Array) -> Array:
    """The same for derivatives that are zero."""
    return _half(task, tolerance_of_zero(scale, task.tolerance), length, scale)


def _half(task: Task, granted: Array, length: Array, scale: Array) -> Array:
    granted = 0.5 * length * granted
    if scale.all():
        return granted
    return np.where(scale > 0, granted, np.maximum(granted, unimportant_changes(task, length)))


def strictness_of(task: Task) -> Strictness:
    return ENTRY.seen_in(form_of(task.program).roundoff).within(task.tolerance.finest)
