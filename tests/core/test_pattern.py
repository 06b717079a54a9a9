"""Inputs that share no output are moved together: fewer evaluations, and no entry goes unseen."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram, elementwise

from gradproof import Result, Settings, Verdict, check_program
from gradproof.evidence.pattern import pattern_of
from gradproof.program import Array, leaves


def run(program: HandProgram, **options: object) -> Result:
    return check_program(program, Settings.validated(effort="exhaustive", **{"seed": 1, **options}))  # type: ignore[arg-type]


def point(size: int) -> Array:
    return np.random.default_rng(7).standard_normal(size)


def blocks(count: int, side: int) -> Array:
    return np.kron(np.eye(count), np.random.default_rng(1).uniform(1, 2, (side, side)))


def valid(jacobian: Array, groups: np.ndarray) -> bool:
    """No output depends on two inputs of a group."""
    members = np.zeros((groups.max() + 1, groups.size))
    members[groups, np.arange(groups.size)] = 1
    return bool(((jacobian != 0) @ members.T <= 1).all())


def banded(size: int, width: int) -> Array:
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.where(distance <= width, 1.0, 0.0)


@pytest.mark.parametrize(
    ("jacobian", "most"),
    [(np.eye(50), 1), (blocks(12, 5), 5), (banded(60, 2), 7), (np.eye(40)[:, ::-1].copy(), 1), (np.zeros((9, 20)), 1)],
    ids=["diagonal", "blocks", "band", "reversed", "zero"],
)
def test_groups_share_no_output(jacobian: Array, most: int) -> None:
    pattern = pattern_of((jacobian.T,), leaves([("x", (jacobian.shape[1],), "float64")]))
    assert pattern is not None
    assert valid(jacobian, pattern.groups)
    assert pattern.count <= most


@pytest.mark.parametrize("jacobian", [np.ones((6, 6)), np.ones((1, 40)), np.tri(30)], ids=["full", "row", "triangle"])
def test_there_is_no_pattern_where_it_would_save_little(jacobian: Array) -> None:
    assert pattern_of((jacobian.T,), leaves([("x", (jacobian.shape[1],), "float64")])) is None


def test_groups_do_not_mix_leaves_and_count_what_any_mode_claims() -> None:
    first, second = np.eye(8, 16), np.eye(8, 16, 8)
    both = leaves([("x", (8,), "float64"), ("y", (8,), "float64")])
    pattern = pattern_of((first.T, second.T), both)
    assert pattern is not None
    assert pattern.count == 2
    assert set(pattern.groups[:8]).isdisjoint(pattern.groups[8:])
    assert valid(first + second, pattern.groups)


@pytest.mark.parametrize("size", [16, 576, 1000])
def test_a_diagonal_jacobian_takes_a_handful_of_evaluations(size: int) -> None:
    result = run(elementwise(np.sin, np.cos, point(size)))
    assert result.verdict is Verdict.RIGHT
    assert result.cost.evaluations <= 8
    (block, _) = result.comparisons
    np.testing.assert_allclose(block.numeric, np.diag(np.cos(point(size))), atol=1e-7)
    assert (np.abs(block.numeric - block.analytic) <= block.bar).all()
    assert (block.bar <= block.tolerance).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [0.02, 1e-3])
def test_a_dependency_that_nobody_claims_is_found(size: float, seed: int) -> None:
    """y_3 also depends on x_17, a little."""

    def function(points: Array) -> Array:
        values = np.sin(points)
        values[:, 3] += size * points[:, 17]
        return values

    result = run(elementwise(function, np.cos, point(60)), seed=seed)
    assert result.verdict is Verdict.WRONG
    assert {str(finding.place) for finding in result.wrong} == {"d y0[3] / d x0[17]"}


def test_dependencies_of_equal_size_do_not_cancel() -> None:
    """Claimed: y_i depends on x_i. True: on x_i + x_{i+1} - x_{i+2}."""

    def function(points: Array) -> Array:
        return points + np.roll(points, -1, axis=1) - np.roll(points, -2, axis=1)

    result = run(elementwise(function, np.ones_like, point(60)))
    assert result.verdict is Verdict.WRONG
    assert result.comparisons[0].wrong == 120


def test_leaves_of_very_different_size_are_still_judged_each_by_its_own() -> None:
    x = np.concatenate([point(20), 1e-6 * point(20), 1e6 * point(20)])
    shapes = {"input_shapes": ((20,),) * 3, "output_shapes": ((20,),) * 3}
    right = run(elementwise(np.square, lambda rows: 2 * rows, x, **shapes))
    assert right.verdict is Verdict.RIGHT
    wrong = 2 * x
    wrong[30] *= 1.05
    spoiled = run(elementwise(np.square, lambda rows: 2 * rows, x, pull_with=lambda rows: rows * wrong, **shapes))
    assert {str(finding.place) for finding in spoiled.wrong} == {"d y1[10] / d x1[10]"}
