"""The Jacobian by reverse mode, and the contract on its pulls."""

from __future__ import annotations

import numpy as np

from gradproof.contracts.linear import check_linear, combination, loudness
from gradproof.evidence.gathered import Task
from gradproof.norms import rows_dot
from gradproof.precision import DOUBLE, coarsest
from gradproof.program import Array, pull_every, pulled_of
from gradproof.reference.steps import signed
from gradproof.result import Finding


def rows(task: Task) -> tuple[Array, tuple[Finding, ...]]:
    """The Jacobian by reverse mode, as (N, M), and what the contract says about the pulls. One mixed cotangent of
    signed, unequal entries is pulled alone, as the user would; of a copy in float64 it rides along with the rows, as
    the same does everywhere, but small."""
    program = task.program
    count = program.value.size
    known = pulled_of(program) if task.role == "own" else None
    mixed = combination(count, task.generator) * np.abs(signed(task.generator, count)) if known is None else known[0]
    quiet = loudness(program).quiet
    if task.role == "own":
        alone = program.pull(mixed[None])[0] if known is None else known[1]
        every = pull_every(program, quiet * mixed[None])
    else:
        every = pull_every(program, np.outer((quiet, 1.0), mixed))
        alone = every.more[1]
    jacobian = every.jacobian
    expected = rows_dot(jacobian, mixed)
    findings: tuple[Finding, ...] = ()
    if "linear" in task.contracts:
        narrow = coarsest(program.inputs) is not DOUBLE
        size = np.sqrt(rows_dot(jacobian**2, mixed**2)) if narrow else None
        findings = check_linear(program, mixed, alone, expected, task.tolerance, task.nondet_tol, size)
        # A power of two changes no digit of what is linear: mostly, the quiet pull is the loud one, only smaller.
        if not (findings or np.array_equal(every.more[0], quiet * alone)):
            quietly = None if size is None else quiet * size
            findings = check_linear(
                program, quiet * mixed, every.more[0], quiet * expected, task.tolerance, task.nondet_tol, quietly
            )
    return jacobian, findings
