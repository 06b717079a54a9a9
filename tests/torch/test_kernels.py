"""Kernels that take any format and compute in float32 inside, where no framework sees it (as Triton kernels do), and
kernels that refuse float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import Verdict

Function = Callable[..., Tensor]
Backward = Callable[..., tuple[Tensor, ...]]

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INSIDE = "the function computes in float32 inside, and so does the numeric side"


def loaded(tensor: Tensor) -> Tensor:
    """As float32. No operator of torch is called that would show the cast."""
    if tensor.dtype is torch.bfloat16:
        return torch.from_numpy((tensor.detach().view(torch.int16).numpy().astype(np.int32) << 16).view(np.float32))
    return torch.from_numpy(np.ascontiguousarray(tensor.detach().numpy().astype(np.float32)))


def stored(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype is torch.bfloat16:
        return tensor.bfloat16()
    return torch.from_numpy(tensor.numpy().astype(str(dtype).removeprefix("torch.")))


def kernel(forward: Function, backward: Backward, load: Callable[[Tensor], Tensor] = loaded) -> Function:
    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            ctx.save_for_backward(*given)
            return stored(forward(*map(load, given)), given[0].dtype)

        @staticmethod
        def backward(ctx, grad):
            given = ctx.saved_tensors
            found = backward(load(grad), *map(load, given))
            return tuple(stored(one, leaf.dtype) for one, leaf in zip(found, given, strict=True))

    return Kernel.apply  # type: ignore[no-any-return]


def layer_norm(x: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight)


def normed(x: Tensor) -> tuple[Tensor, Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return centred * scale, scale


def right(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    hat, scale = normed(x)
    g = grad * weight
    dx = scale * (g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True))
    return dx, (grad * hat).sum(0)


def stale_scale(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """That of the first row, for all rows."""
    dx, dw = right(grad, x, weight)
    scale = normed(x)[1]
    return dx / scale * scale[0], dw


def last_row_left_out(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return right(grad, x, weight)[0], (grad * normed(x)[0])[:-1].sum(0)


def mean_of_rows(grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return right(grad, x, weight)[0], (grad * normed(x)[0]).mean(0)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def attention_back(grad: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    p, dp = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1), grad @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
    return ds @ k, ds.mT @ q, p.mT @ grad


def unscaled(grad: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = attention_back(grad, q, k, v)
    return dq, dk * q.shape[-1] ** 0.5, dv


def drawn(dtype: torch.dtype, seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)


@pytest.mark.parametrize("rows", [3, 60])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_kernel_passes(dtype: torch.dtype, rows: int) -> None:
    for seed in range(3):
        result = gradproof.check(kernel(layer_norm, right), drawn(dtype, seed, (rows, 9), (9,)), seed=seed)
        assert result.ok, f"seed {seed}: {result}"
        assert INSIDE in result.notes


@pytest.mark.parametrize(
    ("rule", "leaf", "cause"),
    [(stale_scale, "args[0]", ""), (last_row_left_out, "args[1]", ""), (mean_of_rows, "args[1]", "mean")],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_its_wrong_twins_are_named(dtype: torch.dtype, rule: Backward, leaf: str, cause: str) -> None:
    for seed in range(2):
        result = gradproof.check(kernel(layer_norm, rule), drawn(dtype, seed, (3, 9), (9,)), seed=seed)
        assert result.verdict is Verdict.WRONG, f"seed {seed}: {result}"
        assert {one.place.input.path for one in result.wrong if one.place.input} == {leaf}
        if cause:
            assert result.wrong[0].diagnosis is not None, f"seed {seed}: {result}"
            assert cause in result.wrong[0].diagnosis.code


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_passes_and_its_twin_fails(dtype: torch.dtype) -> None:
    heads = drawn(dtype, 0, *[(2, 5, 4)] * 3)
    result = gradproof.check(kernel(attention, attention_back), heads, seed=0)
    assert result.ok, result
    result = gradproof.check(kernel(attention, unscaled), heads, seed=0)
    assert result.verdict is Verdict.WRONG
    assert {one.place.input.path for one in result.wrong if one.place.input} == {"args[1]"}
    assert result.wrong[0].diagnosis is not None
    assert "2 times" in result.wrong[0].diagnosis.sentence


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_argument_alone_may_be_read_in_float32(dtype: torch.dtype) -> None:
    """And the result is not a number of float32: a weight that is not cast comes last."""

    class Mixed(torch.autograd.Function):
        slip = 1.0

        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return stored(normed(loaded(x))[0], x.dtype) * weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            dx, dw = right(loaded(grad), loaded(x), loaded(weight))
            return stored(Mixed.slip * dx, x.dtype), stored(dw, x.dtype)

    arguments = drawn(dtype, 0, (3, 9), (9,))
    result = gradproof.check(Mixed.apply, arguments, seed=0)
    assert result.ok, result
    assert INSIDE in result.notes
    Mixed.slip = 1.05
    result = gradproof.check(Mixed.apply, arguments, seed=0)
    assert result.verdict is Verdict.WRONG
    assert {one.place.input.path for one in result.wrong if one.place.input} == {"args[0]"}


def test_a_backward_that_sums_in_half_precision_is_found() -> None:
    def softmax(x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    def exact(grad: Tensor, x: Tensor) -> tuple[Tensor]:
        y = softmax(x)
        return (y * (grad - (y * grad).sum(-1, keepdim=True)),)

    def in_half(grad: Tensor, x: Tensor) -> tuple[Tensor]:
        y = softmax(x)
        return (y * (grad - stored(stored(y * grad, torch.bfloat16).sum(-1, keepdim=True).float(), torch.float32)),)

    (x,) = drawn(torch.float32, 0, (3, 11))
    assert gradproof.check(kernel(softmax, exact), x, seed=0).ok
    result = gradproof.check(kernel(softmax, in_half), x, seed=0)
    assert result.verdict is Verdict.WRONG
    assert result.wrong[0].code == "nonlinear"
    assert "narrower format" in result.wrong[0].hint


def test_noise_is_not_taken_for_float32() -> None:
    """A solver's noise is larger than the rounding of float32, but what it says is no number of float32."""

    class Root(torch.autograd.Function):
        slip = 1.0

        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            for _ in range(40):
                y = torch.where((y * y - x).abs() < 1e-7, y, 0.5 * (y + x / y))
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return Root.slip * grad / (2 * ctx.saved_tensors[0])

    x = torch.linspace(2, 3, 7, dtype=torch.float64)
    assert INSIDE not in gradproof.check(Root.apply, x, seed=0).notes
    Root.slip = 1.001
    result = gradproof.check(Root.apply, x, seed=0)
    assert INSIDE not in result.notes
    assert result.verdict is Verdict.WRONG


