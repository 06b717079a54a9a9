"""Functions whose noise hides all but the first digits of their derivatives: causes that need no more are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradproof import Verdict, check
from gradproof.result import Result

Change = Callable[[Tensor], Tensor]
LEVELS = (1e-6, 1e-5)


def without(row: int) -> Change:
    return lambda g: torch.cat([g[:row], 0 * g[row : row + 1], g[row + 1 :]])


CAUSES: dict[str, tuple[Change, str, str]] = {
    "twice": (lambda g: 2 * g, "factor", "2 times"),
    "half": (lambda g: g / 2, "factor", "1/2 of"),
    "sign": (torch.neg, "factor", "wrong sign"),
    "nothing": (torch.zeros_like, "detached", "zero everywhere"),
    "transposed": (torch.t, "transposed", "transpose"),
    "flipped": (lambda g: g.flip(0), "permuted", "reversed"),
    "row": (without(2), "slice", "args[0][2, :]"),
}


def noise(x: Tensor, size: int) -> Tensor:
    """Between -1 and 1, another number for every change of the argument, however small."""
    weighed = (x.double() * (1 + torch.arange(x.numel()).reshape(x.shape))).sum()
    return (torch.sin(1e8 * weighed + torch.arange(size)) * 4.4e12).frac()


def noisy(change: Change, level: float, power: int = 3) -> Callable[[Tensor], Tensor]:
    """Sums of powers over columns, with noise; the gradient as `change` has it."""

    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            y = (x**power).sum()
            return y + (level * noise(x, 1).reshape(())).to(y.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return change(g * power * x ** (power - 1))

    return Noisy.apply  # type: ignore[no-any-return]


def drawn(seed: int) -> Tensor:
    return 0.7 + torch.rand(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def codes(result: Result) -> list[str]:
    return [one.diagnosis.code if one.diagnosis else "" for one in result.findings if one.code == "mismatch"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", list(CAUSES))
def test_a_plain_cause_is_named(name: str, level: float) -> None:
    change, code, words = CAUSES[name]
    for seed in range(3):
        result = check(noisy(change, level), drawn(seed), seed=seed)
        assert result.verdict is Verdict.WRONG, str(result)
        assert codes(result) == [code], str(result)
        assert words in str(result)


@pytest.mark.parametrize("level", LEVELS)
def test_the_right_one_is_not_accused(level: float) -> None:
    for seed in range(3):
        assert check(noisy(torch.clone, level), drawn(seed), seed=seed).verdict is not Verdict.WRONG


@pytest.mark.parametrize("level", [*LEVELS, 1e-3])
def test_what_is_no_plain_cause_gets_none(level: float) -> None:
    generator = torch.Generator().manual_seed(0)
    factors = 2 + torch.randn(5, 5, dtype=torch.float64, generator=generator)
    for change in (lambda g: factors * g, lambda g: 2.3 * g):
        for seed in range(3):
            result = check(noisy(change, level), drawn(seed), seed=seed)
            assert result.verdict is Verdict.WRONG, str(result)
            assert codes(result) == [""], str(result)


def test_the_noise_is_said() -> None:
    result = check(noisy(torch.neg, 1e-5), drawn(0), seed=0)
    assert "differences are only known to ±" in str(result)
