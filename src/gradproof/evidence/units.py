"""The Jacobian by one mode, from what it makes of unit vectors, and the contract on how it makes that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradproof.contracts.linear import Combined, check_linear, clearly_linear, loudness, mixed
from gradproof.contracts.side import REVERSE, Side
from gradproof.evidence.gathered import Task
from gradproof.norms import rows_dot
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, pulled_of
from gradproof.result import Finding


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """The Jacobian, laid out (N, M), and what the contract says."""

    jacobian: Array
    findings: tuple[Finding, ...] = ()


def units(task: Task, side: Side) -> Units:
    """One mixed vector of signed, unequal entries is run alone, as the user would: an adapter can hold a batch against
    it, which a single coordinate would not test. Of a copy in float64 it rides along with the unit vectors, as the same
    does everywhere, but small, and large, with the other sign."""
    program = task.program
    known = pulled_of(program) if task.role == "own" and side is REVERSE else None
    vector = mixed(side.size(program), task.generator) if known is None else known[0]
    voices = loudness(program)
    factors = np.array([[voices.quiet], [-voices.loud], [1.0]])
    if task.role == "own":
        alone = side.run(program, vector[None])[0] if known is None else known[1]
        every = side.every(program, factors[:2] * vector)
    else:
        every = side.every(program, factors * vector)
        alone = every.more[2]
    if "linear" not in task.contracts:
        return Units(every.jacobian)
    summed = _summed(side, every.jacobian, vector)
    # Divided by powers of two, which changes no digit of what is linear.
    made = np.concatenate([every.more[:2] / factors[:2], alone[None]])
    if clearly_linear(side.made(program), made, summed, task.linear):
        return Units(every.jacobian)
    # Backward in double precision is held to the last digits, terms that cancel or not.
    plain = side is REVERSE and coarsest(program.inputs) is DOUBLE

    def check(factor: float, made: Array, expected: Array) -> tuple[Finding, ...]:
        def terms() -> Array:
            with np.errstate(invalid="ignore", over="ignore"):
                return np.asarray(abs(factor) * np.sqrt(_summed(side, every.jacobian**2, vector**2)))

        combined = Combined(factor * vector, made, expected, None if plain else terms)
        return check_linear(program, side, combined, task.linear, task.nondet_tol)

    findings = check(1.0, alone, summed)
    for factor, more in zip(factors[:2, 0], every.more[:2], strict=True):
        findings = findings or check(factor, more, factor * alone)
    return Units(every.jacobian, findings)


def _summed(side: Side, jacobian: Array, vector: Array) -> Array:
    """The combination of all rows, or columns, that the vector says."""
    if side is REVERSE:
        return rows_dot(jacobian, vector)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(vector @ jacobian)
