"""The reverse pass is linear in the cotangent: pull(a v + b w) = a pull(v) + b pull(w).

One-hot cotangents of size one never notice `g.abs()`, `g.clamp(-1, 1)` or a backward that ignores g. A signed
combination of sizes from 1/2 to 64, over all outputs together, does. The same is pulled again much larger and much
smaller, with the other sign: so a threshold on cotangents shows, and what depends on the sign of one of them, or of
their sum, also where there is a single one. Forward mode is as linear in the tangent, and held to it likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.contracts.negligible import negligible
from gradproof.contracts.repeatable import check_repeated
from gradproof.norms import rms
from gradproof.precision import DOUBLE, SINGLE, coarsest
from gradproof.program import Array, Leaf, Program
from gradproof.reference.rounding import LUCK, extent, trembling
from gradproof.reference.steps import signed
from gradproof.result import Finding, Place, Verdict
from gradproof.settings import Tolerance
from gradproof.sizes import size_of, sizes_of

# What `combination` draws from: 2^k with k from -1 to 6. The largest, beyond any clipping to one, comes first.
SIZES = np.exp2(np.arange(-1.0, 7.0))
SIGNS = np.resize([-1.0, 1.0], SIZES.size)


@dataclass(frozen=True, slots=True)
class Loudness:
    """How large and how small cotangents are made: a threshold on them, such as clipping, lies between the two or shows
    in the gradient itself. Powers of two change no digit. The small ones have the other sign."""

    loud: float
    quiet: float


# No smaller: a backward that solves a system to an absolute tolerance (1e-8) is right as far as that goes.
LOUDNESS = {DOUBLE.name: Loudness(2.0**14, -(2.0**-12)), SINGLE.name: Loudness(2.0**4, -(2.0**-12))}
# How far a push must be off to be called so, relative to its terms; and no less than some roundings.
FAR_OFF, ROUNDINGS = 1e-3, 64.0
# Half precision has no room for either.
PLAIN = Loudness(1.0, -1.0)


def loudness(program: Program) -> Loudness:
    return LOUDNESS.get(coarsest(program.inputs + program.outputs).name, PLAIN)


def combination(count: int, generator: np.random.Generator) -> Array:
    """Coefficients of different size and sign, in a random order that repeats; the first is negative, and large."""
    drawn = SIGNS * SIZES[-1]
    drawn[1:] *= generator.permuted(SIZES[:-1]) / SIZES[-1]
    return np.asarray(drawn[np.arange(count) % drawn.size])


def mixed(count: int, generator: np.random.Generator) -> Array:
    """The cotangent of all outputs that is pulled alone, as the user would: no two numbers of it are alike."""
    return combination(count, generator) * np.abs(signed(generator, count))


def check_linear(
    program: Program,
    cotangent: Array,
    pulled: Array,
    expected: Array,
    tolerance: Tolerance,
    nondet_tol: float = 0.0,
    size: Array | None = None,
) -> tuple[Finding, ...]:
    """`pulled` = pull(cotangent), `expected` = the same combination of the pulls that the cotangent was made of. What
    deviates because it is never the same twice is called so instead. `size`: that of the terms of each sum, where they
    may cancel; rounding is relative to it."""
    with np.errstate(invalid="ignore"):
        deviations = np.abs(pulled - expected)
    excess = {}
    for leaf in program.inputs:
        span = leaf.span
        if not leaf.size:
            continue
        deviation, scale = deviations[span], rms(expected[span])
        if deviation.max() <= tolerance.finest * scale:
            continue
        # A gradient that is zero but for rounding has no scale of its own; that of value over input stands in.
        value_scale = rms(cotangent * sizes_of(program)) * float(np.sqrt(cotangent.size))
        input_scale = rms(program.point[span]) or 1.0
        scale = max(scale, negligible(program) * value_scale / (tolerance.finest * input_scale + 1e-300))
        allowed = entry_tolerance(expected[span] if size is None else size[span], scale, tolerance)
        if nondet_tol:  # of every pull that the combination is made of
            allowed += nondet_tol * (1.0 + float(np.sum(np.abs(cotangent))))
        if (deviation > allowed).any():  # NaN is the comparison's business, not this contract's
            excess[leaf] = deviation - allowed
    if not excess:
        return ()
    repeated = check_repeated(program, pulled, program.pull(cotangent[None])[0], nondet_tol)
    if repeated:
        return repeated
    # What is divided by nearly nothing, or left over where terms cancel, is as uncertain as it trembles.
    uncertain = LUCK * trembling(program, cotangent, np.random.default_rng(0), extent)
    unexcused = {leaf: found - uncertain[leaf.span] for leaf, found in excess.items()}
    return tuple(
        _finding(leaf, int(np.nanargmax(left)), pulled[leaf.span], expected[leaf.span])
        for leaf, left in unexcused.items()
        if (left > 0).any()
    )


def check_linear_push(
    program: Program, tangent: Array, pushed: Array, expected: Array, size: Array, tolerance: Tolerance
) -> tuple[Finding, ...]:
    """The same for forward mode: `pushed` = push(tangent). `size`: that of the terms of each sum. Only what is far off
    is said: how a forward rule rounds cannot be measured as that of a backward can."""
    form = coarsest(program.inputs + program.outputs)
    share = max(FAR_OFF, tolerance.finest, ROUNDINGS * form.roundoff)
    moved = max((rms(tangent[x.span]) / (rms(program.point[x.span]) or 1.0) for x in program.inputs), default=0.0)
    found: list[tuple[Leaf, Array]] = []
    with np.errstate(invalid="ignore", over="ignore"):
        # What is not finite is the comparison's business, or beyond a narrow format.
        deviations = np.where(np.isfinite(pushed), np.abs(pushed - expected), 0.0)
        for leaf in (output for output in program.outputs if output.size):
            least = negligible(program) * size_of(program, leaf) * moved * float(np.sqrt(program.point.size))
            allowed = share * np.maximum(size[leaf.span], rms(expected[leaf.span])) + least + tolerance.absolute
            if (deviations[leaf.span] > allowed).any():
                found.append((leaf, deviations[leaf.span] - allowed))
        if not found or not np.allclose(program.push(tangent[None])[0], pushed, share, 0.0, equal_nan=True):
            return ()  # what is never the same twice is for others to say
    return tuple(_finding_forward(leaf, int(np.nanargmax(left)), pushed, expected) for leaf, left in found)


def _finding_forward(leaf: Leaf, worst: int, pushed: Array, expected: Array) -> Finding:
    at = leaf.start + worst
    spot = leaf.spot(at)
    return Finding(
        "nonlinear-forward",
        Verdict.WRONG,
        Place(spot, None),
        f"the forward rule is not linear in the tangent: a combination of tangents gives {pushed[at]:.6g} at {spot}, "
        f"the same combination of their derivatives {expected[at]:.6g}",
        "Look for abs, clamp, sign or a comparison applied to the incoming tangent, or one that is ignored.",
    )


def _finding(leaf: Leaf, worst: int, pulled: Array, expected: Array) -> Finding:
    spot = leaf.spot(leaf.start + worst)
    return Finding(
        "nonlinear",
        Verdict.WRONG,
        Place(None, spot),
        f"backward is not linear in the cotangent: a combination of cotangents gives {pulled[worst]:.6g} at {spot}, "
        f"the same combination of their gradients {expected[worst]:.6g}",
        "Look for abs, clamp, sign or a comparison applied to the incoming gradient, or one that is ignored.",
    )
