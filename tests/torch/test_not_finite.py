"""NaN and infinity: in the value, in the gradient, in both; and what is not smooth but no kink. At any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from given_rules import with_backward

import gradproof
from gradproof.result import Result, Verdict
from gradproof.torch import GradcheckError, gradcheck

Tensor = torch.Tensor
NAN = float("nan")
SIZES = [(5, "exhaustive"), (5, 1), (20_000, "auto")]
PLACE = 3


def positive(size: int) -> Tensor:
    return 0.5 + torch.rand(size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def at_place(size: int, value: float) -> Tensor:
    x = positive(size)
    x[PLACE] = value
    return x


def codes(result: Result) -> list[str]:
    return [finding.code for finding in result.findings if finding.code.startswith("nan")]


@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_a_value_that_is_nan(size: int, effort: Any) -> None:
    """The gradient there is finite; the rest is right."""
    function = with_backward(lambda x: torch.where(x > 9, NAN * x, x.sin()), lambda x, g: g * x.cos())
    result = gradproof.check(function, at_place(size, 10.0), effort=effort, seed=1)
    assert result.verdict is Verdict.UNDECIDED
    assert codes(result) == ["nan-value"]
    assert [str(f.place) for f in result.findings if f.code == "nan-value"] == [f"out[{PLACE}]"]
    assert all(comparison.verdict is Verdict.RIGHT for comparison in result.comparisons)


@pytest.mark.parametrize("broken", [NAN, float("inf")])
@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_a_gradient_that_is_nan_where_the_value_is_finite(size: int, effort: Any, broken: float) -> None:
    def backward(x: Tensor, g: Tensor) -> Tensor:
        result = g * x.cos()
        result[PLACE] = broken
        return result

    result = gradproof.check(with_backward(torch.sin, backward), positive(size), effort=effort, seed=1)
    assert result.verdict is Verdict.WRONG
    assert codes(result) == ["nan-gradient"]
    (finding,) = [finding for finding in result.wrong if finding.code == "nan-gradient"]
    assert finding.place.input is not None
    assert str(finding.place.input) == f"args[0][{PLACE}]"


@pytest.mark.parametrize(("size", "effort"), SIZES)
@pytest.mark.parametrize("function", [torch.sqrt, torch.log])
def test_both_are_nan(function: Callable[[Tensor], Tensor], size: int, effort: Any) -> None:
    """Two NaNs are not equal, and what 0 * NaN spoils in the rest of the column is not held against the function."""
    x = at_place(size, -1.0)
    result = gradproof.check(lambda x: function(x) + 0 * function(x), x, effort=effort, seed=1)
    assert result.verdict is Verdict.UNDECIDED, str(result)
    assert codes(result) == ["nan-both"] if function is torch.sqrt else codes(result) in (["nan-both"], ["nan-value"])
    (finding,) = [f for f in result.findings if f.code.startswith("nan")]
    assert str(finding.place.output) == f"out[{PLACE}]"
    if finding.code == "nan-both":
        assert str(finding.place) == f"d out[{PLACE}] / d args[0][{PLACE}]"


@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_a_wrong_entry_beside_a_nan_is_found(size: int, effort: Any) -> None:
    def backward(x: Tensor, g: Tensor) -> Tensor:
        result = 0.5 * g / x.sqrt()
        result[1] *= 1.1
        return result

    result = gradproof.check(with_backward(torch.sqrt, backward), at_place(size, -1.0), effort=effort, seed=1)
    assert result.verdict is Verdict.WRONG
    assert codes(result) == ["nan-both"]
    assert str(result.comparisons[0].found[0].place) == "d out[1] / d args[0][1]"


@pytest.mark.parametrize(("size", "effort"), SIZES)
@pytest.mark.parametrize("function", [torch.sqrt, lambda x: x.abs() ** 0.3 * x.sign(), torch.special.entr])
def test_a_slope_without_bound_is_named_where_it_is(
    function: Callable[[Tensor], Tensor], size: int, effort: Any
) -> None:
    result = gradproof.check(function, at_place(size, 0.0), effort=effort, modes="reverse", seed=1)
    assert result.verdict is Verdict.UNDECIDED, str(result)
    assert [str(f.place) for f in result.findings if f.code == "steep"] == [f"d out[{PLACE}] / d args[0][{PLACE}]"]
    assert "smooth" not in str(result)


@pytest.mark.parametrize("broken", [NAN, float("inf"), 0.0])
@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_whatever_the_gradient_is_where_the_slope_has_no_bound(size: int, effort: Any, broken: float) -> None:
    def backward(x: Tensor, g: Tensor) -> Tensor:
        return g * torch.where(x > 0, -torch.log(x) - 1, broken)

    function = with_backward(torch.special.entr, backward)
    result = gradproof.check(function, at_place(size, 0.0), effort=effort, seed=1)
    assert result.verdict is Verdict.UNDECIDED, str(result)
    assert {f.code for f in result.findings if f.verdict is Verdict.UNDECIDED} == {"steep"}


@pytest.mark.parametrize("power", [1.1, 1.5, 2.0])
@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_nan_where_the_slope_is_finite_though_it_settles_late(size: int, effort: Any, power: float) -> None:
    """On the border of the domain, and at a point where it would be a slope of zero."""

    def backward(x: Tensor, g: Tensor) -> Tensor:
        return g * torch.where(x > 0, power * x.abs() ** (power - 1), NAN)

    for function in (lambda x: torch.where(x >= 0, x.abs(), NAN) ** power, lambda x: x.abs() ** power):
        result = gradproof.check(with_backward(function, backward), at_place(size, 0.0), effort=effort, seed=1)
        assert result.verdict is Verdict.WRONG, str(result)
        assert codes(result) == ["nan-gradient"]


@pytest.mark.parametrize(("at_zero", "verdict"), [(0.0, Verdict.RIGHT), (0.5, Verdict.WRONG)])
@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_a_slope_that_settles_slowly_is_told(size: int, effort: Any, at_zero: float, verdict: Verdict) -> None:
    def backward(x: Tensor, g: Tensor) -> Tensor:
        return g * torch.where(x == 0, at_zero, 1.1 * x.abs() ** 0.1 * x.sign())

    function = with_backward(lambda x: x.abs() ** 1.1, backward)
    result = gradproof.check(function, at_place(size, 0.0), effort=effort, seed=1)
    assert result.verdict is verdict, str(result)
    if verdict is Verdict.WRONG:
        assert str(result.comparisons[0].found[0].place) == f"d out[{PLACE}] / d args[0][{PLACE}]"


@pytest.mark.parametrize(("size", "effort"), SIZES)
def test_a_jump_is_named_where_it_is(size: int, effort: Any) -> None:
    result = gradproof.check(torch.floor, at_place(size, 2.0), effort=effort, seed=1)
    assert result.verdict is Verdict.UNDECIDED
    assert {str(f.place) for f in result.findings if f.code == "jump"} == {f"d out[{PLACE}] / d args[0][{PLACE}]"}


@pytest.mark.parametrize("fast_mode", [False, True])
def test_the_drop_in_says_of_a_jump_that_it_cannot_be_told(fast_mode: bool) -> None:
    x = at_place(4, 2.0).requires_grad_()
    with pytest.raises(GradcheckError, match=r"^Jacobian for output 0 with respect to input 0 cannot be told \(jump\)"):
        gradcheck(torch.floor, x, fast_mode=fast_mode)


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize(("size", "effort"), [(30, "exhaustive"), (30_000, "auto")])
def test_a_quantiser_is_not_accused(size: int, effort: Any, slope: float) -> None:
    """Treads of 1e-6: zero on each, one across them. Neither can be shown to double precision."""
    quantiser = with_backward(lambda x: (x * 1e6).round() / 1e6, lambda x, g: slope * g)
    for seed in range(3):
        assert gradproof.check(quantiser, positive(size), effort=effort, seed=seed).verdict is Verdict.UNDECIDED


def test_more_kinks_than_can_be_visited() -> None:
    """Half of 10,000 elements at a kink: the others are checked as ever, some kinks are visited, and it is said."""
    x = positive(10_000)
    x[::2] = 0.0
    result = gradproof.check(torch.relu, x, seed=1)
    assert result.verdict is Verdict.RIGHT
    assert any("too many kinks" in finding.sentence for finding in result.findings)

    def backward(x: Tensor, g: Tensor) -> Tensor:
        result = g * (x > 0)
        result[4321] *= 1.05
        return result

    wrong = gradproof.check(with_backward(torch.relu, backward), x, seed=1)
    assert str(wrong.comparisons[0].found[0].place) == "d out[4321] / d args[0][4321]"
    outside = gradproof.check(with_backward(torch.relu, lambda x, g: g * torch.where(x > 0, 1.0, 1.5)), x, seed=1)
    assert outside.verdict is Verdict.WRONG
