"""Kinks: every valid subgradient is right and the kink is named; a value outside the hull is wrong, at its place.

Each kind of kink by itself and inside an input of 10,000 elements, among many outputs and in a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import gradproof
from gradproof.result import Result, Verdict

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]
# (x, g, c) -> J^T g, with c at the kink.
Backward = Callable[[Tensor, Tensor, float], Tensor]

SIZE, OFFSET = 10_000, 4321


@dataclass(frozen=True)
class Kink:
    """`at` are the indices of the inputs at the kink; `near` means that it lies beside the point, not at it."""

    function: Function
    point: tuple[float, ...]
    backward: Backward
    valid: tuple[float, ...]
    outside: tuple[float, ...]
    at: tuple[int, ...]
    named: bool = True


def elementwise(function: Function, slope: Callable[[Tensor], Tensor], at_kink: Callable[[Tensor], Tensor]) -> Backward:
    del function
    return lambda x, g, c: g * torch.where(at_kink(x), torch.full_like(x, c), slope(x))


def shared(rows: tuple[tuple[int, int], ...], fixed: tuple[tuple[int, int], ...] = ()) -> Backward:
    """Output k of `rows` gives c of its gradient to the first input and 1 - c to the second; `fixed` are ordinary
    (output, input) pairs."""

    def backward(x: Tensor, g: Tensor, c: float) -> Tensor:
        result, flat = torch.zeros_like(x), g.reshape(-1)
        for k, (i, j) in enumerate(rows):
            result[i] += c * flat[k]
            result[j] += (1 - c) * flat[k]
        for k, i in fixed:
            result[i] += flat[k]
        return result

    return backward


HUBER = torch.nn.HuberLoss(reduction="none")


def huber(x: Tensor) -> Tensor:
    return HUBER(x, torch.zeros_like(x))


def smooth_l1(x: Tensor) -> Tensor:
    return torch.nn.functional.smooth_l1_loss(x, torch.zeros_like(x), reduction="none", beta=0.0)


def hinge(x: Tensor) -> Tensor:
    return (1 - x).clamp(min=0)


def sort_backward(x: Tensor, g: Tensor, c: float) -> Tensor:
    """Of [2, 1, 2, 3]: places 1 and 2 are shared by the inputs 0 and 2."""
    return torch.stack([c * g[1] + (1 - c) * g[2], g[0], (1 - c) * g[1] + c * g[2], g[3]])


ANY = (0.0, 0.5, 0.3, 1.0)
BEYOND = (1.5, -0.25)
KINKS = {
    "relu": Kink(
        torch.relu,
        (0.0, 1.5, -0.7),
        elementwise(torch.relu, lambda x: (x > 0).double(), lambda x: x == 0),
        ANY,
        BEYOND,
        (0,),
    ),
    "abs": Kink(
        torch.abs,
        (0.7, 0.0, -2.0),
        elementwise(torch.abs, torch.sign, lambda x: x == 0),
        (-1.0, 0.0, 0.4, 1.0),
        (1.2, -1.5),
        (1,),
    ),
    "clamp": Kink(
        lambda x: x.clamp(-1, 1),
        (-1.0, 0.3, 1.0, 2.0),
        elementwise(torch.clamp, lambda x: (x.abs() < 1).double(), lambda x: x.abs() == 1),
        ANY,
        BEYOND,
        (0, 2),
    ),
    "max ties": Kink(torch.amax, (0.5, 2.0, 1.0, 2.0), shared(((1, 3),)), ANY, BEYOND, (1, 3)),
    "sort ties": Kink(lambda x: x.sort().values, (2.0, 1.0, 2.0, 3.0), sort_backward, ANY, BEYOND, (0, 2)),
    "max-pool ties": Kink(
        lambda x: torch.nn.functional.max_pool1d(x[None], 2)[0],
        (1.5, 1.5, 0.3, 0.8),
        shared(((0, 1),), ((1, 3),)),
        ANY,
        BEYOND,
        (0, 1),
    ),
    "hinge beyond 1e-8": Kink(
        hinge,
        (1 + 1e-8, 0.2),
        elementwise(hinge, lambda x: -(x < 1).double(), lambda x: x > 1),
        (0.0,),
        (-1.0, -0.5),
        (0,),
    ),
    "hinge before 1e-8": Kink(
        hinge,
        (1 - 1e-8, 0.2),
        elementwise(hinge, lambda x: -(x < 1).double(), lambda x: x > 0.5),
        (-1.0,),
        (0.0, -0.5),
        (0,),
    ),
    "norm at 0": Kink(
        torch.linalg.vector_norm,
        (0.0, 0.0, 0.0),
        lambda x, g, c: g * c * torch.eye(3, dtype=x.dtype)[0],
        (0.0, 0.5, -1.0, 1.0),
        (1.5, -1.2),
        (0, 1, 2),
    ),
    "median": Kink(torch.median, (5.0, 2.0, 1.0, 2.0, 3.0), shared(((1, 3),)), ANY, BEYOND, (1, 3)),
    "topk": Kink(
        lambda x: x.topk(2).values,
        (3.0, 2.0, 1.0, 2.0),
        lambda x, g, c: torch.stack([g[0], c * g[1], 0 * g[0], (1 - c) * g[1]]),
        ANY,
        BEYOND,
        (1, 3),
    ),
    "smooth_l1 with beta 0": Kink(
        smooth_l1, (0.0, 1.0), elementwise(smooth_l1, torch.sign, lambda x: x == 0), (-1.0, 0.0, 1.0), (1.3, -2.0), (0,)
    ),
    # Its slope is continuous: there is one valid value, and nothing to remark.
    "huber": Kink(
        huber,
        (1.0, -1.0, 0.4),
        elementwise(huber, lambda x: x, lambda x: x == 1),
        (1.0,),
        (0.0, 1.5),
        (0,),
        named=False,
    ),
}


def with_backward(kink: Kink, c: float) -> Function:
    class Chosen(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return kink.function(x).clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return kink.backward(ctx.saved_tensors[0], g, c)

    return Chosen.apply


def alone(kink: Kink, c: float, **options: Any) -> Result:
    return gradproof.check(with_backward(kink, c), torch.tensor(kink.point, dtype=torch.float64), seed=1, **options)


def surrounded(kink: Kink, c: float, close: Callable[[Tensor, Tensor], Tensor]) -> Result:
    """The kink in the middle of 10,000 elements of which the others are smooth; `close` joins both results."""
    chosen, count = with_backward(kink, c), len(kink.point)
    x = torch.randn(SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[OFFSET : OFFSET + count] = torch.tensor(kink.point, dtype=torch.float64)

    def function(x: Tensor) -> Tensor:
        others = torch.cat([x[:OFFSET], x[OFFSET + count :]])
        return close(others.sin(), chosen(x[OFFSET : OFFSET + count]).reshape(-1))

    return gradproof.check(function, x, seed=1)


def beside(smooth: Tensor, kinked: Tensor) -> Tensor:
    return torch.cat([smooth, kinked])


def summed(smooth: Tensor, kinked: Tensor) -> Tensor:
    return smooth.sum() + (kinked * torch.arange(1.0, kinked.numel() + 1, dtype=kinked.dtype)).sum()


SETTINGS: dict[str, Callable[[Kink, float], Result]] = {
    "every entry": lambda kink, c: alone(kink, c, effort="exhaustive"),
    "probes": lambda kink, c: alone(kink, c, effort=2),
    "among 10,000": lambda kink, c: surrounded(kink, c, beside),
    "in a sum of 10,000": lambda kink, c: surrounded(kink, c, summed),
}
VALID = [(name, c) for name, kink in KINKS.items() for c in kink.valid]
OUTSIDE = [(name, c) for name, kink in KINKS.items() for c in kink.outside]


def places(kink: Kink, setting: str) -> set[str]:
    offset = OFFSET if "10,000" in setting else 0
    return {f"args[0][{offset + i}]" for i in kink.at}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("name", "c"), VALID)
def test_a_valid_subgradient_is_right_and_the_kink_is_named(name: str, c: float, setting: str) -> None:
    kink = KINKS[name]
    result = SETTINGS[setting](kink, c)
    assert result.verdict is Verdict.RIGHT, result
    found = [finding for finding in result.findings if finding.code == "kink"]
    assert bool(found) == kink.named, result
    assert all(str(finding.place.input) in places(kink, setting) for finding in found), result


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("name", "c"), OUTSIDE)
def test_a_value_outside_the_hull_is_wrong_at_its_place(name: str, c: float, setting: str) -> None:
    kink = KINKS[name]
    result = SETTINGS[setting](kink, c)
    assert result.verdict is Verdict.WRONG, result
    wrong = [comparison.worst for comparison in result.comparisons if comparison.verdict is Verdict.WRONG]
    assert all(worst is not None and str(worst.place.input) in places(kink, setting) for worst in wrong), result
