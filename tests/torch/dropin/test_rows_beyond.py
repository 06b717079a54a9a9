"""Beyond torch, through the same call: narrow dtypes, kinks, any scale, what is not finite, impure backwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, derived, fails, leaf, passes, square

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"
NARROW = [torch.float32, torch.bfloat16, torch.float16]


def kink_warning() -> type[Warning]:
    from gradproof.torch import NonDifferentiableWarning

    return NonDifferentiableWarning


# ---- narrow dtypes


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("fn", "wrong"),
    [
        (torch.sin, derived(torch.sin, lambda g, x: g * x.cos() * 1.5)),
        (square(2.0), square(3.0)),
        (square(2.0), square(-2.0)),
        (lambda x: x.sum(), derived(lambda x: x.sum(), lambda g, x: g * torch.zeros_like(x))),
    ],
)
def test_right_passes_and_wrong_fails(ours: Checker, fast: bool, dtype: torch.dtype, fn: Any, wrong: Any) -> None:
    x = leaf(6, dtype=dtype)
    with pytest.warns(UserWarning, match="is not a double precision floating point"):
        passes(ours.gradcheck, fn, x, fast_mode=fast)
    with pytest.warns(UserWarning, match="is not a double precision floating point"):
        assert ours.gradcheck(wrong, x, raise_exception=False, fast_mode=fast) is False


def test_float32_through_layers(ours: Checker, fast: bool) -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    with pytest.warns(UserWarning, match="double precision"):
        passes(ours.gradcheck, layer, leaf(3, 4, dtype=torch.float32), fast_mode=fast)


# ---- kinks


def at_zero() -> Tensor:
    return torch.tensor([1.0, 0.0, -2.0], dtype=F64, requires_grad=True)


def relu(slope: float) -> Callable[[Tensor], Tensor]:
    """relu with a slope of one's choice at zero."""
    return derived(torch.relu, lambda g, x: g * torch.where(x == 0, slope, (x > 0).to(x.dtype)))


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_a_valid_subgradient_passes_with_a_warning(ours: Checker, fast: bool, slope: float) -> None:
    with pytest.warns(kink_warning(), match=r"args\[0\]\[1\]"):
        passes(ours.gradcheck, relu(slope), at_zero(), fast_mode=fast)


@pytest.mark.parametrize("slope", [-0.5, 1.5, 7.0])
def test_an_invalid_subgradient_fails(ours: Checker, fast: bool, slope: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = fails(ours, MISMATCH, relu(slope), at_zero(), fast_mode=fast)
    assert "args[0][1]" in str(error)


def test_a_wrong_slope_beside_a_kink_fails(ours: Checker, fast: bool) -> None:
    wrong = derived(torch.relu, lambda g, x: g * (x > 0) * 1.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = fails(ours, MISMATCH, wrong, at_zero(), fast_mode=fast)
    assert "args[0][0]" in str(error)


def test_away_from_the_kink_nothing_is_said(ours: Checker, fast: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        passes(ours.gradcheck, torch.relu, leaf(3), fast_mode=fast)


@pytest.mark.parametrize("fn", [torch.abs, torch.relu, lambda x: x.clamp(0, 1), lambda x: torch.maximum(x, -x)])
def test_torchs_own_choices_at_kinks_are_valid(ours: Checker, fast: bool, fn: Any) -> None:
    with pytest.warns(kink_warning()):
        passes(ours.gradcheck, fn, at_zero(), fast_mode=fast)


def test_a_symmetric_kink_with_a_wrong_slope_beside_it(ours: Checker, fast: bool) -> None:
    # At 0 central differences of |x| say 0, which agrees with a gradient that is zero everywhere.
    zero = derived(torch.abs, lambda g, x: g * 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fails(ours, MISMATCH, zero, at_zero(), fast_mode=fast)


# ---- any scale


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e9, 1e15])
def test_inputs_of_any_scale(ours: Checker, fast: bool, scale: float) -> None:
    x = (leaf(4).detach() * scale).requires_grad_()
    passes(ours.gradcheck, square(2.0), x, fast_mode=fast)
    fails(ours, MISMATCH, square(2.5), x, fast_mode=fast)


def test_mixed_scales(ours: Checker, fast: bool) -> None:
    x = torch.tensor([1e-7, 1.0, 1e8], dtype=F64, requires_grad=True)
    passes(ours.gradcheck, torch.log, x, fast_mode=fast)
    fails(ours, MISMATCH, derived(torch.log, lambda g, x: g / x * 1.1), x, fast_mode=fast)


# ---- not finite


def test_nan_on_both_sides_is_a_failure_of_its_own(ours: Checker, fast: bool) -> None:
    x = torch.tensor([0.5, 2.0], dtype=F64, requires_grad=True)
    error = fails(ours, "(?i)not finite|nan", torch.acosh, x, fast_mode=fast)
    assert "mismatch" not in str(error).splitlines()[0]


def test_a_nan_gradient_of_a_finite_function_fails(ours: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * 2, lambda g, x: 2 * g / (x - x[0]) * (x - x[0]))
    error = fails(ours, "", fn, leaf(3), fast_mode=fast)
    assert "args[0][0]" in str(error)
    assert "nan" in str(error).lower()


# ---- backwards that are no linear map


def test_a_random_function_is_named(ours: Checker, fast: bool) -> None:
    fails(ours, "(?i)random|determinis", lambda x: torch.nn.functional.dropout(x, 0.5), leaf(8), fast_mode=fast)


def test_a_function_with_a_memory_is_named(ours: Checker, fast: bool) -> None:
    calls = [0]

    def fn(x: Tensor) -> Tensor:
        calls[0] += 1
        return x * calls[0]

    fails(ours, "(?i)random|state|determinis", fn, leaf(3), fast_mode=fast)


@pytest.mark.parametrize(
    "backward",
    [
        lambda g, x: 2 * g * g.abs().clamp(max=1),
        lambda g, x: 2 * g.abs(),
        lambda g, x: 2 * g.clamp(-1, 1),
        lambda g, x: 2 * torch.where(g.abs() > 1e3, 0.0, g),
    ],
)
def test_a_backward_that_is_not_linear_fails(ours: Checker, fast: bool, backward: Any) -> None:
    fails(ours, "", derived(lambda x: x * 2, backward), leaf(3), fast_mode=fast)


# ---- the report


def test_the_result_comes_with_the_error(ours: Checker, fast: bool) -> None:
    error: Any = fails(ours, MISMATCH, square(3.0), leaf(3), fast_mode=fast)
    assert error.result is not None
    assert not error.result.ok
    assert "±" in str(error)


def test_module_parameters_are_checked(ours: Checker, fast: bool) -> None:
    class Scale(torch.nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(leaf(3).detach())
            self.factor = factor

        def forward(self, x: Tensor) -> Tensor:
            return x + derived(lambda w: w * w, lambda g, w: self.factor * w * g)(self.weight)

    passes(ours.gradcheck, Scale(2.0), leaf(3), fast_mode=fast)
    error = fails(ours, "Jacobian mismatch", Scale(3.0), leaf(3), fast_mode=fast)
    assert "weight" in str(error)
