"""Hand-written derivatives: what a sparse Jacobian costs, and how the time compares with SciPy's own checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import check_grad, rosen, rosen_der, rosen_hess

import gradproof
from bench.table import Claim, Part, Size, Table, number
from bench.timing import interleaved
from gradproof.numpy import check_problem

UNKNOWNS = 100_000
MOST_CALLS = 30


class Counted:
    """A function that counts its calls."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn, self.calls = fn, 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self._fn(*args)


def chain(x: np.ndarray) -> np.ndarray:
    """Every unknown with its two neighbours."""
    y = 2 * np.sin(x)
    y[1:] += x[:-1] ** 2
    y[:-1] -= x[1:] * x[:-1]
    return y


def chain_jac(x: np.ndarray) -> Any:
    middle = 2 * np.cos(x)
    middle[:-1] -= x[1:]
    return sparse.diags([2 * x[:-1], middle, -x[:-1]], [-1, 0, 1], format="coo")


def _spoilt(row: int, column: int, factor: float) -> Callable[[np.ndarray], Any]:
    def jac(x: np.ndarray) -> Any:
        found = chain_jac(x)
        found.data[(found.row == row) & (found.col == column)] *= factor
        return found

    return jac


def _far(x: np.ndarray) -> np.ndarray:
    y = chain(x)
    y[123] += 1e-3 * x[UNKNOWNS - 1000]
    return y


def run(size: Size, say: Callable[[str], None]) -> Part:
    say(f"a tridiagonal Jacobian of {UNKNOWNS:,} unknowns")
    calls, found = _tridiagonal()
    times = _times((10, 100, 500) if size == "full" else (10, 100), say)
    return Part([found, times], _claims(calls, found))


def _tridiagonal() -> tuple[int, Table]:
    table = Table(
        f"A tridiagonal Jacobian of {UNKNOWNS:,} unknowns, as scipy.sparse",
        ("what", "verdict", "worst entry", "calls of the function", "seconds"),
    )
    x = np.random.default_rng(0).standard_normal(UNKNOWNS)
    calls = 0
    for what, fn, jac in (
        ("right", chain, chain_jac),
        ("one stored entry 1 % off", chain, _spoilt(70_000, 70_001, 1.01)),
        ("a dependency far outside of the pattern", _far, chain_jac),
    ):
        counted = Counted(fn)
        result = gradproof.check(counted, x, derivative={"jac": jac}, seed=1)
        worst = result.comparisons[0].worst
        place = worst.place if worst else "-"
        table.add(what, result.verdict, place, counted.calls, number(result.cost.seconds))
        calls = calls or counted.calls
    return calls, table


def _times(sizes: tuple[int, ...], say: Callable[[str], None]) -> Table:
    table = Table(
        "The gradient of Rosenbrock's function: time of a check",
        ("unknowns", "check_grad ms", "gradproof ms", "ratio", "gradproof with hess too, ms"),
        "check_grad takes forward differences and returns the norm of the error; gradproof looks at every entry",
    )
    for n in sizes:
        say(f"Rosenbrock, {n} unknowns")
        x = np.random.default_rng(n).standard_normal(n)
        taken = interleaved(
            {
                "scipy": lambda x=x: check_grad(rosen, rosen_der, x),
                "ours": lambda x=x: check_problem(rosen, x, jac=rosen_der, seed=1),
                "second": lambda x=x: check_problem(rosen, x, jac=rosen_der, hess=rosen_hess, seed=1),
            }
        )
        ms = {name: 1e3 * seconds for name, seconds in taken.items()}
        ratio = ms["ours"] / ms["scipy"]
        table.add(n, number(ms["scipy"]), number(ms["ours"]), number(ratio), number(ms["second"]))
    return table


def _claims(calls: int, found: Table) -> list[Claim]:
    right = [row[1] for row in found.rows] == ["RIGHT", "WRONG", "WRONG"]
    return [
        Claim(
            f"a tridiagonal Jacobian of {UNKNOWNS:,} unknowns, every entry: calls of the function",
            f"≤ {MOST_CALLS}",
            str(calls),
            calls <= MOST_CALLS and right,
        )
    ]
