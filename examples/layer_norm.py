"""A wrong custom Function: layer normalisation whose backward forgets that the mean depends on x too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
        normed = centred * scale
        ctx.save_for_backward(normed, scale, weight)
        return normed * weight + bias

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        normed, scale, weight = ctx.saved_tensors
        inner = grad * weight
        # The mistake: `- inner.mean(-1, keepdim=True)` is missing from the bracket.
        grad_x = scale * (inner - normed * (inner * normed).mean(-1, keepdim=True))
        return grad_x, (grad * normed).sum(0), grad.sum(0)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    result: Tensor = LayerNorm.apply(x, weight, bias)
    return result


def arguments() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return draw(4, 6), draw(6), draw(6)
