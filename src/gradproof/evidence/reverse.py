"""The Jacobian by reverse mode, and the contract on its pulls."""

from __future__ import annotations

import numpy as np

from gradproof.contracts.linear import check_linear, loudness, mixed
from gradproof.evidence.gathered import Task
from gradproof.norms import rows_dot
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, pull_every, pulled_of
from gradproof.result import Finding


def rows(task: Task) -> tuple[Array, tuple[Finding, ...]]:
    """The Jacobian by reverse mode, as (N, M), and what the contract says about the pulls. One mixed cotangent of
    signed, unequal entries is pulled alone, as the user would; of a copy in float64 it rides along with the rows, as
    the same does everywhere, but small, and large, with the other sign."""
    program = task.program
    count = program.value.size
    known = pulled_of(program) if task.role == "own" else None
    cotangent = mixed(count, task.generator) if known is None else known[0]
    voices = loudness(program)
    factors = np.array([[voices.quiet], [-voices.loud], [1.0]])
    if task.role == "own":
        alone = program.pull(cotangent[None])[0] if known is None else known[1]
        every = pull_every(program, factors[:2] * cotangent)
    else:
        every = pull_every(program, factors * cotangent)
        alone = every.more[2]
    if "linear" not in task.contracts:
        return every.jacobian, ()
    expected = rows_dot(every.jacobian, cotangent)
    narrow = coarsest(program.inputs) is not DOUBLE
    size = np.sqrt(rows_dot(every.jacobian**2, cotangent**2)) if narrow else None

    def check(factor: float, pulled: Array, wanted: Array) -> tuple[Finding, ...]:
        terms = None if size is None else abs(factor) * size
        return check_linear(program, factor * cotangent, pulled, wanted, task.tolerance, task.nondet_tol, terms)

    findings = check(1.0, alone, expected)
    again = factors[:2] * alone
    # A power of two changes no digit of what is linear: mostly, this is the same once more.
    if not (every.more[:2] == again).all():
        for factor, pulled, wanted in zip(factors[:2, 0], every.more[:2], again, strict=True):
            findings = findings or check(factor, pulled, wanted)
    return every.jacobian, findings
