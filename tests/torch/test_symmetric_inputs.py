"""Functions of symmetric matrices without spaces=: WRONG, with the cause and the way out; and real mistakes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict
from gradproof.spaces import Hermitian, Symmetric


def positive(n: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    a = torch.randn(n, n, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    return a @ a.mH + torch.eye(n, dtype=dtype)


def log_prob(m: Tensor) -> Tensor:
    normal = torch.distributions.MultivariateNormal(torch.zeros(4, dtype=m.dtype), m, validate_args=False)
    return normal.log_prob(torch.ones(4, dtype=m.dtype))


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        w, v = torch.linalg.eigh(a)
        ctx.save_for_backward(v, w)
        return w

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        v, w = ctx.saved_tensors
        return v @ torch.diag(g * (1 + 0.1 * w.sin())) @ v.T


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fn", [torch.linalg.cholesky, torch.linalg.eigvalsh, log_prob])
@pytest.mark.parametrize("modes", ["reverse", "forward"])
def test_the_cause_is_the_space(fn: Any, modes: str, seed: int) -> None:
    a = positive(4, seed)
    result = gradproof.check(fn, a, seed=1, modes=modes)
    if result.verdict is Verdict.WRONG:
        assert {f.diagnosis.code for f in result.wrong if f.diagnosis} == {"symmetric-input"}
        assert all("spaces={'args[0]': gradproof.spaces.Symmetric()}" in f.hint for f in result.wrong)
    else:
        assert modes == "forward"
    assert gradproof.check(fn, a, seed=1, modes=modes, spaces={"args[0]": Symmetric()}).verdict is Verdict.RIGHT


def test_complex_ones_are_hermitian() -> None:
    a = positive(3, 0, torch.complex128)
    result = gradproof.check(torch.linalg.eigvalsh, a, seed=1, modes="reverse")
    assert {f.diagnosis.code for f in result.wrong if f.diagnosis} == {"symmetric-input"}
    assert "gradproof.spaces.Hermitian()" in result.wrong[0].hint
    spaces = {"args[0]": Hermitian()}
    assert gradproof.check(torch.linalg.eigvalsh, a, seed=1, modes="reverse", spaces=spaces).verdict is Verdict.RIGHT


def test_a_mistake_along_symmetric_directions_is_none_of_the_space() -> None:
    result = gradproof.check(Wrong.apply, positive(4, 0), seed=1)
    assert result.verdict is Verdict.WRONG
    assert not any(f.diagnosis and f.diagnosis.code == "symmetric-input" for f in result.wrong)