def test_a_smooth_function_is_asked_twice_at_most() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0] ** 2

    result = gradproof.check(Cube.apply, torch.linspace(1, 2, 5, dtype=torch.float64), seed=0)
    assert result.verdict is Verdict.WRONG
    assert INSIDE not in result.notes


def for_narrow(tensor: Tensor) -> Tensor:
    if tensor.dtype is torch.float64:
        raise TypeError("no kernel for float64")
    return loaded(tensor)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_that_refuses_float64_is_judged_in_float32(dtype: torch.dtype) -> None:
    for rows in (3, 60):
        arguments = drawn(dtype, 0, (rows, 9), (9,))
        result = gradproof.check(kernel(layer_norm, right, for_narrow), arguments, seed=0)
        assert result.ok, result
        assert any("judged in float32 (it does not run in float64)" in note for note in result.notes)
        result = gradproof.check(kernel(layer_norm, mean_of_rows, for_narrow), arguments, seed=0)
        assert result.verdict is Verdict.WRONG
        assert {one.place.input.path for one in result.wrong if one.place.input} == {"args[1]"}


def test_a_plain_version_that_refuses_float64_is_still_no_reference() -> None:
    arguments = drawn(torch.bfloat16, 0, (3, 9), (9,))
    plain = kernel(layer_norm, right, for_narrow)
    result = gradproof.compare(kernel(layer_norm, right), plain, arguments, seed=0)
    assert result.findings[0].code == "no-reference"


def test_compare_grants_float32_some_roundings() -> None:
    """Another formula of the same function, both of float32; and a constant with a wrong digit."""

    def geglu(a: Tensor, b: Tensor, cubed: float = 0.044715) -> Tensor:
        return 0.5 * a * (1 + (2 * torch.sigmoid(2 * (2 / torch.pi) ** 0.5 * (a + cubed * a * a * a)) - 1)) * b

    def plain(a: Tensor, b: Tensor) -> Tensor:
        return torch.nn.functional.gelu(a, approximate="tanh") * b

    for seed in range(8):
        arguments = drawn(torch.float32, seed, (3, 11), (3, 11))
        assert gradproof.compare(geglu, plain, arguments, seed=seed).ok, f"seed {seed}"
        result = gradproof.compare(lambda a, b: geglu(a, b, 0.0447), plain, arguments, seed=seed)
        assert result.verdict is Verdict.WRONG, f"seed {seed}"
