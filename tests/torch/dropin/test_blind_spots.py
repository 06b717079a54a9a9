"""Wrong gradients that torch's checker passes and gradproof's must not. Each test shows that torch still passes it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from twins import F64, Checker, derived, fails, leaf, passes, square


def missed_by_torch(theirs: Checker, fn: Callable[..., Any], inputs: Any, **options: Any) -> None:
    assert theirs.gradcheck(fn, inputs, raise_exception=False, **options) is True


# ---- fast mode


@pytest.mark.parametrize("n", [1000, 3000])
def test_one_dead_entry_among_many(ours: Checker, theirs: Checker, n: int) -> None:
    def backward(g: Tensor, x: Tensor) -> Tensor:
        gradient = 2 * x * g
        gradient[n // 3] = 0
        return gradient

    dead = derived(lambda x: x * x, backward)
    missed_by_torch(theirs, dead, leaf(n), fast_mode=True)
    passes(ours.gradcheck, square(2.0), leaf(n), fast_mode=True)
    error = fails(ours, "Jacobian mismatch for output 0 with respect to input 0", dead, leaf(n), fast_mode=True)
    assert f"args[0][{n // 3}]" in str(error)


@pytest.mark.parametrize("n", [50, 100, 200, 300])
def test_one_dead_entry_at_any_position(ours: Checker, n: int) -> None:
    for position in (0, n // 2, n - 1):

        def backward(g: Tensor, x: Tensor, position: int = position) -> Tensor:
            gradient = 2 * x * g
            gradient[position] = 0
            return gradient

        dead = derived(lambda x: x * x, backward)
        assert ours.gradcheck(dead, leaf(n), raise_exception=False, fast_mode=True) is False


@pytest.mark.parametrize("n", [100, 1000])
def test_errors_whose_rows_sum_to_zero(ours: Checker, theirs: Checker, n: int) -> None:
    def forward(x: Tensor) -> Tensor:
        return x.sum().expand(n).clone()

    # J is all ones; the wrong one adds the identity and subtracts a cyclic shift.
    right = derived(forward, lambda g, x: g.sum().expand(n))
    wrong = derived(forward, lambda g, x: g.sum().expand(n) + g - g.roll(1))
    missed_by_torch(theirs, wrong, leaf(n), fast_mode=True)
    passes(ours.gradcheck, right, leaf(n), fast_mode=True)
    fails(ours, "Jacobian mismatch", wrong, leaf(n), fast_mode=True)


def test_a_rolled_gradient(ours: Checker, theirs: Checker) -> None:
    generator = torch.Generator().manual_seed(0)
    for n in (20, 300, 1000):
        x = torch.randn(n, dtype=F64, generator=generator).requires_grad_()
        rolled = derived(lambda x: x * x, lambda g, x: (2 * x * g).roll(1))
        assert ours.gradcheck(rolled, x, raise_exception=False, fast_mode=True) is False


# ---- tolerances


@pytest.mark.parametrize("factor", [-2.0, 0.0, 2.1])
def test_small_gradients_are_judged_at_their_own_scale(
    ours: Checker, theirs: Checker, fast: bool, factor: float
) -> None:
    def tiny(factor: float) -> Callable[[Tensor], Tensor]:
        return derived(lambda x: 1e-6 * x * x, lambda g, x: factor * 1e-6 * x * g)

    missed_by_torch(theirs, tiny(factor), leaf(3), fast_mode=fast)
    passes(ours.gradcheck, tiny(2.0), leaf(3), fast_mode=fast)
    fails(ours, "Jacobian mismatch", tiny(factor), leaf(3), fast_mode=fast)
    passes(ours.gradcheck, tiny(factor), leaf(3), atol=1e-5, rtol=1e-3, fast_mode=fast)  # as torch means them


def test_errors_of_a_tenth_of_a_percent_pass_by_design(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, square(2 * 1.0009), leaf(3), fast_mode=fast)
    fails(checker, "Jacobian mismatch", square(2 * 1.0009), leaf(3), rtol=1e-5, atol=1e-8, fast_mode=fast)


# ---- outputs and inputs that are not looked at


def test_a_detached_output_beside_a_differentiable_one(ours: Checker, theirs: Checker, fast: bool) -> None:
    detached = lambda x: (2 * x, (3 * x).detach())  # noqa: E731
    missed_by_torch(theirs, detached, leaf(3), fast_mode=fast)
    passes(ours.gradcheck, lambda x: (2 * x, 3 * x), leaf(3), fast_mode=fast)
    assert "out[1]" in str(fails(ours, "", detached, leaf(3), fast_mode=fast))


class Product(Function):
    """a*b with right gradients; that of b is detached if the flag says so."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, detached: bool) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.detached = detached
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, b = ctx.saved_tensors
        return g * b, (g * a).detach() if ctx.detached else g * a, None


def test_a_detached_gradient_at_second_order(ours: Checker, theirs: Checker, fast: bool) -> None:
    inputs = leaf(3), leaf(3, seed=1)
    assert theirs.gradgradcheck(Product.apply, (*inputs, True), raise_exception=False, fast_mode=fast) is True
    passes(ours.gradcheck, Product.apply, (*inputs, True), fast_mode=fast)
    passes(ours.gradgradcheck, Product.apply, (*inputs, False), fast_mode=fast)
    fails(ours, "", Product.apply, (*inputs, True), check=ours.gradgradcheck, fast_mode=fast)


