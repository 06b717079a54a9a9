"""Derivatives that are small beside value over input, or lost in it: known to few digits, and yet not to none."""

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
    """The identity, whose gradient is multiplied by a factor and shifted."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float, shift: float) -> Tensor:
        ctx.factor, ctx.shift = factor, shift
        return x.clone()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad * ctx.factor + ctx.shift * grad.sign(), None, None


def saturated(x: Tensor) -> Tensor:
    """1 - 1e-9 and the like: of ten digits of the derivative, differences see a few."""
    return 3.0 - torch.sigmoid(-x)


def vanished(x: Tensor) -> Tensor:
    """Exactly zero, though its derivative is 1e-98."""
    return 0.5 * x * (1.0 + torch.erf(x / 2.0**0.5))


def telescoping(x: Tensor) -> Tensor:
    """Zero, and so is its derivative; what is left of its terms is not."""
    y = functional.mish(x)
    return (y - y.roll(1)).mean().expand(3)


def of_equal_numbers(x: Tensor) -> Tensor:
    return functional.layer_norm(x.amax().expand(5) + 1.0, (5,))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (saturated, torch.linspace(19.0, 21.0, 6, dtype=F64)),
        (vanished, torch.tensor([-22.0, -23.0, -21.5], dtype=F64)),
        (functional.gelu, torch.tensor([-22.0, -23.0, -21.5], dtype=F64)),
        (telescoping, torch.tensor([-60.0, -50.0, -100.0], dtype=F64)),
        (of_equal_numbers, torch.tensor([-2.0, 0.5, 2.3, -1.1], dtype=F64)),
    ],
)
def test_right(fn: Callable[[Tensor], Tensor], x: Tensor, seed: int) -> None:
    assert gradproof.check(fn, x, seed=seed).verdict is Verdict.RIGHT


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [-1.0, 0.0, 2.0, 1.5])
@pytest.mark.parametrize("size", [6, 20_000])
def test_a_wrong_factor_of_faint_derivatives_is_seen(size: int, factor: float, seed: int) -> None:
    x = torch.linspace(19.0, 21.0, size, dtype=F64)
    assert gradproof.check(lambda x: saturated(Scaled.apply(x, 1.0, 0.0)), x, seed=seed).verdict is Verdict.RIGHT
    result = gradproof.check(lambda x: saturated(Scaled.apply(x, factor, 0.0)), x, seed=seed)
    assert result.verdict is Verdict.WRONG
    assert result.wrong[0].place.input is not None
    assert result.wrong[0].place.input.path == "args[0]"


@pytest.mark.parametrize("seed", range(3))
def test_a_function_that_does_not_move_has_no_gradient(seed: int) -> None:
    """What is claimed must be lost in its rounding."""
    x = torch.tensor([-22.0, -23.0, -21.5], dtype=F64)
    result = gradproof.check(lambda x: Scaled.apply(vanished(Scaled.apply(x, 1.0, 1e-9)), 1.0, 0.0), x, seed=seed)
    assert result.verdict is Verdict.WRONG


def test_a_tolerance_of_ones_own_is_kept_to() -> None:
    x = torch.linspace(19.0, 21.0, 6, dtype=F64)
    assert gradproof.check(saturated, x, seed=0, tolerance=1e-6).verdict is Verdict.UNDECIDED


def squashed(x: Tensor) -> Tensor:
    """In float32 all of its derivative is rounding, and the same at all points that are a rounding away."""
    y = functional.silu(x + x)
    return torch.tanh(y) - y


def spread_of_squashed(x: Tensor) -> Tensor:
    return functional.logsigmoid(1.0 / (1.0 + x * x)).var(-1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (squashed, torch.tensor([5e-4, 3e-4, -7e-4])),
        (spread_of_squashed, torch.linspace(40.0, 70.0, 20).reshape(4, 5)),
    ],
)
def test_rounding_that_is_the_same_nearby_is_rounding(fn: Callable[[Tensor], Tensor], x: Tensor, seed: int) -> None:
    assert gradproof.check(fn, x, seed=seed).verdict is Verdict.RIGHT
    wrong = gradproof.check(lambda x: fn(Scaled.apply(x, -1.0, 0.0)), x, seed=seed)
    assert wrong.verdict is Verdict.WRONG
