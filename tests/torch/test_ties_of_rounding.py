"""Half precision rounds numbers to ties that are none in float64: whose gradient a tie gets is no mistake, even where
every point around has the same ties."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from gradproof import Verdict, check


class Scaled(torch.autograd.Function):
    """The identity with a gradient that is half as large again, in half precision alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 1.5 * g if g.dtype == torch.bfloat16 else g


def drawn(seed: int, size: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (0.06 * torch.randn(size, dtype=torch.float64, generator=generator)).to(torch.bfloat16)


def above(x: Tensor, factor: float = 1.0) -> Tensor:
    """How far cosines are from those in their order. `factor`: of the gradient by the last but one."""
    weights = torch.ones_like(x)
    weights[-2] = factor
    y = torch.cos(weights * x + (1 - weights) * x.detach())
    return (y.sort().values - y).abs()


@pytest.mark.parametrize("seed", range(8))
def test_cosines_of_small_numbers_in_their_order(seed: int) -> None:
    x = torch.cat([drawn(seed), torch.tensor([0.3, 0.0], dtype=torch.bfloat16)])
    right = check(above, x, seed=seed)
    assert right.verdict is Verdict.RIGHT, str(right)
    wrong = check(partial(above, factor=-1.0), x, seed=seed)
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    assert {str(one.worst.place.input) for one in wrong.comparisons} == {"args[0][5]"}


@pytest.mark.parametrize("seed", range(8))
def test_numbers_that_nearly_cancel_are_no_excuse(seed: int) -> None:
    x = drawn(seed)
    y = (x.double() * 1.01).to(torch.bfloat16)
    assert check(lambda x, y: y - x, (x, y), seed=seed).verdict is Verdict.RIGHT
    wrong = check(lambda x, y: y - Scaled.apply(x), (x, y), modes="reverse", seed=seed)
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    assert {one.input.path for one in wrong.comparisons if one.verdict is Verdict.WRONG} == {"args[0]"}
