"""Contracts of JAX functions: jitted equals eager; the rule's value is the function's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof import Result, Tolerance, Verdict
from gradproof.jax import program_of
from gradproof.jax.contracts.jitted import check_jitted as check_jitted_contract
from gradproof.jax.scope import enable_x64

X = jnp.linspace(0.3, 1.7, 6)


def check_jitted(function: Any, x: Any, **options: Any) -> Result:
    return gradproof.check(function, x, contracts="jit", seed=1, **options)


def test_a_pure_function_is_the_same_under_jit() -> None:
    result = check_jitted(lambda x: jnp.sin(x) * x, X)
    assert result.verdict is Verdict.RIGHT
    assert not [finding for finding in result.findings if finding.code == "jit"]


def test_a_gradient_that_depends_on_jit_is_found_when_it_is_asked_for() -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    function.defvjp(
        lambda x: (jnp.sin(x), x),
        lambda x, g: (g * jnp.cos(x) * (1.5 if isinstance(g, jax.core.Tracer) else 1.0),),
    )
    assert gradproof.check(function, X[:3], seed=1).verdict is Verdict.RIGHT
    result = check_jitted(function, X[:3])
    assert [finding.code for finding in result.wrong] == ["jit"]
    assert "the reverse derivative at args[0]" in result.wrong[0].sentence


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("period", [2, 3, 1000])
def test_a_rule_that_keeps_state_is_not_repeatable(period: int, size: int, dtype: Any) -> None:
    """Its batch may happen to agree; checked twice, so that what was compiled for the first check is at hand."""
    calls: list[int] = []

    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    def backward(x: Any, g: Any) -> Any:
        calls.append(1)
        return (g * jnp.cos(x) * (1.5 if len(calls) % period == 0 else 1.0),)

    function.defvjp(lambda x: (jnp.sin(x), x), backward)
    with enable_x64(dtype is np.float64):
        x = jnp.linspace(0.3, 1.7, size, dtype=dtype)
        verdicts = {gradproof.check(function, x, seed=1).verdict for _ in range(2)}
    assert (verdicts == {Verdict.RIGHT}) == (period == 1000)


def test_a_value_that_depends_on_jit_is_found() -> None:
    seen: list[int] = []

    def function(x: Any) -> Any:
        seen.append(1)
        return jnp.sin(x) * (2.0 if len(seen) > 20 else 1.0)

    program = program_of(function, X[:3])
    assert check_jitted_contract(program, np.random.default_rng(0), Tolerance(1e-4)) == ()
    seen += [1] * 20
    (finding,) = check_jitted_contract(program, np.random.default_rng(0), Tolerance(1e-4))
    assert (finding.code, finding.verdict) == ("jit", Verdict.WRONG)
    assert "the value at out[" in finding.sentence


def test_a_branch_in_python_does_not_run_under_jit() -> None:
    result = check_jitted(lambda x: x * 2 if x[0] > 0 else x, X[:3])
    assert result.verdict is Verdict.UNSUPPORTED
    assert "does not run under jit: TracerBoolConversionError" in result.findings[-1].sentence


def test_the_value_that_comes_with_the_gradient_is_the_functions_own() -> None:
    @jax.custom_vjp
    def wrong(x: Any) -> Any:
        return jnp.sin(x)

    wrong.defvjp(lambda x: (jnp.sin(x).at[1].add(0.1), x), lambda x, g: (g * jnp.cos(x),))
    result = gradproof.check(wrong, X, seed=1)
    assert [(finding.code, str(finding.place.output)) for finding in result.wrong] == [("primal", "out[1]")]
    assert [finding.code for finding in gradproof.check(wrong, X, bounds=(0, 2), seed=1).wrong] == ["primal"]
    assert gradproof.check(wrong, X, contracts="linear", seed=1).verdict is Verdict.RIGHT


def cast_by_its_rule(value: Any, gradient: Any, dtype: Any) -> Any:
    function = jax.custom_vjp(value)
    function.defvjp(lambda x: (value(x), x), lambda x, g: (gradient(x, g).astype(dtype or x.dtype),))
    return function


def shifted(x: Any, g: Any) -> Any:
    return g


def turned(x: Any, g: Any) -> Any:
    found = g * 1j * jnp.exp(1j * x)
    return found if jnp.iscomplexobj(x) else found.real


@pytest.mark.parametrize(
    ("value", "gradient", "x", "dtype", "verdict"),
    [
        pytest.param(lambda x: x + 1, shifted, X, jnp.float16, Verdict.WRONG, id="coarser"),
        pytest.param(lambda x: jnp.round(x * 0), lambda x, g: g * 0, X, jnp.int32, Verdict.WRONG, id="integers"),
        pytest.param(lambda x: jnp.exp(1j * x), turned, X, jnp.complex64, Verdict.WRONG, id="complex for real"),
        pytest.param(jnp.real, shifted, X + 1j, jnp.float32, Verdict.WRONG, id="real for complex"),
        pytest.param(
            lambda x: x + 1, shifted, X.astype(jnp.bfloat16), jnp.float32, Verdict.RIGHT, id="finer: nothing is lost"
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_gradient_of_another_dtype_is_named(value: Any, gradient: Any, x: Any, dtype: Any, verdict: Verdict) -> None:
    result = gradproof.check(cast_by_its_rule(value, gradient, dtype), x, seed=1)
    (finding,) = [one for one in result.findings if one.code == "attributes"]
    assert (finding.verdict, str(finding.place)) == (verdict, "args[0]")
    assert finding.sentence == f"the gradient of args[0] is {jnp.dtype(dtype).name}, expected {x.dtype.name}"
    assert all(one.verdict is Verdict.RIGHT for one in result.comparisons) or dtype is jnp.float16
    twin = gradproof.check(cast_by_its_rule(value, gradient, None), x, seed=1)
    assert twin.verdict is Verdict.RIGHT, str(twin)
    assert not [one for one in twin.findings if one.code == "attributes"]


def test_second_derivatives_of_a_rule_with_gradients_of_another_dtype() -> None:
    function = cast_by_its_rule(lambda x: jnp.exp(1j * x), turned, jnp.complex64)
    result = gradproof.check(function, X[:2], order=2, seed=1)
    assert [finding.code for finding in result.wrong] == ["attributes"]
