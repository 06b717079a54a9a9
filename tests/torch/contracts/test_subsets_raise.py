"""A backward that raises when some inputs do not require grad."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict
from gradproof.torch import GradcheckError, gradcheck


def product(*, careless: bool) -> Any:
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
            x, y = ctx.saved_tensors
            found: dict[str, Tensor] = {}
            if ctx.needs_input_grad[0] or not careless:
                found = {"x": g * y, "y": g * x}
            return found.get("x"), found["y"]

    return Product.apply


def test_a_backward_that_raises_for_one_input_alone() -> None:
    x, y = (torch.linspace(start, 2, 3, dtype=torch.float64).requires_grad_() for start in (0, 1))
    result = gradproof.check(product(careless=True), (x, y), seed=0)
    assert result.verdict is Verdict.WRONG
    (finding,) = (one for one in result.findings if one.code == "subset")
    assert finding.sentence.startswith("backward raises when only args[1] requires grad: KeyError: 'y' (")
    with pytest.raises(GradcheckError, match=r"backward raises when only args\[1\] requires grad"):
        gradcheck(product(careless=True), (x, y))
    assert not gradcheck(product(careless=True), (x, y), raise_exception=False)
    assert gradproof.check(product(careless=False), (x, y), seed=0).ok
    assert gradcheck(product(careless=False), (x, y))
