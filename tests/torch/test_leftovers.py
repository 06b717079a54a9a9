"""Outputs that are nothing but what rounding leaves of larger numbers, as the sum of normalised ones is: people write
`layer_norm(x).sum()` to have one number. They have no size of their own, and are judged by that of their terms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from gradproof import Verdict, check
from gradproof.torch import gradcheck

RIGHT, WRONG = Verdict.RIGHT, Verdict.WRONG
SHAPES = ((2, 3), (4, 8), (30, 40), (100, 1000))


class Norm(torch.autograd.Function):
    """`mistake`: "mean" forgets that the mean depends on the input, "memory" reads it as if it were contiguous."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mistake: str) -> Tensor:
        if mistake == "memory":
            x = x.as_strided(x.shape, (x.shape[1], 1)) * 1.0
        inverse = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        y = (x - x.mean(-1, keepdim=True)) * inverse
        ctx.save_for_backward(y, inverse)
        ctx.mistake = mistake
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        y, inverse = ctx.saved_tensors
        mean = 0.0 if ctx.mistake == "mean" else g.mean(-1, keepdim=True)
        return inverse * (g - y * (g * y).mean(-1, keepdim=True) - mean), None


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: functional.layer_norm(x, x.shape[-1:]).sum(),
    "mean": lambda x: functional.layer_norm(x, x.shape[-1:]).mean(),
    "rows": lambda x: functional.layer_norm(x, x.shape[-1:]).sum(-1),
    "batch": lambda x: functional.batch_norm(x, None, None, training=True).sum(),
    "custom": lambda x: 3.7 * Norm.apply(x, "").sum(),
    "softmax": lambda x: x.log_softmax(-1).logsumexp(-1),
    "centred": lambda x: (x - x.mean(-1, keepdim=True)).mean(-1),
    "circle": lambda x: x.sin() ** 2 + x.cos() ** 2 - 1,
}


def drawn(shape: tuple[int, int], seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_zero_but_for_rounding_is_right(name: str, dtype: torch.dtype) -> None:
    for shape in SHAPES[: 3 if dtype is torch.bfloat16 else 4]:
        for seed in range(2):
            result = check(FUNCTIONS[name], drawn(shape, seed, dtype), seed=seed)
            assert result.verdict is RIGHT, (shape, seed, str(result))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_a_derivative_that_is_not_is_wrong(shape: tuple[int, int], dtype: torch.dtype) -> None:
    for seed in range(2):
        result = check(lambda x: Norm.apply(x, "mean").sum(), drawn(shape, seed, dtype), seed=seed)
        assert result.verdict is WRONG, str(result)
        assert [one.mode for one in result.comparisons if one.verdict is WRONG] == ["reverse"]


def test_one_wrong_entry_is_the_one_that_is_named() -> None:
    def wrong(x: Tensor) -> Tensor:
        return Norm.apply(x, "").sum() + 1e-6 * (x[2, 5] - x[2, 5].detach())

    result = check(wrong, drawn((4, 8), 0), seed=0)
    assert result.verdict is WRONG, str(result)
    assert [str(one.worst.place.input) for one in result.comparisons] == ["args[0][2, 5]"]


def test_memory_that_is_read_as_if_it_were_contiguous_is_still_noticed() -> None:
    def normalised(mistake: str, x: Tensor) -> tuple[Tensor, Tensor]:
        y = Norm.apply(x, mistake)
        return y, y.sum()

    assert check(partial(normalised, ""), drawn((4, 8), 0), seed=0).verdict is RIGHT
    wrong = check(partial(normalised, "memory"), drawn((4, 8), 0), seed=0)
    assert [one.code for one in wrong.findings if one.verdict is WRONG] == ["layout"]


@pytest.mark.parametrize("fast", [False, True])
def test_the_drop_in(fast: bool) -> None:
    for seed in range(3):
        x = drawn((4, 8), seed).requires_grad_()
        assert gradcheck(FUNCTIONS["custom"], (x,), fast_mode=fast)
        assert not gradcheck(lambda x: Norm.apply(x, "mean").sum(), (x,), fast_mode=fast, raise_exception=False)


@pytest.mark.parametrize("seed", range(4))
def test_second_derivatives(seed: int) -> None:
    result = check(FUNCTIONS["sum"], drawn((3, 4), seed), order=2, seed=seed)
    assert result.verdict is RIGHT, str(result)
