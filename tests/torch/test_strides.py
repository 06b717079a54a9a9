"""fn sees its arguments with the strides that the user gave them, so a kernel that ignores strides is caught."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradproof
from gradproof import Verdict


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


LAYOUTS = {
    "transposed": draw(4, 3).t(),
    "permuted": draw(2, 3, 4).permute(2, 0, 1),
    "channels last": draw(2, 3, 4, 2).to(memory_format=torch.channels_last),
    "every second": draw(3, 8)[:, ::2],
    "transposed, with gaps": draw(6, 8)[::3, ::2].t(),
    "complex": draw(4, 3, dtype=torch.complex128).t(),
    "float32": draw(4, 3, dtype=torch.float32).t(),
}


def order_of(x: torch.Tensor) -> str:
    """The dimensions by falling stride; those with a single entry do not matter."""
    return str(sorted((dim for dim in range(x.dim()) if x.shape[dim] > 1), key=lambda dim: -x.stride(dim)))


class Strideless(torch.autograd.Function):
    """x^2, whose backward reads the memory of x as if x were contiguous."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        contiguous = torch.empty(x.shape, device="meta").stride()
        return 2 * gradient * x.as_strided(x.shape, contiguous).conj()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", [1, 2])
def test_the_function_sees_the_users_strides(layout: str, order: int) -> None:
    x = LAYOUTS[layout]
    seen = []

    def fn(given: torch.Tensor) -> torch.Tensor:
        if given.dim() == x.dim() and not torch._C._functorch.is_batchedtensor(given):  # type: ignore[attr-defined]
            seen.append((order_of(given), given.is_contiguous()))
        return given.sin()

    result = gradproof.check(fn, x, order=order, seed=1)
    assert result.verdict is Verdict.RIGHT, str(result)
    assert set(seen) == {(order_of(x), False)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("effort", ["exhaustive", 1])
def test_a_backward_that_ignores_strides(layout: str, effort: Any) -> None:
    x = LAYOUTS[layout]
    contiguous = gradproof.check(Strideless.apply, x.contiguous(), effort=effort, modes="reverse", seed=1)
    assert {finding.code for finding in contiguous.wrong} == {"layout"}  # the numbers are right there
    wrong = gradproof.check(Strideless.apply, x, effort=effort, modes="reverse", seed=1)
    assert wrong.verdict is Verdict.WRONG
    assert wrong.comparisons[0].worst is not None


def test_tensors_that_overlap_themselves_are_copied() -> None:
    for x in (draw(5, 1).expand(5, 4), draw(9).unfold(0, 3, 1)):
        assert gradproof.check(torch.sin, x, seed=1).ok


def test_batches_are_still_used() -> None:
    x = draw(20, 30).t()
    result = gradproof.check(lambda given: given.cumsum(0), x, effort="exhaustive", modes="reverse", seed=1)
    assert result.ok
    assert {"pull: batched"} <= set(result.notes)
