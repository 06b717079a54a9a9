"""Random numbers like a tensor are drawn in the order of its memory: that is no fault of a function that draws them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof


class Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        mask = (torch.rand_like(x) > 0.3).to(x.dtype) / 0.7
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * ctx.saved_tensors[0]


class InMemoryOrder(Dropout):
    """Reads the gradient as if it were contiguous."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (mask,) = ctx.saved_tensors
        return torch.as_strided(g, mask.shape, mask.stride()) * mask


@pytest.mark.parametrize("shape", [(12,), (3, 4), (200, 30)])
def test_a_saved_mask_is_right_in_any_layout(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert gradproof.check(Dropout.apply, x, randomness="reseed", seed=0)
    if len(shape) > 1:
        result = gradproof.check(InMemoryOrder.apply, x, randomness="reseed", seed=0)
        assert [one.code for one in result.wrong] == ["layout"]
