"""What rounding explains, and what it does not: number by number, without a framework."""

from __future__ import annotations

import numpy as np
import pytest
from programs import HandProgram

from gradproof import precision
from gradproof.contracts.repeatable import Unrepeatable
from gradproof.errors import BudgetSpent, OutputsChanged, Unsupported
from gradproof.norms import first_of_largest
from gradproof.precision import BRAIN, HALF, SINGLE
from gradproof.program import Array, leaves
from gradproof.reference.rounding import NEIGHBOURS, Pair, excess, extent, neighbours, off, trembling

POINT = np.array([1.5, -0.001, 0.0, 300.0, 2.0])
LEAVES = leaves([("x", (3,), "float32"), ("y", (2,), "float32")])


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("form", [SINGLE, HALF, BRAIN], ids=lambda form: form.name)
def test_neighbours_are_a_rounding_away_and_numbers_of_the_format(form: precision.Precision) -> None:
    point = form.round(POINT)
    rows = neighbours(point, LEAVES, form, generator())
    assert rows.shape == (1 + NEIGHBOURS, point.size)
    assert np.array_equal(rows[0], point)
    assert np.array_equal(form.round(rows), rows)
    assert (rows[:, 2] == 0).all()  # zeros are structure: masks, padding, kinks
    moved = np.abs(rows - point).max(axis=0)
    assert (moved[[0, 3, 4]] > 0).all()
    assert (moved <= 4 * form.roundoff * np.array([2, 2, 2, 300, 300])).all()
    near = np.abs(rows[1 : 1 + NEIGHBOURS // 2] - point)
    assert (near <= 2 * form.roundoff * np.abs(point) + 1e-300).all()


def test_beyond_the_range_infinity_is_right_and_nan_never_is() -> None:
    wide = np.array([1e5, -1e5, 1.0, 1.0, np.nan, 1e-9])
    narrow = np.array([np.inf, -np.inf, np.inf, np.nan, np.nan, 0.0])
    found = off(narrow, wide, np.full(6, 1e-12), HALF)
    assert found.tolist() == [False, False, True, True, False, False]


def pair(errors: Array, exact: Array | float = 1.0) -> Pair:
    wide = np.broadcast_to(np.asarray(exact, float), errors.shape)
    return Pair(wide + errors, np.array(wide))


def test_the_same_error_at_all_neighbours_is_steady_and_another_one_each_time_is_not() -> None:
    noise = generator().standard_normal((1 + NEIGHBOURS, 2))
    noise[0] = 3.0  # beyond what is allowed at the point itself
    errors = np.stack([np.full(1 + NEIGHBOURS, 0.2), 0.02 * noise[:, 0], 0.001 * noise[:, 1]], axis=1)
    found = excess(pair(errors), np.full(3, 0.01), 8.0, BRAIN)
    assert found.steady.tolist() == [True, False, False]
    assert found.scattered.tolist() == [False, True, False]
    assert found.any


def test_what_moves_with_a_rounding_of_the_arguments_is_no_excess() -> None:
    exact = 1.0 + 0.1 * generator().standard_normal((1 + NEIGHBOURS, 1))
    errors = np.full((1 + NEIGHBOURS, 1), 0.2)
    assert not excess(Pair(exact + errors, exact), np.full(1, 0.01), 8.0, BRAIN).any
    assert excess(pair(errors), np.full(1, 0.01), 8.0, BRAIN).steady.all()


def test_neighbours_outside_the_domain_do_not_count() -> None:
    errors = np.full((1 + NEIGHBOURS, 1), 0.2)
    errors[3:] = np.nan
    assert excess(pair(errors), np.full(1, 0.01), 8.0, BRAIN).steady.all()
    errors[1:] = np.nan
    assert excess(pair(errors), np.full(1, 0.01), 8.0, BRAIN).steady.all()


def trembling_where(raised: BaseException | None) -> Array:
    """sin, with a gradient that raises this at points nearby."""

    def values(points: Array) -> Array:
        if raised is not None and len(points) > 1:
            raise raised
        return np.cos(points[:, :3]) * points[:, 3:]

    def gradient(cotangent: Array) -> HandProgram:
        return HandProgram(values, np.zeros((3, 6)), np.concatenate([POINT[:3], cotangent]))

    program = HandProgram(np.sin, np.diag(np.cos(POINT[:3])), POINT[:3], second=gradient)
    return trembling(program, np.ones(3), generator(), extent)


def test_a_gradient_trembles_by_its_roundings() -> None:
    found = trembling_where(None)
    assert (found[:2] > 0).all()
    assert (found < 1e-13).all()


CHANGED = OutputsChanged("another shape", "shape", "(3,)", "(2,)")


@pytest.mark.parametrize(
    "raised",
    [ValueError("domain"), RuntimeError("freed"), ZeroDivisionError(), Unsupported("no second order"), CHANGED],
)
def test_where_the_users_code_does_not_run_nothing_is_known_to_tremble(raised: Exception) -> None:
    assert not trembling_where(raised).any()


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt(), SystemExit(1), BudgetSpent("no more"), Unrepeatable(()), MemoryError()]
)
def test_what_ends_a_check_is_not_swallowed(raised: BaseException) -> None:
    with pytest.raises(type(raised)):
        trembling_where(raised)


def test_a_mistake_of_our_own_is_not_swallowed() -> None:
    def broken(_: Array) -> Array:
        raise IndexError("ours")

    program = HandProgram(
        np.sin,
        np.eye(3),
        POINT[:3],
        second=lambda w: HandProgram(np.cos, np.eye(6), np.concatenate([POINT[:3], w])),
    )
    with pytest.raises(IndexError, match="ours"):
        trembling(program, np.ones(3), generator(), broken)


def test_of_numbers_that_are_alike_but_for_rounding_the_first_is_named() -> None:
    values = np.array([-3.0, 17.08, np.nan, np.nextafter(17.08, 18.0), 17.08])
    assert first_of_largest(values) == 1
    values[3] = 17.081
    assert first_of_largest(values) == 3
