"""Which inputs can be moved together: those of which no output is claimed to depend on two.

The claim comes from the analytic side and is not trusted. All inputs of a group move by different, signed amounts, so
an output that depends on one more of them than claimed deviates by that derivative, and is then looked at by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradproof.program import Array, Indices, Leaf

# Groups must be this many times fewer than inputs to be worth while.
SAVING = 2
# First-fit colouring visits inputs one by one; beyond this many it would cost more than it saves.
MOST_INPUTS = 2**12


@dataclass(frozen=True, slots=True)
class Pattern:
    """The entries that some mode claims not to be zero, sorted by output; the group of every input, and their number.
    No group mixes leaves: their scales may be far apart."""

    outputs: Indices
    inputs: Indices
    groups: Indices
    count: int

    def within(self, inputs: slice, outputs: slice) -> Indices:
        """Which of these entries lie in a block."""
        inside = (self.inputs >= inputs.start) & (self.inputs < inputs.stop)
        inside &= (self.outputs >= outputs.start) & (self.outputs < outputs.stop)
        return np.flatnonzero(inside)

    def values(self, jacobian: Array) -> Array:
        """The claimed entries of an (N, M) Jacobian."""
        return jacobian[self.inputs, self.outputs]

    def times(self, values: Array, cotangent: Array) -> Array:
        """What entries of these values make of it, (N,)."""
        return np.asarray(np.bincount(self.inputs, values * cotangent[self.outputs], self.groups.size), np.float64)

    def mirrored(self, leaves: Sequence[Leaf]) -> Pattern | None:
        """That of the transpose, for outputs that share no input; None where it is no block structure."""
        order = np.argsort(self.inputs, kind="stable")
        inputs, outputs = self.inputs[order], self.outputs[order]
        groups = _by_rank(inputs, outputs, self.groups.size, leaves[-1].stop)
        return None if groups is None else Pattern(inputs, outputs, *_apart(groups, leaves))


def pattern_of(jacobians: Sequence[Array], leaves: Sequence[Leaf]) -> Pattern | None:
    """The pattern of (N, M) Jacobians, or None where moving inputs together would save little."""
    first = jacobians[0]
    # An output that depends on most of the inputs says it all. In a full Jacobian, the first does.
    if first.size and SAVING * np.count_nonzero(first[:, 0]) > len(first):
        return None
    claimed = first != 0
    for other in jacobians[1:]:
        if other is not first:
            claimed |= other != 0
    count, width = claimed.shape
    if SAVING * np.count_nonzero(claimed) > claimed.size or count <= SAVING:
        return None
    inputs, outputs = np.divmod(np.flatnonzero(claimed), width)
    order = np.argsort(outputs, kind="stable")
    inputs, outputs = inputs[order], outputs[order]
    depends_on = np.bincount(outputs, minlength=width)
    if SAVING * int(depends_on.max(initial=0)) > count:
        return None
    ranked = _by_rank(outputs, inputs, width, count)
    if ranked is None and count > MOST_INPUTS:
        return None
    groups, number = _apart(_first_fit(claimed) if ranked is None else ranked, leaves)
    return Pattern(outputs, inputs, groups, number) if SAVING * number <= count else None


def _by_rank(outputs: Indices, inputs: Indices, width: int, count: int) -> Indices | None:
    """Groups in a block structure, in which the k-th input of every output is the k-th of all its outputs. Entries come
    sorted by output."""
    depends_on = np.bincount(outputs, minlength=width)
    rank = np.arange(outputs.size) - (np.cumsum(depends_on) - depends_on)[outputs]
    groups = np.zeros(count, dtype=np.intp)
    groups[inputs] = rank
    return groups if (groups[inputs] == rank).all() else None


def _first_fit(claimed: NDArray[np.bool_]) -> Indices:
    """Greedy colouring: every input joins the first group with which it shares no output. Sets are whole numbers."""
    taken: list[int] = []
    groups = np.empty(len(claimed), dtype=np.intp)
    for index, packed in enumerate(np.packbits(claimed, axis=1)):
        own = int.from_bytes(packed.tobytes(), "big")
        group = next((group for group, outputs in enumerate(taken) if not outputs & own), len(taken))
        if group == len(taken):
            taken.append(0)
        taken[group] |= own
        groups[index] = group
    return groups


def _apart(groups: Indices, leaves: Sequence[Leaf]) -> tuple[Indices, int]:
    """Split groups that span several leaves; numbers them anew, and counts them."""
    if len(leaves) > 1:
        leaf_of = np.repeat(np.arange(len(leaves)), [leaf.size for leaf in leaves])
        groups = groups * len(leaves) + leaf_of
    names, renamed = np.unique(groups, return_inverse=True)
    return renamed.astype(np.intp), names.size
