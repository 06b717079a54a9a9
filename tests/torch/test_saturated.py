"""Functions so saturated that what is left of 1 - 1 is their last digit: treads, which differences over short steps do
not leave. Derivatives that are right there must not be held against the slope of a tread, at any order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import Verdict

F64 = torch.float64


class Scaled(torch.autograd.Function):
    """The identity, whose gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.factor, None


class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad * y * (1 - y)


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.erf(x / 2.0**0.5))


def gelu_by_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


def faded(x: Tensor) -> Tensor:
    return x * (1.0 - torch.tanh(x))


CASES: list[tuple[Callable[[Tensor], Tensor], float, int]] = [
    *((torch.sigmoid, place, 2) for place in (30.0, 33.0, 35.0, 36.5)),
    *((Sigmoid.apply, place, 2) for place in (30.0, 33.0, 35.0)),
    *((torch.tanh, place, 2) for place in (15.0, 17.0, -17.0)),
    *((gelu, place, 1) for place in (-6.5, -8.0, -9.1, -9.5)),
    *((functional.gelu, place, 1) for place in (-7.0, -8.0)),
    (gelu_by_tanh, -6.5, 2),
    *((faded, place, 2) for place in (16.5, 18.52)),
]


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(("fn", "place", "order"), CASES)
def test_right_derivatives_are_not_called_wrong(
    fn: Callable[[Tensor], Tensor], place: float, order: int, size: int
) -> None:
    x = place + 0.37 * torch.arange(size, dtype=F64)
    for seed in range(2):
        result = gradproof.check(fn, x, order=order, seed=seed)
        assert result.verdict in (Verdict.RIGHT, Verdict.UNDECIDED), str(result)


@pytest.mark.parametrize("factor", [-1.0, 0.0, 2.0])
@pytest.mark.parametrize(
    ("fn", "place"),
    [
        (torch.sigmoid, 12.0),
        (torch.tanh, 8.0),
        (gelu, -6.5),
        (functional.gelu, -6.5),
        (gelu_by_tanh, -5.5),
        (faded, 13.0),
    ],
)
def test_wrong_ones_are_where_a_few_digits_are_left(
    fn: Callable[[Tensor], Tensor], place: float, factor: float
) -> None:
    x = place + 0.37 * torch.arange(3, dtype=F64)
    result = gradproof.check(lambda x: fn(Scaled.apply(x, factor)), x, seed=0)
    assert result.verdict is Verdict.WRONG
    assert result.wrong[0].place.input is not None
    assert result.wrong[0].place.input.path == "args[0]"


@pytest.mark.parametrize("place", [30.0, 33.0, 35.0])
def test_where_none_are_left_a_wrong_one_does_not_pass_in_silence(place: float) -> None:
    x = torch.tensor([place], dtype=F64)
    result = gradproof.check(lambda x: torch.sigmoid(Scaled.apply(x, -1.0)), x, order=2, seed=0)
    assert result.verdict is not Verdict.RIGHT or "vacuous" in {finding.code for finding in result.findings}
