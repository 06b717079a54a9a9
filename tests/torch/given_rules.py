"""A function of one tensor with a backward of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def with_backward(function: Callable[..., Tensor], backward: Callable[..., Tensor]) -> Callable[..., Any]:
    """`backward(x, g)`."""

    class Given(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return function(x).clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return backward(ctx.saved_tensors[0], g)

    return Given.apply
