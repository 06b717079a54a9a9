"""Straight-through and surrogate gradients: the backward of a function against the derivative of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import GradcheckError, UsageError, Verdict

RIGHT, WRONG, UNDECIDED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNDECIDED


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


class Spike(torch.autograd.Function):
    """A step, with the derivative of a steep sigmoid; `slope` may be wrong."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slope = slope
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        soft = torch.sigmoid(4.0 * x)
        return g * ctx.slope * soft * (1 - soft), None


def spike(x: Tensor) -> Tensor:
    return Spike.apply(x, 4.0)


def careless(x: Tensor) -> Tensor:
    return Spike.apply(x, 1.0)


def soft(x: Tensor) -> Tensor:
    return torch.sigmoid(4.0 * x)


def straight_through(x: Tensor) -> Tensor:
    return x + (x.round() - x).detach()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [6, 20_000])
def test_a_surrogate_and_its_wrong_twin(dtype: torch.dtype, size: int) -> None:
    x = draw(size, dtype=dtype)
    assert gradproof.check(spike, x, expected_gradient_of=soft, seed=1).ok
    result = gradproof.check(careless, x, expected_gradient_of=soft, seed=1)
    assert result.verdict is WRONG
    diagnosis = result.wrong[0].diagnosis
    assert diagnosis is not None
    assert diagnosis.code == "factor"
    assert "0.25 times" in diagnosis.sentence


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("casts", ["both", "expected", "function"])
def test_casts_inside(casts: str, dtype: torch.dtype) -> None:
    """Kernels of float32, as autograd sees them: a cast is the identity."""
    x = draw(6, dtype=dtype)

    def inside(fn: Callable[[Tensor], Tensor], role: str) -> Callable[[Tensor], Tensor]:
        return fn if casts not in ("both", role) else lambda x: fn(x.float()).to(x.dtype)

    expected = inside(soft, "expected")
    assert gradproof.check(inside(spike, "function"), x, expected_gradient_of=expected, seed=1).verdict is RIGHT
    wrong = gradproof.check(inside(careless, "function"), x, expected_gradient_of=expected, seed=1)
    assert wrong.verdict is WRONG
    assert str(wrong.wrong[0].place.input).startswith("args[0]")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_straight_through(dtype: torch.dtype) -> None:
    x = draw(7, dtype=dtype)
    assert gradproof.check(straight_through, x, expected_gradient_of=lambda x: x, seed=1).ok
    assert gradproof.check(torch.round, x, expected_gradient_of=lambda x: x, seed=1).verdict is WRONG
    # Without it the gradient is held against the function itself, which is flat.
    assert gradproof.check(straight_through, x, seed=1).verdict is WRONG


def test_several_inputs_and_a_name() -> None:
    def quantised(x: Tensor, scale: Tensor) -> Tensor:
        return straight_through(x / scale) * scale

    x, scale = draw(5), torch.tensor(0.3, dtype=torch.float64)
    result = gradproof.check(quantised, (x, scale), expected_gradient_of=lambda x, scale: x, wrt="args[0]", seed=1)
    assert result.ok
    assert result.name == "quantised, by the derivative of <lambda>"
    both = gradproof.check(quantised, (x, scale), expected_gradient_of=lambda x, scale: x, seed=1)
    assert both.verdict is WRONG  # the rounding error has a derivative with respect to the scale
    assert {str(finding.place.input) for finding in both.wrong if finding.place.input} == {"args[1]"}


def test_second_order_of_a_surrogate() -> None:
    def twice(x: Tensor) -> Tensor:
        return soft(x) + (x - x).detach()

    assert gradproof.check(twice, draw(4), expected_gradient_of=soft, order=2, seed=1).ok
    assert gradproof.check(twice, draw(4), expected_gradient_of=lambda x: 2 * soft(x), order=2, seed=1).verdict is WRONG


def test_a_random_function_is_named_all_the_same() -> None:
    result = gradproof.check(lambda x: x * torch.rand(3), draw(3), expected_gradient_of=lambda x: x, seed=1)
    assert result.verdict is UNDECIDED
    assert [finding.code for finding in result.findings] == ["random"]


def test_it_raises_on_request() -> None:
    gradproof.assert_gradients(spike, draw(3), expected_gradient_of=soft)
    with pytest.raises(GradcheckError, match="by the derivative of soft"):
        gradproof.assert_gradients(careless, draw(3), expected_gradient_of=soft)


def test_functions_of_another_shape_are_refused() -> None:
    with pytest.raises(UsageError, match=r"same outputs: spike has out \(3,\), <lambda> has out \(\)"):
        gradproof.check(spike, draw(3), expected_gradient_of=lambda x: x.sum())
