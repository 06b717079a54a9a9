"""One number made of many, as a loss is: its slope along a probe is a random walk, but its curvature adds up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict

LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "logsumexp": lambda x: x.logsumexp(0),
    "mean of squares": lambda x: (x * x).mean(),
    "sum of exponentials": lambda x: x.exp().sum(),
    "mean on an offset": lambda x: (100 + x.sin()).mean(),
}


class Spoilt(torch.autograd.Function):
    """The identity; the gradient is negated at some places."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, wrong: slice) -> Tensor:
        ctx.wrong = wrong  # type: ignore[attr-defined]
        return x.clone()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        found = g.clone()
        found[ctx.wrong] *= -1  # type: ignore[attr-defined]
        return found, None


def point(n: int) -> Tensor:
    return torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))


@pytest.mark.parametrize("n", [3_000, 100_000])
@pytest.mark.parametrize("name", LOSSES)
def test_three_evaluations_do(name: str, n: int) -> None:
    result = gradproof.check(LOSSES[name], point(n), modes="reverse", effort=1, seed=0)
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations == 3


@pytest.mark.parametrize("n", [3_000, 100_000])
@pytest.mark.parametrize("name", LOSSES)
def test_a_sign_is_missed_nowhere(name: str, n: int) -> None:
    fn = LOSSES[name]
    wrong = gradproof.check(
        lambda x: fn(Spoilt.apply(x, slice(5, n // 10))), point(n), modes="reverse", effort=1, seed=0
    )
    assert wrong.verdict is Verdict.WRONG


def test_a_kink_shows_among_many() -> None:
    x = point(20_000)
    x[7] = 0.0
    result = gradproof.check(lambda x: (x.abs() + x * x).sum(), x, modes="reverse", effort=1, seed=0)
    assert result.verdict is Verdict.RIGHT
    assert "kink" in {finding.code for finding in result.findings}


def test_an_empty_output_beside_one_that_does_not_depend() -> None:
    result = gradproof.check(lambda x: (0 * x + 1, x[:0]), point(300), modes="reverse", effort=1, seed=0)
    assert result.verdict is Verdict.RIGHT
