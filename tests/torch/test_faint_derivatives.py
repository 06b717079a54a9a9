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


def telescoping_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    """The same beside an output of ordinary size; along unit tangents its derivatives are exactly zero."""
    y = functional.mish(x).clamp(-1, 1)
    return (y - y.roll(1, 0)).mean(0), 0.1 * x.sum()


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
        (
            telescoping_columns,
            torch.tensor([[-117.6, 41.5, -42.1], [-56.3, -4.7, 44.8], [65.8, 180.3, -66.7]], dtype=F64),
        ),
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


class NegatedInHalf(torch.autograd.Function):
    """The identity; its gradient has the wrong sign in bfloat16 alone."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return -grad if grad.dtype is torch.bfloat16 else grad


def tied(x: Tensor) -> Tensor:
    """In bfloat16 most of what the maximum is taken of is the same number."""
    return functional.softshrink(torch.atan(functional.gelu(x) + 0.3), 0.2).amax(-1)


@pytest.mark.parametrize(("size", "drawn"), [(0.01, 0), (0.01, 1), (0.03, 4)])
def test_ties_that_half_precision_makes_are_no_mistake(size: float, drawn: int) -> None:
    x = (size * torch.randn(4, 4, generator=torch.Generator().manual_seed(drawn))).bfloat16()
    assert gradproof.check(tied, x, seed=0).verdict is Verdict.RIGHT
    assert gradproof.check(lambda x: tied(NegatedInHalf.apply(x)), x, seed=0).verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_that_is_always_zero_in_a_long_vector(seed: int) -> None:
    """Forward mode leaves a rounding of its terms, reverse mode nothing."""

    def fn(x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.cos(torch.log1p((2 * x**6 + 0.1).sqrt().square()))
        return (y - y.roll(1)).sum(), (1 + x * x).sqrt()

    x = 0.006 * torch.randn(6286, dtype=F64, generator=torch.Generator().manual_seed(seed))
    assert gradproof.check(fn, x, seed=seed).verdict is Verdict.RIGHT
    wrong = gradproof.check(lambda x: fn(Scaled.apply(x, 1.0, 1e-3)), x, seed=seed)
    assert wrong.verdict is Verdict.WRONG
