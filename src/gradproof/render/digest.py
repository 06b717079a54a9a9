"""A report small enough to keep: pictures instead of tables, fewer tiles each the more there are of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradproof.picture import SIDE, Digest, allotted
from gradproof.result import Comparison, Report, Verdict

# Tiles of all pictures together: some 4 MB of text in a page, twice that in JSON. At most half of them go to the blocks
# that are not right, which are served first.
TILES = 3 * 2**15


def digested(report: Report) -> Report:
    """The same report, without tables. One that was digested already stays as it is."""
    blocks = [comparison for result in report.results for comparison in result.comparisons]
    loud = [block for block in blocks if block.verdict is not Verdict.RIGHT]
    quiet = [block for block in blocks if block.verdict is Verdict.RIGHT]
    for_loud = allotted(_sizes(loud), TILES // 2)
    left = TILES - sum(min(size, for_loud) for size in _sizes(loud))
    for_quiet = allotted(_sizes(quiet), left)

    def kept(comparison: Comparison) -> Comparison:
        tiles = for_quiet if comparison.verdict is Verdict.RIGHT else for_loud
        return replace(comparison, source=Digest(comparison.digits, comparison.excess, comparison.picture(tiles)))

    return replace(
        report,
        results=tuple(
            replace(result, comparisons=tuple(kept(one) for one in result.comparisons)) for result in report.results
        ),
    )


def _sizes(blocks: Sequence[Comparison]) -> list[int]:
    """At most how many tiles each picture has."""
    return [min(block.output.size, SIDE) * min(block.input.size, SIDE) for block in blocks]
