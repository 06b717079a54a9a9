"""What JAX sees of a function decides whether its derivatives may run compiled; whatever changes must be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradproof
from gradproof.jax.families import Compiled, Shelf
from gradproof.jax.recipes import Recipe
from gradproof.jax.scope import enable_x64
from gradproof.result import Verdict

X = jnp.linspace(0.3, 1.2, 20)


def recipe(function: Callable[..., Any]) -> Recipe | None:
    return Recipe.of(lambda xs: (function(*xs),), (X,))


@jax.custom_vjp
def by_hand(x: Any) -> Any:
    return jnp.sin(x)


by_hand.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))


@pytest.mark.parametrize(
    "function",
    [
        by_hand,
        lambda x: 2 * jax.jit(by_hand)(x),
        lambda x: jax.lax.map(by_hand, x),
        jax.nn.relu,
        lambda x: jax.pure_callback(np.sin, x, x),
        lambda x: x if x[0] > 0 else -x,
    ],
)
def test_a_rule_a_callback_or_a_branch_in_python_hides_something(function: Callable[..., Any]) -> None:
    assert recipe(function) is None


@pytest.mark.parametrize(
    "function",
    [
        jnp.sin,
        jax.nn.softmax,
        lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(len(x))),
        lambda x: jax.lax.scan(lambda carry, y: (carry + y, carry * y), 0.0, x)[1],
        lambda x: x * jax.random.normal(jax.random.key(0), x.shape),
        jnp.sort,
    ],
)
def test_operations_of_jax_are_seen_and_recognised(function: Callable[..., Any]) -> None:
    one, other = recipe(function), recipe(function)
    assert one is not None
    assert other is not None
    assert one.same_as(other)


def test_another_constant_operation_or_order_is_another_recipe() -> None:
    constants = {"number": 2.0, "array": jnp.ones(20)}
    for name, changed in (("number", 3.0), ("array", jnp.ones(20).at[7].set(2.0))):
        before = recipe(lambda x, name=name: x * constants[name])
        constants[name] = changed
        after = recipe(lambda x, name=name: x * constants[name])
        assert before is not None
        assert after is not None
        assert not before.same_as(after)
    subtractions = recipe(lambda x: jnp.cos(x) - x), recipe(lambda x: x - jnp.cos(x))
    assert subtractions[0] is not None
    assert subtractions[1] is not None
    assert not subtractions[0].same_as(subtractions[1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_was_compiled_for_a_function_that_has_changed_since_is_not_used(dtype: Any) -> None:
    """The second time the derivative alone is another one, and wrong; the value is the same."""
    wrong = [False]

    def function(x: Any) -> Any:
        return jax.lax.stop_gradient(jnp.sin(x)) if wrong[0] else jnp.sin(x)

    with enable_x64(dtype is np.float64):
        x = jnp.asarray(X, dtype)
        assert gradproof.check(function, x, effort="exhaustive", seed=0).verdict is Verdict.RIGHT
        wrong[0] = True
        assert gradproof.check(function, x, effort="exhaustive", seed=0).verdict is Verdict.WRONG
        wrong[0] = False
        assert gradproof.check(function, x, effort="exhaustive", seed=0).verdict is Verdict.RIGHT


def test_a_guest_rides_in_the_filling_of_a_batch() -> None:
    program = gradproof.jax.program_of(jnp.sin, X)
    runs, rows = program.runs, np.random.default_rng(0).standard_normal((24, 20))
    way = runs.values.ways[0]
    assert isinstance(way, Compiled)
    results = np.empty((24, 20))
    with program.scope:
        guests = np.array([[0.25], [0.5], [0.5]]) * np.ones(20)
        alone, three = way.beside(guests[:1], rows, results), way.beside(guests, rows, results)
    np.testing.assert_allclose(alone, np.sin(guests[:1]), rtol=1e-6)
    np.testing.assert_allclose(three, np.sin(guests), rtol=1e-6)
    np.testing.assert_allclose(results, np.sin(rows), rtol=1e-5)


def test_a_family_without_a_recipe_is_made_anew() -> None:
    program = gradproof.jax.program_of(by_hand, X)
    shelf = Shelf(program.call, program.scope.width)
    assert not shelf.shows(None)
    seen = recipe(jnp.sin)
    family = shelf.family
    assert shelf.shows(seen)
    assert shelf.family.recipe is seen
    assert shelf.shows(recipe(jnp.sin))
    assert family is shelf.family or family.recipe is None
