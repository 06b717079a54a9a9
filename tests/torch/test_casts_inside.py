"""Functions that cast to a narrower format inside, as fused kernels do: the casts make stairs, and are left out where
those leave a doubt. The derivative of a cast is that of the identity."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradproof
from gradproof import Verdict
from gradproof.torch import gradcheck

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
Rule = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def right(g: Tensor, normed: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    weighted = g * weight
    return scale * (weighted - normed * (weighted * normed).mean(-1, keepdim=True)), (g * normed).sum(0)


def no_projection(g: Tensor, normed: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return scale * g * weight, (g * normed).sum(0)


def mean_of_rows(g: Tensor, normed: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return right(g, normed, scale, weight)[0], (g * normed).mean(0)


def a_little_off(g: Tensor, normed: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    dx, dw = right(g, normed, scale, weight)
    return 1.1 * dx, dw


def rms_norm(rule: Rule) -> Callable[..., Tensor]:
    """In float32 inside, whatever the format of its arguments."""

    class RMSNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
            wide = x.float()
            scale = (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
            normed = wide * scale
            ctx.save_for_backward(normed, scale, weight)
            return (normed * weight.float()).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
            normed, scale, weight = ctx.saved_tensors
            dx, dw = rule(g.float(), normed, scale, weight.float())
            return dx.to(g.dtype), dw.to(weight.dtype)

    return RMSNorm.apply  # type: ignore[no-any-return]


def arguments(dtype: torch.dtype, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x, weight = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((rows, 8), (8,)))
    return x.to(dtype), weight.to(dtype)


@pytest.mark.parametrize("rows", [3, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_kernel_passes(dtype: torch.dtype, rows: int) -> None:
    for seed in range(4):
        result = gradproof.check(rms_norm(right), arguments(dtype, rows, seed), seed=seed)
        assert result.ok, f"seed {seed}: {result}"


@pytest.mark.parametrize(
    ("rule", "leaf", "cause"),
    [(no_projection, "args[0]", None), (mean_of_rows, "args[1]", "mean"), (a_little_off, "args[0]", "factor")],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_its_wrong_twins_are_named(dtype: torch.dtype, rule: Rule, leaf: str, cause: str | None) -> None:
    for seed in range(2):
        result = gradproof.check(rms_norm(rule), arguments(dtype, 5, seed), seed=seed)
        assert result.verdict is Verdict.WRONG, f"seed {seed}: {result}"
        assert {one.place.input.path for one in result.wrong if one.place.input} == {leaf}
        (finding,) = result.wrong
        if cause is not None:
            assert finding.diagnosis is not None, f"seed {seed}: {result}"
            assert cause in finding.diagnosis.code


@pytest.mark.parametrize("rows", [3, 3000])
def test_where_the_casts_are_left_out_it_says_so(rows: int) -> None:
    result = gradproof.check(rms_norm(right), arguments(torch.float64, rows, 0), seed=0)
    note = "the rule is judged in float64, without casts inside, and its numbers in float32 against those"
    assert note in result.notes


PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "a product": lambda x: (x.float() @ x.float().mT).to(x.dtype),
    "a softmax": lambda x: x.softmax(-1, dtype=torch.float32).to(x.dtype),
    "a new tensor": lambda x: torch.zeros(x.shape, dtype=torch.float32).copy_(x).sin().to(x.dtype),
    "a result in half": lambda x: x.exp().half(),
    "through bfloat16": lambda x: (x.bfloat16() * 3).to(x.dtype).sin(),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PLAIN)
def test_torchs_own_operators_pass(name: str, dtype: torch.dtype) -> None:
    for seed in range(3):
        x = arguments(dtype, 4, seed)[0]
        assert gradproof.check(PLAIN[name], (x,), modes="reverse", seed=seed).ok, f"seed {seed}"
        assert gradcheck(PLAIN[name], (x.requires_grad_(),)), f"seed {seed}"


class Cast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 5), nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.second(self.first(x).tanh()).float() + x.sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_is_a_cast(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    result = gradproof.check(Cast().to(dtype), arguments(dtype, 3, 0)[0][:, :6], seed=0)
    assert result.ok, str(result)


def rounding_backward(narrow: torch.dtype) -> Callable[..., Tensor]:
    """The function is in float32 inside; its backward in less."""

    def rule(g: Tensor, normed: Tensor, scale: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return right(g.to(narrow).to(g.dtype), normed, scale, weight)

    return rms_norm(rule)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_cast_that_backward_alone_makes_is_no_excuse(dtype: torch.dtype) -> None:
    for seed in range(3):
        given = arguments(dtype, 5, seed)
        assert not gradproof.check(rounding_backward(torch.bfloat16), given, seed=seed).ok, f"seed {seed}"


def test_a_function_that_needs_its_cast_is_judged_as_before() -> None:
    def picky(x: Tensor) -> Tensor:
        inner = x.float()
        if inner.dtype != torch.float32:
            raise TypeError("float32 alone")
        return inner.sin().to(x.dtype)

    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    result = gradproof.check(picky, x, modes="reverse", seed=0)
    assert result.verdict in (Verdict.RIGHT, Verdict.UNDECIDED)
    assert not any("without casts inside" in note for note in result.notes)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_second_order_too(dtype: torch.dtype) -> None:
    x = torch.linspace(-1.5, 1.7, 6, dtype=dtype)
    assert gradproof.check(lambda x: (x.float() ** 3).to(x.dtype), x, order=2, seed=0).ok


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_nothing_is_cast_nothing_is_left_out(dtype: torch.dtype) -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return torch.where(x > 0, x**3, -(x**3))

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 2.9 * g * ctx.saved_tensors[0] ** 2 * ctx.saved_tensors[0].sign()

    result = gradproof.check(Cube.apply, torch.linspace(-2, 2, 6, dtype=dtype), seed=0)
    assert result.verdict is Verdict.WRONG
    assert not any("casts" in note for note in result.notes)


def test_within_bounds_too() -> None:
    x = torch.linspace(0.5, 1.7, 6, dtype=torch.float64)
    assert gradproof.check(lambda x: x.float().log().to(x.dtype), x, bounds=(0.1, 2.0), seed=0)


LEAN = """
import sys, torch, gradproof
x = torch.linspace(-1, 1, 5)
torch.vmap(torch.neg)(x)
by_vmap = "torch._dynamo" in sys.modules  # in torch 2.6
assert gradproof.check(lambda x: x.double().half().sin().to(x.dtype), x).ok
print("torch._dynamo" in sys.modules and not by_vmap)
"""


def test_no_compiler_is_loaded() -> None:
    """torch's own takes seconds to load, and tens of megabytes."""
    done = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
