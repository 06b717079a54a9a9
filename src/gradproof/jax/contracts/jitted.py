"""Under `jax.jit` a function gives the same values and the same derivatives as without.

It need not where Python code looks at something that tracing hides: a global that changes, a random number that is
drawn once and then baked in, a branch on whether a value is concrete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from gradproof.agreement import entry_tolerance
from gradproof.errors import Unsupported, first_line
from gradproof.jax.calls import Call
from gradproof.jax.families import Shelf
from gradproof.jax.jaxprogram import JaxProgram
from gradproof.jax.leaves import Arrays, Layout
from gradproof.norms import rms
from gradproof.program import Array, Leaf
from gradproof.result import Finding, Place, Verdict
from gradproof.settings import Tolerance


class JittedCall(Call):
    """The same call under jit."""

    def __init__(self, inner: Call) -> None:
        self.inputs, self.skipped, self._outputs = inner.inputs, inner.skipped, inner.outputs
        self._run = jax.jit(lambda arrays: tuple(inner.run(arrays)))

    @property
    def outputs(self) -> Layout:
        return self._outputs

    def run(self, arrays: Arrays) -> Arrays:
        values: Arrays = self._run(tuple(arrays))
        return values


@dataclass(frozen=True, slots=True)
class Question:
    """What is computed both ways; `leaves` name the numbers."""

    what: str
    leaves: tuple[Leaf, ...]
    answer: Callable[[JaxProgram], Array]


def check_jitted(program: JaxProgram, generator: np.random.Generator, tolerance: Tolerance) -> tuple[Finding, ...]:
    """Compare values, one pull and one push. A mode that does not exist is left out."""
    cotangent = generator.standard_normal((1, program.value.size))
    tangent = generator.standard_normal((1, program.point.size))
    program.stay_plain()
    try:
        shelf = Shelf(JittedCall(program.call), program.scope.form)
        jitted = JaxProgram(shelf, program.name, program.point, program.tally, program.scope)
    except Exception as error:  # noqa: BLE001  whatever it is, it does not happen without jit
        return (_refused(error),)
    for question in (
        Question("the value", program.outputs, lambda one: one.value),
        Question("the reverse derivative", program.inputs, lambda one: one.pull(cotangent)[0]),
        Question("the forward derivative", program.outputs, lambda one: one.push(tangent)[0]),
    ):
        try:
            eager = question.answer(program)
        except Unsupported:
            continue
        try:
            findings = _different(question, eager, question.answer(jitted), tolerance)
        except Exception as error:  # noqa: BLE001  the same
            findings = (_refused(error),)
        if findings:
            return findings
    return ()


def _refused(error: Exception) -> Finding:
    return Finding(
        "jit",
        Verdict.UNSUPPORTED,
        Place(),
        f"the function does not run under jit: {type(error).__name__}: {first_line(error)}",
        "Use lax.cond or jnp.where in place of Python's `if`; what is no array must be static.",
    )


def _different(question: Question, eager: Array, jitted: Array, tolerance: Tolerance) -> tuple[Finding, ...]:
    for leaf in question.leaves:
        first, second = eager[leaf.span], jitted[leaf.span]
        if np.array_equal(first, second, equal_nan=True):
            continue
        with np.errstate(invalid="ignore"):
            excess = np.abs(first - second) - entry_tolerance(first, rms(first), tolerance)
        excess[np.isnan(first) != np.isnan(second)] = np.inf
        worst = int(np.nanargmax(excess)) if not np.isnan(excess).all() else 0
        if excess[worst] > 0:
            spot = leaf.spot(leaf.start + worst)
            return (
                Finding(
                    "jit",
                    Verdict.WRONG,
                    Place(spot, None),
                    f"{question.what} at {spot} is {first[worst]:.6g}, but {second[worst]:.6g} under jit",
                    "Look for a global, a random number or a branch in Python that tracing sees only once.",
                ),
            )
    return ()
