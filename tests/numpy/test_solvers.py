"""Adjoints of solvers: right to the digits that the solver gives, and told apart from mistakes where that shows."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import gradproof
from gradproof import Result, Verdict

Array = NDArray[np.float64]

N = 8
MATRIX = np.random.default_rng(0).standard_normal((N, N))
MATRIX *= 0.7 / np.linalg.norm(MATRIX, 2)
START = np.random.default_rng(1).uniform(-1.0, 1.0, N)


def fixed_point(tolerance: float) -> Callable[[Array], Array]:
    """y = tanh(M y + a), by iteration."""

    def solve(a: Array) -> Array:
        y = np.zeros(N)
        while np.abs((after := np.tanh(MATRIX @ y + a)) - y).max() > tolerance:
            y = after
        return after

    return solve


def implicit(solve: Callable[[Array], Array], mistake: str = "") -> Callable[[Array], Array]:
    """By the implicit function theorem."""

    def jac(a: Array) -> Array:
        slopes = np.diag(1.0 - np.tanh(MATRIX @ solve(a) + a) ** 2)
        matrix = MATRIX.T if mistake == "transposed" else MATRIX
        found = np.linalg.solve(np.eye(N) - slopes @ matrix, slopes)
        return np.asarray(-found if mistake == "sign" else found, float)

    return jac


def checked(stop: float, mistake: str = "", **options: float) -> Result:
    solve = fixed_point(stop)
    return gradproof.check(solve, START, derivative={"jac": implicit(solve, mistake)}, seed=1, **options)  # type: ignore[arg-type]


def test_a_solver_that_stops_early_is_named() -> None:
    result = checked(1e-3)
    (finding,) = result.wrong
    found = re.search(
        r"agree to 3 digits: .* solves something to a tolerance.* pass tolerance=([0-9.e-]+);", finding.hint
    )
    assert found, finding.hint
    assert checked(1e-3, tolerance=float(found[1])).ok
    assert checked(1e-10).ok


@pytest.mark.parametrize("mistake", ["sign", "transposed"])
def test_a_mistake_is_not_a_matter_of_tolerances(mistake: str) -> None:
    for tolerance in (1e-3, 1e-10):
        (finding,) = checked(tolerance, mistake).wrong
        assert "solves something" not in finding.hint
    assert finding.diagnosis is not None
    assert finding.diagnosis.code == {"sign": "factor"}.get(mistake, mistake)


SYSTEM = np.diag(np.linspace(2.0, 9.0, N)) + 0.5 * (MATRIX + MATRIX.T)


def descent(b: Array, tolerance: float) -> Array:
    x = np.zeros(N)
    while np.linalg.norm(r := b - SYSTEM @ x) > tolerance * np.linalg.norm(b):
        x = x + (r @ r) / (r @ SYSTEM @ r) * r
    return x


def solved(tolerance: float, sign: float = 1.0, refuses: str = "") -> Result:
    def vjp(w: Array, b: Array) -> Array:
        if refuses and not w.any():
            raise ArithmeticError(refuses)
        return sign * descent(w, tolerance)

    return gradproof.check(lambda b: np.linalg.solve(SYSTEM, b), START, derivative={"vjp": vjp}, seed=1)


def test_an_adjoint_equation_that_is_solved_loosely() -> None:
    assert solved(1e-10).ok
    result = solved(1e-3)
    assert result.verdict is Verdict.WRONG
    assert {one.diagnosis.code if one.diagnosis else "" for one in result.wrong} == {"cotangent-inexact"}
    assert all("tolerance" in one.hint for one in result.wrong)
    wrong = next(one for one in solved(1e-3, sign=-1.0).wrong if one.code == "mismatch")
    assert wrong.diagnosis is None  # a sign is no matter of digits
    assert "solves something" not in wrong.hint


def test_a_rule_that_refuses_zeros_raises_nothing() -> None:
    assert solved(1e-3, refuses="singular").verdict is Verdict.WRONG
    assert solved(1e-10, refuses="singular").ok


def test_linear_to_some_digits_and_right_to_all_that_are_asked_for() -> None:
    def vjp(w: Array, x: Array) -> Array:
        return np.asarray(w * np.cos(x) + 3e-7 * np.sin(1e3 * w))  # as of an absolute tolerance

    result = gradproof.check(np.sin, START, derivative={"vjp": vjp}, seed=1)
    assert result.verdict is Verdict.UNDECIDED, str(result)
    assert [one.diagnosis.code for one in result.findings if one.diagnosis] == ["cotangent-inexact"]
    gross = gradproof.check(np.sin, START, derivative={"vjp": lambda w, x: w * np.cos(x) * (np.abs(w) > 1e-2)}, seed=1)
    assert gross.verdict is Verdict.WRONG


def test_a_solver_that_refuses_complex_numbers_is_asked_once() -> None:
    seen: list[str] = []

    def rough(x: Array) -> Array:
        seen.append(x.dtype.kind)
        return np.asarray(np.sin(x.astype(float, casting="safe")) + 1e-9 * np.sin(1e13 * x))

    gradproof.check(rough, START, derivative={"jac": lambda x: np.diag(np.cos(x))}, seed=1)
    assert seen.count("c") <= 1


def test_noise_names_a_tolerance_that_decides() -> None:
    def noisy(x: Array) -> Array:
        return np.asarray(np.sin(x) + 1e-9 * np.sin(1e13 * x))

    def verdict_of(sign: float, **options: float) -> Result:
        jac = {"jac": lambda x: sign * np.diag(np.cos(x))}
        return gradproof.check(noisy, START, derivative=jac, seed=1, **options)  # type: ignore[arg-type]

    unclear = verdict_of(1.0)
    assert unclear.verdict is Verdict.UNDECIDED
    named = re.search(r"tighter solver tolerance\), or pass tolerance=([0-9.e-]+)\.$", unclear.findings[0].hint)
    assert named, unclear.findings[0].hint
    assert verdict_of(1.0, tolerance=float(named[1])).ok
    assert verdict_of(-1.0, tolerance=float(named[1])).verdict is Verdict.WRONG
