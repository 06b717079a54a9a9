"""Casts to narrower formats inside of a function: left out, and nobody else notices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

import gradproof
from gradproof import Unsupported, Verdict
from gradproof.jax import program_of
from gradproof.jax.casts import WithoutCasts
from gradproof.jax.scope import enable_x64

pytestmark = pytest.mark.skipif(not hasattr(jax, "make_user_context"), reason="this JAX has no contexts of one's own")

X = np.linspace(-1.3, 1.7, 12).reshape(3, 4)
W = np.sin(np.arange(20.0)).reshape(4, 5)
SINGLE = jnp.float32


def product(x: Any, w: Any) -> Any:
    return (x.astype(SINGLE) @ w.astype(SINGLE)).astype(x.dtype)


def normed(x: Any) -> Any:
    wide = x.astype(SINGLE)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def summed(x: Any) -> Any:
    return x * jnp.sum(x * x, -1, keepdims=True, dtype=SINGLE).astype(x.dtype)


def looped(x: Any) -> Any:
    start = jnp.zeros(x.shape[1:], SINGLE)
    return jax.lax.scan(lambda h, row: (jnp.tanh(h + row.astype(SINGLE)), h.sum()), start, x)[0].astype(x.dtype)


def product_with(factor: float) -> Callable[[Any, Any], Any]:
    @jax.custom_vjp
    def function(x: Any, w: Any) -> Any:
        return product(x, w)

    def backward(kept: Any, g: Any) -> Any:
        x, w = (one.astype(SINGLE) for one in kept)
        return (factor * g.astype(SINGLE) @ w.T).astype(g.dtype), (x.T @ g.astype(SINGLE)).astype(g.dtype)

    function.defvjp(lambda x, w: (product(x, w), (x, w)), backward)
    return function


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(normed, id="astype"),
        pytest.param(jax.jit(normed), id="jit"),
        pytest.param(summed, id="dtype="),
        pytest.param(looped, id="scan"),
        pytest.param(lambda x: product(x, jnp.asarray(W, x.dtype)), id="a constant of the format"),
        pytest.param(lambda x: jnp.matmul(x, x.T, preferred_element_type=SINGLE).astype(x.dtype), id="preferred"),
        pytest.param(lambda x: product_with(1.0)(x, x.T), id="a rule"),
    ],
)
def test_without_its_casts_a_function_is_smooth(function: Any, dtype: str) -> None:
    program = program_of(function, jnp.asarray(X, dtype))
    found = program.unrounded()
    assert found is not None
    # In float32 it is only the copy in float64 that is cast to something narrower.
    assert found.form == ("float64" if dtype == "float32" else dtype)
    smooth, step = found.program, 1e-6
    assert {leaf.dtype for leaf in smooth.inputs + smooth.outputs} == {"float64"}
    np.testing.assert_allclose(smooth.value, program.value, rtol=0.1, atol=0.05)
    rows = step * np.eye(smooth.point.size)
    columns = (smooth.values(smooth.point + rows) - smooth.values(smooth.point - rows)) / (2 * step)
    np.testing.assert_allclose(smooth.pull(np.eye(smooth.value.size)), columns.T, atol=1e-8)


def test_its_gradient_is_without_casts_too() -> None:
    program = program_of(normed, jnp.asarray(X, "bfloat16"))
    found, whole = program.gradient(np.ones(12)).unrounded(), program.unrounded()
    assert found is not None
    assert whole is not None
    np.testing.assert_allclose(found.program.value, whole.program.pull(np.ones((1, 12)))[0], atol=1e-12)


def test_a_function_without_casts_has_nothing_to_leave_out() -> None:
    assert program_of(jnp.sin, jnp.asarray(X, "float32")).unrounded() is None
    assert program_of(lambda x: x.astype("float32"), jnp.asarray(X, "bfloat16")).unrounded() is not None


def test_a_cast_of_float64_arguments_is_left_out() -> None:
    with enable_x64(True):
        found = program_of(normed, jnp.asarray(X, "float64")).unrounded()
    assert found is not None
    assert found.form == "float32"


def test_casts_that_only_a_rule_makes_stay() -> None:
    @jax.custom_vjp
    def function(x: Any) -> Any:
        return jnp.sin(x.astype(SINGLE)).astype(x.dtype)

    function.defvjp(lambda x: (function(x), x), lambda x, g: ((g.astype("bfloat16") * jnp.cos(x)).astype(x.dtype),))
    found = program_of(function, jnp.asarray(X, "float32")).unrounded()
    assert found is not None
    rounded = found.program.pull(np.full((1, 12), 1 + 2.0**-12))
    np.testing.assert_array_equal(rounded, np.cos(found.program.point)[None])


def test_nothing_of_it_is_seen_elsewhere() -> None:
    bind, threads = core.Primitive.bind, []
    with enable_x64(True):
        x = jnp.asarray(X, "float64")
        with WithoutCasts(8):
            assert jnp.mean(x, dtype=SINGLE).dtype == jax.jit(normed)(x.astype(SINGLE)).dtype == "float64"
            other = threading.Thread(target=lambda: threads.append(jnp.mean(jnp.asarray(X), dtype="float16").dtype))
            other.start()
            other.join()
        assert jnp.mean(x, dtype=SINGLE).dtype == jax.jit(normed)(x.astype(SINGLE)).dtype == "float32"
    assert threads == ["float16"]
    with pytest.raises(ZeroDivisionError), WithoutCasts(8):
        raise ZeroDivisionError
    assert core.Primitive.bind is bind


def test_a_function_that_insists_on_its_format_is_left_alone() -> None:
    def function(x: Any) -> Any:
        narrow = x.astype(SINGLE)
        return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(narrow, jnp.int32), SINGLE).astype(x.dtype)

    with pytest.raises(Unsupported):
        program_of(function, jnp.asarray(X, "float32")).unrounded()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_rules_with_casts_are_judged(dtype: str) -> None:
    args = (jnp.asarray(X, dtype), jnp.asarray(W, dtype))
    assert gradproof.check(product_with(1.0), args, seed=1).verdict is Verdict.RIGHT
    assert gradproof.check(product_with(1.1), args, seed=1).verdict is Verdict.WRONG


def test_other_random_numbers_in_float64_are_the_reason() -> None:
    def dropout(key: Any, x: Any, share: Any) -> Any:
        return jnp.where(jax.random.bernoulli(key, share, x.shape), x * 2, 0)

    x, key = jnp.asarray(X, "bfloat16"), jax.random.key(1)
    with pytest.raises(Unsupported, match="other numbers in 64-bit mode"):
        program_of(lambda key, x: dropout(key, x, 0.5), (key, x)).widened()
    same = program_of(lambda key, x: dropout(key, x, jnp.float32(0.5)), (key, x))
    np.testing.assert_array_equal(same.widened().value == 0, same.value == 0)
