"""Tensors of many numbers, which are looked at piece by piece, or by NumPy: nothing is overlooked in them."""

from __future__ import annotations

import pytest
import torch

import gradproof
from gradproof.torch.leaves import MANY, equal, identical

SIZES = (3, MANY, MANY + 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128])
@pytest.mark.parametrize("size", SIZES)
def test_tensors_that_are_the_same(size: int, dtype: torch.dtype) -> None:
    one = torch.arange(1, 2 * size + 1, dtype=torch.float64).to(dtype)
    assert equal(one, one.clone())
    assert equal(one[::2], one[::2].clone())
    assert equal(one.clone().requires_grad_(), one)
    for wrong in (0, size, 2 * size - 1):
        other = one.clone()
        other[wrong] += 1
        assert not equal(one, other)
        assert not identical(one, other)
        other[wrong] = torch.nan
        assert not equal(other, other.clone())
        assert identical(other, other.clone())
    assert not equal(one, one[None])


def test_a_lazy_negation_is_carried_out() -> None:
    one = torch.arange(2.0 * MANY, dtype=torch.float64)
    assert equal(torch._neg_view(one), -one)
    assert not equal(torch._neg_view(one), one)


@pytest.mark.parametrize("at", [0, 32_767, 32_768, 39_999])
def test_one_kink_among_many_outputs_is_named(at: int) -> None:
    x = torch.linspace(1, 2, 40_000, dtype=torch.float64)
    assert not gradproof.check(torch.abs, x, seed=0).findings
    x[at] = 0.0
    result = gradproof.check(torch.abs, x, seed=0)
    assert [(finding.code, str(finding.place)) for finding in result.findings if finding.code == "kink"] == [
        ("kink", f"d out[{at}] / d args[0][{at}]")
    ]


def test_outputs_of_very_different_sizes_are_no_kinks() -> None:
    """The largest bend by more than is usual of a typical one, but not of their own slope: no more calls are made."""
    x = torch.randn(316, 316, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cost = gradproof.check(lambda x: x.softmax(-1), x, modes="reverse", seed=0).cost
    assert (cost.evaluations, cost.pulls) == (3, 2)
