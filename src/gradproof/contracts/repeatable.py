"""The same call gives the same answer: function values first, then the reverse pass."""

from __future__ import annotations

import numpy as np

from gradproof.norms import rms
from gradproof.precision import coarsest, of
from gradproof.program import Array, Program, Spot
from gradproof.result import Finding, Place, Verdict

# Batched and plain calls may round differently; more than this many roundings apart is not rounding.
ROUNDINGS = 256.0


def check_values(program: Program, jitter: float = 0.0) -> tuple[Finding, ...]:
    """A random or stateful function is named before anything else, since no derivative of it can be judged. Values may
    differ by rounding, and by `jitter`."""
    again = program.repeated_value()
    if np.array_equal(again, program.value):
        return ()
    for leaf in program.outputs:
        first, second = program.value[leaf.span], again[leaf.span]
        spread = np.abs(first - second)
        allowed = jitter + ROUNDINGS * of(leaf.dtype).roundoff * max(rms(first), rms(second))
        if np.nanmax(spread, initial=0.0) > allowed:
            worst = int(np.nanargmax(spread))
            return (
                Finding(
                    "random",
                    Verdict.UNDECIDED,
                    Place(leaf.spot(leaf.start + worst), None),
                    f"two calls at the same point differ: {leaf.spot(leaf.start + worst)} was {first[worst]:.6g}, then "
                    f"{second[worst]:.6g}; the function is random or keeps state",
                    "Pass randomness='reseed', use eval mode for dropout, or pass its state as an argument.",
                ),
            )
    return ()


def check_repeated(program: Program, first: Array, second: Array) -> tuple[Finding, ...]:
    """Two pulls of the same cotangent."""
    if np.array_equal(first, second):
        return ()
    roundoff = coarsest(program.inputs + program.outputs).roundoff
    for leaf in program.inputs:
        before, after = first[leaf.span], second[leaf.span]
        allowed = ROUNDINGS * roundoff * max(rms(before), rms(after))
        spread = np.abs(before - after)
        if np.nanmax(spread, initial=0.0) > allowed:
            return (
                Finding(
                    "nondeterministic",
                    Verdict.WRONG,
                    Place(None, Spot(leaf.path)),
                    f"backward gives different gradients of {leaf.path} for the same cotangent (they differ by up to "
                    f"{np.nanmax(spread):.3g})",
                    "Look for saved tensors or the incoming gradient being overwritten, or for unseeded randomness.",
                ),
            )
    return ()
