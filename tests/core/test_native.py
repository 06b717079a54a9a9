"""Pulls in a narrow format are held against float64: right ones of all sizes pass, one wrong entry fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from programs import HandProgram

from gradproof import Result, Settings, Verdict, check_program
from gradproof.program import Array, Offers

ROUNDOFF = 2.0**-24
# What becomes of pulls (k, N) of some cotangents (k, M).
Spoil = Callable[[Array, Array], Array]


class Narrow(HandProgram):
    """A linear map in float32, whose pulls are spoiled there alone."""

    offers = Offers(modes=("reverse",))

    def __init__(self, jacobian: Array, spoil: Spoil | None = None) -> None:
        point = np.random.default_rng(3).standard_normal(jacobian.shape[1])
        self.spoil = spoil
        super().__init__(self.product, _rounded(jacobian), _rounded(point), dtype="float32")

    def product(self, rows: Array) -> Array:
        return np.asarray(rows.astype(np.float32) @ self.jacobian.T.astype(np.float32), float)

    def pull(self, cotangents: Array) -> Array:
        self.tally.pulls += len(cotangents)
        pulled = np.asarray(cotangents.astype(np.float32) @ self.jacobian.astype(np.float32), float)
        return pulled if self.spoil is None else _rounded(self.spoil(cotangents, pulled))

    def widened(self) -> Any:
        return HandProgram(lambda rows: rows @ self.jacobian.T, self.jacobian, self.point)

    @property
    def granted(self) -> Array:
        """How far every entry may be off."""
        size = 1024 * ROUNDOFF * (1 + np.log2(max(len(self.point), 2)) / 8)
        found = size * np.maximum(np.abs(self.jacobian), _rms(self.jacobian))
        return np.asarray(found + 64 * ROUNDOFF * _rms(self.value) / _rms(self.point))


def _rounded(values: Array) -> Array:
    return np.asarray(values.astype(np.float32), float)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def run(program: Narrow, seed: int = 1) -> Result:
    return check_program(program, Settings.validated(effort="exhaustive", seed=seed))


def drawn(kind: str, size: int) -> Array:
    generator = np.random.default_rng(size)
    dense, scales = generator.standard_normal((size, size)), 10.0 ** generator.uniform(-5, 5, size)
    return {
        "dense": dense,
        "diagonal": np.diag(2 + dense[0]),
        "rows of all sizes": dense * scales[:, None],
        "columns of all sizes": dense * scales,
        "a few large ones": dense**9,
    }[kind]


KINDS = ("dense", "diagonal", "rows of all sizes", "columns of all sizes", "a few large ones")


@pytest.mark.parametrize("size", [1, 16, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_right_numbers_are_right_whatever_their_sizes(kind: str, size: int) -> None:
    program = Narrow(drawn(kind, size))
    assert run(program).verdict is Verdict.RIGHT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 16, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_one_entry_that_is_just_beyond_what_is_granted_is_found(kind: str, size: int, seed: int) -> None:
    program = Narrow(drawn(kind, size))
    generator = np.random.default_rng(seed)
    where = tuple(generator.integers(size, size=2))
    off = np.zeros((size, size))
    off[where] = generator.choice([-1.02, 1.02]) * program.granted[where]
    program.spoil = lambda cotangents, pulled: pulled + cotangents @ off
    assert run(program, seed).verdict is Verdict.WRONG
    off *= 0.9
    assert run(program, seed).verdict is Verdict.RIGHT


@pytest.mark.parametrize("size", [1, 16, 500])
@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_one_number_that_is_not_finite_is_found(lost: float, size: int) -> None:
    def spoil(cotangents: Array, pulled: Array) -> Array:
        return np.where((cotangents[:, -1:] != 0) & (np.arange(size) == size // 2), lost, pulled)

    assert run(Narrow(drawn("dense", size), spoil)).verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [16, 500])
@pytest.mark.parametrize("times", [2.0, 64.0])
def test_small_numbers_that_are_taken_for_zero_are_found(times: float, size: int, seed: int) -> None:
    jacobian = drawn("dense", size)
    jacobian[seed, size // 2] = 0.75 * times * Narrow(jacobian).granted.min()
    program = Narrow(jacobian)
    least = times * float(program.granted.min())
    program.spoil = lambda _, pulled: np.where(np.abs(pulled) < least, 0.0, pulled)
    assert run(program, seed).verdict is Verdict.WRONG


@pytest.mark.parametrize("size", [16, 500])
def test_numbers_that_are_too_small_for_the_format_may_be_zero(size: int) -> None:
    def spoil(_: Array, pulled: Array) -> Array:
        return np.where(np.abs(pulled) < 2.0**-126, 0.0, pulled)

    assert run(Narrow(drawn("rows of all sizes", size) * 1e-37, spoil)).verdict is Verdict.RIGHT


def test_zeros_in_the_narrow_format_alone_are_not_called_detached() -> None:
    matrix = np.random.default_rng(0).standard_normal((4, 3))
    (found,) = run(Narrow(matrix, lambda _, pulled: 0 * pulled)).wrong
    assert found.diagnosis is not None
    assert found.diagnosis.code == "precision"
    assert "too small or too large for float32" in found.hint
    wide = HandProgram(lambda rows: rows @ matrix.T, 0 * matrix, np.ones(3))
    codes = {one.diagnosis.code for one in check_program(wide, Settings.validated(seed=1)).wrong if one.diagnosis}
    assert codes == {"detached"}
