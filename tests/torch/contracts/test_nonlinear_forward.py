"""Forward rules that are not linear in the tangent: unit tangents do not tell them from right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import GradcheckError, Verdict
from gradproof.settings import Effort
from gradproof.torch import gradcheck

Rule = Callable[[Tensor], Tensor]
RULES: dict[str, Rule] = {
    "absolute": torch.abs,
    "clipped": lambda t: t.clamp(-1, 1),
    "clipped far out": lambda t: t.clamp(-1000, 1000),
    "one-sided": torch.relu,
    "of the square": lambda t: t * t.abs(),
    "of the sum's sign": lambda t: t * t.sum().sign(),
    "cut off below": lambda t: torch.where(t.abs() < 0.05, torch.zeros_like(t), t),
    "of the direction": lambda t: t / t.norm(),
    "constant": torch.ones_like,
}
CAUSES = {
    "absolute": "tangent-abs",
    "clipped": "tangent-clipped",
    "clipped far out": "tangent-clipped",
    "one-sided": "tangent-one-sided",
    "of the square": "tangent-power",
    "of the sum's sign": "tangent-abs",
    "cut off below": "tangent-threshold",
    "of the direction": "tangent-sign",
    "constant": "tangent-ignored",
}


def written(rule: Rule) -> Callable[[Tensor], Tensor]:
    """sin, with a jvp that bends its tangent."""

    class Written(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * ctx.saved_tensors[0].cos()

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            return rule(t) * ctx.saved_tensors[0].cos()

    return Written.apply  # type: ignore[no-any-return]


def draw(size: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(size)).to(dtype)


@pytest.mark.parametrize("modes", [None, "forward"])
@pytest.mark.parametrize("effort", ["exhaustive", 1])
@pytest.mark.parametrize("size", [1, 5, 60, 400])
@pytest.mark.parametrize("name", RULES)
def test_it_is_named_with_the_place(name: str, size: int, effort: Effort, modes: str | None) -> None:
    if (name, effort) == ("cut off below", 1):
        pytest.skip("a probe is not pushed that small")
    for seed in range(3):
        result = gradproof.check(written(RULES[name]), draw(size), modes=modes, effort=effort, seed=seed)
        assert result.verdict is Verdict.WRONG
        (finding,) = [one for one in result.findings if one.code == "nonlinear-forward"]
        assert finding.place.output is not None
        assert finding.place.output.path == "out"
        assert finding.diagnosis is not None, f"seed {seed}: {result}"
        assert finding.diagnosis.code == CAUSES[name]
        assert finding.diagnosis.hint == finding.hint


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("effort", ["exhaustive", 1])
@pytest.mark.parametrize("size", [1, 5, 60, 400, 20_000])
def test_the_right_twin_passes(size: int, effort: Effort, dtype: torch.dtype) -> None:
    if size > 400 and effort == "exhaustive":
        pytest.skip("too many entries")
    fn = written(lambda t: t)
    for modes in (None, "forward"):
        assert gradproof.check(fn, draw(size, dtype), modes=modes, effort=effort, seed=size).verdict is Verdict.RIGHT


@pytest.mark.parametrize("name", RULES)
def test_in_float32_too(name: str) -> None:
    result = gradproof.check(written(RULES[name]), draw(30, torch.float32), seed=0)
    (finding,) = [one for one in result.wrong if one.code == "nonlinear-forward"]
    assert finding.diagnosis is not None
    assert finding.diagnosis.code == CAUSES[name]


@pytest.mark.parametrize(
    ("size", "effort"), [*((size, effort) for size in (1, 5, 60, 400) for effort in ("exhaustive", 1)), (5_000, 1)]
)
def test_a_tangent_in_half_precision_is_called_so(size: int, effort: Effort) -> None:
    for seed in range(5):
        result = gradproof.check(written(lambda t: t.half().double()), draw(size), effort=effort, seed=seed)
        (finding,) = [one for one in result.wrong if one.code == "nonlinear-forward"]
        assert finding.diagnosis is not None, f"seed {seed}: {result}"
        said = "on its way to out, the tangent is rounded to float16, and linear but for that"
        assert finding.diagnosis.sentence == said
        # Single precision is within the tolerance.
        assert gradproof.check(written(lambda t: t.float().double()), draw(size), effort=effort, seed=seed).ok


def test_where_no_backward_tells_how_it_rounds_only_what_is_far_off_is_said() -> None:
    class Pushed(torch.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, t: Tensor) -> Tensor:
            digits, exponent = torch.frexp(t)
            return torch.ldexp((2048 * digits).round() / 2048, exponent) * ctx.saved_tensors[0].cos()

    result = gradproof.check(Pushed.apply, draw(5), modes="forward", effort="exhaustive", seed=0)
    assert not [one for one in result.findings if one.code == "nonlinear-forward"]


def test_without_the_contract_nothing_is_said() -> None:
    result = gradproof.check(written(torch.abs), draw(5), contracts="none", effort="exhaustive", seed=0)
    assert result.verdict is Verdict.RIGHT


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"check_backward_ad": False}])
@pytest.mark.parametrize("size", [3, 300])
def test_the_drop_in_says_so_in_torchs_words(size: int, options: dict[str, Any]) -> None:
    x = draw(size).requires_grad_()
    assert gradcheck(written(lambda t: t), (x,), check_forward_ad=True, **options)
    with pytest.raises(
        GradcheckError, match="computed with forward mode mismatch for output 0 with respect to input 0"
    ):
        gradcheck(written(torch.abs), (x,), check_forward_ad=True, **options)
