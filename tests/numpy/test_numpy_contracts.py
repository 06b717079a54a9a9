"""Rules written by hand that depend on what was called before, or write into what they are given; and their twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import gradproof
from gradproof import Verdict

X = np.array([1.0, 2.0, 3.0])


def square(x: np.ndarray) -> np.ndarray:
    return x**2


def square_jac(x: np.ndarray) -> np.ndarray:
    return np.diag(2 * x)


def cube(x: np.ndarray) -> float:
    return float(np.sum(x**3))


def findings(fn: Any, derivative: Any, **options: Any) -> dict[str, str]:
    """By code, those that are wrong; the numbers themselves are right in all of these tests."""
    result = gradproof.check(fn, options.pop("x", X), derivative=derivative, seed=1, **options)
    assert all(block.verdict is Verdict.RIGHT for block in result.comparisons)
    assert result.verdict is (Verdict.WRONG if result.wrong else Verdict.RIGHT)
    return {finding.code: finding.sentence for finding in result.wrong}


# ---- the same answer each time


def from_the_second_call_on(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The same rule, a tenth off after its first call."""
    calls = []

    def called(*args: Any) -> Any:
        calls.append(args)
        return rule(*args) * (1.0 if len(calls) == 1 else 1.1)

    return called


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_jac_that_changes_from_call_to_call(form: Any) -> None:
    assert findings(square, {"jac": lambda x: form(square_jac(x))}) == {}
    said = findings(square, {"jac": from_the_second_call_on(lambda x: form(square_jac(x)))})
    assert set(said) == {"nondeterministic"}
    assert "jac gives other numbers when it is called again" in said["nondeterministic"]


def test_a_buffer_that_is_added_to() -> None:
    buffer = np.zeros((3, 3))

    def jac(x: np.ndarray, start: float) -> np.ndarray:
        np.multiply(buffer, start, out=buffer)
        buffer[np.diag_indices(3)] += 2 * x
        return buffer

    assert findings(square, {"jac": lambda x: jac(x, 0.0)}) == {}
    buffer[:] = 0.0
    assert set(findings(square, {"jac": lambda x: jac(x, 1.0)})) == {"nondeterministic"}


def test_random_numbers_of_the_global_stream_run_on() -> None:
    def jac(x: np.ndarray) -> np.ndarray:
        return square_jac(x) * (1 + 1e-9 * np.random.random())  # noqa: NPY002  the stream under test

    assert set(findings(square, {"jac": jac})) == {"nondeterministic"}
    assert findings(square, {"jac": jac}, nondet_tol=1e-6) == {}
    assert findings(square, {"jac": jac}, contracts=("linear", "pure")) == {}


def test_an_operator_that_changes_and_has_no_adjoint() -> None:
    def jac(x: np.ndarray, factor: float) -> LinearOperator:
        return LinearOperator((3, 3), matvec=lambda v: factor * 2 * x * v)

    assert findings(square, {"jac": lambda x: jac(x, 1.0)}) == {}
    factor = from_the_second_call_on(lambda: 1.0)
    assert set(findings(square, {"jac": lambda x: jac(x, factor())})) == {"nondeterministic"}


# ---- what another call left behind


