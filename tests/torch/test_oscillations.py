"""A small, fast oscillation on top of something smooth: longer steps take it for noise, and average it away."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gradproof import Verdict, check


def wave(x: Tensor) -> Tensor:
    """1e-4 high, and a thousand waves in a usual step; its slope is a hundredth of the whole."""
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
        right, wrong = check(wave, x, seed=seed), check(Smoothed.apply, x, seed=seed)
        assert right.verdict is Verdict.RIGHT, str(right)
        assert wrong.verdict is Verdict.WRONG, str(wrong)
        assert str(wrong.comparisons[0].worst.place.input) == "args[0]"
