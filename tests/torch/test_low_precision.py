"""float32, complex64, bfloat16, float16 and mixtures of them: right code passes, wrong code is found out.

Every wrong rule has a right twin. The rule is judged in float64, its numbers in their own format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import gradproof
from gradproof import Result, Verdict

RIGHT, WRONG, UNDECIDED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNDECIDED
F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
NARROW = (F32, BF16, F16)
Fn = Callable[..., Any]


def draw(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    complex_ = dtype.is_complex
    return torch.randn(*shape, dtype=torch.complex64 if complex_ else F32, generator=generator).to(dtype)


def check(fn: Fn, *args: Any, **options: Any) -> Result:
    options.setdefault("seed", 1)
    return gradproof.check(fn, args, **options)


def rule(forward: Fn, backward: Fn) -> Fn:
    class Written(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return backward(g, *ctx.saved_tensors)

    return Written.apply


def sine(slope: Fn) -> Fn:
    return rule(torch.sin, lambda g, x: g * slope(x))


def diagnoses(result: Result) -> set[str]:
    return {finding.diagnosis.code for finding in result.findings if finding.diagnosis}


# ---- right code

CANCELLING = {
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "variance": lambda x: x.var(-1),
    "centred": lambda x: (x - x.mean()).pow(2).mean(),
    "product": lambda x: (x @ x.mT).tanh(),
    "cumsum": lambda x: x.cumsum(-1),
}


@pytest.mark.parametrize("rows", [2, 3000])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", CANCELLING)
def test_large_terms_may_cancel(name: str, dtype: torch.dtype, rows: int) -> None:
    x = draw(rows, 8, dtype=dtype) if name != "product" else draw(3, 8, dtype=dtype)
    assert check(CANCELLING[name], x).ok


@pytest.mark.parametrize("dtype", NARROW)
def test_ill_conditioned_points_and_large_arguments(dtype: torch.dtype) -> None:
    assert check(torch.sin, 30 * draw(6, dtype=dtype)).ok
    assert check(lambda x: x.exp().log1p(), 5 * draw(6, dtype=dtype)).ok
    assert check(lambda x: 1 - x * (2 - x), 1 + draw(6, dtype=dtype) / 50).ok


def test_other_dtypes_and_mixtures() -> None:
    assert check(lambda z: (z * z.conj()).sin(), draw(5, dtype=torch.complex64)).ok
    half, single, double = draw(4, 3, dtype=BF16), draw(3, dtype=F32), draw(4, dtype=F64)
    assert check(lambda a, b: functional.linear(a.float(), b), half, single).ok
    assert check(lambda a, b: (a.to(b.dtype) * b).tanh(), draw(4, dtype=F16), double).ok
    wrong = rule(torch.sin, lambda g, x: -g * x.cos())
    assert check(lambda a, b: functional.linear(wrong(a.float()), b), half, single).verdict is WRONG


def test_autocast_is_judged_in_the_format_that_it_works_in() -> None:
    weight = draw(8, 8, dtype=F32)

    def layer(x: Tensor, weight: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return functional.linear(x, weight)

    assert check(layer, draw(3, 8, dtype=BF16), weight.bfloat16()).ok
    assert check(layer, draw(3, 8, dtype=F32), weight).verdict in (RIGHT, UNDECIDED)


def test_a_result_names_the_formats_and_the_power_of_the_user() -> None:
    result = check(torch.sin, draw(4, dtype=BF16))
    assert {leaf.dtype for one in result.comparisons for leaf in (one.output, one.input)} == {"bfloat16"}
    assert result.power is not None
    assert 0.01 < result.power.relative < 0.1  # what shows in one format only may hide in rounding


def test_second_order() -> None:
    x = draw(5, dtype=F32)
    assert check(lambda x: x.sin() * x, x, order=2).ok


# ---- wrong in every precision: seen in float64, to all digits


@pytest.mark.parametrize("size", [8, 20_000])
@pytest.mark.parametrize("dtype", [*NARROW, torch.complex64])
def test_one_percent_is_seen_in_every_precision(dtype: torch.dtype, size: int) -> None:
    x = draw(size, dtype=dtype)
    assert check(sine(lambda x: x.cos().conj()), x).ok
    result = check(sine(lambda x: 1.01 * x.cos().conj()), x)
    assert result.verdict is WRONG
    assert diagnoses(result) == {"factor"}
    assert any("judged in float64" in note for note in result.notes)


# ---- wrong in its own precision alone


@pytest.mark.parametrize("size", [8, 20_000])
@pytest.mark.parametrize("dtype", NARROW)
def test_a_kernel_that_is_wrong_for_one_dtype_only(dtype: torch.dtype, size: int) -> None:
    x = draw(size, dtype=dtype)
    result = check(sine(lambda x: x.cos() * (1.2 if x.dtype == dtype else 1.0)), x)
    assert result.verdict is WRONG
    assert diagnoses(result) == {"factor"}
    # The other way round the user's own precision is right, and that is what was asked about.
    assert check(sine(lambda x: x.cos() * (1.2 if x.dtype == F64 else 1.0)), x).ok


@pytest.mark.parametrize("dtype", NARROW)
def test_one_entry_of_the_native_gradient(dtype: torch.dtype) -> None:
    x = torch.linspace(-1, 1, 9).to(dtype)
    bad = torch.where(torch.arange(9) == 5, 1.3, 1.0)
    result = check(sine(lambda x: x.cos() * (bad.to(dtype) if x.dtype == dtype else 1.0)), x)
    assert result.verdict is WRONG
    assert result.wrong[0].place.input is not None
    assert result.wrong[0].place.input.index == (5,)


def test_nan_in_the_native_gradient_alone() -> None:
    x = draw(6, dtype=F32)
    result = check(sine(lambda x: x.cos() * (float("nan") if x.dtype == F32 else 1.0)), x)
    assert result.verdict is WRONG
    assert {finding.code for finding in result.wrong} >= {"nan-gradient"}


@pytest.mark.parametrize("size", [8, 20_000])
def test_a_backward_that_rounds_to_bfloat16_inside(size: int) -> None:
    x = draw(size, dtype=F32)
    always = check(rule(torch.sin, lambda g, x: (g.bfloat16() * x.bfloat16().cos()).to(g.dtype)), x)
    assert always.verdict is WRONG
    assert diagnoses(always) == {"precision"}
    # Nothing is wrong with the rule in float64, only with its numbers in float32.
    natively = check(sine(lambda x: x.cos() if x.dtype == F64 else x.bfloat16().cos().float()), x)
    assert natively.verdict is WRONG
    assert diagnoses(natively) == {"precision"}


@pytest.mark.parametrize("size", [8, 20_000])
def test_a_cast_to_the_format_that_the_function_works_in_anyway_is_right(size: int) -> None:
    x = draw(size, dtype=BF16)
    for seed in range(4):
        assert check(rule(torch.sin, lambda g, x: (g.bfloat16() * x.bfloat16().cos()).to(g.dtype)), x, seed=seed).ok
    assert (
        check(rule(torch.sin, lambda g, x: 1.05 * (g.bfloat16() * x.bfloat16().cos()).to(g.dtype)), x).verdict is WRONG
    )


def test_a_cotangent_that_is_clipped_in_its_own_precision_alone() -> None:
    def clipped(dtype: torch.dtype) -> Fn:
        return rule(torch.sin, lambda g, x: (g.clamp(-1, 1) if x.dtype == dtype else g) * x.cos())

    assert check(clipped(F32), draw(6, dtype=F32)).verdict is WRONG
    for dtype in (BF16, F16):
        for seed in range(8):
            result = check(clipped(dtype), draw(6, dtype=dtype), seed=seed)
            assert result.verdict in (WRONG, UNDECIDED), result
            assert any(one.place.input is not None for one in result.findings if one.verdict is not RIGHT)
            assert check(sine(torch.cos), draw(6, dtype=dtype), seed=seed).ok


def test_derivatives_beyond_the_range_of_the_format() -> None:
    x = torch.tensor([0.001, 1.0], dtype=F16)
    result = check(torch.digamma, x)
    assert result.verdict is UNDECIDED
    assert "overflow" in {finding.code for finding in result.findings}
    assert check(torch.digamma, x.float()).ok


# ---- no float64 to be had


def bound_to(dtype: torch.dtype, fn: Fn) -> Fn:
    def kernel(x: Tensor) -> Tensor:
        if x.dtype != dtype:
            raise TypeError(f"this kernel knows {dtype} alone")
        return fn(x)

    return kernel


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("seed", range(6))
def test_a_kernel_that_knows_one_dtype_is_never_accused(dtype: torch.dtype, seed: int) -> None:
    x = draw(2, 4, dtype=dtype, seed=seed)
    for fn in (torch.sin, torch.exp, lambda x: x.softmax(-1), lambda x: 3 * x, torch.relu):
        assert check(bound_to(dtype, fn), x, seed=seed).verdict in (RIGHT, UNDECIDED)


KERNELS = {
    "exp": torch.exp,
    "gelu": functional.gelu,
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "linear": lambda x: x @ torch.linspace(-1, 1, x.shape[-1] ** 2).view(x.shape[-1], -1),
    "tanh of a product": lambda x: (x @ x.mT / 4).tanh(),
    "relu": torch.relu,
    "cumsum": lambda x: x.cumsum(-1),
}


@pytest.mark.parametrize("size", [3, 8, 12])
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_knows_float32_alone_is_judged_by_its_own_differences(name: str, size: int) -> None:
    for seed in range(3):
        x = draw(size, size, dtype=F32, seed=seed)
        result = check(bound_to(F32, KERNELS[name]), x, modes="reverse", seed=seed)
        assert result.verdict is RIGHT, result
        assert result.power is not None
        assert result.power.relative < 0.01
        wrong = rule(lambda y: y.clone(), lambda g, _: torch.where(torch.arange(size) == 1, 1.05 * g, g))
        found = check(bound_to(F32, lambda y, wrong=wrong: wrong(KERNELS[name](y))), x, modes="reverse", seed=seed)
        if KERNELS[name](x).abs().sum(0)[1]:
            assert found.verdict is WRONG, found


def test_what_cannot_be_resolved_says_what_would_decide() -> None:
    x = draw(6, dtype=F32)
    result = check(bound_to(F32, torch.sin), x, tolerance=1e-5)
    assert result.verdict is UNDECIDED
    assert any("float32 alone" in note and "knows torch.float32" in note for note in result.notes)
    finding = next(finding for finding in result.findings if finding.verdict is UNDECIDED)
    assert finding.code == "precision"
    assert "float64" in finding.hint
    assert "gradproof.compare" in finding.hint
    tolerance = float(finding.hint.split("tolerance=")[1].split()[0].rstrip("."))
    assert check(bound_to(F32, torch.sin), x, tolerance=tolerance).ok
    assert check(bound_to(F32, sine(lambda x: 1.01 * x.cos())), x, tolerance=tolerance).verdict is WRONG


@pytest.mark.parametrize("steps", [1, 8, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000])
def test_a_quantiser_in_float32_is_not_accused_of_its_zeros(steps: int) -> None:
    def quantised(x: Tensor) -> Tensor:
        return (x * steps).round() / steps

    for seed in range(12):
        x = 4 * draw(6, dtype=F32, seed=seed)
        result = check(bound_to(F32, quantised), x, modes="reverse", seed=seed)
        assert result.verdict in (RIGHT, UNDECIDED), result
        half = check(bound_to(F32, rule(quantised, lambda g, x: 0.5 * g)), x, modes="reverse", seed=seed)
        assert half.verdict is WRONG or steps < 1000, half
        assert half.verdict in (WRONG, UNDECIDED), half


@pytest.mark.parametrize("size", [6, 3000])
def test_fine_stairs_in_float32_excuse_no_other_slope_than_zero(size: int) -> None:
    def quantised(x: Tensor) -> Tensor:
        return (x * 100_000).round() / 100_000

    for seed in range(4):
        x = 4 * draw(size, dtype=F32, seed=seed)
        assert check(bound_to(F32, quantised), x, modes="reverse", seed=seed).verdict is UNDECIDED
        for slope in (1.01, -1.0, 1e-3):
            wrong = rule(quantised, lambda g, x, slope=slope: slope * g)
            assert check(bound_to(F32, wrong), x, modes="reverse", seed=seed).verdict is WRONG


LEFT_OVER: dict[str, Callable[[Tensor], Tensor]] = {
    "ten": lambda x: (x + 10) - 10,
    "a hundred": lambda x: (x + 100) - 100,
    "three times": lambda x: 3 * ((x + 100) - 100),
    "an exponential": lambda x: (0.01 * x).exp() - 1,
    "a mean": lambda x: x - x.mean(),
    "a sigmoid": lambda x: 1 - x.sigmoid(),
    "nothing": torch.sin,
}


@pytest.mark.parametrize("name", LEFT_OVER)
def test_the_stairs_of_what_cancels_in_float32_excuse_no_zero(name: str) -> None:
    function = LEFT_OVER[name]
    for seed in range(4):
        x = draw(12, dtype=F32, seed=seed)
        detached = bound_to(F32, rule(function, lambda g, x: 0 * g))
        assert check(detached, x, modes="reverse", seed=seed).verdict is WRONG
        assert check(detached, x, modes="reverse", seed=seed, effort=2).verdict in (WRONG, UNDECIDED)
        assert check(bound_to(F32, function), x, modes="reverse", seed=seed).verdict in (RIGHT, UNDECIDED)


@pytest.mark.parametrize("steps", [10.0, 1e3, 1e4, 1e5])
def test_a_fine_quantiser_in_float64_is_not_accused_of_its_zeros(steps: float) -> None:
    def quantised(x: Tensor) -> Tensor:
        return (x * steps).round() / steps

    for seed in range(4):
        x = 4 * draw(6, dtype=F64, seed=seed)
        assert check(quantised, x, modes="reverse", seed=seed).verdict in (RIGHT, UNDECIDED)
        assert check(rule(quantised, lambda g, x: 0.5 * g), x, modes="reverse", seed=seed).verdict is WRONG


def test_half_precision_resolves_nothing_by_its_own_differences() -> None:
    assert check(bound_to(F16, torch.sin), draw(6, dtype=F16)).verdict is UNDECIDED
    assert check(bound_to(F16, sine(lambda x: 2 * x.cos())), draw(6, dtype=F16)).verdict is WRONG


@pytest.mark.parametrize("dtype", [F32, F16])
def test_a_kernel_that_knows_one_dtype_and_is_wrong(dtype: torch.dtype) -> None:
    assert check(bound_to(dtype, sine(lambda x: 2 * x.cos())), draw(6, dtype=dtype)).verdict is WRONG


@pytest.mark.parametrize("effort", ["exhaustive", 2])
@pytest.mark.parametrize("frequency", [10.0, 20.0, 50.0, 200.0])
@pytest.mark.parametrize("dtype", [BF16, F16])
def test_an_oscillation_that_the_steps_of_a_kernel_skip_is_never_accused(
    dtype: torch.dtype, frequency: float, effort: Any
) -> None:
    """The first step of bfloat16 is an eighth: sin(50 x) turns round twice within it."""
    kernel = bound_to(dtype, lambda x: torch.sin(frequency * x.float()).to(dtype))
    for seed in range(2):
        result = check(kernel, draw(4, dtype=dtype, seed=seed), seed=seed, effort=effort)
        assert result.verdict in (RIGHT, UNDECIDED), result
        hints = [one.hint for one in result.findings if one.code in ("precision", "noise", "kink", "stairs")]
        assert any("float64" in hint and "gradproof.compare" in hint for hint in hints), result


def test_an_oscillation_with_a_wrong_gradient_is_seen_where_neighbouring_numbers_show_it() -> None:
    def negated(x: Tensor) -> Tensor:
        return sine(lambda y: -y.cos())(20 * x.float()).to(BF16)

    verdicts = [check(bound_to(BF16, negated), draw(4, dtype=BF16, seed=seed), seed=seed).verdict for seed in range(3)]
    assert WRONG in verdicts
    assert check(bound_to(F16, sine(lambda x: -x.cos())), draw(4, dtype=F16)).verdict is WRONG


def test_other_random_numbers_in_float64() -> None:
    """The mask is drawn in the dtype, so float64 sees another function; the native ladder does what it can."""
    x = draw(6, dtype=F32)

    def dropped(x: Tensor) -> Tensor:
        torch.manual_seed(0)
        return x * torch.rand_like(x)

    result = check(dropped, x)
    assert result.verdict in (RIGHT, UNDECIDED)
    assert any("another number in float64" in note for note in result.notes)


INSIDE = {
    "sin": lambda x: x.float().sin().double(),
    "rms norm": lambda x: (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).double(),
    "softmax": lambda x: x.float().softmax(-1).double(),
}


@pytest.mark.parametrize("name", INSIDE)
def test_float32_inside_a_float64_function_is_never_wrong(name: str) -> None:
    for seed in range(20):
        x = torch.randn(2, 5, dtype=F64, generator=torch.Generator().manual_seed(seed))
        assert check(INSIDE[name], x, seed=seed).verdict in (RIGHT, UNDECIDED), seed
    assert check(lambda x: INSIDE[name](2 * x - x.detach()), x).verdict is WRONG
