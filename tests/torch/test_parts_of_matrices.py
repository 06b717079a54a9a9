"""Where in a matrix a gradient is wrong: a row, both ends, a side of the diagonal; not what has no gradient at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof

Change = Callable[[Tensor], Tensor]


def cubed(change: Change, reaches: Change = lambda x: x) -> Callable[[Tensor], Tensor]:
    """The cubes of what of a matrix the function `reaches`, with a gradient that is changed."""

    class Cubed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return reaches(x**3)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return change(reaches(3 * g * ctx.saved_tensors[0] ** 2))

    return Cubed.apply  # type: ignore[no-any-return]


def doubled(*rows: int) -> Change:
    def change(g: Tensor) -> Tensor:
        g = g.clone()
        g[list(rows)] *= 2
        return g

    return change


def without_first(x: Tensor) -> Tensor:
    return torch.cat((torch.zeros_like(x[:1]), x[1:]))


@pytest.mark.parametrize(
    ("change", "reaches", "where"),
    [
        (doubled(0, -1), lambda x: x, "at both ends of axis 0 of args[0], its boundary"),
        (doubled(-1), without_first, "in args[0][7, :], at its boundary"),
        (doubled(3), lambda x: x, "in args[0][3, :]"),
        (lambda g: g - g.diag().diag(), lambda x: x, "on the diagonal of args[0]"),
        (lambda g: g - g.diag().diag(), torch.tril, "on the diagonal of args[0]"),
        (torch.tril, lambda x: x, "above the diagonal of args[0]"),
        (torch.triu, lambda x: x, "below the diagonal of args[0]"),
    ],
)
def test_the_part_is_named(change: Change, reaches: Change, where: str) -> None:
    for seed in range(3):
        x = torch.randn(8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        result = gradproof.check(cubed(change, reaches), x + x.sign(), seed=seed)
        (finding,) = result.wrong
        assert finding.diagnosis is not None, f"seed {seed}: {result}"
        assert f"is wrong only {where}" in finding.diagnosis.sentence
        assert gradproof.check(cubed(lambda g: g, reaches), x + x.sign(), seed=seed)
        assert not result
