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
