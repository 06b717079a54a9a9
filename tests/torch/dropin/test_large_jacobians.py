"""Slow mode on a large Jacobian takes a few passes of each mode; what is wrong in one is found all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradproof.errors import GradcheckError
from gradproof.torch.dropin import gradcheck, gradgradcheck
from gradproof.torch.torchprogram import TorchProgram

DTYPES = [torch.float64, torch.complex128]
Rule = Callable[[Tensor], Tensor]


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


def product(matrix: Tensor, back: Tensor, along: Tensor, change: Rule = lambda g: g) -> Callable[[Tensor], Tensor]:
    """A sin(x), with what each mode takes for A, and what reverse mode does to its cotangent."""

    class Product(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return matrix @ x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return x.cos().conj() * (back.mH @ change(g))

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return along @ (x.cos() * t)

    return Product.apply  # type: ignore[no-any-return]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[TorchProgram]:
    made: list[TorchProgram] = []
    init = TorchProgram.__init__

    def recorded(self: TorchProgram, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(TorchProgram, "__init__", recorded)
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_right_ones_take_a_few_passes(dtype: torch.dtype, programs: list[TorchProgram]) -> None:
    matrix, x = draw(300, 300, dtype=dtype), draw(300, dtype=dtype).requires_grad_()
    fn = product(matrix, matrix, matrix)
    for options in ({}, {"check_forward_ad": True}, {"check_forward_ad": True, "check_backward_ad": False}):
        assert gradcheck(fn, (x,), **options)  # type: ignore[arg-type]
        tally = programs[-1].tally
        assert tally.pulls <= 16
        assert tally.pushes <= 20


def test_so_do_second_derivatives(programs: list[TorchProgram]) -> None:
    x, w = draw(20, 20).requires_grad_(), draw(20, 20).requires_grad_()
    forward = {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False}
    for options in ({}, forward):
        assert gradgradcheck(lambda x, w: (x @ w).tanh(), (x, w), **options)  # type: ignore[arg-type]
        tally = programs[-1].tally
        assert tally.pulls <= 24
        assert tally.pushes <= 40


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", [(0, 0), (137, 255), (299, 299)])
def test_one_entry_that_is_off_is_named(dtype: torch.dtype, place: tuple[int, int]) -> None:
    matrix, x = draw(300, 300, dtype=dtype), draw(300, dtype=dtype).requires_grad_()
    wrong = matrix.clone()
    wrong[place] += 0.02
    name = rf"out\[{place[0]}\].*\[{place[1]}\]"
    with pytest.raises(GradcheckError, match=name):
        gradcheck(product(matrix, wrong, matrix), (x,))
    with pytest.raises(GradcheckError, match=name):
        gradcheck(product(matrix, matrix, wrong), (x,), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(GradcheckError, match=name):
        gradcheck(product(matrix, wrong, wrong), (x,))


CHANGES: dict[str, Rule] = {
    "clamp": lambda g: g.clamp(-1, 1),
    "abs": torch.abs,
    "single": lambda g: g * torch.where((g != 0).sum() == 1, 1.1, 1.0),
    "zeros": lambda g: g * torch.where((g == 0).any(), 1.1, 1.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_backward_that_is_not_linear_fails(name: str) -> None:
    matrix, x = draw(300, 300), draw(300).requires_grad_()
    with pytest.raises(GradcheckError):
        gradcheck(product(matrix, matrix, matrix, CHANGES[name]), (x,))


def test_a_wrong_forward_mode_that_nobody_asked_for_is_no_finding() -> None:
    matrix, x = draw(300, 300), draw(300).requires_grad_()
    assert gradcheck(product(matrix, matrix, 2 * matrix), (x,))


def test_nor_is_one_that_raises() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:  # type: ignore[override]
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            return 2 * ctx.saved_tensors[0] * g  # type: ignore[no-any-return]

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:  # type: ignore[override]
            raise KeyError("nobody asked")

    assert gradcheck(Square.apply, (draw(300).requires_grad_(),))
