"""The reverse pass is linear in the cotangent: pull(a v + b w) = a pull(v) + b pull(w).

One-hot cotangents of size one never notice `g.abs()`, `g.clamp(-1, 1)` or a backward that ignores g. A signed
combination of sizes from 1/2 to 64, over all outputs together, does. The same is pulled again much larger and much
smaller, with the other sign: so a threshold on cotangents shows, and what depends on the sign of one of them, or of
their sum, also where there is a single one. Forward mode is as linear in the tangent, and held to it likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.contracts.repeatable import check_repeated
from gradproof.contracts.side import REVERSE, Side
from gradproof.errors import Unsupported
from gradproof.norms import dot, first_of_largest, rms
from gradproof.precision import DOUBLE, SINGLE, Precision, form_of
from gradproof.program import Array, Leaf, Program
from gradproof.reference.rounding import FACTORS, LUCK, beside, extent, magnified, trembling, unresolved
from gradproof.reference.steps import signed
from gradproof.result import Finding, Verdict
from gradproof.settings import Tolerance
from gradproof.sizes import negligible, size_of, sizes_of, unit_of

# What `combination` draws from: 2^k with k from -1 to 6. The largest, beyond any clipping to one, comes first.
SIZES = np.exp2(np.arange(-1.0, 7.0))
SIGNS = np.resize([-1.0, 1.0], SIZES.size)
# What every combination begins with, and one of a single coefficient is.
FIRST = SIGNS[:1] * SIZES[-1:]


@dataclass(frozen=True, slots=True)
class Loudness:
    """How large and how small cotangents are made: a threshold on them, such as clipping, lies between the two or shows
    in the gradient itself. Powers of two change no digit. The small ones have the other sign."""

    loud: float
    quiet: float


# No smaller: a backward that solves a system to an absolute tolerance (1e-8) is right as far as that goes.
LOUDNESS = {DOUBLE.name: Loudness(2.0**14, -(2.0**-12)), SINGLE.name: Loudness(2.0**4, -(2.0**-12))}
# How far a push must be off, relative to its terms, to be called so whatever its rounding; and no less than some
# roundings.
FAR_OFF, ROUNDINGS = 1e-3, 64.0
# Hardly another cotangent, so that no threshold lies between, but every product is rounded anew.
HARDLY = FACTORS**2.0**-16
# What is off by so little is more likely rounded than clipped.
SLIGHT = 2.0**-8
# Half precision has no room for either.
PLAIN = Loudness(1.0, -1.0)


def loudness(program: Program) -> Loudness:
    return LOUDNESS.get(form_of(program).name, PLAIN)


def combination(count: int, generator: np.random.Generator) -> Array:
    """Coefficients of different size and sign, in a random order that repeats; the first is negative, and large."""
    drawn = SIGNS * SIZES[-1]
    drawn[1:] *= generator.permuted(SIZES[:-1]) / SIZES[-1]
    return np.asarray(drawn[np.arange(count) % drawn.size])


def mixed(count: int, generator: np.random.Generator) -> Array:
    """The cotangent of all outputs that is pulled alone, as the user would: no two numbers of it are alike."""
    return combination(count, generator) * np.abs(signed(generator, count))


@dataclass(frozen=True, slots=True)
class Combined:
    """What a rule made of one vector, and the same combination of what it made of those that the vector consists of.
    `terms` is the size of the terms of each sum, where they may cancel: rounding is relative to it."""

    vector: Array
    made: Array
    expected: Array
    terms: Callable[[], Array] | None = None


# By how much each leaf is beyond what is allowed, entry by entry; only those that are.
Excess = Mapping[Leaf, Array]


def clearly_linear(leaves: Iterable[Leaf], made: Array, expected: Array, tolerance: Tolerance) -> bool:
    """Whether all that a rule made (k, n) is what was expected (n,), leaf by leaf and without a closer look."""
    with np.errstate(invalid="ignore", over="ignore"):
        deviations = np.abs(made - expected)
        return all(
            deviations[:, leaf.span].max() <= tolerance.finest * rms(expected[leaf.span])
            for leaf in leaves
            if leaf.size
        )


def check_linear(
    program: Program, side: Side, found: Combined, tolerance: Tolerance, nondet_tol: float = 0.0
) -> tuple[Finding, ...]:
    """What deviates because it is never the same twice is called so instead."""
    if clearly_linear(side.made(program), found.made[None], found.expected, tolerance):
        return ()
    if side is REVERSE:
        excess = _beyond_backward(program, found, tolerance, nondet_tol)
        if excess:
            for _ in range(2):  # what alternates is the same every other time
                again = program.pull(found.vector[None])[0]
                repeated = check_repeated(program, found.made, again, nondet_tol)
                if repeated:
                    return repeated
            # What is divided by nearly nothing, or left over where terms cancel, is as uncertain as it trembles.
            trembles = trembling(program, found.vector, np.random.default_rng(0), extent)
            uncertain = LUCK * np.maximum(trembles, magnified(program.pull, found.vector, HARDLY)[1])
            excess = {leaf: beyond - uncertain[leaf.span] for leaf, beyond in excess.items()}
    else:
        excess = _beyond_forward(program, found, tolerance)
    return tuple(
        _finding(side, leaf, leaf.start + first_of_largest(beyond), found)
        for leaf, beyond in excess.items()
        if (beyond > 0).any()
    )


def _beyond_backward(program: Program, found: Combined, tolerance: Tolerance, nondet_tol: float) -> Excess:
    cotangent, expected, form = found.vector, found.expected, form_of(program)
    with np.errstate(invalid="ignore"):
        deviations = np.abs(found.made - expected)
    excess = {}
    for leaf in program.inputs:
        span = leaf.span
        if not leaf.size:
            continue
        deviation, scale = deviations[span], rms(expected[span])
        # Beyond the range of the format infinity is right; and of a sum with such terms nothing is known.
        ended = ~np.isfinite(found.made[span]) & (np.abs(expected[span]) > 0.5 * form.largest)
        deviation = np.where(ended | np.isinf(expected[span]), 0.0, deviation)
        # A gradient that is zero but for rounding has no scale of its own; that of value over input stands in.
        value_scale = rms(cotangent * sizes_of(program)) * float(np.sqrt(cotangent.size))
        input_scale = unit_of(program, span)
        scale = max(scale, negligible(program) * value_scale / (tolerance.finest * input_scale + 1e-300))
        terms = expected if found.terms is None else found.terms()
        allowed = entry_tolerance(terms[span], scale, tolerance) + _flushed(form, cotangent)
        if nondet_tol:  # of every pull that the combination is made of
            allowed += nondet_tol * (1.0 + float(np.sum(np.abs(cotangent))))
        if (deviation > allowed).any():  # NaN is the comparison's business, not this contract's
            excess[leaf] = deviation - allowed
    return excess


def _beyond_forward(program: Program, found: Combined, tolerance: Tolerance) -> Excess:
    """What is not far off is said where the rounding of the same derivatives can be measured: by backward."""
    form = form_of(program)
    tangent, pushed, expected = found.vector, found.made, found.expected
    share = max(tolerance.finest if form is DOUBLE else FAR_OFF, ROUNDINGS * form.roundoff)
    moved = max((rms(tangent[x.span]) / unit_of(program, x.span) for x in program.inputs), default=0.0)
    excess: dict[Leaf, Array] = {}
    with np.errstate(invalid="ignore", over="ignore"):
        # What is not finite is the comparison's business, or beyond a narrow format; but nothing is beyond float64.
        told = np.isfinite(pushed) | (np.isinf(pushed) & (form is DOUBLE))
        deviations = np.where(told & ~np.isinf(expected), np.abs(pushed - expected), 0.0)
        for leaf in (output for output in program.outputs if output.size):
            span, scale = leaf.span, rms(expected[leaf.span])
            # Where all derivatives are zero, what is left of terms that cancel need not be, whatever the value. A value
            # of zero does not say how large its terms are.
            size = (scale and size_of(program, leaf)) or size_of(program) or 1.0
            least = negligible(program) * size * moved * float(np.sqrt(program.point.size))
            least += tolerance.absolute + _flushed(form, tangent)
            if deviations[span].max() <= share * scale + least:
                continue
            terms = np.abs(expected) if found.terms is None else found.terms()
            sizes = np.maximum(terms[span], scale)
            beyond = deviations[span] - share * sizes - least
            worst = int(np.argmax(beyond))
            if beyond[worst] > 0 and deviations[span][worst] <= FAR_OFF * sizes[worst] + least:
                beyond -= _rounding(program, leaf.start + worst, tangent)
            if beyond[worst] > 0:
                excess[leaf] = beyond
        if not excess or not np.allclose(program.push(tangent[None])[0], pushed, share, 0.0, equal_nan=True):
            return {}  # what is never the same twice is for others to say
        # Terms that cancel leave a rounding, which is another one for tangents that differ by a rounding.
        uncertain = extent(program.push(beside(tangent, program.inputs, np.random.default_rng(0))))
        uncertain = LUCK * np.maximum(uncertain, unresolved(program, tangent))
    return {leaf: beyond - uncertain[leaf.span] for leaf, beyond in excess.items()}


def _flushed(form: Precision, vector: Array) -> float:
    """What a combination may be off by where each of its terms, or itself, is too small for the format."""
    return form.flushed * (1.0 + float(np.sum(np.abs(vector))))


def _rounding(program: Program, output: int, tangent: Array) -> float:
    """What the derivative of one output along a tangent may be off by, if its entries are as uncertain as backward's.
    Without a backward anything may be rounding."""
    unit = np.eye(1, program.value.size, output)[0]
    try:
        program.pull(unit[None])
    except Unsupported:
        return float("inf")
    uncertain = trembling(program, unit, np.random.default_rng(0), extent) * tangent
    return LUCK * float(np.sqrt(dot(uncertain, uncertain)))


def _finding(side: Side, leaf: Leaf, at: int, found: Combined) -> Finding:
    spot, vector = leaf.spot(at), side.vector
    hint = f"Look for abs, clamp, sign or a comparison applied to the {side.incoming}, or one that is ignored."
    if abs(found.made[at] - found.expected[at]) <= SLIGHT * abs(found.expected[at]):
        hint = f"Look for what {side.rule} rounds to a narrower format, or sums in one."
    return Finding(
        side.code,
        Verdict.WRONG,
        side.place(spot),
        f"{side.rule} is not linear in the {vector}: a combination of {vector}s gives {found.made[at]:.6g} at {spot}, "
        f"the same combination of their {side.result}s {found.expected[at]:.6g}",
        hint,
    )
