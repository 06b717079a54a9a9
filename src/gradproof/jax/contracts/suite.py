"""Which contracts a JAX function is held to. `jit` compiles the function once more, so it is for those who name it."""

from __future__ import annotations

import numpy as np

from gradproof.contracts.repeatable import check_pulls, check_repeated
from gradproof.contracts.suite import Kept, Terms
from gradproof.jax.contracts.attributes import check_attributes
from gradproof.jax.contracts.jitted import check_jitted
from gradproof.jax.contracts.primal import check_primals
from gradproof.jax.jaxprogram import JaxProgram
from gradproof.result import Finding

# What changes with every second or third call shows in so many of them, however many there were before.
AGAIN = 3


def check_contracts(program: JaxProgram, terms: Terms) -> Kept:
    findings: tuple[Finding, ...] = ()
    if "repeatable" in terms.names:
        findings += _check_pulls(program, terms)
    if "attributes" in terms.names:
        findings += check_attributes(program)
    if "primal" in terms.names:
        findings += check_primals(program, terms.nondet_tol)
    if "jit" in terms.names and terms.by_hand:
        findings += check_jitted(program, terms.generator, terms.tolerance)
    return Kept(findings)


def _check_pulls(program: JaxProgram, terms: Terms) -> tuple[Finding, ...]:
    """One that was made before, again and again; or two. A batch that was believed has made one again already."""
    if program.pulls_in_batches:
        return ()
    known = program.pulled
    if known is None:
        return check_pulls(program, terms.generator, terms.nondet_tol)
    found = program.pull(np.repeat(known.row[None], AGAIN, axis=0))
    return next(filter(None, (check_repeated(program, known.result, one, terms.nondet_tol) for one in found)), ())
