"""A result as a store keeps it: JSON, with small pictures for tables and the blocks that are right only up to a number.

A sweep has tens of thousands of results; nearly all of them say that nearly everything is right.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gradproof.picture import Digest
from gradproof.render.codec import decode, encode
from gradproof.result import Comparison, Result, Verdict

# Tiles of a block's picture, where it is right and where it is not; blocks that are kept of each kind.
TILES = {Verdict.RIGHT: 1}
LOUD_TILES = 256
RIGHT_BLOCKS, LOUD_BLOCKS = 8, 64


def dumps(result: Result) -> str:
    return json.dumps(encode(shortened(result)), allow_nan=False, separators=(",", ":"))


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
    picture = comparison.picture(TILES.get(comparison.verdict, LOUD_TILES))
    return replace(comparison, source=Digest(comparison.digits, comparison.excess, picture))
