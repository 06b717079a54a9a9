"""The Jacobian itself, every entry (R4) or in a constant number of calls (R5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from twins import F64, Checker, derived, fails, leaf, passes, square

MISMATCH = "Jacobian mismatch for output 0 with respect to input 0"


def product(a: Tensor, b: Tensor, wrong: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None) -> Tensor:
    """a @ b, whose two right gradients go through `wrong`."""

    def backward(g: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        right = g @ b.T, a.T @ g
        return wrong(*right) if wrong else right

    return derived(torch.matmul, backward)(a, b)


def spoiled(gradient: Tensor, index: tuple[int, ...], factor: float) -> Tensor:
    gradient = gradient.clone()
    gradient[index] *= factor
    return gradient


# ---- right functions


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (torch.sin, [(3,)]),
        (torch.matmul, [(2, 3), (3, 2)]),
        (lambda x: x.logsumexp(0), [(4,)]),
        (lambda x: x[1:3].prod(), [(5,)]),
        (lambda x, y: (x * y, x - y, (x @ y).sin()), [(3,), (3,)]),
        (lambda x: torch.linalg.inv(x @ x.mT + torch.eye(3, dtype=F64)), [(3, 3)]),
        (torch.exp, [()]),
        (lambda x: x.sum(), [(0, 3)]),
        (lambda x: x * 2, [(0,)]),
        (lambda x, y: x.sum() * y, [(0,), (2,)]),
        (lambda x: torch.ones((), dtype=F64) * x[:0].sum() + x.sum(), [(3,)]),
    ],
)
def test_right_functions_pass(checker: Checker, fast: bool, fn: Callable[..., Any], shapes: Any) -> None:
    inputs = tuple(leaf(*shape, seed=i) for i, shape in enumerate(shapes))
    passes(checker.gradcheck, fn, inputs, fast_mode=fast)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.mT,
        lambda x: x[:, ::2],
        lambda x: x[1:],
        lambda x: x.reshape(-1).as_strided((2, 2), (1, 3)),
        lambda x: x[None].expand(1, 4, 6).squeeze(0),
    ],
)
def test_inputs_of_any_strides(checker: Checker, fast: bool, view: Callable[[Tensor], Tensor]) -> None:
    x = view(leaf(4, 6).detach()).requires_grad_()
    passes(checker.gradcheck, square(2.0), x, fast_mode=fast)
    fails(checker, MISMATCH, square(2.1), x, fast_mode=fast)


# ---- wrong functions


@pytest.mark.parametrize("factor", [-2.0, 0.0, 1.0, 4.0, 2.01])
def test_a_wrong_factor(checker: Checker, fast: bool, factor: float) -> None:
    fails(checker, MISMATCH, square(factor), leaf(4), fast_mode=fast)


@pytest.mark.parametrize(
    ("wrong", "input"),
    [
        (lambda da, db: (da * 1.5, db), 0),
        (lambda da, db: (da, db.flip(0)), 1),
        (lambda da, db: (spoiled(da, (1, 2), 0.0), db), 0),
        (lambda da, db: (da, spoiled(db, (2, 0), 3.0)), 1),
        (lambda da, db: (da, None), 1),
    ],
)
def test_the_wrong_input_is_named(checker: Checker, fast: bool, wrong: Any, input: int) -> None:
    inputs = leaf(2, 3), leaf(3, 2, seed=1)
    passes(checker.gradcheck, product, inputs, fast_mode=fast)
    words = f"Jacobian mismatch for output 0 with respect to input {input}"
    fails(checker, words, lambda a, b: product(a, b, wrong), inputs, fast_mode=fast)


def test_an_input_that_has_no_influence_may_have_no_gradient(checker: Checker, fast: bool) -> None:
    fn = derived(lambda x, y: x * 2, lambda g, x, y: (g * 2, None))
    passes(checker.gradcheck, fn, (leaf(2), leaf(3)), fast_mode=fast)
    fn = derived(lambda x, y: x * 2, lambda g, x, y: (g * 2, torch.ones_like(y) * g.sum()))
    words = "Jacobian mismatch for output 0 with respect to input 1"
    fails(checker, words, fn, (leaf(2), leaf(3)), fast_mode=fast)


def test_the_entry_is_located(ours: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * x, lambda g, x: spoiled(2 * x * g, (2, 1), 3.0))
    x = leaf(4, 3)
    error = fails(ours, MISMATCH, fn, x, fast_mode=fast)
    first, *rest = str(error).splitlines()
    assert MISMATCH in first
    assert "args[0][2, 1]" in "\n".join(rest)
    assert error.result.comparisons


def test_all_wrong_pairs_are_listed(ours: Checker, fast: bool) -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return square(3.0)(x) + y, x + square(3.0)(y)

    text = str(fails(ours, MISMATCH, fn, (leaf(2), leaf(2, seed=1)), fast_mode=fast))
    assert "d out[0]" in text
    assert "d out[1]" in text


def test_the_message_stays_short(ours: Checker, fast: bool) -> None:
    fn = derived(lambda x: x * x, lambda g, x: spoiled(2 * x * g, (137,), 3.0))
    text = str(fails(ours, MISMATCH, fn, leaf(300), fast_mode=fast))
    assert "args[0][137]" in text
    assert len(text.splitlines()) < 40
    assert len(text) < 4000


# ---- tolerances


def test_given_tolerances_mean_what_torch_means_by_them(checker: Checker, fast: bool) -> None:
    x = torch.full((3,), 0.5, dtype=F64, requires_grad=True)  # the derivative is 1
    off = square(2.02)  # 0.01 off
    fails(checker, MISMATCH, off, x, atol=1e-5, rtol=1e-3, fast_mode=fast)
    passes(checker.gradcheck, off, x, atol=0.1, rtol=0.0, fast_mode=fast)
    passes(checker.gradcheck, off, x, atol=0.0, rtol=0.1, fast_mode=fast)
    fails(checker, MISMATCH, off, x, atol=1e-4, rtol=1e-4, fast_mode=fast)


def test_a_given_step_is_kept_to(checker: Checker, fast: bool) -> None:
    x = leaf(3)
    point, furthest = x.detach().clone(), [0.0]

    def fn(x: Tensor) -> Tensor:
        furthest[0] = max(furthest[0], (x.detach() - point).abs().max().item())
        return x * x

    passes(checker.gradcheck, fn, x, eps=1e-4, atol=1e-5, rtol=1e-3, fast_mode=fast)
    assert 0 < furthest[0] <= 2e-4  # a power of two beside it is as good


def test_a_given_step_for_a_function_that_is_rough_below_it(checker: Checker) -> None:
    # Values in steps of 1e-6: differences with a step of 1e-3 see the slope, smaller ones see the stairs.
    fn = derived(lambda x: torch.round(x * x, decimals=6), lambda g, x: 2 * x * g)
    wrong = derived(lambda x: torch.round(x * x, decimals=6), lambda g, x: 3 * x * g)
    passes(checker.gradcheck, fn, leaf(3), eps=1e-2, atol=1e-2, rtol=1e-2)
    fails(checker, MISMATCH, wrong, leaf(3), eps=1e-2, atol=1e-2, rtol=1e-2)


# ---- R5: a constant number of calls


class Counted:
    def __init__(self, fn: Callable[[Tensor], Tensor]) -> None:
        self.fn, self.calls = fn, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.fn(x)


def test_fast_mode_does_not_call_more_for_more_entries(checker: Checker) -> None:
    calls = []
    for n in (200, 4000):
        fn = Counted(square(2.0))
        passes(checker.gradcheck, fn, leaf(n), fast_mode=True)
        calls.append(fn.calls)
    assert calls[1] <= 2 * calls[0]
    assert calls[1] < 400


def test_a_failing_fast_check_does_not_build_the_jacobian(ours: Checker) -> None:
    fn = Counted(derived(lambda x: x * x, lambda g, x: spoiled(2 * x * g, (1234,), 1.1)))
    with pytest.raises(ours.GradcheckError, match=MISMATCH) as caught:
        ours.gradcheck(fn, leaf(4000), fast_mode=True)
    assert "args[0][1234]" in str(caught.value)
    assert fn.calls < 1500
