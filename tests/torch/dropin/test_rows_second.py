"""Second order: `gradgradcheck` (R19)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from twins import F64, Checker, fails, leaf, passes

MISMATCH = "Jacobian mismatch for output {} with respect to input {}"


class Cube(Function):
    """x**3 whose first derivative is right and whose second is `factor * x`: right if the factor is 6."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return CubeBackward.apply(g, ctx.saved_tensors[0], ctx.factor), None


class CubeBackward(Function):
    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(g, x)
        ctx.factor = factor
        return 3 * x**2 * g

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        g, x = ctx.saved_tensors
        return 3 * x**2 * h, ctx.factor * x * g * h, None


def cube(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda x: Cube.apply(x, factor)


def test_right_functions_pass(checker: Checker, fast: bool) -> None:
    passes(checker.gradgradcheck, torch.sin, leaf(3), fast_mode=fast)
    passes(checker.gradgradcheck, torch.matmul, (leaf(2, 3), leaf(3, 2, seed=1)), fast_mode=fast)
    passes(checker.gradgradcheck, lambda x, n: (x**n, x.sin()), (leaf(3), 3), fast_mode=fast)
    passes(checker.gradgradcheck, lambda x: x * 5, leaf(3), fast_mode=fast)
    passes(checker.gradgradcheck, torch.exp, leaf(2, dtype=torch.complex128), fast_mode=fast)
    passes(checker.gradgradcheck, lambda z: z.abs() ** 2, leaf(2, dtype=torch.complex128), fast_mode=fast)


def test_right_once_and_wrong_twice(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, cube(5.0), leaf(3), fast_mode=fast)
    passes(checker.gradgradcheck, cube(6.0), leaf(3), fast_mode=fast)
    fails(checker, MISMATCH.format(0, 0), cube(5.0), leaf(3), check=checker.gradgradcheck, fast_mode=fast)


def test_the_derivative_in_the_cotangent_counts_as_the_last_input(checker: Checker, fast: bool) -> None:
    class Wrong(CubeBackward):
        @staticmethod
        def backward(ctx: Any, h: Tensor) -> Any:
            g, x = ctx.saved_tensors
            return 2 * x**2 * h, 6 * x * g * h, None

    class WrongCube(Cube):
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return Wrong.apply(g, ctx.saved_tensors[0], 6.0), None

    fn = lambda x: WrongCube.apply(x, 6.0)  # noqa: E731
    fails(checker, MISMATCH.format(0, 1), fn, leaf(3), check=checker.gradgradcheck, fast_mode=fast)


# ---- the cotangents


def test_given_cotangents(checker: Checker, fast: bool) -> None:
    given = leaf(3, seed=5)
    passes(checker.gradgradcheck, cube(6.0), leaf(3), given, fast_mode=fast)
    passes(checker.gradgradcheck, cube(6.0), leaf(3), (given,), fast_mode=fast)
    passes(checker.gradgradcheck, cube(6.0), leaf(3), grad_outputs=[given.detach()], fast_mode=fast)
    fails(checker, MISMATCH.format(0, 0), cube(5.0), leaf(3), given, check=checker.gradgradcheck, fast_mode=fast)
    zero = torch.zeros(3, dtype=F64)  # with this one the second derivative in x is never seen
    passes(checker.gradgradcheck, cube(5.0), leaf(3), zero, fast_mode=fast)


def test_given_cotangents_of_another_dtype(checker: Checker, fast: bool) -> None:
    passes(checker.gradgradcheck, cube(6.0), leaf(3), torch.ones(3, dtype=torch.float32), fast_mode=fast)
    ones = torch.ones(3, dtype=torch.float32)
    fails(checker, MISMATCH.format(0, 0), cube(5.0), leaf(3), ones, check=checker.gradgradcheck, fast_mode=fast)


def test_cotangents_that_are_not_contiguous(checker: Checker, fast: bool) -> None:
    seen = []

    class Watched(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            seen.append(g.is_contiguous())
            return g * 2

    passes(
        checker.gradgradcheck,
        Watched.apply,
        leaf(4, 3),
        gen_non_contig_grad_outputs=True,
        check_undefined_grad=False,
        fast_mode=fast,
    )
    assert not all(seen)


def test_the_global_random_state_is_left_alone(ours: Checker, fast: bool) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    passes(ours.gradgradcheck, torch.sin, leaf(3), fast_mode=fast)
    assert torch.equal(torch.rand(2), expected)


# ---- modes


def test_forward_over_reverse(checker: Checker, fast: bool) -> None:
    both = {"check_fwd_over_rev": True, "fast_mode": fast}
    passes(checker.gradgradcheck, torch.sin, leaf(3), **both)
    only = {"check_rev_over_rev": False, "check_undefined_grad": False, **both}
    passes(checker.gradgradcheck, lambda x: x**3, leaf(3), **only)
    with pytest.raises(RuntimeError, match="must implement the jvp function"):
        checker.gradgradcheck(cube(6.0), leaf(3), **only)


def test_a_wrong_forward_over_reverse(checker: Checker, fast: bool) -> None:
    class Backward(Function):
        @staticmethod
        def forward(ctx: Any, g: Tensor, x: Tensor) -> Tensor:
            ctx.save_for_forward(g, x)
            return 3 * x**2 * g

        @staticmethod
        def jvp(ctx: Any, dg: Tensor, dx: Tensor) -> Tensor:
            g, x = ctx.saved_tensors
            return 3 * x**2 * dg + 5 * x * g * dx

    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return Backward.apply(g, ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            return 3 * ctx.saved_tensors[0] ** 2 * t

    fails(
        checker,
        "Jacobian computed with forward mode mismatch for output 0 with respect to input 0",
        Wrong.apply,
        leaf(3),
        check=checker.gradgradcheck,
        check_fwd_over_rev=True,
        check_rev_over_rev=False,
        check_undefined_grad=False,
        fast_mode=fast,
    )


# ---- not differentiable twice


def test_once_differentiable_has_no_second_derivative(checker: Checker, fast: bool) -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 3 * ctx.saved_tensors[0] ** 2 * g

    passes(checker.gradcheck, Once.apply, leaf(3), fast_mode=fast)
    with pytest.raises(RuntimeError, match=r"once_differentiable|Jacobian mismatch"):
        checker.gradgradcheck(Once.apply, leaf(3), fast_mode=fast)


def test_what_the_second_backward_raises_comes_out(checker: Checker, fast: bool) -> None:
    class Broken(CubeBackward):
        @staticmethod
        def backward(ctx: Any, h: Tensor) -> Any:
            raise RuntimeError("double backward is unsupported")

    class Once(Cube):
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return Broken.apply(g, ctx.saved_tensors[0], 6.0), None

    for raises in (True, False):
        with pytest.raises(RuntimeError, match="double backward is unsupported") as caught:
            checker.gradgradcheck(lambda x: Once.apply(x, 6.0), leaf(3), raise_exception=raises, fast_mode=fast)
        assert not isinstance(caught.value, checker.GradcheckError)


def test_an_only_gradient_that_is_detached(checker: Checker, fast: bool) -> None:
    class Alone(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return (3 * ctx.saved_tensors[0] ** 2 * g).detach()

    words = "Numerical gradient for function expected to be zero"
    fails(checker, words, Alone.apply, leaf(3), check=checker.gradgradcheck, fast_mode=fast)
