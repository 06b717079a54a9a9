"""Outputs that are the rounding of larger numbers, in narrow formats: float64 is still the same function there.

And the other way round: a function that is another one in float64 stays another, whatever rounding does to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import Result, Verdict

F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
Fn = Callable[[Tensor], Tensor]


def point(size: float, dtype: torch.dtype, seed: int, *shape: int) -> Tensor:
    return (size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).to(dtype)


def judged_in_float64(result: Result) -> bool:
    return any("judged in float64" in note for note in result.notes)


def centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


# What the function is made of does not move yet where the argument does.
HIDDEN: dict[str, tuple[Fn, float, torch.dtype]] = {
    "softmax less its mean": (lambda x: centred(x.softmax(-1)), 1e-6, BF16),
    "layer norm of what is nearly constant": (
        lambda x: functional.layer_norm(functional.silu(functional.logsigmoid(x)), x.shape[-1:]),
        1e-3,
        BF16,
    ),
    "deviations of a softmax in float32": (lambda x: centred(1 / (1 + x.softmax(-1) ** 2)) / 0.1, 1e-3, F32),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_rounding_hides_is_the_same_function_and_its_gradient_is_right(name: str) -> None:
    function, size, dtype = HIDDEN[name]
    for seed in range(6):
        result = gradproof.check(function, point(size, dtype, seed, 3, 7), seed=seed)
        assert result.ok, result
        assert judged_in_float64(result)


@pytest.mark.parametrize("name", HIDDEN)
def test_a_wrong_gradient_is_seen_there(name: str) -> None:
    function, size, dtype = HIDDEN[name]
    for seed in range(3):
        result = gradproof.check(lambda x: function(1.1 * x - 0.1 * x.detach()), point(size, dtype, seed, 3, 7))
        assert result.verdict is Verdict.WRONG, result


# The function of the narrow format, that of float64, and the derivative of the latter.
OTHERS: dict[str, tuple[Fn, Fn, Fn]] = {
    "a factor": (lambda x: 1.3 * x, lambda x: 1.0 * x, torch.ones_like),
    "one more term": (lambda x: x * x + x, lambda x: x * x, lambda x: 2 * x),
    "another branch": (torch.relu, torch.sin, torch.cos),
}


def by_format(narrow: Fn, wide: Fn, slope: Fn, dtype: torch.dtype) -> Any:
    class Branching(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return narrow(x) if x.dtype is dtype else wide(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * slope(x)

    return Branching.apply


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("name", OTHERS)
def test_another_function_is_not_taken_for_rounding(name: str, dtype: torch.dtype) -> None:
    for seed in range(6):
        result = gradproof.check(by_format(*OTHERS[name], dtype), point(1.0, dtype, seed, 6), seed=seed)
        assert result.verdict is Verdict.WRONG, result
        assert not judged_in_float64(result)


def test_sums_beyond_the_range_of_a_format_say_nothing_about_linearity() -> None:
    """2^127 is a number of float32, and a combination of such gradients is none."""
    scale = torch.tensor([2.0**120, 2.0**124, 2.0**126, 2.0**127])
    result = gradproof.check(lambda x: x * scale, point(1e-3, F32, 0, 4), seed=0)
    assert not any(one.code in ("nonlinear", "nonlinear-forward") for one in result.findings), result

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * scale

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g.clamp(-1, 1) * scale

    result = gradproof.check(Clipped.apply, point(1e-3, F32, 0, 4), seed=0)
    assert any(one.code == "nonlinear" for one in result.findings), result


@pytest.mark.parametrize("seed", [11, 73, 0, 1])
def test_one_unlucky_step_does_not_drive_out_all_larger_ones(seed: int) -> None:
    """In float64 as well, what is left of a softmax moves in steps of its rounding; some rungs see too little of it."""
    x = point(1e-6, BF16, seed, 3, 7).double()
    assert gradproof.check(lambda x: centred(x.softmax(-1)), x, seed=seed).verdict is not Verdict.WRONG
    wrong = gradproof.check(lambda x: centred((1.1 * x - 0.1 * x.detach()).softmax(-1)), x, seed=seed)
    assert wrong.verdict is Verdict.WRONG
