"""Whether the same call gives the same values is asked where they leave a doubt: never of a function that is right, and
always before a derivative is called wrong."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict
from gradproof.settings import Effort
from gradproof.torch import gradcheck

EFFORTS: tuple[Effort, ...] = ("exhaustive", 2)


def draw(size: int) -> Tensor:
    return torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(size))


class Counting:
    """Adds so much more with every call, or with the first one alone."""

    def __init__(self, step: float, *, once: bool = False) -> None:
        self.step, self.once, self.calls = step, once, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.sin() + self.step * (self.calls == 1 if self.once else self.calls)


def noisy(size: float) -> Callable[[Tensor], Tensor]:
    stream = random.Random(0)
    return lambda x: x.sin() + size * stream.random()


class Doubled(torch.autograd.Function):
    """Wrong by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * grad * x.cos()


@pytest.mark.parametrize(("effort", "size", "evaluations"), [("exhaustive", 30, 5), (1, 30, 3), (1, 100_000, 3)])
def test_a_right_function_is_not_asked(effort: Effort, size: int, evaluations: int) -> None:
    result = gradproof.check(torch.sin, draw(size), modes="reverse", effort=effort, seed=0)
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations == evaluations


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("size", [1, 30, 500])
@pytest.mark.parametrize(
    "made",
    [
        lambda: Counting(0.1),
        lambda: Counting(1e-9),
        lambda: Counting(1.0, once=True),
        lambda: Counting(1e-6, once=True),
        lambda: noisy(1.0),
        lambda: noisy(1e-6),
        lambda: noisy(1e-11),
    ],
)
def test_a_function_that_gives_other_values_is_named(
    made: Callable[[], Callable[[Tensor], Tensor]], size: int, effort: Effort
) -> None:
    result = gradproof.check(made(), draw(size), effort=effort, seed=1)
    assert result.verdict is Verdict.UNDECIDED
    assert [finding.code for finding in result.findings] == ["random"]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("made", [lambda: Counting(0.1), lambda: Counting(3.0, once=True), lambda: noisy(1e-3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_such_a_function_in_narrow_formats(
    made: Callable[[], Callable[[Tensor], Tensor]], dtype: torch.dtype, effort: Effort
) -> None:
    """Also where the format rounds away what it does."""
    result = gradproof.check(made(), draw(30).to(dtype), effort=effort, seed=1)
    assert result.verdict is Verdict.UNDECIDED
    assert "random" in {finding.code for finding in result.findings}


@pytest.mark.parametrize("effort", EFFORTS)
def test_a_function_that_works_once_is_named(effort: Effort) -> None:
    calls = 0

    def fn(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise ValueError("used up")
        return x.sin()

    result = gradproof.check(fn, draw(30), modes="reverse", effort=effort, seed=0)
    assert result.verdict is Verdict.UNDECIDED
    assert [finding.code for finding in result.findings] == ["random"]


@pytest.mark.parametrize("effort", EFFORTS)
def test_it_is_asked_once_before_a_gradient_is_called_wrong(effort: Effort) -> None:
    result = gradproof.check(Doubled.apply, draw(40), effort=effort, seed=0)
    assert result.verdict is Verdict.WRONG
    assert "random" not in {finding.code for finding in result.findings}


@pytest.mark.parametrize("effort", EFFORTS)
def test_a_function_that_looks_at_the_grad_mode_is_called_as_by_the_user(effort: Effort) -> None:
    def fn(x: Tensor) -> Tensor:
        return x.sin() if x.requires_grad else x.cos()

    for size in (3, 40, 500):
        assert gradproof.check(fn, draw(size), modes="reverse", effort=effort, seed=0).verdict is Verdict.RIGHT


@pytest.mark.parametrize("effort", EFFORTS)
def test_second_derivatives_of_such_functions(effort: Effort) -> None:
    right = gradproof.check(torch.sin, draw(20), order=2, effort=effort, seed=0)
    assert right.verdict is Verdict.RIGHT

    class Drifting(Doubled):
        """A backward that changes from call to call."""

        calls = 0

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            Drifting.calls += 1
            return grad * x.cos() * (1 + 1e-3 * Drifting.calls)

    result = gradproof.check(Drifting.apply, draw(20), order=2, lowest=2, effort=effort, seed=0)
    assert result.verdict is Verdict.UNDECIDED
    assert "random" in {finding.code for finding in result.findings}


@pytest.mark.parametrize("effort", ["exhaustive", 2])
@pytest.mark.parametrize("noise", [1e-11, 1e-12])
def test_last_digits_that_differ_are_named_though_a_batch_of_them_is_believed(noise: float, effort: Any) -> None:
    calls = itertools.count()

    def noisy(x: Tensor) -> Tensor:
        y = 2 * x
        if y.requires_grad:
            y.register_hook(lambda g: g * (1 + noise * next(calls)))
        return 1.0 * y

    x = torch.linspace(1.0, 2.0, 12, dtype=torch.float64)
    result = gradproof.check(noisy, x, modes="reverse", effort=effort, seed=0)
    assert "nondeterministic" in {one.code for one in result.findings}, result
    with pytest.raises(RuntimeError, match="not reentrant"):
        gradcheck(noisy, x.requires_grad_(), fast_mode=effort == 2)
    assert gradproof.check(lambda x: 2 * x, x, modes="reverse", effort=effort, seed=0).ok
