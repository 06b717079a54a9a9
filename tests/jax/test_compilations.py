"""How often a check compiles: counted, since times depend on the machine."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import gradproof
from gradproof import Verdict
from gradproof.jax import CheckFailed, check_grads, families, program_of
from gradproof.jax.recipes import compiles_anew
from gradproof.jax.runs import Runs
from gradproof.jax.scope import enable_x64

X = np.array([0.3, 0.8, 1.7])

_all: list[str] = []


def _note(event: str, duration_secs: float, **about: str | int) -> None:
    if "backend_compile" in event:
        _all.append(f"{about.get('fun_name')} in {duration_secs} s")


monitoring.register_event_duration_secs_listener(_note)


@contextmanager
def compiled() -> Iterator[list[str]]:
    """What is compiled inside, once it is over."""
    names: list[str] = []
    before = len(_all)
    yield names
    names.extend(_all[before:])
    if any(name.startswith("None ") for name in names):
        pytest.skip("JAX of this age does not name what it compiles")


def with_rule() -> Callable[[Any], Any]:
    @jax.custom_jvp
    def function(x: Any) -> Any:
        return jnp.sin(x) * x

    def rule(xs: Any, ts: Any) -> Any:
        (x,), (t,) = xs, ts
        return function(x), t * (jnp.cos(x) * x + jnp.sin(x))

    function.defjvp(rule)
    return function


def without() -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return jnp.sin(x) * x

    return function


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("make", [with_rule, without])
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
    function = without()
    alive = weakref.ref(function)
    check_grads(function, (jnp.asarray(X),), 2)
    del function
    gc.collect()
    assert alive() is None


def solved(x: Any) -> Any:
    """A jit that is made in the call: what it compiles serves for that call alone."""
    return jax.jit(lambda y: jnp.linalg.solve(jnp.eye(3) + jnp.outer(y, y), y))(x)


def opaque(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """With a rule, which may look at anything: plain calls are made of it."""
    wrapped = jax.custom_jvp(function)
    wrapped.defjvp(lambda xs, ts: jax.jvp(function, xs, ts))
    return wrapped


def test_a_jit_that_is_made_in_each_call_is_compiled_in_few() -> None:
    function = opaque(solved)
    assert compiles_anew(lambda xs: [function(*xs)], [jnp.asarray(X)])
    assert not compiles_anew(lambda xs: [jnp.linalg.inv(jnp.outer(*xs, *xs)), jax.nn.softmax(*xs)], [jnp.asarray(X)])
    with enable_x64(True), compiled() as names:
        check_grads(function, (jnp.asarray(X),), 1)
    assert sum("lambda" in name for name in names) <= 9  # one for each of 16 plain calls, before
    with enable_x64(True), compiled() as names:
        check_grads(function, (jnp.asarray(X),), 1)
    assert len(names) <= 5


def rounded(x: Any) -> Any:
    """In float32 three digits are left of it, and of its derivatives."""
    return jnp.sin(x + 1e4)


def test_what_is_far_off_in_float32_is_not_taken_for_stale() -> None:
    function = opaque(rounded)
    x = jnp.linspace(0.3, 1.7, 20, dtype="float32")
    gradproof.check(function, x, seed=0)
    with compiled() as second:
        gradproof.check(function, x, seed=0)
    assert second == []


def test_little_is_compiled_for_more_rows_where_that_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(dear: float) -> list[str]:
        monkeypatch.setattr(families, "DEAR", dear)
        program = program_of(opaque(rounded), jnp.asarray(X, "float64"))
        with compiled() as names:
            for rows in (12, 3, 40, 100):
                given = program.point + np.linspace(0.0, 1.0, rows)[:, None]
                np.testing.assert_allclose(program.values(given), np.sin(given + 1e4), atol=1e-9)
        return [name for name in names if "lambda" in name]

    with enable_x64(True):
        assert len(found(dear=0.0)) == 1
        assert len(found(dear=np.inf)) == 3


def doubled(x: Any) -> Any:
    return x * x


def halved(x: Any) -> Any:
    """The same value; JAX's own rules give half of the derivative, since that is what it was told."""
    return x * jax.lax.stop_gradient(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("fn", "verdict"), [(doubled, Verdict.RIGHT), (halved, Verdict.WRONG)])
