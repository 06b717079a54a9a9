"""The search for kinks along a probe: strong curvature and rounding start none, and a kink beside them is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from programs import HandProgram, elementwise

from gradproof.check import check_program
from gradproof.program import Array
from gradproof.result import Result, Verdict
from gradproof.settings import Settings

SIZE, KINK = 120, 36
POINT = np.random.default_rng(3).uniform(1.0, 2.0, SIZE)
POINT[KINK] = 1.25
# A step of 1e-5 is a part of a radian.
FAST = 3e3
EVEN = np.arange(SIZE) % 2 == 0


def probed(program: HandProgram) -> Result:
    return check_program(program, Settings.validated(modes=("reverse",), effort=1, seed=1, contracts="none"))


def curved(x: Array) -> Array:
    return np.sin(FAST * x)


def cancelling(x: Array) -> Array:
    """Terms of size 1 leave 1e-6, with their roundings."""
    return (1.0 + 1e-6 * x**2) - 1.0


def curved_or_cancelling(x: Array) -> Array:
    return np.where(EVEN, curved(x), cancelling(x))


CURVED: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "curvature": (curved, lambda x: FAST * np.cos(FAST * x)),
    "curvature and rounding": (
        curved_or_cancelling,
        lambda x: np.where(EVEN, FAST * np.cos(FAST * x), 2e-6 * x),
    ),
}


@pytest.mark.parametrize("name", CURVED)
def test_a_smooth_function_starts_no_search(name: str) -> None:
    function, slope = CURVED[name]
    result = probed(elementwise(function, slope, POINT))
    assert result.verdict is Verdict.RIGHT, result
    assert not any(finding.code == "kink" for finding in result.findings)
    assert result.cost.evaluations <= 64
    assert probed(elementwise(function, lambda x: 1.01 * slope(x), POINT)).verdict is Verdict.WRONG


@pytest.mark.parametrize("name", CURVED)
@pytest.mark.parametrize("share", [1.0, 1e-3])
@pytest.mark.parametrize(("chosen", "verdict"), [(0.3, Verdict.RIGHT), (1.5, Verdict.WRONG), (-1.5, Verdict.WRONG)])
def test_a_kink_beside_it_is_found(name: str, share: float, chosen: float, verdict: Verdict) -> None:
    """The kink is some share of the slope there."""
    smooth, slope = CURVED[name]
    size = share * float(slope(POINT)[KINK])

    def function(x: Array) -> Array:
        kinked = np.where(np.arange(SIZE) == KINK, size * np.abs(x - POINT[KINK]), 0.0)
        return smooth(x) + kinked

    def claimed(x: Array) -> Array:
        return slope(x) + np.where(np.arange(SIZE) == KINK, chosen * size, 0.0)

    result = probed(elementwise(function, claimed, POINT))
    assert result.verdict is verdict, result
    if verdict is Verdict.RIGHT:
        assert [str(one.place.input) for one in result.findings if one.code == "kink"] == [f"x0[{KINK}]"]
    else:
        worst = result.comparisons[0].worst
        assert worst is not None
        assert str(worst.place.input) == f"x0[{KINK}]"


MANY, ASIDE = 2**17, 70_001


def turned(chosen: float, modes: tuple[str, ...]) -> HandProgram:
    """|x - 1| at one coordinate of many, x^2 at the others, and each output stands elsewhere than its input."""
    point = np.random.default_rng(5).uniform(0.5, 2.0, MANY)
    point[ASIDE] = 1.0
    kinked = np.arange(MANY) == ASIDE
    slope = np.where(kinked, chosen, 2 * point)
    return HandProgram(
        lambda x: np.roll(np.where(kinked, np.abs(x - 1.0), x**2), 7, axis=1),
        np.zeros((0, 0)),
        point,
        pull_with=lambda rows: np.roll(rows, -7, axis=1) * slope,
        push_with=lambda rows: np.roll(rows * slope, 7, axis=1),
        modes=modes,
    )


@pytest.mark.parametrize(
    ("chosen", "modes", "evaluations"),
    [(0.3, ("reverse",), 100), (0.0, ("reverse",), 224), (0.3, ("forward",), 224)],
    ids=["gradient tells", "gradient is zero", "no gradient"],
)
def test_one_kink_of_many_is_found_with_and_without_the_gradient(
    chosen: float, modes: tuple[str, ...], evaluations: int
) -> None:
    settings = Settings.validated(modes=modes, effort=1, seed=1, contracts="none")
    result = check_program(turned(chosen, modes), settings)
    assert result.verdict is Verdict.RIGHT, result
    assert [str(one.place) for one in result.findings if one.code == "kink"] == [f"d y0[{ASIDE + 7}] / d x0[{ASIDE}]"]
    assert result.cost.evaluations <= evaluations
    wrong = check_program(turned(1.5, modes), settings)
    assert wrong.verdict is Verdict.WRONG
    assert wrong.comparisons[0].worst is not None
    assert str(wrong.comparisons[0].worst.place) == f"d y0[{ASIDE + 7}] / d x0[{ASIDE}]"
