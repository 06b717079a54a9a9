"""A gradient is linear in its cotangent, whose entries move together in thousands: one that is off is named as ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradproof.errors import GradcheckError
from gradproof.torch.dropin import gradcheck, gradgradcheck

DTYPES = [torch.float64, torch.complex128]
Rule = Callable[[Tensor], Tensor]


def draw(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 3) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def product(matrix: Tensor, again: Tensor, change: Rule = lambda g: g) -> Callable[[Tensor], Tensor]:
    """A x**2, with what the second backward takes for A, and what the first does to its cotangent."""

    class Backward(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(g: Tensor, x: Tensor) -> Tensor:
            return 2 * x.conj() * (matrix.mH @ change(g))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, h: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
            g, x = ctx.saved_tensors
            return again @ (2 * x * h), 2 * h.conj() * (matrix.mH @ g)

    class Product(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return matrix @ x**2

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            applied: Tensor = Backward.apply(g, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
            return applied

    return Product.apply  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [10, 300, 2000])
def test_one_entry_of_the_second_backward_is_named(dtype: torch.dtype, size: int) -> None:
    matrix, x = draw(size, 6, dtype=dtype), draw(6, dtype=dtype, seed=1).requires_grad_()
    assert gradgradcheck(product(matrix, matrix), (x,))
    for place in ((0, 0), (size // 3, 4), (size - 1, 5)):
        wrong = matrix.clone()
        wrong[place] += 0.02
        name = rf"grad\(.*\)\[{place[1]}\].*cotangent\(out\)\[{place[0]}\]"
        with pytest.raises(GradcheckError, match=name):
            gradgradcheck(product(matrix, wrong), (x,))


@pytest.mark.parametrize("size", [10, 300, 2000])
def test_a_first_backward_that_is_not_linear_is_not_trusted_to_be(size: int) -> None:
    matrix, x = draw(size, 6), draw(6, seed=1).requires_grad_()
    for change in (torch.abs, lambda g: g.clamp(-1, 1)):
        with pytest.raises(GradcheckError):
            gradgradcheck(product(matrix, matrix, change), (x,))


class ByLogarithms(torch.autograd.Function):
    """Of x nothing is left but rounding, as of two terms that cancel; `bent` is a part that goes by the cotangent's
    size."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, bent: float) -> Tensor:
        ctx.bent = bent
        return 0 * x + y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        logarithm = g.abs().log() + 1
        return g.sign() * logarithm.exp() - g * torch.e + ctx.bent * (g.clamp(-4, 4) - g), g, None


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_rounding_leaves_of_terms_that_cancel_may_depend_on_the_size(fast: bool, seed: int) -> None:
    x, y = draw(5, seed=seed).requires_grad_(), draw(5, seed=seed + 10).requires_grad_()
    assert gradcheck(lambda x, y: ByLogarithms.apply(x, y, 0.0), (x, y), fast_mode=fast)
    with pytest.raises(GradcheckError, match="backward"):
        gradcheck(lambda x, y: ByLogarithms.apply(x, y, 1e-9), (x, y), fast_mode=fast)
