"""Hooks on tensors are a part of what backward gives, and calls get copies of the tensors: so they are carried over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import gradproof
from gradproof.torch import gradcheck, gradgradcheck

DRAW = torch.Generator().manual_seed(3)


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=DRAW).requires_grad_()


def halves(gradient: Tensor) -> Tensor:
    return gradient * 0.5


def looks(gradient: Tensor) -> None:
    assert gradient.shape


HOOKS = pytest.mark.parametrize(("hook", "right"), [(halves, False), (looks, True), (torch.clone, True)])
Hook = Callable[[Tensor], Tensor | None]


@HOOKS
@pytest.mark.parametrize("effort", ["exhaustive", 1])
def test_a_hook_on_a_parameter(hook: Hook, right: bool, effort: int) -> None:
    net = nn.Linear(3, 2).double()
    net.weight.register_hook(hook)
    result = gradproof.check(net, leaf(4, 3), seed=1, effort=effort)
    assert result.ok is right
    assert "params.weight has hooks" in str(result)
    if not right:
        wrong = {one.input.path for one in result.comparisons if one.verdict is gradproof.Verdict.WRONG}
        assert wrong == {"params.weight"}


@HOOKS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_hook_on_an_argument(hook: Hook, right: bool, dtype: torch.dtype) -> None:
    x = leaf(3, dtype=dtype)
    x.register_hook(hook)
    assert gradproof.check(torch.sin, x, seed=1).ok is right
    assert gradproof.check(torch.sin, x, seed=1, order=2).ok is right
    assert gradproof.check(lambda y: y.sin() * x.sum(), x, seed=1, modes="reverse").ok is right  # captured, too


@HOOKS
def test_the_drop_in_says_what_torch_says(hook: Hook, right: bool) -> None:
    x = leaf(3)
    x.register_hook(hook)
    for ours, theirs in ((gradcheck, torch.autograd.gradcheck), (gradgradcheck, torch.autograd.gradgradcheck)):
        # torch's own checker calls hooks with None, to see what an undefined gradient does.
        assert theirs(torch.sin, (x,), raise_exception=False, check_undefined_grad=False) is right  # type: ignore[operator]
        assert ours(torch.sin, (x,), raise_exception=False) is right  # type: ignore[operator]


def test_a_hook_runs_once_for_each_backward_and_keeps_ordinary_tensors() -> None:
    x, kept = leaf(6), list[Tensor]()
    handle = x.register_hook(kept.append)
    result = gradproof.check(lambda x: x.sin() * x.sum(), x, seed=1)
    assert result.ok
    assert 0 < len(kept) <= result.cost.pulls
    assert all(one.shape == (6,) and bool(one.isfinite().all()) for one in kept)
    assert list((x._backward_hooks or {}).values()) == [kept.append]
    handle.remove()
    count = len(kept)
    gradproof.check(torch.sin, x, seed=1)
    assert len(kept) == count
