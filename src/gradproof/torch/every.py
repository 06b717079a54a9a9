"""Whole Jacobians by batched reverse passes: unit cotangents are made where they are used, and what comes out is laid
out input by input at once. To hand the rows from place to place takes longer than a small graph does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gradproof.batching import Known, Lane
from gradproof.program import Array, Every
from gradproof.quiet import QUIET
from gradproof.torch.leaves import Layout, numbers

Reverse = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor | None]]


def whole(lane: Lane, ways: Mapping[str, Reverse], sides: tuple[Layout, Layout], more: Array) -> Every | None:
    """What all unit cotangents and some more give, for `sides` (outputs, inputs); None where that is to be had row by
    row, or not believed. One row must be what a plain pull gave, as in any other batch."""
    guest = None if lane.batched else lane.known
    count = more.shape[1]
    if lane.batched is False or (lane.batched is None and guest is None) or lane.most < lane.few:
        return None
    first = _Batch(range(min(lane.most, count)), guest, more)
    # A guest must not be the last row: a batch could give that to all.
    if count + first.behind < lane.few or (guest is not None and first.place >= len(more)):
        return None
    jacobian, others = np.empty((sides[1].size, count)), more
    with QUIET:
        for start in range(0, count, lane.most):
            units = range(start, min(start + lane.most, count))
            batch = _Batch(units, None, more[:0]) if start else first
            found = _run(lane, ways, sides, batch)
            if found is None:
                return None
            found.laid.columns(jacobian[:, start : units.stop])
            if start == 0:
                others = found.more
    lane.used = True
    return Every(jacobian, others)


@dataclass(frozen=True, eq=False, slots=True)
class _Found:
    """What a batch gave, and what the rows behind its units gave."""

    laid: _Laid
    more: Array


def _run(lane: Lane, ways: Mapping[str, Reverse], sides: tuple[Layout, Layout], batch: _Batch) -> _Found | None:
    """In the way that is believed; where none is as yet, in the first one that gives the guest its due."""
    guest, count, place, differs = batch.guest, len(batch.units), batch.place, False
    for name in ways if guest is not None else (lane.way,):
        try:
            gradients = ways[name](batch.cotangents(sides[0]))
        except Exception:  # noqa: BLE001, S112  another way, or the rows, get their say
            continue
        laid = _Laid(sides[1], gradients, count + batch.behind)
        behind = laid.rows(count, batch.behind)
        if guest is None:
            return _Found(laid, behind)
        if lane.like(behind[place], guest):
            lane.batched, lane.way = True, name
            return _Found(laid, np.delete(behind, place, axis=0) if place else behind[1:])
        differs = True
    if differs:
        lane.refuse("a batch disagrees with a single call")
    return None


@dataclass(frozen=True, eq=False, slots=True)
class _Batch:
    """Some unit cotangents, and behind them others, with a guest among these."""

    units: range
    guest: Known | None
    more: Array

    @property
    def behind(self) -> int:
        return (self.guest is not None) + len(self.more)

    @property
    def place(self) -> int:
        """Where the guest stands behind the units: not in the middle of all rows, so that a batch that turns them round
        is caught too."""
        return int(len(self.units) == len(self.more))

    def cotangents(self, outputs: Layout) -> list[torch.Tensor]:
        count, place = len(self.units), self.place
        rows = np.zeros((count + self.behind, self.more.shape[1]))
        units = np.arange(count)
        rows[units, units + self.units.start] = 1.0
        if self.guest is None:
            rows[count:] = self.more
        else:
            rows[count : count + place] = self.more[:place]
            rows[count + place] = self.guest.row
            rows[count + place + 1 :] = self.more[place:]
        # One output owns all the memory of the rows; several share it, and each gets its own.
        return outputs.adopted(rows) if len(outputs.leaves) == 1 else outputs.tensors(rows)


class _Laid:
    """The gradients (k, *shape) of a batch of so many rows, as numbers; one that is not there is zero."""

    def __init__(self, inputs: Layout, gradients: Sequence[torch.Tensor | None], count: int) -> None:
        self._size = inputs.size
        self._parts = [
            (leaf.span, np.zeros((count, leaf.size)) if one is None else numbers(one).reshape(count, leaf.size))
            for leaf, one in zip(inputs.leaves, gradients, strict=True)
        ]

    def rows(self, start: int, count: int) -> Array:
        result = np.empty((count, self._size))
        for span, part in self._parts:
            result[:, span] = part[start : start + count]
        return result

    def columns(self, into: Array) -> None:
        """(N, k): the first k rows."""
        for span, part in self._parts:
            into[span] = part[: into.shape[1]].T
