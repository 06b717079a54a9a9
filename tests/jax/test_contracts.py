"""Contracts of JAX functions: jitted equals eager; the rule's value is the function's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from gradproof import Verdict
from gradproof.jax import check_jitted

X = jnp.linspace(0.3, 1.7, 6)


def concrete(x: Any) -> bool:
    return not isinstance(x, jax.core.Tracer)


def test_a_pure_function_is_the_same_under_jit() -> None:
    result = check_jitted(lambda x: jnp.sin(x) * x, X, seed=1)
    assert result.verdict is Verdict.RIGHT
    assert not [finding for finding in result.findings if finding.code == "jit"]


def test_a_value_that_depends_on_tracing_is_found() -> None:
    count: list[int] = []

    def function(x: Any) -> Any:
        return jnp.sin(x) * (1.0 if concrete(x) else 2.0)

    result = check_jitted(function, X, seed=1, modes="reverse", effort=1)
    assert count == []
    assert [finding.code for finding in result.findings if finding.verdict is not Verdict.RIGHT][-1] == "jit"
    assert "under jit" in result.findings[-1].sentence


def test_a_gradient_that_depends_on_jit_is_found() -> None:
    under_jit = {"factor": 1.0}

    @jax.custom_vjp
    def inner(x: Any) -> Any:
        return jnp.sin(x)

    inner.defvjp(
        lambda x: (jnp.sin(x), x),
        lambda x, g: (g * jnp.cos(x) * (1.0 if concrete(g) else under_jit["factor"]),),
    )
    assert check_jitted(inner, X[:3], seed=1).verdict is Verdict.RIGHT
    under_jit["factor"] = 1.5
    result = check_jitted(lambda x: inner(x), X[:3], seed=1)  # noqa: PLW0108  another function, so nothing is kept
    assert result.verdict is Verdict.WRONG
    assert result.findings[-1].code == "jit"
    assert "the reverse derivative at args[0]" in result.findings[-1].sentence


def test_a_branch_in_python_does_not_run_under_jit() -> None:
    result = check_jitted(lambda x: x * 2 if x[0] > 0 else x, X[:3], seed=1)
    assert result.verdict is Verdict.UNSUPPORTED
    assert "does not run under jit: TracerBoolConversionError" in result.findings[-1].sentence


@pytest.mark.parametrize("modes", ["reverse", "forward"])
def test_each_mode_is_compared(modes: str) -> None:
    assert check_jitted(jnp.sin, X, seed=1, modes=modes).verdict is Verdict.RIGHT
