"""Groups that leave a doubt are moved once more, over a better length, before they are taken apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Result, Settings, Verdict, check_program
from gradproof.evidence.lengths import LONGER, SHORTER, better_lengths
from gradproof.program import Array
from gradproof.settings import Tolerance

SIZE = 256
# Over the first length: the one is bent too much, the other is too small beside what it is added to.
CURVED, HIGH = "curved", "high"
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    CURVED: lambda rows: np.sin(40 * rows).sum(axis=1, keepdims=True) / 40,
    HIGH: lambda rows: np.sin(rows).sum(axis=1, keepdims=True) + 1.5e4,
}
SLOPES: dict[str, Callable[[Array], Array]] = {CURVED: lambda x: np.cos(40 * x), HIGH: np.cos}


def run(name: str, off: float = 0.0, place: int = 0, seed: int = 1) -> Result:
    x = 0.75 + np.random.default_rng(7).random(SIZE) / 2
    claimed = SLOPES[name](x)[None]
    claimed[0, place] += off
    program = HandProgram(FUNCTIONS[name], claimed, x)
    tolerance = Tolerance(relative=1e-3, absolute=1e-14, block=1e-5, ceiling=1e-5)
    return check_program(program, Settings.validated(effort="exhaustive", tolerance=tolerance, seed=seed))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_right_one_takes_a_handful_of_evaluations(name: str) -> None:
    result = run(name)
    assert result.verdict is Verdict.RIGHT
    assert 2 + 2 * 4 < result.cost.evaluations <= 8 + 2 * 8
    block = result.comparisons[0]
    assert (np.abs(block.numeric - block.analytic) <= block.bar).all()
    assert (block.bar <= block.tolerance).all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("off", [3e-5, 1e-2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_entry_that_is_off_is_found_wherever_it_is(name: str, off: float, seed: int) -> None:
    place = int(np.random.default_rng(seed).integers(SIZE))
    slope = float(SLOPES[name](0.75 + np.random.default_rng(7).random(SIZE) / 2)[place])
    result = run(name, off * (1 + 100 * abs(slope)), place, seed)
    assert {str(finding.place) for finding in result.wrong} == {f"d y0[0] / d x0[{place}]"}


def test_a_length_that_is_better_for_both_or_none() -> None:
    inf, nan = float("inf"), float("nan")
    truncation = np.array([0.1, 4.0, 0.1, 4.0, 1e9, inf, nan, 0.0, 0.0])
    rounding = np.array([0.1, 1e-3, 2.0, 2.0, 0.0, 0.0, 0.0, 1e9, nan])
    assert better_lengths(truncation, rounding).tolist() == [0, -2, 0, 0, 0, 0, 0, 0, 0]
    assert better_lengths(np.zeros(2), np.array([2.0, 2.0**LONGER / 2])).tolist() == [2, LONGER]
    assert better_lengths(np.array([4.0**SHORTER / 2]), np.zeros(1)).tolist() == [-SHORTER]
