"""What is left when terms cancel is no wrong derivative; a wrong derivative, however small, is."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from twins import F64, Checker, derived, fails, leaf

from gradproof.check import check_program
from gradproof.settings import Settings
from gradproof.torch import GradcheckError, UndecidedWarning, gradcheck, gradgradcheck
from gradproof.torch.adapter import program_of
from gradproof.torch.catalogue.entries import entries, samples
from gradproof.torch.dropin.judge import _leaves_open


def test_the_rounding_of_terms_that_cancel(ours: Checker, fast: bool) -> None:
    """The second derivative of logsumexp of one number is zero; a phase of 1,900 leaves 1e-13 of it. With torch's own
    sample and seed, at which that is so."""
    sample = list(samples(entries("op_db")["logsumexp"], torch.complex128))[5]
    fn = lambda x: torch.logsumexp(x, *sample.args, **sample.kwargs)  # noqa: E731
    torch.manual_seed(0)
    assert ours.gradgradcheck(fn, sample.input, fast_mode=fast)


class Nearly(Function):
    """x + y; the gradient of y depends on x as it should not: by `size` times sin(x), but nothing follows from that."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, size: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.size = size
        return x + y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return g, _Slope.apply(g, x, ctx.size), None


class _Slope(Function):
    """g, and a derivative with respect to x that is not there."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, size: float) -> Tensor:
        ctx.size = size
        ctx.save_for_backward(x)
        return g.clone()

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return h, h * ctx.size * x, None


@pytest.mark.parametrize("size", [1e-6, 1e-8, 1e-9])
def test_a_small_wrong_derivative_beside_large_ones_is_not_excused(ours: Checker, fast: bool, size: float) -> None:
    inputs = (leaf(3), leaf(3, seed=1))
    assert ours.gradgradcheck(lambda x, y: Nearly.apply(x, y, 0.0), inputs, fast_mode=fast)
    fails(
        ours,
        "Jacobian mismatch for output 1 with respect to input 0",
        lambda x, y: Nearly.apply(x, y, size),
        inputs,
        check=ours.gradgradcheck,
        fast_mode=fast,
    )


def test_noise_below_torchs_tolerance_passes_with_a_warning(fast: bool) -> None:
    """corrcoef of two observations is 1 or -1 everywhere: its gradient is rounding, and so is what can be told."""
    x = leaf(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndecidedWarning)
        assert gradcheck(torch.corrcoef, x, fast_mode=fast)
        assert gradgradcheck(
            torch.corrcoef, x, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False,
            fast_mode=fast,
        )  # fmt: skip
    # A gradient that should be rounding and is not.
    wrong = derived(torch.corrcoef, lambda g, x: torch.full_like(x, 1e-3) * g.sum())
    with pytest.raises(GradcheckError):
        gradcheck(wrong, x, fast_mode=fast)


def test_a_deviation_that_the_probes_saw_and_did_not_find_is_looked_at_entry_by_entry() -> None:
    settings = Settings.validated(effort=1, seed=1, contracts="none")
    result = check_program(program_of(torch.sin, torch.linspace(0.1, 1.0, 9, dtype=F64, requires_grad=True)), settings)
    assert not _leaves_open(result)
    seen = tuple(replace(one, reason="the deviation is spread over entries") for one in result.comparisons)
    assert _leaves_open(replace(result, comparisons=seen))


def test_gradients_are_batched_by_rules_alone() -> None:
    """vmap's own loop over an operator without a rule costs the square of the batch in reverse."""
    inputs = tuple(leaf(2, 3, 3, seed=i) for i in range(3))
    program = program_of(lambda a, b, c: a.baddbmm_(b, c), inputs)
    gradient = program.gradient(np.ones(18))
    rows = gradient.point + 1e-3 * np.arange(40.0)[:, None]
    values = gradient.values(rows.copy())
    assert any("one by one, because a batch raised" in note for note in gradient.notes)
    assert np.allclose(
        values[7],
        program_of(lambda a, b, c: a.baddbmm_(b, c), inputs).gradient(np.ones(18)).values(rows[7:8].copy())[0],
    )
    batched = program_of(lambda a, b, c: a + b @ c, inputs).gradient(np.ones(18))
    batched.values(rows.copy())
    assert any(note == "values: vmap" for note in batched.notes)
