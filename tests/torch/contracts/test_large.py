"""Programs that are probed: pulls that the probes make serve the contracts too, and hide nothing from them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


class Drifting:
    """A hook that multiplies by a little more each time, or by one."""

    def __init__(self, drift: float) -> None:
        self.factor, self.drift = 1.0, drift

    def __call__(self, gradient: Tensor) -> Tensor:
        self.factor += self.drift
        return gradient * self.factor

    def sin(self, x: Tensor) -> Tensor:
        y = x.sin()
        if y.requires_grad:
            y.register_hook(self)
        return 2.0 * y


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_a_backward_that_drifts_is_named_and_its_twin_is_right(size: int) -> None:
    right = gradproof.check(Drifting(0.0).sin, (draw(size),), modes="reverse", seed=0)
    assert right.ok
    # The two pulls of the probe, of one cotangent loud and quiet, are the same pull twice.
    assert right.cost.pulls == 2
    wrong = gradproof.check(Drifting(1e-9).sin, (draw(size),), modes="reverse", seed=0)
    assert [finding.code for finding in wrong.findings] == ["nondeterministic"]


def looked_up(*, sparse: bool) -> Callable[[Tensor], Tensor]:
    return lambda table: functional.embedding(torch.arange(60), table, sparse=sparse)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_sparse_gradient_of_a_dense_table_is_right(sparse: bool) -> None:
    result = gradproof.check(looked_up(sparse=sparse), (draw(2000, 40),), seed=0)
    assert result.ok
    assert not result.findings


def test_several_outputs_are_pulled_one_by_one_and_once_together() -> None:
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin() * y.sum(), x * y.cos()

    result = gradproof.check(both, (draw(20_000), draw(20_000) + 1.0), modes="reverse", seed=0)
    assert result.ok
    assert result.cost.pulls == 3
