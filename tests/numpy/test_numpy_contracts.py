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
        return buffer.copy()

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


def first_for_ever(matrix: Callable[[np.ndarray], np.ndarray], key: Callable[[np.ndarray], Any]) -> Any:
    """A function of the point, computed once for each key of it."""
    kept: dict[Any, np.ndarray] = {}
    points = []

    def called(x: np.ndarray) -> np.ndarray:
        points.append(x)  # no identity is given out again
        if key(x) not in kept:
            kept[key(x)] = matrix(x)
        return kept[key(x)].copy()

    return called


STALE_RULES = {
    "jac": (square, lambda at: {"jac": at}, square_jac),
    "vjp": (square, lambda at: {"vjp": lambda w, x: w @ at(x)}, square_jac),
    "jvp": (square, lambda at: {"jvp": lambda v, x: at(x) @ v}, square_jac),
    "grad": (cube, lambda at: {"grad": at}, lambda x: 3 * x**2),
    "hess": (cube, lambda at: {"grad": lambda x: 3 * x**2, "hess": at}, lambda x: np.diag(6 * x)),
    "hessp": (cube, lambda at: {"grad": lambda x: 3 * x**2, "hessp": lambda x, p: at(x) @ p}, lambda x: np.diag(6 * x)),
}


@pytest.mark.parametrize("name", STALE_RULES)
def test_a_derivative_that_is_kept_from_its_first_call(name: str) -> None:
    fn, derivative, matrix = STALE_RULES[name]
    assert findings(fn, derivative(first_for_ever(matrix, lambda x: x.tobytes()))) == {}
    said = findings(fn, derivative(first_for_ever(matrix, lambda _: 0)))
    assert set(said) == {"reuse"}
    of = "the gradient" if name in ("hess", "hessp") else "the function"
    assert f"{name} gives the same numbers at another point, where the slope of {of} is another" in said["reuse"]
    assert set(findings(fn, derivative(first_for_ever(matrix, id)))) == {"reuse"}


def test_one_of_two_arguments_is_kept() -> None:
    def fn(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.sum(x**3) + np.sum(y**2) + y[0])

    def derivative(at: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
        return {"vjp": lambda w, x, y: (w * 3 * x**2, w * (at(y) + np.eye(3)[0]))}

    assert findings(fn, derivative(lambda y: 2 * y), x=(X, X + 1)) == {}
    assert set(findings(fn, derivative(first_for_ever(lambda y: 2 * y, lambda _: 0)), x=(X, X + 1))) == {"reuse"}


@pytest.mark.parametrize("x", [X, np.array([0.0, -1.0, 2.0]), X.astype(np.float32)], ids=["x", "zero", "float32"])
def test_a_constant_derivative_needs_no_computing(x: np.ndarray) -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    assert findings(lambda x: matrix @ x, {"jac": lambda x: matrix}, x=x) == {}
    both = matrix + matrix.T
    quadratic = {"grad": lambda x: both @ x, "hess": lambda x: both}
    assert findings(lambda x: 0.5 * float(x @ both @ x), quadratic, x=x) == {}
    # At a kink the slope beside it is what the rule says, too.
    assert findings(lambda x: np.maximum(x, 0), {"jac": lambda x: np.diag((x >= 0).astype(float))}, x=x) == {}


def test_a_rule_that_returns_the_same_array() -> None:
    buffers = np.empty(3), np.empty((3, 3))

    def filled(numbers: np.ndarray, copy: bool) -> np.ndarray:
        buffer = buffers[numbers.ndim - 1]
        buffer[:] = numbers
        return buffer.copy() if copy else buffer

    def derivatives(copy: bool) -> Any:
        yield square, "jac", {"jac": lambda x: filled(square_jac(x), copy)}
        yield square, "jac", {"jac": lambda x: sp.csr_array((filled(2 * x, copy), [0, 1, 2], [0, 1, 2, 3]))}
        yield square, "vjp", {"vjp": lambda w, x: filled(2 * w * x, copy)}
        # Of what is linear, other vectors give other results.
        yield np.negative, "vjp", {"vjp": lambda w, x: filled(-w, copy)}
        yield cube, "hess", {"grad": lambda x: 3 * x**2, "hess": lambda x: filled(np.diag(6 * x), copy)}
        yield (lambda x: float(x @ x)), "hessp", {"grad": lambda x: 2 * x, "hessp": lambda x, p: filled(2 * p, copy)}

    for fn, _, derivative in derivatives(copy=True):
        assert findings(fn, derivative) == {}
    for fn, name, derivative in derivatives(copy=False):
        said = findings(fn, derivative)
        assert set(said) == {"reuse"}
        assert f"{name} returns the same array each time" in said["reuse"]


def test_what_was_given_may_be_returned() -> None:
    assert findings(lambda x: 0.5 * float(x @ x), {"grad": lambda x: x}) == {}


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


@pytest.mark.parametrize("jac", [square_jac, 2 * np.diag(X)], ids=["function", "constant"])
@pytest.mark.parametrize("options", [{}, {"bounds": (0.5, None)}], ids=["anywhere", "bounds"])
def test_a_function_that_overwrites_its_argument(jac: Any, options: dict[str, Any]) -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        x *= x
        return x

    assert findings(lambda x: fn(x.copy()), {"jac": jac}, **options) == {}
    assert findings(fn, {"jac": jac}, **options) == {"impure": "the function overwrites args[0]"}
    assert findings(fn, {"jac": jac}, contracts="repeatable", **options) == {}


def test_a_function_that_overwrites_its_argument_is_named_before_its_jac() -> None:
    def fn(x: np.ndarray) -> float:
        x[1] += 0.1
        return cube(x)

    result = gradproof.check(fn, X, derivative={"jac": lambda x: 3 * x**2}, seed=1)
    assert [finding.code for finding in result.wrong] == ["impure", "mismatch"]


def test_a_function_may_fill_an_array_that_is_there_for_that() -> None:
    def fn(x: np.ndarray, work: np.ndarray) -> float:
        np.power(x, 3, out=work)
        return float(np.sum(work))

    assert findings(fn, {"jac": lambda x, work: 3 * x**2}, x=(X, np.empty(3))) == {}


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


def test_a_constant_jac_costs_one_difference_more() -> None:
    linear = {"jac": lambda x: -np.eye(3)}
    with_them = gradproof.check(np.negative, X, derivative=linear, seed=1)
    without = gradproof.check(np.negative, X, derivative=linear, seed=1, contracts="none")
    assert with_them.cost.evaluations == without.cost.evaluations + 1 + 2


def test_what_the_budget_does_not_allow_is_left_out() -> None:
    spent = gradproof.check(square, X, derivative={"jac": square_jac}, seed=1, contracts="none").cost
    calls = spent.evaluations + spent.pulls + 2  # a budget asks for a probe first
    result = gradproof.check(square, X, derivative={"jac": square_jac}, seed=1, budget=calls)
    assert result.ok
    assert any("left out by the budget: pure, repeatable, reusable" in note for note in result.notes)
