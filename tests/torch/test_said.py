"""Small things that are said of a call: names, what was left out, what a mistaken option was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gradproof
from gradproof import UsageError, Verdict
from gradproof.torch import gradcheck

X = torch.linspace(0.5, 1.5, 3, dtype=torch.float64)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g


def test_a_function_keeps_its_name_whatever_is_done_around_it() -> None:
    for options in ({}, {"randomness": "reseed"}, {"output_map": lambda y: y}):
        assert gradproof.check(Twice.apply, X, seed=0, **options).name == "Twice.apply"
        assert gradproof.check(torch.sin, X, seed=0, **options).name == "sin"


def test_numbers_given_to_a_function_of_torch() -> None:
    with pytest.raises(UsageError, match=r"^sin is given .* gradproof\.check\(fn, torch\.tensor\(x\)\)$"):
        gradproof.check(torch.sin, [1.0, 2.0])


def test_an_array_of_another_framework_is_a_constant_and_said_to_be() -> None:
    jnp = pytest.importorskip("jax.numpy")

    def fn(x: Tensor, scale: Any) -> Tensor:
        return x.sin() * float(np.asarray(scale)[0])

    result = gradproof.check(fn, (X, jnp.ones(3)), seed=0)
    assert result.ok
    assert [(one.path, one.reason) for one in result.skipped] == [
        ("args[1]", "an array of JAX, which is a constant to torch")
    ]
    assert not gradproof.check(fn, (X, np.ones(3)), seed=0).skipped


def test_the_option_that_is_mistaken_is_named() -> None:
    with pytest.raises(UsageError, match="expected_gradient_of=3 is not a function"):
        gradproof.check(torch.sin, X, expected_gradient_of=3)
    result = gradproof.check(torch.sin, X, output_map=lambda y: "text")
    assert result.verdict is Verdict.UNSUPPORTED
    assert "output_map returns nothing that has a derivative" in str(result)
    assert "the function returns nothing" in str(gradproof.check(lambda x: "text", X))


def test_the_drop_in_names_no_option_that_it_does_not_have() -> None:
    x = torch.linspace(0.5, 2.0, 40, dtype=torch.float64).requires_grad_()  # of a few numbers two draws may be the same
    with pytest.raises(gradproof.GradcheckError) as raised:
        gradcheck(torch.nn.functional.dropout, (x,))
    assert "Seed inside of the function or call gradproof.check with randomness='reseed'" in str(raised.value)


def test_a_backward_that_alternates_is_not_taken_for_one_that_looks_at_signs() -> None:
    calls = []

    class Alternating(Twice):
        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            calls.append(g)
            return 2 * g * (1.0 + 0.1 * (len(calls) % 2))

    for x in (X, X.float()):
        result = gradproof.check(Alternating.apply, x, seed=0)
        assert "nondeterministic" in {finding.code for finding in result.wrong}
        assert not any(finding.diagnosis for finding in result.findings if finding.code.startswith("nonlinear"))
    assert gradproof.check(Twice.apply, X, seed=0).ok


def test_a_flat_point() -> None:
    class Off(Twice):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 1e-3 * g

    zero = torch.zeros(3, dtype=torch.float64)
    assert gradproof.check(lambda x: x**3, zero, seed=0).ok
    assert gradproof.check(lambda x: x**3, zero.float(), seed=0).ok
    assert gradproof.check(Off.apply, zero, seed=0).verdict is Verdict.WRONG
