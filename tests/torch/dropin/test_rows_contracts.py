"""What a backward must keep to beside its numbers: determinism (R11), attributes (R12), zero and undefined cotangents
(R13, R14), batches (R15)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from twins import F64, Checker, derived, fails, hooked, leaf, passes

REENTRANT = "Backward is not reentrant"
NOT_MULTIPLIED = "backward not multiplied by grad_output"
UNDEFINED = "Expected backward function to handle undefined output grads"
BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient"


# ---- R11: twice the same


class Jittery(Function):
    """The identity, whose backward moves by a random relative amount."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, jitter: float) -> Tensor:
        ctx.jitter = jitter
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return Jittery.apply(g, ctx.jitter) * (1 + torch.rand_like(g) * ctx.jitter), None


def test_a_random_backward_is_named(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: Jittery.apply(x, 0.0), leaf(3, 3), fast_mode=fast)
    fails(checker, REENTRANT, lambda x: Jittery.apply(x, 1e-6), leaf(3, 3), fast_mode=fast)
    fails(checker, REENTRANT, lambda x: Jittery.apply(x, 1e-12), leaf(3, 3), fast_mode=fast)


def test_randomness_within_nondet_tol_passes(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: Jittery.apply(x, 1e-6), leaf(3, 3), nondet_tol=1e-5, fast_mode=fast)
    fails(checker, REENTRANT, lambda x: Jittery.apply(x, 1e-6), leaf(3, 3), nondet_tol=1e-9, fast_mode=fast)


def test_a_backward_that_counts_its_calls_is_not_reentrant(checker: Checker, fast: bool) -> None:
    calls = itertools.count()
    fn = derived(lambda x: x * 2, lambda g, x: 2 * g * (1 + 1e-9 * next(calls)))
    fails(checker, REENTRANT, fn, leaf(3), fast_mode=fast)


def test_a_random_backward_at_second_order(checker: Checker, fast: bool) -> None:
    jitter = lambda x: Jittery.apply(x, 1e-12)  # noqa: E731
    passes(checker.gradgradcheck, jitter, leaf(2, 2), nondet_tol=1e-5, fast_mode=fast)
    fails(checker, REENTRANT, jitter, leaf(2, 2), check=checker.gradgradcheck, fast_mode=fast)


def test_a_wrong_gradient_is_not_called_random(checker: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: 3 * g)
    fails(checker, "Jacobian mismatch", fn, leaf(3), nondet_tol=1.0, fast_mode=fast)


# ---- R12: attributes


def test_a_sparse_gradient_of_a_dense_input(checker: Checker, fast: bool) -> None:
    fn = derived(torch.clone, lambda g, x: g.to_sparse())
    fails(checker, "grad is incorrect layout.*sparse_coo", fn, leaf(3), fast_mode=fast)
    passes(checker.gradcheck, derived(torch.clone, lambda g, x: g), leaf(3), fast_mode=fast)


def test_a_sparse_gradient_with_other_dimensions(checker: Checker, fast: bool) -> None:
    x = torch.ones(2, 2, dtype=F64).to_sparse().requires_grad_()

    def fn(x: Tensor, dim: int) -> Tensor:
        return hooked(lambda g: g.to_dense().to_sparse(dim))(x).to_dense()

    words = "grad is sparse tensor, but has incorrect sparse_dim"
    fails(checker, words, fn, (x, 1), atol=1e-1, masked=True, fast_mode=fast)
    passes(checker.gradcheck, fn, (x, 2), atol=1e-1, masked=True, fast_mode=fast)


def test_dtypes_of_gradients(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x, z: x * z, (leaf(2), leaf(2, dtype=torch.complex128)), fast_mode=fast)
    passes(checker.gradcheck, torch.sin, leaf(2), check_grad_dtypes=True, fast_mode=fast)


def test_a_gradient_that_the_engine_casts(ours: Checker, fast: bool) -> None:
    # 2g is exact in float32 for the cotangents of a linear function only by luck, so the value alone may look right.
    fn = derived(lambda x: x * 2, lambda g, x: (2 * g).to(torch.float32))
    error = fails(ours, "dtype", fn, leaf(3), check_grad_dtypes=True, fast_mode=fast)
    assert "float32" in str(error)


# ---- R13: nothing in, nothing out


def test_backward_adds_something_of_its_own(checker: Checker, fast: bool) -> None:
    x = torch.ones(1, dtype=F64, requires_grad=True)
    fails(checker, NOT_MULTIPLIED, hooked(lambda g: g + 1e-2), x, atol=0.1, fast_mode=fast)
    passes(checker.gradcheck, hooked(lambda g: g * (1 + 1e-2)), x, atol=0.1, fast_mode=fast)
    sparse = torch.ones(1, dtype=F64).to_sparse().requires_grad_()
    fn = hooked(lambda g: g + 1e-2, Tensor.to_dense)
    fails(checker, NOT_MULTIPLIED, fn, sparse, atol=0.1, masked=True, fast_mode=fast)


