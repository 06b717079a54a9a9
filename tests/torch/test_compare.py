"""`gradproof.compare`: one implementation against another, with the plain one's own error as the yardstick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import GradcheckError, Result, UsageError, Verdict

RIGHT, WRONG, UNDECIDED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNDECIDED
F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64


def draw(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=F32, generator=torch.Generator().manual_seed(seed)).to(dtype)


def compare(fn: Any, reference: Any, *args: Any, **options: Any) -> Result:
    options.setdefault("seed", 1)
    return gradproof.compare(fn, reference, args, **options)


def plain(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Layer norm by the formula."""
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * weight + bias


def fused(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def with_backward(change: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]) -> Any:
    """The fused layer norm with something done to its gradients."""

    class Changed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Tensor) -> Tensor:
            ctx.save_for_backward(*inputs)
            return fused(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
            inputs = [one.detach().requires_grad_() for one in ctx.saved_tensors]
            with torch.enable_grad():
                return change(torch.autograd.grad(fused(*inputs), inputs, g))

    return Changed.apply


def layer(dtype: torch.dtype, rows: int = 8, width: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    return draw(rows, width, dtype=dtype), draw(width, dtype=dtype, seed=1), draw(width, dtype=dtype, seed=2)


@pytest.mark.parametrize("dtype", [F32, BF16, F16, F64])
@pytest.mark.parametrize("seed", range(3))
def test_as_exact_as_the_plain_formula(dtype: torch.dtype, seed: int) -> None:
    result = compare(fused, plain, *layer(dtype), seed=seed)
    assert result.ok, result
    assert {comparison.mode for comparison in result.comparisons} == {"value", "gradient"}
    if dtype is not F64:  # torch's CPU kernel knows no mean of its own there
        heads = [draw(2, 16, 8, dtype=dtype, seed=seed + k) for k in range(3)]
        assert compare(functional.scaled_dot_product_attention, attention, *heads, seed=seed).ok


@pytest.mark.parametrize(("dtype", "factor"), [(F32, 1.001), (BF16, 1.05), (F16, 1.01), (F64, 1 + 1e-9)])
def test_a_scaled_gradient(dtype: torch.dtype, factor: float) -> None:
    right = with_backward(lambda gradients: gradients)
    wrong = with_backward(lambda gradients: (gradients[0], gradients[1] * factor, gradients[2]))
    assert compare(right, plain, *layer(dtype)).ok
    result = compare(wrong, plain, *layer(dtype))
    assert result.verdict is WRONG
    assert [finding.code for finding in result.wrong] == ["gradient-differs"]
    assert str(result.wrong[0].place).startswith("d out / d args[1][")
    with pytest.raises(GradcheckError, match="against plain"):
        result.raise_if_wrong()


@pytest.mark.parametrize(("dtype", "factor"), [(F32, 1.001), (BF16, 1.05), (F16, 1.01)])
def test_a_scaled_output(dtype: torch.dtype, factor: float) -> None:
    result = compare(lambda *args: fused(*args) * factor, plain, *layer(dtype))
    assert "value-differs" in {finding.code for finding in result.wrong}
    assert "plain is off by" in next(one.sentence for one in result.wrong if one.code == "value-differs")


def test_one_entry_is_named() -> None:
    def spoiled(gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        gradients[0][3, 7] += 0.5
        return gradients

    result = compare(with_backward(spoiled), plain, *layer(BF16))
    assert str(result.wrong[0].place) == "d out / d args[0][3, 7]"
    worst = result.comparisons[1].worst
    assert worst is not None
    assert worst.deviation == pytest.approx(0.5, abs=0.1)
    assert worst.bar < worst.tolerance < 0.5


def test_a_narrower_format_inside_is_seen_and_a_multiple_allows_it() -> None:
    def rounded(*args: Tensor) -> Tensor:
        return fused(*(one.bfloat16() for one in args)).float()

    assert compare(rounded, plain, *layer(F32)).verdict is WRONG
    assert compare(rounded, plain, *layer(F32), multiple=1e6, wrt="args[0]").ok
    # The gradient of the bias is a sum that the plain formula gets exactly, so no multiple of its error allows any.
    assert compare(rounded, plain, *layer(F32), multiple=1e6, wrt="args[2]").verdict is WRONG


def test_a_yardstick_without_error() -> None:
    """Sums of small whole numbers are exact; one rounding more is no mistake, and 1 % is one."""
    x = torch.arange(1.0, 9.0, dtype=BF16)
    assert compare(lambda x: x + 1, lambda x: 1 + x, x).ok
    assert compare(lambda x: (x / 3) * 3, lambda x: x, x).ok
    assert compare(lambda x: x * 1.05, lambda x: x, x).verdict is WRONG


def test_nan_is_wrong_unless_the_plain_one_has_it_too() -> None:
    x = torch.tensor([0.5, 4.0, -1.0])
    assert compare(lambda x: x.sqrt(), lambda x: x**0.5, x).ok
    wrong = compare(lambda x: torch.where(x > 3, torch.nan, x).sqrt(), lambda x: x**0.5, x)
    assert str(wrong.wrong[0].place) == "out[1]"


def test_other_structures() -> None:
    x = draw(4, dtype=F32)
    result = compare(lambda x: (x, x), lambda x: x, x)
    assert [finding.code for finding in result.wrong] == ["structure-differs"]
    assert "out[1] (4,)" in result.wrong[0].sentence
    assert compare(lambda x: {"a": x.sin(), "n": 3}, lambda x: {"a": torch.sin(x), "n": 3}, x).ok


def test_a_reference_that_does_not_run_in_float64() -> None:
    table = draw(4, 4, dtype=F32)
    assert compare(lambda x: table @ x, lambda x: table @ x, draw(4, dtype=F32)).ok  # what it holds can be widened

    def reference(x: Tensor) -> Tensor:
        if x.dtype is not F32:
            raise TypeError("float32 alone")
        return table @ x

    result = compare(lambda x: table @ x, reference, draw(4, dtype=F32))
    assert result.verdict is UNDECIDED
    assert [finding.code for finding in result.findings] == ["no-reference"]
    assert "float64" in result.findings[0].hint


def test_what_is_asked_wrongly() -> None:
    x = draw(4, dtype=F32)
    for options in ({"multiple": 0.5}, {"probes": 0}, {"probes": "all"}):
        with pytest.raises(UsageError, match=r"such as (multiple=2\.0|probes=4)"):
            compare(torch.sin, torch.sin, x, **options)


def test_text() -> None:
    text = str(compare(with_backward(lambda g: (1.5 * g[0], *g[1:])), plain, *layer(F16)))
    assert text.startswith("WRONG  Changed.apply against plain: 1 of 4 blocks disagree")
    assert "the plain reference is off by" in text
    assert "allowed: 2 times the error of plain in float16; float64 is the truth" in text


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_against_eager(backend: str) -> None:
    compiled = torch.compile(plain, backend=backend)
    assert compare(compiled, plain, *layer(F32)).ok
    assert (
        compare(torch.compile(lambda *args: 1.01 * plain(*args), backend=backend), plain, *layer(F32)).verdict is WRONG
    )


@pytest.mark.skipif(torch.__version__ < "2.7", reason="compiled backwards of torch 2.6 run only once")
def test_a_compiled_module() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    result = compare(torch.compile(module, backend="aot_eager"), module, draw(3, 4, dtype=F32))
    assert result.ok
    assert len(result.comparisons) == 1 + 5


def test_numpy_arrays_carry_no_gradients_to_compare() -> None:
    for args in (np.ones(3), (np.ones(3), 2.0)):
        with pytest.raises(UsageError, match=r"compare\(fn, reference, jnp.asarray\(x\)\).*check\(fn, x, derivative="):
            gradproof.compare(np.add, np.add, args)


def test_a_reference_that_is_no_function() -> None:
    x = torch.ones(3)
    with pytest.raises(UsageError, match=r"reference must be a function, got Tensor; write compare\(fn, reference"):
        gradproof.compare(torch.sin, x)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"fn must be a function, got float"):
        gradproof.compare(2.0, torch.sin, x)  # type: ignore[arg-type]
