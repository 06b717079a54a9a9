"""What torch refuses: a verdict, or a word on what to do, instead of its exception. The drop-in raises as torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gradproof
from gradproof import UsageError, Verdict
from gradproof.torch import gradcheck, gradgradcheck

RETURNED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "shape": (lambda g: (g[:2], g), "invalid gradient"),
    "array": (lambda g: (g.detach().numpy(), g), "numpy.ndarray"),
    "few": (lambda g: g, "expected 3, got 2"),
    "many": (lambda g: (g, g, g), "different than None"),
}


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, how: str) -> Tensor:
        ctx.how = how
        return x + y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if ctx.how == "right":
            return g, g, None
        found = RETURNED[ctx.how][0](g)
        return (*found, None) if isinstance(found, tuple) else (found, None)


def summed(how: str) -> Callable[[Tensor, Tensor], Any]:
    return lambda x, y: Sum.apply(x, y, how)


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("how", RETURNED)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("options", [{}, {"effort": 1}, {"order": 2}, {"contracts": "none"}])
def test_what_cannot_be_a_gradient_is_wrong(how: str, dtype: torch.dtype, options: dict[str, Any]) -> None:
    args = draw(3, dtype=dtype), draw(3, dtype=dtype)
    result = gradproof.check(summed(how), args, seed=1, **options)
    assert result.verdict is Verdict.WRONG
    (finding,) = result.wrong
    assert finding.code == "attributes"
    assert RETURNED[how][1] in finding.sentence
    assert "the numbers agree" not in str(result)
    assert gradproof.check(summed("right"), args, seed=1, **options).ok


@pytest.mark.parametrize("how", RETURNED)
def test_the_drop_in_raises_what_torch_raises(how: str) -> None:
    args = draw(3).requires_grad_(), draw(3).requires_grad_()
    for ours, theirs in ((gradcheck, torch.autograd.gradcheck), (gradgradcheck, torch.autograd.gradgradcheck)):
        with pytest.raises(RuntimeError) as expected:
            theirs(summed(how), args)  # type: ignore[operator]
        with pytest.raises(RuntimeError) as raised:
            ours(summed(how), args)  # type: ignore[operator]
        assert str(expected.value) in str(raised.value)


def test_an_exception_of_the_rule_itself_reaches_the_user() -> None:
    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        gradproof.check(Raises.apply, draw(3))


@pytest.mark.filterwarnings("ignore:None of the inputs:UserWarning")
def test_a_reentrant_checkpoint_has_no_gradient_of_given_inputs() -> None:
    result = gradproof.check(lambda x: checkpoint(torch.sin, x, use_reentrant=True), draw(3), seed=1)
    assert result.verdict is Verdict.UNSUPPORTED
    assert "set use_reentrant=False" in str(result)
    assert gradproof.check(lambda x: checkpoint(torch.sin, x, use_reentrant=False), draw(3), seed=1).ok
    with pytest.raises(RuntimeError, match="use_reentrant"):
        gradcheck(lambda x: checkpoint(torch.sin, x, use_reentrant=True), (draw(3).requires_grad_(),))


def test_a_lazy_module_is_to_be_run_first() -> None:
    module, x = nn.LazyLinear(3, dtype=torch.float64), draw(2, 4)
    with pytest.raises(UsageError, match=r"params.weight is lazy.*run the module once"):
        gradproof.check(module, x)
    module(x)
    assert gradproof.check(module, x, seed=1).ok
