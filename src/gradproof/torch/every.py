"""Whole Jacobians by batched reverse passes: unit cotangents are made where they are used, and what comes out is laid
out input by input at once. To hand the rows from place to place takes longer than a small graph does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gradproof.batching import Known, Lane, agree, quiet
from gradproof.program import Array, Every
from gradproof.torch.leaves import Layout, real

Reverse = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor | None]]


def whole(lane: Lane, ways: Mapping[str, Reverse], sides: tuple[Layout, Layout], more: Array) -> Every | None:
    """What all unit cotangents and some more give, for `sides` (outputs, inputs); None where that is to be had row by
    row, or not believed. One row must be what a plain pull gave, as in any other batch."""
    guest = None if lane.batched else lane.known
    count = more.shape[1]
    if lane.batched is False or (lane.batched is None and guest is None) or lane.most < lane.few:
        return None
    if count + len(more) + (guest is not None) < lane.few:
        return None
    jacobian, others = np.zeros((sides[1].size, count)), more[:0]
    for start in range(0, count, lane.most):
        units = range(start, min(start + lane.most, count))
        batch = _Batch(units, None, more[:0]) if start else _Batch(units, guest, more)
        found = _run(lane, ways, sides, batch)
        if found is None:
            return None
        found.columns(batch.split, jacobian[:, start : units.stop])
        if start == 0:
            others = found.rows(batch.size - len(more), len(more))
    lane.used = True
    return Every(jacobian, others)


def _run(lane: Lane, ways: Mapping[str, Reverse], sides: tuple[Layout, Layout], batch: _Batch) -> _Laid | None:
    """In the way that is believed; where none is as yet, in the first one that gives the guest its due."""
    guest, differs = batch.guest, False
    for name in ways if guest is not None else (lane.way,):
        try:
            with quiet():
                gradients = ways[name](batch.cotangents(sides[0]))
        except Exception:  # noqa: BLE001, S112  another way, or the rows, get their say
            continue
        found = _Laid(sides[1], gradients, batch.size)
        if guest is None or agree(found.rows(batch.split, 1)[0], guest.result, max(lane.roundoff, guest.roundoff)):
            lane.batched, lane.way = True, name
            return found
        differs = True
    if differs:
        lane.refuse("a batch disagrees with a single call")
    return None


@dataclass(frozen=True, eq=False, slots=True)
class _Batch:
    """Some unit cotangents, a guest behind the first `split` of them, and others. The guest stands neither first nor in
    the middle nor last, so that a batch that mixes up its rows is caught."""

    units: range
    guest: Known | None
    more: Array

    @property
    def size(self) -> int:
        return len(self.units) + (self.guest is not None) + len(self.more)

    @property
    def split(self) -> int:
        return len(self.units) if self.guest is None else 2 * len(self.units) // 3

    def cotangents(self, outputs: Layout) -> list[torch.Tensor]:
        rows = np.zeros((self.size, self.more.shape[1]))
        units = np.arange(len(self.units))
        rows[units + (units >= self.split), units + self.units.start] = 1.0
        if self.guest is not None:
            rows[self.split] = self.guest.row
        rows[self.size - len(self.more) :] = self.more
        # One output owns all the memory of the rows; several share it, and each gets its own.
        return outputs.adopted(rows) if len(outputs.leaves) == 1 else outputs.tensors(rows)


class _Laid:
    """The gradients (k, *shape) of a batch of so many rows, as numbers."""

    def __init__(self, inputs: Layout, gradients: Sequence[torch.Tensor | None], count: int) -> None:
        self._size = inputs.size
        self._parts = [
            (leaf, None if one is None else real(one).reshape(count, leaf.size))
            for leaf, one in zip(inputs.leaves, gradients, strict=True)
        ]

    def rows(self, start: int, count: int) -> Array:
        result = np.zeros((count, self._size))
        target = torch.from_numpy(result)
        for leaf, part in self._parts:
            if part is not None:
                target[:, leaf.start : leaf.stop].copy_(part[start : start + count])
        return result

    def columns(self, split: int, into: Array) -> None:
        """(N, k): the first k rows but the one at `split`, if it is among them."""
        target = torch.from_numpy(into)
        for leaf, part in self._parts:
            if part is not None:
                own = target[leaf.start : leaf.stop]
                own[:, :split].copy_(part[:split].T)
                own[:, split:].copy_(part[split + 1 : into.shape[1] + 1].T)
