"""When a derivative is zero but for rounding: without a scale of its own, it is held against value over input."""

from __future__ import annotations

from gradproof.precision import form_of
from gradproof.program import Program

# Of value over input; and so many roundings at least, where the format is narrow.
SHARE = 1e-11
ROUNDINGS = 64.0


def negligible(program: Program) -> float:
    """A derivative below this fraction of value over input is rounding."""
    return max(SHARE, ROUNDINGS * form_of(program).roundoff)
