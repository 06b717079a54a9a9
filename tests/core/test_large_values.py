"""A tolerance with a ceiling, and values so large that rounding over a step exceeds it: entries that are zero on both
sides cost nothing, and one that is not zero is judged by the ceiling all the same."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram

from gradproof.check import check_program
from gradproof.program import Array
from gradproof.result import Result, Verdict
from gradproof.settings import Settings, Tolerance

SIZE = 40
POINT = np.random.default_rng(5).uniform(1.0, 2.0, SIZE)
SLOPE = np.diag(3e6 * POINT**2)


def cubes(x: Array, mixed: float = 0.0) -> Array:
    values = 1e6 * x**3
    values[:, 7] += mixed * x[:, 3]
    return values


def checked(program: HandProgram) -> Result:
    ceiling = Tolerance(relative=1e-3, absolute=1e-14, block=1e-5, ceiling=1e-5)
    return check_program(program, Settings.validated(effort="exhaustive", tolerance=ceiling, seed=1, contracts="none"))


def test_zeros_among_large_derivatives_start_no_climb() -> None:
    result = checked(HandProgram(cubes, SLOPE, POINT))
    assert result.verdict is Verdict.RIGHT, result
    assert not result.findings
    assert result.cost.evaluations <= 8 * SIZE


@pytest.mark.parametrize("entry", [1e-2, 1.0])
def test_a_small_entry_among_them_is_right_or_wrong(entry: float) -> None:
    """The 1e-8 of a block, and far above the ceiling."""
    right = SLOPE.copy()
    right[7, 3] = entry
    assert checked(HandProgram(lambda x: cubes(x, entry), right, POINT)).verdict is Verdict.RIGHT
    for function, jacobian in ((lambda x: cubes(x, entry), SLOPE), (cubes, right)):
        result = checked(HandProgram(function, jacobian, POINT))
        assert result.verdict is Verdict.WRONG, result
        worst = result.comparisons[0].worst
        assert worst is not None
        assert str(worst.place) == "d y0[7] / d x0[3]"
