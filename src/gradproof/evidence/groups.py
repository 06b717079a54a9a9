"""Coordinates that are moved together: groups of one leaf, in which each moves by another, signed amount.

What a Jacobian makes of such a move is a random sum of its entries. One that is off shows by its whole size; several
could hide each other only if they cancelled in random multiples, in every sum in which they occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gradproof.precision import DOUBLE, of
from gradproof.program import Array, Indices, Leaf, Mask
from gradproof.reference.steps import finely_signed

# The coordinates of a group: more would make no check quicker, and let a small kink hide among them. A leaf has two
# groups at least: an error of all its derivatives would have to cancel in both.
MEMBERS, LEAST = 64, 2
# The same where the program is linear, as a gradient is in its cotangent: nothing bends there, and no kink is small.
LINEAR = 2**12
# Numbers of rows that are made at once: 32 MB of them.
NUMBERS = 2**22


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of every leaf, in a row, and the group of every coordinate. No group mixes leaves, whose scales may be
    far apart; and neighbours, of which functions often make more than a sum, are in different ones."""

    leaves: Sequence[Leaf]
    spans: Sequence[slice]
    of: Indices
    linear: Sequence[bool]  # of each leaf: whether the program should be linear in it
    count: int

    def rows(self, amounts: Array) -> Iterator[Array]:
        """How far each group moves the coordinates, (groups, N): all groups one after another, as many at a time as do
        not fill the memory, which is mostly all of them."""
        size = self.of.size
        many = max(1, NUMBERS // max(size, 1))
        if many >= self.count:
            rows = np.zeros((self.count, size))
            rows[self.of, np.arange(size)] = amounts
            yield rows
            return
        order = np.argsort(self.of, kind="stable")
        starts = np.searchsorted(self.of[order], np.arange(0, self.count, many))
        for first, (start, stop) in zip(range(0, self.count, many), pairwise((*starts, size)), strict=True):
            rows, some = np.zeros((min(many, self.count - first), size)), order[start:stop]
            rows[self.of[some] - first, some] = amounts[some]
            yield rows

    def some_rows(self, amounts: Array, chosen: Indices) -> Iterator[Array]:
        """The same for some groups, in order."""
        many = max(1, NUMBERS // max(self.of.size, 1))
        for first in range(0, chosen.size, many):
            yield np.where(self.of == chosen[first : first + many, None], amounts, 0.0)

    def sums(self, amounts: Array, jacobian: Array) -> Array:
        """What a Jacobian (N, M) makes of these rows, (groups, M)."""
        result = np.empty((self.count, jacobian.shape[1]))
        for leaf, span in zip(self.leaves, self.spans, strict=True):
            own = span.stop - span.start
            for first in range(own):
                members = slice(leaf.start + first, leaf.stop, own)
                np.matmul(amounts[members], jacobian[members], out=result[span.start + first])
        return result

    def least(self, amounts: Array) -> Array:
        """The smallest amount of each group, (groups,)."""
        result = np.full(self.count, np.inf)
        np.minimum.at(result, self.of, np.abs(amounts))
        return result

    def straight(self) -> Mask:
        """Of each group, whether the program should be linear in it, (groups,)."""
        return np.repeat(np.array(self.linear, dtype=bool), [span.stop - span.start for span in self.spans])

    def crowds(self) -> Array:
        """How many times as large as usual each group is, (groups,); at least one."""
        sizes = np.bincount(self.of, minlength=self.count)
        return np.asarray(np.maximum(sizes / MEMBERS, 1.0))

    def norms(self, amounts: Array) -> Array:
        """The root of the sum of squares of each group, (groups,)."""
        return np.sqrt(np.bincount(self.of, amounts**2, self.count))

    def amounts(self, generator: np.random.Generator) -> Array:
        """From 1 to 2, up or down, each a number of its leaf's format."""
        drawn = finely_signed(generator, self.of.size)
        for leaf in self.leaves:
            drawn[leaf.span] = of(leaf.dtype).round(drawn[leaf.span])
        return drawn


@lru_cache(maxsize=8)
def groups_of(leaves: tuple[Leaf, ...], linear: int = LINEAR) -> Groups:
    """In leaves where the program should be linear, up to so many together. Nobody trusts that: see `together`. A check
    asks for them up to three times."""
    groups, spans, count = np.empty(leaves[-1].stop, dtype=np.intp), [], 0
    straight = [linear > MEMBERS and is_linear(leaf) for leaf in leaves]
    for leaf, is_straight in zip(leaves, straight, strict=True):
        members = linear if is_straight else MEMBERS
        own = max(min(leaf.size, LEAST), -(-leaf.size // members))
        groups[leaf.span] = count + np.arange(leaf.size) % max(own, 1)
        spans.append(slice(count, count + own))
        count += own
    groups.flags.writeable = False
    return Groups(leaves, spans, groups, straight, count)


def is_linear(leaf: Leaf) -> bool:
    """Of the inputs of a gradient, the cotangents; in a narrow format, sums of many are rounded too much to tell."""
    return leaf.path.startswith("cotangent(") and of(leaf.dtype) is DOUBLE
