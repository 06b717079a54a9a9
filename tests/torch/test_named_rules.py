"""A wrong rule somewhere in a network is named: all wrong gradients come through it, and no right one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import gradproof
from gradproof import Verdict

D = 6


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return (x * w).sin()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        return g * (x * w).cos() * w, (g * (x * w).cos() * x).sum(0)


class Bad(Scale):
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        x, _ = ctx.saved_tensors
        gx, gw = Scale.backward(ctx, g)
        return gx + 0.1 * g * x.sin(), gw


class Net(nn.Module):
    """Three layers, each with a rule after it; the parameters of a rule are right even where its argument is not."""

    def __init__(self, rules: list[Any]) -> None:
        super().__init__()
        self.rules = rules
        self.layers = nn.ModuleList(nn.Linear(D, D) for _ in rules)
        self.scales = nn.ParameterList(torch.rand(D) + 0.5 for _ in rules)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for rule, layer, scale in zip(self.rules, self.layers, self.scales, strict=True):
            x = x + rule.apply(layer(x).tanh(), scale)
        return x.square().sum()


def net(*rules: Any) -> Net:
    torch.manual_seed(0)
    return Net(list(rules)).double()


def x() -> torch.Tensor:
    return torch.randn(3, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("effort", ["exhaustive", 1])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_wrong_one_of_several_rules_is_named(effort: Any, place: int) -> None:
    rules: list[Any] = [Scale] * 3
    rules[place] = Bad
    result = gradproof.check(net(*rules), x(), seed=1, effort=effort)
    assert result.verdict is Verdict.WRONG
    causes = {f.diagnosis.code: f.diagnosis.sentence for f in result.wrong if f.diagnosis}
    assert "the backward of Bad, as the gradient of tensor 0 of its arguments, and no right one does" in causes["rule"]
    assert "Scale" not in causes["rule"]
    right = {c.input.path for c in result.comparisons if c.verdict is Verdict.RIGHT}
    assert {f"params.scales.{k}" for k in range(place, 3)} <= right


def test_right_rules_are_right() -> None:
    assert gradproof.check(net(Scale, Scale, Scale), x(), seed=1).verdict is Verdict.RIGHT


def test_who_checks_a_rule_by_itself_is_not_told_its_name() -> None:
    result = gradproof.check(Bad.apply, (x(), torch.rand(D, dtype=torch.float64)), seed=1)
    assert result.verdict is Verdict.WRONG
    assert not any(f.diagnosis and f.diagnosis.code == "rule" for f in result.wrong)


class Unprojected(torch.autograd.Function):
    """The root mean square of each row made one; the derivative of that is left out."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
        size = (x.square().mean(-1, keepdim=True) + eps).sqrt()
        ctx.save_for_backward(x / size, size, w)
        return x / size * w

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        unit, size, w = ctx.saved_tensors
        return g * w / size, (g * unit).sum(0), None


@pytest.mark.parametrize("around", [False, True])
def test_a_rule_behind_a_wrapper_keeps_a_cause_of_its_own(around: bool) -> None:
    """Its name says more only where there is something around it."""

    def fn(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = Unprojected.apply(x, w, 1e-5)
        return y.sin() if around else y

    result = gradproof.check(fn, (x(), torch.rand(D, dtype=torch.float64) + 0.5), seed=1)
    assert result.verdict is Verdict.WRONG
    assert str(result.wrong[0].place.input).startswith("args[0]")
    assert [f.diagnosis.code for f in result.wrong if f.diagnosis] == ["rule" if around else "rank-one"]


def test_a_deep_graph_is_no_matter() -> None:
    def deep(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x + Bad.apply(x, torch.ones(D, dtype=x.dtype))
        for _ in range(3_000):
            x = x * 1.0
        return x * y

    result = gradproof.check(deep, (x(), x()), seed=1, modes="reverse", contracts="none")
    assert any(f.diagnosis and "Bad" in f.diagnosis.sentence for f in result.wrong)
