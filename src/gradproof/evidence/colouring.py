"""Groups of columns of a sparse matrix that share no row, for any size: work and memory grow with the stored entries.

As in `pattern`, the claim is not trusted: what is outside of it shows when the group is moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.program import Indices, Leaf, Stored

# More groups than this cost more evaluations than probes with bisection would.
MOST_GROUPS = 256
# A band is divided by its width, without looking at columns one by one, when that takes at most this many times as many
# groups as the fullest row has entries.
GENEROUS = 1.5


@dataclass(frozen=True, eq=False, slots=True)
class Grouping:
    """Stored entries, the group of every input, and the number of groups. No group mixes leaves."""

    stored: Stored
    groups: Indices
    count: int


def grouping_of(stored: Stored, leaves: Sequence[Leaf]) -> Grouping | None:
    """None where there would be too many groups."""
    inputs = leaves[-1].stop
    fullest = int(np.bincount(stored.outputs).max(initial=0)) if stored.outputs.size else 0
    if fullest > MOST_GROUPS:
        return None
    width = _band(stored)
    if width <= GENEROUS * fullest:
        groups: Indices | None = np.arange(inputs, dtype=np.intp) % max(width, 1)
    else:
        groups = _first_fit(stored, inputs)
    if groups is None:
        return None
    leaf_of = np.repeat(np.arange(len(leaves)), [leaf.size for leaf in leaves])
    names, renamed = np.unique(groups * len(leaves) + leaf_of, return_inverse=True)
    return Grouping(stored, renamed.astype(np.intp), names.size) if names.size <= MOST_GROUPS else None


def _band(stored: Stored) -> int:
    """The distance between the first and the last entry of a row, at most; columns that far apart share no row."""
    if not stored.outputs.size:
        return 1
    order = np.argsort(stored.outputs, kind="stable")
    rows, columns = stored.outputs[order], stored.inputs[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    return int(np.max(np.maximum.reduceat(columns, starts) - np.minimum.reduceat(columns, starts))) + 1


def _first_fit(stored: Stored, inputs: int) -> Indices | None:
    """Greedy colouring: every column joins the first group that is not taken in any of its rows. Sets of groups are
    whole numbers, a bit for each."""
    order = np.argsort(stored.inputs, kind="stable")
    rows = stored.outputs[order].tolist()
    ends = np.cumsum(np.bincount(stored.inputs, minlength=inputs)).tolist()
    taken = [0] * (max(rows, default=0) + 1)
    groups = np.zeros(inputs, dtype=np.intp)
    start = 0
    for column, end in enumerate(ends):
        used = 0
        for row in rows[start:end]:
            used |= taken[row]
        free = ~used & (used + 1)  # the lowest bit that is not set
        for row in rows[start:end]:
            taken[row] |= free
        groups[column] = free.bit_length() - 1
        if groups[column] >= MOST_GROUPS:
            return None
        start = end
    return groups
