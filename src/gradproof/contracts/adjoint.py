"""Forward and reverse mode are adjoint: w . (J u) = (J^T w) . u.

Both are exact but for rounding, so they can be held against each other far more closely than against differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradproof.norms import farthest, largest, rms
from gradproof.precision import form_of
from gradproof.program import Array, Leaf, Program
from gradproof.reference.rounding import LARGER, LUCK, SMALL, magnified, trembling
from gradproof.reference.steps import signed
from gradproof.result import Comparison, Finding, Place, Verdict
from gradproof.settings import Tolerance
from gradproof.sizes import negligible, size_of, unit_of

# The part of the tolerance by which the modes may differ, but never fewer roundings than these.
PART = 1e-3
ROUNDINGS = 1024.0
# Where more outputs are in doubt, it is not for the rounding of single ones.
MOST = 64
HINT = "Write both rules from the same formula; look for a cast, a constant or a term that only one of them has."


@dataclass(frozen=True, eq=False, slots=True)
class Modes:
    """The derivatives of one output with respect to one input, or sums of them, by both modes. `scale` is what each
    number is judged by, an entry by itself too, and `change` that of value over input: where the first is rounding, it
    stands in. Shapes are (output entries, input entries), or (probes,)."""

    output: Leaf
    input: Leaf
    reverse: Array
    forward: Array
    scale: Array | float
    change: Array | float

    @property
    def size(self) -> Array:
        return np.maximum(np.abs(self.forward), self.scale) if self.forward.ndim == 2 else np.asarray(self.scale)


def check_adjoint(
    program: Program, pairs: Sequence[Modes], comparisons: Sequence[Comparison], tolerance: Tolerance
) -> tuple[Finding, ...]:
    """One finding, at the worst place. Where the numbers are wrong or in doubt anyway, or at a kink, where every mode
    may choose a slope of its own, nothing is said."""
    if any(comparison.verdict is not Verdict.RIGHT for comparison in comparisons):
        return ()
    share = max(PART * tolerance.finest, ROUNDINGS * form_of(program).roundoff)
    least = PART * tolerance.absolute
    suspects = [pair for pair in pairs if not _close(program, pair, share, least)]
    suspects = [pair for pair in suspects if _excess(program, pair, share, least).max(initial=0.0) > 1.0]
    suspects = [pair for pair in suspects if not _kinked(pair, comparisons)]
    if not suspects:
        return ()
    stream = np.random.default_rng(0)
    noise = _noise(program, stream)
    strongest = max(largest(np.nan_to_num(pair.forward)) for pair in pairs)
    worst: tuple[float, Finding] | None = None
    for pair in suspects:
        excess = _excess(program, pair, share + noise[pair.input.path] + noise[pair.output.path], least)
        if excess.max(initial=0.0) > 1.0:
            excess = _beyond_rounding(program, pair, excess, _still(pair, comparisons, strongest), stream)
        top = float(excess.max(initial=0.0))
        if top > 1.0 and (worst is None or top > worst[0]):
            worst = top, _finding(pair, excess)
    return (worst[1],) if worst else ()


def _close(program: Program, pair: Modes, share: float, least: float) -> bool:
    """Whether all numbers are within what is allowed to the smallest: mostly so, and quickly said."""
    allowed = share * float(np.min(pair.scale)) + negligible(program) * float(np.min(pair.change)) + least
    with np.errstate(invalid="ignore"):
        return bool(farthest(pair.reverse, pair.forward) <= allowed)


def _excess(program: Program, pair: Modes, share: float, least: float) -> Array:
    """How many times what is allowed the modes are apart."""
    with np.errstate(invalid="ignore", divide="ignore"):
        allowed = share * pair.size + negligible(program) * pair.change + least
        return np.nan_to_num(np.abs(pair.reverse - pair.forward) / (allowed + 1e-300), nan=0.0, posinf=np.inf)


def _still(pair: Modes, comparisons: Sequence[Comparison], strongest: float) -> Array:
    """How far entries may be apart over which the function does not move at all, though the numbers it is made of may:
    nothing that would count beside the largest derivative."""
    for one in comparisons:
        if (one.output, one.input) == (pair.output, pair.input) and one.numeric.shape == pair.reverse.shape:
            return np.where(one.numeric == 0, np.minimum(LARGER * one.bar, SMALL * strongest), 0.0)
    return np.zeros(pair.reverse.shape)


def _beyond_rounding(program: Program, pair: Modes, excess: Array, still: Array, stream: np.random.Generator) -> Array:
    """The same without entries that are as uncertain by themselves, output by output, if those are not too many."""
    apart = np.abs(pair.reverse - pair.forward)
    result = np.where(apart <= still, 0.0, excess)
    rows = np.flatnonzero(result.max(axis=1) > 1.0) if result.ndim == 2 else np.arange(0)
    if not 0 < rows.size <= MOST:
        return result
    for row in rows:
        unit = np.eye(1, program.value.size, pair.output.start + int(row))[0]
        uncertain = LUCK * trembling(program, unit, stream)[pair.input.span]
        result[row, apart[row] <= uncertain] = 0.0
    return result


def _noise(program: Program, stream: np.random.Generator) -> dict[str, float]:
    """How much a mode makes of roundings, its own and those of the point, relative to the derivatives, by leaf."""
    found: dict[str, float] = {}
    for run, size, leaves in (
        (program.pull, program.value.size, program.inputs),
        (program.push, program.point.size, program.outputs),
    ):
        row = signed(stream, size)
        whole, apart = magnified(run, row)
        if leaves is program.inputs:
            np.maximum(apart, trembling(program, row, stream), out=apart)
        for leaf in leaves:
            found[leaf.path] = LUCK * float(apart[leaf.span].max(initial=0.0)) / (rms(whole[leaf.span]) or 1.0)
    return found


def blocks(program: Program, reverse: Array, forward: Array) -> list[Modes]:
    """From two Jacobians, (N, M) each. An entry is judged by itself and by the rms of its block."""
    found = []
    for output in program.outputs:
        for leaf in program.inputs:
            one, other = reverse[leaf.span, output.span].T, forward[leaf.span, output.span].T
            if one.size:
                change = size_of(program) / unit_of(program, leaf.span)
                found.append(Modes(output, leaf, one, other, max(rms(one), rms(other)), change))
    return found


def _kinked(pair: Modes, comparisons: Sequence[Comparison]) -> bool:
    return any(
        (c.output, c.input) == (pair.output, pair.input) and c.spread is not None and bool(c.spread.any())
        for c in comparisons
    )


def _finding(pair: Modes, excess: Array) -> Finding:
    at = np.unravel_index(int(np.argmax(excess)), excess.shape)
    one, other = float(pair.reverse[at]), float(pair.forward[at])
    numbers = f"{one:.10g} in reverse mode, {other:.10g} in forward mode (apart by {abs(one - other):.3g})"
    if excess.ndim == 2:
        place = Place(pair.output.spot(pair.output.start + int(at[0])), pair.input.spot(pair.input.start + int(at[1])))
        what = f"{place} is {numbers}"
    else:
        place = Place.of(pair.output, pair.input)
        what = f"a random sum of the entries of {place} is {numbers}"
    sentence = f"forward and reverse mode disagree, though both are within the tolerance: {what}"
    return Finding("adjoint", Verdict.WRONG, place, sentence, HINT)
