"""The memory layout of an input: a kernel may read it wrongly when it is not contiguous, so copies keep it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def with_gaps(tensor: Tensor) -> Tensor:
    """The same numbers, not contiguous in memory."""
    return torch.stack([tensor, torch.zeros_like(tensor)], dim=-1)[..., 0]


def expanded(tensor: Tensor) -> Tensor:
    """Not the same numbers: those of the first index along one dimension, repeated by a stride of 0."""
    dim = next((k for k, size in enumerate(tensor.shape) if size > 1), None)
    return tensor if dim is None else tensor.narrow(dim, 0, 1).expand(tensor.shape)


def arrangement(tensor: Tensor) -> Callable[[Tensor], Tensor] | None:
    """How a contiguous copy gets the order of this tensor's strides, and gaps if it has any; None if it is contiguous.
    Entries that share memory get memory of their own. Works in every mode, and under vmap."""
    if tensor.layout is not torch.strided or tensor.dim() == 0 or tensor.is_contiguous():
        return None
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda dim: -strides[dim])
    back = sorted(range(tensor.dim()), key=order.__getitem__)
    gaps = not tensor.permute(order).is_contiguous()

    def arranged(copy: Tensor) -> Tensor:
        moved = copy.permute(order).contiguous()
        if gaps:
            moved = with_gaps(moved)
        return moved.permute(back)

    return arranged
