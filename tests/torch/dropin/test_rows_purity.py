"""The world is left as it was (R24), and a default device changes nothing (R26)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from twins import F64, Checker, derived, fails, leaf, passes, square


@contextmanager
def unchanged(*tensors: Tensor) -> Iterator[None]:
    """Fails if a tensor, its flags or any global state is another one afterwards."""
    before = [(t.detach().clone(), t.requires_grad, t.grad, t.stride(), t.data_ptr()) for t in tensors]
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    modes = torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_inference_mode_enabled()
    yield
    for tensor, (value, requires_grad, grad, stride, address) in zip(tensors, before, strict=True):
        assert torch.equal(tensor.detach(), value)
        assert (tensor.requires_grad, tensor.grad, tensor.stride()) == (requires_grad, grad, stride)
        assert tensor.data_ptr() == address
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert random.getstate() == states[2]
    assert (torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_inference_mode_enabled()) == modes


@pytest.mark.parametrize("check_forward_ad", [False, True])
def test_a_passing_check_leaves_everything_as_it_was(checker: Checker, fast: bool, check_forward_ad: bool) -> None:
    x, y = leaf(3, 2), leaf(3, 2).detach()
    with unchanged(x, y):
        passes(checker.gradcheck, lambda x, y: x.sin() * y, (x, y), check_forward_ad=check_forward_ad, fast_mode=fast)


def test_a_failing_check_leaves_everything_as_it_was(checker: Checker, fast: bool) -> None:
    x = leaf(3, 2).detach().T.requires_grad_()
    with unchanged(x):
        fails(checker, "Jacobian mismatch", square(3.0), x, fast_mode=fast)


def test_a_second_order_check_leaves_everything_as_it_was(ours: Checker, fast: bool) -> None:
    x, w = leaf(3), leaf(3, seed=2)
    with unchanged(x, w):
        passes(ours.gradgradcheck, torch.sin, x, fast_mode=fast)
        passes(ours.gradgradcheck, torch.sin, x, w, fast_mode=fast)


@pytest.mark.parametrize("call", [1, 2, 3])
def test_an_exception_leaves_the_inputs_as_they_were(ours: Checker, fast: bool, call: int) -> None:
    x, calls = leaf(3), [0]

    def fn(x: Tensor) -> Tensor:
        calls[0] += 1
        if calls[0] >= call:
            raise RuntimeError("enough")
        return x * x

    with unchanged(x), pytest.raises(RuntimeError, match="enough"):
        ours.gradcheck(fn, x, fast_mode=fast)


def test_a_function_that_writes_into_its_inputs(ours: Checker, fast: bool) -> None:
    x, y = leaf(3), leaf(3, seed=1).detach()

    def fn(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            y.add_(1.0)
        return x * 2

    with unchanged(x, y):
        passes(ours.gradcheck, fn, (x, y), fast_mode=fast)


def test_a_function_that_draws_random_numbers_it_does_not_use(ours: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        torch.rand(3)
        np.random.rand(3)  # noqa: NPY002
        random.random()
        return x * 2

    x = leaf(3)
    with unchanged(x):
        passes(ours.gradcheck, fn, x, fast_mode=fast)
        passes(ours.gradgradcheck, fn, x, fast_mode=fast)


def test_a_grad_that_is_already_there_stays(checker: Checker, fast: bool) -> None:
    x = leaf(3)
    x.sum().backward()
    before = x.grad
    passes(checker.gradcheck, torch.sin, x, fast_mode=fast)
    assert x.grad is before
    assert torch.equal(before, torch.ones(3, dtype=F64))


def test_buffers_of_a_module_stay(ours: Checker, fast: bool) -> None:
    module = torch.nn.BatchNorm1d(2, dtype=F64)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    passes(ours.gradcheck, module, leaf(4, 2), fast_mode=fast)
    assert module.training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(parameter.grad is None for parameter in module.parameters())


def test_grad_mode_of_the_caller_does_not_matter(ours: Checker, fast: bool) -> None:
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            passes(ours.gradcheck, square(2.0), leaf(3), fast_mode=fast)
            fails(ours, "Jacobian mismatch", square(3.0), leaf(3), fast_mode=fast)
            assert not torch.is_grad_enabled()


# ---- R26


def test_the_default_dtype_does_not_matter(checker: Checker, fast: bool) -> None:
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            passes(checker.gradcheck, square(2.0), leaf(3), fast_mode=fast)
            fails(checker, "Jacobian mismatch", square(3.0), leaf(3), fast_mode=fast)
            assert torch.get_default_dtype() is dtype
    finally:
        torch.set_default_dtype(before)


def test_a_default_device_does_not_matter(ours: Checker, fast: bool) -> None:
    def run() -> Any:
        x = leaf(3)
        yield
        passes(ours.gradcheck, square(2.0), x, fast_mode=fast)
        passes(ours.gradcheck, torch.sin, x, check_forward_ad=True, check_batched_grad=True, fast_mode=fast)
        passes(ours.gradgradcheck, torch.sin, x, fast_mode=fast)
        fails(ours, "Jacobian mismatch", square(3.0), x, fast_mode=fast)

    steps = run()
    next(steps)
    with torch.device("meta"):
        assert next(steps, None) is None

    steps = run()
    next(steps)
    try:
        torch.set_default_device("meta")
        assert next(steps, None) is None
    finally:
        torch.set_default_device(None)


def test_a_backward_that_overwrites_its_saved_input_is_not_blamed_on_the_caller(ours: Checker, fast: bool) -> None:
    def backward(g: Tensor, x: Tensor) -> Tensor:
        gradient = 2 * x * g
        with torch.no_grad():
            x.zero_()
        return gradient

    x = leaf(3)
    with unchanged(x):
        ours.gradcheck(derived(lambda x: x * x, backward), x, raise_exception=False, fast_mode=fast)
