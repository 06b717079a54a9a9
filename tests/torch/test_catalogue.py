"""All planted mistakes are found and placed, all right twins pass; `python -m bench catalogue` repeats it at length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gradproof
from gradproof import Verdict
from tests.catalogue import CASES, FUNCTIONS, LARGE, Case, Function, fault, twin

# At 25,600 elements a check costs the same few probes for every case, but each of them is longer: take every third.
SPREAD = CASES[::3]


def wrong(cases: tuple[Case, ...], n: int) -> list[object]:
    return [pytest.param(case, n, id=f"{case.name}-{n}") for case in cases if n in case.sizes]


def right(n: int) -> list[object]:
    return [
        pytest.param(function, n, id=f"{function.name}-{n}") for function in FUNCTIONS.values() if n in function.sizes
    ]


@pytest.mark.parametrize(
    ("case", "n"), wrong(CASES, 16) + wrong(CASES, 576) + wrong(SPREAD, 25_600) + wrong(LARGE[:3], 1_000_000)
)
def test_a_planted_mistake_is_found_and_placed(case: Case, n: int) -> None:
    subject = case.build(n)
    result = gradproof.check(subject.fn, subject.args, seed=7)
    assert fault(result, subject) == "", str(result)


@pytest.mark.parametrize(("function", "n"), right(16) + right(576) + right(25_600))
def test_a_right_twin_is_right(function: Function, n: int) -> None:
    subject = twin(function, n)
    result = gradproof.check(subject.fn, subject.args, seed=7)
    assert result.verdict is Verdict.RIGHT, str(result)


def test_the_catalogue_is_as_large_as_promised() -> None:
    assert len(CASES) >= 60
    assert len({case.function.name for case in CASES}) >= 8
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(LARGE) >= 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_mistake_is_far_beyond_the_tolerance(case: Case) -> None:
    """The catalogue itself can be wrong: a mistake that changes nothing would test nothing."""
    subject, innocent = case.build(16), twin(case.function, 16)

    def pulled(fn: Callable[..., Any], seed: int, sign: float) -> torch.Tensor:
        inputs = [x.clone().requires_grad_() for x in subject.args]
        outputs = fn(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        generator = torch.Generator().manual_seed(seed)
        cotangents = [2 * sign * torch.randn(y.shape, dtype=y.dtype, generator=generator) for y in outputs]
        return torch.autograd.grad(outputs, inputs, cotangents)[case.leaf]

    deviations = []
    for seed, sign in ((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)):  # |g| is right for a positive cotangent
        truth, claim = pulled(innocent.fn, seed, sign), pulled(subject.fn, seed, sign)
        deviations.append(float((claim - truth).abs().max() / truth.abs().square().mean().sqrt()))
        if subject.spoilt is not None:
            assert torch.equal(claim[~subject.spoilt], truth[~subject.spoilt])
    assert max(deviations) > 5e-4


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_a_right_twin_agrees_with_autograd(function: Function) -> None:
    args = function.point(576, 0)
    inputs = [x.clone().requires_grad_() for x in args]
    outputs = function.forward(*inputs)
    cotangents = [torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1)) for y in outputs]
    for ours, theirs in zip(
        function.backward(args, tuple(cotangents)), torch.autograd.grad(outputs, inputs, cotangents), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
