"""Rows and columns of a block that are small beside the others, as where arguments have different units.

The size of a block is that of its large lines, and 1e-5 of it may be more than all of a small one: its sign could be
wrong. So an entry is granted no more than a share of its own size, which is the larger of itself and of the rms of its
row or its column, whichever is less. What is tiny in both stays rounding. So does what no bar tells from zero, and what
is beyond seven digits of the block: a solver that stops at some digits is right to those of the whole.
"""

from __future__ import annotations

import numpy as np

from gradproof.agreement import CLEAR, entry_tolerance
from gradproof.evidence.gathered import Task, distinct
from gradproof.evidence.scales import rounding
from gradproof.norms import rms
from gradproof.program import Array, Indices, Mask, Stored
from gradproof.reference.estimate import Estimate, Kind
from gradproof.settings import Tolerance

# Of the size of its block, an entry is granted at least so much.
LEAST = 2.0**-24


def block_tolerances(task: Task, numeric: Estimate) -> Array:
    """The tolerance of every entry, each block measured by its own size. At a kink the size is that of the interval;
    entries of which nothing is known do not count."""
    return _tolerances(task, numeric, CLEAR * numeric.bar)


def grossly_off(task: Task, claimed: Array, numeric: Array) -> Mask:
    """By more than a share of themselves."""
    with np.errstate(invalid="ignore"):
        own = np.maximum(np.abs(claimed), np.abs(numeric))
        return np.asarray(np.abs(claimed - numeric) > task.tolerance.gross * own)


def wanted_tolerances(task: Task, numeric: Estimate, analytic: dict[str, Array]) -> Array:
    """The same if all that seems to be grossly off were known well: for the ladder to aim at."""
    uncertain = np.full(numeric.value.shape, np.inf)
    for one in distinct(analytic):
        uncertain[grossly_off(task, one, numeric.value)] = 0.0
    return _tolerances(task, numeric, uncertain)


def _tolerances(task: Task, numeric: Estimate, uncertain: Array) -> Array:
    plain = not numeric.kind.any()
    result = np.empty_like(numeric.value)
    for output in task.program.outputs:
        for leaf in task.program.inputs:
            block = (leaf.span, output.span)
            size, unknown = numeric.value[block], uncertain[block]
            if not plain:
                told = (numeric.kind[block] < Kind.EDGE) | (numeric.bar[block] <= np.abs(size))
                size = np.where(told, np.abs(size) + numeric.spread[block], 0.0)
                unknown = np.where(numeric.kind[block] == Kind.SMOOTH, unknown, np.inf)
            scale = scale_of(size, unknown, task.tolerance)
            result[block] = entry_tolerance(size, scale, task.tolerance) + rounding(task, output, leaf)
    return result


def scale_of(size: Array, uncertain: Array, tolerance: Tolerance) -> float | Array:
    """What the entries of a block are measured by: its rms; or less, where their share is less, and they are not too
    uncertain to tell."""
    scale = rms(size)
    if not size.size or not np.isfinite(tolerance.gross):
        return scale
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(size)
        line = np.sqrt(np.minimum(squares.mean(axis=1)[:, None], squares.mean(axis=0)))
        if tolerance.gross * line.min(initial=np.inf) >= tolerance.of_block * scale:
            return scale
        return own_scale(scale, size, line, uncertain, tolerance)


def own_scale(scale: float | Array, size: Array, line: Array, uncertain: Array, tolerance: Tolerance) -> Array:
    """The same for some entries of a block whose rms is `scale`. `line`: that of their row or column, the smaller."""
    if not np.isfinite(tolerance.gross):
        return np.broadcast_to(np.asarray(scale), size.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        own = np.maximum(np.abs(size), line)
        share = np.maximum(tolerance.gross * own, LEAST * scale)
        # A function that is made of larger numbers does not move before they do: its slope seems to be exactly zero.
        small = (own > LEAST * scale) & (size != 0) & (uncertain <= share)
        return np.where(small, np.minimum(scale, share / tolerance.of_block), scale)


def lines_of_stored(stored: Stored, some: Indices) -> Array:
    """The rms of the row or column, the smaller, of these stored entries, among which they are."""
    squares, sizes = np.square(stored.values[some]), []
    for place in (stored.outputs[some], stored.inputs[some]):
        counts = np.bincount(place)
        sizes.append((np.bincount(place, squares) / np.maximum(counts, 1))[place])
    return np.asarray(np.sqrt(np.minimum(*sizes)))
