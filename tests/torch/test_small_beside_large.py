"""What is said of entries that are wrong by little of their block's size, and by much of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gradproof
from gradproof import Verdict

SMALL = 1e-4


class Sinc(torch.autograd.Function):
    """sin(x) / x with a series near zero, whose derivative there has `sign` times the right sign."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sign: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.sign = sign
        safe = torch.where(x.abs() < SMALL, 1.0, x)
        return torch.where(x.abs() < SMALL, 1 - x * x / 6, safe.sin() / safe)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        safe = torch.where(x.abs() < SMALL, 1.0, x)
        far = (safe.cos() * safe - safe.sin()) / safe**2
        return g * torch.where(x.abs() < SMALL, -ctx.sign * x / 3, far), None


class PowerSpectrum(torch.autograd.Function):
    """|rfft(x)|^2, whose adjoint weighs the bin at zero by `weight`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: float) -> Tensor:
        spectrum = torch.fft.rfft(x)
        ctx.save_for_backward(spectrum)
        ctx.length, ctx.weight = x.shape[-1], weight
        return spectrum.abs() ** 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (spectrum,) = ctx.saved_tensors
        once = torch.full((spectrum.shape[-1],), 0.5, dtype=g.dtype)
        once[0], once[-1] = ctx.weight, 1.0
        return ctx.length * torch.fft.irfft(2 * g * spectrum * once, n=ctx.length), None


def test_the_wrong_sign_near_zero_does_not_agree_to_some_digits() -> None:
    x = torch.tensor([0.0, 1e-5, 2e-5, 0.5, 2.0], dtype=torch.float64)
    assert gradproof.check(Sinc.apply, (x, 1.0), seed=0).verdict is Verdict.RIGHT
    result = gradproof.check(Sinc.apply, (x, -1.0), seed=0)
    assert result.verdict is Verdict.WRONG
    worst = result.comparisons[0].worst
    assert worst is not None
    assert worst.place.input is not None
    assert worst.place.input.index in {(1,), (2,)}
    assert "agree to" not in str(result)


def test_half_of_a_faint_row_does_not_agree_to_some_digits() -> None:
    x = torch.tensor([[1.0, -0.7, 0.4, -0.69]], dtype=torch.float64)  # sums to nearly zero: the first bin is faint
    assert gradproof.check(PowerSpectrum.apply, (x, 1.0), seed=0).verdict is Verdict.RIGHT
    result = gradproof.check(PowerSpectrum.apply, (x, 0.5), seed=0)
    assert result.verdict is Verdict.WRONG
    assert result.comparisons[0].wrong == 4
    assert "agree to" not in str(result)


def test_what_is_a_little_off_everywhere_does() -> None:
    x = torch.linspace(-2.0, 2.0, 5, dtype=torch.float64)

    class Nearly(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * x.exp() * (1 + 1e-4 * (7 * x).sin())

    result = gradproof.check(Nearly.apply, x, seed=0)
    assert result.verdict is Verdict.WRONG
    assert "They agree to 4 digits" in str(result)


def test_a_shift_that_brings_in_something_else_says_how_many_it_explains() -> None:
    x = torch.linspace(0.3, 1.5, 12, dtype=torch.float64).view(4, 3)

    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return (x**3).sum()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * torch.cat([torch.full((1, 3), 7.0, dtype=x.dtype), 3 * x[:-1] ** 2])

    said = str(gradproof.check(Shifted.apply, x, seed=0))
    assert "12 of 12 entries wrong" in said
    assert "is shifted by one along axis 0 (explains 9 of the 12 wrong entries)" in said
