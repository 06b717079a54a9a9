"""A wrong custom Function on a million elements: one entry of the gradient is 5 % off.

Such mistakes come from kernels that work in tiles and treat the edge of one tile wrongly.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BAD = 654_321


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.nn.functional.softplus(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope = torch.sigmoid(x)
        slope[BAD] *= 1.05  # The mistake.
        return grad * slope


def softplus(x: Tensor) -> Tensor:
    result: Tensor = Softplus.apply(x)
    return result


def arguments() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(1_000_000, generator=generator, dtype=torch.float64),)
