"""Coordinates that share a kink: derivatives that are valid each by itself but not together are wrong; valid ones, and
those that operators choose, are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from given_rules import with_backward

import gradproof
from gradproof.result import Result, Verdict

Tensor = torch.Tensor
EFFORTS = ["exhaustive", 2]


def of(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def check(function: Callable[..., Any], *arguments: Tensor, effort: Any = "exhaustive") -> Result:
    return gradproof.check(function, arguments, seed=1, effort=effort, contracts="none")


def said(result: Result) -> list[str]:
    return [finding.code for finding in result.wrong]


def given(function: Callable[[Tensor], Tensor], *gradient: float) -> Callable[..., Any]:
    return with_backward(function, lambda x, g: g * of(*gradient))


def maximum(a: Tensor, b: Tensor, shares: tuple[float, float]) -> Any:
    class Maximum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            return torch.maximum(a, b)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
            return shares[0] * g, shares[1] * g

    return Maximum.apply(a, b)


def scaled(x: Tensor) -> Tensor:
    return torch.stack([2 * x[0], x[1], -x[2]]).amax() + x.sin().sum()


MAX = (torch.amax, of(0.5, 2.0, 1.0, 2.0))
NORM = (torch.linalg.vector_norm, torch.zeros(3, dtype=torch.float64))
SCALED = (scaled, torch.zeros(3, dtype=torch.float64))
VALID = [
    (*MAX, (0, 1, 0, 0)),
    (*MAX, (0, 0, 0, 1)),
    (*MAX, (0, 0.5, 0, 0.5)),
    (*MAX, (0, 0.3, 0, 0.7)),
    (*NORM, (0, 0, 0)),
    (*NORM, (1, 0, 0)),
    (*NORM, (0.6, -0.6, 0.5)),
    (*SCALED, (3, 1, 1)),
    (*SCALED, (1.5, 1.5, 0.75)),
]
INVALID = [
    (*MAX, (0, 1, 0, 1)),
    (*MAX, (0, 0, 0, 0)),
    (*MAX, (0, 0.5, 0, 0.51)),
    (*NORM, (0.9, 0.9, 0)),
    (*NORM, (0.7, -0.7, 0.7)),
    (*SCALED, (1, 1, 1)),
    (*SCALED, (3, 2, 1)),
]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize(("function", "x", "gradient"), VALID)
def test_a_subgradient_is_right(function: Any, x: Tensor, gradient: Any, effort: Any) -> None:
    result = check(given(function, *gradient), x, effort=effort)
    assert result.verdict is Verdict.RIGHT, result
    assert "kink" in [finding.code for finding in result.findings]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize(("function", "x", "gradient"), INVALID)
def test_derivatives_that_are_valid_one_by_one_but_not_together(
    function: Any, x: Tensor, gradient: Any, effort: Any
) -> None:
    result = check(given(function, *gradient), x, effort=effort)
    assert result.verdict is Verdict.WRONG, result
    assert said(result) == ["no-subgradient"]


def test_a_tie_between_two_arguments() -> None:
    point = (of(1.0), of(1.0))
    for shares in ((0.5, 0.5), (0.0, 1.0), (0.25, 0.75)):
        assert check(lambda a, b, shares=shares: maximum(a, b, shares), *point).verdict is Verdict.RIGHT
    for shares in ((1.0, 1.0), (0.0, 0.0)):
        assert said(check(lambda a, b, shares=shares: maximum(a, b, shares), *point)) == ["no-subgradient"]


def test_a_tie_inside_a_large_input() -> None:
    x = torch.randn(10_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[123] = x[9876] = 7.0
    assert check(torch.amax, x, effort="auto").verdict is Verdict.RIGHT
    both = with_backward(torch.amax, lambda x, g: g * (x == x.max()))
    result = check(both, x, effort="auto")
    assert said(result) == ["no-subgradient"]
    assert "args[0][123]" in str(result)


ZEROS = torch.zeros(4, dtype=torch.float64)
TIED = of(2.0, 1.0, 2.0, 3.0, 2.0)
SIGNS = of(1.0, -1.0, 2.0, -0.5)
CHOSEN: dict[str, tuple[Callable[..., Any], Tensor]] = {
    "relu": (torch.relu, ZEROS),
    "sum of relu": (lambda x: torch.relu(x).sum(), ZEROS),
    "weighted sum of relu": (lambda x: (SIGNS * torch.relu(x)).sum(), ZEROS),
    "clamp less relu": (lambda x: (x[:2].clamp(min=0) - x[2:].relu()).sum(), ZEROS),
    "abs": (lambda x: x.abs().sum(), ZEROS),
    "abs less abs": (lambda x: (SIGNS * x.abs()).sum(), ZEROS),
    "amax": (torch.amax, of(1.0, 1.0, 1.0)),
    "max": (torch.max, of(1.0, 1.0, 0.0)),
    "max by index": (lambda x: x.max(0).values, of(1.0, 1.0, 1.0)),
    "sort": (lambda x: x.sort().values, of(2.0, 1.0, 2.0, 3.0)),
    "sort of three": (lambda x: x.sort().values, TIED),
    "median of three": (torch.median, TIED),
    "topk": (lambda x: x.topk(3).values, TIED),
    "kthvalue": (lambda x: x.kthvalue(2).values, TIED),
    "cummax": (lambda x: x.cummax(0).values, TIED),
    "max-pool": (lambda x: torch.nn.functional.max_pool1d(x[None], 3, 1)[0], ZEROS),
    "weighted max-pool": (lambda x: (SIGNS[:2] * torch.nn.functional.max_pool1d(x[None], 3, 1)[0]).sum(), ZEROS),
    "hinge": (lambda x: (1 - x).clamp(min=0).sum(), of(1.0, 1.0, 2.0)),
    "huber": (lambda x: torch.nn.functional.huber_loss(x, ZEROS), of(1.0, -1.0, 0.4, 0.0)),
    "std": (torch.std, of(1.0, 1.0, 1.0)),
    "norm of differences": (lambda x: (x[:2] - x[2:]).norm(), of(1.0, 2.0, 1.0, 2.0)),
    "largest singular value": (lambda x: torch.linalg.matrix_norm(torch.diag(x), 2), of(1.0, 1.0, 0.5)),
    "abs of a complex number": (torch.abs, torch.zeros(2, dtype=torch.complex128)),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_operators_choose_is_not_accused(name: str) -> None:
    function, x = CHOSEN[name]
    result = gradproof.check(function, x, modes="reverse", seed=1, effort="exhaustive", contracts="none")
    assert result.verdict is Verdict.RIGHT, result


@pytest.mark.parametrize("effort", EFFORTS)
def test_the_middle_of_a_tie_of_three_has_a_hull_though_no_coordinate_shows_it(effort: Any) -> None:
    first = check(torch.median, TIED, effort=effort)
    assert first.verdict is (Verdict.RIGHT if effort == "exhaustive" else Verdict.UNDECIDED), first
    for outside in (1.5, -0.5):
        wrong = check(given(torch.median, outside, 0, 0, 0, 0), TIED, effort=effort)
        assert wrong.verdict is Verdict.WRONG or (effort != "exhaustive" and wrong.verdict is Verdict.UNDECIDED), wrong
    assert check(given(torch.sum, 1, 1, 1.2, 1, 1), TIED, effort=effort).verdict is Verdict.WRONG


def test_where_rules_for_kinks_do_not_compose_the_slope_that_exists_counts() -> None:
    """relu(x) - relu(-x) is x, whose slope is 1, and the rule that relu has slope 0 at 0 makes it 0."""
    assert check(lambda x: x.relu() - (-x).relu(), of(0.0, 1.0)).verdict is Verdict.WRONG
    assert check(lambda x: x.amax() - x.max(0).values, of(1.0, 1.0)).verdict is Verdict.WRONG
    assert check(lambda x: x.max() - x.max(), of(1.0, 1.0)).verdict is Verdict.RIGHT


def middle(x: np.ndarray) -> float:
    return float(np.sort(x[:3])[1])


THREE_TIE = np.array([1.0, 1.0, 1.0, 0.7])


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.RIGHT), (1.2, Verdict.WRONG)])
def test_a_slope_that_changes_fast_beside_a_hidden_kink_is_none(factor: float, verdict: Verdict) -> None:
    """It differs at points nearby, too, but less at those that are nearer."""

    def fn(x: np.ndarray, y: np.ndarray) -> float:
        return middle(x) + 3e-5 * x[3] * float(np.sin(1e5 * y[0]))

    def jac(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phase = 1e5 * y[0]
        return np.array([[1, 0, 0, factor * 3e-5 * np.sin(phase)]]), np.array([[3.0 * x[3] * np.cos(phase)]])

    y = np.array([0.8 + ((0.9 - 8e4) % (2 * np.pi)) / 1e5])
    wrt = ["args[0]", "args[1]"]
    result = gradproof.check(fn, (THREE_TIE, y), derivative={"jac": jac}, wrt=wrt, seed=1, effort="exhaustive")
    assert result.verdict is verdict, result
    assert all(str(entry.place).endswith("[3]") for block in result.comparisons for entry in block.found)


@pytest.mark.parametrize(
    ("noise", "factor", "verdict"),
    [(1e-12, 1.0, Verdict.RIGHT), (1e-12, 1.05, Verdict.WRONG), (1e-8, 1.05, Verdict.WRONG)],
)
def test_noise_beside_a_hidden_kink_excuses_nothing(noise: float, factor: float, verdict: Verdict) -> None:
    def fn(x: np.ndarray) -> float:
        return middle(x) + x[3] + noise * float(np.modf(np.abs(1e7 * np.sin(1e9 * x.sum() + 1.0)))[0])

    jac = np.array([[1, 0, 0, factor]])
    result = gradproof.check(fn, THREE_TIE, derivative={"jac": lambda x: jac}, seed=1, effort="exhaustive")
    assert result.verdict is verdict, result
    if verdict is Verdict.WRONG:
        assert any(str(entry.place).endswith("[3]") for block in result.comparisons for entry in block.found)
