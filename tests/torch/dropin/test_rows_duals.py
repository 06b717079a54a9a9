"""Dual numbers: what the function sees while they are active (R6a), and many tangents at once (R16)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from twins import F64, Checker, fails, in_dual_level, leaf, passes

FORWARD = "Jacobian computed with forward mode mismatch for output {} with respect to input {}"
ONLY = {"check_forward_ad": True, "check_backward_ad": False}


# ---- R6a: what the function sees


def test_inside_a_dual_level_nothing_requires_grad(checker: Checker, fast: bool) -> None:
    seen = []

    def fn(x: Tensor, y: Tensor) -> Tensor:
        if in_dual_level():
            seen.append(x.requires_grad or y.requires_grad)
        return x * y

    for y in (leaf(2, seed=1), leaf(2, seed=1).detach()):
        for batched in (False, True):
            passes(checker.gradcheck, fn, (leaf(2), y), check_batched_forward_grad=batched, fast_mode=fast, **ONLY)
    assert seen
    assert not any(seen)


def test_only_inputs_that_require_grad_get_tangents(checker: Checker, fast: bool) -> None:
    given = []

    class Pair(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return x * 2, y * 2

        @staticmethod
        def jvp(ctx: Any, s: Tensor, t: Tensor) -> Any:
            given.append((bool(s.any()), bool(t.any())))
            return s * 2, t * 2

    passes(checker.gradcheck, Pair.apply, (leaf(1), leaf(1)), check_undefined_grad=False, fast_mode=fast, **ONLY)
    assert any(x for x, _ in given)
    assert any(y for _, y in given)
    given.clear()
    passes(
        checker.gradcheck, Pair.apply, (leaf(1), leaf(1).detach()), check_undefined_grad=False, fast_mode=fast, **ONLY
    )
    assert set(given) == {(True, False)}


def test_a_function_that_switches_grad_off_has_a_forward_mode_all_the_same(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        with torch.no_grad():
            return x * 2

    if checker.name == "gradproof" or fast:  # torch judges by the mode that was not asked for when it is slow
        passes(checker.gradcheck, fn, leaf(2), fast_mode=fast, **ONLY)
    fails(checker, "Numerical gradient for function expected to be zero", fn, leaf(2), fast_mode=fast)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[:2],
        lambda x: x.view(-1),
        lambda x: x,
        lambda x: (x, x.mT),
        lambda x: x.clone().mul_(2),
        lambda x: torch.zeros_like(x).copy_(x),
        lambda x: x.clone()[0].add_(1),
    ],
)
def test_views_and_writing_in_place(checker: Checker, fast: bool, fn: Any) -> None:
    passes(checker.gradcheck, fn, leaf(3, 3), check_forward_ad=True, fast_mode=fast)


class View(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: bool) -> Tensor:
        ctx.keep, ctx.size = keep, x.size()
        return x.narrow(0, 0, 2)

    @staticmethod
    def vjp(ctx: Any, g: Tensor) -> Any:
        whole = g.new_zeros(ctx.size)
        whole.narrow(0, 0, 2).copy_(g)
        return whole, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, _: Any) -> Tensor:
        part = t.narrow(0, 0, 2)
        return part if ctx.keep else part.clone()


class ViewElsewhere(View):
    """A view as well, but of another tensor than the tangent that it was given."""

    @staticmethod
    def jvp(ctx: Any, t: Tensor, _: Any) -> Tensor:
        part = t.narrow(0, 0, 2)
        return part if ctx.keep else part.clone().view(-1, *part.shape[1:])


class InPlace(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: bool) -> Tensor:
        ctx.mark_dirty(x)
        ctx.keep = keep
        return x.mul_(2)

    @staticmethod
    def vjp(ctx: Any, g: Tensor) -> Any:
        return g * 2, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, _: Any) -> Tensor:
        return t.mul_(2) if ctx.keep else t * 2


class AsItIs(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: bool) -> Tensor:
        ctx.keep = keep
        return x

    @staticmethod
    def vjp(ctx: Any, g: Tensor) -> Any:
        return g, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, _: Any) -> Tensor:
        return t.view_as(t) if ctx.keep else t


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (View, "jvp is not returning a view"),
        (ViewElsewhere, "jvp is not returning a view of the given"),
        (InPlace, "not modifying the forward mode gradients inplace"),
        (AsItIs, r"forward is returning a view \(or an input as-is\)"),
    ],
)
def test_custom_functions_that_alias(checker: Checker, fast: bool, function: Any, words: str) -> None:
    def fn(x: Tensor, keep: bool) -> Tensor:
        return function.apply(x.clone() if function is InPlace else x, keep)

    passes(checker.gradcheck, fn, (leaf(4, 2), True), check_forward_ad=True, fast_mode=fast)
    with pytest.raises(RuntimeError, match=words):
        checker.gradcheck(fn, (leaf(4, 2), False), check_forward_ad=True, fast_mode=fast)


def test_other_arguments_before_tensors(checker: Checker, fast: bool) -> None:
    class Mixed(Function):
        @staticmethod
        def forward(ctx: Any, n: int, x: Tensor, word: str, y: Tensor) -> Tensor:
            ctx.n = n
            return x * n + y * 3

        @staticmethod
        def jvp(ctx: Any, n: None, s: Tensor, word: None, t: Tensor) -> Tensor:
            assert n is None
            assert word is None
            return s * 2 + t * 3

    x, y = torch.tensor(1.0, dtype=F64, requires_grad=True), torch.tensor(2.0, dtype=F64, requires_grad=True)
    passes(checker.gradcheck, Mixed.apply, (2, x, "a", y), fast_mode=fast, **ONLY)
    if checker.name == "gradproof" or not fast:  # torch's fast mode loses count of the arguments in its report
        fails(checker, FORWARD.format(0, 0), Mixed.apply, (4, x, "a", y), fast_mode=fast, **ONLY)


# ---- R16: many tangents at once


@pytest.mark.parametrize("only", [False, True])
def test_batched_tangents(checker: Checker, only: bool) -> None:
    modes = {"check_forward_ad": True, "check_backward_ad": not only, "check_batched_forward_grad": True}
    passes(checker.gradcheck, lambda x, n: (x.clone(), x + n), (leaf(2), 1), **modes)
    passes(checker.gradcheck, lambda x, y: x.sin(), (leaf(2), leaf(2)), **modes)


def test_a_jvp_that_cannot_be_batched(checker: Checker, fast: bool) -> None:
    class Noisy(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            torch.randn_like(t)
            return t * 2

    passes(checker.gradcheck, Noisy.apply, leaf(2), check_forward_ad=True, fast_mode=fast)
    error = fails(
        checker,
        "random operations inside of vmap",
        Noisy.apply,
        leaf(2),
        check_forward_ad=True,
        check_batched_forward_grad=True,
        fast_mode=fast,
    )
    assert isinstance(error.__cause__, RuntimeError)


def test_a_jvp_that_is_wrong_only_in_batches(checker: Checker) -> None:
    class Fickle(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            try:
                t.sum().item()
            except RuntimeError:  # inside vmap
                return t * 3
            return t * 2

    passes(checker.gradcheck, Fickle.apply, leaf(2), check_undefined_grad=False, **ONLY)
    fails(
        checker,
        "batched gradient",
        Fickle.apply,
        leaf(2),
        check_undefined_grad=False,
        check_batched_forward_grad=True,
        **ONLY,
    )
