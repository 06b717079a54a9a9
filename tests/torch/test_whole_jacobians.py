"""Whole Jacobians by one batched reverse pass: the same numbers as row by row, and None where it is not believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gradproof.errors import GradcheckError
from gradproof.program import pull_every
from gradproof.torch.adapter import program_of
from gradproof.torch.dropin import gradcheck
from gradproof.torch.torchprogram import TorchProgram


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


def several(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return (a @ b).tanh(), b[0] ** 2


CASES: list[tuple[Callable[..., Any], tuple[Tensor, ...]]] = [
    (torch.sin, (draw(7),)),
    (several, (draw(3, 4), draw(4, 2))),
    (lambda a, b: a * b.sum(), (draw(3, dtype=torch.complex128), draw(2))),
    (lambda a, _: a.exp(), (draw(4), draw(5))),  # nothing depends on the second
]


@pytest.mark.parametrize(("fn", "args"), CASES)
def test_the_jacobian_is_that_of_single_rows(fn: Callable[..., Any], args: tuple[Tensor, ...]) -> None:
    program = program_of(fn, args)
    more = np.random.default_rng(0).normal(size=(3, program.value.size))
    alone = program.pull(more[:1])  # the row that a batch is held against
    for _ in range(2):  # with it, and later without
        every = program.every_pull(more)
        assert every is not None
        expected = np.stack([program.pull(row[None])[0] for row in np.eye(program.value.size)], axis=1)
        np.testing.assert_allclose(every.jacobian, expected, atol=1e-14)
        np.testing.assert_allclose(every.more, more @ expected.T, atol=1e-13)
        np.testing.assert_allclose(every.more[:1], alone, atol=1e-13)


MIXED_UP: list[Callable[[list[int]], list[int]]] = [
    lambda rows: rows[::-1],
    lambda rows: [*rows[1:], rows[0]],
    lambda rows: [rows[0]] * len(rows),
    lambda rows: [rows[-1]] * len(rows),
]


@pytest.mark.parametrize("mixing", MIXED_UP)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("others", [1, 2, 3])
def test_a_batch_that_mixes_up_its_rows_is_not_believed(
    mixing: Callable[[list[int]], list[int]], size: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(torch.sin, draw(size))
    more = np.random.default_rng(0).normal(size=(others, size))
    program.pull(np.linspace(1.3, 2.0, size)[None])
    plain = TorchProgram._reverse_many

    def mixed_up(self: TorchProgram, batching: Any, cotangents: list[Tensor]) -> list[Tensor | None]:
        rows = mixing(list(range(len(cotangents[0]))))
        return [None if one is None else one[rows] for one in plain(self, batching, cotangents)]

    monkeypatch.setattr(TorchProgram, "_reverse_many", mixed_up)
    assert program.every_pull(more) is None


def test_rows_are_counted() -> None:
    program = program_of(torch.sin, draw(40))
    program.pull(np.ones((1, 40)))
    before = program.tally.pulls
    assert program.every_pull(np.ones((2, 40))) is not None
    assert program.tally.pulls == before + 43  # units, two more, and the one that is known


def test_more_rows_than_go_into_one_batch() -> None:
    x = draw(200, 200)
    program = program_of(lambda x: x[:, 0].sin() * x[0].cumsum(0), x)
    more = np.random.default_rng(0).normal(size=(2, 200))
    program.pull(more[:1])
    before = program.tally.pulls
    every = program.every_pull(more)
    assert every is not None
    assert program.tally.pulls == before + 203
    expected = np.stack([program.pull(row[None])[0] for row in np.eye(200)], axis=1)
    np.testing.assert_allclose(every.jacobian, expected, atol=1e-13)
    np.testing.assert_allclose(every.more, more @ expected.T, atol=1e-11)


def test_without_a_pull_to_hold_it_against_it_is_not_believed() -> None:
    assert program_of(torch.sin, draw(5)).every_pull(np.ones((1, 5))) is None


def test_a_batch_that_disagrees_is_refused_and_rows_decide() -> None:
    program = program_of(torch.sin, draw(6))
    program.pull(np.linspace(1.0, 2.0, 6)[None])
    known = program.known
    assert known is not None
    known.result[2] += 1e-3
    assert program.every_pull(np.ones((1, 6))) is None
    assert "pull: one by one, because a batch disagrees with a single call" in program.notes
    expected = np.diag(np.cos(program.point))
    np.testing.assert_allclose(pull_every(program, np.ones((1, 6))).jacobian, expected, atol=1e-15)


def test_a_batch_that_rounds_otherwise_is_believed() -> None:
    """An ill-conditioned rule gives ten digits, in whatever order it sums."""
    program = program_of(torch.sin, draw(6))
    program.pull(np.linspace(1.0, 2.0, 6)[None])
    known = program.known
    assert known is not None
    known.result[2] += 1e-11
    assert program.every_pull(np.ones((1, 6))) is not None
    assert "pull: batched" in program.notes


class Doubled(torch.autograd.Function):
    """Without a vmap rule: torch's own batching refuses it where it is called, autograd's does not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x


