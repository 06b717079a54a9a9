"""Columns of forward mode are pushed together: fewer pushes, and no entry of it goes unseen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from programs import HandProgram, Rows, elementwise

from gradproof import Result, Settings, Verdict, check_program
from gradproof.program import Array

SIZE = 60
POINT = np.random.default_rng(7).standard_normal(SIZE)
DIAGONAL = np.cos(POINT)


def run(program: HandProgram, **options: Any) -> Result:
    return check_program(program, Settings.validated(effort="exhaustive", **{"seed": 1, **options}))


def spoiled(**entries: float) -> Rows:
    """Right, but for these entries in addition, each named by output and input: `y3x17=0.1`."""

    def multiply(rows: Array) -> Array:
        result = rows * DIAGONAL
        for name, size in entries.items():
            output, coordinate = (int(part) for part in name[1:].split("x"))
            result[:, output] += size * rows[:, coordinate]
        return result

    return multiply


def places(result: Result) -> set[str]:
    return {str(finding.place) for finding in result.wrong}


def test_a_diagonal_takes_a_handful_of_pushes() -> None:
    result = run(elementwise(np.sin, np.cos, POINT))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pushes <= 4
    reverse, forward = result.comparisons
    assert (reverse.mode, forward.mode) == ("reverse", "forward")
    np.testing.assert_array_equal(forward.analytic, np.diag(DIAGONAL))


def test_numbers_that_differ_in_the_last_digits_are_the_same() -> None:
    result = run(elementwise(np.sin, np.cos, POINT, push_with=lambda rows: rows * (DIAGONAL * (1 + 2**-50))))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pushes <= 4
    np.testing.assert_array_equal(*(one.analytic for one in result.comparisons))


def test_numbers_that_differ_by_more_are_those_of_forward_mode() -> None:
    result = run(elementwise(np.sin, np.cos, POINT, push_with=lambda rows: rows * (DIAGONAL * (1 + 2**-40))))
    assert result.cost.pushes > SIZE
    forward = result.comparisons[1]
    np.testing.assert_allclose(forward.analytic, np.diag(DIAGONAL * (1 + 2**-40)), rtol=2**-51, atol=0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("entry", ["y3x17", "y59x0", "y5x5"])
@pytest.mark.parametrize("size", [0.5, 1e-3])
def test_one_wrong_entry_is_found_where_it_is(entry: str, size: float, seed: int) -> None:
    result = run(elementwise(np.sin, np.cos, POINT, push_with=spoiled(**{entry: size})), seed=seed)
    assert result.verdict is Verdict.WRONG
    output, coordinate = entry[1:].split("x")
    assert places(result) == {f"d y0[{output}] / d x0[{coordinate}]"}
    assert [one.verdict for one in result.comparisons] == [Verdict.RIGHT, Verdict.WRONG]


def test_what_is_within_the_tolerance_is_still_held_against_the_other_mode() -> None:
    result = run(elementwise(np.sin, np.cos, POINT, push_with=spoiled(y3x17=1e-7)))
    assert [finding.code for finding in result.wrong] == ["adjoint"]
    assert places(result) == {"d y0[3] / d x0[17]"}


def test_entries_of_equal_size_do_not_cancel() -> None:
    result = run(elementwise(np.sin, np.cos, POINT, push_with=spoiled(y3x17=0.1, y3x18=-0.1)))
    assert result.verdict is Verdict.WRONG
    assert result.comparisons[1].wrong == 2


def test_a_number_that_is_not_finite_is_found_where_it_is() -> None:
    def push(rows: Array) -> Array:
        result = rows * DIAGONAL
        result[rows[:, 17] != 0, 3] = np.nan
        return result

    result = run(elementwise(np.sin, np.cos, POINT, push_with=push))
    assert result.verdict is Verdict.WRONG
    assert places(result) == {"d y0[3] / d x0[17]"}


@dataclass
class Narrow(HandProgram):
    """In float32, of which a copy in float64 is right."""

    def widened(self) -> HandProgram:
        return elementwise(np.sin, np.cos, self.point, tally=self.tally)


def narrow(**options: Any) -> Narrow:
    def rounded(rows: Array) -> Array:
        return np.asarray((rows.astype(np.float32) * DIAGONAL.astype(np.float32)).astype(np.float64))

    modes = {"pull_with": rounded, "push_with": rounded} | options
    point = POINT.astype(np.float32).astype(np.float64)
    return Narrow(lambda points: np.sin(points.astype(np.float32)), np.zeros((0, 0)), point, dtype="float32", **modes)


def test_a_narrow_format_takes_few_pushes_of_its_own() -> None:
    result = run(narrow())
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pushes <= 7


@pytest.mark.parametrize("entry", ["y3x17", "y59x0", "y5x5"])
@pytest.mark.parametrize("mode", ["pull_with", "push_with"])
def test_an_entry_that_is_wrong_in_the_narrow_format_alone_is_found(mode: str, entry: str) -> None:
    output, coordinate = (int(part) for part in entry[1:].split("x"))
    name = entry if mode == "push_with" else f"y{coordinate}x{output}"
    result = run(narrow(**{mode: spoiled(**{name: 0.05})}))
    assert result.verdict is Verdict.WRONG
    assert places(result) == {f"d y0[{output}] / d x0[{coordinate}]"}


MATRIX = np.random.default_rng(3).standard_normal((50, SIZE))


def dense(**wrong: float) -> HandProgram:
    """A full Jacobian, and in forward mode these entries in addition."""
    jacobian = MATRIX * DIAGONAL
    claimed = jacobian.copy()
    for name, size in wrong.items():
        output, coordinate = (int(part) for part in name[1:].split("x"))
        claimed[output, coordinate] += size
    return HandProgram(lambda points: np.sin(points) @ MATRIX.T, jacobian, POINT, push_with=lambda u: u @ claimed.T)


def test_columns_of_a_full_jacobian_are_pushed_together() -> None:
    result = run(dense())
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pushes <= 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [0.5, 1e-3])
def test_one_wrong_entry_of_a_full_jacobian_is_found_where_it_is(size: float, seed: int) -> None:
    result = run(dense(y3x17=size), seed=seed)
    assert places(result) == {"d y0[3] / d x0[17]"}
    assert [one.verdict for one in result.comparisons] == [Verdict.RIGHT, Verdict.WRONG]


def test_in_a_full_jacobian_too_the_modes_are_held_against_each_other() -> None:
    result = run(dense(y3x17=1e-6))
    assert [finding.code for finding in result.wrong] == ["adjoint"]
    assert places(result) == {"d y0[3] / d x0[17]"}


def test_in_a_full_jacobian_too_entries_of_equal_size_do_not_cancel() -> None:
    result = run(dense(y3x17=0.1, y3x19=-0.1, y4x17=-0.1))
    assert result.comparisons[1].wrong == 3


@dataclass
class NarrowAndFull(HandProgram):
    """In float32, of which a copy in float64 is right."""

    def widened(self) -> HandProgram:
        program = dense()
        return HandProgram(program.function, MATRIX * np.cos(self.point), self.point, tally=self.tally)


@pytest.mark.parametrize(("size", "verdict"), [(0.0, Verdict.RIGHT), (0.05, Verdict.WRONG)])
def test_a_full_jacobian_in_a_narrow_format(size: float, verdict: Verdict) -> None:
    point = POINT.astype(np.float32).astype(np.float64)
    jacobian = (MATRIX * np.cos(point)).astype(np.float32).astype(np.float64)
    claimed = jacobian.copy()
    claimed[3, 17] += size
    result = run(
        NarrowAndFull(
            lambda points: (np.sin(points) @ MATRIX.T).astype(np.float32),
            jacobian,
            point,
            dtype="float32",
            push_with=lambda u: (u @ claimed.T).astype(np.float32).astype(np.float64),
        )
    )
    assert result.verdict is verdict
    assert places(result) == ({"d y0[3] / d x0[17]"} if size else set())
