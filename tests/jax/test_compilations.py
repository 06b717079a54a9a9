"""How often a check compiles: counted, since times depend on the machine."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import gradproof
from gradproof.jax import CheckFailed, check_grads

X = np.array([0.3, 0.8, 1.7])

_all: list[str] = []
monitoring.register_event_duration_secs_listener(
    lambda event, _, **about: _all.append(str(about.get("fun_name", ""))) if "backend_compile" in event else None
)


@contextmanager
def compiled() -> Iterator[list[str]]:
    """What is compiled inside, once it is over."""
    names: list[str] = []
    before = len(_all)
    yield names
    names.extend(_all[before:])


def with_rule() -> Callable[[Any], Any]:
    @jax.custom_jvp
    def function(x: Any) -> Any:
        return jnp.sin(x) * x

    def rule(xs: Any, ts: Any) -> Any:
        (x,), (t,) = xs, ts
        return function(x), t * (jnp.cos(x) * x + jnp.sin(x))

    function.defjvp(rule)
    return function


def plain(x: Any) -> Any:
    return jnp.sin(x) * x


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("make", [with_rule, lambda: lambda x: plain(x)], ids=["rule", "plain"])
def test_derivatives_of_derivatives_are_compiled_once(make: Callable[[], Any], order: int) -> None:
    function = make()
    with compiled() as first:
        check_grads(function, (jnp.asarray(X),), order)
    with compiled() as second:
        check_grads(function, (jnp.asarray(X),), order)
    assert first
    assert second == []


def test_all_orders_of_check_are_compiled_once() -> None:
    function = with_rule()
    assert gradproof.check(function, jnp.asarray(X), order=2, seed=0).ok
    with compiled() as second:
        assert gradproof.check(function, jnp.asarray(X), order=2, seed=0).ok
    assert second == []


def test_a_rule_that_changed_is_compiled_anew() -> None:
    """Nothing shows it but a trace: the function is what it was."""
    factor = [1.0]

    @jax.custom_jvp
    def slope(x: Any) -> Any:
        return jnp.cos(x)

    slope.defjvp(lambda xs, ts: (slope(*xs), -factor[0] * jnp.sin(xs[0]) * ts[0]))

    @jax.custom_jvp
    def function(x: Any) -> Any:
        return jnp.sin(x)

    function.defjvp(lambda xs, ts: (function(*xs), slope(*xs) * ts[0]))

    args = (jnp.asarray(X),)
    check_grads(function, args, 2)
    factor[0] = 1.5
    check_grads(function, args, 1)
    with pytest.raises(CheckFailed):
        check_grads(function, args, 2)
    factor[0] = 1.0
    check_grads(function, args, 2)


def test_what_is_kept_goes_with_the_function() -> None:
    def function(x: Any) -> Any:
        return plain(x)

    alive = weakref.ref(function)
    check_grads(function, (jnp.asarray(X),), 2)
    del function
    gc.collect()
    assert alive() is None
