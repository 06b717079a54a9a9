"""A large Jacobian in random sums: a few passes in each mode, and no wrong entry goes unseen in either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Result, Settings, Verdict, check_program
from gradproof.evidence.groups import MEMBERS
from gradproof.program import Array

SHAPES = [(300, 300), (900, 120), (260, 700)]


def run(program: HandProgram, **options: object) -> Result:
    settings = {"effort": "exhaustive", "detail": "verdict", "contracts": "linear", "seed": 1, **options}
    return check_program(program, Settings.validated(**settings))  # type: ignore[arg-type]


def matrix(shape: tuple[int, int], seed: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def linear(jacobian: Array, reverse: Array | None = None, forward: Array | None = None) -> HandProgram:
    """y = J x, and what each mode claims of it."""
    back, along = jacobian if reverse is None else reverse, jacobian if forward is None else forward
    point = np.random.default_rng(7).standard_normal(jacobian.shape[1])
    made = HandProgram(lambda rows: rows @ jacobian.T, jacobian, point)
    return replace(made, pull_with=lambda rows: rows @ back, push_with=lambda rows: rows @ along.T)


def off(jacobian: Array, error: float, seed: int, kind: str = "entry") -> Array:
    """A copy in which some of it is wrong."""
    generator = np.random.default_rng(seed)
    i, j = (int(generator.integers(size)) for size in jacobian.shape)
    claimed = jacobian.copy()
    if kind == "entry":
        claimed[i, j] += error
    elif kind == "row":
        claimed[i] += error * generator.standard_normal(jacobian.shape[1])
    elif kind == "column":
        claimed[:, j] += error * generator.standard_normal(jacobian.shape[0])
    elif kind == "pair":
        claimed[i, [j, j - 1]] += error, -error
    elif kind == "square":
        claimed[np.ix_([i, i - 1], [j, j - 1])] += [[error, -error], [-error, error]]
    elif kind == "block":
        claimed[: i + 1, : j + 1] += error
    elif kind == "nan":
        claimed[i, j] = np.nan
    return claimed


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("modes", ["reverse", "forward", ("reverse", "forward")])
def test_a_right_one_takes_a_few_passes(shape: tuple[int, int], modes: object) -> None:
    result = run(linear(matrix(shape)), modes=modes)
    assert result.verdict is Verdict.RIGHT
    groups = -(-shape[1] // MEMBERS)
    assert result.cost.pushes <= groups + 4
    assert result.cost.pulls <= 8
    assert result.cost.evaluations <= 8 + 4 * groups
    for one in result.comparisons:
        assert one.scope == "probes"
        assert one.entries == shape[0] * shape[1]
        assert one.numeric.shape == (groups,)
        assert (one.deviation <= one.bar).all()
        assert (one.bar <= one.tolerance).all()
    assert result.power is not None
    assert result.power.relative < 1e-4
    assert any("in random sums" in note for note in result.notes)


def test_whoever_wants_the_entries_gets_them() -> None:
    result = run(linear(matrix((300, 300))), detail="summary")
    assert {one.scope for one in result.comparisons} == {"entries"}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", SHAPES)
def test_one_entry_off_by_little_more_than_the_tolerance_is_found_in_either_mode(
    shape: tuple[int, int], seed: int
) -> None:
    jacobian = matrix(shape, seed)
    jacobian *= np.random.default_rng(seed).random(shape) < (1.0, 0.3)[seed % 2]
    error = 1e-4 * float(np.abs(jacobian).max())
    wrong = off(jacobian, error, seed)
    (i,), (j,) = np.nonzero(wrong != jacobian)
    for program, modes in (
        (linear(jacobian, reverse=wrong), "reverse"),
        (linear(jacobian, forward=wrong), "forward"),
        (linear(jacobian, wrong, wrong), ("reverse", "forward")),
    ):
        result = run(program, modes=modes, seed=seed)
        assert result.verdict is Verdict.WRONG
        assert {str(finding.place) for finding in result.wrong} == {f"d y0[{i}] / d x0[{j}]"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["row", "column", "pair", "square", "block", "nan"])
def test_nor_do_several_hide_each_other(kind: str, seed: int) -> None:
    jacobian = matrix(SHAPES[seed % 3], seed)
    wrong = off(jacobian, 1e-3, seed, kind)
    assert run(linear(jacobian, reverse=wrong), modes="reverse", seed=seed).verdict is Verdict.WRONG
    assert run(linear(jacobian, forward=wrong), modes="forward", seed=seed).verdict is Verdict.WRONG
    both = run(linear(jacobian, wrong, wrong), modes=("reverse", "forward"), seed=seed)
    assert both.verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", range(2))
def test_blocks_of_other_sizes_hide_nothing(seed: int) -> None:
    jacobian = matrix((400, 400), seed)
    jacobian[:200] *= 1e3
    jacobian[:, :200] *= 0.1
    shapes = ((200,), (200,))

    def split(program: HandProgram) -> HandProgram:
        return replace(program, input_shapes=shapes, output_shapes=shapes)

    assert run(split(linear(jacobian)), seed=seed).cost.pulls <= 12
    for rows in (slice(0, 200), slice(200, 400)):
        for columns in (slice(0, 200), slice(200, 400)):
            wrong = jacobian.copy()
            size = float(np.abs(wrong[rows, columns]).max())
            wrong[rows, columns] = off(wrong[rows, columns], 1e-3 * size, seed)
            result = run(split(linear(jacobian, reverse=wrong)), modes="reverse", seed=seed)
            assert result.verdict is Verdict.WRONG
            assert len(result.wrong) == 1


NOT_LINEAR: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "clipped": lambda w: np.clip(w, -1.0, 1.0),
    "only small ones": lambda w: np.where(np.abs(w) > 1e4, 0.0, w),
    "only large ones": lambda w: np.where(np.abs(w) < 1e-2, 0.0, w),
    "all alike": np.ones_like,
    "single ones": lambda w: w * np.where(np.count_nonzero(w, axis=1) == 1, 1.1, 1.0)[:, None],
    "with zeros": lambda w: w * np.where(np.count_nonzero(w, axis=1) < w.shape[1], 1.1, 1.0)[:, None],
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", NOT_LINEAR)
def test_a_reverse_mode_that_is_not_linear_is_not_let_through(name: str, seed: int) -> None:
    jacobian, change = matrix((300, 300), seed), NOT_LINEAR[name]
    program = replace(linear(jacobian), pull_with=lambda rows: change(rows) @ jacobian)
    assert run(program, modes="reverse", seed=seed).verdict is Verdict.WRONG


@pytest.mark.parametrize("name", sorted(set(NOT_LINEAR) - {"only small ones"}))
def test_nor_is_it_trusted_in_forward_mode(name: str) -> None:
    jacobian, change = matrix((300, 300)), NOT_LINEAR[name]
    program = replace(linear(jacobian), push_with=lambda rows: change(rows) @ jacobian.T)
    result = run(program, modes="reverse")  # nobody asked for the other
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pushes == 0
    assert run(program, modes="forward").cost.pushes >= 300


def test_reverse_mode_alone_takes_a_few_passes_too() -> None:
    result = run(replace(linear(matrix((300, 300))), modes=("reverse",)), modes="reverse")
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pulls <= 8
    assert {one.scope for one in result.comparisons} == {"probes"}


@pytest.mark.parametrize("seed", range(3))
def test_a_rule_that_rounds_its_cotangents_is_not_let_through(seed: int) -> None:
    jacobian = matrix((300, 300), seed)
    program = replace(linear(jacobian), pull_with=lambda rows: rows.astype(np.float32) @ jacobian)
    assert run(program, modes="reverse", seed=seed).cost.pulls >= 300


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_curved_function_and_its_wrong_twin(scale: float, seed: int) -> None:
    """By one row that is negated, or one entry."""
    jacobian, point = matrix((300, 260), seed), scale * np.random.default_rng(seed).standard_normal(260)

    def values(rows: Array) -> Array:
        return np.asarray(np.sin(rows / scale) @ jacobian.T)

    true = jacobian * np.cos(point / scale) / scale
    right = HandProgram(values, true, point)
    result = run(right, modes="reverse", seed=seed)
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pulls <= 8
    row, entry = true.copy(), true.copy()
    row[7] *= -1
    entry[11, 13] += 1e-3 * np.abs(true).max()
    for wrong in (row, entry):
        program = replace(right, pull_with=lambda rows, claimed=wrong: rows @ claimed)
        assert run(program, modes="reverse", seed=seed).verdict is Verdict.WRONG


def test_a_block_of_zeros_is_held_to_be_zero() -> None:
    """Two inputs, one of which does nothing; and a rule that says it does."""
    jacobian = matrix((300, 300))
    jacobian[:, 150:] = 0.0
    part = jacobian[:, :150]

    def values(rows: Array) -> Array:  # the same for one row and for many: a block of zeros shows how those differ
        return np.asarray((rows[:, None, :150] * part).sum(axis=-1))

    right = replace(linear(jacobian), function=values, input_shapes=((150,), (150,)))
    result = run(right, modes="reverse")
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pulls <= 8
    wrong = jacobian.copy()
    wrong[5, 200] = 1e-3
    program = replace(right, pull_with=lambda rows: rows @ wrong)
    assert run(program, modes="reverse").verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", range(2))
def test_a_block_that_rounding_hides_is_no_block_of_zeros(seed: int) -> None:
    """The second input does next to nothing: what sums of differences cannot tell, entries have to."""
    jacobian = matrix((160, 150), seed)
    jacobian[:, 75:] *= 1e-11

    def values(rows: Array) -> Array:  # the same for one row and for many: nothing moves
        return np.asarray((np.sin(rows)[:, None] * jacobian).sum(axis=-1))

    right = HandProgram(values, jacobian, np.random.default_rng(7).standard_normal(150), ((75,), (75,)))
    true = jacobian * np.cos(right.point)
    negated = true.copy()
    negated[:, 75:] *= -1
    verdicts = [
        run(replace(right, pull_with=lambda rows, claimed=claimed: rows @ claimed), modes="reverse", seed=seed).verdict
        for claimed in (true, negated)
    ]
    assert verdicts[0] is not Verdict.WRONG
    assert verdicts[1] is Verdict.WRONG


@pytest.mark.parametrize("modes", ["reverse", "forward", ("reverse", "forward")])
def test_empty_leaves_and_single_numbers_are_no_matter(modes: object) -> None:
    jacobian = matrix((301, 201))
    jacobian[300] *= 1e3
    shapes: dict[str, Any] = {"input_shapes": ((200,), (0, 3), ()), "output_shapes": ((), (0,), (299,), ())}
    jacobian = np.roll(jacobian, 1, axis=0)
    right = replace(linear(jacobian), **shapes)
    result = run(right, modes=modes)
    assert result.verdict is Verdict.RIGHT
    assert result.cost.pulls + result.cost.pushes < 40
    for place in ((0, 200), (0, 7), (300, 3), (9, 200)):
        wrong = jacobian.copy()
        wrong[place] *= 1.01
        program = replace(linear(jacobian, wrong, wrong), **shapes)
        assert run(program, modes=modes).verdict is Verdict.WRONG


def test_a_kink_is_looked_at_entry_by_entry() -> None:
    point = np.random.default_rng(7).standard_normal(300)
    point[[5, 77]] = 0.0
    slopes = np.diag((point > 0).astype(float))
    program = HandProgram(lambda rows: np.maximum(rows, 0.0), slopes, point)
    result = run(program)
    assert result.verdict is Verdict.RIGHT
    assert [finding.code for finding in result.findings] == ["kink"]
