"""Parameters in different units: a column of the Jacobian that is small only because of them is judged by itself."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof import Result, Verdict
from gradproof.numpy import check_ivp, check_problem
from gradproof.program import Array

TIMES = np.linspace(0.1, 3.0, 40)
POINT = np.array([2.0, 0.5, 3.0])


def decay(p: Array) -> Array:
    return np.asarray(p[0] * np.exp(-p[1] * TIMES) * np.cos(p[2] * TIMES))


def slopes(p: Array) -> Array:
    falls, turns = np.exp(-p[1] * TIMES), p[2] * TIMES
    return np.stack(
        [falls * np.cos(turns), -TIMES * p[0] * falls * np.cos(turns), -p[0] * falls * TIMES * np.sin(turns)], axis=1
    )


@pytest.mark.parametrize("unit", [1.0, 1e2, 1e3])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_column_of_a_fit(unit: float, column: int) -> None:
    units = np.array([unit, 1.0 / unit, 1.0])

    def fit(factor: float) -> Result:
        factors = np.where(np.arange(3) == column, factor, 1.0)
        return check_problem(
            lambda p: decay(p / units), POINT * units, jac=lambda p: slopes(p / units) / units * factors, seed=0
        )

    assert fit(1.0).ok
    assert not fit(1.0).findings
    for factor in (-1.0, 0.0):
        result = fit(factor)
        assert result.verdict is Verdict.WRONG
        assert all(f"args[0][{column}]" in str(one.place) for one in result.wrong)


def test_a_slow_reaction_beside_fast_ones() -> None:
    def robertson(_: float, y: Array) -> Array:
        slow, back, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return np.array([back - slow, slow - back - fast, fast])

    def stiff(factor: float) -> Result:
        def jac(_: float, y: Array) -> Array:
            back, middle = 1e4 * y[2], 1e4 * y[1]
            return np.array(
                [[-0.04 * factor, back, middle], [0.04, -back - 6e7 * y[1], -middle], [0.0, 6e7 * y[1], 0.0]]
            )

        return check_ivp(robertson, (0.0, 1.0), [0.9, 3e-5, 0.1], jac=jac, seed=0)

    assert stiff(1.0).ok
    for factor in (0.8, 0.0, -1.0):
        assert [str(one.place) for one in stiff(factor).wrong] == ["d out[0] / d args[1][0]"]
