"""A loop whose body is made anew in each call is compiled anew in each: no check makes many such calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof import Verdict
from gradproof.jax import program_of
from gradproof.jax.recipes import compiles_anew

# Plain calls, and traces of what is compiled. Single calls were 635 of the small one, and 440 of the large one.
FEW = 40


def recurrence(counted: Callable[[], None], start: int) -> Callable[[Any, Any], Any]:
    """h[t] = a[t] h[t-1] + x[t]; the rule is right if the cotangents run back through a[t+1]: `start` is 1."""

    def forward(a: Any, x: Any) -> Any:
        counted()

        def step(h: Any, one: Any) -> Any:
            h = one[0] * h + one[1]
            return h, h

        return jax.lax.scan(step, jnp.zeros_like(x[0]), (a, x))[1]

    @jax.custom_vjp
    def function(a: Any, x: Any) -> Any:
        return forward(a, x)

    def backward(kept: Any, g: Any) -> Any:
        a, h = kept
        before, after = jnp.concatenate([jnp.zeros_like(h[:1]), h[:-1]]), jnp.concatenate([a, a[:1]])

        def step(c: Any, one: Any) -> Any:
            c = one[0] * c + one[1]
            return c, c

        found = jax.lax.scan(step, jnp.zeros_like(g[0]), (after[start : start + len(a)], g), reverse=True)[1]
        return found * before, found

    def both(a: Any, x: Any) -> Any:
        h = forward(a, x)
        return h, (a, h)

    function.defvjp(both, backward)
    return function


@pytest.mark.parametrize("shape", [(8, 2), (40, 30)])
@pytest.mark.parametrize(("start", "verdict"), [(1, Verdict.RIGHT), (0, Verdict.WRONG)])
def test_few_plain_calls_are_made_of_it(shape: tuple[int, int], start: int, verdict: Verdict) -> None:
    calls: list[None] = []
    generator = np.random.default_rng(0)
    a, x = (jnp.asarray(scale * generator.standard_normal(shape), "float32") for scale in (0.5, 1.0))
    result = gradproof.check(recurrence(lambda: calls.append(None), start), (a, x), seed=0)
    assert result.verdict is verdict
    assert len(calls) <= FEW


def test_a_jit_around_a_loop_keeps_it() -> None:
    def function(arrays: Any) -> Any:
        return [recurrence(lambda: None, 1)(*arrays)]

    point = [jnp.ones((3, 2)), jnp.ones((3, 2))]
    assert compiles_anew(function, point)
    assert not compiles_anew(jax.jit(function), point)
    assert not compiles_anew(lambda arrays: [jnp.sin(arrays[0])], point)


def test_gradients_with_other_cotangents_are_compiled_once() -> None:
    traces = []

    def function(x: Any) -> Any:
        traces.append(x)
        return jnp.linalg.inv(x)

    program = program_of(function, jnp.eye(3) + 0.1)
    made = [program.gradient(factor * np.ones(9)) for factor in (1.0, 2.0, 3.0)]
    before = len(traces)
    for factor, gradient in enumerate(made, start=1):
        np.testing.assert_allclose(gradient.value, factor * made[0].value, rtol=1e-5)
        assert gradient.values(np.repeat(gradient.point[None], 12, axis=0)).shape == (12, 9)
    assert len(traces) <= before + 2
