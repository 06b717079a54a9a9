"""Stored entries of a sparse Jacobian whose rows or columns have different units: a small one is held to its own size,
as in a matrix of which every entry is looked at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

import gradproof
from gradproof import Result, Verdict
from gradproof.program import Array

SIZE = 3000
SMALL = SIZE // 2 + 2
Change = Callable[[sparse.lil_matrix], None]


def chain(rows: Array, columns: Array, change: Change) -> tuple[Callable[[Array], Array], Callable[[Array], object]]:
    """A chain of unknowns, its outputs and its arguments each in units of their own; and its Jacobian, changed."""

    def function(x: Array) -> Array:
        moved = columns * x
        result = np.sin(moved)
        result[1:] += 0.3 * moved[:-1] ** 2
        return np.asarray(rows * result)

    def jacobian(x: Array) -> object:
        moved = columns * x
        plain = sparse.diags([np.cos(moved), 0.6 * moved[:-1]], [0, -1])
        result = (sparse.diags(rows) @ plain @ sparse.diags(columns)).tolil()
        change(result)
        return result.tocsr()

    return function, jacobian


def mixed(large: float) -> Array:
    units = np.ones(SIZE)
    units[: SIZE // 2] = large
    return units


def checked(rows: Array, columns: Array, change: Change, **options: object) -> Result:
    function, jacobian = chain(rows, columns, change)
    x = np.linspace(0.5, 1.5, SIZE) / columns
    return gradproof.check(function, x, derivative={"jac": jacobian}, seed=0, **options)


UNITS = {"rows": (mixed(1e6), np.ones(SIZE)), "columns": (np.ones(SIZE), mixed(1e6))}


@pytest.mark.parametrize("detail", ["summary", "verdict"])
@pytest.mark.parametrize("units", UNITS)
def test_right(units: str, detail: str) -> None:
    result = checked(*UNITS[units], lambda _: None, detail=detail)
    assert result.verdict is Verdict.RIGHT
    if units == "rows":
        assert result.cost.evaluations <= 9  # as with one unit for all


@pytest.mark.parametrize("detail", ["summary", "verdict"])
@pytest.mark.parametrize("factor", [-1.0, 0.0, 2.0])
@pytest.mark.parametrize("units", UNITS)
def test_a_small_entry_that_is_wrong(units: str, factor: float, detail: str) -> None:
    def change(matrix: sparse.lil_matrix) -> None:
        matrix[SMALL, SMALL] *= factor

    result = checked(*UNITS[units], change, detail=detail)
    assert result.verdict is Verdict.WRONG
    place = result.wrong[0].place
    assert place.output is not None
    assert place.input is not None
    assert (place.output.index, place.input.index) == ((SMALL,), (SMALL,))


@pytest.mark.parametrize("units", UNITS)
def test_a_small_entry_that_is_not_stored(units: str) -> None:
    def change(matrix: sparse.lil_matrix) -> None:
        matrix[SMALL, SMALL - 1] = 0.0

    result = checked(*UNITS[units], change)
    assert result.verdict is Verdict.WRONG
    assert str(result.wrong[0].place.input) == f"args[0][{SMALL - 1}]"


def test_a_tolerance_of_ones_own_is_that_of_the_block() -> None:
    def change(matrix: sparse.lil_matrix) -> None:
        matrix[SMALL, SMALL] *= -1.0

    assert checked(*UNITS["rows"], change, tolerance=1e-5).verdict is Verdict.RIGHT


def test_what_no_difference_resolves_beside_large_numbers_is_left_to_them() -> None:
    """A small row that is added to a large constant: noise of 1e-6 of it, and no accusation."""
    function, jacobian = chain(mixed(1e6), np.ones(SIZE), lambda _: None)
    x = np.linspace(0.5, 1.5, SIZE)

    def shifted(x: Array) -> Array:
        return np.asarray((function(x) + 1e9) - 1e9)

    assert gradproof.check(shifted, x, derivative={"jac": jacobian}, seed=0).verdict is not Verdict.WRONG
