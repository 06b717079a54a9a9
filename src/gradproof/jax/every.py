"""Whole Jacobians in one compiled call. Many unit vectors are made where they are used: to write a matrix of them, and
to hand it over, takes longer than most functions do with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradproof.batching import Known, Lane, Work, agree
from gradproof.jax.families import COMPILED
from gradproof.jax.leaves import Layout
from gradproof.program import Array, Every
from gradproof.quiet import QUIET

# The rows beside the unit vectors fill up to a multiple of this: few sizes to compile.
BESIDE = 4
# Fewer unit vectors go with other rows: then one program serves for both.
FEW = 16


def every(
    lane: Lane, sides: tuple[Layout, Layout], more: Array, run: Callable[[Array], Every], work: Callable[[], Work]
) -> Every | None:
    """What the unit vectors and some more rows give; None where that is to be had row by row, or not believed. One row
    must be what a plain call gave, as in any other batch."""
    if lane.batched is False or (lane.batched and lane.way != COMPILED):
        return None
    lent = lane.known if lane.native is None else lane.native.known
    guest = lent if lane.batched is None else None
    if lane.batched is None and guest is None:
        return None
    count = more.shape[1]
    if max(FEW, lane.few) > count or count + len(more) + 1 + BESIDE > lane.most or not all(map(_is_real, sides)):
        return None
    try:
        with QUIET:
            found = run(_given(more, guest))
    except Exception:  # noqa: BLE001  the rows get their say
        return None
    if guest is not None:
        if not _believed(lane, guest, found.more[len(more)], work):
            return None
        lane.batched, lane.way = True, COMPILED
    lane.used = True
    return Every(found.jacobian, found.more[: len(more)])


def _believed(lane: Lane, guest: Known, found: Array, work: Callable[[], Work]) -> bool:
    if agree(found, guest.result, max(lane.roundoff, guest.roundoff)):
        return True
    if lane.native is None:
        lane.refuse("a batch disagrees with a single call")
        return False
    # The narrow format may be far off: a plain call decides, also for the batches that follow.
    alone, plain = np.empty((1, found.size)), work()
    with plain.scope:
        plain.each(guest.row[None].copy(), alone)
    lane.native, lane.known = None, Known(guest.row, alone[0], lane.roundoff)
    return agree(found, alone[0], lane.roundoff)


def _given(more: Array, guest: Known | None) -> Array:
    """These rows, the guest, and copies of the first to fill up."""
    taken = len(more) + (guest is not None)
    given = np.empty((taken + -taken % BESIDE, more.shape[1]))
    given[: len(more)] = more
    if guest is not None:
        given[len(more)] = guest.row
    given[taken:] = given[:1]
    return given


def _is_real(layout: Layout) -> bool:
    return bool(layout.leaves) and not any(leaf.is_complex for leaf in layout.leaves)
