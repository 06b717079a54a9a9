"""Inputs are moved together: fewer evaluations, and no entry goes unseen."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram, elementwise

from gradproof import Result, Settings, Verdict, check_program
from gradproof.evidence.groups import MEMBERS, groups_of
from gradproof.program import Array, leaves


def run(program: HandProgram, **options: object) -> Result:
    return check_program(program, Settings.validated(effort="exhaustive", **{"seed": 1, **options}))  # type: ignore[arg-type]


def point(size: int) -> Array:
    return np.random.default_rng(7).standard_normal(size)


def matrix(outputs: int, inputs: int) -> Array:
    return np.random.default_rng(3).standard_normal((outputs, inputs))


def linear(jacobian: Array, claimed: Array | None = None) -> HandProgram:
    """Both modes claim the other matrix, if there is one."""
    said = jacobian if claimed is None else claimed
    return HandProgram(lambda rows: rows @ jacobian.T, said, point(jacobian.shape[1]))


def places(result: Result) -> set[str]:
    return {str(finding.place) for finding in result.wrong}


@pytest.mark.parametrize("size", [16, 576, 1000])
def test_a_diagonal_jacobian_takes_a_handful_of_evaluations(size: int) -> None:
    result = run(elementwise(np.sin, np.cos, point(size)))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations <= 8 + 2 * max(2, -(-size // MEMBERS))
    (block, _) = result.comparisons
    np.testing.assert_allclose(block.numeric, np.diag(np.cos(point(size))), atol=1e-7)
    assert (np.abs(block.numeric - block.analytic) <= block.bar).all()
    assert (block.bar <= block.tolerance).all()


@pytest.mark.parametrize(("outputs", "inputs"), [(1, 300), (40, 40), (300, 20), (7, 640)])
def test_so_does_a_full_one(outputs: int, inputs: int) -> None:
    jacobian = matrix(outputs, inputs)
    result = run(linear(jacobian))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations <= 8 + 2 * max(2, -(-inputs // MEMBERS))
    (block, _) = result.comparisons
    np.testing.assert_allclose(block.numeric, jacobian, atol=1e-7)
    assert (np.abs(block.numeric - block.analytic) <= block.bar).all()
    assert (block.bar <= block.tolerance).all()


@pytest.mark.parametrize("seed", range(20))
def test_one_entry_that_is_off_is_found_wherever_it_is(seed: int) -> None:
    """By twice the tolerance, which is relative to the rms of the matrix."""
    jacobian, chosen = matrix(30, 150), np.random.default_rng(seed)
    wrong = jacobian.copy()
    place = int(chosen.integers(30)), int(chosen.integers(150))
    wrong[place] += 2e-5 * max(1.0, abs(jacobian[place]))
    result = run(linear(jacobian, wrong), seed=seed)
    assert places(result) == {f"d y0[{place[0]}] / d x0[{place[1]}]"}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1e-4, 0.5])
def test_entries_that_cancel_in_a_sum_are_found(size: float, seed: int) -> None:
    """Of one output and one group: every second input of a leaf with two of them."""
    jacobian = matrix(5, 40)
    wrong = jacobian.copy()
    wrong[2, 4] += size
    wrong[2, 10] -= size
    result = run(linear(jacobian, wrong), seed=seed)
    assert {str(entry.place) for entry in result.comparisons[0].found} == {"d y0[2] / d x0[4]", "d y0[2] / d x0[10]"}


@pytest.mark.parametrize("seed", range(20))
def test_a_whole_gradient_that_is_off_by_little_is_found(seed: int) -> None:
    jacobian = matrix(1, 30)
    result = run(linear(jacobian, 1.00003 * jacobian), seed=seed)
    assert result.verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [0.02, 1e-3])
def test_a_dependency_that_nobody_claims_is_found(size: float, seed: int) -> None:
    """y_3 also depends on x_17, a little."""

    def function(points: Array) -> Array:
        values = np.sin(points)
        values[:, 3] += size * points[:, 17]
        return values

    result = run(elementwise(function, np.cos, point(60)), seed=seed)
    assert places(result) == {"d y0[3] / d x0[17]"}


def test_dependencies_of_equal_size_do_not_cancel() -> None:
    """Claimed: y_i depends on x_i. True: on x_i + x_{i+1} - x_{i+2}."""

    def function(points: Array) -> Array:
        return points + np.roll(points, -1, axis=1) - np.roll(points, -2, axis=1)

    result = run(elementwise(function, np.ones_like, point(60)))
    assert result.verdict is Verdict.WRONG
    assert result.comparisons[0].wrong == 120


@pytest.mark.parametrize("claimed", [0.0, 1.0, 2.0])
def test_a_kink_among_smooth_inputs_is_told(claimed: float) -> None:
    """relu at 0, in a sum with 29 others."""
    x = point(30)
    x[11] = 0.0
    slope = np.where(np.arange(30) == 11, claimed, (x > 0).astype(float))[None]

    def function(points: Array) -> Array:
        return np.maximum(points, 0.0).sum(axis=1, keepdims=True)

    result = run(HandProgram(function, slope, x))
    if claimed == 2.0:
        assert places(result) == {"d y0[0] / d x0[11]"}
    else:
        assert result.verdict is Verdict.RIGHT
        assert "kink" in str(result)


@pytest.mark.parametrize("wrong", [None, 11, 21, 300])
def test_only_the_group_that_leaves_a_doubt_is_taken_apart(wrong: int | None) -> None:
    """640 inputs in ten groups: |x| at 0 among squares. Wrong: beside it in its own group, or in another one."""
    x = point(640)
    x[1] = 0.0
    slope = np.where(np.arange(640) == 1, 0.0, 2 * x)

    def function(points: Array) -> Array:
        values = points**2
        values[:, 1] = np.abs(points[:, 1])
        return values

    claimed = slope.copy()
    if wrong is not None:
        claimed[wrong] *= 1.01
    result = run(elementwise(function, lambda _: slope, x, pull_with=lambda rows: rows * claimed), modes=("reverse",))
    assert "kink" in str(result)
    if wrong is None:
        assert result.verdict is Verdict.RIGHT
        assert result.cost.evaluations <= 4 * MEMBERS
        (block,) = result.comparisons
        np.testing.assert_allclose(block.numeric, np.diag(slope), atol=1e-7)
    else:
        assert places(result) == {f"d y0[{wrong}] / d x0[{wrong}]"}


def test_leaves_of_very_different_size_are_still_judged_each_by_its_own() -> None:
    x = np.concatenate([point(20), 1e-6 * point(20), 1e6 * point(20)])
    shapes = {"input_shapes": ((20,),) * 3, "output_shapes": ((20,),) * 3}
    right = run(elementwise(np.square, lambda rows: 2 * rows, x, **shapes))
    assert right.verdict is Verdict.RIGHT
    wrong = 2 * x
    wrong[30] *= 1.05
    spoiled = run(elementwise(np.square, lambda rows: 2 * rows, x, pull_with=lambda rows: rows * wrong, **shapes))
    assert places(spoiled) == {"d y1[10] / d x1[10]"}


@pytest.mark.parametrize("size", [80, 300])
def test_a_block_of_nothing_but_rounding_claims_to_be_zero(size: int) -> None:
    noise = 1e-17 * matrix(size, size)
    result = run(HandProgram(np.ones_like, noise, point(size)), contracts="none")
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations <= 8 + 2 * max(2, -(-size // MEMBERS))


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9])
def test_where_it_is_not_zero_that_is_wrong(share: float) -> None:
    jacobian = matrix(80, 80)
    program = HandProgram(lambda rows: 1.0 + share * (rows @ jacobian.T), 1e-17 * matrix(80, 80), point(80))
    assert run(program, contracts="none").verdict is Verdict.WRONG
    program = HandProgram(np.ones_like, share * jacobian, point(80))
    assert run(program, contracts="none").verdict is Verdict.WRONG


@pytest.mark.parametrize("numbers", [2**22, 5000, 1])
def test_rows_of_groups_are_made_piece_by_piece(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradproof.evidence.groups.NUMBERS", numbers)
    groups = groups_of(leaves([("a", (1000,), "float64"), ("b", (0,), "float64"), ("c", (130,), "float64")]))
    amounts = point(1130)
    pieces = list(groups.rows(amounts))
    assert all(piece.size <= max(numbers, 1130) for piece in pieces)
    rows = np.concatenate(pieces)
    assert rows.shape == (groups.count, 1130)
    np.testing.assert_array_equal(rows.sum(axis=0), amounts)
    np.testing.assert_array_equal(np.count_nonzero(rows, axis=1), np.bincount(groups.of))
    np.testing.assert_array_equal(rows[groups.of, np.arange(1130)], amounts)


def test_groups_are_made_once_and_stay_as_they_are() -> None:
    first, second, other = (groups_of(leaves([("a", (size,), "float64")])) for size in (1000, 1000, 999))
    assert first is second
    assert other.of.size == 999
    with pytest.raises(ValueError, match="read-only"):
        first.of[0] = 7


@pytest.mark.parametrize("detail", ["summary", "verdict"])
def test_a_function_that_does_not_repeat_is_asked_so_before_its_groups_are_taken_apart(detail: str) -> None:
    """One output of 640 keeps state: that leaves a doubt in every group, and each column by itself would cost 1,280."""
    calls = np.random.default_rng(5)

    def function(points: Array, size: float = 1e-3) -> Array:
        values = np.sin(points)
        values[:, 3] += size * calls.standard_normal(len(points))
        return values

    def judged(size: float) -> Result:
        program = elementwise(lambda points: function(points, size), np.cos, point(640))
        program.draws = False  # type: ignore[attr-defined]  # nobody has seen it draw: so it is not asked beforehand
        return run(program, detail=detail)

    kept = judged(1e-3)
    assert [finding.code for finding in kept.findings] == ["random"]
    assert kept.cost.evaluations <= MEMBERS
    assert judged(0.0).verdict is Verdict.RIGHT
