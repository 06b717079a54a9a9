"""Forward mode: dual numbers against differences (R6)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd import forward_ad as fw
from twins import Checker, Linear2, fails, in_dual_level, leaf, passes

FORWARD = "Jacobian computed with forward mode mismatch for output {} with respect to input {}"
REVERSE = "Jacobian mismatch for output 0 with respect to input 0"
ONLY = {"check_forward_ad": True, "check_backward_ad": False}


# ---- R6


@pytest.mark.parametrize("only", [False, True])
def test_right_functions_pass(checker: Checker, fast: bool, only: bool) -> None:
    modes = {"check_forward_ad": True, "check_backward_ad": not only, "fast_mode": fast}
    passes(checker.gradcheck, torch.matmul, (leaf(2, 3), leaf(3, 2, seed=1)), **modes)
    passes(checker.gradcheck, lambda x, n: (x.sin() * n, x.exp()), (leaf(3), 2), **modes)
    passes(checker.gradcheck, lambda x: x.sum(), leaf(0), **modes)


def test_a_wrong_jvp_is_named(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if in_dual_level():
            value, tangent = fw.unpack_dual(y)
            y = fw.make_dual(value, tangent * 1.1) if tangent is not None else y
        return x.sin(), x + y

    inputs = leaf(2), leaf(2, seed=1)
    passes(checker.gradcheck, fn, inputs, fast_mode=fast)
    for only in (False, True):
        fails(
            checker,
            FORWARD.format(1, 1),
            fn,
            inputs,
            check_forward_ad=True,
            check_backward_ad=not only,
            check_undefined_grad=False,
            fast_mode=fast,
        )


def test_reverse_is_judged_first(checker: Checker, fast: bool) -> None:
    def run(wrong: str, **modes: bool) -> Any:
        return lambda words: fails(
            checker,
            words,
            lambda x: Linear2.apply(x, wrong),
            leaf(3),
            check_undefined_grad=False,
            fast_mode=fast,
            **modes,
        )

    run("reverse and forward", check_forward_ad=True)(REVERSE)
    run("forward", check_forward_ad=True)(FORWARD.format(0, 0))
    run("reverse", check_forward_ad=True)(REVERSE)
    run("reverse and forward", **ONLY)(FORWARD.format(0, 0))
    run("reverse and forward")(REVERSE)


def test_a_mode_that_was_not_asked_for_is_never_run(checker: Checker, fast: bool) -> None:
    class OneWay(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Tensor) -> Tensor:
            raise RuntimeError("FAIL BACKWARD")

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            raise RuntimeError("FAIL FORWARD")

    for modes, words in (({}, "FAIL BACKWARD"), (ONLY, "FAIL FORWARD"), ({"check_forward_ad": True}, "FAIL BACKWARD")):
        with pytest.raises(RuntimeError, match=words):
            checker.gradcheck(OneWay.apply, leaf(2), fast_mode=fast, check_undefined_grad=False, **modes)


def test_a_function_without_jvp_says_so(checker: Checker, fast: bool) -> None:
    class NoJvp(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    passes(checker.gradcheck, NoJvp.apply, leaf(2), fast_mode=fast)
    with pytest.raises(RuntimeError, match="must implement the jvp function"):
        checker.gradcheck(NoJvp.apply, leaf(2), check_forward_ad=True, fast_mode=fast)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="needs mkldnn")
def test_mkldnn_inputs_have_no_forward_mode(checker: Checker, fast: bool) -> None:
    x = torch.ones(2).to_mkldnn().requires_grad_()
    for raises in (True, False):
        with (
            pytest.warns(UserWarning, match="double precision"),
            pytest.raises(ValueError, match=r"MKLDNN inputs are not support for forward AD gradcheck\."),
        ):
            checker.gradcheck(
                Tensor.to_dense, x, check_forward_ad=True, raise_exception=raises, atol=0.1, rtol=0.1, fast_mode=fast
            )
