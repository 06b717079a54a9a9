"""A backward that calls its module again, as the adjoint of an ODE's solver or of a fixed point does, meets the
parameters that forward had."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gradproof
from gradproof import Verdict

STEPS = 60
NAMES = ("inner.weight", "inner.bias", "outer.weight", "outer.bias")


class Solve(torch.autograd.Function):
    """z = cell(z, x), and its derivative by the implicit function theorem."""

    @staticmethod
    def forward(ctx: Any, cell: nn.Module, mistake: str, x: Tensor, *params: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(STEPS):
            z = cell(z, x)
        ctx.cell, ctx.mistake = cell, mistake
        ctx.save_for_backward(z, x, *params)
        return z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        z, x, *params = ctx.saved_tensors
        with torch.enable_grad():
            z, x = z.detach().requires_grad_(), x.detach().requires_grad_()
            value = ctx.cell(z, x)
            u = g
            for _ in range(0 if ctx.mistake == "one step" else STEPS):
                u = g + torch.autograd.grad(value, z, u, retain_graph=True)[0]
            asked = [one for one in (x, *params) if one.requires_grad]
            found = iter(torch.autograd.grad(value, asked, -u if ctx.mistake == "sign" else u))
        return None, None, *(next(found) if one.requires_grad else None for one in (x, *params))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 3), nn.Linear(3, 3)
        self.inner.weight.data *= 0.5

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(z) + self.outer(x))


class Equilibrium(nn.Module):
    def __init__(self, mistake: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.mistake = Cell(), mistake

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = Solve.apply(self.cell, self.mistake, x, *self.cell.parameters())  # type: ignore[no-untyped-call]
        return found


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell = Cell()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = checkpoint(self.cell, x, x, use_reentrant=False)
        return found


def point(dtype: torch.dtype) -> Tensor:
    return torch.randn(2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_parameters_have_their_gradients(dtype: torch.dtype) -> None:
    module = Equilibrium().to(dtype)
    before = [(one, one.detach().clone()) for one in module.parameters()]
    result = gradproof.check(module, point(dtype), seed=1)
    assert result.verdict is Verdict.RIGHT, str(result)
    for one, (own, kept) in zip(module.parameters(), before, strict=True):
        assert one is own
        assert one.grad is None
        assert torch.equal(one, kept)


@pytest.mark.parametrize(("mistake", "cause"), [("sign", "factor"), ("one step", None)])
def test_wrong_ones_are_wrong(mistake: str, cause: str | None) -> None:
    result = gradproof.check(Equilibrium(mistake).double(), point(torch.float64), seed=1)
    assert result.verdict is Verdict.WRONG
    found = [one for one in result.findings if one.verdict is Verdict.WRONG]
    assert {one.place.input.path for one in found if one.place.input} == {
        "args[0]",
        *(f"params.cell.{name}" for name in NAMES),
    }
    assert {one.diagnosis.code if one.diagnosis else None for one in found} == {cause}


def test_a_module_is_its_own_again_after_a_backward_that_raises() -> None:
    module = Equilibrium().double()
    module.mistake = "sign"
    own = dict(module.named_parameters())

    class Refuses(Cell):
        def forward(self, z: Tensor, x: Tensor) -> Tensor:
            if z.requires_grad:
                raise ArithmeticError("no derivative")
            return super().forward(z, x)

    module.cell.__class__ = Refuses
    with pytest.raises(ArithmeticError):
        gradproof.check(module, point(torch.float64), seed=1)
    assert all(one is own[name] for name, one in module.named_parameters())


def test_checkpoints_are_made_again_of_the_same_parameters() -> None:
    module = Checkpointed().double()
    assert gradproof.check(module, point(torch.float64), seed=1).ok
    assert gradproof.check(module, point(torch.float64), order=2, lowest=2, seed=1).ok
    assert gradproof.check(Checkpointed(), point(torch.float32), seed=1).ok
