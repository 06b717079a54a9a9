"""Gradients that are zero because their terms cancel: what is left of them is rounding, and no size to judge by."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof.result import Verdict
from gradproof.torch import gradgradcheck

F64 = torch.float64


def _pair(*shape: int, dtype: torch.dtype = F64) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(shape, generator=generator, dtype=F64).to(dtype).requires_grad_()


def _correlation(x: Tensor) -> Tensor:
    """Of two observations it is 1 or -1, whatever they are: all its derivatives are zero."""
    a = x - x.mean()
    return (a[0] * a[1]) / (a * a).sum() * 2


class Curved(torch.autograd.Function):
    """Its gradient is zero at first sight, and so is the second derivative; `slip` is what the latter is off by."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slip: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slip = slip
        return _correlation(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return Slope.apply(x, g, ctx.slip), None


class Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, g: Tensor, slip: float) -> Tensor:
        ctx.slip = slip
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(_correlation(leaf), leaf, g)
        return gradient

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Tensor, Tensor, None]:
        return ctx.slip * h, torch.zeros((), dtype=h.dtype), None


@pytest.mark.parametrize("seed", range(3))
def test_second_derivatives_that_are_rounding_are_right(seed: int) -> None:
    result = gradproof.check(_correlation, _pair(2), order=2, seed=seed)
    assert result.verdict is Verdict.RIGHT, str(result)


def test_weights_of_two_observations_do_not_count() -> None:
    """Terms of float32 in float64 sums cancel but for float32's rounding."""
    weights = torch.tensor([0.26, 0.37], dtype=torch.float32).requires_grad_()
    result = gradproof.check(torch.cov, _pair(3, 2), {"correction": 1, "aweights": weights}, order=2, seed=0)
    assert result.verdict is Verdict.RIGHT, str(result)


def test_a_second_derivative_beyond_rounding_is_wrong() -> None:
    right = gradproof.check(lambda x: Curved.apply(x, 0.0), _pair(2), order=2, modes="reverse", seed=0)
    assert right.verdict is Verdict.RIGHT, str(right)
    wrong = gradproof.check(lambda x: Curved.apply(x, 1e-6), _pair(2), order=2, modes="reverse", seed=0)
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    assert any(str(one.input.path) == "args[0]" for one in wrong.comparisons if one.verdict is Verdict.WRONG)


