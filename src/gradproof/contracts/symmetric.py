"""Second derivatives are symmetric: the Jacobian of a gradient with respect to its own point equals its transpose.

A second order that agrees with differences of the first may still be the derivative of something that is no gradient
at all; then the first order is wrong somewhere, and only this shows it from above.
"""

from __future__ import annotations

import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.norms import dot, rms
from gradproof.program import Array, Program, leaf_at
from gradproof.reference.rounding import LUCK, magnified
from gradproof.reference.steps import signed
from gradproof.result import Finding, Place, Verdict
from gradproof.settings import Tolerance
from gradproof.sizes import negligible, size_of, unit_of

# Two random bilinear forms; each term is as large as their rms, and they add up like a random walk.
SIGMAS = 6.0
HINT = (
    "No function has such second derivatives: the first-order rule is not the gradient of anything, or the rule of its "
    "backward is wrong."
)


def check_symmetric(program: Program, rows: Array, tolerance: Tolerance) -> tuple[Finding, ...]:
    """`rows`: the Jacobian of a gradient program, as (inputs, outputs). Its outputs belong to its first inputs."""
    size = program.value.size
    square = rows[:size, :size]
    if np.array_equal(square, square.T):
        return ()
    with np.errstate(invalid="ignore"):
        allowed = entry_tolerance(square, rms(square), tolerance)
        excess = np.abs(square - square.T) - np.maximum(allowed, allowed.T) - _negligible(program)
        if np.nanmax(excess, initial=0.0) > 0.0:
            # What the rule makes of its own roundings, for each input; either order may be off by its own.
            noise = LUCK * magnified(program.pull, signed(np.random.default_rng(0), size))[1][:size]
            excess -= noise[:, None] + noise
    if not np.nanmax(excess, initial=0.0) > 0.0:
        return ()
    i, j = (int(k) for k in np.unravel_index(int(np.nanargmax(excess)), excess.shape))
    return (_finding(program, (i, j), f"{square[i, j]:.6g}", f"{square[j, i]:.6g}"),)


def check_symmetric_by_probes(
    program: Program, generator: np.random.Generator, tolerance: Tolerance
) -> tuple[Finding, ...]:
    """U . (H v) = v . (H u), for random u and v."""
    size = program.value.size
    u, v = signed(generator, size), signed(generator, size)
    along_u, along_v = program.pull(u[None])[0, :size].copy(), program.pull(v[None])[0, :size]
    one, other = dot(along_u, v), dot(along_v, u)
    scale = SIGMAS * (rms(along_u * v) + rms(along_v * u)) * float(np.sqrt(size))
    if not abs(one - other) > tolerance.finest * scale + (tolerance.absolute + _negligible(program)) * size:
        return ()
    return (_finding(program, None, f"u . (H v) = {other:.6g}", f"v . (H u) = {one:.6g}"),)


def _negligible(program: Program) -> float:
    return negligible(program) * size_of(program) / unit_of(program, slice(program.value.size))


def _finding(program: Program, at: tuple[int, int] | None, one: str, other: str) -> Finding:
    if at is None:
        where, place = f"{one} but {other} for random directions u and v", Place()
    else:
        i, j = (leaf_at(program.inputs, k).spot(k) for k in at)
        where = f"d² / d {i} d {j} is {one}, in the other order {other}"
        place = Place(leaf_at(program.outputs, at[1]).spot(at[1]), i)
    return Finding("asymmetric", Verdict.WRONG, place, f"second derivatives are not symmetric: {where}", HINT)