@pytest.mark.parametrize("size", [3, 100, 400])
def test_one_program_pulls_and_pushes_a_row(dtype: str, fn: Any, verdict: Verdict, size: int) -> None:
    function = partial(fn)
    with enable_x64(dtype == "float64"):
        x = jnp.linspace(0.3, 1.7, size, dtype=dtype)
        with compiled() as names:
            result = gradproof.check(function, x, effort="exhaustive", seed=0)
        with compiled() as again:
            gradproof.check(function, x, effort="exhaustive", seed=0)
    assert result.verdict is verdict
    assert {(one.mode, one.verdict) for one in result.comparisons} == {("reverse", verdict), ("forward", verdict)}
    kinds = [name.split()[0] for name in names]
    assert kinds.count("jit(each)") == 1
    assert not {"jit(pull)", "jit(push)"} & set(kinds)
    assert again == []


def test_of_a_large_function_each_mode_is_a_program() -> None:
    """To run the other along would cost more than it saves."""
    with compiled() as names:
        assert gradproof.check(partial(doubled), jnp.linspace(0.3, 1.7, 2**13), seed=0).ok
    assert {"jit(pull)", "jit(push)"} <= {name.split()[0] for name in names}
    assert not any("jit(each)" in name for name in names)


def test_a_function_without_one_of_the_modes_is_compiled_once() -> None:
    def function(x: Any) -> Any:
        return jax.lax.while_loop(lambda carry: carry[0] < 3, lambda carry: (carry[0] + 1, carry[1] * x), (0, x))[1]

    for _ in range(2):
        with compiled() as names:
            result = gradproof.check(function, jnp.asarray(X), seed=0)
        assert result.ok
        assert {comparison.mode for comparison in result.comparisons} == {"forward"}
    assert {name.split()[0] for name in names} == {"jit(while)"}  # that of the plain calls, which are made anew


def test_a_batch_is_held_against_the_row_that_came_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return jnp.sin(x) * x[::-1]

    def pushed() -> tuple[np.ndarray, str]:
        program = program_of(function, jnp.linspace(0.3, 1.7, 20))
        assert not program.pushes
        program.pull(np.ones((1, 20)))
        assert program.pushes
        return program.push(np.eye(20)), program.lanes["push"].note

    right, way = pushed()
    assert way == "push: vmap, compiled"
    plain = Runs.push_compiled
    monkeypatch.setattr(Runs, "push_compiled", lambda *given: [one[::-1] for one in plain(*given)])
    alone, way = pushed()
    assert "vmap, compiled" not in way
    np.testing.assert_allclose(alone, right, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("fn", "verdict"), [(doubled, Verdict.RIGHT), (halved, Verdict.WRONG)])
def test_a_jit_is_traced_once(dtype: str, fn: Any, verdict: Verdict) -> None:
    """A plain call runs what JAX keeps of it. Of any other function it runs Python, which may see something new."""
    traces: list[Any] = []

    def function(x: Any) -> Any:
        traces.append(x)
        return fn(x)

    counts = []
    for subject in (jax.jit(function), partial(jax.jit(function)), partial(function)):
        with enable_x64(dtype == "float64"):
            x = jnp.linspace(0.3, 1.7, 100, dtype=dtype)
            for _ in range(2):
                traces.clear()
                assert gradproof.check(subject, x, effort="exhaustive", seed=0).verdict is verdict
        counts.append(len(traces))
    if verdict is Verdict.RIGHT:
        assert counts[:2] == [0, 0]
        assert counts[2] > 0


def test_a_jit_that_is_traced_anew_is_what_it_is_then() -> None:
    factor = [1.0]
    function = jax.jit(lambda x: factor[0] * jnp.sin(x))
    x = jnp.linspace(0.3, 1.7, 20)
    assert gradproof.check(function, x, seed=0).ok
    factor[0] = 3.0  # which JAX does not see either
    assert gradproof.check(function, x, seed=0).ok
    jax.clear_caches()
    result = gradproof.check(function, x, seed=0, effort="exhaustive")
    assert result.ok
    strongest = max(abs(one.strongest.numeric) for one in result.comparisons if one.strongest is not None)
    np.testing.assert_allclose(strongest, 3.0 * np.cos(0.3), rtol=1e-5)
