"""What is left when large terms cancel at small arguments: treads that slope, with leaps between them. Differences over
steps shorter than a tread see the slope of what divides, and must not be held against a right derivative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gradproof
from gradproof import Verdict
from gradproof.program import Array

# The function, and its derivative by series.
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "(1 - cos x) / x": (lambda x: (1 - np.cos(x)) / x, lambda x: 0.5 - x**2 / 8),
    "(exp x - 1) / x": (lambda x: (np.exp(x) - 1) / x, lambda x: 0.5 + x / 3),
    "(1 - cos x) / x^2": (lambda x: (1 - np.cos(x)) / x**2, lambda x: -x / 12),
}
PLACES = [(scale, seed) for scale in (1e-5, 1e-6) for seed in range(4)]


def verdict(function: Callable[[Array], Array], slope: Callable[[Array], Array], point: Array) -> Verdict:
    return gradproof.check(function, point, derivative={"jac": lambda x: np.diag(slope(x))}, seed=0).verdict


def drawn(scale: float, seed: int) -> Array:
    """Numbers of this size, of either sign."""
    generator = np.random.default_rng(seed)
    return np.asarray(scale * generator.uniform(0.5, 2.0, 3) * generator.choice((-1.0, 1.0), 3))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_right_derivative_is_not_called_wrong(name: str, place: tuple[float, int]) -> None:
    function, slope = FUNCTIONS[name]
    assert verdict(function, slope, drawn(*place)) in (Verdict.RIGHT, Verdict.UNDECIDED)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("factor", [-1.0, 2.0, 0.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_one_is_not_called_right(name: str, factor: float, place: tuple[float, int]) -> None:
    """Of the first, minus the derivative is the slope of the treads."""
    function, slope = FUNCTIONS[name]
    found = verdict(function, lambda x: factor * slope(x), drawn(*place))
    if name == "(1 - cos x) / x" and factor >= 0:
        assert found is Verdict.WRONG
    else:
        assert found in (Verdict.WRONG, Verdict.UNDECIDED)


@pytest.mark.parametrize("period", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("claimed", [0.3, 0.0])
def test_a_remainder_leaps_too_and_is_held_to_its_treads(period: float, claimed: float) -> None:
    """They are meant. Along long steps it has the slope of 0.3."""
    point = period * np.array([41.31, -207.6])

    def wave(x: Array) -> Array:
        return np.asarray(np.mod(x, period) + 0.3 * x)

    assert verdict(wave, lambda x: np.full_like(x, 1.3), point) is Verdict.RIGHT
    assert verdict(wave, lambda x: np.full_like(x, claimed), point) is Verdict.WRONG


@pytest.mark.parametrize("unit", [1e-3, 1e-7])
def test_an_oscillation_and_a_wave_of_kinks_do_not_leap(unit: float) -> None:
    point = unit * np.array([141.31, -57.6])
    for wave, slope in (
        (lambda x: unit * np.sin(x / unit), lambda x: np.cos(x / unit)),
        (
            lambda x: np.abs(x - 4 * unit * np.round(x / (4 * unit))),
            lambda x: np.sign(x - 4 * unit * np.round(x / (4 * unit))),
        ),
    ):
        assert verdict(wave, slope, point) is Verdict.RIGHT
        assert verdict(wave, np.zeros_like, point) is Verdict.WRONG