class Memo:
    """A function that keeps its last argument for others: the usual way to share work, and to share it wrongly."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.last = fn, X

    def __call__(self, x: np.ndarray) -> Any:
        self.last = x.copy()
        return self.fn(x)

    def known(self, x: np.ndarray) -> np.ndarray:
        """With the argument compared, what is kept may be used."""
        return self.last if np.array_equal(self.last, x) else x


@pytest.mark.parametrize("x", [X, np.array([0.0, 1.0, 2.0])], ids=["nonzero", "zero"])
def test_a_jac_of_the_last_point_of_the_function(x: np.ndarray) -> None:
    fn = Memo(square)
    assert findings(fn, {"jac": lambda x: square_jac(fn.known(x))}, x=x) == {}
    said = findings(fn, {"jac": lambda x: square_jac(fn.last)}, x=x)
    assert set(said) == {"reuse"}
    assert "jac depends on the last call of the function (a cached value?)" in said["reuse"]


def test_a_vjp_and_a_jvp_of_the_last_point_of_the_function() -> None:
    fn = Memo(square)
    assert findings(fn, {"vjp": lambda w, x: 2 * w * fn.known(x), "jvp": lambda v, x: 2 * v * fn.known(x)}) == {}
    assert "vjp depends on the last call" in findings(fn, {"vjp": lambda w, x: 2 * w * fn.last})["reuse"]
    assert "jvp depends on the last call" in findings(fn, {"jvp": lambda v, x: 2 * v * fn.last})["reuse"]


@pytest.mark.parametrize("name", ["hess", "hessp"])
def test_a_second_derivative_of_the_last_point_of_the_first(name: str) -> None:
    grad = Memo(lambda x: 3 * x**2)

    def second(point: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
        return (lambda x: np.diag(6 * point(x))) if name == "hess" else (lambda x, p: 6 * point(x) * p)

    assert findings(cube, {"grad": grad, name: second(grad.known)}) == {}
    said = findings(cube, {"grad": grad, name: second(lambda _: grad.last)})
    assert set(said) == {"reuse"}
    assert f"{name} depends on the last call of grad" in said["reuse"]


def test_a_jac_that_keeps_its_own_result() -> None:
    kept: list[np.ndarray] = []

    def jac(x: np.ndarray) -> np.ndarray:
        """Hands out what it was asked for the time before."""
        kept.append(square_jac(x))
        return kept[max(len(kept) - 2, 0)]

    said = findings(square, {"jac": jac})
    assert "jac depends on its own last call" in said["reuse"]


def test_within_bounds_nothing_is_called_elsewhere() -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        assert (x >= 1.0).all()
        return square(x)

    assert findings(fn, {"jac": square_jac}, bounds=(1.0, None)) == {}
    noted = gradproof.check(fn, X, derivative={"jac": square_jac}, seed=1, bounds=(1.0, None)).notes
    assert any("call the function at another point: reusable" in note for note in noted)
    changing = from_the_second_call_on(square_jac)
    assert set(findings(fn, {"jac": changing}, bounds=(1.0, None))) == {"nondeterministic"}


# ---- what was given stays as it is


def written(rule: Callable[..., Any], place: int) -> Callable[..., Any]:
    """The same rule, which leaves its result's work in one of its arguments."""

    def called(*args: Any) -> Any:
        result = rule(*args)
        np.multiply(args[place], 2, out=args[place])
        return result

    return called


RULES = {
    "jac": (square, {"jac": square_jac}, ["args[0]"]),
    "vjp": (square, {"vjp": lambda w, x: 2 * w * x}, ["its cotangent", "args[0]"]),
    "jvp": (square, {"jvp": lambda v, x: 2 * v * x}, ["its tangent", "args[0]"]),
    "hess": (cube, {"grad": lambda x: 3 * x**2, "hess": lambda x: np.diag(6 * x)}, ["args[0]"]),
    "hessp": (cube, {"grad": lambda x: 3 * x**2, "hessp": lambda x, p: 6 * x * p}, ["args[0]", "the vector p"]),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_overwrites_what_it_is_given(name: str) -> None:
    fn, derivative, given = RULES[name]
    assert findings(fn, derivative) == {}
    for place, what in enumerate(given):
        said = findings(fn, {**derivative, name: written(derivative[name], place)})
        assert said == {"impure": f"{name} overwrites {what}"}
        assert findings(fn, {**derivative, name: written(derivative[name], place)}, contracts="repeatable") == {}


def test_a_function_may_work_in_place() -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        x *= x
        return x

    assert findings(fn, {"jac": square_jac}) == {}


def test_a_constant_and_a_fixed_argument_are_watched_too() -> None:
    def jac(x: np.ndarray, table: dict[str, np.ndarray]) -> np.ndarray:
        table["scale"] += 1.0
        return np.diag(table["scale"] - 1.0)

    args = (X, {"scale": np.ones(3)})
    said = findings(lambda x, table: x * table["scale"], {"jac": jac}, x=args)
    assert said == {"impure": "jac overwrites args[1]['scale']"}


# ---- the price


def test_a_jac_is_called_three_times_and_the_function_once_more() -> None:
    calls = []

    def jac(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return square_jac(x)

    with_them = gradproof.check(square, X, derivative={"jac": jac}, seed=1)
    assert len(calls) == 3
    without = gradproof.check(square, X, derivative={"jac": jac}, seed=1, contracts="none")
    assert len(calls) == 4
    assert with_them.cost.evaluations == without.cost.evaluations + 1


def test_what_the_budget_does_not_allow_is_left_out() -> None:
    spent = gradproof.check(square, X, derivative={"jac": square_jac}, seed=1, contracts="none").cost
    calls = spent.evaluations + spent.pulls + 1
    result = gradproof.check(square, X, derivative={"jac": square_jac}, seed=1, budget=calls)
    assert result.ok
    assert any("left out by the budget: pure, repeatable, reusable" in note for note in result.notes)