# ---- R14: undefined cotangents


def refusing_none(x: Tensor) -> Tensor:
    def hook(g: Tensor | None) -> None:
        if g is None:
            raise RuntimeError("no cotangent")

    y = x.clone()
    if y.requires_grad:
        y.register_hook(hook)
    return y


def test_an_undefined_cotangent_must_be_handled(checker: Checker, fast: bool) -> None:
    with pytest.warns(UserWarning, match="Backwards compatibility: New undefined gradient support checking feature"):
        error = fails(checker, UNDEFINED, refusing_none, leaf(1), fast_mode=fast)
    assert "no cotangent" in str(error.__cause__)
    passes(checker.gradcheck, refusing_none, leaf(1), check_undefined_grad=False, fast_mode=fast)


class Two(Function):
    """(2x, 3x) without materialised cotangents; what happens to an undefined one is said by the flag."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: str) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.kind = kind
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, h: Tensor | None) -> Any:
        if ctx.kind == "raises" and h is None and g is not None:
            raise RuntimeError("the second cotangent is missing")
        if ctx.kind == "constant" and h is None and g is not None:
            return g * 2 + 1, None
        parts = [factor * c for factor, c in ((2, g), (3, h)) if c is not None]
        return sum(parts) if parts else None, None


def test_each_cotangent_alone(checker: Checker, fast: bool) -> None:
    def run(kind: str) -> Any:
        # One more node behind each output, so that slow mode does not meet an undefined cotangent first.
        return lambda x: tuple(y * 1 for y in Two.apply(x, kind))

    passes(checker.gradcheck, run("right"), leaf(2), fast_mode=fast)
    with pytest.raises(RuntimeError, match=f"the second cotangent is missing|{UNDEFINED}"):
        checker.gradcheck(run("raises"), leaf(2), fast_mode=fast)
    with pytest.raises(checker.GradcheckError):
        checker.gradcheck(run("constant"), leaf(2), fast_mode=fast)


def test_an_absent_tangent_is_zero(checker: Checker, fast: bool) -> None:
    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor, wrong: bool) -> Tensor:
            ctx.set_materialize_grads(False)
            ctx.wrong = wrong
            return x * 2 + y * 3

        @staticmethod
        def jvp(ctx: Any, s: Tensor | None, t: Tensor | None, _: None) -> Tensor:
            if s is None:
                return t * 3 + (1 if ctx.wrong else 0)
            return s * 2 if t is None else s * 2 + t * 3

    def fn(x: Tensor, y: Tensor, wrong: bool) -> Tensor:
        return Sum.apply(x, y, wrong)

    options = {"check_forward_ad": True, "check_backward_ad": False, "fast_mode": fast}
    passes(checker.gradcheck, fn, (leaf(2), leaf(2, seed=1), False), **options)
    with pytest.raises(checker.GradcheckError):
        checker.gradcheck(fn, (leaf(2), leaf(2, seed=1), True), **options)


# ---- R15: many cotangents at once


def test_backward_in_batches(checker: Checker, fast: bool) -> None:
    inputs = leaf(2, 3), leaf(3, 2, seed=1)
    passes(checker.gradcheck, torch.matmul, inputs, check_batched_grad=True, fast_mode=fast)
    passes(checker.gradgradcheck, torch.matmul, inputs, check_batched_grad=True, fast_mode=fast)


def test_a_backward_that_cannot_be_batched(checker: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: 2 * g if g.sum().item() > -1e9 else g)
    passes(checker.gradcheck, fn, leaf(3), fast_mode=fast)
    error = fails(checker, BATCHED, fn, leaf(3), check_batched_grad=True, fast_mode=fast)
    assert isinstance(error.__cause__, RuntimeError)


def test_a_backward_that_is_wrong_only_in_batches(checker: Checker, fast: bool) -> None:
    def backward(g: Tensor, x: Tensor) -> Tensor:
        try:
            g.sum().item()
        except RuntimeError:  # inside vmap
            return 3 * g
        return 2 * g

    fn = derived(lambda x: x * 2, backward)
    passes(checker.gradcheck, fn, leaf(3), fast_mode=fast)
    fails(checker, BATCHED, fn, leaf(3), check_batched_grad=True, fast_mode=fast)


def test_a_sparse_input_cannot_be_batched(checker: Checker, fast: bool) -> None:
    x = leaf(4).detach().to_sparse().requires_grad_()
    fails(checker, BATCHED, Tensor.to_dense, x, masked=True, check_batched_grad=True, fast_mode=fast)
    passes(checker.gradcheck, Tensor.to_dense, x, masked=True, fast_mode=fast)