def test_tensors_inside_a_dict(ours: Checker, theirs: Checker, fast: bool) -> None:
    def fn(factor: float) -> Callable[..., Tensor]:
        return lambda d, y: square(factor)(d["a"]) + y.sin()

    inputs = {"a": leaf(3)}, leaf(3, seed=1)
    missed_by_torch(theirs, fn(7.0), inputs, fast_mode=fast)
    passes(ours.gradcheck, fn(2.0), inputs, fast_mode=fast)
    assert "args[0]['a']" in str(fails(ours, "Jacobian mismatch", fn(7.0), inputs, fast_mode=fast))


class Affine(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(1.0, 4.0, dtype=F64))
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        backward = lambda g, w, x: (self.factor * g * x, g * w)  # noqa: E731
        return derived(lambda w, x: w * x, backward)(self.weight, x)


def test_parameters_of_a_module(ours: Checker, theirs: Checker, fast: bool) -> None:
    missed_by_torch(theirs, Affine(3.0), leaf(3), fast_mode=fast)
    passes(ours.gradcheck, Affine(1.0), leaf(3), fast_mode=fast)
    assert "weight" in str(fails(ours, "Jacobian mismatch", Affine(3.0), leaf(3), fast_mode=fast))


# ---- backwards that depend on how they are called


def test_a_cotangent_that_is_not_contiguous(ours: Checker, theirs: Checker, fast: bool) -> None:
    def raw(g: Tensor, x: Tensor) -> Tensor:
        # Reads the cotangent's memory as if it had x's strides, as a kernel would.
        return 2 * torch.as_strided(g, x.shape, x.stride(), g.storage_offset())

    fn = derived(lambda x: x * 2, raw)
    missed_by_torch(theirs, fn, leaf(3, 4), fast_mode=fast)
    passes(ours.gradcheck, derived(lambda x: x * 2, lambda g, x: 2 * g), leaf(3, 4), fast_mode=fast)
    fails(ours, "", fn, leaf(3, 4), fast_mode=fast)


def test_a_backward_that_is_not_linear(ours: Checker, theirs: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: 2 * g * g.abs().clamp(max=1))
    if not fast:
        missed_by_torch(theirs, fn, leaf(3))
    fails(ours, "", fn, leaf(3), fast_mode=fast)


def test_a_backward_that_overwrites_the_cotangent(ours: Checker, theirs: Checker, fast: bool) -> None:
    def backward(g: Tensor, x: Tensor) -> Tensor:
        gradient = 2 * g
        g.zero_()
        return gradient

    fn = derived(lambda x: x * 2, backward)
    if not fast:
        missed_by_torch(theirs, fn, leaf(3))
    passes(ours.gradcheck, derived(lambda x: x * 2, lambda g, x: 2 * g), leaf(3), fast_mode=fast)
    fails(ours, "", fn, leaf(3), fast_mode=fast)


class SubsetDependent(Function):
    """a*b, whose gradients are twice too large unless both are asked for."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, wrong: bool) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.wrong = wrong
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, b = ctx.saved_tensors
        factor = 2 if ctx.wrong and not all(ctx.needs_input_grad[:2]) else 1
        return factor * g * b, factor * g * a, None


def test_a_backward_that_is_wrong_for_a_subset_of_the_inputs(ours: Checker, theirs: Checker, fast: bool) -> None:
    inputs = leaf(3), leaf(3, seed=1)
    missed_by_torch(theirs, SubsetDependent.apply, (*inputs, True), fast_mode=fast)
    passes(ours.gradcheck, SubsetDependent.apply, (*inputs, False), fast_mode=fast)
    fails(ours, "", SubsetDependent.apply, (*inputs, True), fast_mode=fast)


def test_a_gradient_of_another_dtype(ours: Checker, theirs: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: (2 * g).to(torch.float32))
    missed_by_torch(theirs, fn, leaf(3), check_grad_dtypes=True, fast_mode=fast)
    right = derived(lambda x: x * 2, lambda g, x: 2 * g)
    passes(ours.gradcheck, right, leaf(3), check_grad_dtypes=True, fast_mode=fast)
    fails(ours, "dtype", fn, leaf(3), check_grad_dtypes=True, fast_mode=fast)


def test_a_gradient_that_the_engine_sums_to_the_right_shape(ours: Checker, theirs: Checker, fast: bool) -> None:
    # The gradient has an extra dimension of one in front: the engine reduces it silently.
    fn = derived(lambda x: x * 2, lambda g, x: (2 * g)[None])
    # Functions of PyTorch's own count on it, and the numbers are right: worth a warning, no failure.
    missed_by_torch(theirs, fn, leaf(3), fast_mode=fast)
    with pytest.warns(UserWarning, match="incorrect size.*the engine sums it"):
        assert ours.gradcheck(fn, (leaf(3),), fast_mode=fast)


class _Doubled(Function):
    """2x, whose backward is a Function of its own with a gradient that has one dimension too many."""

    @staticmethod
    def forward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        return (2 * h)[None]


def test_the_same_at_second_order(ours: Checker, theirs: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: _Doubled.apply(g))
    assert theirs.gradgradcheck(fn, (leaf(3),), raise_exception=False, fast_mode=fast) is True
    with pytest.warns(UserWarning, match="incorrect size.*the engine sums it"):
        assert ours.gradgradcheck(fn, (leaf(3),), fast_mode=fast)
    right = derived(lambda x: x * 2, lambda g, x: 2 * g)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours.gradgradcheck(right, (leaf(3),), fast_mode=fast)
