"""Rows and columns that are small beside others of their block: wrong is wrong there, and rounding is rounding."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Result, Settings, Tolerance, Verdict, check_program
from gradproof.agreement import GROSS
from gradproof.evidence.lines import LEAST, scale_of
from gradproof.norms import rms
from gradproof.program import Array

MATRIX = np.random.default_rng(0).standard_normal((6, 5))
POINT = np.random.default_rng(1).standard_normal(5)
DEFAULT = Tolerance(1e-5, gross=GROSS)


def run(program: HandProgram, **options: object) -> Result:
    options.setdefault("seed", 1)
    return check_program(program, Settings.validated(**options))  # type: ignore[arg-type]


def gradient(ratio: float, factor: float) -> HandProgram:
    """ratio x0^2 + sin x1, of which the second derivative is claimed so many times too large."""
    claimed = np.array([[2.0 * ratio, factor * np.cos(1.0)]])
    return HandProgram(lambda p: ratio * p[:, :1] ** 2 + np.sin(p[:, 1:]), claimed, np.ones(2))


def jacobian(line: str, ratio: float, factor: float) -> HandProgram:
    """sin(A x), of which the third row or column is so many times smaller, and claimed so many times too large."""
    rows, columns = np.ones(6), np.ones(5)
    (rows if line == "row" else columns)[2] = 1.0 / ratio
    claimed = rows[:, None] * np.cos(MATRIX @ (columns * POINT))[:, None] * MATRIX * columns
    if line == "row":
        claimed[2] *= factor
    else:
        claimed[:, 2] *= factor
    return HandProgram(lambda p: rows * np.sin((columns * p) @ MATRIX.T), claimed, POINT)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e5, 1e6])
def test_a_small_entry_of_a_gradient_is_judged_by_itself(ratio: float, seed: int) -> None:
    right = run(gradient(ratio, 1.0), seed=seed)
    assert right.ok
    assert not right.findings
    for factor in (-1.0, 0.0, 1.2):
        wrong = run(gradient(ratio, factor), seed=seed)
        assert [str(one.place) for one in wrong.wrong] == ["d y0[0] / d x0[1]"] * 2, factor


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("line", ["row", "column"])
def test_a_small_line_of_a_jacobian_is_judged_by_itself(line: str, ratio: float) -> None:
    right = run(jacobian(line, ratio, 1.0))
    assert right.ok
    assert not right.findings
    for factor in (-1.0, 0.0, 1.5):
        wrong = run(jacobian(line, ratio, factor))
        assert wrong.verdict is Verdict.WRONG, factor
        assert all("y0[2]" in str(one.place) if line == "row" else "x0[2]" in str(one.place) for one in wrong.wrong)


@pytest.mark.parametrize(("line", "place"), [("row", "y0[2]"), ("column", "x0[2]")])
@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_a_line_that_is_too_small_to_be_seen_is_remarked_upon(line: str, place: str, factor: float) -> None:
    result = run(jacobian(line, 1e9, factor))
    assert result.ok
    assert [(one.code, str(one.place)) for one in result.findings] == [("vacuous", place)]
    assert f"little about {place}: a negated gradient would have passed too" in result.findings[0].sentence


def test_small_lines_are_counted() -> None:
    sizes = np.array([1.0, 1e-9, 1e-10, 0.0])
    (remark,) = run(HandProgram(lambda p: (sizes * np.sin(p)).sum(axis=1)[:, None], sizes[None], np.zeros(4))).findings
    assert "x0[1] (and 1 more)" in remark.sentence


def test_an_accepted_deviation_is_the_users_own() -> None:
    assert run(gradient(1e6, -1.0), tolerance=1e-5).ok
    assert not run(gradient(1e6, -1.0)).ok


def test_what_is_tiny_in_its_row_and_its_column_is_rounding() -> None:
    def program(claimed: float) -> HandProgram:
        matrix = np.array(MATRIX)
        matrix[2, 2] = 1e-7
        said = matrix.copy()
        said[2, 2] = claimed
        return HandProgram(lambda p: p @ matrix.T, said, POINT)

    assert run(program(-1e-7)).ok
    assert run(program(1e-4)).verdict is Verdict.WRONG


@pytest.mark.parametrize("error", [1e-8, 2e-8])
def test_a_solver_that_stops_at_eight_digits_is_right(error: float) -> None:
    sizes = np.array([1.0, 0.3, 1e-6, 1e-7, 0.0])

    def program(scale: float) -> HandProgram:
        claimed = sizes + scale * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        return HandProgram(lambda p: (sizes * np.sin(p)).sum(axis=1)[:, None], claimed[None], np.zeros(5))

    assert run(program(error)).ok
    assert run(program(1e-6)).verdict is Verdict.WRONG


def test_a_slope_that_a_function_of_large_numbers_hides_is_not_zero() -> None:
    def function(points: Array) -> Array:
        hidden = (1e8 + 1e-6 * points[:, 1]) - 1e8  # less than a spacing
        return np.stack([1e3 * points[:, 0], hidden, 1e-3 * points[:, 0]], axis=1)

    claimed = np.array([[1e3, 0.0], [0.0, 1e-6], [1e-3, 0.0]])
    assert run(HandProgram(function, claimed, np.full(2, 1e-3))).verdict is not Verdict.WRONG


def test_the_scale_is_the_blocks_where_nothing_is_small_or_known() -> None:
    alike, mixed = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1e-6]])
    exact, vague = np.zeros((1, 2)), np.full((1, 2), 1e-6)
    assert scale_of(alike, np.zeros((2, 2)), DEFAULT) == rms(alike)
    assert scale_of(mixed, exact, Tolerance(1e-5)) == rms(mixed)
    np.testing.assert_allclose(scale_of(mixed, exact, DEFAULT), [[rms(mixed), GROSS * 1e-6 / 1e-5]])
    np.testing.assert_allclose(scale_of(mixed, vague, DEFAULT), rms(mixed))
    nothing = np.array([[1.0, 0.5 * LEAST * rms(mixed)]])
    np.testing.assert_allclose(scale_of(nothing, exact, DEFAULT), rms(nothing))
