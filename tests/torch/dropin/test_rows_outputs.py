"""What the function may return (R3), functions that must be constant (R20), outputs that change (R21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, fails, leaf, passes, square

ZERO = "Numerical gradient for function expected to be zero"
CHANGED = "return outputs with the same {} when inputs are perturbed"
MISMATCH = "Jacobian mismatch for output {} with respect to input 0"


# ---- R3: structures


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (lambda x: None, "out: None"),
        (lambda x: (None, None), r"out\[0\]: None, out\[1\]: None"),
        (lambda x: "text", "out: str, not a tensor"),
        (lambda x: float(x.sum()), "out: float, not a tensor"),
    ],
)
@pytest.mark.parametrize("raise_exception", [True, False])
def test_a_function_that_returns_no_tensor(
    checker: Checker, fast: bool, fn: Callable[..., Any], told: str, raise_exception: bool
) -> None:
    told = told if checker.name == "gradproof" else ""
    with pytest.raises(AttributeError, match=f"requires_grad.*{told}"):
        checker.gradcheck(fn, leaf(3), fast_mode=fast, raise_exception=raise_exception)


def test_second_derivatives_of_a_function_that_returns_no_tensor(ours: Checker) -> None:
    with pytest.raises(AttributeError, match=r"out: None.*return what it computes"):
        ours.gradgradcheck(lambda x: None, leaf(3))


@pytest.mark.parametrize("fn", [lambda x: (), lambda x: [], lambda x: x.argmax(), lambda x: torch.ones(2, dtype=F64)])
def test_returning_nothing_or_a_constant_passes_as_in_torch(checker: Checker, fast: bool, fn: Any) -> None:
    assert checker.gradcheck(fn, leaf(3), fast_mode=fast)


@pytest.mark.parametrize("structure", [lambda y: y, lambda y: (y,), lambda y: [y]])
def test_a_tensor_or_a_sequence_of_tensors(checker: Checker, fast: bool, structure: Callable[[Tensor], Any]) -> None:
    passes(checker.gradcheck, lambda x: structure(square(2.0)(x)), leaf(3), fast_mode=fast)
    fails(checker, MISMATCH.format(0), lambda x: structure(square(3.0)(x)), leaf(3), fast_mode=fast)


def test_the_wrong_output_is_named(checker: Checker, fast: bool) -> None:
    fails(checker, MISMATCH.format(1), lambda x: (x.sin(), square(3.0)(x), x), leaf(3), fast_mode=fast)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: (y, x.argmax()),
        lambda x, y: (y, torch.ones(2, dtype=F64)),
        lambda x, y: [y, torch.tensor(3), torch.ones(0)],
    ],
)
def test_outputs_without_derivative_after_one_with(checker: Checker, fast: bool, fn: Callable[..., Any]) -> None:
    passes(checker.gradcheck, lambda x: fn(x, square(2.0)(x)), leaf(3), fast_mode=fast)
    fails(checker, MISMATCH.format(0), lambda x: fn(x, square(3.0)(x)), leaf(3), fast_mode=fast)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: (x.argmax(), y),
        lambda x, y: (x > 0, y, x.argmax()),
        lambda x, y: (y, x > 0),
        lambda x, y: (torch.ones(3, dtype=F64), y),
        lambda x, y: (None, y, None),
        lambda x, y: (3, "text", y),
        lambda x, y: (torch.ones(0, dtype=F64), [None, y][1]),
    ],
)
def test_outputs_without_derivative_anywhere(ours: Checker, fast: bool, fn: Callable[..., Any]) -> None:
    passes(ours.gradcheck, lambda x: fn(x, square(2.0)(x)), leaf(3), fast_mode=fast)
    fails(ours, MISMATCH.format(0), lambda x: fn(x, square(3.0)(x)), leaf(3), fast_mode=fast)


def test_every_output_without_grad_must_be_constant(ours: Checker, fast: bool) -> None:
    passes(ours.gradcheck, lambda x: (2 * x, torch.ones_like(x)), leaf(3), fast_mode=fast)
    passes(ours.gradcheck, lambda x: (2 * x, torch.sign(x).detach()), leaf(3), fast_mode=fast)
    for fn in (
        lambda x: (2 * x, (3 * x).detach()),
        lambda x: ((3 * x).detach(), 2 * x),
        lambda x: (2 * x, torch.ones_like(x), x.detach().sum()),
    ):
        error = fails(ours, "", fn, leaf(3), fast_mode=fast)
        assert "out[" in str(error)


# ---- R20: no outputs, or none that requires grad


def test_no_outputs_at_all(checker: Checker, fast: bool) -> None:
    passes(checker.gradcheck, lambda x: (), leaf(3), fast_mode=fast)


@pytest.mark.parametrize("check_forward_ad", [False, True])
def test_constants_pass_and_hidden_dependence_fails(checker: Checker, fast: bool, check_forward_ad: bool) -> None:
    modes = {"check_forward_ad": check_forward_ad, "fast_mode": fast}
    passes(checker.gradcheck, lambda x: torch.ones(2, dtype=F64), leaf(3), **modes)
    passes(checker.gradcheck, lambda x: torch.sign(x.detach()), leaf(3), **modes)
    # Only in reverse mode: a dual number would come out of `detach` with its tangent.
    fails(checker, ZERO, lambda x: (x * 2).detach(), leaf(3), fast_mode=fast)
    fails(checker, ZERO, lambda x: torch.tensor([float(v) for v in x], dtype=F64), leaf(3), fast_mode=fast)
    fails(checker, ZERO, lambda x: (torch.ones(2, dtype=F64), x.detach()), leaf(3), fast_mode=fast)


def test_a_float32_function_that_hides_its_dependence_fails_too(checker: Checker, fast: bool) -> None:
    x = torch.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="double precision"):
        fails(checker, ZERO, lambda x: torch.tensor([float(v) for v in x]), x, fast_mode=fast)


# ---- R21: outputs that change with the input


def test_a_shape_that_depends_on_the_values(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        return torch.cat([x, x]) if bool((x >= 1).all()) else x

    x = torch.ones(1, dtype=F64, requires_grad=True)
    for raises in (True, False):
        with pytest.raises(AssertionError, match=CHANGED.format("shape")) as caught:
            checker.gradcheck(fn, x, raise_exception=raises, fast_mode=fast)
        assert fast or "index" in str(caught.value)
    passes(checker.gradcheck, fn, (x.detach() + 0.5).requires_grad_(), fast_mode=fast)


def test_a_dtype_that_depends_on_the_values(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        return x.to(torch.float32) if bool((x >= 1).all()) else x

    x = torch.ones(1, dtype=F64, requires_grad=True)
    with pytest.raises(AssertionError, match=CHANGED.format("dtype")):
        checker.gradcheck(fn, x, fast_mode=fast)
    passes(checker.gradcheck, fn, (x.detach() - 0.5).requires_grad_(), fast_mode=fast)


def test_an_output_that_is_larger_only_at_the_point_itself(ours: Checker, fast: bool) -> None:
    x = torch.ones(1, dtype=F64, requires_grad=True)
    with pytest.raises(AssertionError, match=CHANGED.format("shape")):
        ours.gradcheck(lambda x: torch.cat([x, x]) if x.item() == 1 else x, x, fast_mode=fast)


def test_a_second_output_that_changes_is_noticed(checker: Checker, fast: bool) -> None:
    def fn(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, (torch.cat([x, x]) if bool((x >= 1).all()) else x)

    with pytest.raises(AssertionError, match=CHANGED.format("shape")):
        checker.gradcheck(fn, torch.ones(1, dtype=F64, requires_grad=True), fast_mode=fast)
