"""Inputs that are tiny beside what they are added to: steps of their own size move nothing, longer ones do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradproof
from gradproof import Verdict

SIZES = (1e-6, 1e-9, 1e-12)


def check(fn: Any, slope: Any, x: np.ndarray, **options: Any) -> gradproof.Result:
    return gradproof.check(fn, x, derivative={"jac": lambda x: np.diag(slope(x))}, seed=1, **options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [1.0, 1e2])
@pytest.mark.parametrize("effort", ["exhaustive", 1])
def test_a_slope_that_no_step_of_the_size_of_the_input_shows(size: float, offset: float, effort: Any) -> None:
    x = size * np.linspace(1.0, 2.0, 7)

    def shifted(x: np.ndarray) -> np.ndarray:
        return offset + 3.0 * x

    for claimed, verdict in ((3.0, Verdict.RIGHT), (-3.0, Verdict.WRONG), (0.0, Verdict.WRONG), (300.0, Verdict.WRONG)):
        assert check(shifted, lambda x, c=claimed: np.full_like(x, c), x, effort=effort).verdict is verdict, claimed


@pytest.mark.parametrize("size", SIZES)
def test_an_output_that_does_not_depend_on_a_tiny_input_is_right(size: float) -> None:
    assert check(np.ones_like, np.zeros_like, size * np.linspace(1.0, 2.0, 5)).verdict is Verdict.RIGHT


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_a_function_that_has_its_own_tiny_unit(size: float, offset: float) -> None:
    x = size * np.linspace(1.0, 2.0, 5)

    def wave(x: np.ndarray) -> np.ndarray:
        return offset + np.sin(x / size)

    assert check(wave, lambda x: np.cos(x / size) / size, x).verdict is Verdict.RIGHT
    assert check(wave, lambda x: -np.cos(x / size) / size, x).verdict is Verdict.WRONG


@pytest.mark.parametrize("height", [1e-10, 3e-12])
def test_an_oscillation_of_its_own_unit_is_not_taken_for_what_long_steps_say(height: float) -> None:
    size = 1e-15
    x = size * np.linspace(1.0, 2.0, 3)
    found = check(lambda x: 1 + height * np.sin(x / size), lambda x: height * np.cos(x / size) / size, x)
    assert found.verdict is not Verdict.WRONG


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [1.0, 1e2])
def test_nor_is_one_with_noise(size: float, offset: float) -> None:
    x = size * np.linspace(1.0, 2.0, 7)

    def noisy(x: np.ndarray) -> np.ndarray:
        return offset + 1e-3 * np.sin(x / size) + 1e-6 * np.modf(np.abs(1e7 * np.sin(1e9 * x / size + 1)))[0]

    assert check(noisy, lambda x: 1e-3 * np.cos(x / size) / size, x).verdict is not Verdict.WRONG
    assert check(noisy, lambda x: -1e-3 * np.cos(x / size) / size, x).verdict is Verdict.WRONG


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_inputs_whose_squares_are_zero_warn_of_nothing() -> None:
    x = 1e-200 * np.linspace(1.0, 2.0, 5)
    for claimed, verdict in ((3.0, Verdict.RIGHT), (-3.0, Verdict.WRONG)):
        assert check(lambda x: 3.0 * x, lambda x, c=claimed: np.full_like(x, c), x).verdict is verdict
