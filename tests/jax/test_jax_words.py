"""What is said of JAX functions is said in JAX's words; a flat point, and a rule that alternates, are told for what
they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof import Verdict
from gradproof.jax import check_grads

X = jnp.array([0.5, 1.5, 2.5])


def product(backward: Any) -> Any:
    @jax.custom_vjp
    def fn(x: jax.Array, y: jax.Array) -> jax.Array:
        return x * y

    fn.defvjp(lambda x, y: (x * y, (x, y)), backward)
    return fn


def check(fn: Any, *args: Any, **options: Any) -> gradproof.Result:
    return gradproof.check(fn, args, seed=0, **options)


def test_a_gradient_of_nan() -> None:
    point = jnp.array([4.0, -1.0])
    wrong = check(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), point, modes="reverse")
    assert "0 * inf behind jnp.where" in str(wrong)
    assert check(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0), point, modes="reverse").ok


def test_a_derivative_that_is_cut_off() -> None:
    assert check(product(lambda r, g: (g * r[1], g * r[0])), X, X + 1).ok
    for wrong in (
        check(product(lambda r, g: (g * r[1], None)), X, X + 1),
        check(lambda x: jax.lax.stop_gradient(x) * 2, X),
        check(lambda x: jax.lax.stop_gradient(x) * x, X, order=2),
    ):
        assert wrong.verdict is Verdict.WRONG
        assert "no_grad" not in str(wrong)
    assert "a stop_gradient" in str(wrong)


def test_a_random_function() -> None:
    result = check(lambda x: x * np.random.rand(), X)  # noqa: NPY002
    assert result.verdict is Verdict.UNDECIDED
    assert "the same PRNG key" in str(result)
    assert "dropout" not in str(result)
    with pytest.raises(gradproof.GradcheckError, match=r"Seed inside of the function or call gradproof\.check with"):
        check_grads(lambda x: x * np.random.rand(), (X,), 1)  # noqa: NPY002


def test_a_rule_that_alternates_is_not_taken_for_one_that_looks_at_signs() -> None:
    calls = []

    def alternating(residuals: Any, g: jax.Array) -> tuple[jax.Array, jax.Array]:
        calls.append(g)
        return g * residuals[1] * (1 + 0.1 * (len(calls) % 2)), g * residuals[0]

    result = check(product(alternating), X, X + 1)
    assert result.verdict is Verdict.WRONG
    assert {finding.code for finding in result.wrong} <= {"nondeterministic", "mismatch"}
    assert "nondeterministic" in {finding.code for finding in result.wrong}
    assert not any(finding.diagnosis for finding in result.findings)
    signs = check(product(lambda r, g: (jnp.where(g > 0, 1.1, 1.0) * g * r[1], g * r[0])), X, X + 1)
    assert any(finding.diagnosis and finding.diagnosis.code == "cotangent-one-sided" for finding in signs.findings)


def test_nothing_is_said_to_be_checked_where_there_is_no_derivative() -> None:
    def fn(x: jax.Array) -> jax.Array:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")

    result = check(fn, X)
    assert result.verdict is Verdict.UNSUPPORTED
    assert "exhaustive" not in str(result)
    assert "  checked   nothing" in str(result)


@pytest.mark.parametrize("power", [3, 4])
def test_a_flat_point(power: int) -> None:
    assert check(lambda x: x**power, jnp.zeros(3)).ok

    @jax.custom_vjp
    def off(x: jax.Array) -> jax.Array:
        return x**power

    off.defvjp(lambda x: (x**power, x), lambda x, g: (g * (power * x ** (power - 1) + 1e-3),))
    assert check(off, jnp.zeros(3)).verdict is Verdict.WRONG
