"""The verdict on single entries: the same rule whether or not all bars are within the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from gradproof.agreement import judge
from gradproof.reference.estimate import Estimate

TINY = float(np.finfo(np.float64).tiny)
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"

# analytic, numeric, bar, tolerance
ENTRIES = {
    "agrees": ((1.0, 1.0, 1e-9, 1e-5), RIGHT),
    "within the tolerance": ((1.0, 1.0 + 9e-6, 1e-9, 1e-5), RIGHT),
    "within tolerance and bar": ((1.0, 1.0 + 1.9e-5, 1e-5, 1e-5), RIGHT),
    "beyond both": ((1.0, 1.0 + 2.1e-5, 1e-5, 1e-5), WRONG),
    "underflows": ((TINY / 4, 0.0, 0.0, 0.0), RIGHT),
    "does not underflow": ((4 * TINY, 0.0, 0.0, 0.0), WRONG),
    "not finite": ((np.nan, 1.0, 1e-9, 1e-5), WRONG),
}
WIDE = {
    "cannot be told": ((1.0, 1.0 + 3e-3, 1e-3, 1e-5), UNDECIDED),
    "clear in spite of its bar": ((1.0, 1.0 + 5e-3, 1e-3, 1e-5), WRONG),
    "not known at all": ((1.0, 0.0, np.inf, 1e-5), UNDECIDED),
}


def judged(entries: list[tuple[float, float, float, float]]) -> list[str]:
    analytic, numeric, bar, tolerance = (np.array([column]) for column in zip(*entries, strict=True))
    found = judge(analytic, Estimate.smooth(numeric, bar), tolerance)
    assert not (found.wrong & found.undecided).any()
    return [
        WRONG if wrong else UNDECIDED if unknown else RIGHT
        for wrong, unknown in zip(found.wrong[0], found.undecided[0], strict=True)
    ]


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("beside", [None, *WIDE])
def test_an_entry_is_judged_alike_whatever_stands_beside_it(name: str, beside: str | None) -> None:
    entry, verdict = ENTRIES[name]
    others = [] if beside is None else [WIDE[beside]]
    assert judged([entry, *(one for one, _ in others)]) == [verdict, *(each for _, each in others)]


@pytest.mark.parametrize("name", WIDE)
def test_a_wide_bar_alone(name: str) -> None:
    entry, verdict = WIDE[name]
    assert judged([entry]) == [verdict]
