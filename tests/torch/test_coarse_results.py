"""Results rounded to half precision of arguments that are not: stairs of a known height, across which a slope shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict
from gradproof.settings import Effort
from gradproof.torch import gradcheck

RIGHT, WRONG, UNDECIDED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNDECIDED
COARSE = (torch.float16, torch.bfloat16)
Fn = Callable[[Tensor], Tensor]


def draw(size: int, seed: int) -> Tensor:
    return torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def cast(dtype: torch.dtype, factor: float) -> Fn:
    class Cast(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.to(dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return factor * g.double()

    return Cast.apply  # type: ignore[no-any-return]


def times(fn: Fn, factor: float) -> Fn:
    """The same value, and a gradient that is so many times too large."""
    return lambda x: fn(factor * x - (factor - 1) * x.detach())


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("dtype", [*COARSE, torch.float32])
def test_a_cast(dtype: torch.dtype, size: int) -> None:
    for seed in range(6):
        x = draw(size, seed)
        assert gradproof.check(lambda x: x.to(dtype), x, seed=seed).verdict is RIGHT, seed
        for factor in (2.0, 0.0, -1.0, 1.1, 0.9):
            assert gradproof.check(cast(dtype, factor), x, modes="reverse", seed=seed).verdict is WRONG, (seed, factor)


@pytest.mark.parametrize("dtype", COARSE)
def test_one_wrong_entry_of_a_cast_is_the_one_that_is_named(dtype: torch.dtype) -> None:
    weights = torch.ones(5, dtype=torch.float64)
    weights[3] = 1.5
    for seed in range(4):
        result = gradproof.check(
            lambda x: (weights * x + (1 - weights) * x.detach()).to(dtype), draw(5, seed), seed=seed
        )
        assert result.verdict is WRONG
        for comparison in result.comparisons:
            assert comparison.wrong == 1
            assert str(comparison.worst.place.input) == "args[0][3]"


@pytest.mark.parametrize("effort", [1, 2])
@pytest.mark.parametrize("dtype", COARSE)
def test_a_cast_seen_by_probes(dtype: torch.dtype, effort: Effort) -> None:
    for seed in range(6):
        x = draw(200, seed)
        assert gradproof.check(lambda x: x.to(dtype), x, seed=seed, effort=effort).verdict is RIGHT, seed
        assert gradproof.check(cast(dtype, 0.0), x, modes="reverse", seed=seed, effort=effort).verdict is WRONG, seed


FUNCTIONS: dict[str, Fn] = {
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "sum": lambda x: x.sum(),
}


@pytest.mark.parametrize("dtype", COARSE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_that_is_rounded_at_the_end(name: str, dtype: torch.dtype) -> None:
    fn, wrong = FUNCTIONS[name], times(FUNCTIONS[name], 1.3)
    for seed in range(4):
        x = draw(5, seed)
        assert gradproof.check(lambda x: fn(x).to(dtype), x, seed=seed).verdict is RIGHT, seed
        assert gradproof.check(lambda x: wrong(x).to(dtype), x, seed=seed).verdict is WRONG, seed


def foreign(fn: Fn, slope: Fn) -> Fn:
    """A kernel that rounds where torch does not see it, so that nothing can leave the cast out."""

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return torch.from_numpy(fn(x.detach()).numpy().astype(np.float16))

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return slope(x) * g.double()

    return Kernel.apply  # type: ignore[no-any-return]


@pytest.mark.parametrize("power", [1, 3])
def test_a_kernel_that_rounds_out_of_sight(power: int) -> None:
    def kernel(factor: float) -> Fn:
        return foreign(lambda x: x**power, lambda x: factor * power * x ** (power - 1))

    for seed in range(2):
        x = draw(5, seed)
        assert gradproof.check(kernel(1.0), x, seed=seed).verdict is RIGHT, seed
        assert gradproof.check(kernel(1.03), x, seed=seed).verdict is WRONG, seed


@pytest.mark.parametrize("frequency", [10.0, 50.0, 200.0])
@pytest.mark.parametrize("dtype", COARSE)
def test_an_oscillation_that_the_steps_skip_is_never_accused(dtype: torch.dtype, frequency: float) -> None:
    for seed in range(6):
        result = gradproof.check(lambda x: torch.sin(frequency * x).to(dtype), draw(4, seed), seed=seed)
        assert result.verdict in (RIGHT, UNDECIDED), result


@pytest.mark.parametrize("frequency", [10.0, 50.0, 200.0])
def test_an_oscillation_that_is_rounded_out_of_sight_is_never_accused(frequency: float) -> None:
    kernel = foreign(lambda x: torch.sin(frequency * x), lambda x: frequency * torch.cos(frequency * x))
    for seed in range(6):
        result = gradproof.check(kernel, draw(4, seed), seed=seed)
        assert result.verdict in (RIGHT, UNDECIDED), result


@pytest.mark.parametrize("dtype", COARSE)
def test_the_drop_in_agrees(dtype: torch.dtype) -> None:
    x = draw(4, 0).requires_grad_()
    assert gradcheck(lambda x: x.to(dtype), x)
    assert not gradcheck(cast(dtype, 2.0), x, raise_exception=False)
    assert not gradcheck(cast(dtype, 0.0), x, raise_exception=False)
