"""check_grads, check_jvp and check_vjp: JAX's signatures, and where the verdict differs from JAX's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from gradproof import GradcheckError, UsageError
from gradproof.jax import CheckFailed, NonDifferentiableWarning, check_grads, check_jvp, check_vjp

X = jnp.linspace(0.3, 1.7, 6)
Z = X + 1j * X[::-1]


def planted(value: Callable[..., Any], gradient: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a reverse rule that multiplies the cotangent by `gradient(x)`."""

    @jax.custom_vjp
    def function(x: Any) -> Any:
        return value(x)

    function.defvjp(lambda x: (value(x), x), lambda x, g: (g * gradient(x),))
    return function


def tangents(value: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a `custom_jvp`, which has both modes."""

    @jax.custom_jvp
    def function(x: Any) -> Any:
        return value(x)

    function.defjvp(lambda primals, moved: (value(primals[0]), slope(primals[0]) * moved[0]))
    return function


WRONG = planted(jnp.sin, lambda x: 1.01 * jnp.cos(x))
RIGHT = planted(jnp.sin, jnp.cos)


@pytest.mark.parametrize("modes", [("fwd", "rev"), ["rev"], "fwd", "lin", ["fwd", "rev", "lin"]])
def test_modes_are_named_as_in_jax(modes: Any) -> None:
    check_grads(jnp.sin, (X,), 1, modes=modes)
    with pytest.raises(AssertionError):
        check_grads(tangents(jnp.sin, lambda x: 1.01 * jnp.cos(x)), (X,), 1, modes=modes)


def test_an_unknown_mode_is_explained() -> None:
    with pytest.raises(UsageError, match="modes='backward' is not understood"):
        check_grads(jnp.sin, (X,), 1, modes="backward")


@pytest.mark.parametrize("modes", [["rev"], ["fwd"], ["lin"]])
def test_the_second_order_is_looked_at(modes: list[str]) -> None:
    first = tangents(jnp.cos, lambda x: -1.01 * jnp.sin(x))  # right in value, wrong in slope
    function = tangents(jnp.sin, first)
    check_grads(function, (X[:3],), 1, modes=modes)
    with pytest.raises(CheckFailed, match=r"(gradient|tangent) of"):
        check_grads(function, (X[:3],), 2, modes=modes)
    check_grads(tangents(jnp.sin, jnp.cos), (X[:3],), 2, modes=modes)


def test_the_failure_is_an_assertion_that_carries_the_result() -> None:
    with pytest.raises(AssertionError, match=r"d out\[\d\] / d args\[0\]\[\d\]") as caught:
        check_grads(WRONG, (X,), 1, modes=["rev"])
    assert isinstance(caught.value, GradcheckError)
    assert caught.value.result is not None
    assert caught.value.result.wrong


def test_a_mode_that_does_not_exist_raises_what_jax_raises() -> None:
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        check_grads(RIGHT, (X,), 1)
    check_grads(RIGHT, (X,), 1, modes=["rev"])


def test_numbers_and_structures_are_differentiated() -> None:
    check_grads(lambda x, tree: x * tree["a"] ** 2, (3.0, {"a": X}), 1)
    with pytest.raises(CheckFailed, match=r"args\[0\]"):
        check_grads(lambda x, tree: jax.lax.stop_gradient(x) * tree["a"] ** 2, (3.0, {"a": X}), 1)


@pytest.mark.parametrize("tolerance", [0.05, {np.float32: 0.05}])
def test_tolerances_mean_what_they_mean_in_jax(tolerance: Any) -> None:
    check_grads(WRONG, (X,), 1, modes=["rev"], atol=tolerance, rtol=tolerance)
    with pytest.raises(CheckFailed):
        check_grads(WRONG, (X,), 1, modes=["rev"], atol=1e-4, rtol=1e-4)


def test_a_tolerance_does_not_grow_with_the_output() -> None:
    function = planted(jnp.sin, lambda x: jnp.cos(x) * jnp.where(jnp.arange(100) == 7, 1.05, 1.0))
    with pytest.raises(CheckFailed, match=r"args\[0\]\[7\]"):
        check_grads(function, (jnp.full(100, 0.5),), 1, modes=["rev"], atol=1e-3, rtol=1e-3)


def test_a_wrong_value_in_the_rule_is_found() -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    function.defvjp(lambda x: (jnp.sin(x) + 1, x), lambda x, g: (g * jnp.cos(x),))
    with pytest.raises(CheckFailed, match="but the forward pass of its reverse mode gives"):
        check_grads(function, (X,), 1, modes=["rev"])


def test_an_output_that_is_infinite_counts_as_constant() -> None:
    check_grads(lambda x: jnp.concatenate([x, jnp.full(1, -jnp.inf)]), (X,), 1)


class TestGivenRules:
    def test_jvp(self) -> None:
        check_jvp(jnp.sin, functools.partial(jax.jvp, jnp.sin), (X,))
        check_jvp(jnp.sin, lambda x, t: (jnp.sin(x[0]), jnp.cos(x[0]) * t[0]), (X,))
        with pytest.raises(CheckFailed, match=r"(?s)my rule.*forward"):
            check_jvp(jnp.sin, lambda x, t: (jnp.sin(x[0]), -jnp.cos(x[0]) * t[0]), (X,), err_msg="my rule")
        with pytest.raises(CheckFailed, match="the rule of its forward mode gives"):
            check_jvp(jnp.sin, lambda x, t: (jnp.cos(x[0]), jnp.cos(x[0]) * t[0]), (X,))
        with pytest.raises(CheckFailed, match="the tangent that the rule returns is not like the function's"):
            check_jvp(jnp.sin, lambda x, t: (jnp.sin(x[0]), jnp.sum(t[0])), (X,))

    def test_vjp(self) -> None:
        check_vjp(jnp.sin, functools.partial(jax.vjp, jnp.sin), (X,))
        check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda g: (g * jnp.cos(x),)), (X,))
        with pytest.raises(CheckFailed, match=r"(?s)my rule.*reverse"):
            check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda g: (g * jnp.sin(x),)), (X,), err_msg="my rule")
        with pytest.raises(CheckFailed, match="the forward pass of its reverse mode gives"):
            check_vjp(jnp.sin, lambda x: (jnp.cos(x), lambda g: (g * jnp.cos(x),)), (X,))
        with pytest.raises(CheckFailed, match="2 leaves instead of 1"):
            check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda g: (g, g)), (X,))

    def test_complex_rules_follow_jax(self) -> None:
        check_vjp(lambda z: z * z, functools.partial(jax.vjp, lambda z: z * z), (Z,))
        check_vjp(lambda z: z * z, lambda z: (z * z, lambda g: (2 * z * g,)), (Z,))
        with pytest.raises(CheckFailed):
            check_vjp(lambda z: z * z, lambda z: (z * z, lambda g: (2 * jnp.conj(z) * g,)), (Z,))
        check_jvp(lambda z: z * z, lambda z, t: (z[0] * z[0], 2 * z[0] * t[0]), (Z,))

    def test_integer_arguments_have_no_tangent(self) -> None:
        check_jvp(lambda x, n: x * n, functools.partial(jax.jvp, lambda x, n: x * n), (X, jnp.arange(6)))
        check_vjp(lambda x, n: x * n, functools.partial(jax.vjp, lambda x, n: x * n), (X, jnp.arange(6)))


class TestWhatJaxMisses:
    """In float32, with its own tolerances, each of these passes JAX's checker."""

    def caught(self, function: Callable[..., Any], x: Any, mode: str) -> CheckFailed:
        test_util.check_grads(function, (x,), 1, modes=[mode])
        with pytest.raises(CheckFailed) as caught:
            check_grads(function, (x,), 1, modes=[mode])
        return caught.value

    def test_one_dead_entry_of_a_thousand(self) -> None:
        function = tangents(jnp.sin, lambda x: jnp.cos(x) * (jnp.arange(1000) != 123))
        failure = self.caught(function, jnp.linspace(0.5, 1.5, 1000), "fwd")
        assert "args[0][123]" in str(failure)

    def test_a_wrong_sign_at_a_small_scale(self) -> None:
        self.caught(planted(lambda x: 1e-6 * jnp.sin(x), lambda x: -1e-6 * jnp.cos(x)), X, "rev")

    def test_nan_on_both_sides(self) -> None:
        self.caught(planted(lambda x: jnp.sqrt(x - 5), lambda x: 0.5 / jnp.sqrt(x - 5)), X, "rev")


class TestWhatJaxRejects:
    """Right derivatives that JAX's checker calls wrong, or cannot take."""

    def passed(self, function: Callable[..., Any], *args: Any, error: Any = AssertionError) -> None:
        with pytest.raises(error):
            test_util.check_grads(function, args, 1)
        check_grads(function, args, 1)

    def test_bfloat16(self) -> None:
        self.passed(jnp.sin, jnp.linspace(0.3, 1.7, 8, dtype=jnp.bfloat16))

    def test_an_integer_argument(self) -> None:
        self.passed(lambda x, n: x * n, X, jnp.arange(6), error=TypeError)

    def test_a_kink(self) -> None:
        x = jnp.asarray([-1.0, 0.0, 2.0])
        with pytest.raises(AssertionError):
            test_util.check_grads(jax.nn.relu, (x,), 1)
        with pytest.warns(NonDifferentiableWarning):
            check_grads(jax.nn.relu, (x,), 1)
