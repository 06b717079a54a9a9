"""Oscillations so fast that most steps of the ladder skip them: they are no noise, and no stairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict


def drawn(size: float, seed: int, count: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    first, second = (size * torch.randn(count, dtype=torch.float64, generator=generator) for _ in range(2))
    return first, second


def product(x: Tensor, y: Tensor) -> Tensor:
    return torch.sin(x * y)


@pytest.mark.parametrize("size", [1e2, 1e3])
def test_a_phase_of_a_million_is_resolved(size: float) -> None:
    for seed in range(10):
        assert gradproof.check(product, drawn(size, seed, 1), modes="reverse", seed=seed).ok
        wrong = gradproof.check(
            lambda x, y: product(x, 1.01 * y - 0.01 * y.detach()), drawn(size, seed, 1), modes="reverse", seed=seed
        )
        assert wrong.verdict is Verdict.WRONG
        assert {one.place.input.path for one in wrong.findings if one.verdict is Verdict.WRONG and one.place.input} == {
            "args[1]"
        }


FAST: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": product,
    "frequency": lambda x, y: torch.sin(1e6 * x) + y,
}


@pytest.mark.parametrize("size", [1e4, 3e4])
@pytest.mark.parametrize("name", FAST)
def test_a_phase_that_hardly_shows_is_never_accused(name: str, size: float) -> None:
    for seed in range(10):
        result = gradproof.check(FAST[name], drawn(size, seed, 6), modes="reverse", seed=seed)
        assert result.verdict is not Verdict.WRONG, result


def wave(x: Tensor) -> Tensor:
    """Waves of 1e-4 on top of something smooth, many in a usual step; their slope is a hundredth of the whole."""
    return x * x + torch.atan(x * x / (1.5 + torch.sin(x**3)))


class Smoothed(torch.autograd.Function):
    """The same, with the slope of what is left without the waves."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return wave(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * g * x


@pytest.mark.parametrize("point", [88.8, 99.7, 120.3, 135.954, 150.1])
def test_the_slope_at_the_point_is_right_and_that_of_the_mean_is_not(point: float) -> None:
    x = torch.tensor(point, dtype=torch.float64)
    for seed in range(3):
        right, wrong = gradproof.check(wave, x, seed=seed), gradproof.check(Smoothed.apply, x, seed=seed)
        assert right.verdict is Verdict.RIGHT, str(right)
        assert wrong.verdict is Verdict.WRONG, str(wrong)
        assert str(wrong.comparisons[0].worst.place.input) == "args[0]"
