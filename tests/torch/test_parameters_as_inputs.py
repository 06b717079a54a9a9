"""Inputs that are parameters, which a module that the function makes of them registers as such."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradproof
from gradproof import Verdict
from gradproof.torch import GradcheckError, gradcheck, gradgradcheck


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor, first: float, second: float) -> Tensor:
        ctx.save_for_backward(w)
        ctx.factors = first, second
        return w**3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        (w,) = ctx.saved_tensors
        return Slope.apply(g, w, *ctx.factors), None, None


class Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, w: Tensor, first: float, second: float) -> Tensor:
        ctx.save_for_backward(g, w)
        ctx.factors = first, second
        return first * g * w**2

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:  # type: ignore[override]
        g, w = ctx.saved_tensors
        first, second = ctx.factors
        return h * first * w**2, h * second * g * w, None, None


class Net(nn.Module):
    def __init__(self, w: Tensor) -> None:
        super().__init__()
        self.w = w  # registered only if it is a parameter


def made(first: float, second: float) -> Any:
    return lambda w: sum(Cube.apply(one, first, second) for one in Net(w).parameters()) + 0 * w.detach()


@pytest.fixture
def w() -> nn.Parameter:
    return nn.Parameter(torch.linspace(0.5, 1.5, 3, dtype=torch.float64))


def test_first_order(w: nn.Parameter) -> None:
    assert gradproof.check(made(3.0, 6.0), w, seed=0).verdict is Verdict.RIGHT
    assert gradproof.check(made(4.0, 8.0), w, seed=0).verdict is Verdict.WRONG
    assert gradcheck(made(3.0, 6.0), (w,))
    with pytest.raises(GradcheckError):
        gradcheck(made(4.0, 8.0), (w,))
    assert w.grad is None


def test_second_order(w: nn.Parameter) -> None:
    assert gradgradcheck(made(3.0, 6.0), (w,))
    with pytest.raises(GradcheckError):
        gradgradcheck(made(3.0, 7.0), (w,))


def test_below_float64() -> None:
    w = nn.Parameter(torch.linspace(0.5, 1.5, 3))
    assert gradproof.check(made(3.0, 6.0), w, seed=0).verdict is Verdict.RIGHT
    assert gradproof.check(made(4.0, 8.0), w, seed=0).verdict is Verdict.WRONG