class Turned(torch.autograd.Function):
    """The gradient of z is exp(z - log exp z) = 1. Where the phase of z is large, it and its derivative are rounded as
    that phase is; `slip` adds a derivative that is not there, of a rounding's size, and smooth."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, slip: float) -> Tensor:
        ctx.save_for_backward(z)
        ctx.slip = slip
        return z.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (z,) = ctx.saved_tensors
        return Turn.apply(z, g, ctx.slip), None


class Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, g: Tensor, slip: float) -> Tensor:
        ctx.save_for_backward(z, g)
        ctx.slip = slip
        return g.clone()

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Tensor, Tensor, None]:
        z, g = ctx.saved_tensors
        there_and_back = torch.sin(z.imag - torch.log(torch.exp(1j * z.imag)).imag)
        return h * g.conj() * (there_and_back + ctx.slip * z.imag), h, None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("slip", [0.0, 1e-15])
def test_a_derivative_that_jumps_about_from_point_to_point_is_rounding(slip: float, seed: int) -> None:
    z = torch.tensor([1.0 + 1103817.4j, 2.0 + 903817.1j], dtype=torch.complex128, requires_grad=True)
    result = gradproof.check(lambda z: Turned.apply(z, slip), z, order=2, modes="reverse", contracts="none", seed=seed)
    assert result.verdict is (Verdict.UNDECIDED if slip == 0 else Verdict.WRONG), str(result)
    if slip:
        assert {entry.place.input.path for one in result.comparisons for entry in one.found} == {"args[0]"}


@pytest.mark.parametrize("seed", [25, 26, 42, 43])
def test_points_nearby_that_are_rounded_alike_by_luck(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    z = torch.complex(*(1e4 * torch.randn(3, dtype=F64, generator=generator) for _ in range(2)))
    result = gradproof.check(lambda z: z.logsumexp(0), z, order=2, modes="reverse", seed=seed)
    assert result.verdict is not Verdict.WRONG, str(result)
    wrong = gradproof.check(lambda z: Turned.apply(z.logsumexp(0), 1e-12), z, order=2, modes="reverse", seed=seed)
    assert wrong.verdict is Verdict.WRONG, str(wrong)


@pytest.mark.parametrize("seed", range(3))
def test_second_derivatives_are_symmetric_up_to_rounding(seed: int) -> None:
    """Of two observations with weights in float32: those with respect to weights are what is left of large terms."""
    x = torch.tensor(
        [
            [8.7798 + 5.0328j, -2.4862 + 1.1852j],
            [4.3416 - 8.9197j, 1.5049 + 1.2548j],
            [-8.1309 - 6.0659j, 8.9763 + 1.8j],
        ],
        dtype=torch.complex128,
        requires_grad=True,
    )
    weights = torch.tensor([0.1743, 0.4743], requires_grad=True)
    result = gradproof.check(lambda x, w: torch.cov(x, aweights=w), (x, weights), order=2, modes="reverse", seed=seed)
    assert "asymmetric" not in {finding.code for finding in result.findings}, str(result)


@pytest.mark.parametrize("seed", range(3))
def test_what_underflows_is_zero(seed: int) -> None:
    """1e-314 against a value that is 0: neither is wrong."""
    x = torch.tensor([-38.0, -39.0], dtype=F64, requires_grad=True)
    for shift in (0.0, 30.0, 33.0):
        assert gradproof.check(torch.special.ndtr, x + shift, seed=seed).verdict is Verdict.RIGHT
    wrong = gradproof.check(lambda x: Doubled.apply(torch.special.ndtr(x)), x + 33, seed=seed)
    assert wrong.verdict is Verdict.WRONG


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g


class Weighted(torch.autograd.Function):
    """A weight times `rest` of the other argument. The rule says that there is none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, rest: Any) -> Tensor:
        return w * rest(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
        return torch.zeros_like(g), torch.zeros_like(g), None


def _rounding(x: Tensor) -> Tensor:
    return (300.0 * x + 1e3 / 3) - 1e3 / 3 - 300.0 * x


@pytest.mark.parametrize("seed", range(6))
def test_a_slope_that_is_rounding_of_another_argument(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, w = (torch.rand(1, generator=generator, dtype=F64) + 0.5 for _ in range(2))
    right = gradproof.check(Weighted.apply, (x, w, _rounding), seed=seed, modes="reverse")
    assert right.verdict is not Verdict.WRONG, str(right)
    wrong = gradproof.check(Weighted.apply, (x, w, lambda x: 1e-13 * x), seed=seed, modes="reverse")
    assert wrong.verdict is Verdict.WRONG, str(wrong)
    assert str(wrong.comparisons[1].worst.place.input) == "args[1][0]"


@pytest.mark.parametrize("fast", [False, True])
def test_the_norm_of_one_number_at_second_order(fast: bool) -> None:
    """It is constant; what its rounding leaves is linear in the cotangent."""

    def norm(x: Tensor, w: Tensor) -> Tensor:
        return torch.native_layer_norm(x, (1,), w, None, 1e-5)[0]

    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        x, w = (torch.randn(1, generator=generator, dtype=F64).requires_grad_() for _ in range(2))
        assert gradgradcheck(norm, (x, w), fast_mode=fast)


@pytest.mark.parametrize("limited", [False, True])
def test_backward_by_logarithms(limited: bool) -> None:
    """torch's own rule for logcumsumexp adds the logarithms of cotangents to the numbers: where those are large, what
    cancels is left with another rounding for every cotangent, although the points next to this one all agree."""

    def summed(x: Tensor) -> Tensor:
        y = x.logcumsumexp(0)
        if limited and y.requires_grad:
            y.register_hook(lambda g: g.clamp(-10.0, 10.0))
        return y

    for seed in range(3):
        x = 5.0 * torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        x[0] = 1e4
        result = gradproof.check(summed, x, order=2, modes="reverse", seed=seed)
        if limited:
            assert [one.code for one in result.findings if one.verdict is Verdict.WRONG][:1] == ["nonlinear"], str(
                result
            )
        else:
            assert result.verdict is Verdict.RIGHT, str(result)
