"""Losses of confident predictions: the logarithm of a probability of one, of which the format keeps next to nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import Verdict

Change = Callable[[Tensor], Tensor]


class Changed(torch.autograd.Function):
    """The identity, with rules of its own."""

    @staticmethod
    def forward(ctx, x: Tensor, pull: Change, push: Change) -> Tensor:
        ctx.pull, ctx.push = pull, push
        return x.clone()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.pull(grad), None, None

    @staticmethod
    def jvp(ctx, tangent: Tensor, *_: None) -> Tensor:
        return ctx.push(tangent).clone()


def logits(seed: int, size: float, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (size * torch.randn(3, 5, dtype=torch.float64, generator=generator)).to(dtype)


# Those of float32: the loss is zero, and its gradient is what float64 would show. Those of float64: the loss is a few
# roundings of one, and so is what forward mode makes of it, whose own terms are tangents.
@pytest.mark.parametrize(
    ("seed", "size", "dtype"),
    [
        *((seed, size, torch.float32) for seed, size in [(10, 40.0), (38, 40.0), (21, 80.0)]),
        *((seed, size, torch.float64) for seed, size in [(0, 80.0), (9, 80.0), (8, 300.0), (17, 300.0)]),
    ],
)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_loss_that_is_next_to_nothing_is_not_called_wrong(
    seed: int, size: float, dtype: torch.dtype, reduction: str
) -> None:
    x = logits(seed, size, dtype)
    target = x.argmax(1)

    def loss(x: Tensor) -> Tensor:
        return functional.cross_entropy(x, target, reduction=reduction)

    assert gradproof.check(loss, x, seed=seed).verdict in (Verdict.RIGHT, Verdict.UNDECIDED)
    doubtful = x.clone()
    doubtful[0] = x[0] / size  # a prediction that is not confident
    assert gradproof.check(loss, doubtful, seed=seed).verdict is Verdict.RIGHT
    for change in (torch.neg, lambda grad: 1.01 * grad):
        wrong = gradproof.check(lambda x, change=change: loss(Changed.apply(x, change, change)), doubtful, seed=seed)
        assert wrong.verdict is Verdict.WRONG


def test_an_output_that_is_small_but_moves_smoothly_excuses_no_forward_rule() -> None:
    x = logits(0, 1.0, torch.float64)

    def small(push: Change, x: Tensor) -> Tensor:
        return 1e-20 * Changed.apply(torch.sigmoid(x - 30.0), torch.clone, push)

    assert gradproof.check(lambda x: small(torch.clone, x), x, seed=0).verdict is Verdict.RIGHT
    wrong = gradproof.check(lambda x: small(lambda t: t + 0.02 * t.abs(), x), x, seed=0)
    assert wrong.verdict is Verdict.WRONG
    wrong = gradproof.check(lambda x: small(lambda t: t.clamp(-1e-14, 1e-14), x), x, seed=0)
    assert wrong.verdict is Verdict.WRONG


def test_an_output_of_zero_that_does_not_move_excuses_no_clear_gradient() -> None:
    """In float32 alone: the copy in float64 is not what is asked there."""

    def stairs(x: Tensor) -> Tensor:
        return x.float().round() if x.dtype != torch.float32 else x.round()

    x = logits(0, 0.01, torch.float32)
    assert gradproof.check(stairs, x, seed=0).verdict is Verdict.RIGHT
    assert gradproof.check(lambda x: stairs(x) + 1e-3 * (x - x.detach()), x, seed=0).verdict is Verdict.WRONG
