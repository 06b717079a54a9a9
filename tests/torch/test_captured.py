"""Inputs that the function uses without being given them: parameters of a module it holds, tensors of a closure."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradproof
from gradproof import Verdict
from gradproof.torch import GradcheckError, gradcheck, gradgradcheck


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(5)).requires_grad_()


class Scaled(torch.autograd.Function):
    """x * w, with a gradient of w that is off by a factor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        return x * w

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        return gradient * w, (gradient * x).sum_to_size(w.shape) * ctx.factor, None


class Net(torch.nn.Module):
    def __init__(self, factor: float, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(draw(4, dtype=dtype).detach())
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = Scaled.apply(x, self.weight, self.factor)
        return result


class Square(torch.autograd.Function):
    """w^2 with a right gradient whose own gradient is wrong."""

    @staticmethod
    def forward(ctx: Any, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(w)
        return w * w

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (w,) = ctx.saved_tensors
        return gradient * (w + w.detach())


class Twisted(Net):
    def __init__(self) -> None:
        super().__init__(1.0)
        self.weight = torch.nn.Parameter(draw(3).detach())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = x * Square.apply(self.weight)
        return result


@pytest.mark.parametrize("fast", [False, True])
def test_parameters_that_are_passed_beside_the_module(fast: bool) -> None:
    x = draw(3, 4)
    right, wrong = Net(1.0), Net(1.2)
    before = right.weight.detach().clone()
    assert gradcheck(lambda x, *_: right(x), (x, *right.parameters()), fast_mode=fast)
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 1"):
        gradcheck(lambda x, *_: wrong(x), (x, *wrong.parameters()), fast_mode=fast)
    assert torch.equal(right.weight, before)
    assert right.weight.grad is None


def test_the_entry_is_named() -> None:
    wrong = Net(1.2)
    result = gradproof.check(lambda x, w: wrong(x), (draw(3, 4), wrong.weight), seed=1, modes="reverse")
    assert result.verdict is Verdict.WRONG
    assert {c.input.path for c in result.comparisons if c.verdict is Verdict.WRONG} == {"args[1]"}


def test_second_order() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()).double()
    x = draw(2, 3)
    assert gradgradcheck(lambda x, *_: net(x), (x, *net.parameters()))
    twisted = Twisted()
    assert gradcheck(lambda x, *_: twisted(x), (x, twisted.weight))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(lambda x, *_: twisted(x), (x, twisted.weight))


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_reverse_passes_are_made_in_batches_all_the_same(factor: float) -> None:
    """Evaluations move the captured tensor, one after the other; a reverse pass moves nothing."""
    net = Net(factor)
    arguments = (draw(2, 4), net.weight)
    result = gradproof.check(lambda x, _: net(x), arguments, modes="reverse", contracts="linear", seed=1)
    assert result.verdict is (Verdict.RIGHT if factor == 1.0 else Verdict.WRONG)
    assert "pull: batched" in result.notes
    assert any(note.startswith("values: one by one") for note in result.notes)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.RIGHT), (1.2, Verdict.WRONG)])
def test_all_contracts_hold_for_what_is_captured(factor: float, verdict: Verdict) -> None:
    """It requires grad for the function, also where the point that stands for it does not."""
    net = Net(factor)
    arguments = (draw(2, 4).requires_grad_(), net.weight)
    result = gradproof.check(lambda x, _: net(x), arguments, seed=1)
    assert result.verdict is verdict
    assert {finding.code for finding in result.findings if finding.verdict is Verdict.WRONG} <= {"mismatch"}


def test_a_tensor_that_is_both_given_and_captured() -> None:
    x = draw(4)
    assert gradproof.check(lambda given: given * x, (x,), seed=1).verdict is Verdict.RIGHT
    assert gradcheck(lambda given: given * x, (x,))


def test_a_tensor_that_is_no_leaf() -> None:
    root = draw(4)
    x = root * 2
    assert gradcheck(lambda _: x.sin(), (x,))
    assert not gradcheck(lambda _: Scaled.apply(root.detach(), x, 1.2), (x,), raise_exception=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_tensor_is_as_before_when_the_function_raises(dtype: torch.dtype) -> None:
    net = Net(1.0, dtype)
    before, place = net.weight.detach().clone(), net.weight.data_ptr()
    calls = 0

    def fn(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise KeyboardInterrupt
        return net(x)

    with pytest.raises(KeyboardInterrupt):
        gradproof.check(fn, (draw(2, 4, dtype=dtype), net.weight), seed=1)
    assert torch.equal(net.weight, before)
    assert net.weight.data_ptr() == place
