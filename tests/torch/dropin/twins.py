"""What the tests of the drop-in share: inputs, functions with a derivative of one's choice, and the two assertions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd import forward_ad as fw

from gradproof.result import Result

F64 = torch.float64


@dataclass(frozen=True)
class Checker:
    """The names that users import, from torch or from gradproof."""

    name: str
    as_sparse_gradcheck: Callable[..., Any]
    gradcheck: Callable[..., bool]
    gradgradcheck: Callable[..., bool]
    GradcheckError: type[RuntimeError]
    get_numerical_jacobian: Callable[..., Any]
    get_analytical_jacobian: Callable[..., Any]
    get_numerical_jacobian_wrt_specific_input: Callable[..., Any]


def leaf(*shape: int, dtype: torch.dtype = F64, seed: int = 0) -> Tensor:
    """Random numbers of size about one and away from zero, that require grad."""
    generator = torch.Generator().manual_seed(seed + 17)
    double = torch.complex128 if dtype.is_complex else F64
    values = torch.randn(shape, dtype=double, generator=generator)
    return (values + 0.3 * torch.sgn(values)).to(dtype).requires_grad_()


def passes(check: Callable[..., bool], fn: Callable[..., Any], inputs: Any, *rest: Any, **options: Any) -> None:
    assert check(fn, inputs, *rest, **options) is True


def fails(
    checker: Checker,
    words: str,
    fn: Callable[..., Any],
    inputs: Any,
    *rest: Any,
    check: Callable[..., bool] | None = None,
    **options: Any,
) -> RuntimeError:
    """Assert that the check fails with these words as GradcheckError, and returns False when asked not to raise (seen
    in slow mode only, to save time)."""
    check = check or checker.gradcheck
    with pytest.raises(checker.GradcheckError, match=words) as caught:
        check(fn, inputs, *rest, **options)
    if not options.get("fast_mode"):
        assert check(fn, inputs, *rest, raise_exception=False, **options) is False
    if checker.name == "gradproof":
        assert caught.value.result is None or isinstance(caught.value.result, Result)
    return caught.value


def in_dual_level() -> bool:
    return fw._current_level >= 0


def square(factor: float = 2.0) -> Callable[[Tensor], Tensor]:
    """x*x with the gradient factor*x: right if the factor is 2."""
    return derived(lambda x: x * x, lambda g, x: factor * x * g)


def derived(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """`forward(*inputs)` with `backward(*cotangents, *inputs)` as its reverse mode; first order only."""

    class Derived(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.inputs = inputs
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            return backward(*cotangents, *ctx.inputs)

    return Derived.apply


def hooked(hook: Callable[[Tensor], Tensor], fn: Callable[[Tensor], Tensor] = torch.clone) -> Callable[..., Any]:
    """`fn`, with a hook on the cotangent of its output where there is one."""

    def call(x: Tensor) -> Tensor:
        y = fn(x)
        if y.requires_grad:
            y.register_hook(lambda g: None if g is None else hook(g))
        return y

    return call


class Linear2(Function):
    """2x in all modes; what is wrong is said by the flag: "reverse", "forward", or "" for a right one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wrong: str) -> Tensor:
        ctx.wrong = wrong
        return x * 2

    @staticmethod
    def vjp(ctx: Any, g: Tensor) -> Any:
        return g * (3 if "reverse" in ctx.wrong else 2), None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, _: Any) -> Tensor:
        return t * (3 if "forward" in ctx.wrong else 2)