class CallsDoubled(Doubled):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return Doubled.apply(grad)


class Deciding(Doubled):
    """The backward decides by numbers, which no batch can."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 2 * grad if float(grad.abs().max()) > -1.0 else grad


class DecidingByRow(Deciding):
    """The same with a rule for batches of its own: its backward runs outside of them."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.shape = output.shape

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], x: Tensor) -> tuple[Tensor, int]:
        return DecidingByRow.apply(x.movedim(in_dims[0], 0)), 0  # type: ignore[no-untyped-call]


class OtherInRows(DecidingByRow):
    """Its backward is another one for a batch: what a batch says is not what the user gets."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return Deciding.backward(ctx, grad) * (1.0 if grad.dim() == 1 else 1.01)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], x: Tensor) -> tuple[Tensor, int]:
        return OtherInRows.apply(x.movedim(in_dims[0], 0)), 0  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("fn", "note"),
    [
        (DecidingByRow.apply, "pull: vmap"),
        (OtherInRows.apply, "pull: one by one, because a batch disagrees with a single call"),
        (lambda x: x.cumsum(0), "pull: batched"),
        (CallsDoubled.apply, "pull: batched by autograd"),
        (Deciding.apply, "pull: one by one, because a batch raised RuntimeError"),
    ],
)
def test_the_best_way_that_works_is_taken(fn: Callable[..., Any], note: str) -> None:
    program = program_of(fn, draw(12))
    mixed = np.linspace(1.0, 2.0, 12)[None]
    program.pull(mixed)
    jacobian = pull_every(program, mixed).jacobian
    expected = np.stack([program.pull(row[None])[0] for row in np.eye(12)], axis=1)
    np.testing.assert_array_equal(jacobian, expected)
    assert any(said == note or said.startswith(f"{note}:") for said in program.notes), program.notes


def test_second_derivatives_of_a_decomposition_are_pulled_in_one_batch() -> None:
    """The reverse pass of a complex svd asks a question that no batching rule answers."""
    program = program_of(lambda a: torch.linalg.svd(a).S, draw(3, 3, dtype=torch.complex128))
    gradient = program.gradient(np.linspace(1.0, 2.0, 3))
    gradient.pull(np.linspace(1.0, 2.0, 18)[None])
    jacobian = pull_every(gradient, np.ones((1, 18))).jacobian
    expected = np.stack([gradient.pull(row[None])[0] for row in np.eye(18)], axis=1)
    np.testing.assert_allclose(jacobian, expected, atol=1e-12)
    assert "pull: vmap" in gradient.notes


def test_a_function_that_draws_is_not_pulled_by_copies_of_its_point() -> None:
    def fn(x: Tensor) -> Tensor:
        return DecidingByRow.apply(x) * torch.rand(())  # type: ignore[no-untyped-call, no-any-return]

    program = program_of(fn, draw(12))
    program.pull(np.linspace(1.0, 2.0, 12)[None])
    pull_every(program, np.ones((1, 12)))
    assert "pull: vmap" not in program.notes


def test_that_does_not_count_as_a_batched_backward() -> None:
    x = draw(12).requires_grad_()
    assert gradcheck(DecidingByRow.apply, (x,))
    with pytest.raises(GradcheckError, match="batched gradient"):
        gradcheck(DecidingByRow.apply, (x,), check_batched_grad=True)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_few_long_rows_run_in_a_batch(count: int) -> None:
    """Rows that a batch is tried with must not take each other's places."""
    gradient = program_of(torch.sin, draw(40_000)).gradient(np.ones(40_000))
    rows = np.repeat(gradient.point[None], count, axis=0)
    rows[:, :40_000] += 1e-3 * np.arange(1.0, count + 1)[:, None]
    expected = np.cos(rows[:, :40_000])
    np.testing.assert_allclose(gradient.values(rows), expected, rtol=1e-12)
    assert "values: vmap" in gradient.notes
