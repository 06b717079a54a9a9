"""Derivatives of very different sizes in one tensor: mistakes in the small ones show, and their rounding does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import batch_norm, cross_entropy, layer_norm

import gradproof
from gradproof import Verdict

Make = Callable[[torch.Generator], tuple[Callable[..., Tensor], tuple[Tensor, ...]]]


class Energy(torch.autograd.Function):
    """ratio p0^2 + sin p1, with the second derivative times a factor."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, ratio: float, factor: float) -> Tensor:
        ctx.save_for_backward(p)
        ctx.numbers = ratio, factor
        return ratio * p[0] ** 2 + p[1].sin()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (p,), (ratio, factor) = ctx.saved_tensors, ctx.numbers
        return grad * torch.stack([2.0 * ratio * p[0], factor * p[1].cos()]), None, None


def energy(ratio: float, factor: float) -> gradproof.Result:
    one = torch.ones(2, dtype=torch.float64)
    return gradproof.check(lambda p: Energy.apply(p, ratio, factor), one, modes="reverse", seed=0)


@pytest.mark.parametrize("ratio", [1e2, 1e5, 1e6])
def test_the_sign_of_a_small_derivative(ratio: float) -> None:
    assert energy(ratio, 1.0).ok
    for factor in (-1.0, 0.0):
        result = energy(ratio, factor)
        assert result.verdict is Verdict.WRONG
        assert [str(one.place) for one in result.wrong] == ["d out / d args[0][1]"]


def test_a_derivative_beyond_all_digits_is_remarked_upon() -> None:
    for factor in (1.0, -1.0):
        result = energy(1e9, factor)
        assert result.ok
        assert [(one.code, str(one.place)) for one in result.findings] == [("vacuous", "args[0][1]")]


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def rotated(generator: torch.Generator, decades: int) -> Tensor:
    """A matrix whose condition is ten to this power."""
    basis = torch.linalg.qr(normal(generator, 4, 4))[0]
    return basis @ torch.diag(torch.logspace(0, decades, 4, dtype=torch.float64)) @ basis.T


def biased(x: Tensor, w: Tensor) -> Tensor:
    """The last column of w is a bias, which a normalisation takes away."""
    return batch_norm(x @ w[:, :3].T + w[:, 3], None, None, training=True).pow(3).sum()


RIGHT: dict[str, Make] = {
    "softmax": lambda g: (lambda x: torch.softmax(x, -1), (20 * normal(g, 2, 5),)),
    "cross_entropy": lambda g: (lambda x: cross_entropy(x, torch.arange(4)), (20 * normal(g, 4, 5),)),
    "layer_norm": lambda g: (lambda x, w: layer_norm(x, (5,), w), (1e3 * normal(g, 2, 5), normal(g, 5))),
    "bias": lambda g: (biased, (normal(g, 5, 3), normal(g, 4, 4))),
    "inv": lambda g: (torch.linalg.inv, (rotated(g, 5),)),
    "solve": lambda g: (torch.linalg.solve, (rotated(g, 5), normal(g, 4))),
    "eigvalsh": lambda g: (lambda a: torch.linalg.eigvalsh(a + a.T), (rotated(g, 5),)),
    "svdvals": lambda g: (torch.linalg.svdvals, (rotated(g, 5),)),
    "diagonal": lambda g: ((torch.eye(5).double() + 1e-7 * normal(g, 5, 5)).matmul, (normal(g, 5),)),
    "complex": lambda g: (
        lambda z: (torch.logspace(0, -7, 4) * z).exp(),
        (torch.complex(normal(g, 4), normal(g, 4)),),
    ),
    "tanh": lambda g: (torch.tanh, (8 * normal(g, 8),)),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_called_wrong(name: str, order: int) -> None:
    for seed in range(4):
        fn, args = RIGHT[name](torch.Generator().manual_seed(seed))
        result = gradproof.check(fn, args, order=order, lowest=order, seed=seed, contracts="none")
        assert result.verdict is not Verdict.WRONG, (seed, str(result))


class Entry(torch.autograd.Function):
    """The identity, with the gradient of one entry times a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, place: int, factor: float) -> Tensor:
        ctx.numbers = place, factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        place, factor = ctx.numbers
        grad = grad.clone()
        grad[place] *= factor
        return grad, None, None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [6, 300])
def test_the_sign_of_a_small_derivative_by_probes(size: int, seed: int) -> None:
    """An entry that the bisection ends at is held to its own size, too."""
    units = torch.ones(size, dtype=torch.float64)
    units[: size // 2] = 1e6
    x = torch.linspace(0.5, 1.5, size, dtype=torch.float64)

    def result(factor: float) -> gradproof.Result:
        return gradproof.check(
            lambda x: torch.sin(Entry.apply(x, size // 2, factor)) * units, x, modes="reverse", effort=4, seed=seed
        )

    assert result(1.0).ok
    for factor in (-1.0, 0.0):
        wrong = result(factor)
        assert wrong.verdict is Verdict.WRONG
        assert [str(one.place.input) for one in wrong.wrong] == [f"args[0][{size // 2}]"]
