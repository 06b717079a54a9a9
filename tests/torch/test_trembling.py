"""Derivatives that rounding makes uncertain, by larger numbers on the way or by a division by nearly nothing: never
called wrong for it, while a mistake at the same point is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Result, Verdict

F64, C128 = torch.float64, torch.complex128


def draw(*shape: int, seed: int, dtype: torch.dtype = F64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def check(fn: Callable[..., Any], *args: Any, **options: Any) -> Result:
    return gradproof.check(fn, args, order=2, lowest=2, **options)


class Softmax(torch.autograd.Function):
    """The derivative of logsumexp, whose own derivative is `slip` times what it should be."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slip: float) -> Tensor:
        ctx.save_for_backward(x.softmax(-1))
        ctx.slip = slip
        return x.softmax(-1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        return ctx.slip * p * (g - (g * p).sum(-1, keepdim=True)), None


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, slip: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.slip = slip
        return x.logsumexp(-1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g[..., None] * Softmax.apply(*ctx.saved_tensors, ctx.slip), None


@pytest.mark.parametrize("scale", [1e3, 1e4])
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_sums_of_exponentials_of_large_numbers_are_never_called_wrong(scale: float, dim: Any) -> None:
    for seed in (2, 4, 8, 12):
        x = scale * draw(3, 5, seed=seed)
        result = check(lambda x: torch.logsumexp(x, dim), x, seed=seed)
        assert result.verdict in (Verdict.RIGHT, Verdict.UNDECIDED), result


@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_a_wrong_second_derivative_at_large_numbers_is_found(scale: float) -> None:
    for seed in range(3):
        x = scale + draw(3, 4, seed=seed)
        assert check(lambda x: LogSumExp.apply(x, 1.0), x, seed=seed, modes="reverse").ok
        assert check(lambda x: LogSumExp.apply(x, 1.001), x, seed=seed, modes="reverse").verdict is Verdict.WRONG


class Scaled(torch.autograd.Function):
    """The identity; the rule takes the cotangent as `how` makes it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, how: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.how = how
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.how(g), None


WEIGHTS = ([0.0237, 0.4910], [0.9493, 0.0121], [0.0193, 0.2616])


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_divisor_near_zero_in_float32_is_not_called_nonlinear(weights: list[float]) -> None:
    def covariance(z: Tensor, w: Tensor, how: Callable[[Tensor], Tensor] = lambda g: g) -> Tensor:
        return torch.cov(Scaled.apply(z, how), correction=1, aweights=w)

    for seed in range(4):
        z, w = draw(1, 2, seed=seed, dtype=C128), torch.tensor(weights)
        result = check(covariance, z, w, seed=seed, modes="reverse")
        assert "nonlinear" not in {one.code for one in result.findings}, result
        assert result.verdict in (Verdict.RIGHT, Verdict.UNDECIDED), result
        clipped = gradproof.check(
            lambda z, w: covariance(z, w, lambda g: torch.view_as_complex(torch.view_as_real(g).clamp(-0.1, 0.1))),
            (z, w),
            seed=seed,
            modes="reverse",
        )
        assert clipped.verdict is Verdict.WRONG, clipped


def _low_rank(a: Tensor, b: Tensor) -> Tensor:
    """Singular vectors, whose phases are free, times their own conjugates."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        u, s, v = torch.svd_lowrank(a @ b.mT, q=2)
    return torch.cat([(u * s) @ v.mH, u @ u.mH], dim=-1)


@pytest.mark.parametrize("seed", range(4))
def test_modes_that_differ_by_magnified_rounding_are_adjoint(seed: int) -> None:
    a, b = 5 * draw(3, 2, seed=seed, dtype=C128), 5 * draw(3, 2, seed=100 + seed, dtype=C128)
    result = check(_low_rank, a, b, seed=seed)
    assert result.verdict in (Verdict.RIGHT, Verdict.UNDECIDED), result


class Centred(torch.autograd.Function):
    """The input without its mean over the image; the rule takes `share` of the mean of the cotangent away."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        ctx.share = share
        return x - x.mean((-1, -2), keepdim=True)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g - ctx.share * g.mean((-1, -2), keepdim=True), None


def test_zeros_among_ones_that_are_rounding_make_no_jumps() -> None:
    for seed in range(3):
        x = draw(4, 4, seed=seed)

        def identity(x: Tensor, slip: float = 0.0) -> Tensor:
            q = torch.linalg.qr(x)[0]
            return q.mT @ (q + slip * (x - x.detach()))

        assert gradproof.check(identity, (x,), seed=seed).ok
        assert gradproof.check(lambda x: identity(x, 1e-3), (x,), seed=seed).verdict is Verdict.WRONG


@pytest.mark.parametrize("norm", [torch.nn.BatchNorm2d, torch.nn.InstanceNorm2d])
def test_a_bias_before_a_normalisation_has_no_derivative_and_makes_no_jumps(norm: Callable[[int], Any]) -> None:
    """What is left of it in the value is rounding, the same at every step as that of a jump is."""
    for seed in range(4):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), norm(4), torch.nn.SiLU(), torch.nn.Conv2d(4, 2, 3)).double()
        x = draw(2, 3, 8, 8, seed=10 * seed)
        result = gradproof.check(net, (x,), wrt="params.*", seed=seed, modes="reverse")
        assert result.ok, result
        for share, verdict in ((1.0, Verdict.RIGHT), (0.999, Verdict.WRONG)):

            def centred(x: Tensor, bias: Tensor, share: float = share) -> Tensor:
                return Centred.apply(x + bias[:, None, None], share).sin()

            found = gradproof.check(centred, (x, draw(3, seed=seed)), seed=seed, modes="reverse")
            assert found.verdict is verdict, found
