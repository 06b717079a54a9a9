"""How the function is called: as its user would, and what real suites pass in and return."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, derived, fails, in_dual_level, leaf, passes, square

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"


def test_grad_mode_is_on_and_requires_grad_is_as_given(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        assert torch.is_grad_enabled()
        assert x.requires_grad
        assert not y.requires_grad
        return x * y

    passes(checker.gradcheck, fn, (leaf(3), leaf(3).detach()), fast_mode=fast)
    passes(checker.gradgradcheck, fn, (leaf(3), leaf(3).detach()), fast_mode=fast)


def test_a_function_that_branches_on_requires_grad(checker: Checker, fast: bool) -> None:
    fn = lambda x: x.sin() if x.requires_grad or in_dual_level() else x.cos()  # noqa: E731
    passes(checker.gradcheck, fn, leaf(3), check_forward_ad=True, fast_mode=fast)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x,
        lambda x: (x, x),
        lambda x: [x.sin()] * 2,
        lambda x: (x, x.sin(), x),
        lambda x: x.clone().mul_(2).add_(1),
        lambda x: x[0],
        lambda x: x.T,
        lambda x: x.expand(2, *x.shape),
        lambda x: x.unbind(0),
        lambda x: list(x.split(1)),
        lambda x: torch.stack([x.sum(), x.prod()]),
    ],
)
@pytest.mark.parametrize("check_forward_ad", [False, True])
def test_what_functions_return(checker: Checker, fast: bool, fn: Any, check_forward_ad: bool) -> None:
    passes(checker.gradcheck, fn, leaf(2, 2), check_forward_ad=check_forward_ad, fast_mode=fast)


def test_the_same_tensor_twice_among_the_inputs(checker: Checker, fast: bool) -> None:
    x = leaf(3)
    passes(checker.gradcheck, lambda a, b: a * 2, (x, x.detach()), fast_mode=fast)


def test_inputs_that_are_not_leaves(checker: Checker, fast: bool) -> None:
    x = leaf(3) * 2
    assert not x.is_leaf
    passes(checker.gradcheck, torch.sin, x, fast_mode=fast)
    fails(checker, MISMATCH, square(3.0), x, fast_mode=fast)


# ---- functions that cannot be called in a batch


def choosy(x: Tensor) -> Tensor:
    if x.dim() != 1:
        raise ValueError("one dimension only")
    return x * x


def deciding(x: Tensor) -> Tensor:
    return x * x if x.sum().item() < 1e9 else x


def assigning(x: Tensor) -> Tensor:
    y = torch.zeros(3, dtype=F64)
    for i in range(3):
        y[i] = x[i] ** 2
    return y


def numbered(x: Tensor) -> Tensor:
    return torch.stack([v * v for v in x])


@pytest.mark.parametrize("fn", [choosy, deciding, assigning, numbered])
@pytest.mark.parametrize("check_forward_ad", [False, True])
def test_functions_that_cannot_be_batched(checker: Checker, fast: bool, fn: Any, check_forward_ad: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.func.jvp(torch.sin, (leaf(3),), (leaf(3),))  # the first one in a process makes torch 2.13 warn of itself
        warnings.simplefilter("error")
        passes(checker.gradcheck, fn, leaf(3), check_forward_ad=check_forward_ad, fast_mode=fast)


def test_a_function_that_is_another_one_in_a_batch(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: x * x * (1 if x.dim() == 1 else 7), leaf(3), fast_mode=fast)
    passes(checker.gradcheck, lambda x: (x * x) / x.shape[0], leaf(3), fast_mode=fast)


def test_a_module_with_buffers_in_training(checker: Checker, fast: bool) -> None:
    module = torch.nn.BatchNorm1d(2, dtype=F64)
    passes(checker.gradcheck, module, leaf(4, 2), fast_mode=fast)
    passes(checker.gradcheck, lambda x: module(x) * 2, leaf(4, 2), fast_mode=fast)


def double_exp(x: Tensor) -> Tensor:
    return 2 * x.exp()


@pytest.mark.filterwarnings("ignore")  # torch says that its scripts will go
def test_scripted_functions_and_modules(checker: Checker, fast: bool) -> None:
    for fn in (torch.jit.script(torch.nn.Tanh()), torch.jit.trace(double_exp, leaf(3).detach())):
        passes(checker.gradcheck, fn, leaf(3), fast_mode=fast)
    linear = torch.jit.script(torch.nn.Linear(3, 2, dtype=F64))
    passes(checker.gradcheck, linear, leaf(4, 3), fast_mode=fast)
    fails(checker, MISMATCH, lambda x: linear(square(3.0)(x)), leaf(4, 3), fast_mode=fast)


def test_a_function_that_warns_is_heard(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        warnings.warn("mind the step", RuntimeWarning, stacklevel=1)
        return x * 2

    with pytest.warns(RuntimeWarning, match="mind the step"):
        passes(checker.gradcheck, fn, leaf(3), fast_mode=fast)


def test_a_function_that_prints_prints(checker: Checker, capsys: pytest.CaptureFixture[str]) -> None:
    passes(checker.gradcheck, lambda x: (print("called"), x * 2)[1], leaf(2))  # noqa: T201
    assert "called" in capsys.readouterr().out


# ---- errors of autograd


def test_autograds_own_errors_come_out(checker: Checker, fast: bool) -> None:
    def twice_in_place(x: Tensor) -> Tensor:
        y = x.exp()
        z = y * y
        y.add_(1)
        return z

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        checker.gradcheck(twice_in_place, leaf(3), raise_exception=False, fast_mode=fast)
    wrong_number = derived(lambda x: x * 2, lambda g, x: (g * 2, g))
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        checker.gradcheck(wrong_number, leaf(3), raise_exception=False, fast_mode=fast)
    wrong_shape = derived(lambda x: x * 2, lambda g, x: g[:2])
    with pytest.raises(RuntimeError, match="invalid gradient"):
        checker.gradcheck(wrong_shape, leaf(3), raise_exception=False, fast_mode=fast)


# ---- ties


@pytest.mark.parametrize("reduce", [torch.amax, torch.amin])
def test_an_even_split_between_two_passes(checker: Checker, fast: bool, reduce: Any) -> None:
    x = torch.tensor([2.0, 2.0, 2.0 if reduce is None else 5.0], dtype=F64)
    x = (x if reduce is torch.amin else -x).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        passes(checker.gradcheck, lambda x: reduce(x, 0), x, fast_mode=fast)


@pytest.mark.parametrize("reduce", [torch.amax, torch.amin])
def test_an_even_split_between_three_passes(ours: Checker, fast: bool, reduce: Any) -> None:
    x = torch.full((3,), 2.0, dtype=F64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        passes(ours.gradcheck, lambda x: reduce(x, 0), x, fast_mode=fast)
        everywhere = derived(lambda x: reduce(x, 0), lambda g, x: g * torch.full_like(x, 2.0))
        fails(ours, "", everywhere, x, fast_mode=fast)


def test_a_function_that_reads_the_memory_around_its_argument(checker: Checker, fast: bool) -> None:
    around = leaf(20).detach()
    x = around[5:15].requires_grad_()

    def beyond(scale: Any) -> Any:
        return lambda x: scale(x.as_strided((2, 3), (3, 1), 12)) * x[0]

    passes(checker.gradcheck, beyond(torch.sin), x, fast_mode=fast)
    fails(checker, MISMATCH, beyond(square(3.0)), x, fast_mode=fast)
    assert torch.equal(around, leaf(20).detach())


def test_a_view_that_leaves_all_memory_raises_as_it_does_in_the_users_call(checker: Checker) -> None:
    for x in (leaf(4), leaf(8).detach()[2:6].requires_grad_()):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            checker.gradcheck(lambda x: x.as_strided((2, 3), (3, 1), 12), x)


def test_a_function_that_asks_whether_its_argument_requires_grad(checker: Checker, fast: bool) -> None:
    """The symmetric part where it does, else what the lower triangle says: at a symmetric point the two are the same,
    which says nothing about others. (`torch.lobpcg` does not even end there.)"""
    seen: list[bool] = []
    steep = 1e3  # a function that is looked at more than a few times

    def asking(x: Tensor) -> Tensor:
        assert x.sum().item() == x.sum().item()  # a batch has no single number
        seen.append(x.requires_grad)
        return ((x + x.mT) / 2 if x.requires_grad else x.tril() + x.tril(-1).mT).mul(steep).sin()

    drawn = torch.randn(4, 4, dtype=F64, generator=torch.Generator().manual_seed(0))
    x = (drawn + drawn.mT).requires_grad_()
    passes(checker.gradcheck, asking, x, fast_mode=fast)
    assert checker.name != "gradproof" or all(seen)
    fails(checker, MISMATCH, lambda x: asking(3 * x - 2 * x.detach()), x, fast_mode=fast)
