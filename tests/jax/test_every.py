"""Whole Jacobians in one compiled call: the same numbers as row by row, and None where that is not to be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gradproof import Verdict, check
from gradproof.jax.adapter import program_of
from gradproof.jax.scope import enable_x64
from gradproof.program import pull_every, push_every

A = jnp.linspace(0.2, 1.4, 20).reshape(4, 5)
B = jnp.linspace(-1.0, 1.0, 25).reshape(5, 5)


def several(a: Any, b: Any) -> Any:
    return {"product": jnp.tanh(a @ b), "sum": (a**2).sum(axis=1), "rest": 3 * b[0]}


@pytest.mark.parametrize("most", [0, 2**16])
def test_the_jacobian_is_that_of_single_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradproof.jax.runs.HANDED_OVER", most)
    with enable_x64(True):
        program = program_of(several, (A.astype(float), B.astype(float)))
        rng = np.random.default_rng(0)
        cotangents, tangents = rng.normal(size=(3, program.value.size)), rng.normal(size=(2, program.point.size))
        alone = program.pull(cotangents[:1])
        pushed = program.push(tangents[:1])
        expected = np.stack([program.pull(row[None])[0] for row in np.eye(program.value.size)], axis=1)
        by_pull, by_push = program.every_pull(cotangents), program.every_push(tangents)
        assert by_pull is not None
        assert by_push is not None
    np.testing.assert_allclose(by_pull.jacobian, expected, atol=1e-14)
    np.testing.assert_allclose(by_push.jacobian, expected, atol=1e-14)
    np.testing.assert_allclose(by_pull.more, cotangents @ expected.T, atol=1e-13)
    np.testing.assert_allclose(by_push.more, tangents @ expected, atol=1e-13)
    np.testing.assert_allclose(by_pull.more[:1], alone, atol=1e-13)
    np.testing.assert_allclose(by_push.more[:1], pushed, atol=1e-13)


def test_rows_are_counted() -> None:
    program = program_of(jnp.sin, jnp.linspace(0.0, 1.0, 40))
    program.pull(np.ones((1, 40)))
    before = program.tally.pulls
    assert program.every_pull(np.ones((2, 40))) is not None
    assert program.tally.pulls == before + 42


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (jnp.sin, jnp.linspace(0.0, 1.0, 5)),  # few: not worth to compile
        (jnp.conj, jnp.linspace(0.0, 1.0, 40) * (1 + 1j)),
        (lambda x: x * jax.pure_callback(lambda: np.float32(np.random.random()), jnp.float32(0.0)),  # noqa: NPY002
         jnp.linspace(0.0, 1.0, 40)),
    ],
)  # fmt: skip
def test_otherwise_rows_go_one_by_one(function: Callable[..., Any], argument: Any) -> None:
    program = program_of(function, argument)
    program.pull(np.ones((1, program.value.size)))
    assert program.every_pull(np.ones((1, program.value.size))) is None


def test_without_a_plain_row_nothing_is_believed() -> None:
    program = program_of(jnp.sin, jnp.linspace(0.0, 1.0, 40))
    assert program.every_pull(np.ones((1, 40))) is None
    assert program.every_push(np.ones((1, 40))) is None
    np.testing.assert_allclose(
        pull_every(program, np.ones((1, 40))).jacobian, np.diag(np.cos(program.point)), rtol=1e-6
    )
    np.testing.assert_allclose(
        push_every(program, np.ones((1, 40))).jacobian, np.diag(np.cos(program.point)), rtol=1e-6
    )


@pytest.mark.parametrize("width", [False, True])
def test_a_rule_that_is_wrong_only_in_batches_is_not_blamed_on_the_function(width: bool) -> None:
    """Its batching rule repeats the first row: the batch disagrees with a plain call, and rows go one by one."""

    @jax.custom_batching.custom_vmap
    def scaled(x: Any) -> Any:
        return 2 * x

    @scaled.def_vmap
    def _(size: int, batched: Any, x: Any) -> Any:
        return (2 * jnp.broadcast_to(x[:1], x.shape), True) if batched[0] else (2 * x, False)

    @jax.custom_vjp
    def function(x: Any) -> Any:
        return 2 * jnp.sin(x)

    function.defvjp(lambda x: (2 * jnp.sin(x), jnp.cos(x)), lambda cos, g: (scaled(g) * cos,))
    with enable_x64(width):
        result = check(function, (jnp.linspace(0.1, 1.0, 24),), seed=0)
    assert result.verdict is Verdict.RIGHT
    assert any("pull: one by one" in note for note in result.notes)
