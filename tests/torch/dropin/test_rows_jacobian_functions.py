"""The three Jacobian functions that torch deprecated and users still import (R22)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, derived, leaf

NUMERIC = "`get_numerical_jacobian` was part of PyTorch's private API"
ANALYTIC = "`get_analytical_jacobian` was part of PyTorch's private API"


def packed(inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    x, y = inputs
    return 2 * x + y * y, x + 2 * y


def test_numeric_jacobians_of_the_first_output(checker: Checker) -> None:
    x, y = leaf(2, 2), leaf(2, 2, seed=1)
    before = x.detach().clone(), y.detach().clone()
    with pytest.warns(FutureWarning, match=NUMERIC):
        jacobians = checker.get_numerical_jacobian(packed, (x, y), eps=1e-6)
    assert isinstance(jacobians, tuple)
    assert len(jacobians) == 2
    torch.testing.assert_close(jacobians[0], 2 * torch.eye(4, dtype=F64), atol=1e-7, rtol=0)
    torch.testing.assert_close(jacobians[1], torch.diag(2 * y.detach().reshape(-1)), atol=1e-7, rtol=0)
    assert torch.equal(x.detach(), before[0])
    assert torch.equal(y.detach(), before[1])


def test_numeric_jacobians_of_a_target(checker: Checker) -> None:
    x, y = leaf(2), leaf(2, seed=1)
    with pytest.warns(FutureWarning, match=NUMERIC):
        jacobians = checker.get_numerical_jacobian(packed, (x, y), target=x, eps=1e-6)
    torch.testing.assert_close(jacobians[0], 2 * torch.eye(2, dtype=F64), atol=1e-7, rtol=0)


def test_numeric_jacobians_have_a_row_for_each_entry_of_the_input(checker: Checker) -> None:
    x = leaf(3)
    with pytest.warns(FutureWarning, match=NUMERIC):
        (jacobian,) = checker.get_numerical_jacobian(lambda inputs: inputs[0][:2] * 3, (x,), None, 1e-4)
    expected = torch.tensor([[3.0, 0], [0, 3], [0, 0]], dtype=F64)
    torch.testing.assert_close(jacobian, expected, atol=1e-7, rtol=0)


def test_the_step_is_the_one_that_is_given(checker: Checker) -> None:
    x = torch.ones(1, dtype=F64, requires_grad=True)
    with pytest.warns(FutureWarning, match=NUMERIC):
        (jacobian,) = checker.get_numerical_jacobian(lambda inputs: inputs[0] ** 3, (x,), eps=0.1)
    torch.testing.assert_close(jacobian, torch.tensor([[3.01]], dtype=F64))  # 3x^2 + eps^2


def test_numeric_jacobians_of_a_complex_input(checker: Checker) -> None:
    z = leaf(2, dtype=torch.complex128)
    with pytest.warns(FutureWarning, match=NUMERIC):
        (jacobian,) = checker.get_numerical_jacobian(lambda inputs: inputs[0].abs() ** 2, (z,), eps=1e-6)
    torch.testing.assert_close(jacobian, torch.diag(2 * z.detach()), atol=1e-7, rtol=0)


def test_numeric_jacobians_refuse_what_torch_refuses(checker: Checker) -> None:
    x = leaf(2)
    with pytest.warns(FutureWarning, match=NUMERIC), pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        checker.get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0)
    with (
        pytest.warns(FutureWarning, match=NUMERIC),
        pytest.raises(ValueError, match="Expected output to be non-complex"),
    ):
        checker.get_numerical_jacobian(lambda inputs: inputs[0] * 1j, (x,))


def test_numeric_jacobians_with_respect_to_one_input(checker: Checker) -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * y, (x + y)[:1]

    x, y = leaf(2), leaf(2, seed=1)
    jacobians = checker.get_numerical_jacobian_wrt_specific_input(fn, 1, (x, y), fn(x, y), 1e-6)
    assert len(jacobians) == 2
    torch.testing.assert_close(jacobians[0], torch.diag(x.detach()), atol=1e-7, rtol=0)
    torch.testing.assert_close(jacobians[1], torch.tensor([[1.0], [0]], dtype=F64), atol=1e-7, rtol=0)


def test_analytic_jacobians(checker: Checker) -> None:
    x, y = leaf(2, 2), leaf(2, 2, seed=1)
    output = packed((x, y))[0]
    with pytest.warns(FutureWarning, match=ANALYTIC):
        jacobians, reentrant, sizes, types = checker.get_analytical_jacobian((x, y), output)
    torch.testing.assert_close(jacobians[0], 2 * torch.eye(4, dtype=F64))
    torch.testing.assert_close(jacobians[1], torch.diag(2 * y.detach().reshape(-1)))
    assert (bool(reentrant), bool(sizes), bool(types)) == (True, True, True)


def test_analytic_jacobians_are_what_backward_says(checker: Checker) -> None:
    x = leaf(3)
    output = derived(lambda x: x[:2] * 2, lambda g, x: torch.cat([3 * g, g[:1] * 0]))(x)
    with pytest.warns(FutureWarning, match=ANALYTIC):
        (jacobian,), *_ = checker.get_analytical_jacobian((x,), output)
    torch.testing.assert_close(jacobian, torch.tensor([[3.0, 0], [0, 3], [0, 0]], dtype=F64))


def test_a_random_backward_is_reported(checker: Checker) -> None:
    x = leaf(3)

    def jittery(jitter: float) -> Any:
        return derived(torch.clone, lambda g, x: g * (1 + jitter * torch.rand_like(g)))(x)

    for jitter, tolerance, expected in ((1e-6, 0.0, False), (1e-6, 1e-5, True), (0.0, 0.0, True)):
        with pytest.warns(FutureWarning, match=ANALYTIC):
            _, reentrant, _, _ = checker.get_analytical_jacobian((x,), jittery(jitter), nondet_tol=tolerance)
        assert bool(reentrant) is expected


def test_analytic_jacobians_refuse_what_torch_refuses(checker: Checker) -> None:
    x = leaf(2)
    with pytest.warns(FutureWarning, match=ANALYTIC), pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        checker.get_analytical_jacobian((x,), x * 2, grad_out=2.0)
    with (
        pytest.warns(FutureWarning, match=ANALYTIC),
        pytest.raises(ValueError, match="Expected output to be non-complex"),
    ):
        checker.get_analytical_jacobian((x,), x * 1j)
