"""Cotangents of a gradient, in which it is linear, are moved together in thousands: no entry goes unseen for that."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Result, Settings, Verdict, check_program
from gradproof.evidence.groups import LINEAR, MEMBERS, groups_of
from gradproof.program import Array, leaves

OUTPUTS = 6


def run(program: HandProgram, **options: object) -> Result:
    return check_program(program, Settings.validated(effort="exhaustive", **{"seed": 1, **options}))  # type: ignore[arg-type]


def draw(*shape: int, seed: int = 7) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def gradient(
    function: object, jacobian: Array, w: Array, paths: tuple[str, str] = ("x", "cotangent(y)")
) -> HandProgram:
    """A function of x (OUTPUTS,) and w at a point, with the Jacobian that both modes claim."""
    x = jacobian.shape[1] - w.size
    program = HandProgram(function, jacobian, np.concatenate([draw(x), w]))  # type: ignore[arg-type]
    program.inputs = leaves([(paths[0], (x,), "float64"), (paths[1], (w.size,), "float64")])
    return program


def weighed(size: int, off: Array | None = None) -> HandProgram:
    """sin(x_i) (A w)_i, and what is claimed of w is off by something."""
    matrix, w, x = draw(OUTPUTS, size, seed=3), draw(size, seed=4), draw(OUTPUTS)

    def function(rows: Array) -> Array:
        return np.asarray(np.sin(rows[:, :OUTPUTS]) * (rows[:, OUTPUTS:] @ matrix.T))

    second = np.sin(x)[:, None] * matrix
    claimed = second if off is None else second + off
    return gradient(function, np.hstack([np.diag(np.cos(x) * (matrix @ w)), claimed]), w)


def places(result: Result) -> set[str]:
    return {str(finding.place) for finding in result.wrong}


@pytest.mark.parametrize("size", [100, 1000, 5000, 9000])
def test_a_right_one_takes_a_handful_of_evaluations(size: int) -> None:
    result = run(weighed(size))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations <= 8 + 2 * (2 + max(2, -(-size // LINEAR)))
    block = result.comparisons[1]
    assert (np.abs(block.numeric - block.analytic) <= block.bar).all()
    assert (block.bar <= block.tolerance).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [100, 1000, 5000])
@pytest.mark.parametrize("by", [3e-5, 0.1])
def test_one_entry_that_is_off_is_found_wherever_it_is(size: int, by: float, seed: int) -> None:
    chosen, off = np.random.default_rng(seed), np.zeros((OUTPUTS, size))
    place = int(chosen.integers(OUTPUTS)), int(chosen.integers(size))
    off[place] = by * (1 + abs(draw(OUTPUTS, size, seed=3)[place]))
    assert places(run(weighed(size, off), seed=seed)) == {f"d y0[{place[0]}] / d cotangent(y)[{place[1]}]"}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [1e-4, 0.5])
def test_entries_that_cancel_in_a_sum_are_found(size: float, seed: int) -> None:
    off = np.zeros((OUTPUTS, 1000))
    off[2, [4, 10]] = size, -size
    found = run(weighed(1000, off), seed=seed).comparisons[1].found
    assert {str(entry.place) for entry in found} == {
        "d y0[2] / d cotangent(y)[4]",
        "d y0[2] / d cotangent(y)[10]",
    }


@pytest.mark.parametrize("seed", range(10))
def test_a_whole_block_that_is_off_by_little_is_found(seed: int) -> None:
    assert run(weighed(2000, 3e-5 * draw(OUTPUTS, 2000, seed=5)), seed=seed).verdict is Verdict.WRONG


@pytest.mark.parametrize("claimed", [0.0, 1.0, 2.0])
def test_a_kink_among_thousands_is_told(claimed: float) -> None:
    """relu of one cotangent at zero, a hundredth of the others."""
    w = draw(3000, seed=4)
    w[1234] = 0.0
    slope = np.ones(3000)
    slope[1234] = 0.02 * claimed

    def function(rows: Array) -> Array:
        kinked = 0.02 * np.maximum(rows[:, 2 + 1234], 0.0) - rows[:, 2 + 1234]
        return np.stack([rows[:, 2:].sum(axis=1) + kinked, rows[:, 0] * rows[:, 1]], axis=1)

    x = draw(2)
    jacobian = np.zeros((2, 3002))
    jacobian[0, 2:], jacobian[1, :2] = slope, x[::-1]
    result = run(gradient(function, jacobian, w))
    if claimed == 2.0:
        assert places(result) == {"d y0[0] / d cotangent(y)[1234]"}
    else:
        assert result.verdict is Verdict.RIGHT
        assert "kink" in str(result)


def test_what_is_not_linear_gets_usual_groups_and_is_right() -> None:
    w, jacobian = draw(2000, seed=4), np.zeros((1, 2002))
    jacobian[0, :2], jacobian[0, 2:] = 1.0, np.cos(w)

    def function(rows: Array) -> Array:
        return np.asarray((rows[:, :2].sum(axis=1) + np.sin(rows[:, 2:]).sum(axis=1))[:, None])

    result = run(gradient(function, jacobian, w))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations <= 16 + 2 * (2 + 2 + 2000 // MEMBERS)


def test_only_cotangents_in_double_are_moved_in_thousands() -> None:
    def count(path: str, dtype: str) -> int:
        return groups_of(leaves([(path, (2000,), dtype)])).count

    assert count("args[0]", "float64") == count("cotangent(out)", "float32") == -(-2000 // MEMBERS)
    assert count("cotangent(out)", "float64") == 2
    assert count("cotangent(out)", "complex128") == 2
