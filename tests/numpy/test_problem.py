"""What SciPy's solvers are given, checked as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_bvp, solve_ivp
from scipy.optimize import (
    BFGS,
    LinearConstraint,
    NonlinearConstraint,
    least_squares,
    minimize,
    root,
    rosen,
    rosen_der,
    rosen_hess,
    rosen_hess_prod,
)
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import aslinearoperator

from gradproof import Result, UsageError, Verdict
from gradproof.numpy import check_bvp, check_constraint, check_ivp, check_problem

X = [1.3, 0.7, 0.8, 1.9, 1.2]


def places(result: Result) -> set[str]:
    return {str(entry.place) for block in result.comparisons for entry in block.found}


def test_minimize() -> None:
    problem: dict[str, Any] = {"jac": rosen_der, "hess": rosen_hess}
    assert minimize(rosen, X, method="trust-exact", **problem).success
    assert check_problem(rosen, X, **problem, seed=1).ok
    assert check_problem(rosen, X, jac=rosen_der, hessp=rosen_hess_prod, seed=1).ok
    assert check_problem(rosen, X, jac=rosen_der, hess=BFGS(), seed=1).ok  # no derivative of the user's
    assert check_problem(lambda x: (rosen(x), rosen_der(x)), X, jac=True, seed=1).ok

    def wrong(x: np.ndarray) -> np.ndarray:
        hess = rosen_hess(x)
        hess[2, 1] *= 1.1
        return hess

    said = check_problem(rosen, X, jac=rosen_der, hess=wrong, seed=1)
    assert places(said) == {"d grad(args[0])[2] / d args[0][1]"}


def test_root() -> None:
    def fun(x: np.ndarray, a: float) -> list[float]:
        return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1]]

    def jac(x: np.ndarray, a: float) -> np.ndarray:
        d = 1.5 * (x[0] - x[1]) ** 2
        return np.array([[1 + d, -d], [-d, 1 + d]])

    assert root(fun, [0, 0], args=(1.0,), jac=jac).success
    assert check_problem(fun, [0.5, 1], args=1.0, jac=jac, seed=1).ok
    said = check_problem(fun, [0.5, 1], args=(1.0,), jac=lambda x, a: jac(x, a) * [[1, 1], [-1, 1]], seed=1)
    assert places(said) == {"d out[1] / d args[0][0]"}


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, aslinearoperator])
def test_least_squares(form: Any) -> None:
    t = np.linspace(0, 1, 7)

    def fun(x: np.ndarray, t: np.ndarray, *, y: np.ndarray) -> np.ndarray:
        return x[0] * np.exp(-x[1] * t) - y

    def jac(x: np.ndarray, t: np.ndarray, *, y: np.ndarray) -> Any:
        return form(np.stack([np.exp(-x[1] * t), -x[0] * t * np.exp(-x[1] * t)], axis=1))

    def wrong(x: np.ndarray, t: np.ndarray, *, y: np.ndarray) -> Any:
        return form(np.stack([np.exp(-x[1] * t), x[0] * t * np.exp(-x[1] * t)], axis=1))

    arguments: dict[str, Any] = {"args": (t,), "kwargs": {"y": np.cos(t)}}
    assert least_squares(fun, [1, 1], jac=jac, **arguments).success
    assert check_problem(fun, [1, 1], jac=jac, **arguments, seed=1).ok
    assert check_problem(fun, [1, 1], jac=wrong, **arguments, seed=1).verdict is Verdict.WRONG


def test_solve_ivp() -> None:
    def fun(t: float, y: np.ndarray, mu: float) -> list[float]:
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0] + np.sin(t)]

    def jac(t: float, y: np.ndarray, mu: float) -> list[list[float]]:
        return [[0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]]

    def wrong(t: float, y: np.ndarray, mu: float) -> list[list[float]]:
        return [[0, 1], [-2 * mu * y[0] * y[1], mu * (1 - y[0] ** 2)]]

    assert solve_ivp(fun, (0, 1), [2, 0.5], method="BDF", jac=jac, args=(8.0,)).success
    assert check_ivp(fun, (0, 1), [2, 0.5], jac=jac, args=(8.0,), seed=1).ok
    assert places(check_ivp(fun, (0, 1), [2, 0.5], jac=wrong, args=(8.0,), seed=1)) == {"d out[1] / d args[1][0]"}
    matrix = np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert check_ivp(lambda t, y: matrix @ y, (0, 1), [1, 2], jac=csr_matrix(matrix), seed=1).ok


class Vibration:
    """y'' + p^2 y = 0, y(0) = y(1) = 0, y'(0) = p; `slip` spoils one derivative of each Jacobian."""

    def __init__(self, slip: float = 1.0) -> None:
        self.slip = slip

    def fun(self, x: np.ndarray, y: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.vstack((y[1], -(p[0] ** 2) * y[0]))

    def bc(self, ya: np.ndarray, yb: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.array([ya[0], yb[0], ya[1] - p[0]])

    def fun_jac(self, x: np.ndarray, y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_value, by_parameter = np.zeros((2, 2, x.size)), np.zeros((2, 1, x.size))
        by_value[0, 1], by_value[1, 0] = 1.0, -(p[0] ** 2)
        by_parameter[1, 0] = -2 * p[0] * y[0] * self.slip
        return by_value, by_parameter

    def bc_jac(self, ya: np.ndarray, yb: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, ...]:
        first, last, by_parameter = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 1))
        first[0, 0], first[2, 1], last[1, 0] = 1.0, 1.0, 1.0
        by_parameter[2, 0] = -self.slip
        return first, last, by_parameter


def test_solve_bvp() -> None:
    x = np.linspace(0, 1, 5)
    y = np.random.default_rng(0).standard_normal((2, 5))
    right, wrong = Vibration(), Vibration(slip=1.5)
    given: dict[str, Any] = {"fun_jac": right.fun_jac, "bc_jac": right.bc_jac}
    assert solve_bvp(right.fun, right.bc, x, np.sin(6 * np.vstack([x, x])), p=[6], **given).success
    assert check_bvp(right.fun, right.bc, x, y, [6], **given, seed=1).verdict is Verdict.RIGHT
    report = check_bvp(wrong.fun, wrong.bc, x, y, [6], fun_jac=wrong.fun_jac, bc_jac=wrong.bc_jac, seed=1)
    assert all(result.verdict is Verdict.WRONG for result in report.results)
    blamed = [{block.input.path for block in r.comparisons if block.verdict is Verdict.WRONG} for r in report.results]
    assert blamed == [{"args[2]"}, {"args[2]"}]


def test_solve_bvp_without_parameters() -> None:
    x, y = np.linspace(0, 1, 4), np.random.default_rng(0).standard_normal((2, 4))

    def fun(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.vstack((y[1], -np.exp(y[0])))

    def fun_jac(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        result = np.zeros((2, 2, x.size))
        result[0, 1], result[1, 0] = 1.0, -np.exp(y[0])
        return result

    def bc(ya: np.ndarray, yb: np.ndarray) -> np.ndarray:
        return np.array([ya[0], yb[0]])

    assert check_bvp(fun, bc, x, y, fun_jac=fun_jac, seed=1).verdict is Verdict.RIGHT
    assert check_bvp(fun, bc, x, y, fun_jac=lambda x, y: -fun_jac(x, y), seed=1).verdict is Verdict.WRONG


def test_constraints() -> None:
    def jac(x: np.ndarray) -> list[list[float]]:
        return [[2 * x[0], 1], [x[1], x[0]]]

    def hess(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([[2 * v[0], v[1]], [v[1], 0]])

    def fun(x: np.ndarray) -> list[float]:
        return [x[0] ** 2 + x[1], x[0] * x[1]]

    assert check_constraint(NonlinearConstraint(fun, 0, 1, jac=jac, hess=hess), [1, 2], seed=1).ok
    wrong = NonlinearConstraint(fun, 0, 1, jac=jac, hess=lambda x, v: hess(x, v[::-1]))
    assert not check_constraint(wrong, [1, 2], seed=1).ok

    def curved(x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return v[0] * hess(x, np.array([1, 0]))

    single = NonlinearConstraint(lambda x: x[0] ** 2, 0, 1, jac=lambda x: [[2 * x[0], 0]], hess=curved)
    assert check_constraint(single, [1, 2], seed=1).ok
    slsqp = {"type": "ineq", "fun": lambda x, a: a * x[0] ** 2, "jac": lambda x, a: [a * x[0], 0], "args": (3.0,)}
    assert not check_constraint(slsqp, [1, 2], seed=1).ok


def test_a_problem_without_derivatives_is_refused() -> None:
    with pytest.raises(UsageError, match="no derivative to check"):
        check_problem(rosen, X, jac="2-point")
    with pytest.raises(UsageError, match="neither"):
        check_bvp(rosen, rosen, X, X)
    with pytest.raises(UsageError, match="no derivative to check"):
        check_constraint(LinearConstraint(np.eye(2)), [1, 2])
    with pytest.raises(UsageError, match="no derivative"):
        check_ivp(rosen, (0, 1), X, jac=None)
