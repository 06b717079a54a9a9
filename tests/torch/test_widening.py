"""A function that holds float32 itself, in a closure, a module or its backward, is judged in float64 all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import gradproof
from gradproof import Result, Verdict

F32 = torch.float32
WIDE = "the rule is judged in float64"


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = F32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


WEIGHT = draw(8, 8, seed=1)
TARGET = draw(4, 8, seed=2).sigmoid()


def module(made: nn.Module) -> Callable[[Tensor], Tensor]:
    """Not the module itself, whose parameters would be arguments."""
    with torch.no_grad():
        for k, parameter in enumerate(made.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=k) / 2)
    return made.forward


HOLDING: dict[str, Callable[[Tensor], Any]] = {
    "a matrix product": lambda x: x @ WEIGHT,
    "a matrix product from the left": lambda x: WEIGHT[:4, :4] @ x,
    "linear": lambda x: functional.linear(x, WEIGHT, WEIGHT[0]),
    "a sum that writes into what it holds": lambda x: functional.binary_cross_entropy_with_logits(x, TARGET),
    "a list of tensors": lambda x: torch.cat([x, WEIGHT]) @ WEIGHT,
    "a module": module(nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 3))),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], WEIGHT[None], WEIGHT[None]),
    "convolution": lambda x: functional.conv1d(x[None], WEIGHT[:, :4, None].contiguous()),
    "layer_norm": lambda x: functional.layer_norm(x, (8,), WEIGHT[0], WEIGHT[1]),
    "a sparse matrix": lambda x: torch.sparse.mm(WEIGHT.to_sparse(), x.mT),
}


class Product(torch.autograd.Function):
    """x @ WEIGHT, with the weight in forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wrong: bool) -> Tensor:
        ctx.wrong = wrong
        return x @ WEIGHT

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        gradient = g @ WEIGHT.mT
        if ctx.wrong:
            gradient = gradient * torch.where(torch.arange(8) == 5, 1.001, 1.0)
        return gradient, None


class Bound(torch.autograd.Function):
    """sin, whose backward is for float32 alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slope = slope
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if g.dtype is not F32:
            raise TypeError("the kernel knows float32")
        return ctx.slope * g * ctx.saved_tensors[0].cos(), None


def check(fn: Callable[..., Any], *args: Any, **options: Any) -> Result:
    return gradproof.check(fn, args, seed=1, **options)


def in_double(result: Result) -> bool:
    return any(note.startswith(WIDE) for note in result.notes)


@pytest.mark.parametrize("dtype", [F32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["a matrix product", "linear", "layer_norm"])
def test_what_is_held_has_any_narrow_format(name: str, dtype: torch.dtype) -> None:
    held = {k: one.to(dtype) for k, one in enumerate((WEIGHT, WEIGHT[0].clone()))}
    fns = {
        "a matrix product": lambda x: x @ held[0],
        "linear": lambda x: functional.linear(x, held[0], held[1]),
        "layer_norm": lambda x: functional.layer_norm(x, (8,), held[1], held[1]),
    }
    result = check(fns[name], draw(4, 8, dtype=dtype))
    assert result.verdict is Verdict.RIGHT, result
    assert in_double(result)


@pytest.mark.parametrize("name", HOLDING)
def test_a_function_that_holds_float32(name: str) -> None:
    result = check(HOLDING[name], draw(4, 8))
    assert result.verdict is Verdict.RIGHT, result
    assert in_double(result)
    assert result.cost.evaluations < 40


def test_second_derivatives_too() -> None:
    result = check(lambda x: (x @ WEIGHT).tanh(), draw(2, 8), order=2)
    assert result.verdict is Verdict.RIGHT, result


def test_complex_numbers_too() -> None:
    held = torch.complex(WEIGHT, WEIGHT.mT.contiguous())
    result = check(lambda x: x @ held, torch.complex(draw(3, 8), draw(3, 8, seed=3)))
    assert result.verdict is Verdict.RIGHT, result
    assert in_double(result)


def test_a_backward_that_holds_float32() -> None:
    assert check(lambda x: Product.apply(x, False), draw(4, 8)).verdict is Verdict.RIGHT
    result = check(lambda x: Product.apply(x, True), draw(4, 8))
    assert result.verdict is Verdict.WRONG
    assert in_double(result)
    assert all(entry.place.input.index[1] == 5 for one in result.comparisons for entry in one.found)


def test_a_cast_is_left_out() -> None:
    result = check(lambda x: x.float() @ WEIGHT, draw(4, 8))
    assert any("without casts inside" in note for note in result.notes)
    assert result.verdict is Verdict.RIGHT


def test_a_function_that_refuses_float64_says_so_in_its_own_words() -> None:
    def kernel(x: Tensor) -> Tensor:
        if x.dtype is not F32:
            raise TypeError("the kernel knows float32")
        return x @ WEIGHT

    assert any("the kernel knows float32" in note for note in check(kernel, draw(4, 8)).notes)


def test_nothing_stays_in_force() -> None:
    check(HOLDING["linear"], draw(4, 8))
    with pytest.raises(RuntimeError):
        draw(4, 8).double() @ WEIGHT


def test_a_backward_for_float32_alone_is_held_against_the_function_in_float64() -> None:
    for fn in (lambda x: Bound.apply(x, 1.0), lambda x: Bound.apply(x, 1.0) @ WEIGHT):
        result = check(fn, draw(4, 8))
        assert result.verdict is Verdict.RIGHT, result
        assert any("the rule runs in float32 alone" in note and "the kernel knows" in note for note in result.notes)
    result = check(lambda x: Bound.apply(x, 1.01), draw(4, 8))
    assert result.verdict is Verdict.WRONG
    assert "1.01 times" in str(result)


def test_a_backward_that_raises_in_its_own_format_raises() -> None:
    class Broken(Bound):
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        check(lambda x: Broken.apply(x, 1.0), draw(4, 8))
