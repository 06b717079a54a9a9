"""A function that draws random numbers draws others in float64: its copy there is another function, not a rounding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * g


@pytest.mark.parametrize("seed", range(6))
def test_noise_in_single_precision(seed: int) -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))

    def noisy(x: Tensor) -> Tensor:
        return (x + 5 * torch.rand_like(x)).softmax(-1)

    assert gradproof.check(noisy, x, randomness="reseed", seed=seed).verdict is not Verdict.WRONG
    wrong = gradproof.check(lambda x: Doubled.apply(noisy(x)), x, randomness="reseed", seed=seed)
    assert wrong.verdict is Verdict.WRONG
