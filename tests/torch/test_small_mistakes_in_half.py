"""A rule that rounds to its own half precision is right; one that is off by as little, and smoothly so, is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import Verdict

Map = Callable[[Tensor], Tensor]
HALVES = (torch.bfloat16, torch.float16)


def written(forward_: Map, slope: Map, cast: Map = lambda g: g) -> Map:
    class Written(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return forward_(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return cast(g) * slope(ctx.saved_tensors[0])

    return Written.apply  # type: ignore[no-any-return]


def erf_slope(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def quick_slope(x: Tensor) -> Tensor:
    soft = torch.sigmoid(1.702 * x)
    return soft + 1.702 * x * soft * (1 - soft)


def silu_slope(x: Tensor) -> Tensor:
    soft = torch.sigmoid(x)
    return soft * (1 + x * (1 - soft))


WRONG: dict[str, tuple[Map, Map]] = {
    "quick slope of gelu": (functional.gelu, quick_slope),
    "erf slope of the tanh gelu": (lambda x: functional.gelu(x, approximate="tanh"), erf_slope),
    "two terms of a cosine": (lambda x: (x / 2).sin(), lambda x: (1 - (x / 2) ** 2 / 2) / 2),
    "another epsilon": (lambda x: torch.log(x * x + 0.1), lambda x: 2 * x / (x * x + 0.102)),
}


def draw(count: int, dtype: torch.dtype, seed: int) -> Tensor:
    return torch.randn(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("count", [3, 8, 40])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_a_little_off_is_found(name: str, dtype: torch.dtype, count: int) -> None:
    for seed in range(4):
        result = gradproof.check(written(*WRONG[name]), draw(count, dtype, seed), seed=seed)
        assert result.verdict is Verdict.WRONG, f"seed {seed}: {result}"


def to_own(dtype: torch.dtype) -> Map:
    return lambda x: x.to(dtype).to(x.dtype)


@pytest.mark.parametrize("count", [3, 8, 40])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("what", ["the cotangent", "the slope", "both"])
def test_what_rounds_to_its_own_format_is_not(what: str, dtype: torch.dtype, count: int) -> None:
    """In the float64 copy of the call these casts round; in their own format they do nothing."""
    own = to_own(dtype)
    slope: Map = silu_slope if what == "the cotangent" else lambda x: own(silu_slope(x))
    fn = written(functional.silu, slope, (lambda g: g) if what == "the slope" else own)
    for seed in range(4):
        result = gradproof.check(fn, draw(count, dtype, seed), seed=seed)
        assert result.ok, f"seed {seed}: {result}"
