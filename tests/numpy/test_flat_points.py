"""Where a function is flat to third order or more, its value and its derivative are both zero: there is no scale at the
point itself, but what becomes of the function as its input moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gradproof
from gradproof import Verdict

ZERO, ONE = np.zeros(3), np.ones(3)
FLAT: dict[str, tuple[Any, np.ndarray, Any]] = {
    "x^3": (lambda x: x**3, ZERO, lambda x: np.diag(3 * x**2)),
    "x^4": (lambda x: x**4, ZERO, lambda x: np.diag(4 * x**3)),
    "sum x^4": (lambda x: np.sum(x**4), ZERO, lambda x: 4 * x[None] ** 3),
    "(x - 1)^3": (lambda x: (x - 1) ** 3, ONE, lambda x: np.diag(3 * (x - 1) ** 2)),
    "close to it": (lambda x: (x - 1) ** 3, ONE + 1e-9, lambda x: np.diag(3 * (x - 1) ** 2)),
    "large": (lambda x: 1e6 * (x - 1e3) ** 4, 1e3 * ONE, lambda x: np.diag(4e6 * (x - 1e3) ** 3)),
    "tiny": (lambda x: 1e-20 * x**3, ZERO, lambda x: np.diag(3e-20 * x**2)),
    "x - sin x": (lambda x: x - np.sin(x), ZERO, lambda x: np.diag(1 - np.cos(x))),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("effort", ["auto", 2])
@pytest.mark.parametrize("name", FLAT)
def test_a_flat_point(name: str, effort: Any, form: Any) -> None:
    fn, x, jac = FLAT[name]
    right = gradproof.check(fn, x, derivative={"jac": lambda x: form(jac(x))}, seed=0, effort=effort)
    assert right.verdict is Verdict.RIGHT
    assert jac(x).any() or "vacuous" in {finding.code for finding in right.findings}
    for off in (1e-3, 1e-9):
        wrong = gradproof.check(fn, x, derivative={"jac": lambda x, off=off: form(jac(x) + off)}, seed=0, effort=effort)
        assert wrong.verdict is Verdict.WRONG


def test_a_second_derivative_at_a_flat_point() -> None:
    def hess(x: np.ndarray) -> np.ndarray:
        return np.diag(12 * x**2)

    given = {"grad": lambda x: 4 * x**3}
    assert gradproof.check(lambda x: np.sum(x**4), ZERO, derivative={**given, "hess": hess}, seed=0).ok
    wrong = {**given, "hess": lambda x: hess(x) + 1e-3}
    assert gradproof.check(lambda x: np.sum(x**4), ZERO, derivative=wrong, seed=0).verdict is Verdict.WRONG


def test_noise_that_hides_more_than_flatness_explains_stays_a_doubt() -> None:
    def fn(x: np.ndarray) -> np.ndarray:
        return x**3 + 1e-4 * np.modf(np.abs(1e5 * np.sin(1e9 * x + 1.0)))[0]

    assert not gradproof.check(fn, ZERO, derivative={"jac": lambda x: np.diag(3 * x**2)}, seed=0).ok
