"""mkldnn tensors and tensors of a class of their own are leaves: fn sees what the user passed, in kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.masked import MaskedTensor, masked_tensor

import gradproof
from gradproof import Verdict
from gradproof.torch import program_of

RIGHT, WRONG, UNSUPPORTED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNSUPPORTED
mkldnn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="no mkldnn in this build of torch")


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(5))


def check(fn: Any, *args: Any, **options: Any) -> gradproof.Result:
    return gradproof.check(fn, args, seed=1, **options)


class Square(torch.autograd.Function):
    factor = 2.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @classmethod
    def slope(cls, x: Tensor) -> Tensor:
        return cls.factor * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * Square.slope(ctx.saved_tensors[0])


class WrongSquare(Square):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        factor = torch.full(x.shape, 2.0, dtype=x.dtype)
        factor[1, 2] = 3.0
        return g * factor * x


@mkldnn
@pytest.mark.parametrize("order", [1, 2])
def test_mkldnn(order: int) -> None:
    x = draw(2, 3, dtype=torch.float32).to_mkldnn().requires_grad_()
    before = x.detach().to_dense()
    seen: list[torch.layout] = []

    def fn(x: Tensor) -> Tensor:
        seen.append(x.layout)
        return Square.apply(x.to_dense())

    assert check(fn, x, order=order).verdict is RIGHT
    assert torch._mkldnn in seen
    result = check(lambda x: WrongSquare.apply(x.to_dense()), x, order=order)
    assert result.verdict is WRONG
    assert {str(entry.place.input) for c in result.comparisons for entry in c.found} == {"args[0][1, 2]"}
    assert torch.equal(x.detach().to_dense(), before)
    assert x.layout is torch._mkldnn


@mkldnn
def test_mkldnn_outputs_and_modes() -> None:
    x = draw(2, 3, dtype=torch.float32).to_mkldnn()
    assert check(torch.nn.functional.relu, x).verdict is RIGHT
    program = program_of(torch.nn.functional.relu, x)
    assert program.outputs[0].shape == (2, 3)
    with pytest.raises(gradproof.Unsupported, match="mkldnn, and torch makes no dual numbers"):
        program.push(np.ones((1, 6)))
    # torch 2.13 has no second derivative of relu on mkldnn.
    assert check(torch.nn.functional.relu, x, order=2).verdict is UNSUPPORTED


class Tagged(torch.Tensor):
    """Operations keep the class, but not the tag."""

    tag: float


class Quiet(Tagged):
    """Operations give ordinary tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


def tagged(kind: type[Tagged], dtype: torch.dtype = torch.float64) -> Tagged:
    x = draw(2, 3, dtype=dtype).as_subclass(kind)
    x.tag = 3.0
    return x


@pytest.mark.parametrize("kind", [Tagged, Quiet])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128])
@pytest.mark.parametrize("order", [1, 2])
def test_subclasses(kind: type[Tagged], dtype: torch.dtype, order: int) -> None:
    x = tagged(kind, dtype).requires_grad_()
    before = x.detach().clone()

    def fn(x: Tagged) -> Tensor:
        assert type(x) is kind
        return x * x * x.tag

    result = check(fn, x, order=order)
    assert result.verdict is RIGHT
    assert {"reverse", "forward"} == {comparison.mode for comparison in result.comparisons}
    assert torch.equal(x.detach(), before)
    assert x.tag == 3.0
    if dtype is not torch.complex128:
        assert check(lambda x: Square.apply(x) * x.tag, x, order=order).verdict is RIGHT
        result = check(lambda x: WrongSquare.apply(x) * x.tag, x)
        assert result.verdict is WRONG
        assert {str(entry.place.input) for c in result.comparisons for entry in c.found} == {"args[0][1, 2]"}


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_masked_tensors() -> None:
    """Of the masked-out entry (0, 1), which holds NaN, nothing depends."""
    mask = torch.tensor([[True, False, True], [True, True, True]])
    data = draw(2, 3)
    data[0, 1] = np.nan
    x = masked_tensor(data, mask, requires_grad=True)  # type: ignore[no-untyped-call]

    def fn(x: MaskedTensor) -> Tensor:
        assert isinstance(x, MaskedTensor)
        return (x * x).to_tensor(0.0)  # type: ignore[no-untyped-call, no-any-return]

    assert check(fn, x).verdict is RIGHT
    assert check(lambda x: (x * x).sum(1), x).verdict is RIGHT  # and a masked tensor comes out
    assert check(lambda x: WrongSquare.apply(x.get_data().nan_to_num()), x).verdict is WRONG
    program = program_of(fn, x)
    np.testing.assert_array_equal(program.pull(np.ones((1, 6)))[0], 2 * program.point)
    assert program.point[1] == 0
    with pytest.raises(gradproof.Unsupported, match="a MaskedTensor, and torch makes no dual numbers"):
        program.push(np.ones((1, 6)))
