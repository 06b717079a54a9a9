"""The complex step: exact to rounding where the function proves analytic, off where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradproof
from gradproof import Verdict
from gradproof.program import Offers
from gradproof.reference.complexstep import ComplexStep
from gradproof.reference.steps import coordinate_steps

from programs import elementwise  # isort: skip

X = np.random.default_rng(2).uniform(0.2, 2.0, 40) * np.resize([1.0, -1.0], 40)

ANALYTIC: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sin": (np.sin, np.cos),
    "exp": (lambda x: np.exp(3 * x), lambda x: 3 * np.exp(3 * x)),
    "quotient": (lambda x: x / (1 + x * x), lambda x: (1 - x * x) / (1 + x * x) ** 2),
    "branch on the real part": (lambda x: np.where(x > 0, x**3, x**2), lambda x: np.where(x > 0, 3 * x**2, 2 * x)),
    "steep": (lambda x: np.tanh(50 * x), lambda x: 50 / np.cosh(50 * x) ** 2),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "abs": lambda x: np.abs(x) ** 3,
    "a little abs": lambda x: np.sin(x) + 1e-6 * np.abs(x),
    "conj": lambda x: np.conj(x) ** 2,
    "real": lambda x: x * np.real(x),
    "cast": lambda x: np.sin(x.astype(float)),
    "float only": lambda x: np.arctan2(x, 2.0),
    "sqrt of a square": lambda x: np.sqrt(x * np.conj(x)),
}


def step_of(fn: Callable[..., Any], derivative: Callable[..., Any], point: np.ndarray) -> ComplexStep:
    program: Any = elementwise(fn, derivative, point)

    def complex_values(points: Any) -> Any:
        try:
            return np.asarray(fn(points), complex)
        except TypeError:
            return np.full(points.shape, np.nan + 0j)

    program.offers = Offers(complex_values=complex_values)
    found = ComplexStep.of(program, coordinate_steps(program), 1)
    assert found is not None
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ANALYTIC)
def test_the_error_is_within_the_bar_and_the_bar_is_rounding(name: str) -> None:
    fn, derivative = ANALYTIC[name]
    found = step_of(fn, derivative, X).slopes(np.eye(40))
    assert found is not None
    with np.errstate(all="ignore"):
        true = derivative(X.astype(np.longdouble)).astype(float)
    bar = np.diag(found.bar)
    assert (np.abs(np.diag(found.value) - true) <= bar).all()
    assert (bar <= 1e-11 * (np.abs(true) + np.abs(fn(X)))).all()
    assert (np.abs(found.value - np.diag(np.diag(found.value))) <= found.bar).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OTHERS)
def test_it_is_off_where_the_function_is_not_analytic(name: str) -> None:
    step = step_of(OTHERS[name], np.ones_like, X)
    assert step.slopes(np.eye(40)) is None
    assert step.verdict == "not analytic"
    assert step.notes == ()


def test_it_is_off_at_a_kink_that_complex_numbers_can_be_compared_across() -> None:
    point = X.copy()
    point[7] = 0.0
    assert step_of(lambda x: np.where(x > 0, x, 0 * x), np.ones_like, point).slopes(np.eye(40)) is None
    assert step_of(lambda x: np.where(x > 0, x, 0 * x), np.ones_like, X).slopes(np.eye(40)) is not None


def check(fn: Any, slope: Any, **options: Any) -> gradproof.Result:
    derivative = {"jac": lambda x: np.diag(slope(x))}
    return gradproof.check(fn, X, derivative=derivative, seed=1, tolerance=1e-12, **options)


def test_a_tolerance_beyond_what_differences_tell() -> None:
    right = check(lambda x: np.exp(3 * x), lambda x: 3 * np.exp(3 * x))
    assert right.verdict is Verdict.RIGHT
    assert any("complex step" in note for note in right.notes)
    at = int(np.argmax(X))
    wrong = check(lambda x: np.exp(3 * x), lambda x: 3 * np.exp(3 * x) * (1 + 1e-10 * (np.arange(40) == at)))
    assert {str(finding.place) for finding in wrong.wrong} == {f"d out[{at}] / d args[0][{at}]"}


def test_a_function_that_is_not_analytic_is_never_called_wrong_by_it() -> None:
    for fn, slope in (
        (lambda x: np.sin(x) + 1e-9 * np.abs(x), lambda x: np.cos(x) + 1e-9 * np.sign(x)),
        (lambda x: np.abs(x) ** 3, lambda x: 3 * x * np.abs(x)),
        (lambda x: np.sin(np.real(x)), np.cos),
    ):
        assert check(fn, slope).verdict is not Verdict.WRONG
