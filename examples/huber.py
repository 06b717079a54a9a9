"""A wrong custom Function: a Huber loss whose gradient loses its sign, but only in the left tail."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Huber(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, error: Tensor, delta: float) -> Tensor:
        ctx.save_for_backward(error)
        ctx.delta = delta
        size = error.abs()
        return torch.where(size <= delta, 0.5 * error**2, delta * (size - 0.5 * delta))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (error,) = ctx.saved_tensors
        # The mistake: the tails need `ctx.delta * error.sign()`.
        slope = torch.where(error.abs() <= ctx.delta, error, torch.full_like(error, ctx.delta))
        return grad * slope, None


def huber(error: Tensor, delta: float = 1.0) -> Tensor:
    result: Tensor = Huber.apply(error, delta)
    return result


def arguments() -> tuple[Tensor, ...]:
    return (torch.tensor([0.3, 2.5, -0.7, 0.1, 1.9, -1.6, 0.8, 4.0], dtype=torch.float64),)
