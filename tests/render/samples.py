"""Real results of small NumPy programs, one of each kind, made by real checks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from programs import HandProgram, elementwise

from gradproof.check import check_program
from gradproof.program import Skipped
from gradproof.result import Report, Result
from gradproof.settings import Settings

MATRIX = np.array([[1.0, -0.5, 0.25], [0.3, 2.0, 0.7]])


def checked(program: Any, name: str, **options: Any) -> Result:
    program.name = name
    return check_program(program, Settings.validated(**{"seed": 1, "detail": "plots", **options}))


@cache
def right() -> Result:
    """A linear map, with an output that has no coordinates."""
    program = HandProgram(lambda x: x @ MATRIX.T, MATRIX, [0.5, 1.0, -2.0], skipped=(Skipped("out[1]", "an integer"),))
    return checked(program, "linear")


@cache
def scaled() -> Result:
    """A gradient that is twice too large."""
    return checked(elementwise(np.sin, lambda x: 2 * np.cos(x), [0.3, 0.9, 1.4]), "sine")


@cache
def at_a_kink() -> Result:
    """abs at 0 (allowed), and elsewhere."""
    return checked(elementwise(np.abs, np.sign, [0.0, 1.0]), "absolute")


@cache
def nan() -> Result:
    """A gradient that is NaN where the function is fine."""
    return checked(elementwise(np.exp, lambda x: np.where(x > 1, np.nan, np.exp(x)), [0.5, 1.5]), "exponential")


@cache
def noisy() -> Result:
    """A function that moves in stairs much wider than any step: cannot be told."""
    rough = np.random.default_rng(0)
    table = rough.standard_normal(997)
    program = elementwise(
        lambda x: x + 1e-2 * table[(np.abs(x) * 1e15).astype(np.int64) % 997], np.ones_like, [0.7, 1.3]
    )
    return checked(program, "noisy", nondet_tol=1.0)


@cache
def probed() -> Result:
    """A large program seen through probes, with one entry that is off."""
    point = np.linspace(0.5, 1.5, 5000)

    def derivative(x: np.ndarray) -> np.ndarray:
        result = np.exp(x)
        result[1234] *= 1.05
        return result

    return checked(elementwise(np.exp, derivative, point), "large", effort=2)


@cache
def report() -> Report:
    results = (right(), scaled(), at_a_kink(), nan(), noisy(), probed())
    return Report(tuple(replace(one, source=f"cases.py::{one.name}") for one in results), source="gradproof check")
