"""A result as a store keeps it: JSON, with small pictures for tables and the blocks that are right only up to a number.

A sweep has tens of thousands of results; nearly all of them say that nearly everything is right.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from gradproof.picture import Digest, HeatMap, one_in_tolerances
from gradproof.render.codec import decode, text
from gradproof.result import Comparison, Result, Verdict

# Tiles of the picture of a block that is not right; blocks that are kept of each kind.
LOUD_TILES = 256
RIGHT_BLOCKS, LOUD_BLOCKS = 8, 64


def dumps(result: Result) -> str:
    return text(shortened(result))


def loads(text: str) -> Result:
    result: Result = decode(Result, json.loads(text))
    return result


def shortened(result: Result) -> Result:
    """The same, small. What is left out is counted in a note."""
    right = [each for each in result.comparisons if each.verdict is Verdict.RIGHT]
    loud = [each for each in result.comparisons if each.verdict is not Verdict.RIGHT]
    left = max(len(right) - RIGHT_BLOCKS, 0) + max(len(loud) - LOUD_BLOCKS, 0)
    notes = (*result.notes, f"{left} more blocks were compared; the store does not keep them") if left else result.notes
    blocks = (*loud[:LOUD_BLOCKS], *right[:RIGHT_BLOCKS])
    return replace(result, comparisons=tuple(map(_small, blocks)), notes=notes)


def _small(comparison: Comparison) -> Comparison:
    if comparison.verdict is Verdict.RIGHT:
        picture = _single(comparison)
        digest = Digest(comparison.digits, max(picture.excess, default=0.0), picture)
    else:
        digest = Digest(comparison.digits, comparison.excess, comparison.picture(LOUD_TILES))
    return replace(comparison, source=digest)


def _single(comparison: Comparison) -> HeatMap:
    """One tile for the entry that deviates most. In one pass: tables may have millions of entries."""
    table = np.atleast_2d(comparison.deviation)
    if not table.size:
        return comparison.picture(1)
    worst = int(table.argmax())
    numbers = (comparison.analytic, comparison.numeric, comparison.bar, comparison.tolerance)
    analytic, numeric, bar, tolerance = (
        (each if each.shape == table.shape else np.broadcast_to(each, table.shape)).item(worst) for each in numbers
    )
    excess = one_in_tolerances(table.item(worst), tolerance)
    return HeatMap(table.shape, (1, 1), (worst,), (excess,), (analytic,), (numeric,), (bar,), (tolerance,))
