"""Forward mode that raises: the verdict on reverse mode is given all the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict
from gradproof.torch import gradcheck

X = torch.linspace(-1, 1, 4, dtype=torch.float64)


def written(factor: float, *, saved: bool) -> Any:
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:  # type: ignore[override]
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            if saved:
                ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            return factor * g * ctx.saved_tensors[0].cos()

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:  # type: ignore[override]
            return t * ctx.saved_tensors[0].cos()

    return Sine.apply


def codes(result: gradproof.Result) -> set[str]:
    return {finding.code for finding in result.findings}


def test_a_written_rule_that_raises_is_wrong_and_named() -> None:
    result = gradproof.check(written(1.0, saved=False), X, seed=0)
    assert result.verdict is Verdict.WRONG
    (finding,) = (one for one in result.findings if one.code == "raises")
    assert "forward mode has a rule, but it raised IndexError" in finding.sentence
    assert "in jvp" in finding.sentence
    assert all(one.verdict is Verdict.RIGHT for one in result.comparisons)
    assert gradproof.check(written(1.0, saved=True), X, seed=0).ok


def test_it_does_not_hide_a_wrong_backward() -> None:
    result = gradproof.check(written(2.0, saved=False), X, seed=0)
    assert {one.verdict for one in result.comparisons} == {Verdict.WRONG}
    assert "raises" in codes(result)


@pytest.mark.parametrize("size", [4, 4_000])
def test_a_function_that_raises_only_for_dual_numbers_has_no_forward_mode(size: int) -> None:
    def picky(x: Tensor) -> Tensor:
        wanted = [one for one in (x,) if one.requires_grad]
        return wanted[0].sin()

    result = gradproof.check(picky, torch.linspace(-1, 1, size, dtype=torch.float64), seed=0)
    assert result.verdict is Verdict.RIGHT
    assert any("forward mode does not exist here: it raised IndexError" in one.sentence for one in result.findings)


def test_group_norm_of_channels_last() -> None:
    norm = torch.nn.GroupNorm(2, 4).double()
    x = torch.randn(2, 4, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert gradproof.check(norm, (x.contiguous(memory_format=torch.channels_last),), seed=0).ok


def test_the_drop_in_raises_what_torch_raises() -> None:
    x = X.clone().requires_grad_()
    with pytest.raises(IndexError):
        gradcheck(written(1.0, saved=False), (x,), check_forward_ad=True)
    assert gradcheck(written(1.0, saved=False), (x,))
