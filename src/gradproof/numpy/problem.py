"""What SciPy's solvers are given, checked as it is: the same arguments, in the same order, without solving anything."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradproof.check import check
from gradproof.errors import UsageError
from gradproof.numpy.matrices import is_operator, is_sparse
from gradproof.result import Report, Result


def check_problem(
    fun: Callable[..., Any],
    x0: Any,
    *,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Result:
    """For `scipy.optimize.minimize`, `root` and `least_squares`: `fun(x, *args)`, and the derivatives that go with it.
    Strings such as "2-point" and quasi-Newton strategies are no derivatives, and left out. `options` are those of
    `gradproof.check`."""
    given = _given(jac=jac, hess=hess, hessp=hessp)
    if not given:
        raise UsageError(
            f"there is no derivative to check: jac={jac!r}, hess={hess!r}, hessp={hessp!r}; "
            "write check_problem(fun, x0, jac=jac)"
        )
    positional = (_vector(x0), *(args if isinstance(args, tuple) else (args,)))
    return check(fun, positional, kwargs, derivative=given, **options)


def check_ivp(
    fun: Callable[..., Any], t_span: Sequence[float], y0: Any, *, jac: Any, args: Any = None, **options: Any
) -> Result:
    """For `scipy.integrate.solve_ivp`: `fun(t, y, *args)` and `jac(t, y, *args)`, or a constant, at the start."""
    given = _given(jac=jac)
    if not given:
        raise UsageError(f"jac={jac!r} is no derivative; write check_ivp(fun, t_span, y0, jac=jac)")
    positional = (float(np.ravel(t_span)[0]), _vector(y0), *(args or ()))
    return check(fun, positional, derivative=given, wrt="args[1]", **options)


def check_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    *,
    fun_jac: Callable[..., Any] | None = None,
    bc_jac: Callable[..., Any] | None = None,
    **options: Any,
) -> Report:
    """For `scipy.integrate.solve_bvp`: one result for each of the two Jacobians that are given."""
    nodes, values = np.asarray(x, float), np.atleast_2d(_vector(y))
    parameters = () if p is None else (_vector(p),)
    wrt = ["args[1]"] + ["args[2]"] * len(parameters)
    results = []
    if fun_jac is not None:
        vjp = functools.partial(_by_nodes, fun_jac, len(parameters))
        results.append(check(fun, (nodes, values, *parameters), derivative={"vjp": vjp}, wrt=wrt, **options))
    if bc_jac is not None:
        ends = (values[:, 0].copy(), values[:, -1].copy(), *parameters)
        wrt = [f"args[{k}]" for k in range(len(ends))]
        results.append(check(bc, ends, derivative={"jac": bc_jac}, wrt=wrt, **options))
    if not results:
        raise UsageError("neither fun_jac nor bc_jac was given; write check_bvp(fun, bc, x, y, fun_jac=fun_jac)")
    return Report(tuple(results))


def check_constraint(constraint: Any, x0: Any, **options: Any) -> Result:
    """For a `NonlinearConstraint`, or the dict of SLSQP and COBYLA: its `jac` and, where it is a function, `hess`."""
    part = constraint.get if isinstance(constraint, Mapping) else functools.partial(getattr, constraint)
    fun, given = part("fun", None), _given(jac=part("jac", None), hess=part("hess", None))
    if fun is None or "jac" not in given:
        raise UsageError(
            f"{type(constraint).__name__} has no derivative to check; write NonlinearConstraint(fun, lb, ub, jac=jac)"
        )
    point, args = _vector(x0), part("args", ())
    if "hess" in given and np.size(fun(point.copy(), *args)) == 1:  # its weights are a vector of one
        given["hess"] = functools.partial(_weighted, given["hess"])
    return check(fun, (point, *args), derivative=given, **options)


def _weighted(hess: Callable[..., Any], x: Any, *args: Any) -> Any:
    return hess(x, np.ones(1), *args)


def _by_nodes(fun_jac: Callable[..., Any], parameters: int, cotangent: Any, *arguments: Any) -> Any:
    """The map w -> J^T w, from derivatives node by node: d f(x_q) / d y(x_q), and with respect to the parameters."""
    found = fun_jac(*arguments)
    if not parameters:
        return np.einsum("iq,ijq->jq", cotangent, np.conj(found))
    by_value, by_parameter = found
    return (
        np.einsum("iq,ijq->jq", cotangent, np.conj(by_value)),
        np.einsum("iq,ijq->j", cotangent, np.conj(by_parameter)),
    )


def _given(**named: Any) -> dict[str, Any]:
    return {name: value for name, value in named.items() if _is_derivative(value)}


def _is_derivative(value: Any) -> bool:
    """SciPy's names of differences and its update strategies compute no derivative of the user's."""
    if value is None or value is False or isinstance(value, str):
        return False
    if callable(value) or value is True or is_sparse(value) or is_operator(value):
        return True
    return isinstance(value, (np.ndarray, list, tuple))


def _vector(x0: Any) -> Any:
    """As SciPy takes it: an array of at least one dimension, float64 unless it is floating already."""
    array = np.atleast_1d(np.asarray(x0))
    return array if np.issubdtype(array.dtype, np.inexact) else array.astype(np.float64)
