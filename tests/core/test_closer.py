"""Fewer evaluations where a doubt is soon cleared up, and no other verdict: probes that cross jumps close by, and wrong
columns that are all alike."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram, Rows, elementwise
from test_reference import bisected_root

from gradproof.check import check_program
from gradproof.program import Array
from gradproof.result import Result, Verdict
from gradproof.settings import Settings

SIZE = 400
CELL = 0.125
# A first step is about 1e-5, and the closer one a 64th of it.
CLOSE = 2.0**-18
POINT = CELL * np.random.default_rng(5).integers(8, 16, SIZE) + np.where(np.arange(SIZE) % 50 == 7, CLOSE, 0.4 * CELL)


def jumping(x: Array) -> Array:
    """From one cell to the next; within a cell the slope is 1 + x."""
    return x + 0.5 * x**2 + np.floor(x / CELL)


def offset(x: Array) -> Array:
    """From the nearest border of a cell."""
    return x - CELL * np.round(x / CELL)


def kinked(x: Array) -> Array:
    """At the borders of the cells."""
    return x + 0.5 * x**2 + 3.0 * np.abs(offset(x))


def kinked_slope(x: Array) -> Array:
    return 1 + x + 3.0 * np.sign(offset(x))


def probed(program: HandProgram) -> Result:
    return check_program(program, Settings.validated(modes=("reverse",), effort=1, seed=1, contracts="none"))


@pytest.mark.parametrize(("function", "slope"), [(kinked, kinked_slope), (jumping, lambda x: 1 + x)])
def test_what_is_only_close_by_needs_no_ladder(function: Rows, slope: Rows) -> None:
    result = probed(elementwise(function, slope, POINT))
    assert result.verdict is Verdict.RIGHT, result
    assert result.cost.evaluations <= 24


@pytest.mark.parametrize("share", [1.01, 0.0])
@pytest.mark.parametrize("where", [3, 7])
def test_a_wrong_entry_is_found(share: float, where: int) -> None:
    """Beside a kink, or away from all. With jumps close by, which look like noise, it is at least not called right."""
    off = np.ones(SIZE)
    off[where] = share
    result = probed(elementwise(kinked, lambda x: off * kinked_slope(x), POINT))
    assert result.verdict is Verdict.WRONG, result
    assert f"[{where}]" in str(result)
    assert probed(elementwise(jumping, lambda x: off * (1 + x), POINT)).verdict is not Verdict.RIGHT


@pytest.mark.parametrize("size", [1, 3, 40])
@pytest.mark.parametrize("seed", range(4))
def test_what_float32_hides_from_a_short_step_is_still_missed(size: int, seed: int) -> None:
    """A part that is computed in float32 does not move over a short step, and yet its derivative must not be left
    out."""
    point = np.random.default_rng(seed).uniform(1.0, 2.0, 2 * size)

    def function(rows: Array) -> Array:
        smooth, rounded = rows[:, :size], np.sin(rows[:, size:].astype(np.float32)).astype(float)
        return np.concatenate([smooth**2 + rounded, smooth**3], axis=1)

    def program(share: float) -> HandProgram:
        x, y = point[:size], point[size:]
        jacobian = np.block([[np.diag(2 * x), np.diag(share * np.cos(y))], [np.diag(3 * x**2), np.zeros((size, size))]])
        return HandProgram(function, jacobian, point, input_shapes=((size,), (size,)))

    assert probed(program(0.0)).verdict is Verdict.WRONG
    assert probed(program(1.0)).verdict is not Verdict.WRONG


WRONG, STAIRS = 48, 12


def beside_stairs(share: float) -> HandProgram:
    """Squares of one leaf, with a derivative that is off by a factor; roots of another by a solver that stops early."""
    point = np.random.default_rng(2).uniform(0.6, 2.9, WRONG + STAIRS)

    def function(rows: Array) -> Array:
        return np.concatenate([rows[:, :WRONG] ** 2, bisected_root(rows[:, WRONG:])], axis=1)

    slopes = np.concatenate([share * 2 * point[:WRONG], 0.5 / np.sqrt(point[WRONG:])])
    shapes = ((WRONG,), (STAIRS,))
    return HandProgram(function, np.diag(slopes), point, shapes, shapes)


def test_columns_that_are_all_wrong_are_soon_believed_and_blame_no_others() -> None:
    settings = Settings.validated(modes=("reverse",), seed=1, contracts="none", effort="exhaustive")
    right, wrong = (check_program(beside_stairs(share), settings) for share in (1.0, 1.5))
    assert right.verdict is not Verdict.WRONG, right
    assert wrong.verdict is Verdict.WRONG
    blamed = {(one.output.path, one.input.path): one.wrong for one in wrong.comparisons if one.verdict is Verdict.WRONG}
    assert blamed == {("y0", "x0"): WRONG}
    # Two of them for a glance at each by itself, which the right ones do not need: see `together`.
    assert wrong.cost.evaluations - right.cost.evaluations <= (8 + 2) * WRONG
