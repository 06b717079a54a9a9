"""Whole Jacobians by one batched reverse pass: unit cotangents are made where they are used, and what comes out is laid
out input by input at once. To hand the rows from place to place takes longer than a small graph does with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
    count, rows = more.shape[1], more.shape[1] + len(more) + (guest is not None)
    if lane.batched is False or (lane.batched is None and guest is None) or not lane.few <= rows <= lane.most:
        return None
    # The guest stands neither first nor in the middle nor last, so that a batch that mixes up its rows is caught.
    split = count if guest is None else 2 * count // 3
    differs = False
    for name in ways if guest is not None else (lane.way,):
        try:
            with quiet():
                gradients = ways[name](_cotangents(sides[0], more, guest, split))
        except Exception:  # noqa: BLE001, S112  another way, or the rows, get their say
            continue
        found = _Laid(sides[1], gradients, rows)
        if guest is None or agree(found.rows(split, split + 1)[0], guest.result, max(lane.roundoff, guest.roundoff)):
            lane.batched, lane.way, lane.used = True, name, True
            return Every(found.columns(split, count), found.rows(rows - len(more), rows))
        differs = True
    if differs:
        lane.refuse("a batch disagrees with a single call")
    return None


def _cotangents(outputs: Layout, more: Array, guest: Known | None, split: int) -> list[torch.Tensor]:
    """Units, the guest behind the first `split` of them, and the others."""
    count = more.shape[1]
    beside = guest is not None
    rows = np.zeros((count + beside + len(more), count))
    units = np.arange(count)
    rows[units + (beside & (units >= split)), units] = 1.0
    if guest is not None:
        rows[split] = guest.row
    rows[count + beside :] = more
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

    def rows(self, start: int, stop: int) -> Array:
        result = np.zeros((stop - start, self._size))
        target = torch.from_numpy(result)
        for leaf, part in self._parts:
            if part is not None:
                target[:, leaf.start : leaf.stop].copy_(part[start:stop])
        return result

    def columns(self, split: int, count: int) -> Array:
        """(N, count): the rows but the one at `split`, if there are more than `count` of them."""
        result = np.zeros((self._size, count))
        target = torch.from_numpy(result)
        for leaf, part in self._parts:
            if part is not None:
                own = target[leaf.start : leaf.stop]
                own[:, :split].copy_(part[:split].T)
                own[:, split:].copy_(part[split + 1 : count + 1].T)
        return result
